"""Reads what the plan of a group and the permit of an Application need from the hub's cache."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Final

from syncline.argo.application import REFRESH
from syncline.argo.content.names import wants_content
from syncline.argo.parameters import PARAMETERS_MAP
from syncline.argo.rollout.steps import assign
from syncline.argo.rollout.strategy import is_rolling, steps_of
from syncline.control.cache import Snapshot
from syncline.control.plan import Plan
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.budgets.observe import observe_fleet
from syncline.fleet.hub.registration.leases import AVAILABLE, NODES_UPDATING
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.notices import content_waits
from syncline.fleet.pull.observe import (
    APPS,
    BY_APP,
    CLUSTERS,
    CONFIG_MAPS,
    DECISIONS,
    DEPLOYMENTS,
    DETAILS,
    GITOPS_CLUSTERS,
    PROJECTS,
    SETS,
    WORKS,
    Carried,
    observe_app,
)
from syncline.fleet.pull.order.annotations import Asked, asked_of, wave_of_cluster
from syncline.fleet.pull.order.evidence import Facts, facts_of
from syncline.fleet.pull.order.groups import (
    BY_GROUP,
    CLUSTER_SETS,
    ROLLOUTS,
    SINGLE,
    Ordering,
    group_of,
    key_of,
    needs_of,
    windows_of,
)
from syncline.fleet.pull.order.model import ClusterSeen, GroupSeen, Target
from syncline.fleet.pull.order.needs import Needs
from syncline.fleet.pull.order.permits import Permit
from syncline.fleet.pull.order.proven import REVISIONS, Proven, proven_of
from syncline.fleet.pull.order.release import (
    Pins,
    bare,
    carried_release,
    digest,
    manifests_of,
    pins_of,
    revisions_of,
    stamped,
    template_of,
    tracked_of,
)
from syncline.fleet.pull.order.unwritten import unwritten
from syncline.fleet.pull.propagation import wanted_work
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, is_terminating, name_of, ref_of, uid_of

NEEDED: Final = (APPS, WORKS, CLUSTERS, SETS, ROLLOUTS, CLUSTER_SETS, REVISIONS)
_NOT_IDLE: Final = ("True", "Unknown")
"""Condition of a ManagedCluster: pools of the cluster are being updated, or held. Its agent writes it."""
MOST_KEPT: Final = 500
MOST_TARGETS: Final = 10_000
"""Targets that are kept, some five kilobytes each; of further ones each is read each time."""
_BESIDE: Final = (GITOPS_CLUSTERS, DECISIONS, PROJECTS, CONFIG_MAPS, DEPLOYMENTS, CLUSTER_SETS)
"""Kinds that targets depend on beside their own objects."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A target and what it was read from: the very objects, and values."""

    objects: tuple[Obj | None, ...]
    values: tuple[object, ...]
    target: Target

    def holds(self, objects: tuple[Obj | None, ...], values: tuple[object, ...]) -> bool:
        same = len(objects) == len(self.objects) and all(map(is_, objects, self.objects))
        return same and values == self.values


