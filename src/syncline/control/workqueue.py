"""The queue of keys to reconcile, :class:`WorkQueue`: each key once, with back-off after failures.

Time is passed in. The queue is bounded by the number of keys, since each key is queued at most once.
"""

from __future__ import annotations

import heapq
from datetime import datetime, timedelta
from typing import NamedTuple

from syncline.kube.objects import ObjectRef

BACKOFF_BASE_S = 0.2
"""First wait after a failure: 0.2, 0.4, 0.8, … doubled as by client-go's limiter."""
BACKOFF_MAX_S = 120.0
"""Longest wait after repeated failures: long enough to spare the server, short enough for a person watching."""
PUT_BACK = timedelta(seconds=1)
"""Smaller steps of a clock are ignored."""

CONFLICT_BASE_S = 0.02
"""First wait after a conflict: another client wrote, and the next read mostly has that write. The wait doubles with
each further conflict, up to the same bound."""


class Key(NamedTuple):
    """One object of one controller; ``cluster`` names its cluster, empty for the loop's own."""

    controller: str
    ref: ObjectRef
    cluster: str = ""

    def __str__(self) -> str:
        return f"{self.controller} {self.ref}" + (f" on {self.cluster}" if self.cluster else "")


def backoff_s(attempt: int, base_s: float = BACKOFF_BASE_S) -> float:
    """Return the seconds to wait before attempt ``attempt`` + 1."""
    return float(min(base_s * 2 ** min(attempt, 20), BACKOFF_MAX_S))


class _Due(NamedTuple):
    at: datetime
    background: bool


FIRST_IN_A_ROW = 8
"""Urgent keys taken before one that has waited longer, so that no key starves."""


