"""How long the history is kept: what is older than a time is forgotten, however little it is.

The store bounds its history by number and bytes; a burst would fill both and stay for ever. Driven by ``assembly``,
which has a clock. Kubernetes compacts every five minutes and so keeps five to ten.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

__all__ = ["LISTED_FOR", "LOOK_EVERY", "Retention"]

KEPT_FOR = timedelta(minutes=15)
"""Watchers that were away for longer list again (410): a laptop's short sleep costs nothing."""

LISTED_FOR = timedelta(minutes=5)
"""How long a list can be continued as it was, or asked for as it was then (Kubernetes' compaction interval)."""

LOOK_EVERY = timedelta(minutes=1)


class Retention:
    """Reported of time and revision now and then, it says up to which revision everything is too old."""

    def __init__(self, kept_for: timedelta = KEPT_FOR) -> None:
        self._kept_for = kept_for
        self._marks: deque[tuple[datetime, int]] = deque()
        self._old = 0

    def note(self, now: datetime, revision: int) -> int:
        """``revision`` is the newest; the answer only grows. Where the clock was set back, nothing is older for it."""
        if not self._marks or now > self._marks[-1][0]:
            self._marks.append((now, revision))
        while self._marks and self._marks[0][0] <= now - self._kept_for:
            self._old = max(self._old, self._marks.popleft()[1])
        return self._old
