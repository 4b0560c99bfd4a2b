"""Where the live driver runs work: places by purpose, fair among projects and hosts.

``control/manager.py`` asks it for every :class:`~syncline.base.action.Work`. A purpose never waits behind another one;
within a purpose no host and no project can take all places (``base/places.py``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from syncline.base.action import Purpose, Unfinished, Work
from syncline.base.places import Limits
from syncline.base.threads import Threads

__all__ = ["PoolSettings", "Pools"]

LIMITS: Mapping[Purpose, Limits] = MappingProxyType(
    {
        # A remote that hangs costs a thread and a git process that sleeps: many may, of one project or host fewer.
        Purpose.SOURCES: Limits(16, {"project": 12, "host": 8}, slow=256, slow_each={"project": 160, "host": 16}),
        Purpose.EVALUATION: Limits(2, {"project": 1}),
        Purpose.MACHINES: Limits(16, {"project": 12, "host": 8}),
        Purpose.OTHER: Limits(8, {"project": 6, "host": 6}),
    }
)


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """How much work of each purpose runs at once."""

    limits: Mapping[Purpose, Limits] = field(default_factory=lambda: LIMITS)
    slow_after_s: float = 0.5
    """Work that takes longer waits for somebody else mostly."""


@dataclass(slots=True)
class Pools:
    """All work of one driver."""

    settings: PoolSettings = field(default_factory=PoolSettings)
    _threads: dict[Purpose, Threads] = field(default_factory=dict)

    def counts(self) -> dict[str, dict[str, int]]:
        """By purpose: how many work, are slow, and wait."""
        return {str(purpose): threads.counts() for purpose, threads in sorted(self._threads.items())}

    async def run(self, work: Work, again: Callable[[], None] = lambda: None) -> Any:
        """The result of ``work``, or that it is unfinished, where it says what then: ``again`` is called when it has
        ended. Raises Crowded, and what the work raises."""
        threads = self._threads.get(work.purpose)
        if threads is None:
            limits = self.settings.limits[work.purpose]
            threads = self._threads[work.purpose] = Threads(
                str(work.purpose), limits, self.settings.slow_after_s if limits.slow else 0.0
            )
        shares = (("project", work.project), *(("host", host) for host in work.hosts))
        running = threads.start(work.run, *shares)
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
