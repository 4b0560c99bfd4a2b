"""When a CronJob is due: ``kube/text/cron.py`` in the job's time zone, with the descriptors that CronJobs know.

Schedules are validated before they are stored; one that cannot be read is never due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from syncline.kube.text import cron
from syncline.kube.text.durations import parse_duration

__all__ = ["Every", "Schedule", "parse_schedule"]

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
"""How far back the latest due time is looked for, in growing steps, so that few moments are ever walked through."""
_NEAR = timedelta(hours=6)
"""A change of the clock in this time is examined to the second; no clock is changed by as much."""
_SECOND = timedelta(seconds=1)
_MOST_STEPS = 400
"""Changes of the clock on the way to a due time: two a year for as long as one is looked for, with room."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Due times as UTC instants."""

    fields: cron.Schedule
    zone: tzinfo = UTC

    def following(self, after: datetime) -> datetime | None:
        """The first due time after ``after``. A time that the clock skips is not due; one that it shows twice is due
        twice (robfig/cron, whose answers are the test)."""
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
                # The clock is changed on the way: nothing is due before, so reconcile again from shortly before.
                moment, inclusive = max(moment + _NEAR / 2, due - _NEAR / 2), True
            else:
                return due
        return None

    def _offset(self, moment: datetime) -> timedelta:
        return moment.astimezone(self.zone).utcoffset() or timedelta()

    def _change(self, moment: datetime, offset: timedelta) -> datetime | None:
        """The second at which the clock changes, if it does soon."""
        low, high = moment, moment + _NEAR
        if self._offset(high) == offset:
            return None
        while high - low > _SECOND:
            middle = low + ((high - low) / 2 // _SECOND) * _SECOND
            low, high = (middle, high) if self._offset(middle) == offset else (low, middle)
        return high.replace(microsecond=0)

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        """The last due time in (``after``, ``until``]."""
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
    """``@every 1h30m``: due so long after the last time, by whole seconds."""

    delay: timedelta
    zone: tzinfo = UTC

    def following(self, after: datetime) -> datetime | None:
        return after.replace(microsecond=0) + self.delay

    def latest(self, after: datetime, until: datetime) -> datetime | None:
        count = (until - after.replace(microsecond=0)) // self.delay
        return after.replace(microsecond=0) + count * self.delay if count > 0 else None


def parse_schedule(text: str, zone: str = "") -> Schedule | Every | None:
    """None for a schedule that cannot be read."""
    try:
        place = ZoneInfo(zone) if zone else UTC
        if text.startswith(_EVERY):
            delay = parse_duration(text.removeprefix(_EVERY)) // _SECOND * _SECOND
            return Every(max(delay, _SECOND), place)
        return Schedule(cron.parse_schedule(_DESCRIPTORS.get(text, text)), place)
    except (cron.CronError, ValueError, KeyError, OSError, OverflowError):
        return None
