"""The filter TaintToleration: a cluster passes if each of its taints is tolerated; pure.

PreferNoSelect has no effect; NoSelectIfNew keeps clusters that are selected already. Rules:
``pkg/placement/plugins/tainttoleration`` of upstream (reference ocm-pull-model §4.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from syncline.base.clock import format_time, time_or_none
from syncline.fleet.hub.placement.model import Cluster, Misconfigured
from syncline.kube.objects import Obj, dig

TAINT_TOLERATION: Final = "TaintToleration"
"""Name of the filter."""
PREFER_NO_SELECT, NO_SELECT_IF_NEW = "PreferNoSelect", "NoSelectIfNew"
_LONGEST_S: Final = 10**10
"""Seconds after which a toleration does not end, in a clock of years with four digits."""


@dataclass(frozen=True, slots=True)
class Tolerated:
    """Whether the taints of a cluster are tolerated: ``why`` not (empty: they are), and ``until`` when."""

    why: str = ""
    until: datetime | None = None


def tolerations_of(placement: Obj) -> Sequence[Obj]:
    """Return the tolerations. Raises :class:`Misconfigured` for the first one that is invalid."""
    listed: Sequence[Obj] = dig(placement, "spec", "tolerations") or ()
    for one in listed:
        exists = one.get("operator") == "Exists"
        if not one.get("key") and not exists:
            raise Misconfigured(TAINT_TOLERATION, "If the key is empty, operator must be Exists.")
        if exists and one.get("value"):
            raise Misconfigured(TAINT_TOLERATION, "If the operator is Exists, the value should be empty.")
    return listed


def tolerated(cluster: Cluster, tolerations: Sequence[Obj], now: datetime, *, selected: bool) -> Tolerated:
    """Return whether a Placement tolerates all taints; ``selected``: the cluster is in its decisions."""
    until: datetime | None = None
    for taint in cluster.taints:
        found = _taint_tolerated(taint, tolerations, now, selected)
        if found.why:
            return found
        until = earliest((until, found.until))
    return Tolerated("", until)


def passing(placement: Obj, clusters: Sequence[Cluster], before: frozenset[str], now: datetime) -> tuple[Cluster, ...]:
    """Return the clusters that pass the filter. Raises :class:`Misconfigured`; a Placement without candidates is not
    checked."""
    if not clusters:
        return ()
    tolerations = tolerations_of(placement)
    return tuple(
        one
        for one in clusters
        if not one.taints or not tolerated(one, tolerations, now, selected=one.name in before).why
    )


def ends_at(placement: Obj, clusters: Iterable[Cluster], now: datetime) -> datetime | None:
    """Return when the first toleration of these selected clusters ends. Clusters that are tolerated no longer do not
    count; tolerations are not checked here, since a Placement without candidates is not checked."""
    tolerations = dig(placement, "spec", "tolerations") or ()
    looked_at = (tolerated(one, tolerations, now, selected=True) for one in clusters if one.taints)
    return earliest(found.until for found in looked_at if not found.why)


def earliest(times: Iterable[datetime | None]) -> datetime | None:
    return min((one for one in times if one is not None), default=None)


def _taint_tolerated(taint: Obj, tolerations: Sequence[Obj], now: datetime, selected: bool) -> Tolerated:
    effect = taint.get("effect")
    if effect == PREFER_NO_SELECT or (effect == NO_SELECT_IF_NEW and selected):
        return Tolerated()
    ended: datetime | None = None
    for one in tolerations:
        if not _applies(one, taint):
            continue
        seconds = one.get("tolerationSeconds")
        if seconds is None:
            return Tolerated()
        ends = _added_to(time_or_none(taint.get("timeAdded")), int(seconds))
        if ends is not None and now < ends:
            return Tolerated("", ends)
        ended = earliest((ended, ends))
    pair = f"{taint.get('key')}={taint['value']}" if taint.get("value") else f"{taint.get('key')}"
    which = f"taint {pair}:{effect}"
    if ended is not None:
        return Tolerated(f"its {which} was tolerated until {format_time(ended)}")
    return Tolerated(f"no toleration matches its {which}")


def _applies(toleration: Obj, taint: Obj) -> bool:
    if any(toleration.get(name) and toleration[name] != taint.get(name) for name in ("effect", "key")):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(operator == "Exists")


def _added_to(added: datetime | None, seconds: int) -> datetime | None:
    """Return when a toleration ends; None if it ended long ago, since the taint has no time."""
    if added is None:
        return None
    try:
        return added + timedelta(seconds=min(max(seconds, -_LONGEST_S), _LONGEST_S))
    except OverflowError:
        return datetime.max.replace(tzinfo=added.tzinfo) if seconds > 0 else None
