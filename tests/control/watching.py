"""Watches that show events late, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from syncline.kube.client import Request, Response, Transport


class Once:
    """A watch that ends after its first event."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._over = False

    def take(self, limit: int = 1000) -> list[bytes]:
        taken: list[bytes] = self._inner.take(1)
        self._over = bool(taken)
        return taken

    @property
    def on_ready(self) -> Callable[[], None] | None:
        wake: Callable[[], None] | None = self._inner.on_ready
        return wake

    @on_ready.setter
    def on_ready(self, wake: Callable[[], None] | None) -> None:
        self._inner.on_ready = wake

    @property
    def ended(self) -> bool:
        return self._over

    def close(self) -> None:
        self._inner.close()


class Held(Once):
    """A watch that shows nothing while it is held."""

    held = False

    def take(self, limit: int = 1000) -> list[bytes]:
        return [] if self.held else self._inner.take(limit)

    def release(self) -> None:
        self.held = False
        if self.on_ready is not None:
            self.on_ready()


class HeldBack:
    """A server whose watches of one path can be held back."""

    def __init__(self, inner: Transport, path: str) -> None:
        self._inner = inner
        self._path = path
        self.watches: list[Held] = []

    def send(self, request: Request) -> Response:
        answer = self._inner.send(request)
        if answer.stream is None or request.path != self._path:
            return answer
        self.watches.append(Held(answer.stream))
        return Response(200, stream=self.watches[-1])
