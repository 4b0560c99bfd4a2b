"""The event loop of commands that serve; see :func:`event_loop_runner`."""

from __future__ import annotations

import asyncio
from typing import Any


def event_loop_runner() -> asyncio.Runner:
    """Return a runner with uvloop's event loop, or asyncio's if uvloop is not installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()

    def made() -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
        loop.set_exception_handler(_report)
        return loop

    return asyncio.Runner(loop_factory=made)


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report what nothing else handles, but for what uvloop raises when bytes arrive at a TLS connection that this side
    has closed: nothing is lost by it, and it happens when a command stops."""
    if isinstance(context.get("exception"), RuntimeError) and "the handler is closed" in str(context["exception"]):
        return
    loop.default_exception_handler(context)
