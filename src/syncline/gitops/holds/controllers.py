"""Two controllers: one deletes expired Holds, one sets ``spec.paused`` by Holds where another operator owns the pools.

The second, the bridge, acts once per new Hold: it pauses a running pool and only notes a paused one. Later writes of
users stay, in either direction: it resumes a pool only if it was the last to write ``spec.paused``. Its notes are an
annotation of the pool, so they survive a crash (DECISIONS 28).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import parse_time
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Delete, Done, Emit, Patch, Plan, Requeue
from syncline.gitops.holds.model import (
    BRIDGE_MANAGER,
    HELD,
    MANAGED_BY,
    POOL,
    Hold,
    application_label,
    holds_of,
    noted_holds,
    pause_writer,
)
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.holds import ROOM_LEASE
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    gvk_of,
    labels_of,
    name_of,
    ref_of,
    resource_version,
)

__all__ = ["HELD", "HOLD_CONTROLLER", "bridge_controller"]

BRIDGE = "syncline-holds"
"""Component name in Events."""
LEASES = GroupKind("coordination.k8s.io", "Lease")


def _observe(cache: Snapshot, ref: ObjectRef) -> tuple[Obj, bool] | None:
    """Return the Hold, and whether its Application is known to be deleted."""
    found = cache.get(ref)
    if found is None:
        return None
    label = labels_of(found).get(MANAGED_BY)
    if not label or not cache.has_synced(APPLICATION.group_kind):
        return found, False
    owners = {application_label(app) for app in cache.objects(APPLICATION.group_kind)}
    return found, label not in owners


def _plan(observed: tuple[Obj, bool], now: datetime) -> Plan:
    hold, orphan = Hold.of(observed[0]), observed[1]
    if not orphan and hold.lives(now):
        assert hold.expires is not None, "a Hold that lives has an end"
        why = f"Hold {hold.name} ends at {hold.expires:%H:%M:%S}"
        return Plan(outcome=Requeue((hold.expires - now).total_seconds(), why, background=True), why=why)
    why = f"its {hold.owner} is gone" if orphan else "it has expired"
    return Plan(steps=((Delete.of(hold.obj, why),),), why=f"Hold {hold.name}: {why}")


def _of_application(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    label = application_label(obj)
    return [ref_of(one) for one in cache.objects(HOLD.group_kind) if labels_of(one).get(MANAGED_BY) == label]


HOLD_CONTROLLER = Controller(
    name="hold",
    kind=HOLD.group_kind,
    watches=(Watch(APPLICATION.group_kind, _of_application),),
    observe=_observe,
    plan=_plan,
)
"""Deletes Holds that have expired or whose Application was deleted."""


@dataclass(frozen=True)
class ObservedPool:
    """A pool, the Holds that name it, and the Lease of our machine-config controllers, if any."""

    pool: Obj
    holds: tuple[Hold, ...]
    lease: Obj | None = None


def _of_hold(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    wanted = Hold.of(obj).pools
    return [ref_of(pool) for pool in cache.objects(POOL) if name_of(pool) in wanted]


def bridge_controller(control_namespace: str) -> Controller[ObservedPool]:
    """Return the controller of kind MachineConfigPool."""
    lease = ObjectRef(LEASES.group, LEASES.kind, control_namespace, ROOM_LEASE)

    def observe(cache: Snapshot, ref: ObjectRef) -> ObservedPool | None:
        pool = cache.get(ref)
        if pool is None or not cache.has_synced(HOLD.group_kind):
            return None
        named = [one for one in cache.objects(HOLD.group_kind) if ref.name in Hold.of(one).pools]
        return ObservedPool(pool, holds_of(named), cache.get(lease))

    return Controller(
        name="hold-bridge",
        kind=POOL,
        watches=(Watch(HOLD.group_kind, _of_hold),),
        observe=observe,
        plan=plan_pool,
    )


def plan_pool(observed: ObservedPool, now: datetime) -> Plan:
    """Plan the bridge's step for one pool."""
    if _room_is_there(observed.lease, now):
        return Plan(why="our own machine-config room honours Holds itself")
    pool, noted = observed.pool, noted_holds(observed.pool)
    living = [hold for hold in observed.holds if hold.lives(now)]
    names = [hold.name for hold in living]
    fresh = [hold for hold in living if hold.name not in noted]
    paused = dig(pool, "spec", "paused") is True
    if fresh:
        said = f"Hold {fresh[0].name} of {fresh[0].owner}: {fresh[0].reason}"
        return _write(pool, names, None if paused else True, f"paused by {said}", living, now)
    if names == noted:
        return _wait(living, now)
    resumes = not names and paused and pause_writer(pool)[0] == BRIDGE_MANAGER
    text = "resumed: no Hold is left" if resumes else "a Hold ended; spec.paused stays as it is"
    return _write(pool, names, False if resumes else None, text, living, now)


def _write(pool: Obj, names: list[str], paused: bool | None, text: str, living: list[Hold], now: datetime) -> Plan:
    """Write the note, and ``spec.paused`` if given, in one conditional patch; then emit an Event."""
    note = json.dumps(names, separators=(",", ":")) if names else None
    body: Obj = {"metadata": {"annotations": {HELD: note}, "resourceVersion": resource_version(pool)}}
    if paused is not None:
        body["spec"] = {"paused": paused}
    patch = Patch(gvk_of(pool), "", name_of(pool), body, text, manager=BRIDGE_MANAGER)
    reason = "Paused" if paused else "Resumed"
    event = () if paused is None else (Emit(pool, reason, f"MachineConfigPool {name_of(pool)} {text}", BRIDGE),)
    return Plan(steps=((patch,), event) if event else ((patch,),), outcome=_next_end(living, now), why=text)


def _wait(living: list[Hold], now: datetime) -> Plan:
    why = f"held by {', '.join(hold.name for hold in living)}" if living else "not held"
    return Plan(outcome=_next_end(living, now), why=why)


def _next_end(living: list[Hold], now: datetime) -> Requeue | Done:
    ends = [hold.expires for hold in living if hold.expires is not None]
    if not ends:
        return Done()
    return Requeue((min(ends) - now).total_seconds(), "a Hold expires", background=True)


def _room_is_there(lease: Obj | None, now: datetime) -> bool:
    try:
        renewed = parse_time(str(dig(lease, "spec", "renewTime", default="")))
    except ValueError:
        return False
    return now < renewed + timedelta(seconds=int(dig(lease, "spec", "leaseDurationSeconds", default=0)))
