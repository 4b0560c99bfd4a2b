"""``syncline.dev/wait-for`` and gate deadlines: parses and evaluates the conditions in annotations; pure.

Called before a wave runs and after running tasks were judged. A condition reads one object of the cluster: that it
exists and is healthy, that a condition of its status is True, or a JSONPath or CEL expression on it. The project is
checked before any lookup; no text contains a value from the object. The languages are imported with the first
expression, as most Applications have none. A gate (``{gate: NAME, name}``) reads what follows from one object, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from syncline.apply.health import Health, HealthStatus
from syncline.base.clock import time_or_none
from syncline.gitops.gates.checks import GATES, Hidden, Known
from syncline.gitops.sync.kinds import KindTable
from syncline.gitops.sync.phases import SyncPhase
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig
from syncline.kube.text.durations import DurationError, parse_duration
from syncline.kube.yaml.loading import YamlError, load

if TYPE_CHECKING:
    from syncline.kube.cel.program import Program

WAIT_FOR = "syncline.dev/wait-for"
GATE_DEADLINE_KEY = "syncline.dev/gate-deadline"
ON_DEADLINE = "syncline.dev/on-deadline"
"""``wait`` (default: only report it as overdue), ``fail`` or ``continue``."""
ACTIONS = ("wait", "fail", "continue")
GATE_FIELDS = {"gate", "name", "namespace", "deadline"}
FIELDS = {"group", "kind", "name", "namespace", "condition", "jsonpath", "cel", "deadline"}
MAX_WAITS = 50
"""Limit of conditions on one object, above any list that a person writes."""
MAX_ALL_WAITS = 500
"""Limit of conditions in all manifests of an operation, as each reconcile evaluates them."""
MAX_EXPRESSION = 2_000
"""Limit of characters in one expression."""
MAX_SHOWN = 200
"""Limit of characters of an expression in a message."""
MAX_CONDITION_STEPS, MAX_LOOK_STEPS = 5_000, 10_000
"""Budgets of one expression and of one reconcile, in steps of about a microsecond: evaluation runs on the loop that
serves the API. A test of ten status conditions takes a hundred."""
JUDGED_AGAIN = "; it is judged again at "
RETRY_S = 60.0
"""Seconds without evaluation after an expression exceeded its budget."""
MAX_TEXT = 16_384
"""Limit of characters in the annotation."""
MAX_DEADLINE = timedelta(days=30)


class ConditionError(ValueError):
    """An invalid annotation; the text names it, the value found and the allowed values."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition for applying an object. ``deadline`` None: no limit."""

    ref: ObjectRef
    condition: str = ""
    jsonpath: str = ""
    value: str | None = None
    cel: str = ""
    deadline: timedelta | None = None
    gate: str = ""
    """Name of a gate; ``ref`` is its subject."""
    exists: bool = False
    """Whether the object's existence is enough."""

    def problem(
        self,
        obj: Obj | None,
        health: Callable[[Obj], Health | None],
        steps: Steps | None = None,
        *,
        unread: str = "",
        known: Known | None = None,
        now: datetime | None = None,
    ) -> str:
        """Return why the condition does not hold yet; empty if it does. ``unread``: why the object cannot be read;
        ``known``: what a gate looks at, ``now``: when. Raises :class:`OutOfSteps` if an expression exceeds ``steps``
        (None: the budget of one condition)."""
        if self.gate and known is not None:
            return self._by_gate(known, now)
        if unread:
            return f"{self.ref} may not be read: {unread}"
        if obj is None or self.exists:
            return f"{self.ref} is not there" if obj is None else ""
        if self.condition:
            listed = dig(obj, "status", "conditions", default=[])
            named = (one for one in listed if isinstance(one, dict) and one.get("type") == self.condition)
            held = next(named, {}).get("status") == "True"
            return "" if held else f"condition {self.condition} of {self.ref} is not True"
        if self.jsonpath:
            return self._by_path(obj, steps or Steps())
        if self.cel:
            return self._by_cel(obj, steps or Steps())
        judged = health(obj)
        good = judged is None or judged.status is HealthStatus.HEALTHY
        return "" if good or judged is None else f"{self.ref} is {judged.status}"

    def _by_gate(self, known: Known, now: datetime | None) -> str:
        try:
            problem = GATES[self.gate].problem(self.ref, known, now)
        except Hidden as hidden:
            problem = str(hidden)
        return f"gate {self.gate}: {problem}" if problem else ""

    def _by_path(self, obj: Obj, steps: Steps) -> str:
        from syncline.kube.text.jsonpath import JsonPathError, TooManySteps, compile_path

        limit = steps.limit
        try:
            found = compile_path(self.jsonpath).render(obj, limit=limit, spent=steps.spend)
        except TooManySteps:
            raise OutOfSteps(self.ref, f"jsonpath {self.jsonpath}", limit) from None
        except JsonPathError:  # its text may quote a value
            return f"{self.jsonpath} of {self.ref} cannot be evaluated"
        if self.value is None:
            return "" if found else f"{self.jsonpath} of {self.ref} is empty"
        return "" if found == self.value else f"{self.jsonpath} of {self.ref} is not {self.value!r}"

    def _by_cel(self, obj: Obj, steps: Steps) -> str:
        from syncline.kube.cel.program import CostExceeded
        from syncline.kube.cel.values import EvaluationError

        limit = steps.limit
        try:
            found = _program(self.cel).evaluate({"object": obj}, steps.spend, limit=limit)
        except CostExceeded:
            raise OutOfSteps(self.ref, f"cel {self.cel}", limit) from None
        except EvaluationError:  # its text may quote a value
            return f"{self.cel} of {self.ref} cannot be evaluated"
        return "" if found is True else f"{self.cel} of {self.ref} is not true"


