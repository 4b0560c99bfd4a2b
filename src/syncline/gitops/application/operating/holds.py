"""The Hold of an Application's operation: when it is taken, renewed and released; pure.

A sync holds the pools whose machine configs its next step changes, or that an annotation names, before that step. The
Hold is found by its label and named after the operation, so a crash at any request is harmless: each reconcile takes
what is missing and releases what belongs to no running operation (DECISIONS 28, 29).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from syncline.apply.actions import ApplyObject, DeleteHook, PruneObject, SyncAction
from syncline.apply.outcome import WaitKind
from syncline.base.clock import format_time, time_or_none
from syncline.control.plan import Create, Delete, Emit, Patch, Plan, Requeue
from syncline.gitops.application.observing.observe import AppObserved
from syncline.gitops.holds.model import (
    LIFE,
    MANAGED_BY,
    POOL,
    Hold,
    application_label,
    make_hold,
    noted_holds,
    pools_reached,
)
from syncline.gitops.sync.model import SyncObserved, SyncPlan, Wait
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import Obj, ObjectRef, annotations_of, meta, name_of, ref_of

MAX_NAMED = 100
"""Limit of pools in the annotation."""
TAKES_EFFECT = timedelta(seconds=30)
"""If no controller honours Holds for this long, the sync continues without one."""
WORK_PATIENCE = timedelta(minutes=1)
"""How long machines wait for a Job whose text mentions pools: pausing or resuming one takes seconds."""
HEALTH_PATIENCE = timedelta(minutes=5)
"""How long machines wait for an object to become healthy. A Deployment has ten minutes by default."""
LONGEST = timedelta(hours=6)
"""How long one operation may keep machines from being updated; then it continues without its Hold."""
COMPONENT = "syncline-application-controller"
UNHELD = "PoolNotHeldWarning"
HOLD_POOLS = "syncline.dev/hold-pools"
"""Annotation of an Application: names of pools separated by commas, ``all``, or ``none``; unset: by what the sync
changes."""


def _name(operation: str) -> str:
    """Return the name of the Hold that all attempts of an operation share."""
    return f"sync-{operation.rpartition('-')[0]}".replace(".", "-")


def _own(observed: AppObserved, operation: str) -> Hold | None:
    return next((hold for hold in observed.holds if hold.name == _name(operation)), None)


def released(observed: AppObserved, operation: str) -> Plan | None:
    """Release Holds of operations that no longer run; ``operation`` is empty if none runs."""
    kept = _name(operation) if operation else ""
    stale = [hold for hold in observed.holds if hold.name != kept]
    if not stale:
        return None
    why = f"the operation that took Hold {stale[0].name} is over"
    step = tuple(Delete.of(hold.obj, why) for hold in stale)
    return Plan(steps=observed.at_cluster((step,)), outcome=Requeue(0, why), why=why)


def renewed(observed: AppObserved, operation: str, now: datetime) -> Plan | None:
    """Renew the Hold of a running operation, also while it waits for its next attempt."""
    hold = _own(observed, operation)
    if hold is not None and _held_long(observed, now):
        why = f"the operation has run for {LONGEST.total_seconds() / 3600:g} hours; it goes on without Hold {hold.name}"
        event = Emit(observed.view.obj, "HoldGivenBack", why, COMPONENT, warning=True)
        given_back = observed.at_cluster(((Delete.of(hold.obj, why),),))
        return Plan(steps=(*given_back, (event,)), outcome=Requeue(0, why), why=why)
    if hold is None or not hold.wants_renewal(now):
        return None
    why = "the operation goes on"
    body = {"spec": {"expiresAt": format_time(now + LIFE)}}
    patch = Patch(HOLD, "", hold.name, body, why)
    return Plan(steps=observed.at_cluster(((patch,),)), outcome=Requeue(0, f"Hold {hold.name} is renewed"), why=why)


def _held_long(observed: AppObserved, now: datetime) -> bool:
    started = time_or_none((observed.view.operation_state or {}).get("startedAt"))
    return started is not None and now >= started + LONGEST


def taken(seen: AppObserved, observed: SyncObserved, sync: SyncPlan, now: datetime) -> Plan | None:
    """Hold the pools that the next step of this reconcile affects, before it is executed."""
    if HOLD not in seen.kinds.served or not seen.pools:
        return None
    if _held_long(seen, now):
        return None
    wanted = pools_to_hold(seen, observed, [action for step in sync.steps for action in step])
    hold = _own(seen, observed.operation)
    if hold is not None and wanted <= hold.pools:
        return _not_in_effect(seen, hold, wanted, now)
    if not wanted:
        return None
    why = f"the sync changes what the machines of {_listed(wanted)} run"
    if hold is not None:
        more = Patch(HOLD, "", hold.name, {"spec": {"pools": sorted(wanted | hold.pools)}}, why)
        return Plan(steps=seen.at_cluster(((more,),)), outcome=Requeue(0, why), why=why)
    view = seen.view
    owner = f"Application {view.namespace}/{view.name}"
    labels = {MANAGED_BY: application_label(view.obj)}
    made = make_hold(_name(observed.operation), wanted, owner, why, now + LIFE, labels)
    return Plan(steps=seen.at_cluster(((Create(made, why),),)), outcome=Requeue(0, why), why=why)


def _not_in_effect(observed: AppObserved, hold: Hold, wanted: frozenset[str], now: datetime) -> Plan | None:
    """Wait until the pool controllers have noted the Hold, but not for long, as none may honour Holds."""
    made = time_or_none(meta(hold.obj).get("creationTimestamp"))
    pending = sorted(
        name_of(pool) for pool in observed.pools if name_of(pool) in wanted and hold.name not in noted_holds(pool)
    )
    if not pending or made is None or now >= made + TAKES_EFFECT:
        return None
    why = f"Hold {hold.name} is not in effect yet on {_listed(pending)}"
    return Plan(outcome=Requeue((made + TAKES_EFFECT - now).total_seconds(), why), why=why)


def pools_to_hold(seen: AppObserved, observed: SyncObserved, actions: Iterable[SyncAction]) -> frozenset[str]:
    """Return the pools whose machines these actions affect, or that the Application's annotation names."""
    asked = annotations_of(seen.view.obj).get(HOLD_POOLS, "").strip()
    changes = [action for action in actions if isinstance(action, (ApplyObject, PruneObject, DeleteHook))]
    if asked == "none" or not changes:
        return frozenset()
    known = frozenset(name_of(pool) for pool in seen.pools)
    if asked:
        return known if asked == "all" else known & {name.strip() for name in asked.split(",")}
    found: frozenset[str] = frozenset()
    for action in changes:
        for obj in _changed(seen, observed, action):
            found |= pools_reached(obj, seen.pools)
    return found


