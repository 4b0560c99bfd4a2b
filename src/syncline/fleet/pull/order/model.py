"""A group as it is observed for its plan: frozen, and without a decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from syncline.fleet.hub.budgets.model import NO_BUDGETS, Fleet
from syncline.fleet.pull.order.annotations import Asked
from syncline.fleet.pull.order.evidence import Facts
from syncline.fleet.pull.order.proven import Proven
from syncline.fleet.pull.order.release import Pins
from syncline.fleet.pull.order.revisions import Looks, Tracked
from syncline.kube.objects import Obj, ObjectRef, dig, name_of


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    """The ManagedCluster of an Application. ``since``: when its availability last changed."""

    name: str
    exists: bool = True
    leaving: bool = False
    accepted: bool = True
    available: bool = True
    since: str = ""
    windows: tuple[tuple[str, str], ...] = ()
    """Its maintenance windows, and those of its sets: who has them, and the text."""
    updating: str = ""
    """Which pools of it are being updated or held; empty: none."""
    machines: bool = False
    """Its agent tells of pools, whether or not they are being updated."""


@dataclass(frozen=True)
class Target:
    """An Application of the group, for its cluster. ``cannot``: why it has no release that could be written."""

    app: Obj = field(repr=False)
    cluster: ClusterSeen
    wave: int = 0
    asked: Asked = field(default_factory=Asked)
    wanted: str = ""
    carried: str = ""
    cannot: str = ""
    unwritten: str = ""
    """What the controller of its set is still to write; empty: nothing that is known."""
    unmade: str = ""
    """Why the hub cannot render its content; empty: it can, or its cluster renders."""
    aside: str = ""
    """Why it does not count: nothing waits for it; empty: it counts."""
    pins: Pins = field(default_factory=Pins)
    manifests: tuple[Obj, ...] = field(default=(), repr=False)
    """What its cluster gets with the wanted release."""
    revisions: tuple[Mapping[str, str], ...] = ()
    work: Obj | None = field(default=None, repr=False)
    facts: Facts = field(default_factory=Facts)
    proven: tuple[Proven, ...] = ()
    needs: str = ""
    """What it depends on that is not ready; empty: all is."""
    depends: bool = False
    rolling: bool = False
    """Its wave is a step of a RollingSync."""
    ordered: bool = False
    """The order of its group is in force."""

    @property
    def name(self) -> str:
        return name_of(self.app)

    @property
    def key(self) -> tuple[str, str]:
        return self.cluster.name, self.name

    @property
    def order(self) -> tuple[int, str, str]:
        return self.wave, self.cluster.name, self.name

    @property
    def operation(self) -> bool:
        """Whether a sync is requested on the hub."""
        return "operation" in self.app


@dataclass(frozen=True)
class GroupSeen:
    """A group. ``force``: why its order is in force, empty: it is not."""

    ref: ObjectRef
    owner: Obj | None = field(repr=False)
    """The ApplicationSet, or the stand-alone Application; None: it is gone."""
    rollout: Obj | None = field(repr=False)
    force: str = ""
    targets: tuple[Target, ...] = ()
    template: Mapping[str, Any] = field(default_factory=dict, repr=False)
    fleet: Fleet = field(default=NO_BUDGETS, repr=False)
    looks: Looks | None = None
    """What is known of revisions; None: they are left to the clusters."""
    tracked: tuple[Tracked, ...] = ()
    poll_s: float = 0.0
    refreshed: tuple[Obj, ...] = field(default=(), repr=False)
    """Applications of which a refresh is asked."""
    unlisted: tuple[str, ...] = ()

    @cached_property
    def spec(self) -> Obj:
        return dig(self.rollout or {}, "spec") or {}

    @cached_property
    def status(self) -> Obj:
        return dig(self.rollout or {}, "status") or {}

    @cached_property
    def entries(self) -> Mapping[tuple[str, str], Obj]:
        """The entries of ``status.clusters`` by cluster and Application."""
        found = self.status.get("clusters") or ()
        return {(str(one.get("cluster")), str(one.get("application"))): one for one in found}
