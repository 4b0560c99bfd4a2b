"""The Lease of this package: while it is renewed, the GitOps bridge leaves ``spec.paused`` to users (DECISIONS 28)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.base.clock import format_micro_time, parse_time
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Create, Patch, Plan, Requeue
from syncline.kube.kinds.holds import ROOM_LEASE
from syncline.kube.objects import GVK, Obj, ObjectRef, dig, uid_of
from syncline.machineconfig.names import POOL

LEASE = GVK("coordination.k8s.io", "v1", "Lease")
HOLDER = "syncline"
DURATION_S = 60
"""The bridge takes over a minute after the last renewal; renewed at a third of it."""


@dataclass(frozen=True, slots=True)
class Observed:
    lease: Obj | None
    namespace: str


def plan(observed: Observed, now: datetime) -> Plan:
    """Create the Lease, or renew it after a third of its duration, or if its renew time is far in the future."""
    every = DURATION_S / 3
    again = Requeue(every, "the Lease is renewed", background=True)
    spec = {"holderIdentity": HOLDER, "leaseDurationSeconds": DURATION_S, "renewTime": format_micro_time(now)}
    if observed.lease is None:
        metadata = {"name": ROOM_LEASE, "namespace": observed.namespace}
        lease = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
        return Plan(((Create(lease, "this room honours Holds"),),), again, "the room's Lease is made")
    left = every - _age_s(observed.lease, now)
    if 0 < left <= DURATION_S and dig(observed.lease, "spec", "holderIdentity") == HOLDER:
        return Plan(outcome=Requeue(left, "the Lease is renewed", background=True), why="the room's Lease is fresh")
    patch = Patch(LEASE, observed.namespace, ROOM_LEASE, {"spec": spec}, "this room honours Holds")
    return Plan(((patch,),), again, "the room's Lease is renewed")


def _age_s(lease: Obj, now: datetime) -> float:
    try:
        return (now - parse_time(str(dig(lease, "spec", "renewTime", default="")))).total_seconds()
    except ValueError:
        return float(DURATION_S)


def room_lease_controller(control_namespace: str) -> Controller[Observed]:
    """Return the controller of the Lease, which exists as soon as there is a pool."""
    lease = ObjectRef(LEASE.group, LEASE.kind, control_namespace, ROOM_LEASE)

    def mine(_pool: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
        return (lease,)

    def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        if ref != lease or not cache.has_synced(LEASE.group_kind) or not cache.objects(POOL):
            return None
        return Observed(cache.get(ref), ref.namespace)

    return Controller(
        name="machine-config-lease",
        kind=LEASE.group_kind,
        watches=(Watch(POOL, mine, differ(uid_of)),),
        predicate=lambda old, new: any(obj is not None and _is_room(obj) for obj in (old, new)),
        observe=observe,
        plan=plan,
    )


def _is_room(obj: Obj) -> bool:
    return bool(dig(obj, "metadata", "name") == ROOM_LEASE)
