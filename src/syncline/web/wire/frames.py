"""Length-prefixed messages of gRPC, and its headers: :class:`Frames`, :func:`framed`, :func:`timeout_of`. Pure.

A message is a flag (1: compressed), its length in four bytes, and its bytes. Sizes are bounded before they are kept,
packed ones also while they unfold.
"""

from __future__ import annotations

import gzip
import struct
import zlib

from syncline.web.wire.status import Code, RpcError

MAX_MESSAGE_BYTES = 32 * 1024 * 1024
"""Size limit of one request; argocd's largest are the files of local manifests, in chunks."""
GZIP_LEVEL = 1
TRAILERS = 0x80
"""The flag of gRPC-Web's last frame, which holds the trailers as text."""
_HEADER = struct.Struct(">BI")
_UNITS = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
MAX_TIMEOUT_DIGITS = 8
ENCODINGS = ("identity", "gzip")


class Frames:
    """Takes bytes as they arrive and gives whole messages."""

    __slots__ = ("_buffer", "_encoding")

    def __init__(self, encoding: str) -> None:
        if encoding not in ENCODINGS:
            raise RpcError(
                Code.UNIMPLEMENTED, f"grpc-encoding {encoding[:40]!r} is not supported; send identity or gzip"
            )
        self._encoding = encoding
        self._buffer = bytearray()

    @property
    def size(self) -> int:
        """The bytes that are held because their message is not complete."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that ``data`` completes. Raises :class:`RpcError` for one that is too large."""
        self._buffer += data
        found = []
        while len(self._buffer) >= _HEADER.size:
            flag, length = _HEADER.unpack_from(self._buffer)
            if length > MAX_MESSAGE_BYTES:
                raise _too_large(length)
            if len(self._buffer) < _HEADER.size + length:
                break
            message = bytes(self._buffer[_HEADER.size : _HEADER.size + length])
            del self._buffer[: _HEADER.size + length]
            found.append(self._opened(flag, message))
        return found

    def _opened(self, flag: int, message: bytes) -> bytes:
        if flag == 0:
            return message
        if flag != 1 or self._encoding != "gzip":
            raise RpcError(Code.INTERNAL, f"a message has the flag {flag}, which its grpc-encoding does not allow")
        unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            opened = unpacking.decompress(message, MAX_MESSAGE_BYTES + 1)
        except zlib.error:
            raise RpcError(Code.INTERNAL, "a message is not the gzip that its flag announces") from None
        if len(opened) > MAX_MESSAGE_BYTES:
            raise _too_large(len(opened))
        if not unpacking.eof:
            raise RpcError(Code.INTERNAL, "a message ends within its gzip")
        return opened


def _too_large(length: int) -> RpcError:
    return RpcError(
        Code.RESOURCE_EXHAUSTED, f"grpc: received message larger than max ({length} vs. {MAX_MESSAGE_BYTES})"
    )


def framed(message: bytes, *, packed: bool = False, flag: int = 0) -> bytes:
    """Return a message with its prefix."""
    if packed:
        message, flag = gzip.compress(message, GZIP_LEVEL, mtime=0), 1
    return _HEADER.pack(flag, len(message)) + message


def timeout_of(text: str) -> float | None:
    """Return ``grpc-timeout`` in seconds, None without one. Raises :class:`RpcError`."""
    if not text:
        return None
    digits, unit = text[:-1], text[-1]
    if unit not in _UNITS or not digits.isascii() or not digits.isdigit() or len(digits) > MAX_TIMEOUT_DIGITS:
        raise RpcError(Code.INTERNAL, f"grpc-timeout {text[:20]!r} is no duration such as 10S")
    return int(digits) * _UNITS[unit]
