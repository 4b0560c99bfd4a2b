"""What a hub holds about its fleet, for commands: one snapshot of an API or of exported files; and what a Placement
selects, or would select, by the controller's own functions."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.assembly.inspection.snapshot import ClusterSnapshot, snapshot_of_cluster
from syncline.control.cache import Cache
from syncline.fleet.hub.admission import Refused, completed
from syncline.fleet.hub.placement.explaining import Explained, explained
from syncline.fleet.hub.placement.grouping import Group, grouped
from syncline.fleet.hub.placement.model import DISABLED, Schedule
from syncline.fleet.hub.placement.observe import Reading
from syncline.fleet.hub.placement.plan import PlacementPlan, plan_placement
from syncline.kube.client import Request, Response
from syncline.kube.kinds.managedclusters import (
    CLUSTER_SET,
    CLUSTER_SET_BINDING,
    MANAGED_CLUSTER,
    PLACEMENT,
    PLACEMENT_DECISION,
    PLACEMENT_SCORE,
    hub_cluster_crds,
)
from syncline.kube.kinds.manifestworks import REPLICA_SET, manifest_work_crd, replica_set_crd
from syncline.kube.mapper import Mapper
from syncline.kube.objects import (
    GVK,
    GroupKind,
    Obj,
    ObjectRef,
    ResourceInfo,
    annotations_of,
    dig,
    gvk_of,
    meta,
    name_of,
    namespace_of,
    ref_of,
)
from syncline.kube.patching.patches import json_merge_patch
from syncline.machineconfig.impact.admission import Admission

REQUEST: Final = GVK("certificates.k8s.io", "v1", "CertificateSigningRequest")
ADDON: Final = GroupKind("addon.open-cluster-management.io", "ManagedClusterAddOn")
SCHEDULING: Final = (MANAGED_CLUSTER, CLUSTER_SET, CLUSTER_SET_BINDING, PLACEMENT, PLACEMENT_DECISION, PLACEMENT_SCORE)
"""What scheduling reads."""
_SPEC_MERGED: Final = (MANAGED_CLUSTER.group_kind,)
"""Kinds of which people keep a part of the spec in files; agents and controllers write the rest."""


def fleet_snapshot(kinds: Iterable[GroupKind]) -> Generator[Request, Response, ClusterSnapshot]:
    """List these kinds where they are served. Raises the ApiError of a failed discovery."""
    return (yield from snapshot_of_cluster({}, frozenset(kinds)))


def offline_fleet(objects: Iterable[Obj]) -> ClusterSnapshot:
    """Return exported objects as the snapshot of a hub; ``unreadable`` names those of kinds that no fleet has."""
    cache = Cache(Mapper(_served(one) for one in definitions()))
    for info in cache.mapper.all():
        cache.mark_synced(info.group_kind)
    admission = Admission(cache, definitions())
    left_out = tuple(_put(cache, admission.admit(one, None).obj) for one in objects)
    return ClusterSnapshot(cache, tuple(text for text in left_out if text))


def definitions() -> tuple[Obj, ...]:
    """Return the definitions of the kinds that people write on a hub."""
    return (*hub_cluster_crds(), manifest_work_crd(), replica_set_crd())


def _served(definition: Obj) -> ResourceInfo:
    spec = definition["spec"]
    names, version = spec["names"], spec["versions"][-1]["name"]
    namespaced = spec["scope"] == "Namespaced"
    return ResourceInfo(spec["group"], version, names["kind"], names["plural"], namespaced=namespaced)


def _put(cache: Cache, obj: Obj) -> str:
    info = cache.mapper.preferred(gvk_of(obj).group_kind)
    if info is None:
        return f"{gvk_of(obj).api_version} {gvk_of(obj).kind} {name_of(obj)}: no part of what a Placement reads"
    space = {"namespace": meta(obj).get("namespace") or "default"} if info.namespaced else {}
    cache.put(info.group_kind, obj | {"metadata": {**meta(obj), **space}})
    return ""


# -- one Placement ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlacementReport:
    """What scheduling finds for a Placement now. ``clusters`` is empty if nothing could be scheduled; the plan says
    why. ``before``: the clusters in its PlacementDecisions."""

    placement: Obj
    plan: PlacementPlan
    clusters: tuple[Explained, ...] = ()
    before: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    frozen: bool = False
    """An annotation keeps the decisions as they are; the report says what would come without it."""

    @property
    def found(self) -> Schedule | None:
        return self.plan.schedule

    @property
    def selected(self) -> tuple[str, ...]:
        """By name."""
        return tuple(sorted(one.cluster for one in self.clusters if one.selected))


def placement_report(cache: Cache, ref: ObjectRef, now: datetime) -> PlacementReport | None:
    """Return what the next reconcile of a Placement finds; None if there is no such Placement."""
    for kind in SCHEDULING:
        cache.objects(kind.group_kind)  # a cache that reads on demand then knows what may not be read
    observed = Reading().observe(cache, ref)
    if observed is None:
        return None
    placement, frozen = observed.placement, annotations_of(observed.placement).get(DISABLED) == "true"
    before = tuple(sorted(observed.hub.selected_before))
    if frozen:
        notes = {key: value for key, value in annotations_of(placement).items() if key != DISABLED}
        thawed = placement | {"metadata": {**meta(placement), "annotations": notes}}
        cache.put(ref.group_kind, thawed)
        observed = Reading().observe(cache, ref)
        cache.put(ref.group_kind, placement)
        assert observed is not None, "it was put a line ago"
    plan = plan_placement(observed, now)
    if plan.schedule is None:
        return PlacementReport(placement, plan, before=before, frozen=frozen)
    clusters = tuple(explained(placement, observed.hub, plan.schedule, now))
    groups = grouped(placement, plan.schedule.selected).groups
    return PlacementReport(placement, plan, clusters, before, groups, frozen)


@dataclass(frozen=True, slots=True)
class Move:
    """A cluster that comes to a Placement or leaves it, and why."""

    cluster: str
    why: str


@dataclass(frozen=True, slots=True)
class PlacementChange:
    """What a change of files does to the decisions of a Placement. ``users``: what sends objects to its clusters."""

    report: PlacementReport
    comes: tuple[Move, ...]
    goes: tuple[Move, ...]
    stays: tuple[str, ...]
    users: tuple[ObjectRef, ...] = ()

    @property
    def changes(self) -> bool:
        return bool(self.comes or self.goes)


def placement_changes(cache: Cache, files: Sequence[Obj], now: datetime) -> list[PlacementChange]:
    """Return what becomes of the Placements in ``files``; without one, of those whose decisions change. The files are
    laid over ``cache``. Raises Refused for an object that the hub would not take."""
    admission = Admission(cache, definitions())
    for one in files:
        _lay(cache, admission, one, now)
    kind = PLACEMENT.group_kind
    named = [_placed(one) for one in files if gvk_of(one).group_kind == kind]
    refs = named or [ref_of(one) for one in cache.objects(kind)]
    found = [_change(cache, report) for ref in refs if (report := placement_report(cache, ref, now)) is not None]
    return found if named else [one for one in found if one.changes]


def _placed(placement: Obj) -> ObjectRef:
    return ObjectRef(*PLACEMENT.group_kind, namespace_of(placement) or "default", name_of(placement))


def _lay(cache: Cache, admission: Admission, obj: Obj, now: datetime) -> None:
    """Put an object of a file as the server would store it: with defaults, and what it does not say stays as stored.
    Raises Refused."""
    info = cache.mapper.preferred(gvk_of(obj).group_kind)
    if info is None:
        return
    space = (namespace_of(obj) or "default") if info.namespaced else ""
    stored = cache.get(ObjectRef(*info.group_kind, space, name_of(obj))) or {}
    metadata = json_merge_patch(meta(stored), {**meta(obj), **({"namespace": space} if space else {})})
    made = stored | obj | {"metadata": metadata}
    if info.group_kind in _SPEC_MERGED:
        made["spec"] = json_merge_patch(stored.get("spec") or {}, obj.get("spec") or {})
    if info.group_kind == MANAGED_CLUSTER.group_kind:
        # As admission completes it: the set that a cluster without one belongs to, the times of its taints.
        made = completed(made, stored or None, now)
    admitted = admission.admit(made, stored or None)
    if admitted.refused:
        raise Refused(f"{info.kind} {name_of(obj)} is invalid: {admitted.refused}")
    cache.put(info.group_kind, admitted.obj)


def _change(cache: Cache, report: PlacementReport) -> PlacementChange:
    before, after = set(report.before), set(report.selected)
    why = {one.cluster: reason_of(one) for one in report.clusters}
    if report.found is None or report.frozen:
        after = before
    return PlacementChange(
        report,
        tuple(Move(name, why.get(name, "")) for name in sorted(after - before)),
        tuple(Move(name, why.get(name, "the hub has no such cluster")) for name in sorted(before - after)),
        tuple(sorted(before & after)),
        _users(cache, report.placement),
    )


def reason_of(one: Explained) -> str:
    """Return in a line why a cluster is selected or not."""
    if one.selected:
        return f"score {one.total}" + (f"; {'; '.join(one.why)}" if one.why else "")
    why = "; ".join(one.why)
    return why if why.startswith("predicate ") else f"{one.by}: {why}"


def _users(cache: Cache, placement: Obj) -> tuple[ObjectRef, ...]:
    """Return the ManifestWorkReplicaSets that send works to the clusters of a Placement."""
    kind = REPLICA_SET.group_kind
    if cache.mapper.preferred(kind) is None:
        return ()
    name = name_of(placement)
    sets = cache.objects(kind, namespace_of(placement))
    return tuple(
        ref_of(one) for one in sets if name in (each.get("name") for each in dig(one, "spec", "placementRefs") or ())
    )
