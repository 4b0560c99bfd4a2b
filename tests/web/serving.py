"""A port of the server in this process, for tests that are its clients."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from syncline.assembly.sources.reading import GitSourceReader
from syncline.base.clock import SystemClock
from syncline.web.access import Access, OpenAccess
from syncline.web.content import Content
from syncline.web.destinations import Destinations
from syncline.web.parts import Parts
from syncline.web.serving.bounds import Bounds
from syncline.web.serving.port import Port
from syncline.web.state import State
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


def parts_of(state: State, access: Access | None = None, folder: Path = Path("mirrors")) -> Parts:
    """Return what services are made of, with a reader of repositories whose mirrors go to ``folder``."""
    clock = SystemClock()
    content = Content(GitSourceReader(folder, allow_local=True), state, clock)
    return Parts(state, access or OpenAccess(), clock, content, Destinations(state, clock))
