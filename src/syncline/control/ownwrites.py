"""What the keys of a loop wrote themselves and the cache does not show yet: :class:`OwnWrites`.

A key that plans by a cache older than its own last write would do that write again, or take for done what is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from syncline.control.cache import Cache
from syncline.control.workqueue import Key
from syncline.kube.objects import GroupKind

PATIENCE_S = 5.0
"""How long a key waits for its own last write to appear in the cache; then it plans without it."""


Place: TypeAlias = tuple[str, GroupKind]
"""A kind of a cluster."""
CacheOf: TypeAlias = Callable[[str], Cache | None]
"""Returns the cache of a cluster; None: it has left, and nothing is waited for there."""


@dataclass(frozen=True, slots=True)
class _Write:
    revisions: Mapping[Place, int]
    deadline: datetime

    def is_in(self, cache_of: CacheOf) -> bool:
        for (cluster, kind), revision in self.revisions.items():
            cache = cache_of(cluster)
            if cache is not None and cache.observed_revision(kind) < revision:
                return False
        return True


class OwnWrites:
    """The last writes of keys, as resourceVersions by cluster and kind; bounded by the number of keys."""

    def __init__(self, cache_of: CacheOf) -> None:
        self._cache_of = cache_of
        self._awaited: dict[Key, _Write] = {}
        self._late: dict[Key, _Write] = {}
        """Of keys that planned without the write. They reconcile when the cache shows it, since what the cache hid may
        be what there is to do, and no other change may come."""

    def record(self, key: Key, revisions: Mapping[Place, int], now: datetime) -> None:
        """Add what a key wrote now."""
        known = dict(self._awaited[key].revisions) if key in self._awaited else {}
        for place, revision in revisions.items():
            known[place] = max(known.get(place, 0), revision)
        if known:
            self._awaited[key] = _Write(known, now + timedelta(seconds=PATIENCE_S))

    def must_wait(self, key: Key, now: datetime) -> bool:
        """Return whether a key has to wait for a cache; what it does not wait for any more is late, or forgotten."""
        write = self._awaited.get(key)
        if write is None:
            return False
        behind = not write.is_in(self._cache_of)
        if behind and now < write.deadline:
            return True
        del self._awaited[key]
        if behind:
            self._late[key] = write
        return False

    def take_late(self) -> Iterator[Key]:
        """Remove and return the keys whose late write the caches show now."""
        shown = [key for key, write in self._late.items() if write.is_in(self._cache_of)]
        for key in shown:
            del self._late[key]
            yield key

    def forget(self, cluster: str) -> None:
        """Forget the writes to a cluster that has left."""
        for table in (self._awaited, self._late):
            for key in [key for key in table if key.cluster == cluster]:
                del table[key]
