"""The status of a Job: consistent conditions, counters that never decrease, indexes.

``jobs.py`` calls it for writes to ``/status`` with the new and the old Job. A rule applies only if its fields changed,
so that old objects stay writable. Source: Kubernetes ``pkg/apis/batch/validation`` (validateJobStatus) and
``getStatusValidationOptions``.
"""

from __future__ import annotations

from typing import Any

from syncline.cluster.validation.engine.causes import duplicate, invalid, invalid_whole, required
from syncline.cluster.validation.engine.fields import natural_numbers
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj

CONDITIONS = "status.conditions"
FINISHED = ("Complete", "Failed")


def job_status_causes(new: Obj, old: Obj) -> list[FieldCause]:
    status, before = new.get("status") or {}, old.get("status") or {}
    causes = natural_numbers(status, "status", "active", "succeeded", "failed", "ready", "terminating")
    causes += _uncounted_causes(status)
    causes += _condition_causes(status, before) + _time_causes(new, status, before)
    causes += _finished_causes(new, status, before) + _index_causes(new, status, before)
    ready, active = status.get("ready"), status.get("active") or 0
    if isinstance(ready, int) and ready > active and _changed(status, before, "ready", "active"):
        causes.append(invalid("status.ready", ready, "cannot set more ready pods than active"))
    return causes + _counter_causes(new, status, before)


def _true(status: Obj, kind: str) -> bool:
    return any(
        isinstance(one, dict) and (one.get("type"), one.get("status")) == (kind, "True")
        for one in status.get("conditions") or ()
    )


def _moved(status: Obj, before: Obj, *kinds: str) -> bool:
    return any(_true(status, kind) != _true(before, kind) for kind in kinds)


def _changed(status: Obj, before: Obj, *keys: str) -> bool:
    return any((status.get(key) or None) != (before.get(key) or None) for key in keys)


def _uncounted_causes(status: Obj) -> list[FieldCause]:
    causes: list[FieldCause] = []
    seen: set[str] = set()
    uncounted = status.get("uncountedTerminatedPods") or {}
    for key in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(key) or ()):
            where = f"status.uncountedTerminatedPods.{key}[{index}]"
            if not uid:
                causes.append(invalid(where, uid, "must not be empty"))
            elif uid in seen:
                causes.append(duplicate(where, uid))
            seen.add(uid)
    return causes


