"""What the work agent knows of one ManifestWork when it plans: :class:`WorkObserved`, made by :func:`observe_work`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from syncline.control.cache import Snapshot
from syncline.fleet.conditions import find_condition, is_true
from syncline.fleet.spoke.link import Link
from syncline.fleet.spoke.work.configs import config_of
from syncline.fleet.spoke.work.deletion import hub_hash, identity
from syncline.fleet.spoke.work.manifests.actions import Dropped, Looked
from syncline.fleet.spoke.work.manifests.memory import EMPTY, Memory, Remembered
from syncline.fleet.spoke.work.ownership import owned_by_work
from syncline.kube.kinds.content import KEY_SECRET
from syncline.kube.kinds.manifestworks import APPLIED_WORK, MANIFEST_WORK
from syncline.kube.mapper import Mapper
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    ResourceInfo,
    dig,
    gvk_of,
    is_terminating,
    name_of,
    namespace_of,
)

WORKS: Final = GroupKind(MANIFEST_WORK.group, MANIFEST_WORK.kind)
APPLIED: Final = GroupKind(APPLIED_WORK.group, APPLIED_WORK.kind)
CREDENTIALS: Final = "hub-kubeconfig-secret"
"""The Secret with which an agent in a pod reaches its hub: no work may write or read it."""


@dataclass(frozen=True, slots=True)
class WorkSettings:
    """Intervals in seconds; the defaults are upstream's flags."""

    status_s: float = 10.0
    """Between two readings of an object that is not watched, and between two looks at one that changes all the time
    (``--status-sync-interval``). Up to 90 % are added by chance."""
    resync_s: float = 240.0
    """Between two applications of what nothing announces. Up to 50 % are added by chance."""
    eviction_s: float = 3600.0
    """How long a work may be missing on the hub (``--appliedmanifestwork-eviction-grace-period``)."""
    most_followed: int = 50
    """Kinds that are watched for works (``--max-feedback-watch``)."""
    raw: bool = False
    """Whether values of any type are reported as JSON (feature gate RawFeedbackJsonString)."""
    max_raw: int = 1024
    """Limit of such a value in bytes (``--max-json-raw-length``)."""


DEFAULTS: Final = WorkSettings()


@dataclass(frozen=True, slots=True)
class Manifest:
    """One manifest of a work. ``meta``: its ``resourceMeta``; ``ref`` and ``info`` are None, and ``error`` says why, if
    it cannot be applied; ``config``: what ``manifestConfigs`` say about it."""

    ordinal: int
    obj: Obj = field(repr=False)
    meta: Obj
    ref: ObjectRef | None = None
    info: ResourceInfo | None = None
    error: str = ""
    unknown: bool = False
    """Its kind is not served (yet)."""
    config: Obj | None = None
    owned: bool = True

    @property
    def strategy(self) -> Mapping[str, Any] | None:
        found = (self.config or {}).get("updateStrategy")
        return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True)
class WorkObserved:
    """``problem``: why the cluster cannot be looked at; ``lasts``: that does not end by itself. ``dirty``: objects that
    changed since they were looked at, with their versions. ``followed``: the kinds whose changes arrive now;
    ``wanted``: those to be watched; ``asked``: those that the driver was asked for. ``draw``: a number from 0 to 1.
    ``looked`` and ``dropped``: what this reconcile has done so far, by ordinal and by identity; ``unanswered``: the
    cluster did not answer a part of it; ``after``: what to remember when its status is written."""

    work: Obj
    hub: str
    agent: str
    settings: WorkSettings
    problem: str = ""
    lasts: bool = False
    applied: Obj | None = None
    manifests: tuple[Manifest, ...] = ()
    remembered: Remembered = EMPTY
    dirty: Mapping[ObjectRef, str] = field(default_factory=dict)
    followed: frozenset[GroupKind] = frozenset()
    wanted: frozenset[GroupKind] = frozenset()
    asked: frozenset[GroupKind] = frozenset()
    draw: float = 0.0
    looked: Mapping[int, Looked] = field(default_factory=dict)
    dropped: Mapping[tuple[str, str, str, str], Dropped] = field(default_factory=dict)
    unanswered: bool = False
    after: Remembered | None = None

    @property
    def applied_name(self) -> str:
        return f"{self.hub}-{name_of(self.work)}"

    @property
    def looked_at(self) -> frozenset[ObjectRef]:
        """The objects that this reconcile has looked at."""
        return frozenset(one.ref for one in self.manifests if one.ref is not None and one.ordinal in self.looked)

    @property
    def taken(self) -> dict[ObjectRef, str]:
        """The changes that this reconcile has looked at."""
        refs = self.looked_at
        return {ref: version for ref, version in self.dirty.items() if ref in refs}

    @property
    def conditions(self) -> list[Obj]:
        return dig(self.work, "status", "conditions") or []

    @property
    def was_applied(self) -> bool:
        """Whether the work was applied once: before that nothing that it lacks is deleted."""
        return find_condition(self.conditions, "Applied") is not None

    @property
    def complete(self) -> bool:
        return is_true(self.conditions, "Complete")

    @property
    def inventory(self) -> list[Obj]:
        return dig(self.applied or {}, "status", "appliedResources") or []

    @property
    def left(self) -> list[Obj]:
        """Recorded resources that the work does not have any more. None while a kind is unknown: they may be of it."""
        if any(one.unknown or not one.obj for one in self.manifests):
            return []
        current = {identity(one.meta) for one in self.manifests if one.info is not None}
        return [one for one in self.inventory if identity(one) not in current]


