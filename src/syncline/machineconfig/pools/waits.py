"""Why nodes that are behind their pool are not targeted: what a reconcile of a pool notes, for its plan and for people.

The code that lets nodes wait records the reason at the same place, so that an explanation cannot disagree with the
decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Reason", "Wait"]


class Reason(StrEnum):
    """Each value is the state that an explanation shows."""

    PAUSED = "paused"
    HELD = "held"
    SELECTS_ALL = "refused"
    IMAGE = "image not ready"
    LIMIT = "limit below zero"
    CAPACITY = "used up"
    CANARIES = "canaries first"
    QUORUM = "quorum first"
    GATHERING = "gathering changes"
    DEFERRED = "deferred"
    OPERATOR = "last of the masters"
    UNLABELLED = "without its label"


@dataclass(frozen=True, slots=True)
class Wait:
    """``message``: a clause for people. ``nodes``: who waits for it, empty: all that are behind. ``takers``: nodes
    that take the places of the others."""

    reason: Reason
    message: str
    nodes: tuple[str, ...] = ()
    takers: tuple[str, ...] = ()
