"""Sync windows of a project: when its applications may be synced.

Called by automated sync, by requests for a sync and by every pass of an operation, with the time given. Pure. Rules:
``SyncWindows`` of Argo CD (reference argocd-app §2.3). As upstream, a window's time zone adds the offset that the zone
has now, also for starts on the other side of a change to summer time; an unknown zone is UTC.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from syncline.kube.cron import CronError, Schedule, parse_schedule
from syncline.kube.durations import DurationError, parse_duration
from syncline.kube.glob import glob_matches
from syncline.kube.objects import Obj, dig, name_of

__all__ = [
    "SyncWindow",
    "WindowError",
    "active_windows",
    "can_sync",
    "inactive_allows",
    "matching_windows",
    "read_windows",
    "validate_window",
    "window_problem",
]

MAX_DESCRIPTION = 255


class WindowError(ValueError):
    """A window that cannot be read; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class SyncWindow:
    """One entry of ``spec.syncWindows``, read."""

    allows: bool
    schedule: Schedule
    duration: timedelta
    zone: str = ""
    applications: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    all_lists: bool = False
    """``andOperator``: every list that is given must match."""
    manual: bool = False
    """``manualSync``: users may sync nevertheless."""
    overrun: bool = False
    """``syncOverrun``: an operation that began while it was allowed may go on."""

    def local(self, now: datetime) -> datetime:
        """``now`` on the clock of the window's zone, as the schedule reads it."""
        return now.astimezone(UTC) + _offset(self.zone, now)

    def is_active(self, now: datetime) -> bool:
        """Started before ``now`` and not yet over; both ends are exclusive."""
        local = self.local(now)
        start = self.schedule.next_after(local - self.duration)
        return start is not None and start < local

    def matches(self, app: Obj) -> bool:
        """Whether the window is about this application."""
        destination = dig(app, "spec", "destination", default={})
        targets = tuple(str(destination.get(key)) for key in ("name", "server") if destination.get(key))
        lists = (
            (self.applications, (name_of(app),)),
            (self.clusters, targets),
            (self.namespaces, (str(destination.get("namespace") or ""),)),
        )
        answers = [_any_matches(patterns, texts) for patterns, texts in lists if patterns]
        return bool(answers) and (all(answers) if self.all_lists else any(answers))


def _any_matches(patterns: tuple[str, ...], texts: tuple[str, ...]) -> bool:
    return any(glob_matches(pattern, text) for pattern in patterns for text in texts)


def _offset(zone: str, now: datetime) -> timedelta:
    try:
        return now.astimezone(zoneinfo.ZoneInfo(zone)).utcoffset() or timedelta() if zone else timedelta()
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return timedelta()


def _text(entry: Mapping[str, Any], key: str) -> str:
    return str(entry.get(key) or "")


def _schedule(entry: Mapping[str, Any]) -> Schedule:
    text = _text(entry, "schedule")
    try:
        return parse_schedule(text)
    except CronError as error:
        raise WindowError(f"cannot parse schedule '{text}': {error}") from error


def _duration(entry: Mapping[str, Any]) -> timedelta:
    text = _text(entry, "duration")
    try:
        return parse_duration(text)
    except DurationError as error:
        raise WindowError(f"cannot parse duration '{text}': {error}") from error


def read_windows(entries: Sequence[Mapping[str, Any]]) -> tuple[SyncWindow, ...]:
    """From ``spec.syncWindows``. Raises :class:`WindowError` where one has no readable schedule or duration."""
    return tuple(
        SyncWindow(
            allows=entry.get("kind") == "allow",
            schedule=_schedule(entry),
            duration=_duration(entry),
            zone=_text(entry, "timeZone"),
            applications=tuple(entry.get("applications") or ()),
            namespaces=tuple(entry.get("namespaces") or ()),
            clusters=tuple(entry.get("clusters") or ()),
            all_lists=bool(entry.get("andOperator")),
            manual=bool(entry.get("manualSync")),
            overrun=bool(entry.get("syncOverrun")),
        )
        for entry in entries
    )


def validate_window(entry: Mapping[str, Any]) -> str:
    """What is wrong with an entry, in upstream's words; empty if nothing is."""
    kind = _text(entry, "kind")
    if kind not in ("allow", "deny"):
        return f"kind '{kind}' mismatch: can only be allow or deny"
    try:
        _schedule(entry)
        _duration(entry)
    except WindowError as error:
        return str(error)
    if len(_text(entry, "description")) > MAX_DESCRIPTION:
        return f"description must not exceed {MAX_DESCRIPTION} characters"
    return ""


def matching_windows(windows: Sequence[SyncWindow], app: Obj) -> tuple[SyncWindow, ...]:
    return tuple(window for window in windows if window.matches(app))


def active_windows(windows: Sequence[SyncWindow], now: datetime) -> tuple[SyncWindow, ...]:
    return tuple(window for window in windows if window.is_active(now))


def inactive_allows(windows: Sequence[SyncWindow], now: datetime) -> tuple[SyncWindow, ...]:
    return tuple(window for window in windows if window.allows and not window.is_active(now))


def can_sync(
    windows: Sequence[SyncWindow], now: datetime, *, manual: bool, operation_started: datetime | None = None
) -> bool:
    """Whether a sync may begin, or one that began at ``operation_started`` may go on. Give matching windows only.

    Any active denial blocks; else any active permission permits; else permissions that are not active block; else
    (denials only) it is allowed.
    """
    active = active_windows(windows, now)
    denying = [window for window in active if not window.allows]
    blocking = denying or ([] if active else list(inactive_allows(windows, now)))
    if not blocking or (manual and all(window.manual for window in blocking)):
        return True
    if operation_started is None or not all(window.overrun for window in blocking):
        return False
    return can_sync(windows, operation_started, manual=manual)


def window_problem(
    project: Obj | None, app: Obj, now: datetime, *, manual: bool, operation_started: datetime | None = None
) -> str:
    """Empty, or why the windows of the project keep this application from being synced now. Windows that cannot be
    read block, as upstream."""
    entries = dig(project or {}, "spec", "syncWindows", default=[])
    try:
        windows = read_windows([entry for entry in entries if isinstance(entry, dict)])
    except WindowError as error:
        return f"blocked by sync window: {error}"
    matching = matching_windows(windows, app)
    allowed = can_sync(matching, now, manual=manual, operation_started=operation_started)
    return "" if allowed else "blocked by sync window"
