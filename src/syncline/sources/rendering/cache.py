"""Caches renders by the hash of exactly the files they read: :class:`RenderCache`.

``sources/rendering/renderer.py`` checks it before it renders. A commit that changes none of these files is a hit.
Bounded in memory, optionally stored in a folder across restarts; unreadable files there are misses. Returned objects
are shared: read-only.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from syncline.base.entropy import Entropy
from syncline.base.report import Position
from syncline.sources.directory import Manifests, SourcedObject
from syncline.sources.remote.rests import Rests
from syncline.sources.tree import Entry

FORMAT = "1"
"""Part of every key: a change of rules or of the stored form gives new keys."""


def read_set_key(renderer: str, path: str, options: object, entries: Iterable[Entry]) -> str:
    """Return the hash of everything a render depends on: the tool, its options, and path and blob of each file.

    ``options`` must have a complete ``repr`` (a frozen dataclass).
    """
    digest = hashlib.sha256()
    for part in (FORMAT, renderer, path, repr(options)):
        digest.update(part.encode() + b"\0")
    for entry in entries:
        digest.update(f"{entry.path}\0{entry.blob}\0".encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class CacheLimits:
    renders: int = 16_384
    """As many Applications as one process is meant to serve twice over."""
    objects: int = 200_000
    """About 1 GB of decoded objects at 4-5 KB each."""


class RenderCache:
    """Drops the least recently used. Thread-safe."""

    def __init__(
        self, limits: CacheLimits = CacheLimits(), folder: Path | None = None, entropy: Entropy | None = None
    ) -> None:
        """``entropy`` randomizes the back-offs of failed renders; None: the same in each run."""
        self._limits = limits
        self._folder = folder
        self._renders: OrderedDict[str, Manifests] = OrderedDict()
        self._objects = 0
        self._lock = threading.Lock()
        self.rests = Rests(entropy or Entropy("rests"))
        self.hits = 0
        self.misses = 0

    def get(self, key: str) -> Manifests | None:
        with self._lock:
            found = self._renders.get(key)
            if found is not None:
                self._renders.move_to_end(key)
                self.hits += 1
                return found
        found = self._load(key)
        with self._lock:
            self.hits += found is not None
            self.misses += found is None
        if found is not None:
            self._keep(key, found)
        return found

    def put(self, key: str, manifests: Manifests) -> None:
        self._keep(key, manifests)
        self._save(key, manifests)

    def _keep(self, key: str, manifests: Manifests) -> None:
        with self._lock:
            previous = self._renders.pop(key, None)
            self._objects -= len(previous.objects) if previous else 0
            self._renders[key] = manifests
            self._objects += len(manifests.objects)
            while len(self._renders) > 1 and self._is_full():
                _, oldest = self._renders.popitem(last=False)
                self._objects -= len(oldest.objects)

    def _is_full(self) -> bool:
        return len(self._renders) > self._limits.renders or self._objects > self._limits.objects

    def _load(self, key: str) -> Manifests | None:
        if self._folder is None:
            return None
        try:
            stored = msgspec.json.decode((self._folder / f"{key}.json").read_bytes())
            return Manifests(tuple(_object(item) for item in stored["objects"]), tuple(stored["warnings"]))
        except (OSError, msgspec.DecodeError, KeyError, TypeError, ValueError):
            # Missing or damaged: the render is made again and written over it.
            return None

    def _save(self, key: str, manifests: Manifests) -> None:
        if self._folder is None:
            return
        items = [(s.obj, s.position.file, s.position.line, s.position.column) for s in manifests.objects]
        content = msgspec.json.encode({"objects": items, "warnings": manifests.warnings})
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self._folder)
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
        os.replace(name, self._folder / f"{key}.json")


def _object(item: list[Any]) -> SourcedObject:
    obj, file, line, column = item
    return SourcedObject(obj, Position(file, line, column))
