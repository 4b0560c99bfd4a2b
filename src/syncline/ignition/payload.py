"""Ignition as it travels: base64 and gzip around a configuration, data URLs and gzip around the contents of a file.

Sentences are those of the Machine Config Operator. What is unpacked is bounded. Source:
openshift/machine-config-operator ``pkg/controller/common/helpers.go``.
"""

from __future__ import annotations

import base64
import re
import zlib

from syncline.ignition.dataurl import DataUrlError, decode_data_url
from syncline.ignition.golang import quoted

UNPACKED_MAX = 256 * 2**20
"""Bytes that one payload or file may unpack to; etcd holds no object near that, so more is an attack."""


class PayloadError(ValueError):
    """An invalid payload; the message is upstream's."""


class _NotGzip(Exception):
    """The bytes do not look like gzip at all."""


class _NotBase64(Exception):
    """The text broke the rules of base64 before gzip was done with it."""


def decode_payload(raw: bytes) -> bytes:
    """The text of a configuration that may be gzipped, and gzipped and in base64; raises :class:`PayloadError`.

    Base64 with gzip inside comes first; what is no base64 may be gzip; everything else is taken as it is. Either byte
    of gzip's magic number suffices to take bytes for gzip.
    """
    try:
        try:
            return _unpacked(*_decoded(raw), "unable to decode and decompress payload: ")
        except _NotBase64:
            return _unpacked(raw, "EOF", "")
    except _NotGzip:
        return raw
    except PayloadError as problem:
        raise PayloadError(f"unable to read ignition config: {problem}") from None


_CORRUPT = "illegal base64 data"
_QUANTA = re.compile(rb"(?:[A-Za-z0-9+/]{4})*")
_LAST = re.compile(rb"[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=")


def _decoded(raw: bytes) -> tuple[bytes, str]:
    """What a streaming decoder of base64 hands out, and how it ends: ``EOF``, ``unexpected EOF`` or a fault. Fewer than
    four signs at the end are not examined."""
    text = raw.replace(b"\r", b"").replace(b"\n", b"")
    whole = _QUANTA.match(text)
    assert whole
    at = whole.end()
    last = _LAST.match(text, at)
    if last is not None:
        at = last.end()
    data = base64.b64decode(text[:at])
    if at == len(text):
        return data, "EOF"
    return data, "unexpected EOF" if len(text) - at < 4 else _CORRUPT


def _unpacked(packed: bytes, ending: str, before: str) -> bytes:
    """``packed`` unzipped; ``ending`` is what comes behind its last byte, ``before`` goes before problems."""
    if len(packed) < 2:
        if ending == _CORRUPT:
            raise _NotBase64
        raise PayloadError(f"{before}could not peek: {ending}")
    if packed[0] != 0x1F and packed[1] != 0x8B:
        raise _NotGzip
    try:
        unpacked = gunzip(packed, f"{before}initialize gzip reader failed", f"{before}decompression failed")
    except PayloadError as problem:
        if ending == _CORRUPT and str(problem).endswith("EOF"):
            raise _NotBase64 from None
        raise
    if ending == _CORRUPT:  # behind the last member another one is looked for
        raise _NotBase64
    if ending != "EOF":
        raise PayloadError(f"{before}decompression failed: {ending}")
    return unpacked


def decode_file_contents(source: str | None, compression: str | None) -> bytes:
    """The bytes of one file of a configuration; raises :class:`PayloadError`. Without a source a file is empty."""
    if source is None:
        return b""
    try:
        data = decode_data_url(source)
    except DataUrlError as problem:
        raise PayloadError(f"could not decode file content string: {problem}") from None
    if not compression:
        return data
    if compression != "gzip":
        raise PayloadError(f"unsupported compression type {quoted(compression)}")
    return gunzip(data, "could not create gzip reader", "failed decompressing")


def gunzip(packed: bytes, no_header: str, no_body: str) -> bytes:
    """All members of a gzip file; the two texts go before what is wrong with the first header or the rest."""
    pieces: list[bytes] = []
    at, left = 0, UNPACKED_MAX
    while at < len(packed) or not pieces:
        begin, problem = _header(packed, at)
        if problem:
            raise PayloadError(f"{no_body if pieces else no_header}: {problem}")
        try:
            piece, at = _member(packed, begin, left)
        except PayloadError as error:
            raise PayloadError(f"{no_body}: {error}") from None
        left -= len(piece)
        pieces.append(piece)
    return b"".join(pieces)


_CHUNK = 64 * 1024
"""Bytes that are unpacked at a time, so that what follows a member is not copied with each member."""


def _member(packed: bytes, at: int, left: int) -> tuple[bytes, int]:
    """What the member holds whose body begins at ``at``, at most ``left`` bytes, and where it ends."""
    unpacker = zlib.decompressobj(wbits=-zlib.MAX_WBITS)
    parts: list[bytes] = []
    while not unpacker.eof:
        chunk = packed[at : at + _CHUNK]
        if not chunk:
            raise PayloadError("unexpected EOF")
        try:
            parts.append(unpacker.decompress(chunk, left + 1))
        except zlib.error:
            raise PayloadError("flate: corrupt input") from None
        left -= len(parts[-1])
        if left < 0:
            raise PayloadError(f"more than {UNPACKED_MAX} bytes")
        at += len(chunk)
    at -= len(unpacker.unused_data)
    trailer, piece = packed[at : at + 8], b"".join(parts)
    if len(trailer) < 8:
        raise PayloadError("unexpected EOF")
    if trailer != zlib.crc32(piece).to_bytes(4, "little") + (len(piece) % 2**32).to_bytes(4, "little"):
        raise PayloadError("gzip: invalid checksum")
    return piece, at + 8


_TEXT_MAX = 512
"""Bytes of the name and of the comment in a header that Go reads."""


def _header(packed: bytes, start: int) -> tuple[int, str]:
    """Where the body of the member at ``start`` begins, and what Go says about its header, empty if it is whole."""
    if len(packed) - start < 10:
        return 0, "unexpected EOF" if len(packed) > start else "EOF"
    if packed[start : start + 3] != b"\x1f\x8b\x08":
        return 0, "gzip: invalid header"
    flags, at = packed[start + 3], start + 10
    if flags & 4:
        at += 2 + int.from_bytes(packed[at : at + 2], "little")
    for flag in (8, 16):
        if flags & flag and at <= len(packed):
            end = packed.find(b"\0", at, at + _TEXT_MAX)
            if end < 0:
                return 0, "gzip: invalid header" if len(packed) - at >= _TEXT_MAX else "unexpected EOF"
            at = end + 1
    if flags & 2:
        sum_of_header = (zlib.crc32(packed[start:at]) & 0xFFFF).to_bytes(2, "little")
        if at + 2 <= len(packed) and packed[at : at + 2] != sum_of_header:
            return 0, "gzip: invalid header"
        at += 2
    return at, "unexpected EOF" if at > len(packed) else ""
