"""How often remotes were called, for metrics: ``sources/git/mirrors.py`` and ``sources/remote/artifacts.py`` count
here.

Addresses come from tenants, so only so many are counted by name.
"""

from __future__ import annotations

import threading
from collections import Counter

MAX_ADDRESSES = 5_000
"""Addresses that are counted by themselves."""
OTHERS = "(others)"
"""Under this name all further ones are counted together."""


class RemoteRequests:
    """Counts calls of remotes. Thread-safe."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, bool]] = Counter()
        self._addresses = set[str]()
        self._lock = threading.Lock()

    def note(self, shown: str, command: str, success: bool) -> None:
        with self._lock:
            if len(self._addresses) < MAX_ADDRESSES:
                self._addresses.add(shown)
            elif shown not in self._addresses:
                shown = OTHERS
            self._counts[shown, command, success] += 1

    def listed(self) -> list[tuple[str, str, bool, int]]:
        """Return the counts, sorted: address without credentials, purpose, success, count."""
        with self._lock:
            return [(*key, count) for key, count in sorted(self._counts.items())]
