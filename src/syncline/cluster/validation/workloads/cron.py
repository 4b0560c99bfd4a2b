"""Validate cron schedules and time zones of CronJobs.

``jobs.py`` calls it; problems have the words of Go's ``robfig/cron`` parser (``kube/text/cron.py``), and are empty for
valid text.
"""

from __future__ import annotations

import re
import zoneinfo

from syncline.kube.text.cron import MAX_CHARS, CronError, parse_schedule

DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_ZONE_PART = re.compile(r"[A-Za-z._0-9+-]{1,14}")


def schedule_problem(text: str) -> str:
    """Return what is wrong with a five-field schedule or a descriptor, or ""."""
    if len(text) > MAX_CHARS:
        return f"must be no more than {MAX_CHARS} characters"
    if text.startswith(("TZ=", "CRON_TZ=")):
        text = text.partition(" ")[2].strip()
    if text.startswith("@"):
        if text.startswith("@every ") and not re.fullmatch(r"@every [-+]?([0-9.]+(ns|us|µs|ms|s|m|h))+", text):
            return f'failed to parse duration {text}: time: invalid duration "{text.removeprefix("@every ")}"'
        known = text in DESCRIPTORS or re.fullmatch(r"@every ([0-9.]+(ns|us|µs|ms|s|m|h))+", text)
        return "" if known else f"unrecognized descriptor: {text}"
    try:
        parse_schedule(text or " ")
    except CronError as error:
        return str(error)
    return ""


def time_zone_problem(name: str) -> str:
    """Return an error if the time zone database does not have the name, or if it is ``Local``; else ""."""
    parts = name.split("/")
    if any(part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part) for part in parts):
        return f"unknown time zone {name}"
    if name.lower() == "local":
        return "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return f"unknown time zone {name}"
    return ""
