"""The approver of agents' certificate requests: renewals of accepted clusters, first requests of trusted users.

:mod:`.requests` decides; an approval is one action, because only the server can answer the access review that it needs.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Generator, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.control.cache import OfKind, Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Emit, Patch, Plan, Result
from syncline.fleet.conditions import find_condition, is_true
from syncline.fleet.hub.registration.leases import ACCEPTED, CLUSTER_NAME, JOINED
from syncline.fleet.hub.registration.requests import SIGNER, NotOfAgent, Verdict, bootstrap, renewal, subject_of
from syncline.kube import client
from syncline.kube.client import PatchType, Request, Response
from syncline.kube.kinds.managedaddons import ADDON_NAME
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.mapper import Mapper
from syncline.kube.objects import (
    GVK,
    Obj,
    ObjectRef,
    ResourceInfo,
    dig,
    labels_of,
    name_of,
    ref_of,
    resource_version,
    uid_of,
)

CSR: Final = GVK("certificates.k8s.io", "v1", "CertificateSigningRequest")
REQUESTS: Final = CSR.group_kind
_CLUSTERS: Final = MANAGED_CLUSTER.group_kind
REASON: Final = "AutoApprovedByHubCSRApprovingController"
MAX_BYTES: Final = 16 * 1024
"""Size limit of a request that is read; one with a large RSA key takes two kilobytes."""
MAX_RENEWALS: Final = 20
"""Requests of one agent that may exist when one more is approved; Kubernetes removes approved ones after an hour."""
BY_CLUSTER, BY_USER = "hub/requests of a cluster", "hub/requests of a user"
COMPONENT: Final = "csr-approving-controller"
_REVIEWS: Final = ResourceInfo(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False, verbs=("create",)
)


@dataclass(frozen=True, slots=True)
class Approve(Action):
    """Approve the request, if the access review with the spec ``review`` is allowed (None: without one). The result is
    whether it was approved."""

    csr: Obj
    review: Obj | None
    stamp: str
    reason: str
    message: str = "Auto approving Managed cluster agent certificate after SubjectAccessReview."

    @property
    def target(self) -> ObjectRef:
        return ref_of(self.csr)

    def describe(self) -> str:
        return f"approve {self.target}" + (f" if {self.review.get('user')} may renew" if self.review else "")


@dataclass(frozen=True, slots=True)
class Requested:
    """A request, and how many requests of its user exist. ``joined``: the cluster of its label has an agent already."""

    csr: Obj
    of_user: int
    joined: bool = False


def review_request(spec: Obj) -> Request:
    """Return the request that asks the server whether a user may do something."""
    return client.create(_REVIEWS, {"apiVersion": "authorization.k8s.io/v1", "kind": _REVIEWS.kind, "spec": spec})


class ApproveHandler:
    """Reviews access, then writes the approval."""

    def __init__(self, mapper: Mapper) -> None:
        self._mapper = mapper

    def handle(self, action: Approve) -> Generator[Request, Response, Any]:
        if action.review is not None:
            answer = yield review_request(action.review)
            if not dig(answer.or_raise(), "status", "allowed"):
                return False
        info = self._mapper.find(CSR)
        if info is None:
            raise LookupError(f"{CSR}: the API server does not serve certificate requests")
        approved = {
            "type": "Approved",
            "status": "True",
            "reason": REASON,
            "message": action.message,
            "lastUpdateTime": action.stamp,
            "lastTransitionTime": action.stamp,
        }
        csr = action.csr
        body = {
            "metadata": {"uid": uid_of(csr), "resourceVersion": resource_version(csr)},
            "status": {"conditions": [*(dig(csr, "status", "conditions") or ()), approved]},
        }
        answer = yield client.patch(info, "", name_of(csr), PatchType.MERGE, body, subresource="approval")
        answer.or_raise()
        return True


def is_decided(csr: Obj) -> bool:
    """Return whether a request is approved or denied."""
    conditions = dig(csr, "status", "conditions") or ()
    return any(find_condition(conditions, kind) is not None for kind in ("Approved", "Denied"))


def is_of_agent(csr: Obj) -> bool:
    """Return whether a request is approved and one of an agent for the cluster of its label."""
    if find_condition(dig(csr, "status", "conditions") or (), "Approved") is None:
        return False
    try:
        subject_of(csr, pem_of(csr))
    except NotOfAgent:
        return False
    return True


def pem_of(csr: Obj) -> str:
    """Return the decoded request; empty if it is too large or not text."""
    text = str(dig(csr, "spec", "request") or "")
    if len(text) > MAX_BYTES:
        return ""
    try:
        return base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return ""


def verdict_of(observed: Requested, users: Collection[str]) -> Verdict:
    """Judge a request as a renewal, then as the first one of a trusted user; ``users``: those whose are approved."""
    csr, pem = observed.csr, pem_of(observed.csr)
    if not pem:
        return Verdict(False, f"its request is not PEM of at most {MAX_BYTES} bytes in base64")
    found = renewal(csr, pem)
    if found.approved and observed.of_user > MAX_RENEWALS:
        why = f"{observed.of_user} requests of {dig(csr, 'spec', 'username')} exist, {MAX_RENEWALS} are the limit"
        return Verdict(False, why)
    if found.approved or not found.ask_next or not users:
        return found
    first = bootstrap(csr, pem, users)
    if first.approved and observed.joined:
        # Who knows the credentials for joining could else become the agent of any cluster.
        return Verdict(False, f"cluster {labels_of(csr).get(CLUSTER_NAME)} has joined before; people may approve it")
    return first


def plan_request(observed: Requested, now: datetime, users: Collection[str]) -> Plan:
    """Plan the approval of one request; pure."""
    csr = observed.csr
    if is_decided(csr):
        return Plan(why="the request is decided")
    found = verdict_of(observed, users)
    if not found.approved:
        return Plan(why=found.why)
    return Plan(((Approve(csr, found.review, format_time(now), found.why),),), why=found.why)


def settle_request(
    observed: Requested, plan: Plan, results: tuple[Result, ...], _now: datetime
) -> tuple[Requested, Plan] | None:
    """Tell people about an approval."""
    done = next((one for one in results if isinstance(one.action, Approve) and one.ok), None)
    if done is None or not done.value or any(isinstance(one, Emit) for one in plan.actions):
        return None
    csr = observed.csr
    if isinstance(done.action, Approve) and done.action.review is not None:
        said = f'managed cluster csr "{name_of(csr)}" is auto approved by hub csr controller'
        event = Emit(csr, "ManagedClusterCSRAutoApproved", said, COMPONENT)
    else:
        said = f'managed cluster "{labels_of(csr).get(CLUSTER_NAME)}" is auto approved.'
        event = Emit(csr, "ManagedClusterAutoApproved", said, COMPONENT)
    return observed, Plan(((event,),), plan.outcome, plan.why)


def cluster_of_request(csr: Obj) -> Iterable[str]:
    """Return the cluster of the label of a request."""
    name = labels_of(csr).get(CLUSTER_NAME)
    return (name,) if name else ()


def _user_of_request(csr: Obj) -> Iterable[str]:
    mine = dig(csr, "spec", "signerName") == SIGNER and not _of_addon(csr)
    return (str(dig(csr, "spec", "username") or ""),) if mine else ()


def _of_addon(csr: Obj) -> bool:
    """Return whether a request is for the agent of an add-on, which another controller approves."""
    return ADDON_NAME in labels_of(csr)


INDICES: Final = {BY_CLUSTER: OfKind(REQUESTS, cluster_of_request), BY_USER: OfKind(REQUESTS, _user_of_request)}


def _acceptance(cluster: Obj) -> Any:
    found = find_condition(dig(cluster, "status", "conditions") or (), ACCEPTED)
    return None if found is None else found.get("status")


def request_controller(users: Collection[str] = ()) -> Controller[Requested]:
    """Return the controller that approves requests; ``users``: those whose first requests are approved too."""
    trusted = frozenset(users)

    def observe(cache: Snapshot, ref: ObjectRef) -> Requested | None:
        csr = cache.get(ref)
        if csr is None or dig(csr, "spec", "signerName") != SIGNER or _of_addon(csr):
            return None
        cluster = cache.get(ObjectRef(*_CLUSTERS, "", labels_of(csr).get(CLUSTER_NAME, "")))
        joined = is_true(dig(cluster, "status", "conditions") or (), JOINED)
        return Requested(csr, cache.count(BY_USER, str(dig(csr, "spec", "username") or "")), joined)

    def waiting(cluster: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return [ref_of(one) for one in cache.indexed(BY_CLUSTER, name_of(cluster)) if not is_decided(one)]

    return Controller(
        name="cluster-requests",
        kind=REQUESTS,
        predicate=differ(lambda one: one.get("spec"), labels_of, is_decided),
        # A request may be older than the acceptance that gives its agent the right to renew.
        watches=(Watch(_CLUSTERS, waiting, differ(_acceptance)),),
        indices=INDICES,
        observe=observe,
        plan=lambda observed, now: plan_request(observed, now, trusted),
        settle=settle_request,
    )


def patch_of(gvk: GVK, obj: Obj, body: Obj, reason: str) -> Patch:
    """Return a merge patch of exactly this version of a cluster-scoped object."""
    metadata = {**(body.get("metadata") or {}), "uid": uid_of(obj), "resourceVersion": resource_version(obj)}
    return Patch(gvk, "", name_of(obj), {**body, "metadata": metadata}, reason)
