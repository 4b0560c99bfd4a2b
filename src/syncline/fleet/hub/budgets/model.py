"""What a FleetDisruptionBudget says, who holds its places, and the clusters that it counts; pure.

A roll-out reserves a place in ``status.places`` of every budget that selects a cluster before it disturbs the cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from syncline.base.clock import time_or_none
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.registration.leases import AVAILABLE
from syncline.kube.kinds.syncline import MAX_PLACES
from syncline.kube.objects import Obj, ObjectRef, dig, is_terminating, labels_of, name_of, ref_of, uid_of
from syncline.kube.selectors import Selector, SelectorError, label_selector_from

YOUNG: Final = timedelta(minutes=1)
"""Age up to which a place is not given back for anything that is not seen: the replica that reserved it may have seen
its holder, the labels of its cluster or the work written with it before another's cache shows them."""
_PERCENT: Final = re.compile(r"(\d{1,3})%", re.ASCII)


@dataclass(frozen=True, slots=True)
class Member:
    """The parts of a ManagedCluster that budgets read."""

    name: str
    labels: Mapping[str, str]
    accepted: bool
    leaving: bool
    available: bool
    since: str
    """When its availability last changed; empty if it never said."""

    @classmethod
    def of(cls, obj: Obj) -> Member:
        said = find_condition(dig(obj, "status", "conditions") or (), AVAILABLE) or {}
        return cls(
            name_of(obj),
            labels_of(obj),
            dig(obj, "spec", "hubAcceptsClient") is True,
            is_terminating(obj),
            said.get("status") == "True",
            str(said.get("lastTransitionTime") or ""),
        )


@dataclass(frozen=True, slots=True)
class Fleet:
    """The budgets of the hub and its clusters by name. ``unknown``: why they are not known now; nothing begins then."""

    budgets: tuple[Obj, ...] = ()
    clusters: Mapping[str, Member] = field(default_factory=dict)
    unknown: str = ""


NO_BUDGETS: Final = Fleet()


@dataclass(frozen=True, slots=True)
class Holder:
    """The object whose roll-out holds a place."""

    ref: ObjectRef
    uid: str

    @classmethod
    def of(cls, obj: Obj) -> Holder:
        return cls(ref_of(obj), uid_of(obj))

    def __str__(self) -> str:
        return f"{self.ref.kind} " + "/".join(part for part in (self.ref.namespace, self.ref.name) if part)

    def written(self) -> Obj:
        ref = self.ref
        fields = {"group": ref.group, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name, "uid": self.uid}
        return {key: value for key, value in fields.items() if value}


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a budget: ``holder`` may disturb ``cluster``, since a time (RFC 3339) and for a reason."""

    cluster: str
    holder: Holder
    since: str = ""
    reason: str = ""

    @classmethod
    def of(cls, written: Obj) -> Place:
        holder: Mapping[str, Any] = written.get("holder") or {}
        group, kind, namespace, name = (str(holder.get(key) or "") for key in ("group", "kind", "namespace", "name"))
        return cls(
            str(written.get("cluster") or ""),
            Holder(ObjectRef(group, kind, namespace, name), str(holder.get("uid") or "")),
            str(written.get("since") or ""),
            str(written.get("reason") or ""),
        )

    def written(self) -> Obj:
        return {
            "cluster": self.cluster,
            "holder": self.holder.written(),
            "holderUID": self.holder.uid,
            "since": self.since,
            "reason": self.reason,
        }

    @property
    def settled_at(self) -> datetime | None:
        """When all caches show what the holder did with it, and that there is a holder; None: at any time."""
        since = time_or_none(self.since)
        return None if since is None else since + YOUNG

    def sentence(self) -> str:
        return f"{self.cluster} is held by {self.holder}" + (f" since {self.since}" if self.since else "")


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget as it counts. ``problem``: why it permits nothing, empty if it can be read."""

    obj: Obj
    selector: Selector | None
    """None: it cannot be read, so every cluster may be meant."""
    most: int | str
    problem: str = ""

    @classmethod
    def of(cls, obj: Obj) -> Budget:
        """Read a budget. One that cannot be read permits nothing: a bound that is not understood is not ignored."""
        given = dig(obj, "spec", "maxUnavailable")
        most: int | str = given if isinstance(given, int | str) and not isinstance(given, bool) else ""
        try:
            selector = label_selector_from(dig(obj, "spec", "clusterSelector"))
        except (SelectorError, AttributeError, TypeError) as error:
            why = (
                f"spec.clusterSelector: {error}; change it to a label selector. Until then no roll-out begins anywhere"
            )
            return cls(obj, None, 0, why)
        if _share(most) is None:
            why = (
                f"spec.maxUnavailable is {given!r}; allowed are a number from 0 and a percentage from 0% to 100%. "
                "Until it is changed no roll-out begins in the clusters that it selects"
            )
            return cls(obj, selector, 0, why)
        return cls(obj, selector, most)

    @property
    def name(self) -> str:
        return name_of(self.obj)

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(Place.of(one) for one in dig(self.obj, "status", "places") or ())

    def selects(self, cluster: Member) -> bool:
        """Return whether the budget bounds roll-outs in a cluster; one that is being deleted has left."""
        return not cluster.leaving and (self.selector is None or self.selector.matches(cluster.labels))

    def counted(self, clusters: Iterable[Member]) -> list[Member]:
        """Return the clusters of which a percentage is one, and which count when they are not available: those selected
        that the hub accepts. An identity that may only ask to join can neither widen nor exhaust a budget."""
        return [one for one in clusters if one.accepted and self.selects(one)]

    def permitted(self, selected: int) -> int:
        """Return how many clusters may be unavailable at once: a percentage of ``selected``, rounded down, so never
        more than it says."""
        share = _share(self.most)
        assert share is not None, "a budget that cannot be read has 0"
        number, percent = share
        return min(selected * number // 100 if percent else number, MAX_PLACES)

    def bound(self, selected: int) -> str:
        """Return the bound as people read it."""
        of = f" ({self.most} of {selected})" if isinstance(self.most, str) else ""
        return f"{self.permitted(selected)}{of}"


def _share(most: int | str) -> tuple[int, bool] | None:
    """Return a number and whether it is a percentage; None if it is neither."""
    if isinstance(most, int):
        return (most, False) if most >= 0 else None
    found = _PERCENT.fullmatch(most)
    return (int(found[1]), True) if found and int(found[1]) <= 100 else None