def _condition_causes(status: Obj, before: Obj) -> list[FieldCause]:
    complete, failed = _true(status, "Complete"), _true(status, "Failed")
    target, criteria = _true(status, "FailureTarget"), _true(status, "SuccessCriteriaMet")
    texts: list[str] = []
    if complete and failed and _moved(status, before, "Complete", "Failed"):
        texts.append("cannot set Complete=True and Failed=true conditions")
    if complete and target and _moved(status, before, "Complete", "FailureTarget"):
        texts.append("cannot set Complete=True and FailureTarget=true conditions")
    failed_moved = _moved(status, before, "Failed") or _changed(status, before, "failedIndexes")
    if failed and not target and failed_moved:
        texts.append("cannot set Failed=True condition without the FailureTarget=true condition")
    if complete and not criteria and _moved(status, before, "Complete", "SuccessCriteriaMet"):
        texts.append("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
    if criteria and failed:
        texts.append("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if criteria and target:
        texts.append("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
    texts += [
        f"cannot disable the terminal {kind}=True condition"
        for kind in ("Failed", "Complete", "FailureTarget")
        if _true(before, kind) and not _true(status, kind)
    ]
    if _true(before, "SuccessCriteriaMet") and not criteria:
        texts.append("cannot disable the SuccessCriteriaMet=True condition")
    if _true(before, "Complete") and not _true(before, "SuccessCriteriaMet") and criteria:
        texts.append("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
    return [invalid_whole(CONDITIONS, text) for text in texts]


def _time_causes(new: Obj, status: Obj, before: Obj) -> list[FieldCause]:
    causes: list[FieldCause] = []
    begun, ended = status.get("startTime"), status.get("completionTime")
    complete, where = _true(status, "Complete"), "status.completionTime"
    if _moved(status, before, "Complete") or _changed(status, before, "completionTime"):
        if ended and not complete:
            why = "cannot set completionTime when there is no Complete=True condition"
            causes.append(invalid(where, ended, why))
        if complete and not ended:
            causes.append(required(where, "completionTime is required for Complete jobs"))
    if begun and ended and ended < begun and _changed(status, before, "startTime", "completionTime"):
        causes.append(invalid(where, ended, "must be equal to or after `startTime`"))
    if ended and before.get("completionTime") not in (None, ended):
        causes.append(invalid(where, ended, "field is immutable"))
    resuming = _true(before, "Suspended") and not _true(status, "Suspended")
    suspended = (new.get("spec") or {}).get("suspend") is True
    if before.get("startTime") not in (None, begun) and not suspended and not resuming:
        why = "field is immutable for unsuspended job once set"
        causes.append(invalid("status.startTime", begun, why))
    return causes


def _finished_causes(new: Obj, status: Obj, before: Obj) -> list[FieldCause]:
    """Refuse remaining pods in the status of a finished Job."""
    if not any(_true(status, kind) for kind in FINISHED):
        return []
    spec = new.get("spec") or {}
    ending = not any(_true(before, kind) for kind in FINISHED)
    causes: list[FieldCause] = []
    for key in ("active", "terminating"):
        if (status.get(key) or 0) > 0 and (ending or _changed(status, before, key)):
            causes.append(invalid(f"status.{key}", status[key], f"{key}>0 is invalid for finished job"))
    idle = spec.get("suspend") is True and spec.get("completions") == 0
    if not status.get("startTime") and not idle and (ending or _changed(status, before, "startTime")):
        causes.append(required("status.startTime", "startTime is required for finished job"))
    uncounted = status.get("uncountedTerminatedPods") or {}
    if any(uncounted.values()) and (ending or _changed(status, before, "uncountedTerminatedPods")):
        causes.append(invalid("status.uncountedTerminatedPods", uncounted, "must be empty for finished job"))
    return causes


def _counter_causes(new: Obj, status: Obj, before: Obj) -> list[FieldCause]:
    spec, causes = new.get("spec") or {}, []
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for key in ("failed",) if elastic else ("failed", "succeeded"):
        if (status.get(key) or 0) < (before.get(key) or 0):
            causes.append(invalid(f"status.{key}", status.get(key) or 0, f"cannot decrease the {key} counter"))
    return causes


# --- indexes -------------------------------------------------------------------------------------------------------


def _index_causes(new: Obj, status: Obj, before: Obj) -> list[FieldCause]:
    spec = new.get("spec") or {}
    completions, limit = spec.get("completions"), spec.get("backoffLimitPerIndex")
    done, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    causes: list[FieldCause] = []
    if _changed(status, before, "completedIndexes"):
        if isinstance(completions, int):
            causes += _parse_causes("completedIndexes", done, completions)
        if done and spec.get("completionMode") != "Indexed":
            why = "cannot set non-empty completedIndexes when non-indexed completion mode"
            causes.append(invalid("status.completedIndexes", done, why))
    if failed != before.get("failedIndexes"):
        if isinstance(completions, int) and limit is not None and failed is not None:
            causes += _parse_causes("failedIndexes", failed, completions)
        if limit is None and failed is not None:
            why = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            causes.append(invalid("status.failedIndexes", failed, why))
    if _changed(status, before, "completedIndexes", "failedIndexes") and isinstance(completions, int) and failed:
        shared = _spans(done, completions) & _spans(failed, completions)
        if shared:
            why = f"failedIndexes and completedIndexes overlap at index: {min(shared)}"
            causes.append(invalid("status.failedIndexes", failed, why))
    return causes


def _parse_causes(key: str, text: str, completions: int) -> list[FieldCause]:
    found = count_indexes(text, completions)
    return [invalid(f"status.{key}", text, f"error parsing {key}: {found}")] if isinstance(found, str) else []


def count_indexes(text: str, completions: int) -> int | str:
    """Return the number of indexes in ``0-2,5``, or the error in the text."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        ends = _interval(part, completions)
        if isinstance(ends, str):
            return ends
        if last >= ends[0] and total:
            return f"non-increasing order, previous: {last}, current: {ends[0]}"
        total, last = total + ends[1] - ends[0] + 1, ends[1]
    return total


def _interval(part: str, completions: int) -> tuple[int, int] | str:
    limits = part.split("-")
    if len(limits) > 2:
        return (
            f'the fragment "{part}" violates the requirement that an index interval can have at most two parts '
            "separated by '-'"
        )
    numbers: list[int] = []
    for limit in limits:
        if not limit.isascii() or not limit.isdigit():
            return f'cannot convert string to integer for index: "{limit}"'
        if int(limit) >= completions:
            return f'too large index: "{limit}"'
        numbers.append(int(limit))
    if len(numbers) == 2 and numbers[0] >= numbers[1]:
        return f"non-increasing order, previous: {numbers[0]}, current: {numbers[1]}"
    return numbers[0], numbers[-1]


def _spans(text: str, completions: int) -> set[int]:
    found: set[int] = set()
    for part in text.split(",") if text else ():
        ends: Any = _interval(part, completions)
        if not isinstance(ends, str):
            found.update(range(ends[0], ends[1] + 1))
    return found
