"""The gates before a cluster gets a release: a table; pure.

Each gate returns why the cluster waits, or nothing. All must be open; the first closed one is the reason that people
see. Budgets come last and are not in the table, because a place in one is taken, not only looked at (``plan.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from syncline.base.clock import time_or_none
from syncline.fleet.pull.order.model import Target
from syncline.fleet.pull.order.windows import judge_windows
from syncline.kube.objects import Obj

SETTLE: Final = timedelta(seconds=5)
"""How long the change of an Application must be known before it passes lower waves, or what it depends on: the
controller of a set writes its Applications one after the other."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a cluster waits; ``until``: when it goes on without a change."""

    why: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What the gates of one target look at."""

    target: Target
    now: datetime
    stopped: Obj | None = None
    refused: str = ""
    """The release that people roll back, if that is the one which it would get."""
    failed: str = ""
    """Which cluster failed the release, and why; not its own failure."""
    earlier: str = ""
    """Who of the waves before it is not done; in a roll back of the waves after it."""
    first: bool = True
    """No wave comes before its own."""
    since: datetime | None = None
    """Since when its change is known."""
    going_back: bool = False


def _stopped(turn: Turn) -> Wait | None:
    if turn.stopped is None:
        return None
    by = f" by {turn.stopped['by']}" if turn.stopped.get("by") else ""
    since = f" since {turn.stopped['since']}" if turn.stopped.get("since") else ""
    reason = str(turn.stopped.get("reason") or "no reason given")
    return Wait(f"the roll-out is stopped{by}{since}: {reason}")


def _refused(turn: Turn) -> Wait | None:
    return Wait(turn.refused) if turn.refused else None


def _readable(turn: Turn) -> Wait | None:
    problem = turn.target.cannot or turn.target.unwritten or turn.target.asked.problem
    return Wait(problem) if problem else None


def _available(turn: Turn) -> Wait | None:
    cluster = turn.target.cluster
    if cluster.available or turn.going_back:
        return None
    since = f" since {cluster.since}" if cluster.since else ""
    return Wait(
        f"cluster {cluster.name} is not available{since}; it gets the release when it returns, and "
        "`syncline rollout skip` passes over it"
    )


def _failure(turn: Turn) -> Wait | None:
    if not turn.failed or turn.going_back:
        return None
    return Wait(f"stopped by a failure: {turn.failed}")


def _earlier(turn: Turn) -> Wait | None:
    return Wait(turn.earlier) if turn.earlier else None


def _settled(turn: Turn) -> Wait | None:
    if turn.going_back or (turn.first and not turn.target.depends):
        return None
    until = (turn.since or turn.now) + SETTLE
    if turn.now >= until:
        return None
    return Wait("its change is new: those before it may be about to change too", until)


def _depends(turn: Turn) -> Wait | None:
    return Wait(turn.target.needs) if turn.target.needs and not turn.going_back else None


def _windows(turn: Turn) -> Wait | None:
    closed = judge_windows(turn.target.cluster.windows, turn.now)
    return None if closed is None else Wait(closed.why, closed.until)


def _nodes(turn: Turn) -> Wait | None:
    cluster = turn.target.cluster
    return Wait(f"nodes of cluster {cluster.name}: {cluster.updating}") if cluster.updating else None


Gate = Callable[[Turn], Wait | None]
GATES: Final[tuple[tuple[str, Gate], ...]] = (
    ("Stopped", _stopped),
    ("Refused", _refused),
    ("Unreadable", _readable),
    ("ClusterAway", _available),
    ("Failure", _failure),
    ("EarlierWave", _earlier),
    ("Settling", _settled),
    ("DependsOn", _depends),
    ("MaintenanceWindow", _windows),
    ("NodesUpdating", _nodes),
)


def judge_gates(turn: Turn) -> Wait | None:
    """Return why a target waits; None: all gates of the table are open."""
    return next((wait for _, gate in GATES if (wait := gate(turn)) is not None), None)


def time_of(text: object) -> datetime | None:
    """Return a time of a status; None: there is none."""
    return time_or_none(str(text)) if text else None
