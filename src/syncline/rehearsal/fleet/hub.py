"""The hub of a rehearsed fleet: which Applications each cluster gets, and in which order.

Placements are decided (:class:`Placing`), GitOpsClusters and ApplicationSets are carried out (:class:`Making`), by
controllers on embedded APIs in virtual time. Works are not: what a cluster gets, and when, is read by the functions
of the controllers that would write them. Applications are made only for clusters that differ, so the two are apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from syncline.assembly.fleet.hub import HubSettings, hub_role
from syncline.assembly.fleet.objects import hub_objects
from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.assembly.inspection.order import READ, order_cache, rollout_to_be
from syncline.assembly.inspection.snapshot import snapshot_of_cluster
from syncline.assembly.roles import Role
from syncline.control.cache import Cache
from syncline.control.executor import run_in_place
from syncline.fleet.conditions import condition, find_condition
from syncline.fleet.hub.registration.leases import ACCEPTED, AVAILABLE, JOINED
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.observe import APPS, CLUSTERS, CONFIG_MAPS, DECISIONS, DEPLOYMENTS, GITOPS_CLUSTERS, SETS
from syncline.fleet.pull.order.groups import group_of
from syncline.fleet.pull.order.model import GroupSeen
from syncline.fleet.pull.order.observe import Reading
from syncline.fleet.pull.order.revisions import Looks, Resolution, RevisionStore, Tracked
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube import client
from syncline.kube.kinds.fleetrollouts import fleet_rollout_crd
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER, PLACEMENT_DECISION, hub_cluster_crds
from syncline.kube.kinds.syncline import budget_crd
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    gvk_of,
    labels_of,
    meta,
    name_of,
    namespace_of,
    resource_version,
)
from syncline.rehearsal.fleet.given import FleetWorld
from syncline.rehearsal.fleet.hubobjects import ROOTS, ForTheHub
from syncline.rehearsal.playing import POLL_S
from syncline.rehearsal.repositoryreader import RehearsedReader
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.world import World

DECIDING = ("placement", "cluster-set", "cluster-set-binding")
"""The controllers of a hub that decide Placements; of a rehearsal all clusters are there, and answer."""
DEFAULT = "default"
"""The cluster set of clusters that name none."""
GUARDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
"""What confines agents, of which a rehearsed hub has none."""
NOT_PLACING = ("GitOpsCluster", "AppProject")
IMPORTING = ("pull-cluster-secret", "pull-import", "gitops-cluster")
"""The controllers of the pull model that make clusters known to ApplicationSets."""
_JOINED = [
    condition(kind, "True", reason, "") | {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    for kind, reason in (
        (ACCEPTED, "HubClusterAdminAccepted"),
        (JOINED, "ManagedClusterJoined"),
        (AVAILABLE, "ManagedClusterAvailable"),
    )
]
SETTLE_S = 60.0
"""Virtual seconds after which Placements are decided, clusters are imported, and sets have made their Applications."""
MAX_PROBLEMS = 20


@dataclass(frozen=True)
class HubSeen:
    """What the hub would give its clusters. ``groups``: Applications that have an order in common; ``problems``: what
    makes nothing, in sentences; ``notes``: what is worth knowing."""

    at: datetime
    groups: tuple[GroupSeen, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Placed:
    """All ManagedClusters, and all PlacementDecisions."""

    clusters: tuple[Obj, ...]
    decisions: tuple[Obj, ...]


class Commits(RevisionStore):
    """What revisions name: each address of the rehearsed repository the commit, any other revision itself."""

    def __init__(self, commits: Mapping[str, str], now: datetime) -> None:
        super().__init__()
        self._commits, self._now = commits, now

    def looks(self, tracked: Iterable[Tracked]) -> Looks:
        named = {one: self._commits.get(one.url) or one.revision or "HEAD" for one in tracked}
        return Looks(MappingProxyType({one: Resolution(self._now, commit) for one, commit in named.items()}), {})


class _Hub:
    """An embedded API with controllers of a hub. ``clusters``: the names of those that it has."""

    def __init__(
        self, fleet: FleetWorld, namespace: str, reader: RehearsedReader, clusters: Sequence[str], seed: int
    ) -> None:
        self.namespace = namespace
        self.world = World(reader, seed=seed, nodes=0, settings=AppSettings(namespace, poll_s=POLL_S))
        self._start()
        groups = fleet.clusters()
        spaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in clusters]
        joined = [_managed_cluster(name, groups[name].labels, groups[name].annotations) for name in clusters]
        self.lay([*spaces, *joined])
        for obj in joined:
            self.tell(obj, {"conditions": _JOINED})
        self.world.driver.settle()

    def _start(self) -> None:
        raise NotImplementedError

    def begin(self, role: Role, kept: Sequence[str], reads: tuple[GroupKind, ...] = ()) -> None:
        """Start these controllers of a role."""
        chosen = tuple(replace(one, reads=(*one.reads, *reads)) for one in role.controllers if one.name in kept)
        self.world.start_role(replace(role, controllers=chosen))

    def lay(self, objects: Iterable[Obj]) -> None:
        """Create objects, or bring them to what they are now, as an administrator does. Raises ScenarioError (usage)
        for one that is refused."""
        mapper = Mapper(run_in_place(discover(), self.world.admin))
        for obj in objects:
            info = mapper.find(gvk_of(obj))
            if info is None:
                said = f"{obj['kind']} {name_of(obj)}: the rehearsed hub does not serve this kind"
                raise ScenarioError(said, usage=True)
            answer = self.world.admin.send(client.create(info, obj))
            if answer.status == 409 and obj["kind"] != "Namespace":
                there = self.world.admin.send(client.get(info, namespace_of(obj), name_of(obj))).or_raise()
                metadata = {**meta(obj), "resourceVersion": resource_version(there)}
                answer = self.world.admin.send(client.update(info, obj | {"metadata": metadata}))
            if not answer.ok and answer.status != 409:
                raise ScenarioError(f"{obj['kind']} {name_of(obj)}: {answer.obj.get('message')}", usage=True)

    def tell(self, obj: Obj, status: Obj) -> None:
        """Write the status of an object."""
        mapper = self.world.cluster_actor.loop.mapper
        info = mapper.find(gvk_of(obj)) or Mapper(run_in_place(discover(), self.world.admin)).find(gvk_of(obj))
        assert info is not None, "it has just been created"
        body = {"status": status}
        merge = client.PatchType.MERGE
        self.world.admin.send(
            client.patch(info, namespace_of(obj), name_of(obj), merge, body, subresource="status")
        ).or_raise()

    def cache(self, *kinds: GroupKind) -> Cache:
        return run_in_place(snapshot_of_cluster({}, kinds), self.world.admin).cache


class Placing(_Hub):
    """A hub that decides Placements, over all clusters of a fleet."""

    def _start(self) -> None:
        role = hub_role(HubSettings(self.namespace), objects=hub_objects())
        self.begin(replace(role, objects=tuple(one for one in role.objects if one["kind"] not in GUARDS)), DECIDING)

    def commit(self, given: ForTheHub) -> Placed:
        """Let what a repository has for the hub arrive, and return what is decided."""
        self.lay(one for one in given.objects if one.get("kind") not in (*ROOTS, *NOT_PLACING))
        self.world.driver.advance(SETTLE_S)
        seen = self.cache(CLUSTERS, DECISIONS)
        return Placed(tuple(seen.objects(CLUSTERS)), tuple(seen.objects(DECISIONS)))


class Making(_Hub):
    """A hub that makes Applications, for some of the clusters of a fleet."""

    def _start(self) -> None:
        settings = PullSettings(argo_namespace=self.namespace)
        more = (*hub_cluster_crds(), fleet_rollout_crd(), budget_crd())
        role = pull_role(settings, objects=(*pull_objects(settings), *more))
        self.begin(role, IMPORTING, (APPS,))
        self._names: frozenset[str] = frozenset()
        self._last: frozenset[tuple[str, str, str]] = frozenset()

    def commit(self, given: ForTheHub, placed: Placed, commits: Mapping[str, str]) -> HubSeen:
        """Let what a repository has for the hub arrive, and return what follows. ``placed``: what is decided;
        ``commits``: of repositories by address."""
        now_there = frozenset(_key(one) for one in given.objects)
        gone, self._last = self._last - now_there, now_there
        mine = {name_of(one) for one in self.cache(CLUSTERS).objects(CLUSTERS)}
        sets = [one for one in given.objects if one.get("kind") in ROOTS]
        self.lay(one for one in given.objects if one.get("kind") not in ROOTS)
        for page in placed.decisions:
            self._decide(page, mine)
        self.world.driver.advance(SETTLE_S)  # clusters are known before sets ask for them
        self.lay(sets)
        self._refresh()
        self.world.driver.advance(SETTLE_S)
        return self._seen(placed, commits, gone)

    def _decide(self, page: Obj, mine: Collection[str]) -> None:
        metadata = {"name": name_of(page), "namespace": namespace_of(page), "labels": labels_of(page)}
        bare = {"apiVersion": PLACEMENT_DECISION.api_version, "kind": PLACEMENT_DECISION.kind, "metadata": metadata}
        chosen = [one for one in dig(page, "status", "decisions") or () if one.get("clusterName") in mine]
        self.lay([bare])
        self.tell(bare, {"decisions": chosen})

    def _seen(self, placed: Placed, commits: Mapping[str, str], gone: Iterable[tuple[str, str, str]]) -> HubSeen:
        hub = self.cache(*READ, CONFIG_MAPS, DEPLOYMENTS)
        cache, now = order_cache(hub), self.world.clock.now()
        for kind in (CONFIG_MAPS, DEPLOYMENTS):
            for one in hub.objects(kind):
                cache.put(kind, one)
            cache.mark_synced(kind)
        for kind, objects in ((CLUSTERS, placed.clusters), (DECISIONS, placed.decisions)):
            for one in objects:
                cache.put(kind, one)
        settings = PullSettings(argo_namespace=self.namespace, revisions=Commits(commits, now))
        left = tuple(f"{kind} {name} is taken away, which is not rehearsed" for kind, _, name in sorted(gone))
        groups = tuple(_groups(cache, Reading(settings)))
        return HubSeen(now, groups, tuple(_problems(cache))[:MAX_PROBLEMS], (*left, *_notes(cache)))

    def _refresh(self) -> None:
        """Let sets ask their generators again, as the webhook of a repository does."""
        mark = {"metadata": {"annotations": {"argocd.argoproj.io/application-set-refresh": "true"}}}
        path = f"/apis/{APPS.group}/v1alpha1/applicationsets"
        for one in self.world.send("GET", path)["items"]:
            place = f"/apis/{APPS.group}/v1alpha1/namespaces/{namespace_of(one)}/applicationsets/{name_of(one)}"
            self.world.send("PATCH", place, mark, client.PatchType.MERGE)


def _key(obj: Obj) -> tuple[str, str, str]:
    return str(obj.get("kind")), namespace_of(obj), name_of(obj)


def _managed_cluster(name: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Obj:
    return {
        "apiVersion": MANAGED_CLUSTER.api_version,
        "kind": MANAGED_CLUSTER.kind,
        "metadata": {"name": name, "labels": {CLUSTER_SET_LABEL: DEFAULT, **labels}, "annotations": dict(annotations)},
        "spec": {"hubAcceptsClient": True},
    }


def _groups(cache: Cache, reading: Reading) -> Iterator[GroupSeen]:
    """Yield each group of carried Applications with its targets, whether or not its order is in force."""
    apps: dict[ObjectRef, list[Obj]] = {}
    for app in cache.objects(APPS):
        if names.is_carried(app):
            apps.setdefault(group_of(app), []).append(app)
    for ref in sorted(apps):
        seen = reading.group(cache, ref)
        if seen is not None and seen.force:
            yield replace(seen, rollout=seen.rollout or rollout_to_be(cache, ref))
        else:
            owner = cache.get(ObjectRef(*SETS, ref.namespace, ref.name))
            yield GroupSeen(ref, owner, None, targets=reading.targets(cache, ref, apps[ref]))


def _problems(cache: Cache) -> Iterator[str]:
    for one in cache.objects(SETS):
        failed = find_condition(dig(one, "status", "conditions") or (), "ErrorOccurred") or {}
        if failed.get("status") == "True":
            yield f"ApplicationSet {name_of(one)} makes nothing: {failed.get('message')}"
    for one in cache.objects(GITOPS_CLUSTERS):
        if dig(one, "status", "phase") == "failed":
            yield f"GitOpsCluster {name_of(one)} fails: {dig(one, 'status', 'message')}"


def _notes(cache: Cache) -> Iterator[str]:
    pushed = [one for one in cache.objects(APPS) if not names.is_carried(one)]
    if pushed:
        yield f"{len(pushed)} Applications that no cluster pulls are not rehearsed: {name_of(pushed[0])} is the first"