def refused_pools(observed: AppObserved) -> list[str]:
    """Return why the project does not permit pools that the annotation names, whether they exist or not."""
    named = [name.strip() for name in annotations_of(observed.view.obj).get(HOLD_POOLS, "").split(",")]
    if len(named) > MAX_NAMED:
        return [f"{HOLD_POOLS}: found {len(named)} pools; at most {MAX_NAMED}"]
    refused = [observed.reach.refuses_hold(name) for name in named if name not in ("", "all", "none")]
    return [f"{HOLD_POOLS}: {why}" for why in refused if why]


def unheld_warning(observed: AppObserved, manifests: Iterable[Obj]) -> str:
    """Return a warning about pools that the manifests affect but no sync of this Application holds; empty for none."""
    if not observed.other_pools:
        return ""
    reached = [pool for obj in manifests for pool in pools_reached(obj, observed.other_pools)]
    if not reached:
        return ""
    return (
        f"syncs do not hold {_listed(set(reached))}, whose machines may reboot in the middle: "
        f"{observed.reach.refuses_hold(min(reached))}"
    )


def _changed(seen: AppObserved, observed: SyncObserved, action: SyncAction) -> list[Obj]:
    """Return the object before and after the action; empty if it changes nothing."""
    if isinstance(action, ApplyObject):
        live = action.live
        if live is not None and ref_of(live) in observed.in_sync:
            return []
        return [action.target, *([live] if live is not None else [])]
    if not isinstance(action, PruneObject):
        return []
    ref = action.ref
    live = seen.live.get(ref) or seen.live.get(ObjectRef(ref.group, ref.kind, "", ref.name))
    return [] if live is None else [live]


def _listed(pools: Iterable[str]) -> str:
    return f"pool {', '.join(sorted(pools))}"


def give_back_for_gate(observed: AppObserved, operation: str, sync: SyncPlan, now: datetime) -> Plan | None:
    """Release the Hold if the gate waits, or seems to wait, for what this Hold blocks.

    At once: gates on a condition of held pools or of nodes. After :data:`WORK_PATIENCE`: gates on hooks and Jobs whose
    text mentions machine config pools, as such Jobs often wait for a pool update. After :data:`HEALTH_PATIENCE`: gates
    on the health of other objects, which may need the update. Other hooks and Jobs keep the Hold as long as they run,
    as a reboot would abort them. So do Applications that name their pools by annotation.
    """
    hold = _own(observed, operation)
    if hold is None or sync.wait is None or not sync.wait.refs:
        return None
    why = _held_up(observed, hold, sync.wait, now)
    if not why:
        return None
    return Plan(steps=observed.at_cluster(((Delete.of(hold.obj, why),),)), outcome=Requeue(0, why), why=why)


def _held_up(observed: AppObserved, hold: Hold, wait: Wait, now: datetime) -> str:
    """Return why the gate may wait for the Hold; empty if it does not."""
    first = wait.refs[0]
    if wait.kind is WaitKind.CONDITION:  # a held pool whose health a gate waits for counts as Healthy
        mine = all(ref.kind == "Node" or (ref.group_kind == POOL and ref.name in hold.pools) for ref in wait.refs)
        return f"the gate waits for {first}, which this operation's own Hold keeps from going on" if mine else ""
    waited = now - wait.since if wait.since is not None else timedelta(0)
    if annotations_of(observed.view.obj).get(HOLD_POOLS, "").strip() or waited < WORK_PATIENCE:
        return ""
    if waiter := next((ref for ref in wait.refs if _speaks_of_pools(observed, ref)), None):
        return f"the gate waits for {waiter}, which speaks of machine config pools and may wait for their update"
    if wait.kind is not WaitKind.HEALTH or any(ref.kind == "Job" for ref in wait.refs) or waited < HEALTH_PATIENCE:
        return ""
    return f"the gate waits for long: {first} may need what {_listed(hold.pools)} gets"


_POOLS = re.compile(r"machineconfigpool|\bmcp\b", re.IGNORECASE)


def _speaks_of_pools(observed: AppObserved, ref: ObjectRef) -> bool:
    """Return whether the hook or Job runs commands that mention pools."""
    manifests = observed.pinned.objects if observed.pinned is not None else ()
    texts = [observed.live.get(ref), *(obj for obj in manifests if ref_of(obj).group_kind == ref.group_kind)]
    named = [obj for obj in texts if obj is not None and name_of(obj) == ref.name]
    return any(_POOLS.search(json.dumps(obj.get("spec"), default=str)) for obj in named)
