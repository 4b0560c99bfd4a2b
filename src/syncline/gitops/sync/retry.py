"""The wait before the next attempt of a failed operation.

Called by the application's operation. Pure. Source: Argo CD ``pkg/apis/application/v1alpha1`` (RetryStrategy).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from syncline.apply.annotations import go_int
from syncline.kube.objects import dig
from syncline.kube.text.durations import DurationError, parse_nanoseconds

DEFAULT_DURATION = "5s"
DEFAULT_FACTOR = 2
DEFAULT_MAX_DURATION = "3m"
_SECOND = 1_000_000_000
MAX_EXPONENT = 64
"""Doubling a nanosecond this often exceeds any duration."""
_LONGEST = 2**63 - 1
"""Nanoseconds that a Go duration can hold; the cap of an unlimited wait."""


class RetryError(ValueError):
    """A back-off in the policy is invalid."""


def retry_limit(policy: Any) -> int:
    """Return the number of retries: 0 none, negative unlimited."""
    limit = dig(policy, "limit", default=0)
    return limit if isinstance(limit, int) and not isinstance(limit, bool) else 0


def retry_after(policy: Any, attempts: int) -> timedelta:
    """Return the wait after ``attempts`` attempts: duration × factor^attempts, at most maxDuration.

    A maximum of zero or less is none. Raises :class:`RetryError` that quotes the text.
    """
    duration = _nanoseconds(dig(policy, "backoff", "duration", default="") or DEFAULT_DURATION)
    longest = _nanoseconds(dig(policy, "backoff", "maxDuration", default="") or DEFAULT_MAX_DURATION)
    factor = dig(policy, "backoff", "factor", default=DEFAULT_FACTOR)
    wait: int = duration * int(factor) ** _exponent(attempts)
    if longest > 0:
        wait = min(wait, longest)
    return timedelta(microseconds=max(-_LONGEST, min(wait, _LONGEST)) / 1000)


def _exponent(attempts: int) -> int:
    """Return the exponent, capped: a client that writes the count of attempts must not control the computing time."""
    return max(attempts, 0) if attempts < MAX_EXPONENT else MAX_EXPONENT + attempts % 2


def _nanoseconds(value: Any) -> int:
    """Parse a Go duration or a whole number of seconds."""
    text = str(value)
    seconds = go_int(text)
    if seconds is not None:
        return seconds * _SECOND
    try:
        return parse_nanoseconds(text)
    except DurationError as error:
        raise RetryError(f"unable to parse {text} as a duration") from error
