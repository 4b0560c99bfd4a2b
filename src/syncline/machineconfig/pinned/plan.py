"""Plans how a machine pins the images of its pools: pull all, then configure CRI-O; pure.

The state is in the node's record: the pulled generation of each set, and failures. Conditions and messages: Machine
Config Operator ``pkg/daemon/pinned_image_set.go``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from syncline.control.plan import Outcome, Plan, Requeue, Result, Retry, SetStatus, set_status
from syncline.kube.objects import Obj, dig, generation, name_of
from syncline.kube.text.quantity import parse_quantity
from syncline.machineconfig.agent.steps import PinImages, Pulled, PullImages
from syncline.machineconfig.nodes.phases import Phase, advance
from syncline.machineconfig.pinned.images import image_names

PROGRESSING, DEGRADED = "PinnedImageSetsProgressing", "PinnedImageSetsDegraded"
FAILED = "One or more PinnedImageSet is experiencing an error. See PinnedImageSet list for more details."
ROOM = "16Gi"
"""Disk space that a machine needs besides the images."""
MAX_ERROR = 32768
Entry = dict[str, object]


@dataclass(frozen=True)
class PinnedObserved:
    """The planner's input. ``pools``: the node's pools, the owner first. ``sets``: PinnedImageSets by name. ``pulled``:
    the result of this reconcile's pull."""

    node: Obj
    pools: tuple[Obj, ...]
    sets: Mapping[str, Obj]
    record: Obj
    up: bool
    pulled: Pulled | None = None

    @property
    def names(self) -> list[str]:
        """Return the names of the sets of its pools, without duplicates."""
        refs = (ref for pool in self.pools for ref in dig(pool, "spec", "pinnedImageSets") or ())
        return list(dict.fromkeys(str(ref.get("name") or "") for ref in refs))


def plan_pinned(observed: PinnedObserved, now: datetime) -> Plan:
    """Return the plan of one reconcile."""
    node, names = name_of(observed.node), observed.names
    if not observed.up:
        return Plan(why=f"machine {node} is not up")
    found = [observed.sets[name] for name in names if name in observed.sets]
    missing = next((name for name in names if name not in observed.sets), None)
    if missing is None and _settled(observed, found):
        return Plan(why=f"{node} has its {len(found)} pinned image sets")
    if missing is not None:
        text = f'pinnedimageset.machineconfiguration.openshift.io "{missing}" not found'
        return _fail(observed, found, f'failed to get PinnedImageSet "{missing}": {text}', now)
    problem = _unfit(observed.node) if found else None
    if problem is not None:
        return _fail(observed, found, problem, now)
    images = tuple(image_names(image for one in found for image in dig(one, "spec", "pinnedImages") or ()))
    if observed.pulled is None and images:
        progress = Phase(PROGRESSING, "True", "ImagePrefetch", f"node is prefetching images: {node}")
        report = _write(observed, [progress], [_entry(observed, one) for one in found], now)
        why = f"{node} fetches {len(images)} images"
        return Plan((*((each,) for each in report), (PullImages(node, images, "its pool pins them"),)), why=why)
    if observed.pulled is not None and (waits := _waits(observed.pulled, now)) is not None:
        return Plan(outcome=waits, why=f"{node} is fetching images")
    if observed.pulled is not None and observed.pulled.error:
        return _fail(observed, found, observed.pulled.error, now)
    phases = [
        Phase(PROGRESSING, "False", "AsExpected", "All pinned image sets complete"),
        Phase(DEGRADED, "False", "AsExpected", "All is good"),
    ]
    report = _write(observed, phases, [_complete(one) for one in found], now)
    step = PinImages(node, images, "they are all there" if images else "no image is pinned any more")
    return Plan(((step,), *((each,) for each in report)), why=f"{node} pins {len(images)} images")


