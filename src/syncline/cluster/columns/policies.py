"""Flow control and admission policies."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from syncline.cluster.columns.column import NONE, UNKNOWN, age
from syncline.kube.objects import Obj, dig, name_of

_FLOW, _ADMISSION = "flowcontrol.apiserver.k8s.io", "admissionregistration.k8s.io"


def _shown(value: Any) -> Any:
    return NONE if value is None else value


def _flow(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    conditions = dig(obj, "status", "conditions", default=[])
    dangling = [str(c.get("status")) for c in conditions if c.get("type") == "Dangling"]
    level = dig(spec, "priorityLevelConfiguration", "name", default=NONE)
    method = dig(spec, "distinguisherMethod", "type", default=NONE)
    missing = dangling[0] if dangling else "?"
    return [name_of(obj), level, spec.get("matchingPrecedence", 0), method, age(obj, now), missing]


def _level(obj: Obj, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    limited = spec.get("limited") or {}
    queues = dig(limited, "limitResponse", "queuing", default={})
    shares = _shown(limited.get("nominalConcurrencyShares"))
    bounds = [_shown(queues.get(name)) for name in ("queues", "handSize", "queueLengthLimit")]
    return [name_of(obj), spec.get("type", ""), shares, *bounds, age(obj, now)]


def _policy(obj: Obj, now: datetime) -> list[Any]:
    kind = dig(obj, "spec", "paramKind")
    named = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else "<unset>"
    rules = dig(obj, "spec", "validations") or dig(obj, "spec", "mutations", default=[])
    return [name_of(obj), len(rules), named, age(obj, now)]


def _binding(obj: Obj, now: datetime) -> list[Any]:
    reference = dig(obj, "spec", "paramRef")
    shown = "<unset>"
    if reference:
        names = [str(reference[key]) for key in ("namespace", "name") if reference.get(key)]
        shown = "/".join(names) if reference.get("name") else "<selector>" if reference.get("selector") else UNKNOWN
    return [name_of(obj), dig(obj, "spec", "policyName", default=""), shown, age(obj, now)]


TABLES = {
    (_FLOW, "FlowSchema"): _flow,
    (_FLOW, "PriorityLevelConfiguration"): _level,
    (_ADMISSION, "MutatingAdmissionPolicy"): _policy,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): _binding,
    (_ADMISSION, "ValidatingAdmissionPolicy"): _policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): _binding,
}
