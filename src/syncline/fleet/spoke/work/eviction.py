"""Plans what becomes of an AppliedManifestWork that nothing on the hub stands for any more; pure.

One that is being deleted keeps its finalizer until its objects are gone; that works without the hub. One whose work is
missing, or that is of another hub, is deleted after a grace period, and only while the hub can be read: a work that
cannot be seen is not absent. Rules: ``unmanaged_appliedmanifestwork_controller.go`` and
``appliedmanifestwork_finalize_controller.go`` of upstream (reference ocm-pull-model §6.8).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from syncline.base.action import Action
from syncline.base.clock import format_time, time_or_none
from syncline.control.cache import Snapshot
from syncline.control.plan import Delete, Patch, Plan, Requeue, Result, set_status
from syncline.fleet.spoke.link import SPOKE, Link
from syncline.fleet.spoke.work.deletion import hub_hash, identity
from syncline.fleet.spoke.work.manifests.actions import Drop
from syncline.fleet.spoke.work.observe import WORKS, WorkSettings, problem_of
from syncline.fleet.spoke.work.ownership import reference_to
from syncline.kube.kinds.manifestworks import APPLIED_FINALIZER, APPLIED_WORK
from syncline.kube.objects import Obj, ObjectRef, dig, finalizers, is_terminating, meta, name_of, resource_version

FIRST_S: Final = 1.0
MOST_S: Final = 60.0
"""Bounds of the time until objects that are being deleted are looked at again; within, a quarter of their wait."""


@dataclass(frozen=True, slots=True)
class AppliedObserved:
    """One AppliedManifestWork of this agent. ``hub_problem``: why the works of the hub cannot be read now; ``managed``:
    its work exists there; ``hub``: hash of the agent's hub; ``pending``: see :func:`settle_applied`."""

    applied: Obj = field(repr=False)
    hub: str
    managed: bool
    hub_problem: str
    settings: WorkSettings
    pending: bool = False


def observe_applied(cache: Snapshot, ref: ObjectRef, link: Link, settings: WorkSettings) -> AppliedObserved | None:
    """Return what is known of an AppliedManifestWork; None if it is gone, unreadable or another agent's."""
    spoke = link.spoke()
    applied = spoke.get(ref) if spoke is not None and not problem_of(spoke, link) else None
    if applied is None or dig(applied, "spec", "agentID") != link.agent:
        return None
    work = ObjectRef(*WORKS, link.cluster, str(dig(applied, "spec", "manifestWorkName") or ""))
    problem = "" if cache.follows(WORKS) else cache.unread(work) or "the works of the hub cannot be read now"
    return AppliedObserved(applied, hub_hash(link.hub_url), cache.get(work) is not None, problem, settings)


def plan_applied(observed: AppliedObserved, now: datetime) -> Plan:
    """Return what is done about it."""
    applied = observed.applied
    if is_terminating(applied):
        return _finishing(applied) if APPLIED_FINALIZER in finalizers(applied) else Plan(why="it is going")
    if observed.hub_problem:
        again = Requeue(MOST_S, observed.hub_problem, background=True)
        return Plan(outcome=again, why=f"nothing is concluded from absence: {observed.hub_problem}")
    since = dig(applied, "status", "evictionStartTime")
    if observed.managed and name_of(applied).startswith(observed.hub):
        return _started(applied, None, "its work is on the hub") if since else Plan(why="its work is on the hub")
    why = "its work is not on the hub" if not observed.managed else "it is of another hub"
    begun = time_or_none(since)
    if begun is None:
        left = observed.settings.eviction_s
        return replace(_started(applied, format_time(now), why), outcome=Requeue(left, why, background=True))
    end = begun + timedelta(seconds=observed.settings.eviction_s)
    if now < end:
        return Plan(outcome=Requeue((end - now).total_seconds(), why, background=True), why=why)
    gone = f"{why} since {since}"
    return Plan(((replace(Delete.of(applied, gone), cluster=SPOKE),),), why=gone)


def _started(applied: Obj, when: str | None, why: str) -> Plan:
    status = {key: value for key, value in (applied.get("status") or {}).items() if key != "evictionStartTime"}
    return _status(applied, {**status, **({"evictionStartTime": when} if when else {})}, why)


def _status(applied: Obj, status: Obj, why: str) -> Plan:
    return Plan(status=tuple(replace(one, cluster=SPOKE) for one in set_status(applied, status, why)), why=why)


def _finishing(applied: Obj) -> Plan:
    why = f"manifestwork {dig(applied, 'spec', 'manifestWorkName')} is terminating"
    reference = reference_to(applied)
    resources = dig(applied, "status", "appliedResources") or ()
    return Plan((tuple(Drop(one, reference, why, cluster=SPOKE) for one in resources),), why=why)


def settle_applied(
    observed: AppliedObserved, _plan: Plan, results: tuple[Result, ...], now: datetime
) -> tuple[AppliedObserved, Plan] | None:
    """Return what follows the deletions: the finalizer goes with the last object."""
    applied = observed.applied
    if observed.pending or not is_terminating(applied) or APPLIED_FINALIZER not in finalizers(applied):
        return None
    dropped = {identity(one.action.resource): one for one in results if isinstance(one.action, Drop)}
    resources: list[Obj] = dig(applied, "status", "appliedResources") or []
    left = [one for one in resources if not (found := dropped[identity(one)]).ok or found.value.pending]
    observed = replace(observed, pending=True)
    if left:
        since = time_or_none(meta(applied).get("deletionTimestamp")) or now
        wait = min(max((now - since).total_seconds() / 4, FIRST_S), MOST_S)
        plan = _status(applied, {**(applied.get("status") or {}), "appliedResources": left}, "objects are left")
        return observed, replace(plan, outcome=Requeue(wait, f"{len(left)} objects are being deleted"))
    kept = [one for one in finalizers(applied) if one != APPLIED_FINALIZER]
    body = {"metadata": {"finalizers": kept, "resourceVersion": resource_version(applied)}}
    release: Action = Patch(APPLIED_WORK, "", name_of(applied), body, "all its objects are gone", cluster=SPOKE)
    return observed, Plan(((release,),), why="all its objects are gone")
