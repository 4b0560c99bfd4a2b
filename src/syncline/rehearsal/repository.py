"""The Git repository of a scenario: created empty, then filled with the commits of the scenario's steps."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj
from syncline.rehearsal.scenario import PLACE, Scenario, ScenarioError, Step

REPOSITORY = "repository"
CHANGES = "changes"
IDENTITY = ("-c", "user.name=demo", "-c", "user.email=demo@example.org", "-c", "commit.gpgsign=false")


class Repository:
    """A fresh Git repository with a working copy."""

    def __init__(self, story: Scenario, where: Path) -> None:
        self.story = story
        self.path = where
        where.mkdir(parents=True)
        self._git("init", "-q", "-b", "main")

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.path), *IDENTITY, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.strip()

    def commit(self, step: Step) -> str:
        """Copy the files of the step over the working copy, commit, and return the SHA of the commit."""
        story = self.story
        if not step.change:
            source = story.folder if story.whole else story.folder / REPOSITORY
            self._lay(source, self.path / story.name if story.whole else self.path)
        else:
            self._lay(story.folder / CHANGES / step.change, self.path)
        self._git("add", "-A")
        self._git("commit", "-q", "--allow-empty", "-m", step.say)
        return self._git("rev-parse", "HEAD")

    def _lay(self, source: Path, target: Path) -> None:
        if not source.is_dir():
            raise ScenarioError(f"{source} is not there; a step's change is a folder below {CHANGES}/")
        # Without their times: git takes a file of the same size and second for unchanged.
        shutil.copytree(source, target, dirs_exist_ok=True, copy_function=shutil.copyfile)
        for file in sorted(target.rglob("*.yaml")):
            text = file.read_text()
            if PLACE in text:
                file.write_text(text.replace(PLACE, str(self.path)))


def application(story: Scenario, repository: Repository) -> Obj:
    """Return the scenario's Application as a user would write it."""
    sources = [source | {"repoURL": source["repoURL"].replace(PLACE, str(repository.path))} for source in story.sources]
    where: Obj = {"source": sources[0]} if len(sources) == 1 else {"sources": sources}
    destination = {"server": "https://kubernetes.default.svc", "namespace": story.namespace}
    spec = {"project": "default", **where, "destination": destination, "syncPolicy": story.policy}
    metadata = {"name": story.name, "namespace": "argocd"}
    return {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind, "metadata": metadata, "spec": spec}
