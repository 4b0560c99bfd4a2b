"""One HTTP request and its response as data, for REST and gRPC-Web, whichever version of HTTP carries them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Asked:
    """A request with its whole body; header names in lower case, ``target`` as sent (path and query)."""

    verb: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""
    remote: str = ""
    secure: bool = True


@dataclass(frozen=True, slots=True)
class Given:
    """A response; ``chunks`` in place of ``body`` for one that streams."""

    status: int = 200
    content_type: str = "application/json"
    body: bytes = b""
    chunks: AsyncGenerator[bytes] | None = None
    headers: tuple[tuple[str, str], ...] = field(default=())


Serve = Callable[[Asked], Awaitable[Given]]
"""Answers one request; refusals are responses."""
