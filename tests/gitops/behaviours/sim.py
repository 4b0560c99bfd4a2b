"""One Application, a source whose commits are lists of objects, and a virtual cluster: the stage of the behaviours."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from syncline.gitops.application.manifests import Manifests
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, dig, name_of
from syncline.rehearsal.world import World
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
PROJECTS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"
PREFIX = "argocd.argoproj.io/"
ENDED = ("Succeeded", "Failed", "Error")


def sha(commit: int) -> str:
    return hashlib.sha1(str(commit).encode()).hexdigest()


class Source:
    """A repository with one branch; a commit is the list of its objects."""

    def __init__(self, *objects: Obj) -> None:
        self.commits: list[tuple[Obj, ...]] = [objects]
        self.fails = ""
        self.asked: list[str] = []
        """Addresses that were read, in order."""

    @property
    def head(self) -> str:
        return sha(len(self.commits) - 1)

    def commit(self, *objects: Obj) -> str:
        self.commits.append(objects)
        return self.head

    def read(
        self, sources: tuple[Any, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        self.asked += [str(one["repoURL"]) for one in sources]
        if self.fails:
            return Manifests((), (), (), now, error=self.fails)
        by_sha = {sha(n): objects for n, objects in enumerate(self.commits)}
        found = tuple(r if r in by_sha else self.head for r in revisions)
        objects = tuple(obj for revision in found for obj in by_sha[revision])
        return Manifests(found, objects, ("Directory",) * len(found), now)


class Simulation:
    """The world with an Application ``app`` of the objects; nothing is synced yet unless ``automated``."""

    def __init__(
        self, *objects: Obj, nodes: int = 1, settings: AppSettings | None = None, spec: Obj | None = None, **policy: Any
    ) -> None:
        self.source = Source(*objects)
        self.world = World(self.source, nodes=nodes, settings=settings or AppSettings())
        self.driver = self.world.driver
        self.driver.settle()
        self.create("app", spec, **policy)

    def create(self, name: str, spec: Obj | None = None, **policy: Any) -> None:
        full: Obj = {
            "project": "default",
            "source": {"repoURL": "https://example.com/r.git", "path": ".", "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "syncPolicy": policy,
        }
        app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": name}}
        self.world.send("POST", APPS, app | {"spec": full | (spec or {})})
        self.driver.settle()

    def app(self, name: str = "app") -> Obj:
        found: Obj = self.world.send("GET", f"{APPS}/{name}")
        return found

    def state(self, name: str = "app") -> Obj:
        found: Obj = dig(self.app(name), "status", "operationState", default={})
        return found

    def patch(self, path: str, body: Obj) -> Obj:
        found: Obj = self.world.send("PATCH", path, body, MERGE)
        return found

    def begin(self, sync: Obj | None = None, name: str = "app", **operation: Any) -> None:
        """Write ``.operation`` as a person with kubectl does."""
        self.patch(f"{APPS}/{name}", {"operation": {"sync": sync or {}, **operation}})

    def ended(self, name: str = "app") -> bool:
        return not self.app(name).get("operation") and self.state(name).get("phase") in ENDED

    def finish(self, name: str = "app", limit_s: float = 3600) -> Obj:
        self.driver.until(lambda: self.ended(name), limit_s)
        return self.state(name)

    def sync(self, sync: Obj | None = None, name: str = "app", limit_s: float = 3600, **operation: Any) -> Obj:
        self.begin(sync, name, **operation)
        return self.finish(name, limit_s)

    def refresh(self, name: str = "app", kind: str = "normal") -> None:
        self.patch(f"{APPS}/{name}", {"metadata": {"annotations": {PREFIX + "refresh": kind}}})
        self.driver.settle()

    def get(self, path: str) -> Obj | None:
        try:
            found: Obj = self.world.send("GET", path)
        except ApiError as error:
            if error.code != 404:
                raise
            return None
        return found

    def names(self, path: str) -> list[str]:
        return sorted(name_of(obj) for obj in self.world.send("GET", path)["items"])

    def maps(self) -> list[str]:
        return [name for name in self.names(MAPS) if name != "kube-root-ca.crt"]

    def done(self, verb: str) -> list[str]:
        """Names of what the Application controller did, in order: journal lines that begin with ``verb``."""
        return [e.what.split("/")[-1] for e in self.world.journal if e.what.startswith(verb + " ")]

    def conditions(self, name: str = "app") -> dict[str, str]:
        found = dig(self.app(name), "status", "conditions", default=[])
        return {c["type"]: c["message"] for c in found}

    def sync_status(self, name: str = "app") -> str:
        return str(dig(self.app(name), "status", "sync", "status", default=""))


def rows(state: Obj) -> dict[str, Obj]:
    """Result rows by Kind/name; a hook of several phases by Kind/name of its last."""
    return {f"{row['kind']}/{row['name']}": row for row in dig(state, "syncResult", "resources", default=[])}


def annotated(obj: Obj, **annotations: str) -> Obj:
    """The object with ``argocd.argoproj.io/`` annotations; underscores stand for dashes."""
    meta = obj["metadata"]
    named = {PREFIX + key.replace("_", "-"): value for key, value in annotations.items()}
    return obj | {"metadata": meta | {"annotations": meta.get("annotations", {}) | named}}


def config(name: str, value: str = "v", **annotations: str) -> Obj:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": value}}
    return annotated(made, **annotations)


def job(
    name: str, code: int = 0, seconds: int = 2, *, generate: bool = False, spec: Obj | None = None, **a: str
) -> Obj:
    """A Job whose container runs ``seconds`` and ends with ``code``."""
    container = {"name": "c", "image": "busybox:1", "command": ["sleep", str(seconds)]}
    template = {
        "metadata": {"annotations": {"syncline.dev/exit-code": str(code)}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    meta = {"generateName" if generate else "name": name}
    body = {"backoffLimit": 0, "template": template} | (spec or {})
    return annotated({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": body}, **a)


def deployment(name: str, image: str = "web:1", spec: Obj | None = None, pod: Obj | None = None, **a: str) -> Obj:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "c", "image": image}]} | (pod or {}),
    }
    body = {"selector": {"matchLabels": {"app": name}}, "template": template} | (spec or {})
    return annotated({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body}, **a)


NOWHERE = {"nodeSelector": {"disk": "nowhere"}}
"""Pods that no node takes: the Deployment stays Progressing."""
