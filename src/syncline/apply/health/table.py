"""The language of the health tables: steps, tried in order until one returns a health.

:mod:`syncline.apply.health.known` parses tables with :func:`parse_steps` and calls :func:`judge`.
``docs/health-tables.md`` describes the language with examples. For a rule beyond the steps, ``rule: NAME`` calls a
function of ``apply/health/rules``. Pure; never reads a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from syncline.apply.health.reading import CannotJudge, Pattern, at, conditions, first, same, shown, words
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj

Settings: TypeAlias = Mapping[str, Any]
Rule: TypeAlias = Callable[[Obj, Settings], Health | None]
"""A function for a rule beyond the steps: object and the step's settings; None: continue with the next step."""

_SLOT = re.compile(r"\{([^{}]*)\}")
_OPERATORS = (
    "not", "present", "starts", "equals", "differs", "above", "below", "conditions", "lacks",
)  # fmt: skip


class TableError(ValueError):
    """A table violates the language; the text quotes it."""


@dataclass(frozen=True, slots=True)
class _Sight:
    """The input of a step: an object, or one item of it (then ``^path`` reaches the object)."""

    obj: Obj
    item: Any
    value: Any = None

    def read(self, path: str) -> Any:
        if path == "value":
            return self.value
        return at(self.obj, path[1:]) if path.startswith("^") else at(self.item, path)


@dataclass(frozen=True, slots=True)
class _Say:
    status: HealthStatus
    template: str

    @classmethod
    @cache
    def parse(cls, text: str) -> _Say:
        head, _, message = text.partition(" ")
        if head not in set(HealthStatus):
            raise TableError(f"{text!r}: must begin with one of {', '.join(s for s in HealthStatus if s)}")
        return cls(HealthStatus(head), message)

    def health(self, sight: _Sight) -> Health:
        slots = _SLOT.findall(self.template)
        alone = len(slots) == 1 and self.template == "{" + slots[0] + "}"
        if alone and _filled(sight, slots[0]) is None:
            return Health(self.status)
        return Health(self.status, _SLOT.sub(lambda slot: _slot_text(sight, slot.group(1)), self.template))


def _filled(sight: _Sight, slot: str) -> Any:
    """Evaluate ``a.b or c or 'text'``: the first value that exists."""
    for choice in slot.split(" or "):
        value = choice[1:-1] if choice.startswith("'") else sight.read(choice)
        if value is not None:
            return value
    return None


def _slot_text(sight: _Sight, slot: str) -> str:
    value = _filled(sight, slot)
    return words(value) if isinstance(value, list) else shown(value, slot)


@dataclass(frozen=True, slots=True)
class _Test:
    path: str
    operator: str
    operand: Any

    def holds(self, sight: _Sight) -> bool:
        value = sight.read(self.path)
        operand = self.operand
        match self.operator:
            case "is":
                return any(same(value, one) for one in operand)
            case "not":
                return not any(same(value, one) for one in operand)
            case "present":
                return (value is not None) is bool(operand)
            case "starts":
                return isinstance(value, str) and value.startswith(operand)
            case "equals" | "differs":
                return same(value, sight.read(operand)) == (self.operator == "equals")
            case "conditions" | "lacks":
                found = conditions(sight.item, self.path)
                there = [first(found, one) is not None for one in operand]
                return all(there) if self.operator == "conditions" else not any(there)
            case _:
                return _ordered(self.operator, value, sight.read(operand) if isinstance(operand, str) else operand)


def _ordered(operator: str, value: Any, limit: Any) -> bool:
    """Compare numbers with numbers and texts with texts (times of one zone sort as texts); else False."""
    if isinstance(value, str) and isinstance(limit, str):
        return value > limit if operator == "above" else value < limit
    if any(isinstance(one, bool) or not isinstance(one, (int, float)) for one in (value, limit)):
        return False
    return bool(value > limit) if operator == "above" else bool(value < limit)


@dataclass(frozen=True, slots=True)
class _When:
    """All tests must hold, and one group of ``any_of`` if given."""

    tests: tuple[_Test, ...]
    any_of: tuple[_When, ...] = ()

    def holds(self, sight: _Sight) -> bool:
        return all(test.holds(sight) for test in self.tests) and (
            not self.any_of or any(group.holds(sight) for group in self.any_of)
        )


@dataclass(frozen=True, slots=True)
class _Walk:
    """Conditions in order (or from the last): the first that matches a case with a result decides; a case without
    outcome skips the condition."""

    path: str
    cases: tuple[tuple[Pattern, _Say | None], ...]
    backwards: bool = False

    def health(self, sight: _Sight) -> Health | None:
        found = conditions(sight.item, self.path)
        for item in reversed(found) if self.backwards else found:
            say = next((say for pattern, say in self.cases if pattern.fits(item)), None)
            if say is not None:
                return say.health(_Sight(sight.obj, item))
        return None


