"""LimitRanges: default requests and limits, and bounds (plug-in LimitRanger).

The chain calls it: ``admit`` fills in omitted values in place; ``check`` refuses values out of bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncline.cluster.admission.attempt import Attempt, forbid
from syncline.cluster.admission.usage import Amounts, amounts, pod_amounts
from syncline.cluster.storage.store import Store
from syncline.kube.objects import Obj, dig

RANGES = "/limitranges"
ANNOTATION = "kubernetes.io/limit-ranger"


def _limits(store: Store, attempt: Attempt, kind: str) -> Iterator[Obj]:
    if not store.count(RANGES, attempt.namespace):
        return
    for stored in store.list(RANGES, attempt.namespace):
        yield from (limit for limit in dig(stored.obj, "spec", "limits", default=[]) if limit.get("type") == kind)


# --- defaults ------------------------------------------------------------------------------------------------------


def admit(store: Store, attempt: Attempt, obj: Obj) -> None:
    if not attempt.concerns("/pods") or not store.count(RANGES, attempt.namespace):
        return
    requests: Obj = {}
    limits: Obj = {}
    for limit in _limits(store, attempt, "Container"):
        requests = {**(limit.get("defaultRequest") or {}), **requests}
        limits = {**(limit.get("default") or {}), **limits}
    notes: list[str] = []
    for field, word in (("containers", "container"), ("initContainers", "init container")):
        for container in dig(obj, "spec", field, default=[]):
            notes += _fill(container, requests, limits, word)
    if notes:
        annotations = obj["metadata"].get("annotations") or {}
        obj["metadata"]["annotations"] = {**annotations, ANNOTATION: f"LimitRanger plugin set: {'; '.join(notes)}"}


def _fill(container: Obj, requests: Obj, limits: Obj, word: str) -> list[str]:
    resources: Obj = container.setdefault("resources", {})
    notes = []
    for field, defaults, what in (("requests", requests, "request"), ("limits", limits, "limit")):
        given = resources.get(field) or {}
        added = sorted(name for name in defaults if name not in given)
        if added:
            resources[field] = {**given, **{name: defaults[name] for name in added}}
            notes.append(f"{', '.join(added)} {what} for {word} {container.get('name')}")
    return notes


# --- bounds --------------------------------------------------------------------------------------------------------


def check(store: Store, attempt: Attempt, obj: Obj) -> None:
    """Raise Forbidden with all values that are out of bounds."""
    problems: list[str] = []
    if attempt.concerns("/pods"):
        problems = _pod_problems(store, attempt, obj)
    elif attempt.concerns("/persistentvolumeclaims"):
        wanted = amounts(dig(obj, "spec", "resources", "requests"))
        for limit in _limits(store, attempt, "PersistentVolumeClaim"):
            problems += _claim_problems(limit, wanted)
    if problems:
        raise forbid(attempt, problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")


def _pod_problems(store: Store, attempt: Attempt, pod: Obj) -> list[str]:
    problems: list[str] = []
    for limit in _limits(store, attempt, "Container"):
        for field in ("containers", "initContainers"):
            for container in dig(pod, "spec", field, default=[]):
                resources = container.get("resources") or {}
                problems += _problems(limit, amounts(resources.get("requests")), amounts(resources.get("limits")))
    for limit in _limits(store, attempt, "Pod"):
        problems += _problems(limit, pod_amounts(pod, "requests"), pod_amounts(pod, "limits"))
    return problems


def _problems(limit: Obj, requests: Amounts, limits: Amounts) -> list[str]:
    return [*_below(limit, requests, limits), *_above(limit, requests, limits), *_ratio(limit, requests, limits)]


def _bounds(limit: Obj, field: str) -> list[tuple[str, str]]:
    return sorted((name, str(value)) for name, value in (limit.get(field) or {}).items())


def _below(limit: Obj, requests: Amounts, limits: Amounts) -> Iterator[str]:
    least = amounts(limit.get("min"))
    for name, shown in _bounds(limit, "min"):
        text = f"minimum {name} usage per {limit.get('type')} is {shown}"
        if name not in requests:
            yield f"{text}.  No request is specified"
        elif requests[name] < least[name]:
            yield f"{text}, but request is {requests[name]}"
        elif name in limits and limits[name] < least[name]:
            yield f"{text}, but limit is {limits[name]}"


def _above(limit: Obj, requests: Amounts, limits: Amounts) -> Iterator[str]:
    most = amounts(limit.get("max"))
    for name, shown in _bounds(limit, "max"):
        text = f"maximum {name} usage per {limit.get('type')} is {shown}"
        if name not in limits:
            yield f"{text}.  No limit is specified"
        elif limits[name] > most[name]:
            yield f"{text}, but limit is {limits[name]}"
        elif name in requests and requests[name] > most[name]:
            yield f"{text}, but request is {requests[name]}"


def _ratio(limit: Obj, requests: Amounts, limits: Amounts) -> Iterator[str]:
    ratios = amounts(limit.get("maxLimitRequestRatio"))
    for name, shown in _bounds(limit, "maxLimitRequestRatio"):
        text = f"{name} max limit to request ratio per {limit.get('type')} is {shown}, but"
        if name not in requests or not requests[name]:
            yield f"{text} no request is specified or request is 0"
        elif name not in limits or not limits[name]:
            yield f"{text} no limit is specified or limit is 0"
        else:
            ratio = limits[name].milli() / requests[name].milli()
            if ratio > ratios[name].milli() / 1000:
                yield f"{text} provided ratio is {ratio:.6f}"


def _claim_problems(limit: Obj, wanted: Amounts) -> Iterator[str]:
    least, most = amounts(limit.get("min")), amounts(limit.get("max"))
    kind = limit.get("type")
    for name, shown in _bounds(limit, "min"):
        text = f"minimum {name} usage per {kind} is {shown}"
        if name not in wanted:
            yield f"{text}.  No request is specified"
        elif wanted[name] < least[name]:
            yield f"{text}, but request is {wanted[name]}"
    for name, shown in _bounds(limit, "max"):
        text = f"maximum {name} usage per {kind} is {shown}"
        if name not in wanted:
            yield f"{text}.  No request is specified"
        elif wanted[name] > most[name]:
            yield f"{text}, but request is {wanted[name]}"
