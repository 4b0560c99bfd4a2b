"""Plans the work agent's reconcile of one ManifestWork; pure.

:func:`plan_work` begins: the finalizer on the work, then its AppliedManifestWork, then a look at each object that is
due, in the order of applying, and the deletion of what left the work. :func:`settle_work` goes on with the results and
ends with one write of each status. An object is due if the work changed, if it changed itself, or if nothing would
announce that it did; nothing else costs a request. Rules: ``pkg/work/spoke/controllers`` of upstream (reference
ocm-pull-model §6.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from syncline.base.action import Action
from syncline.control.plan import Create, Outcome, Patch, Plan, Requeue, Result, SetStatus, set_status
from syncline.fleet.conditions import condition, find_condition, with_condition
from syncline.fleet.spoke.link import SPOKE
from syncline.fleet.spoke.work.deletion import applied_work, identity
from syncline.fleet.spoke.work.executor import RETRY_S
from syncline.fleet.spoke.work.manifests.actions import Drop, Follow, Known, Look
from syncline.fleet.spoke.work.manifests.applying import Depth
from syncline.fleet.spoke.work.manifests.due import correct_at, due, is_past, pace_s, tokens
from syncline.fleet.spoke.work.manifests.handler import known_of
from syncline.fleet.spoke.work.manifests.ignoring import content_hash
from syncline.fleet.spoke.work.manifests.memory import Remembered
from syncline.fleet.spoke.work.observe import Manifest, WorkObserved
from syncline.fleet.spoke.work.ordering import in_order
from syncline.fleet.spoke.work.ownership import Ownership, reference_to
from syncline.fleet.spoke.work.removal import plan_removal, settle_removal
from syncline.fleet.spoke.work.status import (
    entries_of,
    inventory_of,
    planned_inventory,
    work_status,
)
from syncline.kube.errors import BadRequest, Forbidden, Invalid
from syncline.kube.kinds.manifestworks import APPLIED_WORK, WORK_FINALIZER
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    dig,
    finalizers,
    generation,
    gvk_of,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)

UNREADABLE_S: Final = 30.0
"""How long a work waits for a cluster that cannot be read, if nothing announces that it can."""
FIRST_RETRY_S: Final = 0.5
PATIENCE: Final = 5
"""Attempts, about fifteen seconds, before a kind counts as missing that a definition of the same work brings."""


def plan_work(observed: WorkObserved, now: datetime) -> Plan:
    """Return the first part of a reconcile."""
    work = observed.work
    if is_terminating(work):
        return plan_removal(observed, now)
    if WORK_FINALIZER not in finalizers(work):
        body = {
            "metadata": {"finalizers": [*finalizers(work), WORK_FINALIZER], "resourceVersion": resource_version(work)}
        }
        why = "hold the work, so that what it brings is removed with it"
        return Plan(((Patch(gvk_of(work), namespace_of(work), name_of(work), body, why),),), why=why)
    if observed.problem:
        again = Requeue(UNREADABLE_S, observed.problem, background=True)
        report = _not_begun(observed, observed.problem, now) if observed.lasts else ()
        return Plan(outcome=again, why=observed.problem, status=report)
    if observed.complete:
        return plan_looks(observed, now)
    wanted = applied_work(observed.hub, observed.agent, name_of(work))
    if observed.applied is None:
        labels = {"labels": labels_of(work)} if labels_of(work) else {}
        made = {**wanted, "metadata": {**wanted["metadata"], **labels}}
        return Plan(((Create(made, "begin the inventory of the work", cluster=SPOKE),),), why="the work is new here")
    if is_terminating(observed.applied):
        why = "the former inventory of the work is being deleted"
        return Plan(outcome=Requeue(UNREADABLE_S, why, background=True), why=why)
    if observed.applied.get("spec") != wanted["spec"]:
        why = "the inventory belongs to this agent"
        change = Patch(APPLIED_WORK, "", observed.applied_name, {"spec": wanted["spec"]}, why, cluster=SPOKE)
        return Plan(((change,),), why=why)
    return plan_looks(observed, now)


def settle_work(
    observed: WorkObserved, plan: Plan, results: tuple[Result, ...], now: datetime
) -> tuple[WorkObserved, Plan] | None:
    """Return the next part; None at the end. What was found is remembered by the caller, if ``after`` is set and no
    result is a failure."""
    if is_terminating(observed.work):
        return settle_removal(observed, results)
    if observed.after is not None or observed.problem or WORK_FINALIZER not in finalizers(observed.work):
        return None
    observed = _with_inventory(observed, results)
    begun = any(isinstance(one.action, Create | Patch) for one in results)
    if begun and all(one.ok for one in results):
        return observed, plan_looks(observed, now)
    refused = next((one.error for one in results if isinstance(one.error, Forbidden | Invalid | BadRequest)), None)
    if begun and refused is not None:
        text = f"the inventory of the work cannot be written: {refused}"
        report = _not_begun(observed, text, now)
        again = Requeue(UNREADABLE_S, text, background=True)
        return replace(observed, after=observed.remembered), Plan(outcome=again, why=text, status=report)
    if begun or (observed.applied is None and not observed.complete) or is_terminating(observed.applied or {}):
        return None
    return _concluded(_with_results(observed, results), now)


def _not_begun(observed: WorkObserved, why: str, now: datetime) -> tuple[Action, ...]:
    """Return the report that nothing of a new work can be applied. Upstream's agent only logs it."""
    text, number = f"Failed to apply manifest work: {why}", generation(observed.work)
    applied = condition("Applied", "False", "AppliedManifestWorkFailed", text, number)
    before = find_condition(observed.conditions, "Applied")
    if before is not None and (before.get("observedGeneration") == number or before.get("status") == "True"):
        return ()
    status = {**(observed.work.get("status") or {}), "conditions": with_condition(observed.conditions, applied, now)}
    return set_status(observed.work, status, "report to the hub")


