"""The stage of the order over clusters: one hub and four clusters in virtual time, shared by all stories.

Each story has an ApplicationSet of its own, whose repository, Applications and roll-out have its name. What a story
changes in the fleet it takes back at its end, so that stories may run in any order, and each alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.fleet.test_pull_controllers import APPS, SETS
from tests.fleet.world import CLUSTERS, Fleet, Member, config_map

from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.base.clock import parse_time
from syncline.control.virtual import LoopActor
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.order.annotations import CLUSTER_WAVE, HEALTHY_FOR
from syncline.fleet.pull.order.release import is_application, manifests_of
from syncline.fleet.pull.order.revisions import Resolution, Tracked
from syncline.gitops.application.manifests import Manifests
from syncline.kube.client import Request, Response, Transport
from syncline.kube.objects import Obj, dig, name_of, namespace_of
from syncline.rehearsal.seams import Killed
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

WAVES: Mapping[str, int] = {"c1": 0, "c2": 1, "c3": 1, "c4": 2}
ALL_WORKS = "/apis/work.open-cluster-management.io/v1/manifestworks"
ROLLOUTS = "/apis/syncline.dev/v1alpha1/namespaces/argocd/fleetrollouts"
PARAMETERS = "/api/v1/namespaces/argocd/configmaps"
BUDGETS = "/apis/syncline.dev/v1alpha1/fleetdisruptionbudgets"
POLL_S = 180
NOT_WAITING = ("Permitted", "Progressing", "Proving", "Failed")


def sha(commit: str) -> str:
    return hashlib.sha1(commit.encode()).hexdigest()


class Git:
    """Repositories by address. A revision names a commit of its own name unless a branch was pushed; a commit whose
    name begins with ``bad`` cannot be rendered."""

    def __init__(self) -> None:
        self.branches: dict[tuple[str, str], str] = {}
        self.contents: dict[str, Callable[[str], list[Obj]]] = {}
        self.asked: list[str] = []
        """Revisions that the hub has looked for."""
        self._names: dict[str, str] = {}

    def named(self, url: str, revision: str) -> str:
        """Return the name of the commit that a revision, or a hash, stands for."""
        return self._names.get(revision) or self.branches.get((url, revision), revision)

    def resolve(self, tracked: Tracked, now: datetime, *, since: datetime | None, wanted: int) -> Resolution:
        self.asked.append(f"{tracked.url} {tracked.revision}")
        return Resolution(now, self._hash(self.named(tracked.url, tracked.revision)))

    def read(
        self, sources: tuple[Obj, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        url = str(sources[0]["repoURL"])
        commit = self.named(url, revisions[0])
        if commit.startswith("bad"):
            return Manifests((), (), (), now, error="the chart does not render")
        name = url.rpartition("/")[2]
        made = self.contents.get(url, lambda v: [config_map(name, v=v)])(commit)
        return Manifests((self._hash(commit),), tuple(made), ("Directory",), now)

    def rows(self, *_: Any) -> Any:
        raise AssertionError("a list generator asks nothing")

    def moment(self) -> int:
        return 0

    def _hash(self, commit: str) -> str:
        self._names[sha(commit)] = commit
        return sha(commit)


@dataclass(frozen=True, slots=True)
class Written:
    """A work that the hub has written: when, for which cluster and Application, at which commit."""

    at: datetime
    cluster: str
    application: str
    commit: str


@dataclass(slots=True)
class _Noting:
    """Notes what the pull model's controllers write, and ends them after a write that is asked for."""

    inner: Transport
    stage: Stage

    def send(self, request: Request) -> Response:
        answer = self.inner.send(request)
        if request.method in ("POST", "PUT", "PATCH") and answer.ok and "dryRun" not in request.query:
            self.stage.note(request, answer.obj)
        return answer


