"""Rendered Applications that are kept by what they were made of: :class:`RenderedApplications`. Bounded.

A set of a thousand rows of which one changed renders one. What names a function of time or chance is not kept.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import msgspec

from syncline.appset.rendering.goforms import RawJson
from syncline.kube.gotemplate.values import Opaque
from syncline.kube.objects import Obj

MAX_KEPT = 50_000
"""Applications."""
MAX_BYTES = 64_000_000
"""Of all of them as JSON."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """An Application with unchanged parts of its template, so it must not change. ``size``: bytes as JSON."""

    app: Obj
    size: int


def size_of(app: Obj) -> int:
    """Return the bytes of an Application as JSON."""
    try:
        return len(msgspec.json.encode(app))
    except UnicodeEncodeError:  # texts of templates may be no UTF-8
        return len(repr(app))


def digest_of(value: Any) -> bytes | None:
    """Return a digest of JSON values; None if there is none (a text that is no UTF-8)."""
    try:
        encoded = msgspec.json.encode(value, order="sorted", enc_hook=_plain)
    except (UnicodeEncodeError, RecursionError, TypeError):
        return None
    return hashlib.blake2b(encoded, digest_size=16).digest()


def _plain(value: Any) -> Any:
    if isinstance(value, RawJson):
        return value.value
    if isinstance(value, Opaque):
        return value.text()
    raise TypeError(type(value).__name__)


class RenderedApplications:
    """The least recently used one makes room. Large sets are generated in threads, so there is a lock."""

    def __init__(self, count: int = MAX_KEPT, size: int = MAX_BYTES) -> None:
        self._kept: OrderedDict[bytes, Rendered] = OrderedDict()
        self._count, self._limit, self._size = count, size, 0
        self._lock = threading.Lock()

    def get(self, key: bytes) -> Rendered | None:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def put(self, key: bytes, made: Rendered) -> None:
        with self._lock:
            if made.size > self._limit or key in self._kept:
                return
            self._kept[key] = made
            self._size += made.size
            while len(self._kept) > self._count or self._size > self._limit:
                self._size -= self._kept.popitem(last=False)[1].size

    def __len__(self) -> int:
        return len(self._kept)
