"""Check whether the servers behind APIServices are reachable, and set their condition Available for request routing.

Local ones always are. The others need a Service with endpoints, and must list their resources when requested through
the API, which forwards the request. Source: kube-aggregator ``pkg/controllers/status``.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.cluster.builtin.conditions import find, without
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Plan, Requeue, set_status
from syncline.kube import client
from syncline.kube.client import PatchType, Request, Response
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    ResourceInfo,
    dig,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
)

API_SERVICE = GroupKind("apiregistration.k8s.io", "APIService")
SERVICE, SLICE = GroupKind("", "Service"), GroupKind("discovery.k8s.io", "EndpointSlice")
OWNER_LABEL = "kubernetes.io/service-name"
ASK_AGAIN_S = 30.0
"""How long a result is valid (the resync of Kubernetes' informers)."""
DEFAULT_PORT = 443
_INFO = ResourceInfo("apiregistration.k8s.io", "v1", "APIService", "apiservices", False, (), ("status",))


@dataclass(frozen=True, slots=True)
class AskServer(Action):
    """Request the list of resources, and record whether it succeeded."""

    target: ObjectRef
    path: str
    conditions: tuple[Obj, ...]
    now: datetime
    reason: str

    def describe(self) -> str:
        return f"ask the server of {self.target}"


@dataclass(frozen=True, slots=True)
class Observed:
    """``service`` None: it does not exist. ``ready``: an endpoint listens on the port."""

    api_service: Obj
    service: Obj | None
    slices: tuple[Obj, ...]


def plan(observed: Observed, now: datetime) -> Plan:
    """Decide without a request if possible; else request the server's list periodically."""
    obj = observed.api_service
    if not dig(obj, "spec", "service"):
        return _said(obj, now, "True", "Local", "Local APIServices are always available")
    missing = _missing(observed)
    if missing is not None:
        return _said(obj, now, "False", *missing)
    spec = obj["spec"]
    path = f"/apis/{spec.get('group')}/{spec.get('version')}"
    conditions = tuple(dig(obj, "status", "conditions", default=[]) or ())
    ask = AskServer(ref_of(obj), path, conditions, now, "its answer is not known")
    again = Requeue(ASK_AGAIN_S, "servers come and go", background=True)
    return Plan(((ask,),), outcome=again, why=f"{name_of(obj)} is asked for what it serves")


def _said(obj: Obj, now: datetime, status: str, reason: str, message: str) -> Plan:
    conditions = dig(obj, "status", "conditions", default=[]) or []
    changed = _with(conditions, now, status, reason, message)
    if changed == conditions:
        return Plan(why=message)
    new = {**(obj.get("status") or {}), "conditions": changed}
    return Plan(status=set_status(obj, new, message), why=message)


def _with(conditions: list[Obj], now: datetime, status: str, reason: str, message: str) -> list[Obj]:
    old = find(conditions, "Available")
    since = old.get("lastTransitionTime") if old is not None and old.get("status") == status else format_time(now)
    new = {"type": "Available", "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
    return [*without(conditions, "Available"), new]


def _missing(observed: Observed) -> tuple[str, str] | None:
    """Return reason and message if no server can be reached, or None."""
    wanted = observed.api_service["spec"]["service"]
    port = int(wanted.get("port") or DEFAULT_PORT)
    where = f'service/{wanted.get("name")} in "{wanted.get("namespace")}"'
    if observed.service is None:
        return "ServiceNotFound", f"{where} is not present"
    spec = observed.service.get("spec") or {}
    if spec.get("type", "ClusterIP") != "ClusterIP":
        return None
    found = next((one for one in spec.get("ports") or () if one.get("port") == port), None)
    if found is None:
        return "ServicePortError", f"{where} is not listening on port {port}"
    if not observed.slices:
        return "EndpointsNotFound", f"cannot find endpointslices for {where}"
    name = str(found.get("name") or "")
    if not any(_listens(one, name) for one in observed.slices):
        return "MissingEndpoints", f'endpoints for {where} have no addresses with port name "{name}"'
    return None


def _listens(piece: Obj, name: str) -> bool:
    ports = any(str(one.get("name") or "") == name for one in piece.get("ports") or ())
    ready = any((one.get("conditions") or {}).get("ready") is not False for one in piece.get("endpoints") or ())
    return ports and ready


class AskServerHandler:
    """Sends the request through the API, so that it tests the path of all other requests."""

    def handle(self, action: AskServer) -> Generator[Request, Response, Any]:
        answer = yield Request("GET", action.path)
        if answer.ok:
            said = ("True", "Passed", "all checks passed")
        else:
            why = answer.raw.decode("utf-8", "replace").strip()[:512] or f"status {answer.status}"
            message = f"failing or missing response from {action.path}: {why}"
            said = ("False", "FailedDiscoveryCheck", message)
        old = [dict(one) for one in action.conditions]
        new = _with(old, action.now, *said)
        if new == old:
            return None
        body = {"status": {"conditions": new}}
        written = yield client.patch(_INFO, "", action.target.name, PatchType.MERGE, body, subresource="status")
        return written.or_raise()


def _of_service(service: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return _naming(cache, namespace_of(service), name_of(service))


def _of_slice(piece: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return _naming(cache, namespace_of(piece), labels_of(piece).get(OWNER_LABEL, ""))


def _naming(cache: Snapshot, namespace: str, name: str) -> Iterable[ObjectRef]:
    for obj in cache.objects(API_SERVICE):
        wanted = dig(obj, "spec", "service") or {}
        if wanted and (wanted.get("namespace"), wanted.get("name")) == (namespace, name):
            yield ref_of(obj)


def _observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    obj = cache.get(ref)
    if obj is None or is_terminating(obj):
        return None
    wanted = dig(obj, "spec", "service") or {}
    if not wanted:
        return Observed(obj, None, ())
    namespace, name = str(wanted.get("namespace") or ""), str(wanted.get("name") or "")
    slices = (one for one in cache.objects(SLICE, namespace) if labels_of(one).get(OWNER_LABEL) == name)
    return Observed(obj, cache.get(ObjectRef("", SERVICE.kind, namespace, name)), tuple(slices))


API_SERVICE_CONTROLLER = Controller(
    name="api-services",
    kind=API_SERVICE,
    watches=(Watch(SERVICE, _of_service), Watch(SLICE, _of_slice)),
    observe=_observe,
    plan=plan,
)
"""Maintains one condition per APIService."""
