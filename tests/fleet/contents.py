"""The stage of rendered content in virtual time: a hub that renders, and clusters that reach no repository."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.fleet.test_pull_controllers import APPS, application
from tests.fleet.world import Fleet, Wrap
from tests.gitops.behaviours.sim import Source

from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.base.entropy import Entropy
from syncline.control.virtual import LoopActor
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.order.revisions import Resolution, Tracked
from syncline.gitops.application.manifests import Manifests, SourceReader
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import Unavailable
from syncline.kube.kinds.content import AGENT_NAMESPACE, KEY_SECRET
from syncline.kube.objects import Obj, dig, name_of

OURS = "/apis/syncline.dev/v1alpha1/namespaces/{}"
CHUNKS, CONTENTS = OURS + "/contentchunks", OURS + "/applicationcontents"
MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
PASSWORD = "correct-horse-battery-staple"
KEY = f"/api/v1/namespaces/{AGENT_NAMESPACE}/secrets/{KEY_SECRET}"
PROJECTS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects"
PERMITS = {"sourceRepos": ["https://git.test/*"], "destinations": [{"server": "*", "namespace": "*"}]}
APP = f"{APPS.format('argocd')}/web"


def secret(name: str = "db", password: str = PASSWORD) -> Obj:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": password}}


@dataclass
class Dying:
    """A connection of an agent that dies after so many writes of content, at either end. ``left``: shared by both."""

    inner: Transport
    left: list[int]

    def send(self, request: Request) -> Response:
        if not self.left[0]:
            return Response.refused(Unavailable("killed"))
        answer = self.inner.send(request)
        if request.method != "GET" and ("contentchunks" in request.path or "applicationcontents" in request.path):
            self.left[0] -= 1
        return answer


class Branch(Source):
    """A repository whose branch the hub can resolve, too; as the reader of an order."""

    lost: frozenset[str] = frozenset()
    """Commits that can't be rendered any more."""

    def resolve(self, tracked: Tracked, now: datetime, *, since: datetime | None, wanted: int) -> Resolution:
        return Resolution(now, error=self.fails) if self.fails else Resolution(now, self.head)

    def read(self, sources: Any, revisions: tuple[str, ...], now: datetime, *context: Any) -> Manifests:
        if gone := self.lost & set(revisions):
            return Manifests((), (), (), now, error=f"commit {min(gone)} is not in the repository")
        return super().read(sources, revisions, now, *context)

    def rows(self, *_: Any) -> Any:
        raise AssertionError("a list generator asks nothing")

    def moment(self) -> int:
        return 0


class Scene:
    """A hub that renders ``source``, and clusters that reach no repository. ``ordered``: the hub resolves branches, and
    runs the ApplicationSets."""

    def __init__(
        self,
        *objects: Obj,
        clusters: tuple[str, ...] = ("c1",),
        source: SourceReader | None = None,
        variant: Variant | None = None,
        ordered: bool = False,
    ) -> None:
        self.source = Branch(*objects)
        self.reader = source or self.source
        self.fleet = Fleet()
        self.ordered = ordered
        self.settings = PullSettings(variant, poll_s=120.0)
        self.objects = tuple(pull_objects(self.settings))
        self.pull = self._pull()
        project = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"}}
        self.fleet.hub.send("POST", PROJECTS, {**project, "spec": PERMITS})
        if ordered:
            self.fleet.start_gitops(self.fleet.hub, self.source)
        self.gitops: dict[str, LoopActor] = {}
        for name in clusters:
            self.fleet.add(name)
            self.start_gitops(name)
        self.fleet.time.advance(20)

    def start_gitops(self, name: str) -> None:
        """Start the GitOps controllers of a cluster, with an empty memory if they ran before."""
        if name in self.gitops:
            self.fleet.time.actors.remove(self.gitops[name])
        away = Source()
        away.fails = "no route to the repository"
        self.gitops[name] = self.fleet.start_gitops(self.fleet.members[name], away)

    def _pull(self, wrap: Wrap | None = None) -> LoopActor:
        resolves = self.source if self.ordered else None
        role = pull_role(self.settings, reader=resolves, renderer=self.reader, objects=self.objects, entropy=Entropy(7))
        return self.fleet.start_role(role, wrap=wrap)

    def restart_pull(self, wrap: Wrap | None = None) -> None:
        if self.pull in self.fleet.time.actors:
            self.fleet.time.actors.remove(self.pull)
        self.pull = self._pull(wrap)

    def send(self, name: str = "web", cluster: str = "c1", **spec: Any) -> None:
        made = application(name, cluster)
        made["metadata"]["annotations"]["syncline.dev/content"] = "agent"
        made["spec"] |= {"syncPolicy": {"automated": {"prune": True}}, **spec}
        made["spec"]["destination"] = {"name": cluster, "namespace": "default"}
        made["spec"]["source"].setdefault("targetRevision", "main")
        self.fleet.hub.send("POST", APPS.format("argocd"), made)
        self.fleet.time.advance(60)

    def refresh(self) -> None:
        self.fleet.hub.send("PATCH", APP, {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}})
        self.fleet.time.advance(60)

    def spoke(self, path: str, cluster: str = "c1") -> Obj:
        return self.fleet.members[cluster].get(path)

    def listed(self, path: str, where: str = "c1") -> list[Obj]:
        found: list[Obj] = self.fleet.hub.get(path.format(where))["items"]
        return found

    def there(self, path: str) -> list[str]:
        return [name_of(one) for one in self.spoke(path.format(AGENT_NAMESPACE))["items"]]

    def maps(self) -> list[str]:
        return [name for name in self.there(MAPS) if name != "kube-root-ca.crt"]

    def conditions(self) -> dict[str, str]:
        found = dig(self.fleet.hub.get(APP), "status", "conditions") or ()
        return {one["type"]: one["message"] for one in found}

    def here(self) -> Obj:
        return self.spoke(APP)
