"""Compute Retry-After for refused requests: longer if a priority level refused many recently.

``fairness.control`` calls it. Source: apiserver ``dropped_requests_tracker.go``.
"""

from __future__ import annotations

from collections import deque

MOST_S = 32
PER_SECOND = 3
"""Refusals per second of the pause from which it doubles."""


class _Level:
    def __init__(self) -> None:
        self.pause = 1
        self.changed = 0
        self.second = 0
        self.count = 0
        self.history: deque[tuple[int, int]] = deque()


class DroppedRequests:
    """Counts refusals by priority level."""

    def __init__(self) -> None:
        self._levels: dict[str, _Level] = {}

    def note(self, level: str, second: int) -> None:
        """Record that ``level`` refused a request in this second."""
        found = self._levels.setdefault(level, _Level())
        if found.second == second:
            found.count += 1
            return
        found.history.append((found.second, found.count))
        while found.history and found.second - found.history[0][0] > min(2 * found.pause, MOST_S):
            found.history.popleft()
        found.second, found.count = second, 1
        self._reconsider(found, second)

    def retry_after_s(self, level: str) -> int:
        found = self._levels.get(level)
        return found.pause if found is not None else 1

    def _reconsider(self, level: _Level, now: int) -> None:
        refused = sum(count for second, count in level.history if now - second <= level.pause and second < now)
        if now - level.changed >= level.pause and refused >= PER_SECOND * level.pause:
            level.pause, level.changed = min(2 * level.pause, MOST_S), now
        elif refused < level.pause and level.pause > 1:
            level.pause -= 1
