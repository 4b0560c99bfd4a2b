"""Sync windows of a project: the times when its applications may be synced.

Called by automated sync, by sync requests and by every reconcile of an operation, with the current time. Pure. Rules:
``SyncWindows`` of Argo CD (reference argocd-app §2.3). As upstream, a window's time zone adds the zone's current
offset, also for starts on the other side of a change to summer time; an unknown zone is UTC.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.text.cron import CronError, Schedule, parse_schedule
from syncline.kube.text.durations import DurationError, parse_duration
from syncline.kube.text.glob import glob_matches

MAX_DESCRIPTION = 255


class WindowError(ValueError):
    """A window is invalid; the message is upstream's."""


@dataclass(frozen=True, slots=True)
class SyncWindow:
    """One parsed entry of ``spec.syncWindows``."""

    kind: str
    """``allow`` or ``deny``; windows of other kinds are ignored."""
    schedule: Schedule
    duration: timedelta
    zone: str = ""
    manual: bool = False
    """``manualSync``: users may sync despite the window."""
    overrun: bool = False
    """``syncOverrun``: an operation that began while permitted may continue."""

    @property
    def allows(self) -> bool:
        return self.kind == "allow"

    @property
    def denies(self) -> bool:
        return self.kind == "deny"

    def local(self, now: datetime) -> datetime:
        """Return ``now`` in the window's time zone, in which its schedule is evaluated."""
        return now.astimezone(UTC) + _offset(self.zone, now)

    def is_active(self, now: datetime) -> bool:
        """Return whether the window has started and not ended at ``now``; both ends are exclusive."""
        local = self.local(now)
        start = self.schedule.next_after(local - self.duration)
        return start is not None and start < local


def _about(entry: Mapping[str, Any], app: Obj) -> bool:
    """Return whether an entry selects this application."""
    destination = dig(app, "spec", "destination", default={})
    lists: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("applications", (name_of(app),)),
        ("clusters", tuple(str(destination.get(key)) for key in ("name", "server") if destination.get(key))),
        ("namespaces", (str(destination.get("namespace") or ""),)),
    )
    answers = [_any_matches(tuple(entry[key]), texts) for key, texts in lists if entry.get(key)]
    return bool(answers) and (all(answers) if entry.get("andOperator") else any(answers))


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
    """Parse entries of ``spec.syncWindows``. Raises :class:`WindowError` for an invalid schedule or duration."""
    return tuple(
        SyncWindow(
            kind=_text(entry, "kind"),
            schedule=_schedule(entry),
            duration=_duration(entry),
            zone=_text(entry, "timeZone"),
            manual=bool(entry.get("manualSync")),
            overrun=bool(entry.get("syncOverrun")),
        )
        for entry in entries
    )


def validate_window(entry: Mapping[str, Any]) -> str:
    """Return upstream's error message for an entry; empty if it is valid."""
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


def matching_windows(entries: Iterable[Any], app: Obj) -> list[Mapping[str, Any]]:
    """Return the entries of ``spec.syncWindows`` that select this application; others may be invalid."""
    return [entry for entry in entries if isinstance(entry, dict) and _about(entry, app)]


def active_windows(windows: Sequence[SyncWindow], now: datetime) -> tuple[SyncWindow, ...]:
    return tuple(window for window in windows if window.is_active(now))


def inactive_allows(windows: Sequence[SyncWindow], now: datetime) -> tuple[SyncWindow, ...]:
    return tuple(window for window in windows if window.allows and not window.is_active(now))


def can_sync(
    windows: Sequence[SyncWindow], now: datetime, *, manual: bool, operation_started: datetime | None = None
) -> bool:
    """Return whether a sync may begin, or one begun at ``operation_started`` may continue. Pass matching windows only.

    An active deny window blocks; else an active allow window permits; else inactive allow windows block; else (deny
    windows only) the sync is permitted.
    """
    active = active_windows(windows, now)
    blocking = [window for window in active if window.denies]
    if not blocking and not any(window.allows for window in active):
        blocking = list(inactive_allows(windows, now))
    if not blocking or (manual and all(window.manual for window in blocking)):
        return True
    if operation_started is None or not all(window.overrun for window in blocking):
        return False
    return can_sync(windows, operation_started, manual=manual)


def window_problem(
    project: Obj | None, app: Obj, now: datetime, *, manual: bool, operation_started: datetime | None = None
) -> str:
    """Return why the project's windows block a sync of this application now; empty if they do not. Invalid windows of
    this application block, as upstream; those of others do not."""
    entries = dig(project or {}, "spec", "syncWindows", default=[])
    try:
        matching = read_windows(matching_windows(entries, app))
    except WindowError as error:
        return f"blocked by sync window: {error}"
    allowed = can_sync(matching, now, manual=manual, operation_started=operation_started)
    return "" if allowed else "blocked by sync window"
