"""Maintenance windows of clusters; pure. Fields and rules: sync windows of an AppProject (``argo/project/windows.py``).

Each list is judged by itself, and all must permit: a window of a cluster does not open what one of its set closes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from syncline.argo.project.windows import SyncWindow, WindowError, can_sync, read_windows, validate_window
from syncline.kube.schema.extensions import MAX_NOTE

MAX_WINDOWS: Final = 20
MOST_CHANGES: Final = 500
"""How many beginnings and ends of windows are tried to find when they permit again."""
_EDGE: Final = timedelta(seconds=1)
"""Both ends of a window are exclusive."""
_FIELDS: Final = frozenset({"kind", "schedule", "duration", "timeZone", "description"})


@dataclass(frozen=True, slots=True)
class Closed:
    """Why windows do not permit a change now. ``until``: when they do next; None: not as far as can be seen."""

    why: str
    until: datetime | None = None


def windows_in(text: str) -> tuple[SyncWindow, ...]:
    """Read an annotation. Raises :class:`WindowError`, with what is allowed."""
    if len(text) > MAX_NOTE:
        raise WindowError(f"has {len(text)} characters; at most {MAX_NOTE} are read")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise WindowError("is no JSON; allowed is a list of windows with kind, schedule and duration") from None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise WindowError("is no list of objects; allowed is a list of windows with kind, schedule and duration")
    if len(found) > MAX_WINDOWS:
        raise WindowError(f"lists {len(found)} windows; at most {MAX_WINDOWS} are allowed")
    for one in found:
        if unknown := sorted(one.keys() - _FIELDS):
            raise WindowError(f"has the field {unknown[0][:80]!r}; allowed are {', '.join(sorted(_FIELDS))}")
        if problem := validate_window(one):
            raise WindowError(problem)
    return read_windows(found)


def judge_windows(given: Iterable[tuple[str, str]], now: datetime) -> Closed | None:
    """Return why a change may not begin now; None: it may. ``given``: who has a list, and its text."""
    lists: list[tuple[str, tuple[SyncWindow, ...]]] = []
    for owner, text in given:
        try:
            lists.append((owner, windows_in(text)))
        except WindowError as error:
            return Closed(f"the maintenance windows of {owner} cannot be read: {error}")
    closed = next((owner for owner, windows in lists if not can_sync(windows, now, manual=False)), "")
    if not closed:
        return None
    until = next_permit([windows for _, windows in lists], now)
    return Closed(f"outside of the maintenance windows of {closed}", until)


def next_permit(lists: Sequence[Sequence[SyncWindow]], now: datetime) -> datetime | None:
    """Return when all lists permit a change for the first time after ``now``; None: not within a year or so."""
    moment = now
    for _ in range(MOST_CHANGES):
        edges = [edge for windows in lists for window in windows if (edge := _next_edge(window, moment)) is not None]
        if not edges or min(edges) - now > timedelta(days=400):
            return None
        moment = min(edges)
        if all(can_sync(windows, moment + _EDGE, manual=False) for windows in lists):
            return moment + _EDGE
    return None


def _next_edge(window: SyncWindow, moment: datetime) -> datetime | None:
    """Return when a window begins or ends next, by the offset of its zone at ``moment``."""
    local = window.local(moment)
    offset = local - moment
    starts = (window.schedule.next_after(local), window.schedule.next_after(local - window.duration))
    edges = [starts[0], None if starts[1] is None else starts[1] + window.duration]
    found = [edge - offset for edge in edges if edge is not None]
    return min((one for one in found if one > moment), default=None)
