"""Reads ``spec.strategy`` of an ApplicationSet; pure. Rules: ``IsRollingSyncStrategy`` and its kin upstream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from syncline.kube.objects import Obj, annotations_of, dig

EVIDENCE: Final = "syncline.dev/rollout-evidence"
"""Annotation of a set: with ``strict`` a step is healthy only by evidence of its new revisions."""


@dataclass(frozen=True, slots=True)
class Expression:
    """One entry of ``matchExpressions``; operators other than In and NotIn select nothing."""

    key: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a rollout. ``max_update``: a number, a text, or None for all at once."""

    expressions: tuple[Expression, ...]
    max_update: int | str | None


def is_rolling(appset: Obj) -> bool:
    """Return whether the set asks for a RollingSync, with or without steps."""
    strategy = _strategy(appset)
    return strategy.get("type") == "RollingSync" and isinstance(strategy.get("rollingSync"), dict)


def steps_of(appset: Obj) -> tuple[Step, ...]:
    """Return the steps of a RollingSync; empty for other strategies."""
    if not is_rolling(appset):
        return ()
    found = _strategy(appset)["rollingSync"].get("steps")
    return tuple(_step(one) for one in found if isinstance(one, dict)) if isinstance(found, list) else ()


def is_reversed(appset: Obj) -> bool:
    """Return whether Applications are deleted step by step, the last step first."""
    return bool(steps_of(appset)) and str(_strategy(appset).get("deletionOrder") or "").lower() == "reverse"


def is_strict(appset: Obj) -> bool:
    return annotations_of(appset).get(EVIDENCE) == "strict"


def _strategy(appset: Obj) -> Obj:
    found = dig(appset, "spec", "strategy", default={})
    return found if isinstance(found, dict) else {}


def _step(step: Obj) -> Step:
    found: Any = step.get("maxUpdate")
    limit = found if isinstance(found, int | str) and not isinstance(found, bool) else None
    expressions = (one for one in step.get("matchExpressions") or () if isinstance(one, dict))
    return Step(tuple(_expression(one) for one in expressions), limit)


def _expression(one: Obj) -> Expression:
    values = tuple(str(value) for value in one.get("values") or ())
    return Expression(str(one.get("key") or ""), str(one.get("operator") or ""), values)
