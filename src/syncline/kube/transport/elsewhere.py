"""Runs evaluations that may take long in another process, off the loop that serves the API: :func:`elsewhere`.

Expressions of users are evaluated while a request is handled. Each has a budget (``cel/metering``), but seconds are too
long for a loop that other requests wait for. So a request may spend :data:`STEPS_HERE` itself; an evaluation that needs
more stops and becomes a :class:`~syncline.kube.transport.outbound.Computation` in another process, and the request runs
again with its result. Without a :class:`Here` (virtual time, a rehearsal, that other process) everything is evaluated
in place, with the same result.
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

STEPS_HERE = 2_000
"""Steps of one run of a request on the loop: two milliseconds, at most five."""
TRIED_AGAIN = 20
"""How often a slow evaluation is moved to the other process at once, before it is tried on the loop again."""
MAX_SLOW = 1_000
"""The most evaluations that are remembered as slow."""

LARGE_BYTES = 12_000
"""Encoded objects that one request reads or writes on the loop: at worst a microsecond per byte."""

T = TypeVar("T")
P = ParamSpec("P")


class TooLarge(BaseException):
    """The request handles too much data for the loop: it starts again as one that runs parts in a thread."""


class Overtaken(Awaiting):
    """Another request changed the object while this one worked in a thread: it starts again."""

    def __init__(self) -> None:
        super().__init__(())


class TooLong(BaseException):
    """An evaluation needs more steps than are left on the loop. No expression may catch it."""


class Parts(Protocol):
    """A request that runs parts in a thread (``base/strand.py``)."""

    def aside(self, function: Callable[[], T]) -> T: ...


class Answers(Protocol):
    """Results of computations in the other process, by key."""

    def knows(self, key: str) -> bool: ...

    def answer(self, key: str) -> Outcome: ...


class Slow:
    """The evaluations that were too slow lately, by name and share (the user that sent the request)."""

    def __init__(self) -> None:
        self._left: dict[tuple[str, str], int] = {}

    def note(self, share: str, name: str) -> None:
        self._left[share, name] = TRIED_AGAIN
        if len(self._left) > MAX_SLOW:
            del self._left[next(iter(self._left))]

    def skips(self, share: str, name: str) -> bool:
        """Return True if the evaluation is to be moved to the other process at once."""
        left = self._left.pop((share, name), 0)
        if left > 0:
            self._left[share, name] = left - 1
        return left > 0


@dataclass(slots=True)
class Here:
    """The budget of one run of a request. ``answers``: results of earlier computations; ``share``: the user that sent
    the request; ``slow`` is shared by all requests."""

    answers: Answers | None = None
    share: str = ""
    slow: Slow = field(default_factory=Slow)
    meter: Meter = field(default_factory=lambda: Meter(STEPS_HERE))
    """The steps of the innermost evaluation; nested ones share it."""
    parts: Parts | None = None
    """Runs large parts in a thread; None: everything runs on the loop."""
    weighed: int = 0
    """Bytes of the objects that the request handles."""


_HERE: ContextVar[Here | None] = ContextVar("here", default=None)
BOUND: ContextVar[Here | None] = ContextVar("bound", default=None)
"""Set only within :func:`elsewhere`: other evaluations are never interrupted."""


@contextlib.contextmanager
def keeping_to(here: Here) -> Iterator[None]:
    """Apply the budget ``here`` to evaluations within the context."""
    token = _HERE.set(here)
    try:
        yield
    finally:
        _HERE.reset(token)


def weigh(size: int) -> None:
    """Count ``size`` more bytes of the request; raise :class:`TooLarge` if they are too many for the loop."""
    here = _HERE.get()
    if here is not None and here.parts is None:
        here.weighed += size
        if here.weighed > LARGE_BYTES:
            raise TooLarge


def left_aside() -> bool:
    """Return True if parts of the request ran in a thread, so that objects may have changed meanwhile."""
    here = _HERE.get()
    return here is not None and here.parts is not None


def aside(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Return ``function(*arguments)``, run in a thread if the request is large.

    The function may read only its arguments, and change only objects that this request owns.
    """
    here = _HERE.get()
    if here is None or here.parts is None:
        return function(*arguments, **named)
    return here.parts.aside(partial(function, *arguments, **named))


def key_of(name: str, *about: Any) -> str:
    """Return a key for an evaluation on the given data: equal data, equal key."""
    return f"{name}/{hashlib.sha256(msgspec.json.encode(about)).hexdigest()}"


def elsewhere(name: str, key: Callable[[], str], here: Callable[[], T], computation: Callable[[], Computation]) -> T:
    """Return the result of ``here``, or of ``computation`` in another process; raise :class:`Awaiting` until it is
    known.

    ``name`` identifies the expression, ``key`` also its input.
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