def _with_inventory(observed: WorkObserved, results: tuple[Result, ...]) -> WorkObserved:
    """Return the observation with the AppliedManifestWork as it was written last."""
    for one in results:
        written = isinstance(one.action, Create | Patch | SetStatus) and one.action.cluster == SPOKE
        if one.ok and written and isinstance(one.value, dict):
            observed = replace(observed, applied=one.value)
    return observed


def _with_results(observed: WorkObserved, results: tuple[Result, ...]) -> WorkObserved:
    looked = {one.action.ordinal: one.value for one in results if isinstance(one.action, Look) and one.ok}
    # What an executor may not apply is read on, but nothing of it is reported to the hub.
    refused = {one.ordinal for one in observed.manifests if one.ref in observed.remembered.refused}
    looked = {
        ordinal: one if one.tried or ordinal not in refused else replace(one, refused=True)
        for ordinal, one in looked.items()
    }
    dropped = {identity(one.action.resource): one.value for one in results if isinstance(one.action, Drop) and one.ok}
    return replace(observed, looked=looked, dropped=dropped, unanswered=not all(one.ok for one in results))


# -- looks --------------------------------------------------------------------------------------------------------


def plan_looks(observed: WorkObserved, now: datetime) -> Plan:
    """Return the looks at objects that are due, and the deletions."""
    looks = list(_looks(observed, now))
    steps: list[tuple[Action, ...]] = []
    if observed.wanted != observed.asked:
        steps.append((Follow(observed.wanted, "watch the kinds that works have", cluster=SPOKE),))
    new = [one for one, look in looks if look.depth is not Depth.READ]
    if observed.applied is not None and new and planned_inventory(observed, new) != observed.inventory:
        steps.append(_set_inventory(observed, planned_inventory(observed, new), "note what is about to be applied"))
    steps += ((look,) for _, look in looks)  # one after the other: where the cluster does not answer, the rest waits
    if observed.was_applied and not observed.complete:
        steps += ((drop,) for drop in _drops(observed))
    why = f"{len(looks)} of {len(observed.manifests)} objects are due" if looks else "nothing is due"
    return Plan(tuple(steps), why=why)


def _set_inventory(observed: WorkObserved, resources: list[Obj], why: str) -> tuple[SetStatus, ...]:
    applied = observed.applied or {}
    status = {**(applied.get("status") or {}), "appliedResources": resources}
    return tuple(replace(one, cluster=SPOKE) for one in set_status(applied, status, why))


def _drops(observed: WorkObserved) -> Iterator[Drop]:
    why = f"it is no longer maintained by manifestwork {name_of(observed.work)}"
    reference = reference_to(observed.applied or {})
    for resource in observed.left:
        yield Drop(resource, reference, why, cluster=SPOKE)


