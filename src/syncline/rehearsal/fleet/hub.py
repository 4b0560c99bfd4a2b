"""The hub of a rehearsed fleet: which Applications each cluster gets, and in which order. Entry point: :class:`Hub`.

Placements, GitOpsClusters and ApplicationSets are carried out by their own controllers on an embedded API in virtual
time. Works are not: what a cluster gets, and when, is read by the functions of the controllers that would write them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType

from syncline.assembly.fleet.hub import HubSettings, hub_role
from syncline.assembly.fleet.objects import hub_objects
from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.assembly.fleet.webhooks import INSIDE, admit_inside
from syncline.assembly.inspection.order import READ, order_cache, rollout_to_be
from syncline.assembly.inspection.snapshot import snapshot_of_cluster
from syncline.control.cache import Cache
from syncline.control.executor import run_in_place
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.registration.leases import AVAILABLE
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.observe import APPS, CONFIG_MAPS, DEPLOYMENTS, GITOPS_CLUSTERS, SETS
from syncline.fleet.pull.order.groups import group_of
from syncline.fleet.pull.order.model import GroupSeen
from syncline.fleet.pull.order.observe import Reading
from syncline.fleet.pull.order.revisions import Looks, Resolution, RevisionStore, Tracked
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube import client
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import Obj, ObjectRef, dig, gvk_of, meta, name_of, namespace_of, resource_version
from syncline.rehearsal.fleet.given import FleetWorld
from syncline.rehearsal.fleet.hubobjects import ForTheHub
from syncline.rehearsal.playing import POLL_S, Reader
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.world import World

IMPORTING = ("pull-cluster-secret", "pull-import", "gitops-cluster")
"""The controllers of the pull model that make clusters known to ApplicationSets."""
LEASE_S = 86_400
"""Clusters of a rehearsal answer for longer than it lasts."""
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


class Commits(RevisionStore):
    """What revisions name: each address of the rehearsed repository the commit, any other revision itself."""

    def __init__(self, commits: Mapping[str, str], now: datetime) -> None:
        super().__init__()
        self._commits, self._now = commits, now

    def looks(self, tracked: Iterable[Tracked]) -> Looks:
        named = {one: self._commits.get(one.url) or one.revision or "HEAD" for one in tracked}
        return Looks(MappingProxyType({one: Resolution(self._now, commit) for one, commit in named.items()}), {})


class Hub:
    """A hub with the clusters of a fleet, all joined and available."""

    def __init__(self, fleet: FleetWorld, given: ForTheHub, reader: Reader, *, seed: int = 1) -> None:
        self._fleet, self._given, self.namespace = fleet, given, given.namespace
        self.world = World(reader, seed=seed, nodes=0, settings=AppSettings(given.namespace, poll_s=POLL_S))
        settings, pulling = HubSettings(given.namespace), PullSettings(argo_namespace=given.namespace)
        admit_inside(self.world.core, settings)
        self.world.start_role(hub_role(settings, objects=hub_objects(INSIDE), reach=lambda: INSIDE))
        role = pull_role(pulling, objects=tuple(pull_objects(pulling)))
        kept = tuple(replace(one, reads=(*one.reads, APPS)) for one in role.controllers if one.name in IMPORTING)
        self.world.start_role(replace(role, controllers=kept))
        self._join()

    def _join(self) -> None:
        groups = self._fleet.clusters()
        self.lay([_managed_cluster(name, group.labels, group.annotations) for name, group in groups.items()])
        self.world.driver.settle()
        for name in groups:
            path = f"/apis/{MANAGED_CLUSTER.api_version}/managedclusters/{name}"
            there = self.world.send("GET", path)
            said = {"type": AVAILABLE, "status": "True", "reason": "ManagedClusterAvailable", "message": "it answers"}
            found = [*dig(there, "status", "conditions", default=[]), said | {"lastTransitionTime": _joined(there)}]
            self.world.send("PUT", f"{path}/status", {**there, "status": {"conditions": found}})
        self.world.driver.settle()

    def lay(self, objects: Sequence[Obj]) -> None:
        """Create objects, or bring them to what they are now, as an administrator does. Raises ScenarioError (usage)
        for one that is refused."""
        mapper = Mapper(run_in_place(discover(), self.world.admin))
        for obj in objects:
            info = mapper.find(gvk_of(obj))
            if info is None:
                raise ScenarioError(
                    f"{obj['kind']} {name_of(obj)}: the rehearsed hub does not serve this kind", usage=True
                )
            answer = self.world.admin.send(client.create(info, obj))
            if answer.status == 409 and obj["kind"] != "Namespace":
                there = self.world.admin.send(client.get(info, namespace_of(obj), name_of(obj))).or_raise()
                metadata = {**meta(obj), "resourceVersion": resource_version(there)}
                answer = self.world.admin.send(client.update(info, obj | {"metadata": metadata}))
            if not answer.ok and answer.status != 409:
                raise ScenarioError(f"{obj['kind']} {name_of(obj)}: {answer.obj.get('message')}", usage=True)

    def commit(self, given: ForTheHub, commits: Mapping[str, str]) -> HubSeen:
        """Let what a repository has for the hub arrive, and return what follows. ``commits``: by address."""
        gone = {_key(one) for one in self._given.objects} - {_key(one) for one in given.objects}
        self._given = given
        self.lay(given.objects)
        self._refresh()
        self.world.driver.advance(SETTLE_S)
        kinds = {*READ, CONFIG_MAPS, DEPLOYMENTS}
        hub = run_in_place(snapshot_of_cluster({}, kinds), self.world.admin).cache
        cache, now = order_cache(hub), self.world.clock.now()
        for kind in (CONFIG_MAPS, DEPLOYMENTS):
            for one in hub.objects(kind):
                cache.put(kind, one)
            cache.mark_synced(kind)
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
        "metadata": {"name": name, "labels": dict(labels), "annotations": dict(annotations)},
        "spec": {"hubAcceptsClient": True, "leaseDurationSeconds": LEASE_S},
    }


def _joined(cluster: Obj) -> str:
    return str(meta(cluster).get("creationTimestamp"))


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
