"""Reads when a host wants to be asked again: :func:`rest_until`. Pure.

GitHub refuses with 403 or 429, and names its quota in ``X-RateLimit-*``; GitLab with 429 and ``RateLimit-*``; Azure
DevOps, Bitbucket and Gitea behind a proxy with 429 or 503 and ``Retry-After``. Rules: the hosts' documentation.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

UNNAMED_REST = timedelta(seconds=60)
"""After a refusal that does not say until when: what GitHub asks for after its secondary limit."""
LONGEST_REST = timedelta(minutes=65)
"""Quotas last an hour; a host that names more is asked again nevertheless."""
SHORTEST_REST = timedelta(seconds=1)
_EPOCH_BEGINS = 1_000_000_000
"""Smaller numbers are seconds from now, larger ones since 1970."""
_REMAINING = ("x-ratelimit-remaining", "ratelimit-remaining")
_RESET = ("x-ratelimit-reset", "ratelimit-reset")


def rest_until(status: int, headers: Mapping[str, str], said: str, now: datetime) -> datetime | None:
    """Return the moment before which the host wants no request; None: ask as you like.

    ``headers`` have lower-case names; ``said`` is the message in the body of an error. An answer with the last of a
    quota counts as well: the next request would be refused.
    """
    used_up = any(headers.get(name, "").strip() == "0" for name in _REMAINING)
    reset = next((found for name in _RESET if (found := _moment(headers.get(name, ""), now))), None)
    after = _moment(headers.get("retry-after", ""), now)
    if is_refusal(status, headers, said):
        wanted = max((one for one in (after, reset if used_up else None) if one is not None), default=None)
        return _bounded(wanted or now + UNNAMED_REST, now)
    return _bounded(reset, now) if used_up and reset is not None and reset > now else None


def is_refusal(status: int, headers: Mapping[str, str], said: str) -> bool:
    """Return True if the status is that of a rate limit, not of a missing right."""
    if status == 400:
        return said.lower().startswith("rate exceeded")  # AWS' ThrottlingException
    if status == 503:
        return "retry-after" in headers
    used_up = any(headers.get(name, "").strip() == "0" for name in _REMAINING)
    return status == 429 or (status == 403 and ("retry-after" in headers or used_up or "rate limit" in said.lower()))


def _bounded(wanted: datetime, now: datetime) -> datetime:
    return min(max(wanted, now + SHORTEST_REST), now + LONGEST_REST)


def _moment(text: str, now: datetime) -> datetime | None:
    """Read seconds from now, seconds since 1970, or a date of HTTP."""
    text = text.strip()
    number = text.partition(".")[0]
    if number.isascii() and number.isdigit():
        seconds = int(number[:12])
        if seconds >= _EPOCH_BEGINS:
            return datetime.fromtimestamp(min(seconds, 4_102_444_800), UTC)
        return now + timedelta(seconds=min(seconds, 864_000))
    try:
        found = parsedate_to_datetime(text) if text else None
    except (ValueError, TypeError, IndexError):
        return None
    return found.replace(tzinfo=found.tzinfo or UTC) if found is not None else None
