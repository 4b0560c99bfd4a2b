"""Shares scarce resources among threads: render workers, plugins, and the interpreter itself. :class:`Turns`.

Used by ``sources/workers/pool.py`` and ``sources/rendering/plugin_run.py`` for their children, and by
``assembly/sources/reading.py`` for the interpreter. Slots are shared fairly by project, and no project or source takes
all (``base/places.py``). A thread that waits for a remote or a child gives up its slot at the interpreter meanwhile
(:func:`away`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar

from syncline.base.places import Crowded, Limits, Places, Share, Ticket
from syncline.sources.errors import Problem, SourceError
from syncline.sources.workers.read_scope import current


class Turns:
    """The slots of one resource. Thread-safe."""

    def __init__(self, what: str, limits: Limits) -> None:
        self._what = what
        self._places = Places(limits)
        self._changed = threading.Condition()

    def counts(self) -> dict[str, int]:
        """Return how many threads work and wait."""
        with self._changed:
            return self._places.counts()

    @contextlib.contextmanager
    def turn(self, source: str = "") -> Iterator[None]:
        """Hold a slot until the context ends; see :meth:`enter`."""
        ticket = self.enter(source)
        try:
            yield
        finally:
            self.leave(ticket)

    def enter(self, source: str = "") -> Ticket:
        """Take a slot for the project of the current read. Raises :class:`SourceError` if none is free in time."""
        here = current()
        shares: tuple[Share, ...] = (("project", here.project), *((("source", source),) if source else ()))
        ticket = Ticket(shares)
        with self._changed:
            try:
                self._places.ask(ticket)
            except Crowded as error:
                raise SourceError(Problem.UNREACHABLE, f"no place for {self._what}: {error}") from None
            limit = min(here.left_s, threading.TIMEOUT_MAX)
            if not self._changed.wait_for(lambda: ticket.state == "working", limit):
                self._give_back(ticket)
                message = (
                    f"no place for {self._what} within {here.limit_s:g} seconds: others of its project take them all"
                )
                raise SourceError(Problem.UNREACHABLE, message)
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Free the slot; from any thread."""
        with self._changed:
            self._give_back(ticket)

    def _give_back(self, ticket: Ticket) -> None:
        self._places.give_back(ticket)
        self._changed.notify_all()


COMPUTING = Turns("rendering", Limits(3, {"project": 2}))
"""Rendering in this process: the interpreter runs one thread at a time, and the event loop needs it too."""
_inside: ContextVar[contextlib.ExitStack | None] = ContextVar("computing", default=None)


@contextlib.contextmanager
def computing() -> Iterator[None]:
    """Hold the slot at the interpreter. Inside, wait for locks that are held during network calls only within
    :func:`away`."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(COMPUTING.turn())
        token = _inside.set(stack)
        try:
            yield
        finally:
            _inside.reset(token)


@contextlib.contextmanager
def away() -> Iterator[None]:
    """Give up the slot at the interpreter while this thread waits; without a slot it does nothing."""
    stack = _inside.get()
    if stack is None:
        yield
        return
    token = _inside.set(None)
    stack.close()
    try:
        yield
    finally:
        stack.enter_context(COMPUTING.turn())
        _inside.reset(token)
