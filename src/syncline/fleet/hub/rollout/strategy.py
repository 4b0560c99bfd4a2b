"""Reads a ``rolloutStrategy``: :func:`strategy_of`. Sizes, deadlines and defaults are upstream's."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from syncline.fleet.hub.rollout.model import DecisionGroup, RolloutError
from syncline.kube.objects import Obj
from syncline.kube.text.durations import DurationError, format_duration, parse_duration

_DEADLINE: Final = re.compile(r"^(([0-9])+[h|m|s])|None$")
"""Upstream's expression: the text must begin like a duration; what follows is left to the parser."""
_FLOAT: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
Size = int | str
"""A number of clusters, or a percentage of them."""


class Kind(StrEnum):
    ALL = "All"
    PROGRESSIVE = "Progressive"
    PER_GROUP = "ProgressivePerGroup"


_FIELDS: Final = {Kind.ALL: "all", Kind.PROGRESSIVE: "progressive", Kind.PER_GROUP: "progressivePerGroup"}


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy as its object says it; sizes are read when the number of clusters is known."""

    kind: Kind
    min_success: timedelta = timedelta()
    deadline: timedelta | None = None
    """None: no deadline."""
    max_failures: Size = 0
    max_concurrency: Size = 0
    mandatory: tuple[Mapping[str, Any], ...] = ()


def in_force(given: Obj) -> Obj | None:
    """Return a ``rolloutStrategy`` as upstream reads it: the block of its type with its defaults; None for an unknown
    type. Raises :class:`RolloutError` for a ``minSuccessTime`` that is no duration."""
    if given.get("type") not in tuple(Kind):
        return None
    kind = Kind(given["type"])
    block = given.get(_FIELDS[kind]) or {}
    time = {"minSuccessTime": format_duration(_duration(str(block.get("minSuccessTime") or "0s")))}
    sizes = {"maxFailures": 0, **({"maxConcurrency": 0} if kind is Kind.PROGRESSIVE else {})}
    return {"type": kind.value, _FIELDS[kind]: {**sizes, **block, **time}}


def strategy_of(given: Obj) -> Strategy:
    """Read a ``rolloutStrategy``. Raises :class:`RolloutError` for an unknown type or a deadline that is no duration;
    an empty block has the defaults."""
    kind = given.get("type")
    if kind not in tuple(Kind):
        raise RolloutError(f"incorrect rollout strategy type {kind or ''}")
    kind = Kind(kind)
    block: Mapping[str, Any] = given.get(_FIELDS[kind]) or {}
    deadline = _deadline(str(block.get("progressDeadline") or ""))
    if kind is Kind.ALL:  # upstream reads no more of it
        return Strategy(kind, deadline=deadline)
    return Strategy(
        kind,
        min_success=_duration(str(block.get("minSuccessTime") or "0s")),
        deadline=deadline,
        max_failures=block.get("maxFailures") or 0,
        max_concurrency=block.get("maxConcurrency") or 0,
        mandatory=tuple(one for one in block.get("mandatoryDecisionGroups") or () if isinstance(one, Mapping)),
    )


def _deadline(text: str) -> timedelta | None:
    if text in ("", "None"):
        return None
    if not _DEADLINE.search(text):
        raise RolloutError("invalid timeout format")
    return _duration(text)


def _duration(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except DurationError as error:
        raise RolloutError(str(error)) from error


def size_of(size: Size, total: int, default: int) -> int:
    """Return how many of ``total`` clusters a size means: a percentage is rounded up, and ``default`` stands for what
    is not positive or more than all. Raises :class:`RolloutError`."""
    found = math.ceil(_percent(size) / 100 * total) if isinstance(size, str) else size
    return found if 0 < found <= total else default


def _percent(text: str) -> float:
    if not text.endswith("%"):
        raise RolloutError(f"'{text}' is an invalid maximum threshold value: string is not a percentage")
    number = text[:-1]
    if not _FLOAT.fullmatch(number) or not math.isfinite(float(number)):
        raise RolloutError(f'strconv.ParseFloat: parsing "{number}": invalid syntax')
    return float(number)


def mandatory_first(
    groups: Sequence[DecisionGroup], wanted: Iterable[Mapping[str, Any]]
) -> tuple[list[DecisionGroup], list[DecisionGroup]]:
    """Return the mandatory groups and the others, both by index. A name means all groups of that name, an index counts
    where there is no name; groups that do not exist are passed over."""
    names = {str(one["groupName"]) for one in wanted if one.get("groupName")}
    indices = {int(one.get("groupIndex") or 0) for one in wanted if not one.get("groupName")}
    ordered = sorted(groups, key=lambda group: group.key)
    chosen = [group for group in ordered if group.key.name in names or group.key.index in indices]
    return chosen, [group for group in ordered if group not in chosen]
