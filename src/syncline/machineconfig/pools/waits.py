"""Reasons why nodes behind their pool are not targeted, as a reconcile notes them for its plan and for users.

The code that makes nodes wait records the reason at the same point, so an explanation cannot contradict the decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Reasons of waits; each value is the state that an explanation shows."""

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
    """A noted wait. ``message``: a clause for users. ``nodes``: those that wait, empty: all behind the pool.
    ``takers``: nodes that use up the limit."""

    reason: Reason
    message: str
    nodes: tuple[str, ...] = ()
    takers: tuple[str, ...] = ()
