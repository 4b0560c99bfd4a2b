"""Encodes contents as a ``data:`` URL: percent-encoded, base64, or gzip and base64, whichever is shortest.

Used for every ``inline``, ``local``, tree file, quadlet and grub file. Equal byte for byte to upstream's
``MakeDataURL``.
"""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from typing import Final

_RESERVED: Final = re.compile(rb"[^A-Za-z0-9\-_.!~*'()]")

SHORTEST_GZIP: Final = len(";base64,") + 36
"""No gzip stream has fewer than 25 bytes: its frame, and what Go writes for nothing."""


def escaped(data: bytes) -> str:
    """Return ``data`` percent-encoded except for RFC 2396's unreserved characters."""
    return _RESERVED.sub(lambda match: b"%%%02X" % match[0][0], data).decode("ascii")


def data_url(data: bytes, compression: str | None, *, auto_compression: bool) -> tuple[str, str | None]:
    """Return the URL and its ``compression``; None leaves the user's value.

    ``compression`` is the user's; if it is not empty the data counts as compressed already.
    """
    payload = "," + escaped(data)
    if compression:
        plain = _base64(data)
        return "data:" + (plain if len(plain) < len(payload) else payload), None
    plain = _base64(data)
    if len(plain) < len(payload):
        payload = plain
    if auto_compression and len(payload) > SHORTEST_GZIP + len("gzip"):
        packed = _base64(_gzip(data))
        if len(packed) + len("gzip") < len(payload):
            return "data:" + packed, "gzip"
    return "data:" + payload, ""


@lru_cache(maxsize=64)
def _gzip(data: bytes) -> bytes:
    from syncline.ignition.butane.deflate import gzip  # small documents do without it

    return gzip(data)


def _base64(data: bytes) -> str:
    return ";base64," + base64.b64encode(data).decode("ascii")
