"""Create children in growing batches: if the first is refused, the rest is skipped.

Kubernetes' ``slowStartBatch``: a full quota or a broken webhook costs one refusal, not hundreds.
"""

from __future__ import annotations

from typing import TypeVar

A = TypeVar("A")


def slow_start(action: A, count: int) -> tuple[tuple[A, ...], ...]:
    """Return ``count`` copies in steps of 1, 2, 4, …"""
    steps: list[tuple[A, ...]] = []
    size = 1
    while count > 0:
        steps.append((action,) * min(size, count))
        count -= size
        size *= 2
    return tuple(steps)
