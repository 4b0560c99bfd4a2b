"""Manifests to chunks of bytes and back; pure.

A chunk is cut after a manifest that its own hash chooses, so that a manifest that is added or changed leaves the other
chunks as they are, and two Applications with the same manifests share chunks. Its name is the SHA-256 of its bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from syncline.kube.objects import Obj

MAX_BYTES: Final = 640_000
"""Bytes of a chunk before compression: as base64 it stays below 900 kB even where nothing can be compressed."""
MIN_BYTES: Final = 16_384
"""Bytes below which no manifest ends a chunk."""
CUTS: Final = 4
"""One of so many manifests may end a chunk."""
LEVEL: Final = 6


class ContentError(ValueError):
    """Content that is incomplete, damaged, or not for who reads it; one sentence, without any value."""


def canonical(value: Any) -> bytes:
    """Return the one JSON text of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def cut(manifests: Iterable[Obj]) -> Iterator[bytes]:
    """Yield the manifests as chunks: JSON texts, one a line. Only a manifest larger than a chunk is in several."""
    lines: list[bytes] = []
    size = 0
    for one in manifests:
        line = canonical(one) + b"\n"
        if lines and size + len(line) > MAX_BYTES:
            yield b"".join(lines)
            lines, size = [], 0
        if len(line) > MAX_BYTES:
            yield from (line[at : at + MAX_BYTES] for at in range(0, len(line), MAX_BYTES))
            continue
        lines.append(line)
        size += len(line)
        if size >= MIN_BYTES and hashlib.sha256(line).digest()[0] % CUTS == 0:
            yield b"".join(lines)
            lines, size = [], 0
    if lines:
        yield b"".join(lines)


def joined(chunks: Iterable[bytes]) -> tuple[Obj, ...]:
    """Return the manifests of chunks in order. Raises :class:`ContentError`."""
    text = b"".join(chunks)
    try:
        found = [json.loads(line) for line in text.splitlines()]
    except (ValueError, RecursionError):
        raise ContentError("a chunk is not the text of manifests") from None
    if not all(isinstance(one, dict) for one in found):
        raise ContentError("a chunk holds something else than objects")
    return tuple(found)


def packed(chunk: bytes) -> bytes:
    return zlib.compress(chunk, LEVEL)


def unpacked(data: bytes) -> bytes:
    """Return the bytes of a compressed chunk. Raises :class:`ContentError`, also for one that would be too large."""
    reader = zlib.decompressobj()
    try:
        found = reader.decompress(data, MAX_BYTES + 1)
    except zlib.error:
        raise ContentError("a chunk cannot be decompressed") from None
    if len(found) > MAX_BYTES or not reader.eof:
        raise ContentError(f"a chunk is larger than {MAX_BYTES} bytes, or cut off")
    return found


def data_of(chunk: Obj) -> bytes:
    """Return the bytes of a ContentChunk, whose name must be their digest. Raises :class:`ContentError`."""
    name = str((chunk.get("metadata") or {}).get("name") or "")
    try:
        data = base64.b64decode(str(chunk.get("data") or ""), validate=True)
    except (binascii.Error, ValueError):
        raise ContentError(f"ContentChunk {name} is not base64") from None
    if digest_of(data) != name:
        raise ContentError(f"ContentChunk {name} was changed: its digest is {digest_of(data)}")
    return data
