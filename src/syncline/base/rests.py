"""How long that which took too long is left alone: ten seconds, then twice as long each time. No clock of its own.

Used where scripts and expressions of users are run (``assembly/scripts/lua.py``,
``gitops/application/observing/asking.py``).
"""

from __future__ import annotations

__all__ = ["Rests"]

REST_S, MAX_REST_S = 10.0, 600.0
MAX_RESTING = 1_000
"""Names and shares of which that is remembered."""


class Rests:
    """By name (a script), for whom it ran (a share), and until when it is not run for them."""

    def __init__(self, shares_for_all: int = 0) -> None:
        """``shares_for_all``: what rests for so many shares rests for all of them; 0: never."""
        self._until: dict[tuple[str, str], tuple[float, float]] = {}
        self._shares_for_all = shares_for_all

    def left(self, name: str, share: str, now: float) -> float:
        """Seconds that it rests still; 0: it may be run."""
        found = self._left((name, share), now)
        if found or not self._shares_for_all:
            return found
        others = sorted((self._left(key, now) for key in self._until if key[0] == name), reverse=True)
        return others[self._shares_for_all - 1] if len(others) >= self._shares_for_all else 0.0

    def _left(self, key: tuple[str, str], now: float) -> float:
        """A clock that was set back does not make a rest longer."""
        until, pause = self._until.get(key, (0.0, 0.0))
        return until - now if 0 < until - now <= pause else 0.0

    def tired(self, name: str, share: str, now: float) -> float:
        """It took too long; the seconds that it rests from now on."""
        pause = min(max(self._until.pop((name, share), (0.0, 0.0))[1] * 2, REST_S), MAX_REST_S)
        self._until[name, share] = now + pause, pause
        if len(self._until) > MAX_RESTING:
            del self._until[next(iter(self._until))]
        return pause

    def well(self, name: str, share: str) -> None:
        self._until.pop((name, share), None)