def seen_by(find: Callable[[ObjectRef], Obj | None], unread: Callable[[ObjectRef], str]) -> Known:
    """Return how a gate finds objects: what may not be read is not absent."""

    def known(ref: ObjectRef) -> Obj | None:
        if why := unread(ref):
            raise Hidden(f"{ref} may not be read: {why}")
        return find(ref)

    return known


@dataclass(frozen=True, slots=True)
class WaveGate:
    """Something that holds the waves after ``wave`` of ``phase`` though it is no task."""

    who: ObjectRef
    """The Subscription, or the Job that this replaces."""
    phase: SyncPhase
    wave: int
    condition: Condition
    unserved: str = ""
    """Why the object of the condition cannot be named yet."""
    refused: str = ""
    """Why nothing may be applied: the annotation is invalid, or the project does not permit its object."""
    goes_on: bool = False
    """At the deadline the operation goes on instead of failing."""
    to_end: bool = False
    """The end of the operation is held, too."""


class Steps:
    """The remaining budget of all expressions of one reconcile; a step is about a microsecond."""

    __slots__ = ("left",)

    def __init__(self, left: int = MAX_LOOK_STEPS) -> None:
        self.left = left

    @property
    def limit(self) -> int:
        """Return the budget of the next expression."""
        return max(min(self.left, MAX_CONDITION_STEPS), 0)

    def spend(self, steps: int) -> None:
        self.left -= steps


class OutOfSteps(ConditionError):
    """A condition was not evaluated: its expression, or those before it, exceeded the budget. The text says which."""

    def __init__(self, ref: ObjectRef, expression: str, limit: int) -> None:
        shown = expression if len(expression) <= MAX_SHOWN else f"{expression[:MAX_SHOWN]}…"
        of_one = f"one expression may take {MAX_CONDITION_STEPS} steps"
        of_all = f"all expressions of one look may take {MAX_LOOK_STEPS} steps together"
        super().__init__(f"{shown} of {ref} takes too long: {of_one if limit == MAX_CONDITION_STEPS else of_all}")


def rests_until(message: str) -> datetime | None:
    """Return until when evaluation is paused, by the message of an operation; None: it is not."""
    return time_or_none(message.rpartition(JUDGED_AGAIN)[2]) if JUDGED_AGAIN in message else None


@lru_cache(maxsize=1000)
def _compiled(text: str) -> Program | str:
    """Return the compiled expression or its error; both are cached."""
    from syncline.kube.cel.nodes import CelError
    from syncline.kube.cel.program import compile_program
    from syncline.kube.cel.types import DYN

    try:
        return compile_program(text, {"object": DYN})
    except CelError as error:
        return str(error)


