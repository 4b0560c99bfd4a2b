"""Compute a CronJob's scheduled times: ``kube/text/cron.py`` in the job's time zone, with CronJob descriptors.

Schedules are validated before they are stored; a malformed one is never due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from syncline.kube.text import cron
from syncline.kube.text.durations import parse_duration

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_LOOK_BACK = (timedelta(hours=1), timedelta(days=1), timedelta(days=32), timedelta(days=366), timedelta(days=5 * 366))
"""Spans, in growing steps, in which the latest scheduled time is searched, so that few times are computed."""
_NEAR = timedelta(hours=6)
"""A clock change within this span is located to the second; no change is as large."""
_SECOND = timedelta(seconds=1)
_MOST_STEPS = 400
"""Limit of clock changes on the way to a scheduled time: two per year of the search, with a margin."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Scheduled times as UTC instants."""

    fields: cron.Schedule
    zone: tzinfo = UTC

    def following(self, after: datetime) -> datetime | None:
        """Return the first scheduled time after ``after``. A time that a clock change skips is not scheduled; one that
        it repeats is scheduled twice (like robfig/cron, which the tests compare)."""
        moment, inclusive = after.astimezone(UTC), False
        for _ in range(_MOST_STEPS):
            offset = self._offset(moment)
            shown = (moment + offset).replace(tzinfo=None)
            local = self.fields.next_after(shown - _SECOND if inclusive else shown)
            if local is None:
                return None
            due = local.replace(tzinfo=UTC) - offset
            change = self._change(moment, offset)
            if change is not None and due >= change:
                moment, inclusive = change, True
            elif change is None and self._offset(due) != offset:
                # The clock changes before that time: search again from shortly before.
                moment, inclusive = max(moment + _NEAR / 2, due - _NEAR / 2), True
            else:
                return due
        return None

    def _offset(self, moment: datetime) -> timedelta:
        return moment.astimezone(self.zone).utcoffset() or timedelta()

    def _change(self, moment: datetime, offset: timedelta) -> datetime | None:
        """Return the second of the next clock change, if it is near."""
        low, high = moment, moment + _NEAR
        if self._offset(high) == offset:
            return None
        while high - low > _SECOND:
            middle = low + ((high - low) / 2 // _SECOND) * _SECOND
            low, high = (middle, high) if self._offset(middle) == offset else (low, middle)
        return high.replace(microsecond=0)

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """Return the last scheduled time in (``after``, ``until``]."""
        for span in _LOOK_BACK:
            found = self._last(max(after, until - span), until)
            if found is not None or until - span <= after:
                return found
        return None

    def _last(self, after: datetime, until: datetime) -> datetime | None:
        found, moment = None, self.following(after)
        while moment is not None and moment <= until:
            found, moment = moment, self.following(moment)
        return found


@dataclass(frozen=True, slots=True)
class Every:
    """``@every 1h30m``: this long after the last time, in whole seconds."""

    delay: timedelta
    zone: tzinfo = UTC

    def following(self, after: datetime) -> datetime | None:
        return after.replace(microsecond=0) + self.delay

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        count = (until - after.replace(microsecond=0)) // self.delay
        return after.replace(microsecond=0) + count * self.delay if count > 0 else None


def parse_schedule(text: str, zone: str = "") -> Schedule | Every | None:
    """Return None for a malformed schedule."""
    try:
        place = ZoneInfo(zone) if zone else UTC
        if text.startswith(_EVERY):
            delay = parse_duration(text.removeprefix(_EVERY)) // _SECOND * _SECOND
            return Every(max(delay, _SECOND), place)
        return Schedule(cron.parse_schedule(_DESCRIPTORS.get(text, text)), place)
    except (cron.CronError, ValueError, KeyError, OSError, OverflowError):
        return None
