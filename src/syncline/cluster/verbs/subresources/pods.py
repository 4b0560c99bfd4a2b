"""pods/binding, pods/eviction and pods/log.

``api`` calls it. Binding and eviction write the Pod (and its disruption budget); log reads from the machines.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from syncline.base.clock import format_time
from syncline.cluster.serving.answers import success
from syncline.cluster.storage.store import Key, Stored
from syncline.cluster.validation.engine.names import path_segment
from syncline.cluster.verbs import admitting
from syncline.cluster.verbs.body import own_copy, read_typed
from syncline.cluster.verbs.delete import check_preconditions, remove
from syncline.cluster.verbs.exchange import Exchange
from syncline.cluster.verbs.options import DeleteOptions, delete_options, integer, write_options
from syncline.kube.client import Response
from syncline.kube.errors import ApiError, BadRequest, FieldCause, TooManyRequests, conflict, invalid, not_found
from syncline.kube.objects import GVK, Obj, dig, generation, is_terminating, labels_of, name_of
from syncline.kube.selectors import SelectorError, label_selector_from

PODS, NODES = "/pods", "/nodes"
BINDING, EVICTION = GVK("", "v1", "Binding"), GVK("policy", "v1", "Eviction")
BUDGETS = "policy/poddisruptionbudgets"

MAX_DISRUPTED_PODS = 2000
"""Pending evictions that a budget records (eviction.go ``MaxDisruptedPodSize``)."""


def _pod(x: Exchange, name: str) -> Stored:
    stored = x.store.get(Key(PODS, x.route.namespace, name))
    if stored is None:
        raise not_found("pods", name)
    return stored


# --- binding -------------------------------------------------------------------------------------------------------


def bind(x: Exchange) -> Response:
    body = _read_binding(x)
    name = dig(body, "metadata", "name", default=x.route.name)
    if name != x.route.name:
        raise BadRequest("name in URL does not match name in Binding object")
    return _bind(x, x.route.name, body)


def bind_by_collection(x: Exchange) -> Response:
    body = _read_binding(x)
    _check_target(body)
    name = str(dig(body, "metadata", "name", default="") or "")
    if not name:
        raise BadRequest("Name parameter required.")
    if problems := path_segment(name):
        raise BadRequest(f'Name parameter invalid: "{name}": {problems[0]}')
    return _bind(x, name, body)


def _read_binding(x: Exchange) -> Obj:
    """Return the Binding; its unknown fields are refused or warned about, like those of an object."""
    validation = write_options(x.request.query, x.request.headers, "CreateOptions").validation
    return read_typed(x, BINDING, validation)


def _check_target(binding: Obj) -> str:
    """Return the node that a binding names."""
    node, kind = dig(binding, "target", "name", default=""), dig(binding, "target", "kind", default="")
    wrong = f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"'
    faults = [wrong] if kind not in ("", "Node") else []
    faults += [] if node else ["target.name: Required value"]
    if faults:
        raise ApiError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]", reason="")
    return str(node)


def _bind(x: Exchange, name: str, body: Obj) -> Response:
    """Place the Pod on the named node (``BindingREST.setPodHostAndAnnotations``)."""
    options = write_options(x.request.query, x.request.headers, "CreateOptions")
    if admitting.concerned(x):
        body = admitting.admitted(x, "CREATE", body, name=name, dry_run=options.dry_run) or body
    node = _check_target(body)
    stored = _pod(x, name)
    pod = stored.obj
    uid = dig(body, "metadata", "uid")
    if uid and uid != stored.uid:
        raise conflict(
            "pods", name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {stored.uid}"
        )
    if is_terminating(pod):
        raise conflict("pods/binding", name, f"pod {name} is being deleted, cannot be assigned to a host")
    placed = dig(pod, "spec", "nodeName")
    if placed:
        raise conflict("pods/binding", name, f'pod {name} is already assigned to node "{placed}"')
    if dig(pod, "spec", "schedulingGates"):
        raise conflict("pods/binding", name, f"pod {name} has non-empty .spec.schedulingGates")
    if not options.dry_run:
        x.store.put(stored.key, _placed(x, pod, node, body), expect=stored.revision)
    response = success(201, code=True)
    response.revision = x.store.revision
    return response


def _placed(x: Exchange, pod: Obj, node: str, binding: Obj) -> Obj:
    made: Obj = own_copy(pod)
    made["spec"]["nodeName"] = node
    annotations = dig(binding, "metadata", "annotations", default={})
    if annotations:
        made["metadata"]["annotations"] = {**(made["metadata"].get("annotations") or {}), **annotations}
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": format_time(x.now),
    }
    status = made.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    others = [c for c in status.get("conditions") or () if c.get("type") != "PodScheduled"]
    status["conditions"] = [*others, scheduled]
    return made


# --- eviction ------------------------------------------------------------------------------------------------------


def evict(x: Exchange) -> Response:
    """Delete the Pod if its disruption budget allows it, else raise 429 (``EvictionREST``)."""
    body = read_typed(x, EVICTION)
    name = dig(body, "metadata", "name", default="")
    if name != x.route.name:
        raise BadRequest("name in URL does not match name in Eviction object")
    given = dig(body, "deleteOptions") or None
    options = delete_options({} if given else x.request.query, given)
    stored = _pod(x, name)
    if admitting.concerned(x):
        admitting.admitted(x, "CREATE", body, dry_run=options.dry_run)
    check_preconditions(x.resource, stored, options)
    pod = stored.obj
    if not _ignores_budgets(pod):
        budgets = _budgets_for(x, pod)
        if len(budgets) > 1:
            raise ApiError(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                reason="",
            )
        if budgets:
            _take_from_budget(x, budgets[0], pod, options)
    if not options.dry_run:
        stored = x.store.put(stored.key, _targeted(pod, x.now), expect=stored.revision)
        options = replace(options, revision=None)  # already compared with the client's version
    remove(x, stored, options)
    response = success(201, code=True)
    response.revision = x.store.revision
    return response


def _targeted(pod: Obj, now: datetime) -> Obj:
    """Set the condition DisruptionTarget, by which Jobs and people see that the Pod did not fail."""
    made: Obj = own_copy(pod)
    conditions = [c for c in dig(made, "status", "conditions", default=[]) if c.get("type") != "DisruptionTarget"]
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": format_time(now),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    made.setdefault("status", {})["conditions"] = [*conditions, condition]
    return made


def _ignores_budgets(pod: Obj) -> bool:
    """Return whether the Pod does not run, so that no budget protects it (``canIgnorePDB``)."""
    return dig(pod, "status", "phase") in ("Succeeded", "Failed", "Pending") or is_terminating(pod)


def _budgets_for(x: Exchange, pod: Obj) -> list[Stored]:
    found = []
    for stored in x.store.list(BUDGETS, x.route.namespace):
        selector = dig(stored.obj, "spec", "selector")
        try:
            if label_selector_from(selector).matches(labels_of(pod)):
                found.append(stored)
        except SelectorError:
            continue  # A budget with an invalid selector protects nothing; its status reports it.
    return found


def _ready(pod: Obj) -> bool:
    conditions = dig(pod, "status", "conditions", default=[])
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _take_from_budget(x: Exchange, stored: Stored, pod: Obj, options: DeleteOptions) -> None:
    budget = stored.obj
    status = budget.get("status") or {}
    allowed = int(status.get("disruptionsAllowed") or 0)
    if not _ready(pod) and _may_evict_unready(budget, status):
        return
    if int(status.get("observedGeneration") or 0) < generation(budget):
        raise _too_many(budget, "The disruption budget {} is still being processed by the server.", retry_s=10)
    if allowed < 0:
        raise ApiError("pdb disruptions allowed is negative", code=403, reason="Forbidden")
    if len(status.get("disruptedPods") or {}) > MAX_DISRUPTED_PODS:
        raise ApiError("DisruptedPods map too big - too many evictions not confirmed by PDB controller", code=403)
    if allowed == 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _too_many(budget, f"The disruption budget {{}} needs {needs} healthy pods and has {has} currently")
    if options.dry_run:
        return
    made = own_copy(budget)
    changed = made["status"]
    changed["disruptionsAllowed"] = allowed - 1
    changed["disruptedPods"] = {**(changed.get("disruptedPods") or {}), name_of(pod): format_time(x.now)}
    if allowed == 1:
        changed["conditions"] = _insufficient(x, changed.get("conditions") or [], generation(budget))
    x.store.put(stored.key, made, expect=stored.revision)


def _insufficient(x: Exchange, conditions: list[Any], observed: int) -> list[Any]:
    others = [c for c in conditions if c.get("type") != "DisruptionAllowed"]
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": observed,
        "lastTransitionTime": format_time(x.now),
        "reason": "InsufficientPods",
        "message": "",
    }
    return [*others, condition]


def _may_evict_unready(budget: Obj, status: Obj) -> bool:
    """Return whether unready pods of a healthy application may be evicted (unhealthyPodEvictionPolicy)."""
    if dig(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    healthy, desired = int(status.get("currentHealthy") or 0), int(status.get("desiredHealthy") or 0)
    return healthy >= desired > 0


def _too_many(budget: Obj, message: str, retry_s: int = 0) -> TooManyRequests:
    cause = FieldCause("DisruptionBudget", message.format(name_of(budget)))
    text = "Cannot evict pod as it would violate the pod's disruption budget."
    return TooManyRequests(text, causes=[cause], retry_after_s=retry_s)


# --- log -----------------------------------------------------------------------------------------------------------


def log(x: Exchange) -> Response:
    """Return the container's log as text; a stream with ``follow``."""
    pod = x.current().obj
    query = x.request.query
    _check_log_options(x.route.name, query)
    container = chosen_container(x, pod, query.get("container", ""))
    node = dig(pod, "spec", "nodeName")
    if not node:
        return Response.encoded(204, b"")  # An unscheduled pod has no log.
    if x.store.get(Key(NODES, "", str(node))) is None:
        raise not_found("pods", str(node))
    lines = x.backend.logs.log(pod, container, query, x.now)
    headers = {"content-type": "text/plain"}
    if isinstance(lines, bytes):
        return Response.encoded(200, lines, headers)
    return Response(200, headers=headers, stream=lines)


