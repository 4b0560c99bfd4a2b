"""Scenes in fresh Git repositories, and the virtual world they are played in."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import SCENES, absent

from syncline.assembly.sources.reading import GitSourceReader
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.objects import Obj, dig
from syncline.rehearsal.world import World

APPS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"
IDENTITY = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]


def scene(name: str) -> Path:
    """The folder of a scene; the test is skipped with a word where there is none."""
    found = SCENES / name
    if not found.is_dir():
        pytest.skip(absent(found))
    return found


class Repo:
    """A Git repository with a copy of a folder."""

    def __init__(self, where: Path, source: Path | None = None) -> None:
        self.path = where
        if source is not None:
            shutil.copytree(source, where)
        where.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")
        self.commit("as it is")

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.path), *IDENTITY, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def change(self, name: str, old: str, new: str) -> str:
        """Replace text in a file and commit; the old text has to be there."""
        file = self.path / name
        text = file.read_text()
        assert old in text, f"{name} has no {old!r}"
        file.write_text(text.replace(old, new))
        return self.commit(f"{old} becomes {new}")


def application(
    repo: Repo, path: str, *, name: str = "app", namespace: str = "default", automated: bool = False, **policy: Any
) -> Obj:
    """An Application of a folder of ``repo``."""
    if automated:
        policy["automated"] = {"prune": True, "selfHeal": True}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {
            "project": "default",
            "source": {"repoURL": str(repo.path), "path": path, "targetRevision": "main"},
            "destination": {"server": "https://kubernetes.default.svc", "namespace": namespace},
            "syncPolicy": policy,
        },
    }


class Stage:
    """A virtual world with shorthands for what a scene does."""

    def __init__(self, tmp_path: Path, *, seed: int = 1, shuffle: bool = False, nodes: int = 1) -> None:
        reader = GitSourceReader(tmp_path / "mirrors", allow_local=True)
        self.world = World(reader, seed=seed, shuffle=shuffle, nodes=nodes, settings=AppSettings(poll_s=60))
        self.world.driver.settle()

    def create(self, app: Obj) -> None:
        self.world.send("POST", APPS, app)

    def app(self, name: str = "app") -> Obj:
        found: Obj = self.world.send("GET", f"{APPS}/{name}")
        return found

    def sync(self, name: str = "app", **sync: Any) -> None:
        """Ask for a sync as ``syncline app sync`` does."""
        body = {"operation": {"sync": sync}, "status": {"operationState": None}}
        self.world.send("PATCH", f"{APPS}/{name}", body, "application/merge-patch+json")

    def refresh(self, name: str = "app") -> None:
        body = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
        self.world.send("PATCH", f"{APPS}/{name}", body, "application/merge-patch+json")

    def phase(self, name: str = "app") -> str:
        app = self.app(name)
        return "" if app.get("operation") else str(dig(app, "status", "operationState", "phase", default=""))

    def finish(self, name: str = "app", limit_s: float = 900) -> Obj:
        """Let time pass until the operation ended; its ``operationState``."""
        self.world.driver.until(lambda: self.phase(name) in ("Succeeded", "Failed", "Error"), limit_s=limit_s)
        state: Obj = self.app(name)["status"]["operationState"]
        return state

    def healthy(self, name: str = "app", limit_s: float = 900) -> None:
        def reached() -> bool:
            app = self.app(name)
            health = dig(app, "status", "health", "status")
            return dig(app, "status", "sync", "status") == "Synced" and health == "Healthy" and not app.get("operation")

        self.world.driver.until(reached, limit_s=limit_s)

    def items(self, path: str) -> list[Obj]:
        found: list[Obj] = self.world.send("GET", path)["items"]
        return found

    def done(self, verb: str) -> list[str]:
        """Subjects of what the Application controller did, in order: lines of the journal that begin with ``verb``."""
        mine = [entry.what for entry in self.world.journal if entry.who == "application"]
        return [what.removeprefix(verb).strip() for what in mine if what.startswith(verb + " ")]


def rows(state: Obj) -> dict[str, Obj]:
    """Result rows of an operation by Kind/name."""
    return {f"{row['kind']}/{row['name']}": row for row in dig(state, "syncResult", "resources", default=[])}
