"""Back-off for scripts that took too long: ten seconds, doubled each time. The caller passes the time.

Used where user scripts and expressions run (``assembly/scripts/lua.py``, ``apply/asking.py``).
"""

from __future__ import annotations

REST_S, MAX_REST_S = 10.0, 600.0
MAX_RESTING = 1_000
"""The most pairs of name and share that are remembered."""


class Rests:
    """Back-offs by name (a script) and share (the user it ran for)."""

    def __init__(self, shares_for_all: int = 0) -> None:
        """A script that backs off for ``shares_for_all`` shares backs off for all of them; 0: never."""
        self._until: dict[tuple[str, str], tuple[float, float]] = {}
        self._shares_for_all = shares_for_all

    def left(self, name: str, share: str, now: float) -> float:
        """Return the seconds until the script may run again; 0: it may run now."""
        found = self._left((name, share), now)
        if found or not self._shares_for_all:
            return found
        others = sorted((self._left(key, now) for key in self._until if key[0] == name), reverse=True)
        return others[self._shares_for_all - 1] if len(others) >= self._shares_for_all else 0.0

    def _left(self, key: tuple[str, str], now: float) -> float:
        """Return the seconds left; a clock that was set back does not make them longer."""
        until, pause = self._until.get(key, (0.0, 0.0))
        return until - now if 0 < until - now <= pause else 0.0

    def tired(self, name: str, share: str, now: float) -> float:
        """Record that the script took too long; return the new back-off in seconds."""
        pause = min(max(self._until.pop((name, share), (0.0, 0.0))[1] * 2, REST_S), MAX_REST_S)
        self._until[name, share] = now + pause, pause
        if len(self._until) > MAX_RESTING:
            del self._until[next(iter(self._until))]
        return pause

    def well(self, name: str, share: str) -> None:
        self._until.pop((name, share), None)
