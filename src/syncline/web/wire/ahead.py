"""Takes the answers of a call one by one, with a limit for each: :class:`Ahead`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final

END: Final = object()
"""What follows the last answer."""
FIRST_S = 1.0
"""Seconds that a stream's response waits for its first answer, which may be a refusal; it begins without one then."""
KEEPALIVE_S = 15.0
"""Seconds after which a stream of events without one sends an empty line (upstream's interval)."""


class Ahead:
    """A call whose next answer may be awaited in pieces: a limit that passes does not end the call."""

    def __init__(self, answers: AsyncGenerator[Any]) -> None:
        self._answers = answers
        self._coming: asyncio.Future[Any] | None = None

    async def next(self, limit_s: float | None = None) -> Any:
        """Return the next answer, or :data:`END`. Raises TimeoutError, after which it may be asked again."""
        if self._coming is None:
            self._coming = asyncio.ensure_future(anext(self._answers, END))
        await asyncio.wait({self._coming}, timeout=limit_s)
        if not self._coming.done():
            raise TimeoutError
        coming, self._coming = self._coming, None
        return coming.result()

    async def aclose(self) -> None:
        """End the call."""
        if self._coming is not None:
            self._coming.cancel()
            await asyncio.wait({self._coming})
        await self._answers.aclose()
