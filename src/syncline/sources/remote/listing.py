"""Caches the listing of a commit and small files in memory: :class:`Listing`, :class:`SmallFiles`.

``sources/git/mirrors.py`` has one :class:`Listing` for the commit of which many folders are read, and one
:class:`SmallFiles` for all repositories. Both are bounded and never outdated: commits and blobs are named by their
content.
"""

from __future__ import annotations

import bisect
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from syncline.sources.tree import Entry

_AFTER = "\U0010ffff"


class Listing:
    """The files of a whole commit, sorted by path."""

    def __init__(self, sha: str, entries: Sequence[Entry]) -> None:
        self.sha = sha
        self._entries = entries
        self._paths = [entry.path for entry in entries]
        self._named = bytearray(len(self._paths))

    def has_file(self, path: str) -> bool:
        at = bisect.bisect_left(self._paths, path)
        return at < len(self._paths) and self._paths[at] == path and self._entries[at].is_file

    def folder(self, path: str) -> tuple[Entry, ...]:
        """Return the files below ``path`` with relative paths; empty if there are none, or if ``path`` is behind a
        link."""
        if not path:
            return tuple(self._entries)
        prefix = f"{path}/"
        start = bisect.bisect_left(self._paths, prefix)
        end = bisect.bisect_left(self._paths, prefix + _AFTER, lo=start)
        cut = len(prefix)
        return tuple(sorted(replace(entry, path=entry.path[cut:]) for entry in self._entries[start:end]))

    def ahead(self, path: str, *, each: int, together: int, files: int) -> Iterator[Entry]:
        """Yield regular files from ``path`` on in order, none larger than ``each``, within ``together`` bytes and
        ``files``. Each is returned once: a file that is dropped from the cache is not read ahead again."""
        start = bisect.bisect_left(self._paths, path)
        left = together
        for at in range(start, min(start + files, len(self._entries))):
            entry = self._entries[at]
            if self._named[at] or not entry.is_file or entry.size > each:
                continue
            left -= entry.size
            if left < 0:
                return
            self._named[at] = 1
            yield entry


class SmallFiles:
    """Contents by blob; drops the least recently used. Thread-safe."""

    def __init__(self, *, each: int = 64 * 1024, together: int = 32 * 1024 * 1024) -> None:
        self.each = each
        self._together = together
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Return the cached ones."""
        found: dict[str, bytes] = {}
        with self._lock:
            for blob in blobs:
                if blob in self._kept:
                    self._kept.move_to_end(blob)
                    found[blob] = self._kept[blob]
        return found

    def unknown(self, blobs: Iterable[str]) -> set[str]:
        """Return those that are not cached."""
        with self._lock:
            return {blob for blob in blobs if blob not in self._kept}

    def put(self, contents: Iterable[tuple[str, bytes]]) -> None:
        with self._lock:
            for blob, content in contents:
                if len(content) > self.each or blob in self._kept:
                    continue
                self._kept[blob] = content
                self._size += len(content)
            while self._size > self._together:
                _, gone = self._kept.popitem(last=False)
                self._size -= len(gone)
