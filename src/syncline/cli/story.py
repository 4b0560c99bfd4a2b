"""Runnable examples: a cluster, a repository, the commits that follow, and what is worth looking at after each step.

A folder with a ``story.yaml`` is one (``examples/``); ``examples/README.md`` says what may stand in it. ``syncline
demo --example FOLDER`` plays it on a served cluster, with ``--virtual`` in virtual time; ``expected.txt`` beside the
story is what it has to tell. A folder without one is a story of a single commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

from syncline.cli.failure import USAGE, CommandFailed
from syncline.kube.durations import DurationError, parse_duration
from syncline.kube.objects import Obj
from syncline.kube.yaml import YamlError, load

__all__ = [
    "PLACE",
    "AddNode",
    "Deed",
    "Delete",
    "Ends",
    "Look",
    "Patching",
    "Step",
    "Story",
    "StoryNode",
    "Until",
    "read_story",
]

PLACE = "https://git.example.org/repository.git"
"""What the manifests of an example call their own repository; the copy that is played says where it really is."""

WITHIN = timedelta(minutes=15)
"""How long a step may take on the clock of its cluster, unless it says otherwise."""
CPU, MEMORY = "8", "32Gi"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Ends:
    """In which phase of its operation a step leaves the sync; ``RUNNING``: it is looked at in the middle."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    RUNNING = "Running"


MANIFESTS = (".yaml", ".yml", ".json", ".jsonnet", ".bu", "Kustomization")
"""How the name of a file ends that a folder without a ``story.yaml`` is deployed from."""


@dataclass(frozen=True, slots=True)
class Look:
    """Objects to show after each step: the path of a list, and columns as paths below an object. Without columns, what
    ``kubectl get`` prints of them, but for their age."""

    path: str
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StoryNode:
    """A simulated machine. ``roles`` become labels ``node-role.kubernetes.io/ROLE``, ``taints`` are written as kubectl
    takes them: ``KEY[=VALUE]:EFFECT``."""

    name: str
    roles: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[str, ...] = ()
    cpu: str = CPU
    memory: str = MEMORY
    zone: str = ""
    unschedulable: bool = False


@dataclass(frozen=True, slots=True)
class AddNode:
    node: StoryNode


@dataclass(frozen=True, slots=True)
class Patching:
    """A merge patch of ``target`` (``KIND/NAME`` or ``KIND/NAMESPACE/NAME``)."""

    target: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Delete:
    target: str


Deed: TypeAlias = "AddNode | Patching | Delete"
"""What a person does in a step, beside committing."""


@dataclass(frozen=True, slots=True)
class Until:
    """A condition that an object comes to have, or comes to lose."""

    target: str
    condition: str
    status: str = "True"

    def __str__(self) -> str:
        return f"{self.target} {self.condition}" + ("" if self.status == "True" else f"={self.status}")


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the story. The first one commits the repository, later ones commit if they have a ``change``: a
    folder below ``changes/`` that is laid over it."""

    say: str
    change: str = ""
    ends: str = Ends.SUCCEEDED
    moves: str = ""
    """The Application that the commit touches, if it is not the story's own: others stay at their commit."""
    deeds: tuple[Deed, ...] = ()
    """What is done before waiting, after the commit if there is one."""
    until: tuple[Until, ...] = ()
    """What the step waits for then, one after the other: a pool is Updated, too, before it begins to be Updating.
    With it Applications only have to have ended their syncs, whatever their health."""
    within: timedelta = WITHIN
    rests: timedelta = timedelta(0)
    """How long the cluster is left alone at the end."""
    explain: tuple[str, ...] = ()
    """Objects of which ``syncline explain`` is asked then."""


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
    events: tuple[str, ...] = ()
    """Reasons of Events that are shown with each step."""
    nodes: tuple[StoryNode, ...] = ()
    """Its machines; one without a role if none is named."""
    machine_config: bool = False
    """Whether there are pools master and worker, the machine-config controllers, and an agent on each machine."""
    whole: bool = False
    """The folder itself is what the repository holds, in a folder of its name: there is no ``story.yaml``."""

    def waited_for(self) -> tuple[str, ...]:
        return self.applications or (self.name,)

    def commits(self, step: Step) -> bool:
        """Whether the step makes a commit."""
        return bool(step.change) or step is self.steps[0]

    def syncs(self, step: Step) -> bool:
        """Whether a sync ends in the step, or is looked at in it."""
        before = self.steps[self.steps.index(step) - 1] if step is not self.steps[0] else None
        return self.commits(step) or (before is not None and before.ends == Ends.RUNNING)


