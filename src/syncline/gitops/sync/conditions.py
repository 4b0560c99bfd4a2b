"""``syncline.dev/wait-for`` and the deadlines of gates: what people ask for in annotations, read and judged; pure.

Called by the pass before a wave runs and after running tasks were judged. A condition looks at one object of the
cluster: that it is there and healthy, that a condition of its status is True, or what JSONPath or CEL say of it. The
project decides which objects may be named, before anything is looked up; no text holds a value that was found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

from syncline.gitops.health import Health, HealthStatus
from syncline.gitops.sync.model import KindTable
from syncline.kube.cel.nodes import CelError
from syncline.kube.cel.program import Program, compile_program
from syncline.kube.cel.types import DYN
from syncline.kube.cel.values import EvaluationError
from syncline.kube.durations import DurationError, parse_duration
from syncline.kube.jsonpath import compile_path
from syncline.kube.jsonpath_syntax import JsonPathError
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig
from syncline.kube.yaml import YamlError, load

__all__ = [
    "GATE_DEADLINE_KEY",
    "MAX_ALL_WAITS",
    "ON_DEADLINE",
    "WAIT_FOR",
    "Condition",
    "ConditionError",
    "gate_deadline",
    "waits_of",
]

WAIT_FOR = "syncline.dev/wait-for"
GATE_DEADLINE_KEY = "syncline.dev/gate-deadline"
ON_DEADLINE = "syncline.dev/on-deadline"
"""``wait`` (default: it is only reported as overdue), ``fail`` or ``continue``."""
ACTIONS = ("wait", "fail", "continue")
FIELDS = {"group", "kind", "name", "namespace", "condition", "jsonpath", "cel", "deadline"}
MAX_WAITS = 50
"""Conditions of one object; a list of this length is no longer written by a person."""
MAX_ALL_WAITS = 500
"""Conditions of all manifests of an operation; each is judged in every pass."""
MAX_TEXT = 16_384
"""Characters of the annotation."""
MAX_DEADLINE = timedelta(days=30)


class ConditionError(ValueError):
    """An annotation that cannot be read; the text names it, what was found and what is allowed."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that must hold before an object is applied. ``deadline`` None: for as long as it takes."""

    ref: ObjectRef
    condition: str = ""
    jsonpath: str = ""
    value: str | None = None
    cel: str = ""
    deadline: timedelta | None = None

    def problem(self, obj: Obj | None, health: Callable[[Obj], Health | None]) -> str:
        """Why it does not hold yet; empty where it does. Raises :class:`ConditionError` for a broken expression."""
        if obj is None:
            return f"{self.ref} is not there"
        if self.condition:
            listed = dig(obj, "status", "conditions", default=[])
            named = (one for one in listed if isinstance(one, dict) and one.get("type") == self.condition)
            held = next(named, {}).get("status") == "True"
            return "" if held else f"condition {self.condition} of {self.ref} is not True"
        if self.jsonpath:
            return self._by_path(obj)
        if self.cel:
            return self._by_cel(obj)
        judged = health(obj)
        good = judged is None or judged.status is HealthStatus.HEALTHY
        return "" if good or judged is None else f"{self.ref} is {judged.status}"

    def _by_path(self, obj: Obj) -> str:
        try:
            found = compile_path(self.jsonpath).render(obj)
        except JsonPathError:  # its text may quote what was found
            return f"{self.jsonpath} of {self.ref} cannot be evaluated"
        if self.value is None:
            return "" if found else f"{self.jsonpath} of {self.ref} is empty"
        return "" if found == self.value else f"{self.jsonpath} of {self.ref} is not {self.value!r}"

    def _by_cel(self, obj: Obj) -> str:
        try:
            found = _program(self.cel).evaluate({"object": obj})
        except EvaluationError:  # its text may quote what was found
            return f"{self.cel} of {self.ref} cannot be evaluated"
        return "" if found is True else f"{self.cel} of {self.ref} is not true"


@lru_cache(maxsize=1000)
def _program(text: str) -> Program:
    try:
        return compile_program(text, {"object": DYN})
    except CelError as error:
        raise ConditionError(f"{WAIT_FOR}: cel: {error}") from error


