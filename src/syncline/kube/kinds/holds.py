"""Reads and creates Holds, and finds who paused a pool; pure. See :class:`Hold`.

While a Hold lives, its pools begin no new node updates. Used by the code that takes Holds (GitOps, people) and the code
that honours them (the machine-config room, or the bridge if another operator manages the pools).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import format_time, parse_time
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.schema.extensions import json_note

HELD = "syncline.dev/held"
"""Annotation of a pool: JSON list of the Holds that its controller honours now."""
LIFE = timedelta(hours=1)
RENEW = timedelta(minutes=20)
"""A Hold is renewed after this part of its life."""
ROOM_LEASE = "syncline-machine-config"
"""Held by our own machine-config room, which honours Holds itself; then the bridge leaves ``spec.paused`` alone."""


@dataclass(frozen=True, slots=True)
class Hold:
    """One Hold as observed. ``expires`` None: unreadable, so it counts as expired."""

    obj: Obj
    expires: datetime | None

    @classmethod
    def of(cls, obj: Obj) -> Hold:
        try:
            expires = parse_time(str(dig(obj, "spec", "expiresAt", default="")))
        except ValueError:
            expires = None
        return cls(obj, expires)

    @property
    def name(self) -> str:
        return name_of(self.obj)

    @property
    def pools(self) -> frozenset[str]:
        return frozenset(str(pool) for pool in dig(self.obj, "spec", "pools", default=[]))

    @property
    def owner(self) -> str:
        return str(dig(self.obj, "spec", "owner", default=""))

    @property
    def reason(self) -> str:
        return str(dig(self.obj, "spec", "reason", default=""))

    def sentence(self) -> str:
        """Return a short description for conditions."""
        until = f" until {format_time(self.expires)}" if self.expires is not None else ""
        return f"Hold {self.name} of {self.owner or 'an unknown owner'}{until}" + (
            f" ({self.reason})" if self.reason else ""
        )

    def lives(self, now: datetime) -> bool:
        return self.expires is not None and now < self.expires

    def wants_renewal(self, now: datetime) -> bool:
        return self.expires is None or self.expires - now <= LIFE - RENEW


def holds_of(objects: Iterable[Obj]) -> tuple[Hold, ...]:
    """Return the Holds, sorted by name."""
    return tuple(sorted((Hold.of(obj) for obj in objects), key=lambda hold: hold.name))


def make_hold(
    name: str, pools: Iterable[str], owner: str, reason: str, until: datetime, labels: dict[str, str] | None = None
) -> Obj:
    return {
        "apiVersion": HOLD.api_version,
        "kind": HOLD.kind,
        "metadata": {"name": name} | ({"labels": labels} if labels else {}),
        "spec": {"pools": sorted(pools), "owner": owner, "reason": reason, "expiresAt": format_time(until)},
    }


def noted_holds(pool: Obj) -> list[str]:
    """Return the Holds that the pool's controller has seen and honours."""
    noted = json_note(pool, HELD)
    return [str(name) for name in noted] if isinstance(noted, list) else []


def pause_writer(pool: Obj) -> tuple[str, str]:
    """Return which manager wrote ``spec.paused`` last, and when; empty if managed fields do not record it."""
    entries = [
        (str(entry.get("time") or ""), str(entry.get("manager") or ""))
        for entry in dig(pool, "metadata", "managedFields", default=[])
        if dig(entry, "fieldsV1", "f:spec", "f:paused") is not None
    ]
    time, manager = max(entries, default=("", ""))
    return manager, time
