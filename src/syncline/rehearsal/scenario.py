"""Scenarios as frozen data: a cluster, a repository, its commits, and what is shown after each step.

A folder with a ``story.yaml`` is a scenario (:func:`~syncline.rehearsal.reading.read_scenario`; ``examples/README.md``
documents the file); any other folder is a scenario of one commit. :class:`~syncline.rehearsal.simulation.Simulation`
runs it in virtual time, ``syncline demo`` also on a served cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

from syncline.kube.objects import Obj

PLACE = "https://git.example.org/repository.git"
"""Repository URL in the manifests of an example; replaced by that of the simulated copy."""

WITHIN = timedelta(minutes=15)
"""Default time limit of a step, on the clock of its cluster."""
CPU, MEMORY = "8", "32Gi"


class ScenarioError(Exception):
    """A scenario cannot run. The message has the path, the value found and the allowed values, or the refused request.
    ``usage``: the command line was wrong."""

    def __init__(self, message: str, *, usage: bool = False) -> None:
        super().__init__(message)
        self.usage = usage


class Ends:
    """The phase of the sync operation at which a step ends; ``RUNNING``: the step ends while the operation runs."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    RUNNING = "Running"


@dataclass(frozen=True, slots=True)
class View:
    """Objects to show after each step: the path of a list request, and columns as field paths. Without columns, those
    of ``kubectl get`` are shown, except the age."""

    path: str
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A simulated machine. ``roles`` become labels ``node-role.kubernetes.io/ROLE``; ``taints`` use kubectl's format
    ``KEY[=VALUE]:EFFECT``."""

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
"""A user's action in a step, besides commits."""


@dataclass(frozen=True, slots=True)
class Until:
    """A condition that an object must get, or lose."""

    target: str
    condition: str
    status: str = "True"

    def __str__(self) -> str:
        return f"{self.target} {self.condition}" + ("" if self.status == "True" else f"={self.status}")


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the scenario. The first step commits the repository; a later step commits its ``change``, a folder
    below ``changes/`` that is laid over the repository, if it has one."""

    say: str
    change: str = ""
    ends: str = Ends.SUCCEEDED
    moves: str = ""
    """The Application that the commit changes, if not the scenario's own; others stay at their commit."""
    acts: tuple[Act, ...] = ()
    """Actions of the step, after its commit and before it waits."""
    until: tuple[Until, ...] = ()
    """What the step waits for then, one after the other: a pool is Updated, too, before it begins to be Updating.
    With it Applications only have to have ended their syncs, whatever their health."""
    within: timedelta = WITHIN
    rests: timedelta = timedelta(0)
    """How long the cluster runs on at the end of the step."""
    explain: tuple[str, ...] = ()
    """Objects that ``syncline explain`` explains after the step."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A cluster, a repository and its steps. ``sources`` and ``policy`` are copied into the Application."""

    folder: Path
    name: str
    about: str = ""
    namespace: str = ""
    sources: tuple[Obj, ...] = ()
    policy: Obj = field(default_factory=dict)
    applications: tuple[str, ...] = ()
    """Applications that must be Synced and Healthy at the end of a step; by default the scenario's own."""

    steps: tuple[Step, ...] = (Step("The first commit"),)
    views: tuple[View, ...] = ()
    events: tuple[str, ...] = ()
    """Reasons of Events that are shown with each step."""
    nodes: tuple[NodeShape, ...] = ()
    """Its machines; one without a role if none is named."""
    machine_config: bool = False
    """Whether the cluster has pools master and worker, the machine-config controllers, and agents on its machines."""
    whole: bool = False
    """Whether the folder has no ``story.yaml`` and is the repository's only content, in a folder of its name."""

    def waited_for(self) -> tuple[str, ...]:
        return self.applications or (self.name,)

    def commits(self, step: Step) -> bool:
        """Return whether the step makes a commit."""
        return bool(step.change) or step is self.steps[0]

    def syncs(self, step: Step) -> bool:
        """Return whether the step ends at a sync, finished or running."""
        before = self.steps[self.steps.index(step) - 1] if step is not self.steps[0] else None
        return self.commits(step) or (before is not None and before.ends == Ends.RUNNING)
