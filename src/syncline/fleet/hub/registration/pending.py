"""Acceptance of a cluster by a person: which of its pending certificate requests count, and what is wrong with others;
pure. ``syncline cluster accept`` carries it out.

A request counts if it is one of an agent of this cluster (subject, groups, signer) and comes from an identity that
agents join with. Two requests with different keys are two candidates for one name: a person says which.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from syncline.base.clock import time_or_none
from syncline.fleet.conditions import find_condition, is_true
from syncline.fleet.hub.admitting import BOOTSTRAP_GROUP, BOOTSTRAP_USER
from syncline.fleet.hub.registration.approving import MAX_BYTES
from syncline.fleet.hub.registration.leases import ACCEPTED, CLUSTER_NAME, JOINED
from syncline.fleet.hub.registration.requests import PREFIX, NotOfAgent, subject_of
from syncline.kube.kinds.managedaddons import ADDON_NAME
from syncline.kube.objects import Obj, dig, is_terminating, labels_of, name_of

BOOTSTRAP_USERS: Final = (BOOTSTRAP_USER,)
"""The account whose token agents join with."""
FORGOTTEN_AFTER: Final = timedelta(hours=24)
"""Kubernetes deletes requests that are pending for so long."""
_DECIDED: Final = frozenset({"Approved", "Denied", "Failed"})


def stage_of(cluster: Obj) -> str:
    """Return how far a cluster is: ``pending`` (not accepted yet), ``denied``, ``accepted`` (its agent has not joined
    yet), ``joined`` or ``leaving``."""
    conditions = dig(cluster, "status", "conditions") or ()
    if is_terminating(cluster):
        return "leaving"
    if dig(cluster, "spec", "hubAcceptsClient"):
        return "joined" if is_true(conditions, JOINED) else "accepted"
    return "denied" if find_condition(conditions, ACCEPTED) is not None else "pending"


@dataclass(frozen=True, slots=True)
class Pending:
    """A certificate request that is not decided. ``refused``: why acceptance passes it over; empty: it counts."""

    csr: Obj
    cluster: str
    agent: str = ""
    refused: str = ""

    @property
    def name(self) -> str:
        return name_of(self.csr)

    @property
    def user(self) -> str:
        return str(dig(self.csr, "spec", "username") or "")

    @property
    def since(self) -> datetime | None:
        return time_or_none(dig(self.csr, "metadata", "creationTimestamp"))

    @property
    def until(self) -> datetime | None:
        """When Kubernetes deletes it."""
        return None if self.since is None else self.since + FORGOTTEN_AFTER


def pending_requests(csrs: Iterable[Obj], users: Collection[str] = BOOTSTRAP_USERS) -> list[Pending]:
    """Return the undecided requests that name a cluster, oldest first. ``users``: identities that agents join with."""
    found = [_judged(one, users) for one in csrs if _of_cluster(one) and not _decided(one)]
    return sorted(found, key=lambda one: (one.cluster, str(one.since), one.name))


def _of_cluster(csr: Obj) -> bool:
    """Return whether a request is for the agent of a cluster itself, not for one of its add-ons."""
    return CLUSTER_NAME in labels_of(csr) and ADDON_NAME not in labels_of(csr)


def _decided(csr: Obj) -> bool:
    return any(one.get("type") in _DECIDED for one in dig(csr, "status", "conditions") or ())


def _judged(csr: Obj, users: Collection[str]) -> Pending:
    cluster = labels_of(csr)[CLUSTER_NAME]
    encoded = str(dig(csr, "spec", "request") or "")
    if len(encoded) > MAX_BYTES:
        return Pending(csr, cluster, refused=f"its request is longer than {MAX_BYTES} bytes")
    try:
        pem = base64.b64decode(encoded).decode()
        subject = subject_of(csr, pem)
    except (binascii.Error, UnicodeDecodeError):
        return Pending(csr, cluster, refused="its request is no PEM in base64")
    except NotOfAgent as error:
        return Pending(csr, cluster, refused=str(error))
    agent = subject.common_name.removeprefix(f"{PREFIX}{cluster}:")
    user, groups = str(dig(csr, "spec", "username") or ""), dig(csr, "spec", "groups") or ()
    if user == subject.common_name:
        return Pending(csr, cluster, agent, "it renews a certificate; the hub approves it by itself")
    if user not in users and BOOTSTRAP_GROUP not in groups:
        return Pending(csr, cluster, agent, f"user {user!r} is not one that agents join with; --requester allows one")
    return Pending(csr, cluster, agent)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What accepting a cluster does: requests to ``approve``, and whether ``hubAcceptsClient`` is still to be set.
    ``refused``: why nothing is done."""

    cluster: str
    approve: tuple[Pending, ...] = ()
    accept: bool = False
    passed_over: tuple[Pending, ...] = ()
    refused: str = ""


def acceptance(cluster: Obj, pending: Sequence[Pending], chosen: Collection[str] = (), *, again: bool) -> Acceptance:
    """Decide about one cluster. ``pending``: of all clusters; ``chosen``: names of requests, if a person named some;
    ``again``: a new certificate is wanted for a cluster that has joined."""
    name = name_of(cluster)
    mine = [one for one in pending if one.cluster == name]
    valid = [one for one in mine if not one.refused and (not chosen or one.name in chosen)]
    over = tuple(one for one in mine if one.refused)
    unset = not dig(cluster, "spec", "hubAcceptsClient")
    wrong = sorted(set(chosen) - {one.name for one in valid})
    if wrong:
        why = {one.name: one.refused for one in over}
        said = "; ".join(f"{one}: {why.get(one) or f'no pending request of cluster {name}'}" for one in wrong)
        return Acceptance(name, passed_over=over, refused=said)
    if len(valid) > 1 and not chosen:
        listed = ", ".join(f"{one.name} (agent {one.agent})" for one in valid)
        text = f"{len(valid)} requests with different keys ask for its name: {listed}; choose with --request NAME"
        return Acceptance(name, passed_over=over, refused=text)
    if valid and is_true(dig(cluster, "status", "conditions") or (), JOINED) and not again:
        text = (
            f"it has joined already, and request {valid[0].name} asks for its name again: another cluster, or one that "
            "has lost its certificate; --again gives it a new one"
        )
        return Acceptance(name, passed_over=over, refused=text)
    return Acceptance(name, tuple(valid), unset, over)
