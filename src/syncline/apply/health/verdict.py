"""What health says about one object.

Called by the sync engine, the comparison and ``syncline health``; the checks of this package return it. Holds no rule
of its own but the order from best to worst.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Health", "HealthStatus", "worst"]


class HealthStatus(StrEnum):
    """From best to worst, in Argo CD's order: the health of an application is the worst of its objects."""

    UNSTATED = ""
    """A script or a table had nothing to say of the object: no effect on an application, and a gate continues
    waiting."""
    HEALTHY = "Healthy"
    SUSPENDED = "Suspended"
    PROGRESSING = "Progressing"
    MISSING = "Missing"
    DEGRADED = "Degraded"
    UNKNOWN = "Unknown"


_ORDER = {status: index for index, status in enumerate(HealthStatus)}


@dataclass(frozen=True, slots=True)
class Health:
    """``failed``: the check itself could not be made (status is Unknown, message says why). ``error``: what a condition
    says of that, where it is more than the message. ``unsettled``: it may say something else of the same object;
    ``awaited``: what says it has not answered yet."""

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
    """The worst of all; Healthy when there are none."""
    return max([HealthStatus.HEALTHY, *statuses], key=_ORDER.__getitem__)
