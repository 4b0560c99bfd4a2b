"""Approval of certificate requests of agents: which are renewals, which are first ones of trusted users; pure.

Rules: ``pkg/registration/register/csr`` of upstream (reference ocm-pull-model §1.4).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import NameOID

from syncline.fleet.hub.registration.leases import CLUSTER_NAME
from syncline.kube.objects import Obj, dig, labels_of

SIGNER: Final = "kubernetes.io/kube-apiserver-client"
PREFIX: Final = "system:open-cluster-management:"
"""What names of agents and of the group of their cluster begin with."""
CLUSTERS_GROUP: Final = PREFIX + "managed-clusters"
_BEGIN: Final = "-----BEGIN "


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a request is approved; ``review``: only if this access review (its spec) is allowed. ``ask_next``: the
    next approver may decide."""

    approved: bool
    why: str
    review: Obj | None = None
    ask_next: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """Who an agent wants to be: the names of its cluster and of itself, as one common name."""

    cluster: str
    common_name: str


class NotOfAgent(ValueError):
    """A request that is not one of an agent for the cluster of its label."""


def subject_of(csr: Obj, pem: str) -> Subject:
    """Return the subject of an agent's request. ``pem``: ``spec.request``, decoded. Raises :class:`NotOfAgent`."""
    cluster = labels_of(csr).get(CLUSTER_NAME)
    if cluster is None:
        raise NotOfAgent(f"it has no label {CLUSTER_NAME}")
    signer = dig(csr, "spec", "signerName")
    if signer != SIGNER:
        raise NotOfAgent(f"its signer is {signer!r}, not {SIGNER!r}")
    common_name, groups = _names(pem)
    own = groups - {CLUSTERS_GROUP}
    if own != {PREFIX + cluster}:
        raise NotOfAgent(f"its organizations are {sorted(groups)}, not those of cluster {cluster!r}")
    parts = common_name.removeprefix(PREFIX).split(":")
    if not common_name.startswith(PREFIX) or len(parts) != 2 or not all(parts) or parts[0] != cluster:
        raise NotOfAgent(f"its common name is {common_name!r}, not {PREFIX}{cluster}:AGENT")
    return Subject(cluster, common_name)


def check_agents_request(csr: Obj, pem: str, user: str) -> None:
    """Check that an agent requests a certificate for itself, or for an add-on of its cluster; ``user``: who it is.
    Raises :class:`NotOfAgent`."""
    parts = user.removeprefix(PREFIX).split(":")
    if not user.startswith(PREFIX) or len(parts) != 2 or not all(parts):
        raise NotOfAgent(f"the user is not {PREFIX}CLUSTER:AGENT")
    cluster, label = parts[0], labels_of(csr).get(CLUSTER_NAME)
    if label != cluster:
        raise NotOfAgent(f"its label {CLUSTER_NAME} is {label!r}, not {cluster!r}")
    signer = str(dig(csr, "spec", "signerName") or "")
    if signer != SIGNER and signer.partition("/")[0].endswith("kubernetes.io"):
        raise NotOfAgent(f"its signer is {signer!r}, not {SIGNER!r} or one of an add-on")
    common_name, groups = _names(pem)
    if common_name == user and groups - {CLUSTERS_GROUP} == {PREFIX + cluster}:
        return
    addon = f"{PREFIX}cluster:{cluster}:addon:"
    name = common_name.removeprefix(addon).partition(":")[0] if common_name.startswith(addon) else ""
    allowed = {addon + name, f"{PREFIX}addon:{name}", "system:authenticated"} if name else {"system:authenticated"}
    foreign = sorted(groups - allowed) if name else [common_name, *sorted(groups - allowed)]
    if signer != SIGNER:  # its certificates are not for this API server, so only names of Kubernetes matter
        foreign = [one for one in foreign if one.startswith("system:")]
    if foreign:
        raise NotOfAgent(f"{foreign[0]!r} is neither agent {user!r} nor an add-on of cluster {cluster!r}")


def _names(pem: str) -> tuple[str, set[str]]:
    first = pem[pem.find(_BEGIN) :] if _BEGIN in pem else ""
    if not first.startswith(f"{_BEGIN}CERTIFICATE REQUEST-----"):
        raise NotOfAgent("its PEM block type is not CERTIFICATE REQUEST")
    try:
        subject = x509.load_pem_x509_csr(first.encode()).subject
    except (ValueError, UnsupportedAlgorithm) as error:
        raise NotOfAgent(f"its request cannot be read: {error}") from None
    names = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return str(names[-1].value) if names else "", {str(one.value) for one in groups}


def renewal(csr: Obj, pem: str) -> Verdict:
    """Judge a request as the renewal of a certificate: its user is who it asks for, and has the right to renew."""
    try:
        subject = subject_of(csr, pem)
    except NotOfAgent as error:
        return Verdict(False, f"not a request of an agent: {error}")
    spec: Mapping[str, Any] = csr.get("spec") or {}
    user = str(spec.get("username") or "")
    if user != subject.common_name:
        return Verdict(False, f"user {user!r} is not {subject.common_name!r}", ask_next=True)
    attributes = {
        "verb": "renew",
        "group": "register.open-cluster-management.io",
        "resource": "managedclusters",
        "subresource": "clientcertificates",
    }
    asked = {name: spec[name] for name in ("uid", "groups", "extra") if spec.get(name)}
    review = {"user": user, **asked, "resourceAttributes": attributes}
    return Verdict(True, "the agent renews its certificate", review)


def bootstrap(csr: Obj, pem: str, users: Collection[str]) -> Verdict:
    """Judge a request as the first one of a cluster: ``users`` are those whose requests are approved."""
    try:
        subject_of(csr, pem)
    except NotOfAgent as error:
        return Verdict(False, f"not a request of an agent: {error}")
    user = str(dig(csr, "spec", "username") or "")
    if user not in users:
        return Verdict(False, f"requests of user {user!r} are not approved automatically", ask_next=True)
    return Verdict(True, f"requests of user {user!r} are approved automatically")
