"""The feedback of a manifest: values that rules read from the object on the spoke; pure. :func:`values_by_rule`.

Rules: ``pkg/work/spoke/statusfeedback`` of upstream (reference ocm-pull-model §6.4).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from syncline.fleet.conditions import condition
from syncline.kube.objects import GVK, Obj, gvk_of
from syncline.kube.text.jsonpath import JsonPathError, compile_template

SYNCED: Final = "StatusFeedbackSynced"
MAX_RAW: Final = 1024
"""Default limit of a raw JSON value in bytes."""
MAX_PATH: Final = 4096
"""The most characters of a path; upstream's limit is that of the API."""
_INT64: Final = 1 << 63
_READY: Final = '.status.conditions[?(@.type=="{}")].status'
WELL_KNOWN: Final[Mapping[GVK, tuple[tuple[str, str], ...]]] = {
    GVK("apps", "v1", "Deployment"): (
        ("ReadyReplicas", ".status.readyReplicas"),
        ("Replicas", ".status.replicas"),
        ("AvailableReplicas", ".status.availableReplicas"),
    ),
    GVK("apps", "v1", "DaemonSet"): (
        ("NumberReady", ".status.numberReady"),
        ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
        ("NumberAvailable", ".status.numberAvailable"),
    ),
    GVK("batch", "v1", "Job"): (("JobComplete", _READY.format("Complete")), ("JobSucceeded", ".status.succeeded")),
    GVK("", "v1", "Pod"): (("PodReady", _READY.format("Ready")), ("PodPhase", ".status.phase")),
}
"""Names and paths of the rule WellKnownStatus."""


class FeedbackError(ValueError):
    """A value that cannot be read; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """The values that one rule read, and why it could not read others."""

    values: tuple[Obj, ...] = ()
    errors: tuple[str, ...] = ()

    @property
    def error(self) -> str:
        return aggregated(self.errors)


def aggregated(errors: Iterable[str]) -> str:
    """Return several errors in one line, as Kubernetes' aggregate does; empty for none."""
    found = list(dict.fromkeys(errors))
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]" if found else ""


def values_by_rule(obj: Obj, rule: Mapping[str, Any], *, raw: bool = False, max_raw: int = MAX_RAW) -> Feedback:
    """Return what one of ``feedbackRules`` reads from an object. ``raw``: other values than numbers, texts and truths
    are returned as JSON, of at most ``max_raw`` bytes (feature gate RawFeedbackJsonString)."""
    values, errors = [], []
    if rule.get("type") == "WellKnownStatus":
        paths: Iterable[tuple[str, str, str]] = [(*pair, "") for pair in WELL_KNOWN.get(gvk_of(obj), ())]
        if not paths:
            return Feedback(errors=(f"cannot find the wellknown statuses for resource with gvk {_shown(obj)}",))
    elif rule.get("type") == "JSONPaths":
        paths = [
            (str(one.get("name") or ""), str(one.get("path") or ""), str(one.get("version") or ""))
            for one in rule.get("jsonPaths") or ()
        ]
    else:
        return Feedback()
    for name, path, version in paths:
        if version and gvk_of(obj).version != version:
            errors.append(f"version set in the path {name} is not matched for the related resource")
            continue
        try:
            value = _value(obj, name, path, raw, max_raw)
        except FeedbackError as error:
            errors.append(str(error))
        else:
            values += [] if value is None else [{"name": name, "fieldValue": value}]
    return Feedback(tuple(values), tuple(errors))


def feedback(
    obj: Obj, rules: Iterable[Mapping[str, Any]], *, raw: bool = False, max_raw: int = MAX_RAW
) -> tuple[list[Obj], Obj]:
    """Return all values of a manifest, and its condition StatusFeedbackSynced."""
    found = [values_by_rule(obj, rule, raw=raw, max_raw=max_raw) for rule in rules]
    if not found:
        return [], condition(SYNCED, "True", "NoStatusFeedbackSynced")
    values = [value for one in found for value in one.values]
    error = aggregated(error for one in found for error in one.errors)
    if error:
        text = f"Sync status feedback failed with error {error}"
        return values, condition(SYNCED, "False", "StatusFeedbackSyncFailed", text)
    return values, condition(SYNCED, "True", "StatusFeedbackSynced")


def _shown(obj: Obj) -> str:
    gvk = gvk_of(obj)
    return f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"


def _value(obj: Obj, name: str, path: str, raw: bool, max_raw: int) -> Obj | None:
    """Return the ``fieldValue`` at a path; None if there is nothing. Only the first result counts; with ``raw`` all
    results are one list."""
    found = _found(obj, name, path)
    if not found:
        return None
    value = found[0] if not raw or len(found) == 1 else found
    if value is None:
        return None
    if isinstance(value, bool):
        return {"type": "Boolean", "boolean": value}
    if isinstance(value, int) and -_INT64 <= value < _INT64:
        return {"type": "Integer", "integer": value}
    if isinstance(value, str):
        return {"type": "String", "string": value}
    if not raw:
        raise FeedbackError(f"the type {_go_type(value)} of the value for {name} is not found")
    text = _json(value)
    if len(text.encode()) > max_raw:
        limit = f"is larger than the maximum length {max_raw}"
        raise FeedbackError(f"the length of returned json raw string for name {name} {limit}")
    return {"type": "JsonRaw", "jsonRaw": text}


def _found(obj: Obj, name: str, path: str) -> list[Any]:
    if len(path) > MAX_PATH:
        path, why = f"{path[:20]}…", f"found {len(path)} characters; at most {MAX_PATH}"
        raise FeedbackError(f"failed to parse json path {path} of {name} with error: {why}")
    try:
        compiled = compile_template(f"{{{path}}}")
    except JsonPathError as error:
        raise FeedbackError(f"failed to parse json path {path} of {name} with error: {error.reason}") from error
    try:
        groups = compiled.groups(obj)
    except JsonPathError as error:
        raise FeedbackError(f"failed to find value for {name} with error: {error}") from error
    return groups[0] if groups else []


def _go_type(value: Any) -> str:
    if isinstance(value, dict):
        return "map[string]interface {}"
    return "[]interface {}" if isinstance(value, list) else "float64"


def _json(value: Any) -> str:
    text = json.dumps(_whole(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _whole(value: Any) -> Any:
    """Return the value with whole floats as integers, as Go writes them."""
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value
