"""The taints that the hub sets on clusters that do not answer or do not work; pure.

Rules: ``pkg/registration/hub/taint`` of upstream (reference ocm-pull-model §1.8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.registration.leases import AVAILABLE
from syncline.kube.objects import Obj, dig, is_terminating

UNREACHABLE: Final = "cluster.open-cluster-management.io/unreachable"
UNAVAILABLE: Final = "cluster.open-cluster-management.io/unavailable"
EFFECT: Final = "NoSelect"
_WANTED: Final = {"True": "", "False": UNAVAILABLE, "Unknown": UNREACHABLE}


@dataclass(frozen=True, slots=True)
class Tainted:
    """The taints that a cluster should have, and whether these differ from those it has."""

    taints: tuple[Obj, ...]
    changed: bool
    why: str


def tainted(cluster: Obj) -> Tainted:
    """Return the taints for the availability of a cluster; those of others, also of other effects, stay in place."""
    live = tuple(dig(cluster, "spec", "taints") or ())
    if is_terminating(cluster):
        return Tainted(live, False, "the cluster is being deleted")
    found = find_condition(dig(cluster, "status", "conditions") or (), AVAILABLE)
    status = "Unknown" if found is None else str(found.get("status"))
    if status not in _WANTED:
        return Tainted(live, False, f"{AVAILABLE} has the status {status!r}")
    wanted = _WANTED[status]
    kept = tuple(one for one in live if not _ours(one) or one["key"] == wanted)
    if wanted and not any(_ours(one) for one in kept):
        kept += ({"key": wanted, "effect": EFFECT},)
    return Tainted(kept, kept != live, f"{AVAILABLE} is {status if found else 'absent'}")


def _ours(taint: Obj) -> bool:
    return taint.get("key") in (UNREACHABLE, UNAVAILABLE) and not taint.get("value") and taint.get("effect") == EFFECT
