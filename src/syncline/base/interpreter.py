"""Settings of the interpreter for processes that run for long and hold many objects; see :func:`tune_interpreter`."""

from __future__ import annotations

import gc
import sys

__all__ = ["tune_interpreter"]

SWITCH_S = 0.001


def tune_interpreter() -> None:
    """Collect garbage rarely and switch threads often. With the default thresholds decoding takes three times as long,
    and everything else stops during a collection, so the young generation is large and the old one rarely searched.
    Threads beside the event loop give the interpreter back after a millisecond, not five."""
    gc.set_threshold(5_000, 10, 5_000)
    sys.setswitchinterval(SWITCH_S)
