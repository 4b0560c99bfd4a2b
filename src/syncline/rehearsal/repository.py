"""The Git repository of a scenario: created empty, then filled with the commits of the scenario's steps."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj
from syncline.rehearsal.given.files import MAX_BYTES, MAX_FILES, Files
from syncline.rehearsal.scenario import PLACE, Scenario, ScenarioError, Step

REPOSITORY = "repository"
CHANGES = "changes"
IDENTITY = (
    *("-c", "user.name=demo", "-c", "user.email=demo@example.org", "-c", "commit.gpgsign=false"),
    *("-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false", "-c", "core.fsmonitor=false"),
)


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


GIT_S = 120
COMMITTED = "2026-01-01T00:00:00Z"
"""The date of rehearsed commits, so that equal files are equal commits."""


def commit_files(files: Files, where: Path) -> str:
    """Make a new repository of ``files`` at ``where``, with one commit on ``main``; return the commit's SHA."""
    where.mkdir(parents=True)
    for path, data in files.content.items():
        file = where / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    for path, target in files.links.items():
        (where / path).parent.mkdir(parents=True, exist_ok=True)
        (where / path).symlink_to(target)
    dates = {"GIT_AUTHOR_DATE": COMMITTED, "GIT_COMMITTER_DATE": COMMITTED}
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "-A", "-f"],
        ["commit", "-q", "--allow-empty", "-m", "rehearsed"],
    ):
        _run_git(where, *command, environment=os.environ | dates)
    return _run_git(where, "rev-parse", "HEAD").decode().strip()


def files_at(folder: Path, revision: str) -> Files:
    """Return the files of a Git work tree's folder at a branch, tag or commit. Raises ScenarioError (usage)."""
    if revision.startswith("-"):
        raise ScenarioError(f"--revision {revision!r}: found an option; allowed: a branch, tag or commit", usage=True)
    packed = _run_git(folder, "archive", "--format=tar", revision, ".", failing=f"revision {revision} cannot be read")
    content: dict[str, bytes] = {}
    links: dict[str, str] = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            path = member.name.removeprefix("./")
            if member.issym():
                links[path] = member.linkname
            elif member.isfile() and (found := archive.extractfile(member)) is not None:
                content[path] = found.read()
    if len(content) > MAX_FILES or sum(map(len, content.values())) > MAX_BYTES:
        limit = f"{MAX_FILES} files and {MAX_BYTES // 2**20} MiB"
        raise ScenarioError(f"{folder} at {revision}: has more than {limit}; rehearse a folder of it", usage=True)
    return Files(content, links)


def origins_of(clone: Path | None) -> tuple[str, ...]:
    """Return the addresses from which a clone fetches; none if it is no clone."""
    if clone is None:
        return ()
    try:
        said = _run_git(clone, "config", "--get-regexp", r"^remote\..*\.url$")
    except ScenarioError:
        return ()
    return tuple(line.split(" ", 1)[1] for line in said.decode("utf-8", "replace").splitlines() if " " in line)


BRANCH = "replayed"
"""The branch of a copy that HEAD names."""
_SHA = re.compile(r"[0-9a-f]{7,64}")


def bare_copy(source: Path, where: Path) -> None:
    """Copy a repository of this machine, with all its commits. Raises ScenarioError (usage)."""
    where.mkdir(parents=True)
    _run_git(where, "clone", "-q", "--bare", "--", str(source.resolve()), ".", failing=f"cannot copy {source}")
    _run_git(where, "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}")


def adopt_commits(copy: Path, source: Path, shas: Sequence[str]) -> None:
    """Bring commits of a repository of this machine into a copy, each with a branch of its own; those that it lacks
    stay unknown."""
    for sha in shas:
        with contextlib.suppress(ScenarioError):
            _run_git(source, "cat-file", "-e", f"{sha}^{{commit}}")
            allowed = ("-c", "uploadpack.allowAnySHA1InWant=true")
            _run_git(copy, *allowed, "fetch", "-q", str(source.resolve()), f"{sha}:refs/heads/{BRANCH}-{sha}")


def move_branch(copy: Path, revision: str, sha: str) -> None:
    """Let a revision of a copy (HEAD, or the name of a branch or tag) be a commit. Raises ScenarioError (usage)."""
    if not _SHA.fullmatch(sha):
        raise ScenarioError(f"{sha!r}: allowed: the hash of a commit", usage=True)
    lacks = f"it lacks commit {sha}; fetch it into the clone"
    _run_git(copy, "cat-file", "-e", f"{sha}^{{commit}}", failing=lacks)
    if _SHA.fullmatch(revision):
        return
    name = BRANCH if revision == "HEAD" else revision.removeprefix("refs/heads/")
    _run_git(copy, "update-ref", "-d", f"refs/tags/{name}", failing=f"{revision!r} is no name")
    _run_git(copy, "update-ref", f"refs/heads/{name}", sha, failing=f"{revision!r} is no name")


def _run_git(
    folder: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    failing: str = "cannot be made a Git repository",
) -> bytes:
    """Run git and return its output. Raises ScenarioError (usage): ``failing`` with what git says."""
    command = ["git", "-C", str(folder), *IDENTITY, *arguments]
    try:
        return subprocess.run(command, check=True, capture_output=True, timeout=GIT_S, env=environment).stdout
    except FileNotFoundError as error:
        raise ScenarioError("git is not installed; a rehearsal commits to a repository of its own") from error
    except subprocess.TimeoutExpired as error:
        raise ScenarioError(f"{folder}: {failing}: git takes longer than {GIT_S} s") from error
    except subprocess.CalledProcessError as error:
        said = (error.stderr or b"").decode("utf-8", "replace").strip()
        raise ScenarioError(f"{folder}: {failing}: {said}", usage=True) from error
