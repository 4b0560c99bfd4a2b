"""Interpreter settings for long-running processes with many objects; see :func:`tune_interpreter`."""

from __future__ import annotations

import gc
import sys

SWITCH_S = 0.001


def tune_interpreter() -> None:
    """Collect garbage rarely and switch threads often. With the default thresholds decoding takes three times as long
    and collections stop everything, so the young generation is large and the old one is rarely scanned. Other threads
    release the interpreter to the event loop after one millisecond, not five."""
    gc.set_threshold(5_000, 10, 5_000)
    sys.setswitchinterval(SWITCH_S)
