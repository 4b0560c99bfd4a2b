"""Evaluations that may take long: a little is done at once, the rest beside the loop that serves the API.

Expressions of people are judged while a request is answered. Each has a budget that bounds it (``cel/metering``), but a
budget of seconds is too much for a loop that others wait for. So a request may spend :data:`STEPS_HERE` itself; the
evaluation that would take more stops and becomes a :class:`~syncline.kube.transport.outbound.Computation`, which
another process evaluates, and the request runs again with its answer. Where no :class:`Here` is set (virtual time, a
rehearsal, that other process), everything is evaluated in place: the answer is the same.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

import msgspec

from syncline.kube.cel.metering import Meter
from syncline.kube.transport.outbound import Awaiting, Computation, Outcome

__all__ = [
    "BOUND",
    "Here",
    "Overtaken",
    "Slow",
    "TooLarge",
    "TooLong",
    "aside",
    "elsewhere",
    "keeping_to",
    "key_of",
    "left_aside",
    "weigh",
]

STEPS_HERE = 2_000
"""Of one run of a request, on the loop: two milliseconds, at most five."""
TRIED_AGAIN = 20
"""What took too long here is given away at once so often, before it is tried here again."""
MAX_SLOW = 1_000
"""Evaluations of which that is remembered."""

LARGE_BYTES = 12_000
"""Of encoded objects that one request reads or writes on the loop: a microsecond for a byte at the worst."""

T = TypeVar("T")
P = ParamSpec("P")


class TooLarge(BaseException):
    """The request has to do with more than is worked on here: it begins again as one that leaves parts aside."""


class Overtaken(Awaiting):
    """Another request changed the object while the request worked beside the loop: it begins again."""

    def __init__(self) -> None:
        super().__init__(())


class TooLong(BaseException):
    """More steps are needed than are left here. Nothing in an expression or around it can absorb it."""


class Parts(Protocol):
    """A request that leaves parts aside (``base/strand.py``)."""

    def aside(self, function: Callable[[], T]) -> T: ...


class Answers(Protocol):
    """What was found out elsewhere, by key."""

    def knows(self, key: str) -> bool: ...

    def answer(self, key: str) -> Outcome: ...


class Slow:
    """What took too long here lately, by its name and whose request it was: nothing waits for what others send."""

    def __init__(self) -> None:
        self._left: dict[tuple[str, str], int] = {}

    def note(self, share: str, name: str) -> None:
        self._left[share, name] = TRIED_AGAIN
        if len(self._left) > MAX_SLOW:
            del self._left[next(iter(self._left))]

    def skips(self, share: str, name: str) -> bool:
        """Whether it is given away without a try, this time."""
        left = self._left.pop((share, name), 0)
        if left > 0:
            self._left[share, name] = left - 1
        return left > 0


@dataclass(slots=True)
class Here:
    """What one run of a request may still do itself. ``answers``: what earlier runs had done elsewhere; ``share``:
    whose request it is; ``slow`` is shared by all requests."""

    answers: Answers | None = None
    share: str = ""
    slow: Slow = field(default_factory=Slow)
    meter: Meter = field(default_factory=lambda: Meter(STEPS_HERE))
    """Of the innermost evaluation: one within another one spends of the same."""
    parts: Parts | None = None
    """What leaves large parts aside; None: there are none."""
    weighed: int = 0
    """Bytes of objects that the request has to do with."""


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


def weigh(size: int) -> None:
    """The request has to do with ``size`` bytes more: raises :class:`TooLarge` where that is too much for the loop."""
    here = _HERE.get()
    if here is not None and here.parts is None:
        here.weighed += size
        if here.weighed > LARGE_BYTES:
            raise TooLarge


def left_aside() -> bool:
    """Whether others may have changed something since this request began."""
    here = _HERE.get()
    return here is not None and here.parts is not None


def aside(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """``function(*arguments)``, beside the loop where the request is large.

    Only for what reads only its arguments, and changes only what this request owns.
    """
    here = _HERE.get()
    if here is None or here.parts is None:
        return function(*arguments, **named)
    return here.parts.aside(partial(function, *arguments, **named))


def key_of(name: str, *about: Any) -> str:
    """What an evaluation is about, as a key: equal data, equal key."""
    return f"{name}/{hashlib.sha256(msgspec.json.encode(about)).hexdigest()}"


def elsewhere(name: str, key: Callable[[], str], here: Callable[[], T], computation: Callable[[], Computation]) -> T:
    """What ``here`` returns, or what ``computation`` returned elsewhere; raises :class:`Awaiting` until it has.

    ``name`` says what is evaluated, ``key`` also on what.
    """
    bound = _HERE.get()
    if bound is None:
        return here()
    answers = bound.answers
    if answers is not None:
        known = key()
        if answers.knows(known):
            found: T = _taken(answers.answer(known))
            return found
    if bound.slow.skips(bound.share, name):
        raise Awaiting(((key(), computation()),))
    token = BOUND.set(bound)
    try:
        return here()
    except TooLong:
        bound.slow.note(bound.share, name)
        raise Awaiting(((key(), computation()),)) from None
    finally:
        BOUND.reset(token)


def _taken(outcome: Outcome) -> Any:
    if outcome.error is not None:
        raise outcome.error
    return outcome.value
