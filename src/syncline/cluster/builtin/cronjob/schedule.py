"""When a CronJob is due: ``kube/cron.py`` in the job's time zone, with the descriptors that CronJobs know.

Schedules are validated before they are stored; one that cannot be read is never due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from syncline.kube import cron

__all__ = ["Schedule", "parse_schedule"]

_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_LOOK_BACK = (timedelta(hours=1), timedelta(days=1), timedelta(days=32), timedelta(days=366), timedelta(days=5 * 366))
"""How far back the latest due time is looked for, in growing steps, so that few moments are ever walked through."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Due times as UTC instants."""

    fields: cron.Schedule
    zone: tzinfo = UTC

    def following(self, after: datetime) -> datetime | None:
        """The first due time after ``after``; in an hour that the clock shows twice it is due in the first."""
        local = self.fields.next_after(after.astimezone(self.zone).replace(tzinfo=None))
        while local is not None:
            moment = local.replace(tzinfo=self.zone).astimezone(UTC)
            if moment > after:
                return moment
            local = self.fields.next_after(local)
        return None

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


def parse_schedule(text: str, zone: str = "") -> Schedule | None:
    """None for a schedule that cannot be read, and for ``@every``, which has no fixed times."""
    try:
        fields = cron.parse_schedule(_DESCRIPTORS.get(text, text))
        return Schedule(fields, ZoneInfo(zone) if zone else UTC)
    except (cron.CronError, ValueError, KeyError, OSError):
        return None
