"""A scenario: a cluster, a repository, the commits that follow, and what is worth looking at after each step; frozen.

A folder with a ``story.yaml`` is one (:func:`~syncline.rehearsal.reading.read_scenario`; ``examples/README.md`` says
what may stand in it). :class:`~syncline.rehearsal.simulation.Simulation` runs it in virtual time, ``syncline demo``
also on a served cluster. A folder without one is a scenario of a single commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

from syncline.kube.objects import Obj

__all__ = [
    "PLACE",
    "Act",
    "AddNode",
    "Delete",
    "Ends",
    "NodeShape",
    "Patching",
    "Scenario",
    "ScenarioError",
    "Step",
    "Until",
    "View",
]

PLACE = "https://git.example.org/repository.git"
"""What the manifests of an example call their own repository; the copy that is simulated says where it really is."""

WITHIN = timedelta(minutes=15)
"""How long a step may take on the clock of its cluster, unless it says otherwise."""
CPU, MEMORY = "8", "32Gi"


class ScenarioError(Exception):
    """A scenario cannot be played: ``str`` of it names the place, what was found and what is allowed, or the request
    that was refused. ``usage``: another folder or another word is asked for."""

    def __init__(self, message: str, *, usage: bool = False) -> None:
        super().__init__(message)
        self.usage = usage


class Ends:
    """In which phase of its operation a step leaves the sync; ``RUNNING``: it is examined in the middle."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    RUNNING = "Running"


@dataclass(frozen=True, slots=True)
class View:
    """Objects to show after each step: the path of a list, and columns as paths below an object. Without columns, what
    ``kubectl get`` prints of them, but for their age."""

    path: str
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class NodeShape:
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
    node: NodeShape


@dataclass(frozen=True, slots=True)
class Patching:
    """A merge patch of ``target`` (``KIND/NAME`` or ``KIND/NAMESPACE/NAME``)."""

    target: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Delete:
    target: str


Act: TypeAlias = "AddNode | Patching | Delete"
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
    acts: tuple[Act, ...] = ()
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
class Scenario:
    """What is simulated. ``sources`` and ``policy`` go into the Application as they are."""

    folder: Path
    name: str
    about: str = ""
    namespace: str = ""
    sources: tuple[Obj, ...] = ()
    policy: Obj = field(default_factory=dict)
    applications: tuple[str, ...] = ()
    """All that have to be Synced and Healthy before a step is over; the story's own if none is named."""

    steps: tuple[Step, ...] = (Step("The first commit"),)
    views: tuple[View, ...] = ()
    events: tuple[str, ...] = ()
    """Reasons of Events that are shown with each step."""
    nodes: tuple[NodeShape, ...] = ()
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
        """Whether a sync ends in the step, or is examined in it."""
        before = self.steps[self.steps.index(step) - 1] if step is not self.steps[0] else None
        return self.commits(step) or (before is not None and before.ends == Ends.RUNNING)