def observe_work(
    cache: Snapshot, ref: ObjectRef, link: Link, memory: Memory, settings: WorkSettings
) -> WorkObserved | None:
    """Return what is known of a work; None if it does not exist."""
    work = cache.get(ref)
    if work is None:
        memory.forget(ref)
        return None
    observed = WorkObserved(work, hub_hash(link.hub_url), link.agent, settings, draw=link.draw())
    spoke = link.spoke()
    problem = problem_of(spoke, link)
    if spoke is None or problem:
        lasts = spoke is not None and bool(spoke.unread(ObjectRef(*APPLIED, "", "")))
        return replace(observed, problem=problem, lasts=lasts)
    applied = spoke.get(ObjectRef(*APPLIED, "", observed.applied_name))
    if is_terminating(work):
        memory.forget(ref)
        return replace(observed, applied=applied)
    manifests = manifests_of(work, spoke.mapper)
    memory.track(ref, frozenset(one.ref for one in manifests if one.ref is not None), _watched(manifests))
    remembered, dirty = memory.of(ref)
    kinds = {one.ref.group_kind for one in manifests if one.ref is not None}
    return replace(
        observed,
        applied=applied,
        manifests=manifests,
        remembered=remembered,
        dirty=dirty,
        followed=frozenset(kind for kind in kinds & memory.followed if spoke.follows(kind)),
        wanted=memory.kinds(settings.most_followed),
        asked=memory.followed,
    )


def _watched(manifests: Iterable[Manifest]) -> frozenset[GroupKind]:
    """Return the kinds whose objects shall be watched although they change all the time."""
    asked = (one for one in manifests if (one.config or {}).get("feedbackScrapeType") == "Watch")
    return frozenset(one.ref.group_kind for one in asked if one.ref is not None)


def problem_of(spoke: Snapshot | None, link: Link) -> str:
    """Return why the agent's own cluster cannot be worked on, or ""."""
    if spoke is None:
        return link.problem() or "the cluster is being read for the first time"
    if not spoke.has_synced(APPLIED):
        why = spoke.unread(ObjectRef(*APPLIED, "", "")) or "its definition is missing"
        return f"AppliedManifestWorks of the cluster cannot be read: {why}"
    return link.problem()


def manifests_of(work: Obj, mapper: Mapper) -> tuple[Manifest, ...]:
    """Return the manifests of a work in the order of its spec."""
    spec = work.get("spec") or {}
    listed = dig(spec, "workload", "manifests") or ()
    return tuple(_manifest(number, one, spec, mapper) for number, one in enumerate(listed))


def _manifest(ordinal: int, obj: Any, spec: Obj, mapper: Mapper) -> Manifest:
    empty = dict.fromkeys(("group", "version", "kind", "resource", "name", "namespace"), "")
    if not isinstance(obj, dict) or not obj.get("kind"):
        return Manifest(ordinal, {}, {"ordinal": ordinal, **empty}, error="Object 'Kind' is missing in the manifest")
    gvk = gvk_of(obj)
    named = {**empty, "group": gvk.group, "version": gvk.version, "kind": gvk.kind, "name": name_of(obj)}
    info = mapper.find(gvk)
    if info is None:
        meta = {"ordinal": ordinal, **named, "namespace": namespace_of(obj)}
        why = f'the server doesn\'t have a resource type "{gvk.kind}"'
        return Manifest(ordinal, obj, meta, error=why, unknown=True)
    namespace = namespace_of(obj) if info.namespaced else ""
    meta = {"ordinal": ordinal, **named, "resource": info.plural, "namespace": namespace}
    if refusal := _refusal(gvk.group_kind, name_of(obj)):
        return Manifest(ordinal, obj, meta, error=refusal)
    if not info.namespaced and namespace_of(obj):
        obj = {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "namespace"}}
    config = config_of(meta, spec.get("manifestConfigs") or ())
    owned = owned_by_work(meta, spec.get("deleteOption"))
    ref = ObjectRef(info.group, info.kind, namespace, name_of(obj))
    return Manifest(ordinal, obj, meta, ref, info, config=config, owned=owned)


def _refusal(kind: GroupKind, name: str) -> str:
    """Return why a work may not have an object, or "": it is the agent's own."""
    if kind == APPLIED:
        return "a work may not contain an AppliedManifestWork: it is the inventory of the agent; remove the manifest"
    if kind == GroupKind("", "Secret") and name == CREDENTIALS:
        return f"a work may not contain the Secret {CREDENTIALS}: it is the agent's access to its hub; remove it"
    if kind == GroupKind("", "Secret") and name == KEY_SECRET:
        return f"a work may not contain the Secret {KEY_SECRET}: it opens what the hub seals for the cluster; remove it"
    return ""
