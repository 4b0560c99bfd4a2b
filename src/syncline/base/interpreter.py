"""Interpreter settings for long-running processes with many objects; see :func:`tune_interpreter`
and :func:`seldom_collecting`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH_S = 0.001

SELDOM_OBJECTS = 1_000_000
"""New objects between two collections where pauses do not matter: some 100 MB at most wait for one."""


def tune_interpreter() -> None:
    """Collect garbage rarely and switch threads often. With the default thresholds decoding takes three times as long
    and collections stop everything, so the young generation is large and the old one is rarely scanned. Other threads
    release the interpreter to the event loop after one millisecond, not five."""
    gc.set_threshold(5_000, 10, 5_000)
    sys.setswitchinterval(SWITCH_S)


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Collect garbage hardly at all within the context: for a run in virtual time, whose clock does not see pauses.

    Such a run keeps nearly all that it makes and frees the rest by counting references, so looking for cycles finds
    little and takes a twelfth of its time.
    """
    before = gc.get_threshold()
    gc.set_threshold(SELDOM_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
