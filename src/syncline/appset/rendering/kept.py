"""Rendered Applications that are kept by what they were made of: :class:`RenderedApplications`. Bounded.

A set of a thousand rows of which one changed renders one. What names a function of time or chance is not kept.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import Any

import msgspec

from syncline.appset.rendering.goforms import RawJson
from syncline.kube.gotemplate.values import Opaque
from syncline.kube.objects import Obj

MAX_KEPT = 50_000
"""Applications."""
MAX_BYTES = 64_000_000
"""Of the templates and rows of all kept ones, which is about what the Applications have."""


def digest_of(value: Any) -> tuple[bytes, int] | None:
    """Return a digest of JSON values and its size in bytes; None if there is none (a text that is no UTF-8)."""
    try:
        encoded = msgspec.json.encode(value, order="sorted", enc_hook=_plain)
    except (UnicodeEncodeError, RecursionError, TypeError):
        return None
    return hashlib.blake2b(encoded, digest_size=16).digest(), len(encoded)


def _plain(value: Any) -> Any:
    if isinstance(value, RawJson):
        return value.value
    if isinstance(value, Opaque):
        return value.text()
    raise TypeError(type(value).__name__)


class RenderedApplications:
    """The least recently used one makes room. Large sets are generated in threads, so there is a lock."""

    def __init__(self, count: int = MAX_KEPT, size: int = MAX_BYTES) -> None:
        self._kept: OrderedDict[bytes, tuple[Obj, int]] = OrderedDict()
        self._count, self._limit, self._size = count, size, 0
        self._lock = threading.Lock()

    def get(self, key: bytes) -> Obj | None:
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: bytes, app: Obj, size: int) -> None:
        """Keep an Application, which must not change; ``size`` in bytes."""
        with self._lock:
            if size > self._limit or key in self._kept:
                return
            self._kept[key] = (app, size)
            self._size += size
            while len(self._kept) > self._count or self._size > self._limit:
                _, (_, freed) = self._kept.popitem(last=False)
                self._size -= freed

    def __len__(self) -> int:
        return len(self._kept)
