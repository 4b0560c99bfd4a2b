"""Runs blocking functions of one purpose in threads, in fair and bounded numbers: :class:`Threads`.

The live driver has one for each purpose, so that no purpose waits for another. Long-running work mostly waits for
another system (a host that does not respond); it gives its slot to the next function and continues in an extra one.
Threads are daemons: hanging work does not keep a process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from syncline.base.places import Limits, Places, Share, Ticket


class Threads:
    """Threads of one event loop. Work counts as slow after ``slow_after_s`` seconds (0: never)."""

    def __init__(self, name: str, limits: Limits, slow_after_s: float = 0.0) -> None:
        self.name = name
        self._places = Places(limits)
        self._slow_after_s = slow_after_s
        self._functions: dict[Ticket, tuple[Callable[[], Any], asyncio.Future[Any], float]] = {}

    def counts(self) -> dict[str, int]:
        """Return the number of functions that are working, slow and waiting."""
        return self._places.counts()

    def start(
        self, function: Callable[[], Any], *shares: Share, slow_after_s: float | None = None
    ) -> asyncio.Future[Any]:
        """Run ``function`` as soon as there is a slot; return the future of its result. Raises Crowded.

        ``slow_after_s`` overrides the default of all."""
        loop = asyncio.get_running_loop()
        ticket, result = Ticket(shares), loop.create_future()
        admitted = self._places.ask(ticket)
        self._functions[ticket] = function, result, self._slow_after_s if slow_after_s is None else slow_after_s
        result.add_done_callback(lambda _: self._withdrawn(ticket))
        self._begin(admitted, loop)
        return result

    def _begin(self, admitted: list[Ticket], loop: asyncio.AbstractEventLoop) -> None:
        for ticket in admitted:
            function, result, slow_after_s = self._functions.pop(ticket)
            slow = None
            if slow_after_s:
                slow = loop.call_later(slow_after_s, partial(self._slowed, ticket, loop))
            ended = _Ended(self, ticket, result, slow, loop)
            threading.Thread(target=ended.run, args=(function,), name=self.name, daemon=True).start()

    def _slowed(self, ticket: Ticket, loop: asyncio.AbstractEventLoop) -> None:
        self._begin(self._places.slow(ticket), loop)

    def ended(self, ticket: Ticket, loop: asyncio.AbstractEventLoop) -> None:
        self._begin(self._places.give_back(ticket), loop)

    def _withdrawn(self, ticket: Ticket) -> None:
        """Withdraw a function whose caller left before it began."""
        if self._functions.pop(ticket, None) is not None:
            self._places.give_back(ticket)


class _Ended:
    """Returns the result of a thread to the event loop."""

    def __init__(
        self,
        threads: Threads,
        ticket: Ticket,
        result: asyncio.Future[Any],
        slow: asyncio.TimerHandle | None,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._threads, self._ticket, self._result, self._slow, self._loop = threads, ticket, result, slow, loop

    def run(self, function: Callable[[], Any]) -> None:
        value, failure = None, None
        try:
            value = function()
        except BaseException as error:  # the caller handles it
            failure = error
        with contextlib.suppress(RuntimeError):  # the event loop closed: no caller waits any more
            self._loop.call_soon_threadsafe(self._tell, value, failure)

    def _tell(self, value: Any, failure: BaseException | None) -> None:
        if self._slow is not None:
            self._slow.cancel()
        self._threads.ended(self._ticket, self._loop)
        if self._result.done():
            return
        if failure is not None:
            self._result.set_exception(failure)
        else:
            self._result.set_result(value)
