"""A port of the server in this process, for tests that are its clients."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping

from syncline.web.access import Access, OpenAccess
from syncline.web.serving.bounds import Bounds
from syncline.web.serving.port import Port
from syncline.web.wire.calls import Calls, Handler
from syncline.web.wire.front import Front


@contextlib.asynccontextmanager
async def served(
    handlers: Mapping[str, Handler], bounds: Bounds | None = None, access: Access | None = None
) -> AsyncIterator[Port]:
    """Serve handlers on a free port of loopback, in the clear."""
    calls = Calls(handlers, access or OpenAccess(), {})
    port = Port(calls, Front(calls, {}).serve, bounds)
    await port.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await port.stop()
