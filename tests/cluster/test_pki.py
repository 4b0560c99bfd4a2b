from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from syncline.base.clock import EPOCH
from syncline.base.secret import Secret
from syncline.cluster.access.pki import (
    CA_LIFETIME,
    LEAF_LIFETIME,
    create_keys,
    kubeconfig_for,
    load_or_create_keys,
    user_of_certificate,
)


def der(pem: str) -> bytes:
    return x509.load_pem_x509_certificate(pem.encode()).public_bytes(serialization.Encoding.DER)


def test_the_admin_certificate_names_a_member_of_masters() -> None:
    keys = create_keys(EPOCH)
    user, first, last = user_of_certificate(der(keys.admin.certificate_pem))
    assert (user.name, user.groups) == ("kubernetes-admin", ("system:masters",))
    assert first < EPOCH < last == EPOCH + LEAF_LIFETIME


def test_the_server_certificate_serves_its_usual_names_and_the_address_it_listens_on() -> None:
    keys = create_keys(EPOCH, hosts=("0.0.0.0", "192.0.2.7", "box.example"))
    certificate = x509.load_pem_x509_certificate(keys.server.certificate_pem.encode())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    texts = [str(name.value) for name in names]
    assert {"localhost", "127.0.0.1", "::1", "kubernetes.default.svc", "192.0.2.7", "box.example"} <= set(texts)
    assert "0.0.0.0" not in texts
    ca = x509.load_pem_x509_certificate(keys.ca_pem.encode())
    certificate.verify_directly_issued_by(ca)


def test_keys_are_kept_for_the_owner_only_and_found_again(tmp_path: Path) -> None:
    first = load_or_create_keys(tmp_path / "pki", EPOCH)
    again = load_or_create_keys(tmp_path / "pki", EPOCH + timedelta(days=1))
    assert again == first
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "pki").iterdir()}
    assert set(modes.values()) == {0o600} and len(modes) == 7


def test_a_leaf_that_ends_soon_is_renewed_and_the_authority_stays(tmp_path: Path) -> None:
    first = load_or_create_keys(tmp_path, EPOCH)
    later = load_or_create_keys(tmp_path, EPOCH + LEAF_LIFETIME - timedelta(days=29))
    assert later.ca_pem == first.ca_pem and later.service_accounts == first.service_accounts
    assert later.server.certificate_pem != first.server.certificate_pem
    assert later.admin.certificate_pem != first.admin.certificate_pem


def test_a_new_listen_address_renews_the_server_certificate_only(tmp_path: Path) -> None:
    first = load_or_create_keys(tmp_path, EPOCH)
    later = load_or_create_keys(tmp_path, EPOCH, hosts=("192.0.2.7",))
    assert later.admin == first.admin and later.server != first.server


def _request(common_name: str, organization: str) -> str:
    key = rsa.generate_private_key(65537, 2048)
    attributes = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization),
        x509.NameAttribute(NameOID.COMMON_NAME, common_name),
    ]
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(attributes)).sign(key, hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM).decode()


def test_a_signed_request_keeps_its_subject_and_ends_with_the_authority_at_the_latest() -> None:
    keys = create_keys(EPOCH)
    pem = keys.authority.sign(_request("jane", "devs"), now=EPOCH, lifetime=CA_LIFETIME * 2)
    user, _, last = user_of_certificate(der(pem))
    assert (user.name, user.groups) == ("jane", ("devs",)) and last == EPOCH + CA_LIFETIME
    usages = x509.load_pem_x509_certificate(pem.encode()).extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    assert list(usages.value) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_what_is_no_request_is_refused() -> None:
    with pytest.raises(ValueError):
        create_keys(EPOCH).authority.sign("nonsense", now=EPOCH, lifetime=timedelta(days=1))


def test_a_kubeconfig_holds_one_context_with_everything_inline() -> None:
    keys = create_keys(EPOCH)
    config = kubeconfig_for(server="https://127.0.0.1:6443", ca_pem=keys.ca_pem, client=keys.admin, namespace="argocd")
    assert config["contexts"][0]["context"] == {"cluster": "syncline", "user": "syncline", "namespace": "argocd"}
    assert base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode() == keys.ca_pem
    assert base64.b64decode(config["users"][0]["user"]["client-key-data"]).decode() == keys.admin.key_pem.reveal()
    assert kubeconfig_for(server="http://x", token=Secret("t"))["users"][0]["user"] == {"token": "t"}


def test_keys_do_not_show_in_texts() -> None:
    assert "PRIVATE KEY" not in repr(create_keys(EPOCH))
