"""How many failed logins an account may have: :class:`Failures`. Pure.

Rules: Argo CD ``util/session/sessionmanager.go``: after five failures in a row every login of that name fails, the
right password too, until five minutes have passed since the last one. The table has a bound, so that logins with
drawn names fill no memory; the administrator is never dropped from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from syncline.argo.access.accounts import ADMIN


@dataclass(frozen=True, slots=True)
class Attempts:
    """Failures of one name since its last success."""

    count: int
    last: datetime


@dataclass(frozen=True, slots=True)
class LoginLimits:
    """The bounds; upstream reads them from ``ARGOCD_SESSION_…`` variables."""

    failures: int = 5
    window: timedelta = timedelta(minutes=5)
    """Zero: failures are never forgotten."""
    names: int = 10_000


@dataclass(frozen=True)
class Failures:
    """The failed logins by name."""

    limits: LoginLimits = field(default_factory=LoginLimits)
    by_name: Mapping[str, Attempts] = field(default_factory=dict)

    def blocked(self, name: str, now: datetime) -> bool:
        """Return True if a login of ``name`` fails whatever its password."""
        found = self.by_name.get(name)
        return found is not None and found.count >= self.limits.failures and not self._old(found, now)

    def after(self, name: str, now: datetime, *, failed: bool) -> Failures:
        """Return the table after a login of ``name``."""
        kept = {other: one for other, one in self.by_name.items() if not self._old(one, now)}
        earlier = kept.pop(name, None)
        if failed:
            if len(kept) >= self.limits.names:
                oldest = min((one for one in kept if one != ADMIN), key=lambda one: kept[one].last, default=None)
                kept.pop(oldest or "", None)
            kept[name] = Attempts((earlier.count if earlier else 0) + 1, now)
        return Failures(self.limits, kept)

    def _old(self, attempts: Attempts, now: datetime) -> bool:
        return bool(self.limits.window) and now - attempts.last > self.limits.window
