"""The health of one object: its type and the order from best to worst.

The checks of this package return it; the sync engine, the comparison and ``syncline health`` use it. It has no other
rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class HealthStatus(StrEnum):
    """From best to worst, in Argo CD's order: the health of an application is the worst of its objects."""

    UNSTATED = ""
    """A script or table returned no health: no effect on an application, and a gate continues to wait."""
    HEALTHY = "Healthy"
    SUSPENDED = "Suspended"
    PROGRESSING = "Progressing"
    MISSING = "Missing"
    DEGRADED = "Degraded"
    UNKNOWN = "Unknown"


_ORDER = {status: index for index, status in enumerate(HealthStatus)}


@dataclass(frozen=True, slots=True)
class Health:
    """``failed``: the check failed (status Unknown, message says why). ``error``: the condition's text if longer than
    the message. ``unsettled``: another run may differ for the same object; ``awaited``: the result is not there yet."""

    status: HealthStatus
    message: str = ""
    failed: bool = False
    error: str = ""
    unsettled: bool = False
    awaited: bool = False

    @property
    def why(self) -> str:
        """The message of a failed check for the Application."""
        return self.error or self.message


def worst(statuses: Iterable[HealthStatus]) -> HealthStatus:
    """Return the worst of all; Healthy if there are none."""
    return max([HealthStatus.HEALTHY, *statuses], key=_ORDER.__getitem__)
