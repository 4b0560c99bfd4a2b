"""The stage of installed patterns: a virtual cluster, a repository as a dictionary, and the role that installs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from syncline.gitops.application.manifests import Manifests
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, dig, name_of
from syncline.patterns.installing.checkout import Checkout
from syncline.patterns.installing.reading import Found, Wanted
from syncline.rehearsal.world import World
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

REPO = "https://git.example.com/org/mypattern"
ORIGIN = "https://git.example.com/upstream/mypattern"
PATTERNS = "/apis/gitops.hybrid-cloud-patterns.io/v1alpha1/namespaces/openshift-operators/patterns"
ARGOCDS = "/apis/argoproj.io/v1beta1/namespaces/{}/argocds"
APPS = "/apis/argoproj.io/v1alpha1/namespaces/{}/applications"
MERGE = "application/merge-patch+json"
FILES = {"values-global.yaml": "global: {pattern: mypattern}\n", "values-hub.yaml": "clusterGroup: {name: hub}\n"}


class Repositories:
    """What hosts serve: files by address, and the objects that each address renders to."""

    def __init__(self) -> None:
        self.files: dict[str, Mapping[str, str]] = {REPO: FILES}
        self.objects: dict[str, tuple[Obj, ...]] = {}
        self.fails = ""

    def checkout(self, wanted: Wanted, now: datetime) -> Found:
        if self.fails or wanted.url not in self.files:
            return Found(now, error=self.fails or f"{wanted.url}: not found")
        files = {path: text.encode() for path, text in self.files[wanted.url].items()}
        return Found(now, hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest(), checkout=Checkout.of(files))

    def read(
        self, sources: tuple[Any, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        objects = tuple(obj for one in sources for obj in self.objects.get(str(one["repoURL"]), ()))
        if any("DeleteChildApps" in str(one.get("helm")) for one in sources):  # as the chart
            objects = tuple(obj for obj in objects if obj["kind"] != "Application")
        commit = hashlib.sha1(repr(objects).encode()).hexdigest()
        return Manifests((commit,) * len(revisions), objects, ("Directory",) * len(revisions), now)


class Installed:
    """A world in which the role of patterns runs."""

    def __init__(self, *, openshift: bool = False) -> None:
        self.repositories = Repositories()
        self.world = World(self.repositories, settings=AppSettings())
        self.driver = self.world.driver
        self.driver.settle()
        self.start()
        self.driver.advance(5)
        if openshift:
            self.make_openshift()

    def start(self) -> None:
        self.world.start_patterns(self.repositories)

    def make_openshift(self) -> None:
        config = "/apis/config.openshift.io/v1"
        made: tuple[tuple[str, str, str, Obj], ...] = (
            ("clusterversions", "ClusterVersion", "version", {"clusterID": "id-1"}),
            ("infrastructures", "Infrastructure", "cluster", {"platformSpec": {"type": "AWS"}}),
            ("ingresses", "Ingress", "cluster", {"domain": "apps.hub.example.com"}),
        )
        for plural, kind, name, spec in made:
            body = {"apiVersion": "config.openshift.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
            self.send("POST", f"{config}/{plural}", body)
        status = {"status": {"desired": {"version": "4.16.3"}, "history": []}}
        self.patch(f"{config}/clusterversions/version/status", status)

    def send(self, method: str, path: str, body: Any = None, content_type: str = "") -> Any:
        return self.world.send(method, path, body, content_type)

    def patch(self, path: str, body: Obj) -> Obj:
        found: Obj = self.send("PATCH", path, body, MERGE)
        return found

    def get(self, path: str) -> Obj | None:
        try:
            found: Obj = self.send("GET", path)
        except ApiError as error:
            if error.code != 404:
                raise
            return None
        return found

    def names(self, path: str) -> list[str]:
        return sorted(name_of(one) for one in self.send("GET", path)["items"])

    def install(self, name: str = "mypattern", **git: Any) -> None:
        spec = {"clusterGroupName": "hub", "gitSpec": {"targetRepo": REPO, "targetRevision": "main", **git}}
        body = {"apiVersion": "gitops.hybrid-cloud-patterns.io/v1alpha1", "kind": "Pattern"}
        self.send("POST", PATTERNS, body | {"metadata": {"name": name}, "spec": spec})
        self.driver.advance(10)

    def pattern(self, name: str = "mypattern") -> Obj:
        found = self.get(f"{PATTERNS}/{name}")
        assert found is not None, name
        return found

    def step(self) -> tuple[str, str]:
        status = self.pattern().get("status") or {}
        return status.get("lastStep", ""), status.get("lastError", "")

    def conditions(self) -> dict[str, str]:
        return {one["type"]: one["message"] for one in dig(self.pattern(), "status", "conditions") or ()}

    def parent(self) -> Obj | None:
        return self.get(f"{APPS.format('vp-gitops')}/mypattern-hub")