_LOG_BOUNDS = {"sinceSeconds": (1, "must be greater than 0"), "tailLines": (0, "must be greater than or equal to 0")}
_LOG_BOUNDS["limitBytes"] = (1, "must be greater than 0")


def _check_log_options(name: str, query: Mapping[str, str]) -> None:
    """Check log options like ``ValidatePodLogOptions``; raise Invalid for a PodLogOptions."""
    causes: list[FieldCause] = []
    for option in ("tailLines", "limitBytes"):
        causes += _bound_causes(query, option)
    if "sinceSeconds" in query and "sinceTime" in query:
        what = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
        causes.append(FieldCause("FieldValueForbidden", what, "[]"))
    else:
        causes += _bound_causes(query, "sinceSeconds")
    if causes:
        raise invalid("PodLogOptions", name, causes)


def _bound_causes(query: Mapping[str, str], option: str) -> list[FieldCause]:
    number = integer(query, option)
    if number is None:
        return []
    least, why = _LOG_BOUNDS[option]
    return [] if number >= least else [FieldCause("FieldValueInvalid", f"Invalid value: {number}: {why}", option)]


def chosen_container(x: Exchange, pod: Obj, asked: str) -> str:
    """Return the requested container, or the only one; raise BadRequest."""
    names = [
        str(container.get("name"))
        for part in ("containers", "initContainers", "ephemeralContainers")
        for container in dig(pod, "spec", part, default=[])
    ]
    running = [str(c.get("name")) for c in dig(pod, "spec", "containers", default=[])]
    if asked:
        if asked not in names:
            raise BadRequest(f"container {asked} is not valid for pod {x.route.name}")
        return asked
    if len(running) != 1:
        choice = f"choose one of: [{' '.join(running)}]"
        raise BadRequest(f"a container name must be specified for pod {x.route.name}, {choice}")
    return running[0]
