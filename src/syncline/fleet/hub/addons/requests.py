"""Certificate requests of the agents of add-ons: which the hub approves, and which it signs itself; pure.

Rules: ``csrapprove`` and ``csrsign`` of upstream's addon-framework, and ``templateagent``. What an agent may ask for
comes from the add-on's template, not from the status of the add-on, which its cluster may write. With a signer of the
add-on's own, too, only the cluster itself may ask, for the names of the add-on; upstream approves those for everybody.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import NameOID

from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.control.plan import Plan
from syncline.fleet.conditions import is_true
from syncline.fleet.hub.addons.agents import Agent
from syncline.fleet.hub.registration.approving import Approve, is_decided, pem_of
from syncline.fleet.hub.registration.leases import CLUSTER_NAME
from syncline.fleet.hub.registration.requests import PREFIX
from syncline.kube.kinds.addonversions import CLIENT_SIGNER
from syncline.kube.kinds.managedaddons import ADDON_NAME
from syncline.kube.objects import Obj, ObjectRef, dig, labels_of, ref_of

MESSAGE: Final = "Auto approving addon agent certificate."
MOST_REQUESTS: Final = 20
"""Requests of one add-on of a cluster that may exist when one more is approved."""
EVERYBODY: Final = "system:authenticated"


@dataclass(frozen=True, slots=True)
class Authority:
    """The Secret with the key and certificate of a signer."""

    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Sign(Action):
    """Sign an approved request with the key of a Secret on the hub."""

    csr: Obj
    authority: Authority
    reason: str

    @property
    def target(self) -> ObjectRef:
        return ref_of(self.csr)

    def describe(self) -> str:
        return f"sign {self.target} with Secret {self.authority.namespace}/{self.authority.name}"


@dataclass(frozen=True, slots=True)
class Requested:
    """A request, what the add-on's manager wants on the cluster, how many requests of the add-on exist, and who signs
    for which signer."""

    csr: Obj
    agent: Agent | None
    requests: int
    authorities: tuple[tuple[str, Authority], ...] = ()


def addon_of(csr: Obj) -> tuple[str, str] | None:
    """Return cluster and add-on of the labels of a request."""
    labels = labels_of(csr)
    cluster, addon = labels.get(CLUSTER_NAME), labels.get(ADDON_NAME)
    return (cluster, addon) if cluster and addon else None


def plan_request(observed: Requested, now: datetime) -> Plan:
    """Approve a request that its add-on may make; sign it, when it is approved, with the add-on's own signer."""
    csr, agent = observed.csr, observed.agent
    if agent is None:
        return Plan(why="there is no such add-on on the cluster, or another manager looks after it")
    signer = dig(csr, "spec", "signerName")
    if not is_decided(csr):
        problem = problem_of(csr, agent.registrations or ())
        if not problem and observed.requests > MOST_REQUESTS:
            problem = f"{observed.requests} requests of the add-on exist, {MOST_REQUESTS} are the limit"
        if problem:
            return Plan(why=f"not approved: {problem}")
        why = "the agent of the add-on registers"
        return Plan(((Approve(csr, None, format_time(now), why, MESSAGE),),), why=why)
    conditions = dig(csr, "status", "conditions") or ()
    authority = dict(observed.authorities).get(str(signer))
    if authority is None or signer == CLIENT_SIGNER or dig(csr, "status", "certificate"):
        return Plan(why="there is nothing to sign")
    if not is_true(conditions, "Approved") or is_true(conditions, "Denied") or is_true(conditions, "Failed"):
        return Plan(why="the request is not approved")
    problem = problem_of(csr, agent.registrations or ())
    if problem:
        return Plan(why=f"not signed: {problem}")
    why = "the add-on has a signer of its own"
    return Plan(((Sign(csr, authority, why),),), why=why)


def problem_of(csr: Obj, registrations: Iterable[Obj]) -> str:
    """Return why a request is not one that the add-on may make; empty if it is."""
    signer, at = dig(csr, "spec", "signerName"), addon_of(csr)
    if at is None:
        return f"it has no labels {CLUSTER_NAME} and {ADDON_NAME}"
    cluster, addon = at
    user = str(dig(csr, "spec", "username") or "")
    if not user.startswith(f"{PREFIX}{cluster}:"):
        return f"user {user!r} is not an agent of cluster {cluster}"
    allowed = [one for one in registrations if one.get("signerName") == signer]
    if not allowed:
        return f"add-on {addon} does not register with signer {signer!r}"
    try:
        subject = x509.load_pem_x509_csr(pem_of(csr).encode()).subject
    except (ValueError, UnsupportedAlgorithm) as error:
        return f"its request cannot be read: {error}"
    found = {
        oid: sorted(str(one.value) for one in subject.get_attributes_for_oid(oid))
        for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME)
    }
    if any(_is_for(found, one.get("subject") or {}) for one in allowed):
        return ""
    return f"it is for user {found[NameOID.COMMON_NAME]} in groups {found[NameOID.ORGANIZATION_NAME]}"


def _is_for(found: dict[x509.ObjectIdentifier, list[str]], subject: Obj) -> bool:
    groups = [one for one in found[NameOID.ORGANIZATION_NAME] if one != EVERYBODY]
    return (
        found[NameOID.COMMON_NAME] == [subject.get("user")]
        and groups == sorted(one for one in subject.get("groups") or () if one != EVERYBODY)
        and found[NameOID.ORGANIZATIONAL_UNIT_NAME] == sorted(subject.get("organizationUnit") or ())
    )
