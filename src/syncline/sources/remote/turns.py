"""Turns of threads at what there is little of: render workers, plugins, and this process's own interpreter.

``sources/workers/pool.py`` and ``sources/rendering/plugin_run.py`` let their children be used in turns,
``assembly/sources/reading.py`` the interpreter. Turns go round by project, and neither a project nor a source takes all
places (``base/places.py``). Who waits for a remote or a child meanwhile gives the interpreter's place back
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

__all__ = ["Turns", "away", "computing"]


class Turns:
    """Safe to use from several threads."""

    def __init__(self, what: str, limits: Limits) -> None:
        self._what = what
        self._places = Places(limits)
        self._changed = threading.Condition()

    def counts(self) -> dict[str, int]:
        """How many work and wait."""
        with self._changed:
            return self._places.counts()

    @contextlib.contextmanager
    def turn(self, source: str = "") -> Iterator[None]:
        """A place until the context ends; as :meth:`enter`."""
        ticket = self.enter(source)
        try:
            yield
        finally:
            self.leave(ticket)

    def enter(self, source: str = "") -> Ticket:
        """A place for the project of the current read. Raises :class:`SourceError` if there is none in its time."""
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
        """From any thread."""
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
    """A turn at the interpreter. Inside nothing waits for a lock that is held across a conversation but
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
    """While this thread waits for something else; without a turn it changes nothing."""
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
