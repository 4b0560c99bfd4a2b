"""Reads objects of kinds without a schema: paths, equality and texts of the health tables.

Called by :mod:`syncline.apply.health.table` and the rules beside it. A missing field, null and a field of a non-mapping
are all None. Raises :class:`CannotJudge` only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from syncline.kube.objects import Obj

_STEP = re.compile(r"\['([^']+)'\]|([^.\[\]]+)")


class CannotJudge(ValueError):
    """A needed field is missing or has the wrong type; the text names it."""


@cache
def _steps(path: str) -> tuple[str, ...]:
    """Split ``a.b['c.d/e']`` into a, b, c.d/e."""
    return tuple(quoted or plain for quoted, plain in _STEP.findall(path))


def at(obj: Any, path: str) -> Any:
    """Return the value at a dotted path; a numeric step indexes a list from 0."""
    here = obj
    for step in _steps(path):
        if isinstance(here, Mapping):
            here = here.get(step)
        elif isinstance(here, list) and step.isdigit() and int(step) < len(here):
            here = here[int(step)]
        else:
            return None
    return here


def number(obj: Any, path: str, default: float | None = None) -> float:
    """Return a number. Raises :class:`CannotJudge` if there is neither a number nor a default."""
    value = at(obj, path)
    if value is None and default is not None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise CannotJudge(f"{path}: found {value!r}, must be a number")
    return value


def same(one: Any, other: Any) -> bool:
    """Return whether both are equal and of the same type: true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def shown(value: Any, path: str = "value") -> str:
    """Format a text or number for a message: whole numbers without a point."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(int(value)) if value == int(value) else repr(value)
    raise CannotJudge(f"{path}: found {value!r}, must be a text or a number")


def words(values: Iterable[Any], between: str = ", ") -> str:
    return between.join(shown(value) for value in values)


def conditions(obj: Any, path: str = "status.conditions") -> list[Obj]:
    """Return the conditions in order; other values are skipped."""
    found = at(obj, path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


@dataclass(frozen=True, slots=True)
class _Field:
    """One part of a pattern: the ``allowed`` values (``*``: any) or, with ``differs``, all others."""

    allowed: tuple[str, ...]
    differs: bool = False

    @classmethod
    def parse(cls, text: str) -> _Field:
        differs = text.startswith("!")
        return cls(tuple(text.removeprefix("!").split("|")), differs)

    def fits(self, value: Any) -> bool:
        return self.allowed == ("*",) or (value in self.allowed) != self.differs


@dataclass(frozen=True, slots=True)
class Pattern:
    """The pattern ``TYPE=STATUS/REASON`` of a condition; status and reason are optional. ``*``: any, ``A|B``: one of
    these, ``!A``: any other."""

    type: _Field
    status: _Field
    reason: _Field

    @classmethod
    @cache
    def parse(cls, text: str) -> Pattern:
        head, _, reason = text.partition("=")[2].partition("/")
        return cls(_Field.parse(text.partition("=")[0]), _Field.parse(head or "*"), _Field.parse(reason or "*"))

    def fits(self, condition: Obj) -> bool:
        return (
            self.type.fits(condition.get("type"))
            and self.status.fits(condition.get("status"))
            and self.reason.fits(condition.get("reason"))
        )


def first(found: Sequence[Obj], *patterns: str) -> Obj | None:
    """Return the first condition that matches one of the patterns."""
    wanted = [Pattern.parse(pattern) for pattern in patterns]
    return next((item for item in found if any(one.fits(item) for one in wanted)), None)
