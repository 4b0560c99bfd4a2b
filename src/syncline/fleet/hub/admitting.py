"""Answers admission reviews of the API server about ManagedClusters, bindings of sets, works and agents' requests.

:func:`answered` is a generator of the requests that an answer needs (access reviews, a namespace), so that an HTTPS
server asks a real API with it, and the embedded one in process, also in virtual time. Paths, names and sentences are
upstream's (``pkg/registration/webhook``, ``pkg/work/webhook``); the review of agents' requests is ours.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from syncline.fleet.hub.admission import Need, Refused, check_binding, check_cluster, completed
from syncline.fleet.hub.registration.approving import pem_of, review_request
from syncline.fleet.hub.registration.requests import (
    NotOfAgent,
    check_agents_request,
    subject_of,
)
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL
from syncline.fleet.hub.works.admission import (
    MAX_BYTES,
    WorkRefused,
    check_manifests,
    executor_refusal,
    executor_review,
)
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError, NotFound
from syncline.kube.objects import Obj, dig, labels_of, name_of

MUTATE_CLUSTER: Final = "/mutate-cluster-open-cluster-management-io-v1-managedcluster"
VALIDATE_CLUSTER: Final = "/validate-cluster-open-cluster-management-io-v1-managedcluster"
VALIDATE_BINDING: Final = "/validate-cluster-open-cluster-management-io-v1beta2-managedclustersetbinding"
VALIDATE_WORK: Final = "/validate-work-open-cluster-management-io-v1-manifestwork"
VALIDATE_REQUEST: Final = "/validate-certificates-k8s-io-v1-certificatesigningrequest"
BOOTSTRAP_USER: Final = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"
BOOTSTRAP_GROUP: Final = "system:bootstrappers:managedcluster"
"""Who joins: the account of agents without a certificate, and bootstrap tokens of that use, both as of clusteradm."""
Asking = Generator[Request, Response, Any]


class Denied(Exception):
    """An object that is not admitted: code, reason and message of the Status."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


@dataclass(frozen=True, slots=True)
class Asked:
    """A review. ``now``: the time that taints get; ``limit``: bytes of the manifests of a work."""

    obj: Obj
    old: Obj | None
    user: Mapping[str, Any]
    now: datetime
    limit: int


def answered(path: str, body: bytes, now: datetime, limit: int = MAX_BYTES) -> Generator[Request, Response, Obj]:
    """Return the AdmissionReview that answers the one in ``body``. Raises :class:`LookupError` for an unknown path,
    ValueError for a body that is no review."""
    judge = _JUDGES[path]
    review = msgspec.json.decode(body)
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or not isinstance(request.get("object") or {}, dict):
        raise ValueError("the body is not an AdmissionReview with a request")
    response: Obj = {"uid": str(request.get("uid") or ""), "allowed": True}
    if request.get("operation") in ("CREATE", "UPDATE") and request.get("object"):
        asked = Asked(request["object"], request.get("oldObject"), request.get("userInfo") or {}, now, limit)
        try:
            response |= (yield from judge(asked)) or {}
        except Denied as denied:
            status = {"status": "Failure", "code": denied.code, "reason": denied.reason, "message": str(denied)}
            response |= {"allowed": False, "status": status}
    return {"apiVersion": review.get("apiVersion"), "kind": "AdmissionReview", "response": response}


def _mutate_cluster(asked: Asked) -> Asking:
    yield from ()
    try:
        made = completed(asked.obj, asked.old, asked.now)
    except Refused as refused:
        raise Denied(400, "BadRequest", str(refused)) from None
    steps: list[Obj] = []
    labels, wanted = labels_of(asked.obj), labels_of(made)
    if labels != wanted:
        pointer = "/metadata/labels/" + CLUSTER_SET_LABEL.replace("/", "~1")
        one = (
            {"path": pointer, "value": wanted[CLUSTER_SET_LABEL]}
            if labels
            else {"path": "/metadata/labels", "value": wanted}
        )
        steps.append({"op": "add", **one})
    if dig(made, "spec", "taints") != dig(asked.obj, "spec", "taints"):
        steps.append({"op": "replace", "path": "/spec/taints", "value": made["spec"]["taints"]})
    if not steps:
        return None
    return {"patchType": "JSONPatch", "patch": base64.b64encode(msgspec.json.encode(steps)).decode()}