@dataclass(slots=True)
class Reading:
    """What the controllers of the order share: settings, and what they remember of the cache."""

    settings: PullSettings
    ordering: Ordering = field(default_factory=Ordering)
    _entries: OrderedDict[str, tuple[Obj, Mapping[tuple[str, str], Obj]]] = field(default_factory=OrderedDict)
    _targets: OrderedDict[ObjectRef, _Read] = field(default_factory=OrderedDict)

    def entry(self, rollout: Obj | None, cluster: str, app: str) -> Obj:
        """Return the entry of an Application in a roll-out; empty: none."""
        if rollout is None:
            return {}
        uid = uid_of(rollout)
        known = self._entries.get(uid)
        if known is None or known[0] is not rollout:
            listed = dig(rollout, "status", "clusters") or ()
            known = rollout, {(str(one.get("cluster")), str(one.get("application"))): one for one in listed}
            self._entries[uid] = known
            while len(self._entries) > MOST_KEPT:
                self._entries.popitem(last=False)
        return known[1].get((cluster, app), {})

    def pins(self, app: Obj, asked: Asked, *, rolling: bool) -> Pins:
        """Return the commits of an Application in an order. A RollingSync starts each sync itself: nothing follows a
        branch there."""
        store = self.settings.revisions
        return Pins() if store is None or rolling or not asked.pins else pins_of(app, store.looks(tracked_of(app)))

    def permit(self, cache: Snapshot, app: Obj, work: Obj | None) -> Permit | None:
        """Return what the order permits for an Application; None: no order is in force."""
        group = group_of(app)
        if not self.ordering.why(cache, group):
            return None
        owner = cache.get(ObjectRef(*SETS, group.namespace, group.name))
        entry = self.entry(cache.get(group), annotations_of(app)[names.CLUSTER], name_of(app))
        pins = self.pins(app, asked_of(app), rolling=owner is not None and is_rolling(owner))
        return Permit(str(entry.get("permitted") or ""), pins, _proven(cache, work), str(entry.get("why") or ""))

    def carried(self, cache: Snapshot, ref: ObjectRef) -> Carried | None:
        """As :func:`~syncline.fleet.pull.observe.observe_app`, with what the order permits."""
        found = observe_app(cache, ref, self.settings.variant, self.settings.manifest_limit)
        if found is None or found.seen is None or found.unlisted:
            return found
        if missing := next((kind for kind in NEEDED if not cache.has_synced(kind)), None):
            return replace(found, unlisted=str(missing))
        permit = self.permit(cache, found.seen.app, found.seen.work)
        return replace(found, seen=replace(found.seen, permit=permit))

    def group(self, cache: Snapshot, ref: ObjectRef) -> GroupSeen | None:
        """Read a group; None: it has no Applications and no roll-out."""
        rollout, owner = cache.get(ref), cache.get(ObjectRef(*SETS, ref.namespace, ref.name))
        if rollout is None and all(map(cache.has_synced, NEEDED)) and not self.ordering.why(cache, ref):
            return None  # without an order nothing depends on what its Applications are
        apps = [one for one in cache.indexed(BY_GROUP, key_of(ref)) if not is_terminating(one)]
        is_set = owner is not None or not ref.name.endswith(SINGLE)
        apps = [one for one in apps if bool(names.owning_set(one)) == is_set]
        if not apps and rollout is None:
            return None
        missing = tuple(str(kind) for kind in NEEDED if not cache.has_synced(kind))
        if missing:
            return GroupSeen(ref, owner, rollout, unlisted=missing)
        force = self.ordering.why(cache, ref)
        if not is_set:
            owner = apps[0] if apps else None
        if owner is not None and is_terminating(owner):
            owner = None
        if not force:
            return GroupSeen(ref, owner, rollout)
        targets = self.targets(cache, ref, apps)
        store = self.settings.revisions
        pinning = [one for one in targets if store is not None and one.asked.pins and not one.rolling]
        tracked = tuple(dict.fromkeys(each for one in pinning for each in tracked_of(one.app)))
        return GroupSeen(
            ref,
            owner,
            rollout,
            force,
            targets,
            template_of(owner or {}, is_set=is_set),
            observe_fleet(cache),
            store.looks(tracked) if store is not None else None,
            tracked,
            self.settings.poll_s,
            tuple(one.app for one in pinning if REFRESH in annotations_of(one.app)),
        )

    def targets(self, cache: Snapshot, ref: ObjectRef, apps: list[Obj]) -> tuple[Target, ...]:
        """Return the targets of a group, with what they depend on."""
        needs = Needs(cache, self.settings.argo_namespace, self.members)
        found = needs.members(ref, apps)
        return tuple(replace(one, needs=needs.of(one.app)) if needs_of(one.app) else one for one in found)

    def members(self, cache: Snapshot, ref: ObjectRef, apps: list[Obj]) -> tuple[Target, ...]:
        """Return the targets of a group, without what they depend on."""
        owner = cache.get(ObjectRef(*SETS, ref.namespace, ref.name))
        steps = steps_of(owner) if owner is not None else ()
        rolling = owner is not None and is_rolling(owner)
        step_of = assign(steps, apps).step_of
        ordered = bool(self.ordering.why(cache, ref))
        beside = (id(cache), *map(cache.changes, _BESIDE), ordered)
        left = unwritten(owner, apps, self._policy(cache)) if owner is not None and ordered else {}
        made = []
        for app in apps:
            step = step_of.get(name_of(app), len(steps)) + 1 if rolling else None
            target = self._kept_target(cache, app, step, beside, ordered=ordered)
            made.append(replace(target, unwritten=left[target.name]) if target.name in left else target)
        return tuple(made)

    def _policy(self, cache: Snapshot) -> str:
        """Return what the controller of sets may do with Applications, as its settings say."""
        found = cache.get(ObjectRef(*CONFIG_MAPS, self.settings.argo_namespace, PARAMETERS_MAP))
        return str(dig(found or {}, "data", "applicationsetcontroller.policy") or "")

    def _kept_target(
        self, cache: Snapshot, app: Obj, step: int | None, beside: tuple[object, ...], *, ordered: bool
    ) -> Target:
        """As :meth:`_target`, which reads it only if something that it is made of has changed. ``beside``: what all
        targets depend on."""
        ref, cluster, name = ref_of(app), annotations_of(app)[names.CLUSTER], names.work_name(app)
        work = cache.get(ObjectRef(*WORKS, cluster, name))
        around = (ObjectRef(*CLUSTERS, "", cluster), ObjectRef(*DETAILS, cluster, name))
        carrying = cache.indexed(BY_APP, f"{ref.namespace}/{ref.name}")
        proofs = cache.owned(uid_of(work), REVISIONS) if work is not None else ()
        objects = (app, work, *map(cache.get, around), *carrying, *proofs)
        pinned = ordered and self.settings.revisions is not None
        pins = self.pins(app, asked_of(app), rolling=step is not None) if pinned else None
        values = (*beside, step, len(carrying), pins)
        known = self._targets.pop(ref, None)
        if known is None or not known.holds(objects, values):
            known = _Read(objects, values, self._target(cache, app, step, ordered=ordered))
        self._targets[ref] = known
        while len(self._targets) > MOST_TARGETS:
            self._targets.popitem(last=False)
        return known.target

    def _target(self, cache: Snapshot, app: Obj, step: int | None, *, ordered: bool) -> Target:
        name = annotations_of(app)[names.CLUSTER]
        obj = cache.get(ObjectRef(*CLUSTERS, "", name))
        seen = cluster_seen(cache, name, obj)
        asked, (of_cluster, problem) = asked_of(app), wave_of_cluster(obj)
        if step is None and asked.wave is None and problem:
            asked = replace(asked, problem=asked.problem or problem)
        wave = next((one for one in (step, asked.wave, of_cluster) if one is not None), 0)
        aside = _aside(seen)
        target = Target(app, seen, wave, asked, aside=aside, depends=bool(needs_of(app)), rolling=step is not None)
        target = replace(target, ordered=ordered, unmade=content_waits(app) if wants_content(app) else "")
        carried = observe_app(cache, ref_of(app), self.settings.variant, self.settings.manifest_limit)
        if carried is None or carried.seen is None or aside:
            return target
        work = carried.seen.work
        facts = _facts(cache, work, carried.seen.parts)
        pins = self.pins(app, asked, rolling=step is not None) if ordered else Pins()
        target = replace(
            target,
            work=work,
            carried=carried_release(work),
            facts=facts,
            proven=_proven(cache, work),
            pins=pins,
            revisions=tuple(revisions_of(app, pins)),
        )
        wanted = wanted_work(carried.seen, carried.variant)
        if isinstance(wanted, Plan):
            return replace(target, aside=wanted.why)
        if pins.problem:
            return replace(target, cannot=pins.problem)
        manifests = bare(manifests_of(wanted), pins)
        release = digest(manifests)
        return replace(target, wanted=release, manifests=tuple(stamped(manifests, release)))