def settle_pinned(
    observed: PinnedObserved, _plan: Plan, results: Sequence[Result], now: datetime
) -> tuple[PinnedObserved, Plan] | None:
    """Continue from the result of a pull; report a failure."""
    for result in results:
        if isinstance(result.action, SetStatus) and result.ok and isinstance(result.value, dict):
            observed = replace(observed, record=result.value)
    for result in results:
        if isinstance(result.action, PullImages) and result.ok:
            observed = replace(observed, pulled=result.value)
            return observed, plan_pinned(observed, now)
        if isinstance(result.action, PullImages | PinImages) and not result.ok:
            found = [observed.sets[name] for name in observed.names if name in observed.sets]
            return observed, _fail(observed, found, str(result.error), now)
    return None


def _waits(pulled: Pulled, now: datetime) -> Outcome | None:
    if pulled.more:
        return Requeue(0, "more images")
    if pulled.until is None:
        return None
    return Requeue(max(0.0, (pulled.until - now).total_seconds()), "images that are being fetched")


def _unfit(node: Obj) -> str | None:
    """Return why nothing can be pulled now, or None."""
    name = name_of(node)
    for condition in dig(node, "status", "conditions") or ():
        kind, status = condition.get("type"), condition.get("status") or ""
        if kind == "Ready" and status != "True":
            return f"node {name} is reporting NotReady={status}"
        if kind == "DiskPressure" and status != "False":
            return f"node {name} is reporting OutOfDisk={status}"
    space = dig(node, "status", "allocatable", "ephemeral-storage")
    if space is None:
        return f'node "{name}" has no ephemeral storage capacity'
    has, needs = parse_quantity(space), parse_quantity(ROOM)
    if has < needs:
        message = f"capacity: {has.value()}, required: {needs.value()}"
        return f"storage available is less than minimum required {message}"
    return None


# -- the node's record ----------------------------------------------------------------------------------------------


def _complete(one: Obj) -> Entry:
    return {"name": name_of(one), "desiredGeneration": generation(one), "currentGeneration": generation(one)}


def _entry(observed: PinnedObserved, one: Obj, error: str = "") -> Entry:
    """Return the record's entry of a set: as recorded if it is pinned or failed in this generation, else a new one."""
    report = dig(observed.record, "status", "pinnedImageSets") or ()
    known: Entry = next((each for each in report if each.get("name") == name_of(one)), {})
    if known == _complete(one) or (not error and known.get("lastFailedGeneration") == generation(one)):
        return dict(known)
    failed = {"lastFailedGeneration": generation(one), "lastFailedGenerationError": error[:MAX_ERROR]} if error else {}
    return {"name": name_of(one), "desiredGeneration": generation(one), **failed}


def _settled(observed: PinnedObserved, found: Sequence[Obj]) -> bool:
    """Return whether the record is complete and no pull is in progress."""
    conditions = {each.get("type"): each.get("status") for each in dig(observed.record, "status", "conditions") or ()}
    quiet = "True" not in (conditions.get(PROGRESSING), conditions.get(DEGRADED))
    return quiet and (dig(observed.record, "status", "pinnedImageSets") or []) == [_complete(one) for one in found]


def _fail(observed: PinnedObserved, found: Sequence[Obj], text: str, now: datetime) -> Plan:
    phase = Phase(DEGRADED, "True", "PrefetchFailed", FAILED)
    report = _write(observed, [phase], [_entry(observed, one, text) for one in found], now)
    return Plan(tuple((each,) for each in report), Retry(text), text)


def _write(
    observed: PinnedObserved, phases: Sequence[Phase], entries: Sequence[Entry], now: datetime
) -> tuple[SetStatus, ...]:
    record = observed.record
    for phase in phases:
        conditions = dig(record, "status", "conditions") or ()
        there: Obj = next((each for each in conditions if each.get("type") == phase.type), {})
        same = all(there.get(key) == getattr(phase, key) for key in ("status", "reason", "message"))
        status = None if same else advance(record, observed.node, phase, None, now)
        record = record if status is None else record | {"status": status}
    status = {key: value for key, value in (record.get("status") or {}).items() if key != "pinnedImageSets"}
    status |= {"pinnedImageSets": list(entries)} if entries else {}
    return set_status(observed.record, status, f"pinned images of {name_of(observed.node)}")