class Stage:
    """A hub and its clusters. ``written``: the works in the order in which they were written; ``statuses``: those of
    roll-outs with their names."""

    def __init__(self, clusters: Iterable[str] = WAVES) -> None:
        self.fleet, self.git = Fleet(), Git()
        self.written: list[Written] = []
        self.statuses: list[tuple[datetime, str, Obj]] = []
        self._deadly: Callable[[Request], bool] | None = None
        self.dead = False
        """The hub's controllers have ended."""
        self._settings = PullSettings(poll_s=POLL_S)
        self._pull: LoopActor | None = None
        self.start_pull()
        progressive = {"applicationsetcontroller.enable.progressive.syncs": "true"}
        self.fleet.hub.send("POST", PARAMETERS, config_map("argocd-cmd-params-cm", "argocd", **progressive))
        self.fleet.start_gitops(self.fleet.hub, self.git)
        for name in clusters:
            self.add(name)

    @property
    def now(self) -> datetime:
        return self.fleet.clock.now()

    # -- processes ---------------------------------------------------------------------------------------------------

    def start_pull(self) -> None:
        """Start the pull model's controllers with an empty memory."""
        self._stop_pull()
        role = pull_role(self._settings, reader=self.git, objects=tuple(pull_objects(self._settings)))
        self._pull = self.fleet.start_role(role, wrap=lambda inner: _Noting(inner, self))

    def _stop_pull(self) -> None:
        if self._pull is not None:
            self.fleet.time.actors.remove(self._pull)
        self._pull = None

    def die_after(self, write: Callable[[Request], bool]) -> None:
        """Let the hub's controllers end after the next write of that kind."""
        self._deadly = write

    def revive(self) -> None:
        """Start the hub's controllers again, with an empty memory."""
        self._deadly, self.dead = None, False
        self.fleet.start_hub()
        self.start_pull()

    def add(self, name: str, **how: Any) -> Member:
        """Add a cluster with its GitOps controllers and its agent."""
        member = self.fleet.add(name, **how)
        member.actors.append(self.fleet.start_gitops(member, self.git))
        return member

    def remove(self, name: str) -> None:
        """Take a cluster's processes away; its ManagedCluster is left to the caller."""
        self.fleet.stop_agent(name)
        for actor in self.fleet.members.pop(name).actors:
            self.fleet.time.actors.remove(actor)

    def note(self, request: Request, obj: Obj) -> None:
        if obj.get("kind") == "ManifestWork" and not request.path.endswith("/status"):
            app = next((one for one in manifests_of(obj) if is_application(one)), None)
            if app is not None:
                source = app["spec"]["source"]
                commit = self.git.named(source["repoURL"], source.get("targetRevision", ""))
                self.written.append(Written(self.now, namespace_of(obj), name_of(app), commit))
        if obj.get("kind") == "FleetRollout" and obj.get("status"):
            self.statuses.append((self.now, name_of(obj), obj["status"]))
        if self._deadly is not None and self._deadly(request):
            self._deadly = None
            raise Killed("pull")

    # -- time and people ---------------------------------------------------------------------------------------------

    def go(self, seconds: float) -> None:
        """Let time pass; the hub's controllers that die begin again at once."""
        end = self.now.timestamp() + seconds
        while (left := end - self.now.timestamp()) > 0:
            try:
                self.fleet.time.advance(left)
            except Killed:
                self.dead = True
                self.fleet.stop_hub()
                self._stop_pull()

    def go_to(self, moment: datetime) -> None:
        self.go((moment - self.now).total_seconds())

    @contextmanager
    def patched(self, path: str, patch: Obj, undo: Obj) -> Iterator[None]:
        """Change an object of the hub for the time of a story."""
        self.fleet.hub.send("PATCH", path, patch)
        try:
            yield
        finally:
            if not self.fleet.hub.absent(path.removesuffix("/status")):
                self.fleet.hub.send("PATCH", path, undo)

    def annotated(self, path: str, key: str, value: str) -> Any:
        """Annotate an object of the hub for the time of a story."""
        return self.patched(
            path, {"metadata": {"annotations": {key: value}}}, {"metadata": {"annotations": {key: None}}}
        )


