"""Bound the age of the store's history: older events are forgotten, even if they are few.

The store bounds its history by number and bytes; a burst would fill both permanently. ``assembly`` calls it, since it
has a clock. Kubernetes compacts every five minutes and so keeps five to ten.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta

KEPT_FOR = timedelta(minutes=15)
"""Watchers that fall further behind must list again (410); a laptop's short sleep is covered."""

LISTED_FOR = timedelta(minutes=5)
"""How long a list can be continued at its revision, or requested at that revision (Kubernetes' compaction interval)."""

LOOK_EVERY = timedelta(minutes=1)


class Retention:
    """Returns the revision up to which events are too old, from regular reports of time and revision."""

    def __init__(self, kept_for: timedelta = KEPT_FOR) -> None:
        self._kept_for = kept_for
        self._marks: deque[tuple[datetime, int]] = deque()
        self._old = 0

    def note(self, now: datetime, revision: int) -> int:
        """Record the newest ``revision``; the result never decreases, and a clock set back makes nothing older."""
        if not self._marks or now > self._marks[-1][0]:
            self._marks.append((now, revision))
        while self._marks and self._marks[0][0] <= now - self._kept_for:
            self._old = max(self._old, self._marks.popleft()[1])
        return self._old
