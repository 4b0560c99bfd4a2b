"""CertificateSigningRequests are approved, signed, refused and cleaned up as Kubernetes' controllers do it."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from tests.cluster.world import World

from syncline.base.clock import EPOCH
from syncline.cluster.access.pki import create_keys, user_of_certificate
from syncline.kube.certificates import Identity, certificate_request, client_key

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
AUTHORITY = create_keys(EPOCH).authority
CLIENT = ["client auth", "digital signature", "key encipherment"]
SERVING = ["digital signature", "key encipherment", "server auth"]


def pem(name: str, group: str = "", dns: str = "") -> str:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    if dns:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(dns)]), critical=False)
    signed = builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode()


def world_with(request: str, signer: str, usages: list[str], **spec: Any) -> World:
    world = World(authority=AUTHORITY)
    body = {"request": request, "signerName": f"kubernetes.io/{signer}", "usages": usages} | spec
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    world.post(CSRS, kind | {"metadata": {"name": "r"}, "spec": body})
    world.settle()
    return world


def decide(world: World, kind: str = "Approved") -> dict[str, Any]:
    condition = {"type": kind, "status": "True", "reason": "Test", "message": "so be it"}
    world.merge(f"{CSRS}/r/approval", {"status": {"conditions": [condition]}})
    world.settle()
    status: dict[str, Any] = world.get(f"{CSRS}/r")["status"]
    return status


def certificate(status: dict[str, Any]) -> x509.Certificate:
    return x509.load_pem_x509_certificate(base64.b64decode(status["certificate"]))


def test_an_approved_request_gets_a_certificate_of_its_subject_for_the_time_it_asked() -> None:
    world = world_with(pem("jane", "devs"), "kube-apiserver-client", CLIENT, expirationSeconds=86400)
    issued = certificate(decide(world))
    user, _, end = user_of_certificate(issued.public_bytes(serialization.Encoding.DER))
    assert (user.name, user.groups) == ("jane", ("devs",))
    assert (end - world.clock.now()).total_seconds() == 86400


@pytest.mark.filterwarnings("ignore:Attribute's length must be")
def test_names_may_be_longer_than_x520_has_them_as_those_of_agents_are() -> None:
    name = f"system:open-cluster-management:{'c' * 63}:3474ac7f-a14e-4617-97b6-ae45c523ea6d"
    asked = certificate_request(Identity(name, (name,)), client_key(), "kubernetes.io/kube-apiserver-client", {})
    world = world_with(asked["spec"]["request"], "kube-apiserver-client", CLIENT)
    user, _, _ = user_of_certificate(certificate(decide(world)).public_bytes(serialization.Encoding.DER))
    assert (user.name, user.groups) == (name, (name,))


@pytest.mark.parametrize(("asked", "given"), [(600, 600), (10**9, 365 * 86400)])
def test_no_certificate_lives_longer_than_a_year(asked: int, given: int) -> None:
    world = world_with(pem("jane"), "kube-apiserver-client", CLIENT, expirationSeconds=asked)
    end = certificate(decide(world)).not_valid_after_utc
    assert (end - world.clock.now()).total_seconds() == given


def test_nothing_is_signed_before_it_is_approved_nor_after_it_was_denied() -> None:
    world = world_with(pem("jane"), "kube-apiserver-client", CLIENT)
    assert "certificate" not in world.get(f"{CSRS}/r")["status"]
    assert "certificate" not in decide(world, "Denied")


def test_a_signer_outside_the_cluster_is_left_its_work() -> None:
    world = World(authority=AUTHORITY)
    spec = {"request": pem("jane"), "signerName": "example.com/own", "usages": CLIENT}
    kind = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    world.post(CSRS, kind | {"metadata": {"name": "r"}, "spec": spec})
    status = decide(world)
    assert [c["type"] for c in status["conditions"]] == ["Approved"] and "certificate" not in status


@pytest.mark.parametrize(
    ("request_pem", "signer", "usages", "message"),
    [
        (
            pem("jane"),
            "kube-apiserver-client",
            ["client auth", "server auth"],
            "invalid usage for client certificate: server auth",
        ),
        (
            pem("jane"),
            "kube-apiserver-client",
            ["digital signature"],
            "missing required usage for client certificate: client auth",
        ),
        (pem("jane"), "kubelet-serving", SERVING, "subject organization is not system:nodes"),
        (
            pem("system:node:a", "system:nodes"),
            "kubelet-serving",
            SERVING,
            "DNS or IP subjectAltName is required",
        ),
        (
            pem("node-a", "system:nodes", "a.example"),
            "kubelet-serving",
            SERVING,
            "subject common name does not begin with system:node:",
        ),
        (
            pem("system:node:a", "system:nodes", "a.example"),
            "kubelet-serving",
            CLIENT,
            "usages did not match [digital signature key encipherment server auth]",
        ),
        (
            pem("system:node:a", "system:nodes", "a.example"),
            "kube-apiserver-client-kubelet",
            CLIENT,
            "DNS subjectAltNames are not allowed",
        ),
    ],
)
def test_a_request_that_its_signer_must_not_sign_fails_with_the_reason(
    request_pem: str, signer: str, usages: list[str], message: str
) -> None:
    status = decide(world_with(request_pem, signer, usages))
    failed = next(c for c in status["conditions"] if c["type"] == "Failed")
    assert (failed["reason"], failed["message"]) == ("SignerValidationFailure", message)
    assert "certificate" not in status


def test_a_serving_certificate_carries_the_names_and_serves_only() -> None:
    request = pem("system:node:a", "system:nodes", "a.example")
    issued = certificate(decide(world_with(request, "kubelet-serving", SERVING)))
    names = issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    usages = issued.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert names.get_values_for_type(x509.DNSName) == ["a.example"]
    assert list(usages) == [ExtendedKeyUsageOID.SERVER_AUTH]


def test_a_node_that_may_have_a_client_certificate_gets_it_without_people() -> None:
    world = world_with(pem("system:node:a", "system:nodes"), "kube-apiserver-client-kubelet", CLIENT)
    status = world.get(f"{CSRS}/r")["status"]
    assert [(c["type"], c["reason"]) for c in status["conditions"]] == [("Approved", "AutoApproved")]
    assert certificate(status).subject.rfc4514_string() == "CN=system:node:a,O=system:nodes"


def test_decided_requests_go_after_an_hour_and_undecided_ones_after_a_day() -> None:
    decided = world_with(pem("jane"), "kube-apiserver-client", CLIENT)
    decide(decided)
    undecided = world_with(pem("jane"), "kube-apiserver-client", CLIENT)
    for world, hours in ((decided, 1), (undecided, 24)):
        world.advance(hours * 3600 - 60)
        assert world.exists(f"{CSRS}/r")
        world.advance(120)
        assert not world.exists(f"{CSRS}/r")