def _facts(cache: Snapshot, work: Obj | None, parts: Sequence[Obj]) -> Facts:
    if work is None:
        return Facts()
    return facts_of(work, cache.get(ObjectRef(*DETAILS, dig(work, "metadata", "namespace"), name_of(work))), parts)


def _proven(cache: Snapshot, work: Obj | None) -> tuple[Proven, ...]:
    return proven_of(cache.owned(uid_of(work), REVISIONS)) if work is not None else ()


def _aside(seen: ClusterSeen) -> str:
    if not seen.exists:
        return f"the hub has no ManagedCluster {seen.name}"
    if seen.leaving:
        return f"cluster {seen.name} leaves the hub"
    return "" if seen.accepted else f"the hub does not accept cluster {seen.name}"


def cluster_seen(cache: Snapshot, name: str, obj: Obj | None) -> ClusterSeen:
    """Read the ManagedCluster of an Application."""
    if obj is None:
        return ClusterSeen(name, exists=False)
    conditions = dig(obj, "status", "conditions") or ()
    available = find_condition(conditions, AVAILABLE) or {}
    nodes = find_condition(conditions, NODES_UPDATING) or {}
    return ClusterSeen(
        name,
        True,
        is_terminating(obj),
        dig(obj, "spec", "hubAcceptsClient") is True,
        available.get("status") == "True",
        str(available.get("lastTransitionTime") or ""),
        windows_of(cache, obj),
        str(nodes.get("message") or "they are being updated")[:400] if nodes.get("status") in _NOT_IDLE else "",
        bool(nodes),
    )
