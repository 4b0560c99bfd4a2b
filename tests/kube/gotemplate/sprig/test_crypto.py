"""Keys and certificates of templates are those that Go's programs expect."""

from __future__ import annotations

import base64
import ipaddress
from datetime import timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID
from tests.kube.gotemplate.sprig.functions import NOW, call, failure

from syncline.base.entropy import Entropy
from syncline.kube.gotemplate.sprig.library import sprig_functions
from syncline.kube.gotemplate.template import parse


@pytest.fixture(scope="module")
def key() -> str:
    made: str = call("genPrivateKey", "ecdsa")
    return made


def _read(certificate: Any) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate.cert.encode())


@pytest.mark.parametrize(("kind", "begin"), [("ecdsa", "EC PRIVATE KEY"), ("ed25519", "PRIVATE KEY")])
def test_a_private_key_has_the_form_of_its_kind(kind: str, begin: str) -> None:
    made = call("genPrivateKey", kind)
    assert made.startswith(f"-----BEGIN {begin}-----\n")
    load_pem_private_key(made.encode(), None)


def test_an_authority_signs_certificates_and_says_so(key: str) -> None:
    authority = call("genCAWithKey", "my-ca", 365, key)
    made = call("genSignedCertWithKey", "web", ["10.0.0.1", "::1"], ["web.local"], 30, authority, key)
    root, leaf = _read(authority), _read(made)
    leaf.verify_directly_issued_by(root)
    assert root.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert root.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "web"
    assert (leaf.not_valid_before_utc, leaf.not_valid_after_utc) == (NOW, NOW + timedelta(days=30))
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["web.local"]
    addresses = [ipaddress.ip_address(one) for one in ("10.0.0.1", "::1")]
    assert names.get_values_for_type(x509.IPAddress) == addresses


def test_a_certificate_goes_from_function_to_function_in_a_template() -> None:
    template = (
        '{{ $ca := genCA "ca" 1 }}{{ $own := buildCustomCert ($ca.Cert | b64enc) ($ca.Key | b64enc) }}'
        '{{ $cert := genSignedCert "web" nil (list "web") 1 $own }}{{ typeOf $cert }} {{ trunc 27 $cert.Cert }} '
        "{{ trunc 31 $cert.Key }}"
    )
    text = parse("", template, sprig_functions(lambda: NOW, Entropy(0))).render({})
    assert text == "sprig.certificate -----BEGIN CERTIFICATE----- -----BEGIN RSA PRIVATE KEY-----"


def test_a_self_signed_certificate_is_its_own_issuer(key: str) -> None:
    made = _read(call("genSelfSignedCertWithKey", "", [], [], 1, key))
    made.verify_directly_issued_by(made)
    assert made.subject.rdns == []


def test_what_aes_encrypts_it_decrypts() -> None:
    text = call("encryptAES", "password", "sixteen letters! é")
    assert len(base64.b64decode(text)) == 48
    assert call("decryptAES", "password", text) == "sixteen letters! é"
    assert call("encryptAES", "password", "") == ""


def test_bcrypt_refuses_and_says_what_to_do() -> None:
    for name, arguments in (("bcrypt", ("secret",)), ("htpasswd", ("user", "secret"))):
        assert failure(name, *arguments).startswith("bcrypt is not available: hash the password outside")
    assert call("bcrypt", "x" * 73).endswith("password length exceeds 72 bytes")