# -- reading ---------------------------------------------------------------------------------------------------------


def read_story(folder: Path) -> Story:
    """The story of a folder. Raises :class:`CommandFailed` that names the key, what it found and what is allowed."""
    file = folder / "story.yaml"
    if not file.is_file():
        if stories := sorted(path.parent for path in folder.glob("*/story.yaml")):
            names = ", ".join(str(path) for path in stories)
            raise CommandFailed(f"{folder}: holds {len(stories)} stories and is none; name one of them: {names}", USAGE)
        if not any(path.is_file() and path.name.endswith(MANIFESTS) for path in folder.iterdir()):
            raise CommandFailed(f"{folder}: holds no file that is one of {', '.join(MANIFESTS)}", USAGE)
        source = {"path": folder.name, "targetRevision": "main", "repoURL": PLACE}
        policy = {"automated": {"prune": True, "selfHeal": True}, "syncOptions": ["CreateNamespace=true"]}
        return Story(folder, folder.name, namespace=folder.name, sources=(source,), policy=policy, whole=True)
    try:
        told = load(file.read_bytes(), file=str(file))
    except YamlError as error:
        raise CommandFailed(str(error)) from error
    if not isinstance(told, dict) or not told.get("steps"):
        raise CommandFailed(f"{file}: found no steps; it needs at least 'steps: [{{say: …}}]'")
    return _Reader(file, told).story(folder)