def _looks(observed: WorkObserved, now: datetime) -> Iterator[tuple[Manifest, Look]]:
    entries, by_ordinal = entries_of(observed), {one.ordinal: one for one in observed.manifests}
    for ordinal, _ in in_order([one.obj for one in observed.manifests]):
        manifest = by_ordinal[ordinal]
        depth = due(observed, manifest, entries.get(ordinal), now)
        if depth is not None and manifest.ref is not None and manifest.info is not None:
            reading = depth is Depth.READ
            yield (
                manifest,
                Look(
                    ordinal,
                    manifest.ref,
                    manifest.info,
                    manifest.obj,
                    manifest.strategy,
                    _ownership(observed, manifest),
                    depth,
                    _why(observed, manifest.ref, depth),
                    executor=dig(observed.work, "spec", "executor"),
                    known=None if reading else _known(observed, manifest.ref),
                    digest="" if reading else _digest(manifest, observed),
                    cluster=SPOKE,
                ),
            )


def _ownership(observed: WorkObserved, manifest: Manifest) -> Ownership:
    return Ownership(reference_to(observed.applied or {}), manifest.owned)


def _why(observed: WorkObserved, ref: ObjectRef, depth: Depth) -> str:
    if depth is Depth.FULL:
        return f"generation {generation(observed.work)} of the work"
    return "it changed on the cluster" if ref in observed.dirty else "its state is reported to the hub"


def _digest(manifest: Manifest, observed: WorkObserved) -> str:
    """Return the hash of all that decides what is written."""
    owner = uid_of(observed.applied or {}) if manifest.owned else ""
    return content_hash({"manifest": manifest.obj, "strategy": manifest.strategy, "owner": owner})


def _known(observed: WorkObserved, ref: ObjectRef) -> Known | None:
    """Return what is known of an object. One that is to be corrected is compared although its version is known."""
    remembered = observed.remembered
    known = remembered.known.get(ref)
    return replace(known, version="") if known is not None and _is_open(remembered, ref) else known


def _is_open(remembered: Remembered, ref: ObjectRef) -> bool:
    return ref in remembered.drifted or ref in remembered.added or ref in remembered.contested


# -- conclusion ---------------------------------------------------------------------------------------------------


def _concluded(observed: WorkObserved, now: datetime) -> tuple[WorkObserved, Plan]:
    waiting = _waiting(observed)
    after = _remembered(observed, now, bool(waiting))
    writes: list[Action] = []
    if observed.applied is not None and not observed.complete:
        writes += _set_inventory(observed, inventory_of(observed), "note what is applied")
    writes += set_status(observed.work, work_status(observed, waiting, now), "report to the hub")
    observed = replace(observed, after=after)
    why = f"looked at {len(observed.looked)} objects" if observed.looked else "nothing is due"
    return observed, Plan(outcome=_outcome(observed, after, now), why=why, status=tuple(writes))


def _waiting(observed: WorkObserved) -> frozenset[int]:
    """Return the manifests whose kind a definition of the same work brings, which the API serves in a moment."""
    brought = {
        (dig(one.obj, "spec", "group"), dig(one.obj, "spec", "names", "kind"))
        for one in observed.manifests
        if one.meta["kind"] == "CustomResourceDefinition"
    }
    unknown = (one for one in observed.manifests if one.unknown and (one.meta["group"], one.meta["kind"]) in brought)
    return frozenset(one.ordinal for one in unknown) if observed.remembered.failures < PATIENCE else frozenset()


def _remembered(observed: WorkObserved, now: datetime, waiting: bool) -> Remembered:
    """Return what to remember once the status is written."""
    before, settings = observed.remembered, observed.settings
    pairs = [(one, observed.looked[one.ordinal]) for one in observed.manifests if one.ordinal in observed.looked]
    known, refs = dict(before.known), {one.ref for one in observed.manifests}
    for manifest, looked in pairs:
        if manifest.ref is None:
            continue
        if looked.unread or looked.error is not None:
            known.pop(manifest.ref, None)
            continue
        last = before.known.get(manifest.ref)
        digest = _digest(manifest, observed) if looked.tried else last.digest if last else ""
        known[manifest.ref] = known_of(looked, digest, last)
    failed = any(one.error is not None and not one.refused and not one.contested for _, one in pairs)
    failed |= (
        observed.unanswered
        or any(one.unknown for one in observed.manifests)
        or any(one.error for one in observed.dropped.values())
    )
    failures = before.failures + 1 if failed else before.failures if _is_waiting(observed, now) else 0
    made = replace(
        before,
        generation=generation(observed.work),
        known={ref: one for ref, one in known.items() if ref in refs},
        # A look that only read says nothing of what a write was refused.
        refused=_marked(before.refused, {one.ref: looked.refused for one, looked in pairs if looked.tried}),
        contested=_marked(before.contested, {one.ref: looked.contested for one, looked in pairs if looked.tried}),
        added=_marked(before.added, {one.ref: looked.added for one, looked in pairs if looked.tried}),
        drifted=_marked(before.drifted, {one.ref: _is_drifted(observed, one) for one, _ in pairs}),
        failures=failures,
        retry=now + timedelta(seconds=_retry_s(failures, settings.resync_s)) if failed else before.retry,
    )
    if any(one.refused and one.tried for _, one in pairs):
        made = replace(made, refused_until=now + timedelta(seconds=RETRY_S))
    if before.resync is None or before.resync <= now:
        made = replace(made, resync=now + timedelta(seconds=settings.resync_s * (1 + observed.draw / 2)))
    return _with_pace(made, observed, now)


