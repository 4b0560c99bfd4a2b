"""Approve client certificates of nodes automatically, if RBAC allows the requester to have one.

Like Kubernetes' csrapproving controller; the access review is an action, because only the server can answer it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.cluster.builtin.access.certificates.requests import (
    CSR,
    KUBELET_CLIENT,
    asked_of,
    is_decided,
    is_issued,
    kubelet_client_problem,
)
from syncline.cluster.builtin.access.certificates.signing import CSR_RESOURCE
from syncline.control.plan import Plan
from syncline.kube import client
from syncline.kube.client import PatchType, Request, Response
from syncline.kube.objects import Obj, ObjectRef, ResourceInfo, dig, ref_of, resource_version, uid_of

_REVIEWS = ResourceInfo(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False, verbs=("create",)
)
SELF_NODE = ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.")
ANY_NODE = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")


@dataclass(frozen=True, slots=True)
class ApproveIfAllowed(Action):
    """Approve if the requester may create one of ``asks`` (subresource, message), tried in order."""

    target: ObjectRef
    uid: str
    resource_version: str
    requester: Obj
    asks: tuple[tuple[str, str], ...]
    conditions: tuple[Obj, ...]
    stamp: str
    reason: str

    def describe(self) -> str:
        return f"approve {self.target} if {self.requester.get('user')} may have it"


def plan(csr: Obj, now: datetime) -> Plan:
    """Plan only undecided requests of nodes; a requester without the right is left for manual approval."""
    spec = csr.get("spec") or {}
    if is_decided(csr) or is_issued(csr) or spec.get("signerName") != KUBELET_CLIENT:
        return Plan(why="nothing to approve")
    asked = asked_of(csr)
    if asked is None or kubelet_client_problem(asked, frozenset(spec.get("usages") or ())):
        return Plan(why="not the client certificate of a node")
    requester = {"user": spec.get("username"), "groups": spec.get("groups"), "uid": spec.get("uid")}
    action = ApproveIfAllowed(
        ref_of(csr),
        uid_of(csr),
        resource_version(csr),
        {key: value for key, value in requester.items() if value} | {"extra": spec.get("extra") or {}},
        (SELF_NODE, ANY_NODE) if spec.get("username") == asked.common_name else (ANY_NODE,),
        tuple(dig(csr, "status", "conditions", default=[])),
        format_time(now),
        "a node asks for its client certificate",
    )
    return Plan(((action,),), why="a node asks for its client certificate")


class ApproveHandler:
    """Reviews access, then writes the decision."""

    def handle(self, action: ApproveIfAllowed) -> Generator[Request, Response, Any]:
        for subresource, message in action.asks:
            wanted = {
                "group": CSR.group,
                "resource": CSR_RESOURCE.plural,
                "subresource": subresource,
                "verb": "create",
                "version": "*",
            }
            review = {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": _REVIEWS.kind,
                "spec": action.requester | {"resourceAttributes": wanted},
            }
            answer = yield client.create(_REVIEWS, review)
            if dig(answer.or_raise(), "status", "allowed"):
                decided = yield _approval(action, message)
                return decided.or_raise()
        return None


def _approval(action: ApproveIfAllowed, message: str) -> Request:
    approved = {
        "type": "Approved",
        "status": "True",
        "reason": "AutoApproved",
        "message": message,
        "lastUpdateTime": action.stamp,
        "lastTransitionTime": action.stamp,
    }
    body = {
        "metadata": {"uid": action.uid, "resourceVersion": action.resource_version},
        "status": {"conditions": [*action.conditions, approved]},
    }
    return client.patch(CSR_RESOURCE, "", action.target.name, PatchType.MERGE, body, subresource="approval")