@dataclass(frozen=True, slots=True)
class _Choose:
    """The outcome of the value, ``otherwise`` for other values; no result for a missing value."""

    path: str
    cases: Mapping[str, _Say]
    otherwise: _Say | None

    def health(self, sight: _Sight) -> Health | None:
        value = sight.read(self.path)
        if value is None:
            return None
        key = str(value).lower() if isinstance(value, bool) else str(value)
        say = self.cases.get(key, self.otherwise)
        return say.health(_Sight(sight.obj, sight.item, value)) if say is not None else None


@dataclass(frozen=True, slots=True)
class _Guard:
    when: _When
    steps: tuple[Step, ...]

    def health(self, sight: _Sight) -> Health | None:
        return _first(self.steps, sight) if self.when.holds(sight) else None


@dataclass(frozen=True, slots=True)
class _Some:
    """The first item of a list (or value of a mapping) for which the tests hold."""

    path: str
    when: _When
    steps: tuple[Step, ...]

    def health(self, sight: _Sight) -> Health | None:
        found = sight.read(self.path)
        items = [found[key] for key in sorted(found)] if isinstance(found, dict) else found
        for item in items if isinstance(items, list) else []:
            inner = _Sight(sight.obj, item)
            if self.when.holds(inner):
                return _first(self.steps, inner)
        return None


@dataclass(frozen=True, slots=True)
class _Call:
    rule: Rule
    settings: Settings

    def health(self, sight: _Sight) -> Health | None:
        return self.rule(sight.obj, self.settings)


Step: TypeAlias = _Say | _Walk | _Choose | _Guard | _Some | _Call


def _first(steps: tuple[Step, ...], sight: _Sight) -> Health | None:
    for step in steps:
        health = step.health(sight)
        if health is not None:
            return health
    return None


def judge(steps: tuple[Step, ...], obj: Obj) -> Health:
    """Return the first health of a step; without one, no status and no message."""
    try:
        return _first(steps, _Sight(obj, obj)) or Health(HealthStatus.UNSTATED)
    except CannotJudge as error:
        return Health(HealthStatus.UNKNOWN, str(error), failed=True)


def parse_steps(value: Any, rules: Mapping[str, Rule]) -> tuple[Step, ...]:
    """Parse the steps of one kind from a table's JSON value. Raises :class:`TableError`."""
    listed = value if isinstance(value, list) else [value]
    return tuple(_parse(step, rules) for step in listed)


def _parse(step: Any, rules: Mapping[str, Rule]) -> Step:
    match step:
        case str():
            return _Say.parse(step)
        case {"rule": str(name), **rest}:
            if name not in rules:
                raise TableError(f"rule {name!r} is not known; there are {', '.join(sorted(rules))}")
            return _Call(rules[name], _settings(rest))
        case {"conditions": dict(cases), **rest}:
            return _walk(cases, _settings(rest), backwards=False)
        case {"conditions from the last": dict(cases), **rest}:
            return _walk(cases, _settings(rest), backwards=True)
        case {"value": str(path), "is": dict(cases), **rest}:
            otherwise = rest.get("else")
            return _Choose(path, _choices(cases), _Say.parse(otherwise) if otherwise else None)
        case {"some": str(path), "when": dict(tests), "then": then}:
            return _Some(path, _when(tests), parse_steps(then, rules))
        case {"when": dict(tests), "then": then}:
            return _Guard(_when(tests), parse_steps(then, rules))
        case _:
            raise TableError(f"{step!r} is no step; see docs/health-tables.md")


def _settings(rest: Mapping[object, object]) -> Settings:
    return {str(name): value for name, value in rest.items()}


def _walk(cases: Mapping[str, str | None], rest: Settings, *, backwards: bool) -> _Walk:
    parsed = tuple((Pattern.parse(pattern), _Say.parse(say) if say else None) for pattern, say in cases.items())
    return _Walk(rest.get("of", "status.conditions"), parsed, backwards)


def _choices(cases: Mapping[str, str]) -> dict[str, _Say]:
    return {name: _Say.parse(say) for names, say in cases.items() for name in names.split("|")}


def _when(tests: Mapping[str, Any]) -> _When:
    groups = tuple(_when(group) for group in tests.get("any", ()))
    return _When(
        tuple(test for path, wanted in tests.items() if path != "any" for test in _tests(path, wanted)), groups
    )


def _tests(path: str, wanted: Any) -> list[_Test]:
    if not isinstance(wanted, dict):
        return [_Test(path, "is", wanted if isinstance(wanted, list) else [wanted])]
    unknown = sorted(set(wanted) - set(_OPERATORS))
    if unknown:
        raise TableError(f"{path}: {unknown[0]!r} is no test; there are {', '.join(_OPERATORS)}")
    several = ("not", "conditions", "lacks")
    return [
        _Test(path, name, operand if name not in several or isinstance(operand, list) else [operand])
        for name, operand in wanted.items()
    ]
