"""Read CertificateSigningRequests, and check them against their signer's rules.

Pure; the plans for signing and approval use it. Rules and texts are those of Kubernetes
(``pkg/apis/certificates/helpers.go``, ``pkg/controller/certificates/signer``).
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from cryptography import x509
from cryptography.x509.oid import NameOID

from syncline.cluster.builtin.pods import condition
from syncline.kube.objects import GroupKind, Obj, dig

CSR = GroupKind("certificates.k8s.io", "CertificateSigningRequest")
KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
NODES = "system:nodes"
NODE_PREFIX = "system:node:"
_CLIENT_USAGES = ("client auth", "digital signature", "key encipherment")
_SERVING_USAGES = ("digital signature", "key encipherment", "server auth")


@dataclass(frozen=True, slots=True)
class Asked:
    """The fields of a PEM request that rules check."""

    pem: str
    common_name: str
    organizations: tuple[str, ...]
    dns: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()


def asked_of(csr: Obj) -> Asked | None:
    """Return None if ``spec.request`` is not a PEM certificate request signed by its own key."""
    try:
        pem = base64.b64decode(str(dig(csr, "spec", "request", default=""))).decode()
        request = x509.load_pem_x509_csr(pem.encode())
        if not request.is_signature_valid:
            return None
    except (ValueError, binascii.Error):
        return None
    names = [str(item.value) for item in request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = tuple(str(i.value) for i in request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    common_name = names[-1] if names else ""
    try:
        alternatives = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return Asked(pem, common_name, groups)
    return Asked(
        pem,
        common_name,
        groups,
        dns=tuple(alternatives.get_values_for_type(x509.DNSName)),
        addresses=tuple(str(one) for one in alternatives.get_values_for_type(x509.IPAddress)),
        emails=tuple(alternatives.get_values_for_type(x509.RFC822Name)),
        uris=tuple(alternatives.get_values_for_type(x509.UniformResourceIdentifier)),
    )


def is_approved(csr: Obj) -> bool:
    """Return True if the request is approved and not denied."""
    return condition(csr, "Approved") is not None and condition(csr, "Denied") is None


def is_decided(csr: Obj) -> bool:
    return condition(csr, "Approved") is not None or condition(csr, "Denied") is not None


def is_issued(csr: Obj) -> bool:
    return bool(dig(csr, "status", "certificate"))


def problem_for_signer(signer: str, asked: Asked, usages: frozenset[str]) -> str | None:
    """Return why the signer refuses, "" if it signs, or None if the signer is not built in."""
    match signer:
        case "kubernetes.io/kube-apiserver-client":
            return _api_client_problem(usages)
        case "kubernetes.io/kube-apiserver-client-kubelet":
            return kubelet_client_problem(asked, usages)
        case "kubernetes.io/kubelet-serving":
            return _kubelet_serving_problem(asked, usages)
        case "kubernetes.io/legacy-unknown":
            return ""
    return None


def _api_client_problem(usages: frozenset[str]) -> str:
    for usage in sorted(usages - set(_CLIENT_USAGES)):
        return f"invalid usage for client certificate: {usage}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


def kubelet_client_problem(asked: Asked, usages: frozenset[str]) -> str:
    """Return why this is not a client certificate of a node, or ""."""
    if asked.organizations != (NODES,):
        return "subject organization is not system:nodes"
    for found, kind in ((asked.dns, "DNS"), (asked.emails, "Email"), (asked.addresses, "IP"), (asked.uris, "URI")):
        if found:
            return f"{kind} subjectAltNames are not allowed"
    if not asked.common_name.startswith(NODE_PREFIX):
        return "subject common name does not begin with system:node:"
    return _usage_problem(usages, _CLIENT_USAGES)


def _kubelet_serving_problem(asked: Asked, usages: frozenset[str]) -> str:
    if asked.organizations != (NODES,):
        return "subject organization is not system:nodes"
    if not asked.dns and not asked.addresses:
        return "DNS or IP subjectAltName is required"
    for found, kind in ((asked.emails, "Email"), (asked.uris, "URI")):
        if found:
            return f"{kind} subjectAltNames are not allowed"
    if not asked.common_name.startswith(NODE_PREFIX):
        return "subject common name does not begin with system:node:"
    return _usage_problem(usages, _SERVING_USAGES)


def _usage_problem(usages: frozenset[str], wanted: tuple[str, ...]) -> str:
    """Check the usages; key encipherment applies to RSA keys and is optional."""
    if usages in (frozenset(wanted), frozenset(wanted) - {"key encipherment"}):
        return ""
    return f"usages did not match [{' '.join(wanted)}]"