def _is_waiting(observed: WorkObserved, now: datetime) -> bool:
    return observed.remembered.retry is not None and observed.remembered.retry > now


def _marked(before: frozenset[ObjectRef], now: Mapping[ObjectRef | None, bool]) -> frozenset[ObjectRef]:
    """Return the marked objects after a look at some of them."""
    return frozenset({*(one for one in before if one not in now), *(ref for ref, on in now.items() if on and ref)})


def _retry_s(failures: int, most: float) -> float:
    return min(FIRST_RETRY_S * 2.0 ** min(failures - 1, 20), most)


def _is_drifted(observed: WorkObserved, manifest: Manifest) -> bool:
    """Return whether a change was only read because it may not be undone yet."""
    looked, known = observed.looked[manifest.ordinal], observed.remembered.known.get(manifest.ref or _NOWHERE)
    if looked.tried or observed.complete or known is None:
        return False
    return (looked.obj is None) != (not known.version) or _version(looked.obj) != known.version


_NOWHERE: Final = ObjectRef("", "", "", "")


def _version(obj: Obj | None) -> str:
    return resource_version(obj) if obj is not None else ""


def _with_pace(made: Remembered, observed: WorkObserved, now: datetime) -> Remembered:
    """Return the memory with the looks and corrections of this reconcile counted."""
    settings, before, refs = observed.settings, observed.remembered, {one.ref: one for one in observed.manifests}
    unfollowed = [one for one in refs if one is not None and one.group_kind not in observed.followed]
    if unfollowed and is_past(before.polled, now):
        made = replace(made, polled=now + timedelta(seconds=settings.status_s * (1 + 0.9 * observed.draw)))
    looked = [ref for ref, one in refs.items() if one.ordinal in observed.looked]
    if any(ref in observed.dirty for ref in looked):
        made = replace(made, tokens=tokens(observed, now) - 1, spent=now)
    undone = any(
        observed.looked[refs[ref].ordinal].wrote and (ref in observed.dirty or ref in before.drifted) for ref in looked
    )
    if undone:
        return replace(made, corrections=made.corrections + 1, corrected=now)
    quiet = before.corrected is not None and now - before.corrected > timedelta(seconds=2 * settings.resync_s)
    return replace(made, corrections=0, corrected=None) if quiet else made


def _outcome(observed: WorkObserved, after: Remembered, now: datetime) -> Outcome:
    """Return when the work is looked at again, if nothing happens."""
    times: list[tuple[datetime | None, str, bool]] = [(after.resync, "the resync", True)]
    if any(one.ref is not None and one.ref.group_kind not in observed.followed for one in observed.manifests):
        times.append((after.polled, "objects that are not watched", True))
    if after.refused:
        times.append((after.refused_until, "manifests that the executor may not apply", True))
    if after.retry is not None and after.retry > now:
        times.append((after.retry, "manifests that could not be applied", after.failures > PATIENCE))
    if after.drifted:
        times.append((correct_at(after, observed), "objects that others change", False))
    if any(one.pending for one in observed.dropped.values()):
        times.append((now + timedelta(seconds=_retry_s(after.failures + 1, 1.0)), "objects being deleted", False))
    if set(observed.dirty) - observed.looked_at:
        times.append((now + timedelta(seconds=pace_s(observed) / 2), "objects that change often", False))
    when, why, background = min(
        ((when or now, why, background) for when, why, background in times), key=lambda one: one[0]
    )
    return Requeue(max((when - now).total_seconds(), 0.05), why, background=background)


def remembers(results: tuple[Result, ...]) -> bool:
    """Return whether the last part of a reconcile was written."""
    return all(one.ok for one in results)
