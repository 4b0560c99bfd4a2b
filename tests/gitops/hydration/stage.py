"""The virtual world with real repositories: a dry one, hydrated Applications, and what is in their branches."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.sources.conftest import Upstream

from syncline.assembly.sources.hydrating import HydratingReader
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, dig
from syncline.rehearsal.world import World

ARGO = "/apis/argoproj.io/v1alpha1/namespaces/argocd"
APPS, PROJECTS = f"{ARGO}/applications", f"{ARGO}/appprojects"
CONFIG_MAPS = "/api/v1/namespaces/argocd/configmaps"
SECRETS = "/api/v1/namespaces/argocd/secrets"
MERGE = "application/merge-patch+json"
PREFIX = "argocd.argoproj.io/"


def config(name: str, value: str = "v") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  k: {json.dumps(value)}\n"


class Stage:
    """``dry``: what people commit to; its bare copy is what Applications name, and where branches appear."""

    def __init__(self, folder: Path, *, enabled: bool = True, settings: AppSettings | None = None) -> None:
        self.dry = Upstream(folder / "dry")
        self.dry.commit({"web/a.yaml": config("a")}, "first commit")
        self.path = folder / "repo.git"
        self.dry.run("clone", "--quiet", "--bare", str(self.dry.path), str(self.path), inside=False)
        self.dry.run("remote", "add", "origin", str(self.path))
        self.reader = HydratingReader(folder / "cache", allow_local=True)
        self.world = World(self.reader, settings=settings or AppSettings())
        self.driver = self.world.driver
        self.driver.settle()
        if enabled:
            self.set_up("argocd-cmd-params-cm", {"hydrator.enabled": "true"})

    # -- the cluster ------------------------------------------------------------------------------------------------

    def set_up(self, name: str, data: dict[str, str]) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        try:
            self.world.send("POST", CONFIG_MAPS, body)
        except ApiError:
            self.patch(f"{CONFIG_MAPS}/{name}", {"data": data})
        self.driver.settle()

    def patch(self, path: str, body: Obj) -> Obj:
        found: Obj = self.world.send("PATCH", path, body, MERGE)
        return found

    def create(self, name: str = "web", *, annotations: dict[str, str] | None = None, **given: Any) -> None:
        """``path``, ``branch``, ``folder``, ``staged``, ``project``, ``automated``, ``repo``, ``dry``."""
        hydrator: Obj = {
            "drySource": {
                "repoURL": str(given.get("repo", self.path)),
                "path": given.get("path", "web"),
                "targetRevision": "main",
                **given.get("dry", {}),
            },
            "syncSource": {"targetBranch": given.get("branch", "env/test"), "path": given.get("folder", name)},
        }
        if "sync_repo" in given:
            hydrator["syncSource"]["repoURL"] = given["sync_repo"]
        if "staged" in given:
            hydrator["hydrateTo"] = {"targetBranch": given["staged"]}
        spec: Obj = {
            "project": given.get("project", "default"),
            "sourceHydrator": hydrator,
            "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
            "syncPolicy": {"automated": {"prune": True}} if given.get("automated") else {},
        }
        metadata = {"name": name, "annotations": annotations or {}}
        app = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec}
        self.world.send("POST", APPS, app)
        self.driver.advance(3)

    def app(self, name: str = "web") -> Obj:
        found: Obj = self.world.send("GET", f"{APPS}/{name}")
        return found

    def status(self, name: str = "web") -> Obj:
        found: Obj = dig(self.app(name), "status", "sourceHydrator", default={})
        return found

    def operation(self, name: str = "web") -> Obj:
        found: Obj = self.status(name).get("currentOperation") or {}
        return found

    def ask(self, name: str = "web", kind: str = "normal", stamp: str = "") -> None:
        asked = {PREFIX + "hydrate": kind} | ({PREFIX + "hydrate-timestamp": stamp} if stamp else {})
        self.patch(f"{APPS}/{name}", {"metadata": {"annotations": asked}})
        self.driver.advance(3)

    def asks(self, name: str = "web") -> bool:
        return PREFIX + "hydrate" in self.app(name)["metadata"].get("annotations", {})

    def maps(self) -> dict[str, str]:
        items = self.world.send("GET", "/api/v1/namespaces/default/configmaps")["items"]
        return {one["metadata"]["name"]: one["data"]["k"] for one in items if "k" in one.get("data", {})}

    # -- Git ---------------------------------------------------------------------------------------------------------

    def commit(self, files: dict[str, str], message: str = "change") -> str:
        sha = self.dry.commit(files, message)
        self.dry.run("push", "--quiet", "origin", "HEAD:main")
        return sha

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.path), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def head(self, branch: str = "env/test") -> str:
        return self.git("rev-parse", branch)

    def branches(self) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname:strip=2)", "refs/heads").splitlines()

    def files(self, branch: str = "env/test") -> list[str]:
        return self.git("ls-tree", "-r", "--name-only", branch).splitlines()

    def show(self, path: str, branch: str = "env/test") -> str:
        return self.git("show", f"{branch}:{path}")

    def note(self, commit: str) -> Obj:
        found: Obj = json.loads(self.git("notes", "--ref=hydrator.metadata", "show", commit))
        return found