def _validate_cluster(asked: Asked) -> Asking:
    cluster, old = asked.obj, asked.old
    terminating = False
    if dig(cluster, "spec", "hubAcceptsClient") and not dig(old, "spec", "hubAcceptsClient"):
        terminating = yield from _is_terminating(name_of(cluster))
    try:
        needs = check_cluster(cluster, old, asked.user, terminating=terminating)
    except Refused as refused:
        forbidden = " is forbidden: " in str(refused)
        raise Denied(*((403, "Forbidden") if forbidden else (400, "BadRequest")), str(refused)) from None
    yield from _require(needs)


def _is_terminating(name: str) -> Generator[Request, Response, bool]:
    answer = yield Request("GET", f"/api/v1/namespaces/{name}")
    try:
        return bool(dig(answer.or_raise(), "status", "phase") == "Terminating")
    except NotFound:
        return False
    except ApiError as error:
        where = f'managedclusters/accept.cluster.open-cluster-management.io "{name}" is forbidden'
        raise Denied(403, "Forbidden", f"{where}: {error}") from None


def _validate_binding(asked: Asked) -> Asking:
    try:
        needs = check_binding(asked.obj, asked.old, asked.user)
    except Refused as refused:
        raise Denied(400, "BadRequest", str(refused)) from None
    yield from _require(needs)


def _require(needs: tuple[Need, ...]) -> Asking:
    for need in needs:
        answer = yield review_request(need.review)
        try:
            allowed = dig(answer.or_raise(), "status", "allowed")
        except ApiError as error:
            where = need.refusal.partition(" is forbidden: ")[0]
            raise Denied(403, "Forbidden", f"{where} is forbidden: {error}") from None
        if not allowed:
            raise Denied(403, "Forbidden", need.refusal)


def _validate_work(asked: Asked) -> Asking:
    try:
        check_manifests(asked.obj, asked.limit)
        review = executor_review(asked.obj, asked.old, asked.user)
    except WorkRefused as refused:
        raise Denied(400, "BadRequest", str(refused)) from None
    if review is None:
        return
    answer = yield review_request(review)
    try:
        allowed = dig(answer.or_raise(), "status", "allowed")
    except ApiError as error:
        raise Denied(400, "BadRequest", str(error)) from None
    if not allowed:
        raise Denied(400, "BadRequest", executor_refusal(asked.obj, str(asked.user.get("username") or "")))


def _validate_request(asked: Asked) -> Asking:
    """Refuse what an agent, or the identity of agents that join, requests for anybody but itself."""
    yield from ()
    pem, user = pem_of(asked.obj), str(asked.user.get("username") or "")
    try:
        if user == BOOTSTRAP_USER or BOOTSTRAP_GROUP in (asked.user.get("groups") or ()):
            subject_of(asked.obj, pem)
        else:
            check_agents_request(asked.obj, pem, user)
    except NotOfAgent as error:
        what = f'certificatesigningrequests.certificates.k8s.io "{name_of(asked.obj)}" is forbidden'
        raise Denied(
            403, "Forbidden", f"{what}: user {user!r} may request certificates of agents only: {error}"
        ) from None


_JUDGES: Final[dict[str, Callable[[Asked], Asking]]] = {
    MUTATE_CLUSTER: _mutate_cluster,
    VALIDATE_CLUSTER: _validate_cluster,
    VALIDATE_BINDING: _validate_binding,
    VALIDATE_WORK: _validate_work,
    VALIDATE_REQUEST: _validate_request,
}
PATHS: Final = tuple(_JUDGES)
