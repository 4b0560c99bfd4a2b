"""Runs the work of the live driver in threads: :class:`Pools`, with limits by purpose, project and host.

``control/manager.py`` passes it every :class:`~syncline.base.action.Work`. No purpose waits for another one; within a
purpose no host and no project can take all slots (``base/places.py``). Hosts that have not responded yet get only a
part of a project's slots, and count as slow sooner, so that many new hosts that hang do not delay those that respond.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any

from syncline.base.action import Purpose, Unfinished, Work
from syncline.base.places import Limits
from syncline.base.threads import Threads

LIMITS: Mapping[Purpose, Limits] = MappingProxyType(
    {
        # A remote that hangs costs a thread and a git process that sleeps: many may, of one project or host fewer.
        Purpose.SOURCES: Limits(
            16,
            {"project": 12, "new hosts": 8, "host": 8, "new host": 4},
            slow=256,
            slow_each={"project": 160, "host": 16},
        ),
        Purpose.EVALUATION: Limits(2, {"project": 1}),
        Purpose.PLANNING: Limits(2, {"project": 1}),
        Purpose.MACHINES: Limits(16, {"project": 12, "host": 8}),
        Purpose.ANSWERS: Limits(2, {"project": 1}),
        Purpose.OTHER: Limits(8, {"project": 6, "host": 6}),
    }
)


ANSWERS_WITHIN_S = 5.0
"""Work that ends within this time shows that its host responds; a slower host must show it again."""
MAX_HOSTS = 10_000
"""The most hosts that are remembered as responsive, the latest ones."""


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """How much work of each purpose runs concurrently."""

    limits: Mapping[Purpose, Limits] = field(default_factory=lambda: LIMITS)
    slow_after_s: float = 0.5
    """Work that takes longer mostly waits for another system."""
    new_slow_after_s: float = 0.2
    """The same for hosts that have not responded yet."""


class KnownHosts:
    """The hosts that respond."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, None] = OrderedDict()

    def are(self, hosts: tuple[str, ...]) -> bool:
        return all(host in self._known for host in hosts)

    def note(self, hosts: tuple[str, ...], seconds: float, *, answered: bool) -> None:
        """Record the duration of work with these hosts. Work that fails at once may not have contacted them."""
        for host in hosts:
            if answered or seconds > ANSWERS_WITHIN_S:
                self._known.pop(host, None)
            if answered and seconds <= ANSWERS_WITHIN_S:
                self._known[host] = None
        while len(self._known) > MAX_HOSTS:
            self._known.popitem(last=False)


@dataclass(slots=True)
class Pools:
    """The work of one driver."""

    settings: PoolSettings = field(default_factory=PoolSettings)
    _threads: dict[Purpose, Threads] = field(default_factory=dict)
    _hosts: KnownHosts = field(default_factory=KnownHosts)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return by purpose how much work is running, slow and waiting."""
        return {str(purpose): threads.counts() for purpose, threads in sorted(self._threads.items())}

    async def run(self, work: Work, again: Callable[[], None] = lambda: None) -> Any:
        """Return the result of ``work``, or Unfinished if it is late and allows that; ``again`` is then called at its
        end. Raises Crowded, and the exceptions of the work."""
        threads = self._threads.get(work.purpose)
        if threads is None:
            limits = self.settings.limits[work.purpose]
            threads = self._threads[work.purpose] = Threads(
                str(work.purpose), limits, self.settings.slow_after_s if limits.slow else 0.0
            )
        running = self._start(threads, work)
        late = work.late
        if late is None:
            return await running
        await asyncio.wait((running,), timeout=late.after_s)
        if running.done():
            return running.result()

        def keep(result: asyncio.Future[Any]) -> None:
            if not result.cancelled():
                late.keep(result.exception() or result.result())
                again()

        running.add_done_callback(keep)
        return Unfinished()

    def _start(self, threads: Threads, work: Work) -> asyncio.Future[Any]:
        known = self._hosts.are(work.hosts)
        shares = (("project", work.project), *(("host", host) for host in work.hosts))
        if known:
            return threads.start(self._timed(work), *shares)
        new = (*shares, ("new hosts", work.project), *(("new host", host) for host in work.hosts))
        return threads.start(self._timed(work), *new, slow_after_s=self.settings.new_slow_after_s)

    def _timed(self, work: Work) -> Callable[[], Any]:
        """Return a function for the thread that also records whether the hosts responded."""
        if not work.hosts:
            return work.run
        loop = asyncio.get_running_loop()

        def run() -> Any:
            begun, answered = loop.time(), False
            try:
                result = work.run()
                answered = work.answered(result)
                return result
            finally:
                note = partial(self._hosts.note, work.hosts, loop.time() - begun, answered=answered)
                with contextlib.suppress(RuntimeError):  # the event loop closed: no caller waits any more
                    loop.call_soon_threadsafe(note)

        return run
