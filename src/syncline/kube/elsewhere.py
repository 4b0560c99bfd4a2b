"""Evaluations that may take long: a little is done at once, the rest beside the loop that serves the API.

Expressions of people are judged while a request is answered. Each has a budget that bounds it (``cel/metering``), but a
budget of seconds is too much for a loop that others wait for. So a request may spend :data:`STEPS_HERE` itself; the
evaluation that would take more is given up and becomes an :class:`~syncline.kube.outcall.Errand`, data that another
process evaluates, and the request runs again with its answer. Where no :class:`Here` is set (virtual time, a rehearsal,
that other process), everything is evaluated in place: the answer is the same.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import msgspec

from syncline.kube.cel.metering import Meter
from syncline.kube.outcall import Awaiting, Errand, Outcome

__all__ = ["BOUND", "STEPS_HERE", "Here", "TooLong", "elsewhere", "keeping_to", "key_of"]

STEPS_HERE = 5_000
"""Of one run of a request, on the loop: five milliseconds, at most twelve."""

T = TypeVar("T")


class TooLong(BaseException):
    """More steps are needed than are left here. Nothing in an expression or around it can absorb it."""


class Answers(Protocol):
    """What was found out elsewhere, by key."""

    def knows(self, key: str) -> bool: ...

    def answer(self, key: str) -> Outcome: ...


@dataclass(slots=True)
class Here:
    """What one run of a request may still do itself; ``answers``: what earlier runs had done elsewhere."""

    answers: Answers | None = None
    meter: Meter = field(default_factory=lambda: Meter(STEPS_HERE))
    """Of the innermost evaluation: one within another one spends of the same."""


_HERE: ContextVar[Here | None] = ContextVar("here", default=None)
BOUND: ContextVar[Here | None] = ContextVar("bound", default=None)
"""Set only within :func:`elsewhere`: what cannot be done elsewhere is never given up."""


@contextlib.contextmanager
def keeping_to(here: Here) -> Iterator[None]:
    """Within it evaluations keep to what is left ``here``."""
    token = _HERE.set(here)
    try:
        yield
    finally:
        _HERE.reset(token)


def key_of(name: str, *about: Any) -> str:
    """What an evaluation is about, as a key: equal data, equal key."""
    return f"{name}/{hashlib.sha256(msgspec.json.encode(about)).hexdigest()}"


def elsewhere(key: Callable[[], str], here: Callable[[], T], errand: Callable[[], Errand]) -> T:
    """What ``here`` returns, or what ``errand`` returned elsewhere; raises :class:`Awaiting` until it has."""
    bound = _HERE.get()
    if bound is None:
        return here()
    answers = bound.answers
    if answers is not None:
        known = key()
        if answers.knows(known):
            found: T = _taken(answers.answer(known))
            return found
    token = BOUND.set(bound)
    try:
        return here()
    except TooLong:
        raise Awaiting(((key(), errand()),)) from None
    finally:
        BOUND.reset(token)


def _taken(outcome: Outcome) -> Any:
    if outcome.error is not None:
        raise outcome.error
    return outcome.value