def _program(text: str) -> Program:
    found = _compiled(text) if len(text) <= MAX_EXPRESSION else _too_long(text)
    if isinstance(found, str):
        raise ConditionError(f"{WAIT_FOR}: cel: {found}")
    return found


def _too_long(text: str) -> str:
    return f"found {len(text)} characters; at most {MAX_EXPRESSION}"


def waits_of(obj: Obj, kinds: KindTable, namespace: str, refuses: Callable[[ObjectRef], str]) -> tuple[Condition, ...]:
    """Return the conditions in an object's annotation. Raises :class:`ConditionError`, also if the project ``refuses``
    a referenced object."""
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
    refused = next((why for why in (refuses(ref) for one in found for ref in _named(one)) if why), "")
    if refused:
        raise ConditionError(f"{WAIT_FOR}: {refused}")
    return found


def _loaded(text: str) -> Any:
    value, problem = _read(text)
    if problem:
        raise ConditionError(f"{WAIT_FOR}: {problem}")
    return value


@lru_cache(maxsize=1000)
def _read(text: str) -> tuple[Any, str]:
    try:
        return load(text, file=WAIT_FOR), ""
    except YamlError as error:
        return None, str(error)


def _named(condition: Condition) -> tuple[ObjectRef, ...]:
    """Return the objects that a project has to permit."""
    ref = condition.ref
    return GATES[condition.gate].named(ref.name, ref.namespace) if condition.gate else (ref,)


def _gate(entry: dict[str, Any], namespace: str) -> Condition:
    name = str(entry["gate"])
    if name not in GATES:
        raise ConditionError(f"{WAIT_FOR}: gate: found {name[:80]!r}; allowed are {', '.join(sorted(GATES))}")
    unknown = sorted(set(entry) - GATE_FIELDS)
    if unknown:
        fields = ", ".join(sorted(GATE_FIELDS))
        raise ConditionError(f"{WAIT_FOR}: unknown field {unknown[0]!r} of a gate; allowed are {fields}")
    if not entry.get("name"):
        raise ConditionError(f"{WAIT_FOR}: found {entry!r}; write {{gate: {name}, name: NAME}}")
    space = str(entry.get("namespace") or namespace) if GATES[name].namespaced else ""
    deadline = _duration(entry["deadline"], WAIT_FOR) if entry.get("deadline") else None
    return Condition(GATES[name].named(str(entry["name"]), space)[0], gate=name, deadline=deadline)


def _condition(entry: Any, kinds: KindTable, namespace: str) -> Condition:
    if isinstance(entry, dict) and entry.get("gate"):
        return _gate(entry, namespace)
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
    groups = kinds.groups_of.get(kind, ())
    group = str(entry["group"]) if "group" in entry else (groups[0] if groups else "")
    space = "" if kinds.namespaced(GroupKind(group, kind)) is False else str(entry.get("namespace") or namespace)
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
    if len(path) > MAX_EXPRESSION:
        raise ConditionError(f"{WAIT_FOR}: jsonpath: {_too_long(path)}")
    from syncline.kube.text.jsonpath import JsonPathError, compile_path

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


def is_conditioned(annotations: Mapping[str, str]) -> bool:
    """Return whether an object's annotations have conditions or deadlines."""
    return WAIT_FOR in annotations or GATE_DEADLINE_KEY in annotations or ON_DEADLINE in annotations


def gate_deadline(obj: Obj) -> tuple[timedelta, str] | None:
    """Return the gate's deadline for this object and the action then; None: only report it. Raises
    :class:`ConditionError`."""
    annotations = annotations_of(obj)
    text, action = annotations.get(GATE_DEADLINE_KEY), annotations.get(ON_DEADLINE, "wait")
    if action not in ACTIONS:
        raise ConditionError(f"{ON_DEADLINE}: found {action!r}; allowed are {', '.join(ACTIONS)}")
    if text is None:
        return None
    found = _duration(text, GATE_DEADLINE_KEY)
    return None if action == "wait" else (found, action)
