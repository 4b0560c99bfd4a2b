"""Runnable examples: a repository, the commits that follow, and what is worth looking at after each sync.

A folder with a ``story.yaml`` is one (``examples/``). ``syncline demo --example FOLDER`` plays it on an embedded
cluster, the tests play it in virtual time; both print :func:`transcript`, and ``expected.txt`` beside the story is what
it has to be. A folder without one is a story of a single commit.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from syncline.cli.failure import CommandFailed
from syncline.cli.output import table
from syncline.gitops.application.pools import LEFT
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.kube.yaml import load, load_all

__all__ = [
    "Ends",
    "Look",
    "Repository",
    "Step",
    "Story",
    "application",
    "masked",
    "over",
    "prerequisites",
    "read_story",
    "transcript",
]

PLACE = "https://git.example.org/repository.git"
"""What the manifests of an example call their own repository; the copy that is played says where it really is."""

REPOSITORY = "repository"
CHANGES = "changes"
BEFORE = "prerequisites"
IDENTITY = ("-c", "user.name=demo", "-c", "user.email=demo@example.org", "-c", "commit.gpgsign=false")
KEYS = frozenset({"about", "namespace", "source", "sources", "syncPolicy", "applications", "steps", "look"})


class Ends:
    """How the sync of a step may end: phases of an operation."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Look:
    """Objects to show after each step: the path of a list, and columns as dotted paths below an object."""

    path: str
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One commit. ``change`` names a folder below ``changes/`` that is laid over the repository."""

    say: str
    change: str = ""
    ends: str = Ends.SUCCEEDED
    moves: str = ""
    """The Application that the commit touches, if it is not the story's own: others stay at their commit."""


@dataclass(frozen=True, slots=True)
class Story:
    """What is played. ``sources`` and ``policy`` go into the Application as they are."""

    folder: Path
    name: str
    about: str = ""
    namespace: str = ""
    sources: tuple[Obj, ...] = ()
    policy: Obj = field(default_factory=dict)
    applications: tuple[str, ...] = ()
    """All that have to be Synced and Healthy before a step is over; the story's own if none is named."""

    steps: tuple[Step, ...] = (Step("The first commit"),)
    looks: tuple[Look, ...] = ()
    whole: bool = False
    """The folder itself is what the repository holds, in a folder of its name: there is no ``story.yaml``."""

    def waited_for(self) -> tuple[str, ...]:
        return self.applications or (self.name,)


def read_story(folder: Path) -> Story:
    """The story of a folder. Raises :class:`CommandFailed` that names the key, if it cannot be read."""
    file = folder / "story.yaml"
    if not file.is_file():
        source = {"path": folder.name, "targetRevision": "main", "repoURL": PLACE}
        policy = {"automated": {"prune": True, "selfHeal": True}, "syncOptions": ["CreateNamespace=true"]}
        return Story(folder, folder.name, namespace=folder.name, sources=(source,), policy=policy, whole=True)
    told = load(file.read_bytes(), file=str(file))
    if not isinstance(told, dict) or not told.get("steps"):
        raise CommandFailed(f"{file}: found no steps; it needs at least 'steps: [{{say: …}}]'")
    unknown = sorted(set(told) - KEYS)
    if unknown:
        raise CommandFailed(f"{file}: found the key {unknown[0]!r}; allowed are {', '.join(sorted(KEYS))}")
    sources = told.get("sources") or [told.get("source") or {"path": "."}]
    return Story(
        folder,
        folder.name,
        about=str(told.get("about") or ""),
        namespace=str(told.get("namespace") or folder.name),
        sources=tuple({"repoURL": PLACE, "targetRevision": "main"} | source for source in sources),
        policy=told.get("syncPolicy") or {},
        applications=tuple(told.get("applications") or ()),
        steps=tuple(_step(file, step) for step in told["steps"]),
        looks=tuple(
            Look(look["path"], tuple((str(k), str(v)) for k, v in (look.get("columns") or {}).items()))
            for look in told.get("look") or ()
        ),
    )


def _step(file: Path, step: Any) -> Step:
    allowed = [one.name for one in fields(Step)]
    if not isinstance(step, dict) or "say" not in step or set(step) - set(allowed):
        raise CommandFailed(f"{file}: steps: found {step!r}; each has say, and may have {', '.join(allowed[1:])}")
    return Step(**{key: str(value) for key, value in step.items()})


class Repository:
    """A fresh Git repository with a working copy, in which a story's commits are made."""

    def __init__(self, story: Story, where: Path) -> None:
        self.story = story
        self.path = where
        where.mkdir(parents=True)
        self._git("init", "-q", "-b", "main")

    def _git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.path), *IDENTITY, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.strip()

    def commit(self, step: Step) -> str:
        """Lay the files of the step over the working copy and commit; the commit's name."""
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
            raise CommandFailed(f"{source} is not there; a step's change is a folder below {CHANGES}/")
        # Without their times: git takes a file of the same size and second for unchanged.
        shutil.copytree(source, target, dirs_exist_ok=True, copy_function=shutil.copyfile)
        for file in sorted(target.rglob("*.yaml")):
            text = file.read_text()
            if PLACE in text:
                file.write_text(text.replace(PLACE, str(self.path)))


