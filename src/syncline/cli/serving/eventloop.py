"""The event loop of commands that serve; see :func:`event_loop_runner`."""

from __future__ import annotations

import asyncio


def event_loop_runner() -> asyncio.Runner:
    """Return a runner with uvloop's event loop, or asyncio's if uvloop is not installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.Runner()
    return asyncio.Runner(loop_factory=uvloop.new_event_loop)