@dataclass
class Story:
    """One ApplicationSet and its roll-out. ``waves``: by cluster; ``spec``: more of the set's spec."""

    stage: Stage
    name: str
    waves: dict[str, int] = field(default_factory=lambda: dict(WAVES))
    healthy_for: str = "5s"
    annotations: Mapping[str, str] = field(default_factory=dict)
    project: str = "default"
    spec: Mapping[str, Any] = field(default_factory=dict)
    policy: Mapping[str, Any] = field(default_factory=lambda: {"automated": {}})

    def __post_init__(self) -> None:
        self._from = len(self.stage.written), len(self.stage.statuses)

    @property
    def url(self) -> str:
        return f"https://git.test/{self.name}"

    @property
    def path(self) -> str:
        return f"{SETS}/{self.name}"

    def create(self, revision: str = "v1") -> None:
        """Make the set; its clusters get the revision as far as the order permits."""
        ordered = {CLUSTER_WAVE: "{{wave}}", HEALTHY_FOR: self.healthy_for} if self.healthy_for else {}
        annotations = {names.CLUSTER: "{{cluster}}", "argocd.argoproj.io/skip-reconcile": "true", **ordered}
        metadata = {
            "name": self.name + "-{{cluster}}",
            "labels": {names.PULL: "true", "wave": "{{wave}}"},
            "annotations": {**annotations, **self.annotations},
        }
        spec = {
            "project": self.project,
            "source": {"repoURL": self.url, "path": "a", "targetRevision": revision},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "syncPolicy": dict(self.policy),
        }
        made = {"generators": self.generators(), "template": {"metadata": metadata, "spec": spec}, **self.spec}
        kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": self.name}}
        self.stage.fleet.hub.send("POST", SETS, {**kind, "spec": made})

    def generators(self) -> list[Obj]:
        rows = [{"cluster": name, "wave": str(wave)} for name, wave in self.waves.items()]
        return [{"list": {"elements": rows}}]

    def done(self, revision: str = "v1", seconds: float = 600) -> Story:
        """Make the set, and let all clusters prove the revision."""
        self.create(revision)
        self.until("Done", seconds=seconds)
        return self

    def change(self, **spec: Any) -> None:
        """Change the spec of the set."""
        self.stage.fleet.hub.send("PATCH", self.path, {"spec": spec})

    def push(self, revision: str, seconds: float = 2) -> str:
        """Let the set name another revision; return the new release."""
        self.change(template={"spec": {"source": {"targetRevision": revision}}})
        self.stage.go(seconds)  # until the order has seen it
        return self.release

    def steer(self, **parts: Any) -> None:
        """Write what people decide about the roll-out; None takes it away."""
        self.stage.fleet.hub.send("PATCH", f"{ROLLOUTS}/{self.name}", {"spec": parts})

    def go(self, seconds: float) -> None:
        self.stage.go(seconds)

    def until(self, *phases: str, seconds: float = 600) -> Obj:
        """Let time pass until the roll-out is in one of these phases; return its status."""
        return self.until_true(lambda: self.phase in phases, seconds)

    def until_true(self, reached: Callable[[], bool], seconds: float = 600) -> Obj:
        end = self.stage.now.timestamp() + seconds
        while not reached():
            assert self.stage.now.timestamp() < end, f"after {seconds:g} s: {self.status}"
            self.stage.go(5)
        return self.status

    def delete(self) -> None:
        hub = self.stage.fleet.hub
        if not hub.absent(self.path):
            hub.send("DELETE", self.path)
        if not hub.absent(f"{ROLLOUTS}/{self.name}"):
            hub.send("DELETE", f"{ROLLOUTS}/{self.name}")
        self.stage.go(30)

    # -- what is seen ------------------------------------------------------------------------------------------------

    @property
    def rollout(self) -> Obj:
        path = f"{ROLLOUTS}/{self.name}"
        return {} if self.stage.fleet.hub.absent(path) else self.stage.fleet.hub.get(path)

    @property
    def status(self) -> Obj:
        return self.rollout.get("status") or {}

    @property
    def phase(self) -> str:
        return str(self.status.get("phase"))

    @property
    def release(self) -> str:
        return str(self.status.get("release"))

    def entry(self, cluster: str) -> Obj:
        """Return what the roll-out says of a cluster; empty: it is done."""
        found = (one for one in self.status.get("clusters") or () if one["cluster"] == cluster)
        return next(found, {})

    def why(self, cluster: str) -> str:
        return str(self.entry(cluster).get("why") or "")

    def ends(self, cluster: str) -> datetime:
        """Return the time until which a cluster waits, by its own words."""
        return parse_time(self.entry(cluster)["until"])

    def carried(self) -> dict[str, str]:
        """Return the commit that the work of each cluster carries."""
        found = {}
        for work in self.stage.fleet.hub.get(ALL_WORKS)["items"]:
            for app in manifests_of(work):
                if is_application(app) and name_of(app).startswith(f"{self.name}-c"):
                    revision = app["spec"]["source"]["targetRevision"]
                    found[namespace_of(work)] = self.stage.git.named(self.url, revision)
        return dict(sorted(found.items()))

    def running(self) -> dict[str, str]:
        """Return the commit that runs on each cluster."""
        path = f"/api/v1/namespaces/default/configmaps/{self.name}"
        there = {name: one for name, one in self.stage.fleet.members.items() if name in self.waves}
        return {name: str(one.get(path)["data"]["v"]) for name, one in there.items() if not one.absent(path)}

    def app(self, cluster: str) -> Obj:
        return self.stage.fleet.hub.get(f"{APPS.format('argocd')}/{self.name}-{cluster}")

    def written(self) -> list[Written]:
        """Return the works of the story, in the order in which they were written."""
        mine = self.stage.written[self._from[0] :]
        return [one for one in mine if one.application.startswith(f"{self.name}-c")]

    def set_revision(self, app: str, revision: str) -> None:
        """Let one Application name another revision."""
        body = {"spec": {"source": {"targetRevision": revision}}}
        self.stage.fleet.hub.send("PATCH", f"{APPS.format('argocd')}/{app}", body)
        self.stage.go(2)

    def begun(self, commit: str) -> dict[str, datetime]:
        """Return when the work of each cluster got a commit for the first time, in that order."""
        found: dict[str, datetime] = {}
        for one in self.written():
            if one.commit == commit:
                found.setdefault(one.cluster, one.at)
        return found

    def said(self) -> list[tuple[datetime, Obj]]:
        """Return the statuses that the roll-out has had, with their times."""
        return [(at, status) for at, name, status in self.stage.statuses[self._from[1] :] if name == self.name]

    def steps(self) -> dict[str, tuple[int, int]]:
        """Return done and total of each wave of the present status."""
        return {str(one["wave"]): (one["done"], one["total"]) for one in self.status.get("waves") or ()}


def check_words(story: Story) -> None:
    """Whatever happened: each cluster that is not done has said why, or was under way, in every status."""
    for at, status in story.said():
        for one in status.get("clusters") or ():
            assert one.get("why") or one["state"] in NOT_WAITING, f"{at}: {one}"
            assert one.get("since"), f"{at}: {one}"
        if status.get("phase") not in ("Done", "Unordered", "RolledBack"):
            assert status.get("message"), f"{at}: {status}"


def cluster_path(name: str) -> str:
    return f"{CLUSTERS}/{name}"


def condition_of(cluster: Obj, kind: str) -> Obj:
    return next((one for one in dig(cluster, "status", "conditions") or () if one["type"] == kind), {})