def waits_of(obj: Obj, kinds: KindTable, namespace: str, refuses: Callable[[ObjectRef], str]) -> tuple[Condition, ...]:
    """The conditions that an object's annotation names. Raises :class:`ConditionError`, also where the project
    ``refuses`` one of the objects."""
    text = annotations_of(obj).get(WAIT_FOR)
    if not text:
        return ()
    if len(text) > MAX_TEXT:
        raise ConditionError(f"{WAIT_FOR}: found {len(text)} characters; at most {MAX_TEXT}")
    value = _loaded(text)
    listed = value if isinstance(value, list) else [value]
    if len(listed) > MAX_WAITS:
        raise ConditionError(f"{WAIT_FOR}: found {len(listed)} conditions; at most {MAX_WAITS}")
    found = tuple(_condition(one, kinds, namespace) for one in listed)
    refused = next((why for why in (refuses(one.ref) for one in found) if why), "")
    if refused:
        raise ConditionError(f"{WAIT_FOR}: {refused}")
    return found


@lru_cache(maxsize=1000)
def _loaded(text: str) -> Any:
    try:
        return load(text, file=WAIT_FOR)
    except YamlError as error:
        raise ConditionError(f"{WAIT_FOR}: {error}") from error


def _condition(entry: Any, kinds: KindTable, namespace: str) -> Condition:
    if not isinstance(entry, dict) or not entry.get("kind") or not entry.get("name"):
        raise ConditionError(f"{WAIT_FOR}: found {entry!r}; write {{kind: Deployment, name: db, condition: Available}}")
    unknown = sorted(set(entry) - FIELDS)
    if unknown:
        raise ConditionError(f"{WAIT_FOR}: unknown field {unknown[0]!r}; allowed are {', '.join(sorted(FIELDS))}")
    if sum(bool(entry.get(key)) for key in ("condition", "jsonpath", "cel")) > 1:
        raise ConditionError(f"{WAIT_FOR}: give one of condition, jsonpath and cel")
    if entry.get("cel"):
        _program(str(entry["cel"]))
    kind = str(entry["kind"])
    known = sorted({info.group_kind for info in kinds.served.values() if info.kind == kind})
    group = str(entry["group"]) if "group" in entry else (known[0].group if known else "")
    cluster_wide = any(
        not info.namespaced for info in kinds.served.values() if (info.group, info.kind) == (group, kind)
    )
    space = "" if cluster_wide else str(entry.get("namespace") or namespace)
    path, separator, wanted = str(entry.get("jsonpath") or "").rpartition("=")
    if not separator or "=" in path[-1:]:  # no value, or a comparison inside the path
        path, wanted = str(entry.get("jsonpath") or ""), ""
    if path:
        _checked_path(path)
    return Condition(
        ObjectRef(group, kind, space, str(entry["name"])),
        condition=str(entry.get("condition") or ""),
        jsonpath=path,
        value=wanted if separator and path else None,
        cel=str(entry.get("cel") or ""),
        deadline=_duration(entry["deadline"], WAIT_FOR) if entry.get("deadline") else None,
    )


def _checked_path(path: str) -> None:
    try:
        compile_path(path)
    except JsonPathError as error:
        raise ConditionError(f"{WAIT_FOR}: jsonpath: {error}") from error


def _duration(text: Any, where: str) -> timedelta:
    try:
        found = parse_duration(str(text))
    except DurationError as error:
        raise ConditionError(f"{where}: {error}; write 90s or 10m") from error
    if not timedelta(0) < found <= MAX_DEADLINE:
        raise ConditionError(f"{where}: found {str(text)!r}; allowed are more than 0s and at most 720h")
    return found


def gate_deadline(obj: Obj) -> tuple[timedelta, str] | None:
    """How long the gate may wait for this object and what happens then; None: nothing but a report. Raises
    :class:`ConditionError`."""
    annotations = annotations_of(obj)
    text, action = annotations.get(GATE_DEADLINE_KEY), annotations.get(ON_DEADLINE, "wait")
    if action not in ACTIONS:
        raise ConditionError(f"{ON_DEADLINE}: found {action!r}; allowed are {', '.join(ACTIONS)}")
    if text is None:
        return None
    found = _duration(text, GATE_DEADLINE_KEY)
    return None if action == "wait" else (found, action)
