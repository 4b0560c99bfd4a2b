"""A pull roll-out over clusters whose processes can die after any of their writes, with laws that hold at each request.

The hub has an ApplicationSet over a Placement; each cluster has its GitOps controllers and its agent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from tests.fleet.test_pull_whole import Rows
from tests.fleet.world import CLUSTERS, Fleet, config_map, managed_cluster
from tests.gitops.behaviours.sim import Source, sha

from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.cluster.storage.store import Stored
from syncline.control.virtual import LoopActor
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.names import Variant
from syncline.kube.client import Request, Response, Transport
from syncline.kube.objects import Obj, dig, finalizers, labels_of, name_of, namespace_of
from syncline.rehearsal.seams import Killed

GROUP = "cluster.open-cluster-management.io"
ARGO = "/apis/argoproj.io/v1alpha1/namespaces/argocd"
SETS, APPS = f"{ARGO}/applicationsets", f"{ARGO}/applications"
WORKS = "/apis/work.open-cluster-management.io/v1/manifestworks"
REPORTS = "/apis/syncline.dev/v1alpha1/applicationreports"
SET_REPORTS = "/apis/apps.open-cluster-management.io/v1alpha1/namespaces/argocd/multiclusterapplicationsetreports"
PLACEMENTS = f"/apis/{GROUP}/v1beta1/namespaces/argocd/placements"
INVENTORY = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"
MAP = "/api/v1/namespaces/default/configmaps/web"
SPARED = ("/leases", "/events", "selfsubject")
KEPT = ("/applications/", "/configmaps/web", "/manifestworks/", "/applicationreports/", "applicationsetreports/")
"""What nobody may delete while nothing says so."""
HUB, PULL, HUB_SETS = "hub", "pull", "sets"
ENDLESS = 100
_UID = re.compile(r"-[0-9a-f]{5}\b")

Lives = Callable[[], Iterator[int]]
"""After how many writes each life of a process ends."""


@dataclass(slots=True)
class Process:
    """A process of the fleet: its writes, and how it begins."""

    name: str
    begin: Callable[[Process], LoopActor | None]
    lives: Iterator[int]
    left: int = 0
    log: list[str] = field(default_factory=list)
    actor: LoopActor | None = None


class RollOut:
    """A hub and ``clusters``. ``deaths``: the lives of processes by name; who is not in it does not die."""

    def __init__(
        self,
        *clusters: str,
        variant: Variant = Variant.BASIC,
        deaths: dict[str, Lives] | None = None,
        spec: Obj | None = None,
    ) -> None:
        self._settings = PullSettings(variant)
        self._deaths = deaths or {}
        self.keeps = True
        """Whether nothing may be deleted now."""
        self.sources: dict[str, Source] = {}
        self.processes: dict[str, Process] = {}
        self.fleet = Fleet()
        self._run(HUB, self._begin_hub)
        self._run(PULL, self._begin_pull)
        self._run(HUB_SETS, lambda one: self.fleet.start_gitops(self.fleet.hub, Rows(), wrap=self._way(one)))
        for name in clusters:
            self.join(name)
        for path, body in _objects(spec or {}):
            self.do("POST", path, body)
        self.go(30)

    # -- processes ---------------------------------------------------------------------------------------------------

    def join(self, name: str, **how: Any) -> None:
        """Add a cluster with its GitOps controllers and its agent."""
        self.sources[name] = Source(*self.content(name, "1"))
        self.try_to(lambda: self.fleet.add(name, **how))
        while self.try_to(self.fleet.time.settle):
            pass  # an agent that begins has the rights of its cluster
        site = self.fleet.members[name]
        self._run(f"gitops/{name}", lambda one: self.fleet.start_gitops(site, self.sources[name], wrap=self._way(one)))
        self._made(f"own/{name}", self._begin_agent)
        at_hub = self._made(f"agent/{name}", self._begin_agent)
        self._begin(at_hub)

    def rejoin(self, name: str) -> None:
        """Let a cluster that was deleted on the hub join again under its name."""
        self.do("POST", CLUSTERS, managed_cluster(name))
        self._begin(self.processes[f"agent/{name}"])

    def restore(self, backup: tuple[int, list[Stored]]) -> None:
        """Put a hub in place of this one that begins with a backup."""
        for name in (HUB, PULL, HUB_SETS):
            self._end(self.processes[name])
        self.fleet.restore_hub(backup)
        for name in (PULL, HUB_SETS, *(f"agent/{one}" for one in self.fleet.members)):
            self._begin(self.processes[name])

    def _end(self, process: Process) -> None:
        if process.actor is not None:
            self.fleet.time.actors.remove(process.actor)
        process.actor = None

    def _made(self, name: str, begin: Callable[[Process], LoopActor | None]) -> Process:
        lives = self._deaths[name]() if name in self._deaths else iter(())
        made = self.processes[name] = Process(name, begin, lives)
        made.left = next(lives, 0)
        return made

    def _run(self, name: str, begin: Callable[[Process], LoopActor | None]) -> None:
        self._begin(self._made(name, begin))

    def _begin(self, process: Process) -> None:
        """Begin a process with an empty memory, and those that die meanwhile."""
        while True:
            self._end(process)
            before = len(self.fleet.time.actors)
            try:
                process.actor = process.begin(process)
                return
            except Killed as death:
                added = self.fleet.time.actors[before:]
                process.actor = added[0] if added and isinstance(added[0], LoopActor) else None
                process = self.processes[str(death)]

    def _begin_hub(self, process: Process) -> None:
        self.fleet.start_hub(self._way(process))

    def _begin_pull(self, process: Process) -> LoopActor:
        role = pull_role(self._settings, objects=tuple(pull_objects(self._settings)))
        return self.fleet.start_role(role, wrap=self._way(process))

    def _begin_agent(self, process: Process) -> None:
        name = process.name.partition("/")[2]
        at_hub, own = (self.processes[f"{part}/{name}"] for part in ("agent", "own"))
        self.fleet.start_agent(name, wrap_hub=self._way(at_hub), wrap_own=self._way(own))

    def _way(self, process: Process) -> Callable[[Transport], Transport]:
        return lambda inner: _Way(inner, process, self)

    def try_to(self, act: Callable[[], Any]) -> bool:
        """Act; return whether a process died of it, which begins again."""
        try:
            act()
        except Killed as death:
            self._begin(self.processes[str(death)])
            return True
        return False

    # -- time and people ---------------------------------------------------------------------------------------------

    def do(self, verb: str, path: str, body: Any = None) -> None:
        """What a person does on the hub, and what follows from it at once."""
        self.try_to(lambda: self.fleet.hub.send(verb, path, body))
        while self.try_to(self.fleet.time.settle):
            pass

    def go(self, seconds: float) -> None:
        """Let time pass; who dies begins again at once."""
        clock, deaths = self.fleet.clock, 0
        end = clock.now() + timedelta(seconds=seconds)
        while (left := (end - clock.now()).total_seconds()) > 0:
            before = clock.now()
            self.try_to(lambda left=left: self.fleet.time.advance(left))  # type: ignore[misc]
            deaths = deaths + 1 if clock.now() == before else 0
            assert deaths < ENDLESS, f"{deaths} deaths at {before}, and no end: {self.last_writes()}"

    def content(self, name: str, v: str) -> list[Obj]:
        """What a cluster runs in a version."""
        return [config_map("web", cluster=name, v=v)]

    def last_writes(self) -> dict[str, list[str]]:
        return {name: one.log[-3:] for name, one in self.processes.items()}

    def roll_out(self, v: str) -> None:
        """Commit another version and let the ApplicationSet name it."""
        for name, source in self.sources.items():
            source.commit(*self.content(name, v))
        last = max(len(one.commits) for one in self.sources.values())
        patch = [{"op": "replace", "path": "/spec/template/spec/source/targetRevision", "value": sha(last - 1)}]
        self.try_to(lambda: self._patch_set(patch))

    def _patch_set(self, patch: Any) -> None:
        headers = {"content-type": "application/json-patch+json"}
        self.fleet.hub.admin.send(Request("PATCH", f"{SETS}/set", headers=headers, body=patch)).or_raise()
        self.fleet.time.settle()

    # -- what is seen ------------------------------------------------------------------------------------------------

    def on_cluster(self, name: str) -> str:
        """Return the version that runs on a cluster; empty: none."""
        answer = self.fleet.members[name].admin.send(Request("GET", MAP))
        return str(answer.obj["data"]["v"]) if answer.ok else ""

    def versions(self) -> dict[str, str]:
        return {name: self.on_cluster(name) for name in self.fleet.members}

    def items(self, path: str) -> list[Obj]:
        found: list[Obj] = self.fleet.hub.get(path)["items"]
        return found

    def facts(self) -> Any:
        """What must not depend on deaths: no times, no uids."""
        apps = [(name_of(one), finalizers(one), _of_app(one)) for one in self.items(APPS)]
        works = sorted((namespace_of(one), _bare(name_of(one)), _of_work(one)) for one in self.items(WORKS))
        reports = sorted((namespace_of(one), _bare(name_of(one)), _of_report(one)) for one in self.items(REPORTS))
        sets = [(name_of(one), _bare(str(_timeless(one["statuses"])))) for one in self.items(SET_REPORTS)]
        secrets = sorted(name_of(one) for one in self.items("/api/v1/namespaces/argocd/secrets"))
        inventory = [(name, len(one.get(INVENTORY)["items"])) for name, one in self.fleet.members.items()]
        return apps, works, reports, sets, secrets, inventory, self.versions()


@dataclass(slots=True)
class _Way:
    """The way of a process to an API: checks the laws, and ends the process after its write."""

    inner: Transport
    process: Process
    run: RollOut

    def send(self, request: Request) -> Response:
        if request.method == "DELETE" and self.run.keeps:
            wrong = any(part in request.path for part in KEPT)
            assert not wrong, f"{self.process.name}: {request.describe()}, where nothing is to be deleted"
        answer = self.inner.send(request)
        process = self.process
        writes = request.method != "GET" and "dryRun" not in request.query
        if writes and not any(part in request.path for part in SPARED):
            process.log.append(request.describe())
            if process.left:
                process.left -= 1
                if not process.left:
                    process.left = next(process.lives, 0)
                    raise Killed(process.name)
        return answer


def _bare(text: str) -> str:
    return _UID.sub("", text)


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _timeless(one) for key, one in sorted(value.items()) if not key.endswith(("At", "Time"))}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


def _of_app(app: Obj) -> Any:
    status = app.get("status") or {}
    return [dig(status, *path) for path in (("health", "status"), ("sync",), ("operationState", "phase"))], str(
        _timeless(status.get("resources"))
    )


def _of_work(work: Obj) -> Any:
    conditions = sorted((one["type"], one["status"], one["reason"]) for one in dig(work, "status", "conditions") or ())
    manifests = dig(work, "spec", "workload", "manifests") or ()
    revisions = [dig(one, "spec", "source", "targetRevision") for one in manifests]
    return conditions, revisions, sorted(labels_of(work).items())


def _of_report(report: Obj) -> str:
    return str(_timeless(report["report"]))


# -- objects -----------------------------------------------------------------------------------------------------------


def _objects(spec: Obj) -> list[tuple[str, Obj]]:
    spaced = {"namespace": "argocd"}
    binding = {"apiVersion": f"{GROUP}/v1beta2", "kind": "ManagedClusterSetBinding"}
    placement = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Placement", "metadata": {"name": "p", **spaced}}
    tolerations = [{"key": f"{GROUP}/{one}", "operator": "Exists"} for one in ("unreachable", "unavailable")]
    wanted = [{"requiredClusterSelector": {"labelSelector": {"matchExpressions": [UNMARKED]}}}]
    data = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "placementdecisions",
        "statusListKey": "decisions",
        "matchKey": "clusterName",
    }
    generator = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ocm-placement-generator"}, "data": data}
    return [
        (
            f"/apis/{GROUP}/v1beta2/namespaces/argocd/managedclustersetbindings",
            {**binding, "metadata": {"name": "global", **spaced}, "spec": {"clusterSet": "global"}},
        ),
        ("/api/v1/namespaces/argocd/configmaps", generator),
        (PLACEMENTS, {**placement, "spec": {"tolerations": tolerations, "predicates": wanted}}),
        (SETS, _set(spec)),
    ]


UNMARKED = {"key": "left-out", "operator": "DoesNotExist"}
"""Clusters with this label are not in the Placement."""


def _set(spec: Obj) -> Obj:
    annotations = {names.CLUSTER: "{{name}}", "argocd.argoproj.io/skip-reconcile": "true"}
    metadata = {"name": "web-{{name}}", "labels": {names.PULL: "true"}, "annotations": annotations}
    application = {
        "project": "default",
        "source": {"repoURL": "https://git.test/a", "path": "a", "targetRevision": sha(0)},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        "syncPolicy": {"automated": {}},
    }
    selector = {"matchLabels": {f"{GROUP}/placement": "p"}}
    generator = {"configMapRef": "ocm-placement-generator", "labelSelector": selector, "requeueAfterSeconds": 30}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": "set"},
        "spec": {
            "generators": [{"clusterDecisionResource": generator}],
            "template": {"metadata": metadata, "spec": application},
            **spec,
        },
    }


def cluster_path(name: str) -> str:
    return f"{CLUSTERS}/{name}"