def application(story: Story, repository: Repository) -> Obj:
    """The Application of a story, as somebody would write it."""
    sources = [source | {"repoURL": source["repoURL"].replace(PLACE, str(repository.path))} for source in story.sources]
    where: Obj = {"source": sources[0]} if len(sources) == 1 else {"sources": sources}
    destination = {"server": "https://kubernetes.default.svc", "namespace": story.namespace}
    spec = {"project": "default", **where, "destination": destination, "syncPolicy": story.policy}
    metadata = {"name": story.name, "namespace": "argocd"}
    return {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind, "metadata": metadata, "spec": spec}


def prerequisites(story: Story) -> Iterator[Obj]:
    """What an administrator has applied before, in the order of the files."""
    for file in sorted((story.folder / BEFORE).glob("*.yaml")):
        for document in load_all(file.read_bytes(), file=str(file)).documents:
            yield document.value


def over(story: Story, step: Step, commit: str, apps: Mapping[str, Obj]) -> bool:
    """Whether all Applications (by name) that the story waits for have come to the end of a step that made ``commit``.
    Those that neither are the story's own nor are touched only have to be calm."""
    moved = {story.name, step.moves} if step.change else set(story.waited_for())
    return all(_reached(apps.get(name), commit if name in moved else "", step.ends) for name in story.waited_for())


def _reached(app: Obj | None, commit: str, ends: str) -> bool:
    # With the note of a pool that was left paused, an operation has something to put right yet.
    if app is None or app.get("operation") or LEFT in annotations_of(app):
        return False
    status = app.get("status") or {}
    state = status.get("operationState") or {}
    if ends != Ends.SUCCEEDED:
        return commit in _revisions(state.get("syncResult") or {}) and state.get("phase") == ends
    sync = status.get("sync") or {}
    calm = state.get("phase") == Ends.SUCCEEDED and dig(status, "health", "status") == "Healthy"
    return calm and (not commit or commit in _revisions(sync)) and sync.get("status") == "Synced"


def _revisions(result: Obj) -> list[str]:
    return [*(result.get("revisions") or ()), str(result.get("revision") or "")]


def transcript(story: Story, step: Step, apps: list[Obj], read: Callable[[str], list[Obj]]) -> str:
    """What there is to see after a step: results of the sync, the Applications, and what the story looks at.

    ``apps`` are those waited for, ``read`` lists the objects of a path.
    """
    first = apps[0]
    state = dig(first, "status", "operationState", default={})
    lines = [f"# {step.say}", "", f"{state.get('phase')}: {state.get('message')}", ""]
    lines += [table(("PHASE", "KIND", "NAME", "STATUS", "HOOK", "MESSAGE"), [_result(row) for row in _results(state)])]
    columns = ("APPLICATION", "SYNC", "HEALTH")
    shown = [(name_of(a), dig(a, "status", "sync", "status"), dig(a, "status", "health", "status")) for a in apps]
    lines += ["", table(columns, shown)]
    for look in story.looks:
        headers = ("NAME", *(name.upper() for name, _ in look.columns))
        found = sorted(read(look.path), key=lambda obj: (obj["metadata"]["creationTimestamp"], name_of(obj)))
        rows = [(name_of(obj), *(_cell(obj, path) for _, path in look.columns)) for obj in found]
        lines += ["", f"{look.path.rpartition('/')[2]}:", table(headers, rows)]
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


def _results(state: Obj) -> list[Obj]:
    found: list[Obj] = dig(state, "syncResult", "resources", default=[])
    return found


def _result(row: Obj) -> tuple[str, ...]:
    keys = ("syncPhase", "kind", "name", "status", "hookPhase", "message")
    shown = [str(row.get(key) or "") for key in keys]
    if not row.get("hookType"):
        shown[4] = ""
    return tuple(shown)


def _cell(obj: Obj, path: str) -> str:
    parts: list[Any] = [int(part) if part.isdigit() else part for part in path.split(".")]
    found = dig(obj, *parts)
    return "" if found is None else str(found).lower() if isinstance(found, bool) else str(found)


def masked(text: str, commits: list[str]) -> str:
    """A transcript without what differs from run to run: commits, moments, generated endings, where the copy lies."""
    for number, commit in enumerate(commits, 1):
        text = text.replace(commit, f"<commit {number}>").replace(commit[:7], f"<commit-{number}>")
    text = re.sub(r"(?<=sync-)\d{10}\b", "<time>", text)
    return "\n".join(re.sub(r"  +", "  ", line).rstrip() for line in text.splitlines()) + "\n"
