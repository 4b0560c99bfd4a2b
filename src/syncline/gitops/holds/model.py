"""Reads and creates Holds, and finds the pools that a manifest affects; pure.

A Hold ends when its owner deletes it, it expires, or its owner is deleted. The holder renews it (DECISIONS 28).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from syncline.apply.health import Health, HealthStatus
from syncline.kube.kinds.holds import HELD, LIFE, RENEW, Hold, holds_of, make_hold, noted_holds, pause_writer
from syncline.kube.objects import (
    GroupKind,
    Obj,
    dig,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
)
from syncline.kube.selectors import SelectorError, label_selector_from

__all__ = [
    "BRIDGE_MANAGER",
    "HELD",
    "LIFE",
    "MANAGED_BY",
    "POOL",
    "RENEW",
    "Hold",
    "application_label",
    "holds_of",
    "judged_with_holds",
    "make_hold",
    "noted_holds",
    "pause_writer",
    "pools_reached",
]

GROUP = "machineconfiguration.openshift.io"
POOL = GroupKind(GROUP, "MachineConfigPool")
MACHINE_CONFIG = GroupKind(GROUP, "MachineConfig")
BY_POOL_LABELS = (GroupKind(GROUP, "KubeletConfig"), GroupKind(GROUP, "ContainerRuntimeConfig"))
"""Kinds that select pools by label and are rendered into machine configs."""
MANAGED_BY = "syncline.dev/held-for"
"""Label of a Hold that an Application's operation takes; value: :func:`application_label`."""
BRIDGE_MANAGER = "syncline-holds"
"""Field manager of the bridge's writes to ``spec.paused``, by which it recognises its own write."""
LABEL_DIGEST = 32


def application_label(app: Obj) -> str:
    """Return a label value for an Application: a hash, as namespace and name may be too long for a label."""
    text = f"{namespace_of(app)}/{name_of(app)}"
    return hashlib.sha256(text.encode()).hexdigest()[:LABEL_DIGEST]


def pools_reached(obj: Obj, pools: Iterable[Obj]) -> frozenset[str]:
    """Return the names of pools whose machines a change of this object would update; none for other kinds."""
    kind = ref_of(obj).group_kind
    if kind == MACHINE_CONFIG:
        return frozenset(name_of(pool) for pool in pools if _selects(pool, "machineConfigSelector", obj))
    if kind in BY_POOL_LABELS:
        return frozenset(name_of(pool) for pool in pools if _selects(obj, "machineConfigPoolSelector", pool))
    return frozenset()


def _selects(chooser: Obj, field: str, chosen: Obj) -> bool:
    """Return whether ``chooser`` selects ``chosen``. A pool without selector takes the configs of the role that has its
    name, as a cluster's default pools do; a config without one selects no pool."""
    selector = dig(chooser, "spec", field)
    if selector is None and field == "machineConfigSelector":
        return labels_of(chosen).get(f"{GROUP}/role") == name_of(chooser)
    try:
        return label_selector_from(selector).matches(labels_of(chosen))
    except SelectorError:
        return False


def judged_with_holds(check: Callable[[Obj], Health | None], holds: Iterable[Hold]) -> Callable[[Obj], Health | None]:
    """Return ``check`` changed so that an unready held pool is Healthy, with a message that names the Hold: a gate must
    never wait for a pool that waits for the gate's own Hold (DECISIONS 29)."""
    by_pool = {pool: hold for hold in holds for pool in hold.pools}
    if not by_pool:
        return check

    def judge(obj: Obj) -> Health | None:
        found = check(obj)
        hold = by_pool.get(name_of(obj)) if ref_of(obj).group_kind == POOL else None
        if hold is None or found is None or found.status is not HealthStatus.PROGRESSING:
            return found
        return Health(HealthStatus.HEALTHY, f"paused by Hold {hold.name} of {hold.owner}")

    return judge
