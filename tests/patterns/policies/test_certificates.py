"""What a CertificatePolicy says of the certificates in a cluster's Secrets, in upstream's words."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.patterns.policies.world import GROUP, Policies, made, namespace, policy

from syncline.base.clock import VirtualClock
from syncline.kube.objects import Obj
from syncline.patterns.policies.certificates.judging import (
    LONGEST_NAME,
    InvalidPolicy,
    certificate_of,
    judged,
    limits_of,
)

NOW = VirtualClock().now()


@cache
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def pem(hours: float, *sans: str, ca: bool = False, since: float = 24, now: datetime = NOW) -> bytes:
    """Return a certificate that ends in so many hours, and began ``since`` hours ago."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key().public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=since))
        .not_valid_after(now + timedelta(hours=hours))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if sans:
        names = x509.SubjectAlternativeName([x509.DNSName(one) for one in sans])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(key(), hashes.SHA256()).public_bytes(x509_encoding())


def x509_encoding() -> Any:
    from cryptography.hazmat.primitives.serialization import Encoding

    return Encoding.PEM


def secret(name: str, data: bytes, field: str = "tls.crt", place: str = "a", **labels: str) -> Obj:
    one = made("v1", "Secret", name, place)
    one["metadata"]["labels"] = {key.replace("_", "-"): value for key, value in labels.items()}
    return {**one, "data": {field: base64.b64encode(data).decode()}}


def message(spec: Obj, *secrets: Obj) -> str:
    found = [one for one in map(certificate_of, secrets) if one is not None]
    return judged(limits_of(spec), {"a": found, "b": []}, NOW).message


SOON = secret("soon", pem(100))
LONG = secret("long", pem(9000, since=9000))
ROOT = secret("root", pem(1000, ca=True))
NAMED = secret("named", pem(9000, "shop.example.com", "x.test"))


@pytest.mark.parametrize(
    ("spec", "secrets", "said"),
    [
        ({}, [LONG, NAMED], "Compliant"),
        ({}, [SOON, LONG], "NonCompliant; 1 certificates expire in less than 672h0m0s: a:soon\n"),
        ({"minimumDuration": "99h"}, [SOON], "Compliant"),
        (
            {"minimumCADuration": "2000h", "minimumDuration": "300h"},
            [ROOT, SOON],
            "NonCompliant; 1 certificates expire in less than 300h0m0s: a:soon\n"
            " 1 CA certificates expire in less than 2000h0m0s: a:root\n",
        ),
        (
            {"maximumDuration": "10000h"},
            [LONG, NAMED],
            "NonCompliant;  1 certificates exceed the maximum duration of 10000h0m0s: a:long\n",
        ),
        (
            {"allowedSANPattern": r"[.]example[.]com$", "disallowedSANPattern": "^[*]"},
            [NAMED],
            "NonCompliant;  1 certificates defined SAN entries do not match pattern "
            r"Allowed: [.]example[.]com$ Disallowed: ^[*]: a:named" + "\n",
        ),
        ({}, [secret("junk", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----")], "Compliant"),
        ({}, [secret("other", pem(1), "ca.crt")], "Compliant"),
    ],
)
def test_a_policy_says_of_certificates(spec: Obj, secrets: list[Obj], said: str) -> None:
    assert message(spec, *secrets) == said


def test_a_label_names_the_field_and_another_the_certificate() -> None:
    one = secret("s", pem(1), "ca.crt")
    one["metadata"]["labels"] = {"certificate_key_name": "ca.crt", "certificate-name": "web"}
    (found,) = filter(None, [certificate_of(one)])
    assert (found.name, found.secret) == ("web", "s")
    details = judged(limits_of({}), {"a": [found]}, NOW).details["a"]
    assert details["message"].splitlines()[1:] == [
        "List of non compliant certificates:",
        "web expires on 2026-01-01T01:00:00Z",
    ]


def test_what_cannot_be_judged_is_said() -> None:
    with pytest.raises(InvalidPolicy, match=r"spec\.allowedSANPattern is not a valid regular expression"):
        limits_of({"allowedSANPattern": "("})


def test_a_name_that_no_host_has_fits_no_pattern() -> None:
    hostile = secret("hostile", pem(9000, "a" * (LONGEST_NAME + 1)))
    assert "a:hostile" in message({"allowedSANPattern": "a"}, hostile)


def test_a_policy_of_the_hub_tells_of_certificates_as_they_come_expire_and_go() -> None:
    fleet = Policies("c1")
    member = fleet.members["c1"]
    member.send("POST", "/api/v1/namespaces", namespace("a"))
    spec = {"namespaceSelector": {"include": ["a"]}, "minimumDuration": "300h", "remediationAction": "inform"}
    fleet.post(policy("certs", {**made(f"{GROUP}/v1", "CertificatePolicy", "certs"), "spec": spec}))
    fleet.bind("certs")
    fleet.time.advance(30)
    assert fleet.messages("certs", "c1") == ["Compliant"]
    one = secret("web", pem(300.1, now=fleet.clock.now()))
    member.send("POST", "/api/v1/namespaces/a/secrets", one)
    fleet.time.advance(30)
    assert fleet.root("certs")["status"]["compliant"] == "Compliant"
    fleet.time.advance(600)
    said = "NonCompliant; 1 certificates expire in less than 300h0m0s: a:web"
    assert fleet.messages("certs", "c1")[0] == said
    assert fleet.root("certs")["status"]["compliant"] == "NonCompliant"
    member.send("DELETE", "/api/v1/namespaces/a/secrets/web")
    fleet.time.advance(30)
    assert fleet.messages("certs", "c1")[0] == "Compliant"
