"""ApplicationSets with all controllers in virtual time: a repository of directories, and a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from tests.appset.rounds import CONTROL
from tests.gitops.behaviours.sim import MERGE, config, sha

from syncline.appset.questions import GitPaths, Question, Value
from syncline.base.secret import Secret
from syncline.gitops.application.manifests import Manifests
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, dig, name_of
from syncline.rehearsal.world import World
from syncline.sources.errors import SourceError
from syncline.sources.providers.model import SecretReference
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

ARGO = f"/apis/argoproj.io/v1alpha1/namespaces/{CONTROL}"
SETS, APPS = f"{ARGO}/applicationsets", f"{ARGO}/applications"
MAPS = f"/api/v1/namespaces/{CONTROL}/configmaps"


class Repository:
    """Directories with a ConfigMap each, named as the directory. ``commit`` changes what all of them hold."""

    def __init__(self, *directories: str) -> None:
        self.directories = directories
        self.commit = 1
        self.broken = ""
        """Why questions of generators fail."""
        self.questions = 0

    def read(
        self, sources: tuple[Any, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        made = [config(str(one["path"]), str(self.commit)) for one in sources]
        return Manifests(tuple(sha(self.commit) for _ in sources), tuple(made), ("Directory",) * len(made), now)

    def moment(self) -> int:
        return 0

    def rows(
        self,
        question: Question,
        secrets: Mapping[SecretReference, Secret],
        now: datetime,
        *,
        since: datetime | None,
        wanted: int,
    ) -> Value:
        self.questions += 1
        if self.broken:
            raise SourceError("https://example.com/r.git", self.broken)
        return GitPaths(sha(self.commit), self.directories)


class Died(BaseException):
    """The process is gone: nothing in it gets to see this."""


class Dying:
    """A transport that takes the process with it after ``last`` requests that change something; counts them."""

    def __init__(self, inner: Transport, last: int, part: str = "") -> None:
        self._inner, self.left, self.count, self._part = inner, last, 0, part
        self.log: list[str] = []

    def send(self, request: Request) -> Response:
        answer = self._inner.send(request)
        if request.method != "GET" and self._part in request.path:
            self.count += 1
            self.log.append(request.describe())
            if self.count == self.left:
                raise Died
        return answer


class Stage:
    """A world with the settings of the controller of sets."""

    def __init__(self, repository: Repository, **settings: str) -> None:
        self.repository = repository
        self.world = World(repository, settings=AppSettings())
        self.driver = self.world.driver
        self.driver.settle()
        if settings:
            data = {f"applicationsetcontroller.{key.replace('_', '.')}": value for key, value in settings.items()}
            metadata = {"name": "argocd-cmd-params-cm", "namespace": CONTROL}
            self.world.send("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
            self.driver.settle()

    def create(self, appset: Obj) -> None:
        metadata = {key: value for key, value in appset["metadata"].items() if key != "uid"}
        self.world.send("POST", SETS, {**appset, "metadata": metadata})
        self.driver.settle()

    def set(self, name: str = "set") -> Obj:
        found: Obj = self.world.send("GET", f"{SETS}/{name}")
        return found

    def change(self, body: Obj, name: str = "set") -> None:
        self.world.send("PATCH", f"{SETS}/{name}", body, MERGE)
        self.driver.settle()

    def delete(self, name: str = "set") -> None:
        self.world.send("DELETE", f"{SETS}/{name}")
        self.driver.settle()

    def apps(self) -> dict[str, Obj]:
        found = self.world.send("GET", APPS)
        return {name_of(one): one for one in found["items"]}

    def get(self, path: str) -> Obj | None:
        try:
            found: Obj = self.world.send("GET", path)
        except ApiError as error:
            if error.code != 404:
                raise
            return None
        return found

    def names(self, path: str) -> list[str]:
        return sorted(name_of(one) for one in self.world.send("GET", path)["items"])

    def condition(self, kind: str) -> Obj:
        found = dig(self.set(), "status", "conditions", default=[])
        return next((one for one in found if one["type"] == kind), {})

    def survive(self, act: Callable[[], Any], last: int, wait_s: float, part: str = "") -> Dying:
        """Do something and let time pass, with controllers that die once after ``last`` writes and come back."""
        seams: list[Dying] = []

        def wrap(inner: Transport) -> Transport:
            seams.append(Dying(inner, last, part))
            return seams[-1]

        self.world.start_gitops(wrap)
        self.driver.settle()
        done = False
        try:
            act()
            done = True
            self.driver.advance(wait_s)
        except Died:
            self.world.start_gitops()
            if not done:
                self.driver.settle()
            self.driver.advance(wait_s)
        return seams[0]