class _Reader:
    """Values of one file, each checked where it is taken."""

    def __init__(self, file: Path, told: Obj) -> None:
        self._file = file
        self._told = told

    def story(self, folder: Path) -> Story:
        told = self._known(
            "",
            self._told,
            *("about", "namespace", "source", "sources", "syncPolicy", "applications", "steps", "look"),
            *("events", "nodes", "machineConfig"),
        )
        sources = self._list("sources", told.get("sources")) or [told.get("source") or {"path": "."}]
        steps = tuple(self._step(f"steps[{i}]", one) for i, one in enumerate(self._list("steps", told["steps"])))
        for place, step in enumerate(steps[1:], 1):
            if not (step.change or step.deeds or step.until or step.rests):
                raise self._wrong(f"steps[{place}]", "nothing happens in it", "change, do, until or rests")
        machine_config = self._bool("machineConfig", told.get("machineConfig"))
        nodes = tuple(self._node(f"nodes[{i}]", one) for i, one in enumerate(self._list("nodes", told.get("nodes"))))
        if machine_config and not nodes:
            nodes = (StoryNode("worker-1", ("worker",)),)
        return Story(
            folder,
            folder.name,
            about=str(told.get("about") or ""),
            namespace=str(told.get("namespace") or folder.name),
            sources=tuple(
                {"repoURL": PLACE, "targetRevision": "main"} | self._map("sources", source) for source in sources
            ),
            policy=self._map("syncPolicy", told.get("syncPolicy")),
            applications=self._texts("applications", told.get("applications")),
            steps=steps,
            looks=tuple(self._look(f"look[{i}]", one) for i, one in enumerate(self._list("look", told.get("look")))),
            events=self._texts("events", told.get("events")),
            nodes=nodes,
            machine_config=machine_config,
        )

    def _step(self, where: str, told: Any) -> Step:
        allowed = ("say", "change", "ends", "moves", "do", "until", "within", "rests", "explain")
        step = self._known(where, told, *allowed)
        if not step.get("say"):
            raise self._wrong(where, "no say", "a sentence that says what happens")
        ends = str(step.get("ends") or Ends.SUCCEEDED)
        if ends not in (Ends.SUCCEEDED, Ends.FAILED, Ends.RUNNING):
            raise self._wrong(
                f"{where}.ends", repr(ends), f"{Ends.SUCCEEDED}, {Ends.FAILED}, or {Ends.RUNNING} to look in the middle"
            )
        deeds = self._list(f"{where}.do", step.get("do"))
        until = self._texts(f"{where}.until", step.get("until"))
        return Step(
            say=str(step["say"]),
            change=str(step.get("change") or ""),
            ends=ends,
            moves=str(step.get("moves") or ""),
            deeds=tuple(self._deed(f"{where}.do[{i}]", one) for i, one in enumerate(deeds)),
            until=tuple(self._until(f"{where}.until[{i}]", one) for i, one in enumerate(until)),
            within=self._duration(f"{where}.within", step.get("within"), WITHIN),
            rests=self._duration(f"{where}.rests", step.get("rests"), timedelta(0)),
            explain=self._targets(f"{where}.explain", step.get("explain")),
        )

    def _deed(self, where: str, told: Any) -> Deed:
        deed = self._known(where, told, "node", "patch", "with", "delete")
        what = [key for key in ("node", "patch", "delete") if key in deed]
        if len(what) != 1 or ("with" in deed) != (what == ["patch"]):
            raise self._wrong(where, ", ".join(deed) or "nothing", "one of node, delete, or patch and with")
        if what == ["node"]:
            return AddNode(self._node(f"{where}.node", deed["node"]))
        if what == ["delete"]:
            return Delete(self._target(f"{where}.delete", deed["delete"]))
        return Patching(self._target(f"{where}.patch", deed["patch"]), self._map(f"{where}.with", deed["with"]))

    def _until(self, where: str, told: str) -> Until:
        target, space, condition = told.partition(" ")
        kind, equals, status = condition.strip().partition("=")
        if not space or not kind or (equals and status not in ("True", "False", "Unknown")):
            raise self._wrong(where, repr(told), "KIND/NAME CONDITION, or KIND/NAME CONDITION=False")
        return Until(self._target(where, target), kind, status or "True")

    def _node(self, where: str, told: Any) -> StoryNode:
        node = self._known(where, told, "name", "roles", "labels", "taints", "cpu", "memory", "zone", "unschedulable")
        if not node.get("name"):
            raise self._wrong(where, "no name", "a name")
        taints = self._texts(f"{where}.taints", node.get("taints"))
        for taint in taints:
            if taint.rpartition(":")[2] not in EFFECTS or not taint.rpartition(":")[0]:
                raise self._wrong(f"{where}.taints", repr(taint), f"KEY[=VALUE]:EFFECT with {', '.join(EFFECTS)}")
        labels = self._map(f"{where}.labels", node.get("labels"))
        return StoryNode(
            str(node["name"]),
            self._texts(f"{where}.roles", node.get("roles")),
            tuple((str(key), str(value)) for key, value in labels.items()),
            taints,
            str(node.get("cpu") or CPU),
            str(node.get("memory") or MEMORY),
            str(node.get("zone") or ""),
            self._bool(f"{where}.unschedulable", node.get("unschedulable")),
        )

    def _look(self, where: str, told: Any) -> Look:
        look = self._known(where, told, "path", "columns")
        if not str(look.get("path") or "").startswith("/"):
            raise self._wrong(f"{where}.path", repr(look.get("path")), "the path of a list: /api/v1/nodes")
        columns = self._map(f"{where}.columns", look.get("columns"))
        return Look(str(look["path"]), tuple((str(key), str(value)) for key, value in columns.items()))

    # -- values ------------------------------------------------------------------------------------------------------

    def _wrong(self, where: str, found: str, allowed: str) -> CommandFailed:
        return CommandFailed(f"{self._file}: {where or 'the file'}: found {found}; allowed: {allowed}")

    def _known(self, where: str, told: Any, *allowed: str) -> Obj:
        found = self._map(where, told)
        unknown = sorted(str(key) for key in found if key not in allowed)
        if unknown:
            raise self._wrong(where, f"the key {unknown[0]!r}", ", ".join(allowed))
        return found

    def _map(self, where: str, told: Any) -> Obj:
        return self._of(where, told, dict, "a mapping") or {}

    def _list(self, where: str, told: Any) -> list[Any]:
        return self._of(where, told, list, "a list") or []

    def _bool(self, where: str, told: Any) -> bool:
        return bool(self._of(where, told, bool, "true or false"))

    def _of(self, where: str, told: Any, kind: type, allowed: str) -> Any:
        if told is not None and not isinstance(told, kind):
            raise self._wrong(where, repr(told), allowed)
        return told

    def _texts(self, where: str, told: Any) -> tuple[str, ...]:
        found = self._list(where, told)
        for one in found:
            if not isinstance(one, str):
                raise self._wrong(where, repr(one), "texts")
        return tuple(found)

    def _targets(self, where: str, told: Any) -> tuple[str, ...]:
        return tuple(self._target(where, one) for one in self._texts(where, told))

    def _target(self, where: str, told: Any) -> str:
        if not isinstance(told, str) or told.count("/") not in (1, 2) or not all(told.split("/")):
            raise self._wrong(where, repr(told), "KIND/NAME or KIND/NAMESPACE/NAME")
        return told

    def _duration(self, where: str, told: Any, otherwise: timedelta) -> timedelta:
        if told is None:
            return otherwise
        try:
            found = parse_duration(str(told))
        except DurationError as error:
            raise self._wrong(where, repr(told), "a duration such as 90m or 2h") from error
        if found <= timedelta(0):
            raise self._wrong(where, repr(told), "a duration longer than nothing")
        return found