class WorkQueue:
    """A de-duplicating delay queue; of two times for one key the earlier counts. Of due keys the urgent ones come
    first."""

    def __init__(self) -> None:
        self._due: dict[Key, _Due] = {}
        self._heap: list[tuple[datetime, int, Key]] = []
        self._foreground: list[tuple[datetime, int, Key]] = []
        self._urgent_heap: list[tuple[datetime, int, Key]] = []
        self._urgent: set[Key] = set()
        self._in_a_row = 0
        self._count = 0
        self._latest: datetime | None = None
        self._busy: set[Key] = set()
        self._again: dict[Key, _Due] = {}
        self._failures: dict[Key, int] = {}
        self._conflicts: dict[Key, int] = {}

    def add(self, key: Key, at: datetime, *, background: bool = False) -> None:
        """Queue ``key`` for ``at``. While the key is busy, this takes effect at :meth:`finish`."""
        table = self._again if key in self._busy else self._due
        known = table.get(key)
        due = _Due(at, background)
        if known is not None and known.at <= at:
            if known.background and not background:
                table[key] = _Due(known.at, False)
                if table is self._due:
                    self._push(self._foreground, key, known.at)
            return
        table[key] = due
        if table is self._due:
            self._push(self._heap, key, at)
            if not background:
                self._push(self._foreground, key, at)
            if key in self._urgent:
                self._push(self._urgent_heap, key, at)

    def prioritize(self, key: Key, urgent: bool) -> None:
        """Make ``key`` urgent, so that it comes before keys that are not; or undo that."""
        if not urgent:
            self._urgent.discard(key)
        elif key not in self._urgent:
            self._urgent.add(key)
            if (due := self._due.get(key)) is not None:
                self._push(self._urgent_heap, key, due.at)

    def _notice(self, now: datetime) -> None:
        """Move due times back after the clock was set back: otherwise everything would wait as much longer."""
        latest, self._latest = self._latest, now
        if latest is None or latest - now < PUT_BACK:
            return
        back = latest - now
        for table in (self._due, self._again):
            for key, due in table.items():
                table[key] = _Due(due.at - back, due.background)
        self._heap, self._foreground, self._urgent_heap = [], [], []
        for key, due in self._due.items():
            self._push(self._heap, key, due.at)
            if key in self._urgent:
                self._push(self._urgent_heap, key, due.at)
            if not due.background:
                self._push(self._foreground, key, due.at)

    def _push(self, heap: list[tuple[datetime, int, Key]], key: Key, at: datetime) -> None:
        self._count += 1
        heapq.heappush(heap, (at, self._count, key))

    def ready(self, now: datetime) -> list[Key]:
        """Return every key that may be taken at ``now``, oldest first, for drivers that choose."""
        self._notice(now)
        waiting = [(due.at, key) for key, due in self._due.items() if due.at <= now]
        return [key for _, key in sorted(waiting, key=lambda pair: pair[0])]

    def pop(self, now: datetime) -> Key | None:
        """Take the key that has waited longest, urgent ones first; it is busy until :meth:`finish`. None if no key is
        due."""
        self._notice(now)
        first = self._first(self._urgent_heap, now) if self._in_a_row < FIRST_IN_A_ROW else None
        self._in_a_row = 0 if first is None else self._in_a_row + 1
        key = self._first(self._heap, now) if first is None else first
        if key is not None:
            self.take(key)
        return key

    def _first(self, heap: list[tuple[datetime, int, Key]], now: datetime) -> Key | None:
        """Pop the first key whose entry is not outdated."""
        while heap and heap[0][0] <= now:
            at, _, key = heapq.heappop(heap)
            due = self._due.get(key)
            if due is not None and due.at == at and (heap is not self._urgent_heap or key in self._urgent):
                return key
        return None

    def take(self, key: Key) -> None:
        """Mark a ready key busy."""
        del self._due[key]
        self._busy.add(key)

    def finish(self, key: Key) -> None:
        """End the work on a key; if it was queued meanwhile, it becomes due."""
        self._busy.discard(key)
        waiting = self._again.pop(key, None)
        if waiting is not None:
            self.add(key, waiting.at, background=waiting.background)

    def fail(self, key: Key, now: datetime) -> float:
        """Count a failure and queue the key after its back-off; return the wait in seconds."""
        return self._later(key, now, self._failures, BACKOFF_BASE_S)

    def lose(self, key: Key, now: datetime) -> float:
        """Like :meth:`fail`, after a conflict: counted separately, with shorter first waits."""
        return self._later(key, now, self._conflicts, CONFLICT_BASE_S)

    def _later(self, key: Key, now: datetime, counts: dict[Key, int], base_s: float) -> float:
        attempt = counts.get(key, 0)
        counts[key] = attempt + 1
        wait = backoff_s(attempt, base_s)
        self.add(key, now + timedelta(seconds=wait))
        return wait

    def is_busy(self, key: Key) -> bool:
        return key in self._busy

    def busy(self) -> list[Key]:
        """Return the keys that are being worked on, sorted."""
        return sorted(self._busy)

    def forgive(self, key: Key) -> None:
        """Reset the counts after a success."""
        self._failures.pop(key, None)
        self._conflicts.pop(key, None)

    def next_due(self, *, foreground_only: bool = False) -> datetime | None:
        """Return when the next key becomes due; ``foreground_only`` ignores background requeues."""
        heap = self._foreground if foreground_only else self._heap
        while heap:
            at, _, key = heap[0]
            due = self._due.get(key)
            if due is not None and due.at == at and not (foreground_only and due.background):
                return at
            heapq.heappop(heap)
        return None

    def waiting(self, now: datetime) -> list[tuple[str, int, int]]:
        """Return every key that is not only requeued in the background, sorted: its text, the seconds until it is due,
        and how often in a row it failed or lost a conflict."""
        return sorted(
            (
                str(key),
                max(round((due.at - now).total_seconds()), 0),
                self._failures.get(key, 0) + self._conflicts.get(key, 0),
            )
            for key, due in self._due.items()
            if not due.background
        )

    def __len__(self) -> int:
        return len(self._due) + len(self._busy)
