"""A role: controllers that run together under one identity, as a frozen value; :func:`start` runs one on a driver.

Live, virtual and remote clusters take the same roles: what a rehearsal shows is what will run. ``docs/roles.md`` shows
how to write one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from syncline.assembly.embedded.install import ensure_objects
from syncline.base.action import Handler
from syncline.base.clock import Clock, VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.access.users import UserInfo
from syncline.control.cache import Cache
from syncline.control.controller import Controller
from syncline.control.executor import HandlersOf, kube_handlers, run_in_place
from syncline.control.loop import ControlLoop
from syncline.control.manager import LiveManager, Port
from syncline.control.pools import Pools, PoolSettings
from syncline.control.virtual import LoopActor
from syncline.control.vitals import Complaints
from syncline.kube.client import Transport
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, Obj, ObjectRef

__all__ = ["Driver", "Follow", "LiveDriver", "Role", "SimulatedDriver", "Wake", "follow_nothing", "gated", "start"]

Wake = Callable[[str, ObjectRef], None]
"""Something outside the API concerns this key of this controller."""
Follow = Callable[[ControlLoop, Wake], Callable[[], None]]
"""Connects what happens outside the API (machines, processes) to the loop; what it returns ends that."""


LeavesOut = Callable[[GroupKind], bool]


def _nothing(_kind: GroupKind) -> bool:
    return False


def follow_nothing(_loop: ControlLoop, _wake: Wake) -> Callable[[], None]:
    return lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Controllers that share a loop, and what they need."""

    name: str
    """In names of tasks and Leases, and in ``syncline controller --roles``."""
    controllers: tuple[Controller[Any], ...]
    user: UserInfo
    """Who they are on an embedded cluster; elsewhere the kubeconfig says."""
    manager: str
    """Field manager of what they write."""
    handlers: Callable[[Cache, Clock], Mapping[type, Handler]] = lambda _cache, _clock: {}
    """Of their actions, beside those of Kubernetes."""
    elsewhere: HandlersOf | None = None
    """The same for other clusters; None: there are none."""
    objects: tuple[Obj, ...] = ()
    """What has to be on the cluster before they begin, in order."""
    work: PoolSettings = field(default_factory=PoolSettings)
    """How much blocking work runs at once, and whose."""
    follow: Follow = follow_nothing


@dataclass(slots=True)
class Driver:
    """Gives a loop the time and a way to an API."""

    clock: Clock
    journal: Journal
    admin: Transport | None = field(default=None, kw_only=True)
    """Who installs what the role needs, in place; None: the driver's owner does."""
    strict: bool = field(default=False, kw_only=True)
    """Whether a planner's exception ends the run."""
    leaves_out: LeavesOut = field(default=_nothing, kw_only=True)
    """Kinds that controllers which watch every kind do not watch there."""
    loop: ControlLoop = field(init=False, repr=False)
    """Of the role that was started."""

    def reached(self, cluster: str) -> None:
        """A cluster that the loop has joined was seen whole, was lost, or is back."""
        self.loop.reached(cluster)

    def drive(self, role: Role, loop: ControlLoop) -> Wake:
        raise NotImplementedError


def loop_of(
    role: Role, clock: Clock, journal: Journal, *, strict: bool = False, leaves_out: LeavesOut = _nothing
) -> ControlLoop:
    """The loop of a role; ``strict`` and ``leaves_out`` as in :class:`ControlLoop`."""
    mapper = Mapper()
    cache = Cache(mapper)
    return ControlLoop(
        role.controllers,
        mapper=mapper,
        handlers={**kube_handlers(mapper, clock, role.manager), **role.handlers(cache, clock)},
        elsewhere=role.elsewhere,
        clock=clock,
        journal=journal,
        cache=cache,
        strict=strict,
        leaves_out=leaves_out,
    )


def gated(role: Role, admits: Callable[[ObjectRef], bool]) -> Role:
    """The same role, working only on the keys that ``admits`` names now."""

    def only(controller: Controller[Any]) -> Controller[Any]:
        observe = controller.observe
        return replace(controller, observe=lambda cache, ref: observe(cache, ref) if admits(ref) else None)

    return replace(role, controllers=tuple(map(only, role.controllers)))


def start(role: Role, driver: Driver) -> Callable[[], None]:
    """Begin to run ``role``; what it returns disconnects it from what it follows outside the API."""
    if driver.admin is not None:
        run_in_place(ensure_objects(role.objects), driver.admin)
    loop = loop_of(role, driver.clock, driver.journal, strict=driver.strict, leaves_out=driver.leaves_out)
    driver.loop = loop
    return role.follow(loop, driver.drive(role, loop))


@dataclass(slots=True)
class SimulatedDriver(Driver):
    """Virtual time. The loop is :attr:`actor`, to be added to a ``VirtualDriver``."""

    clock: VirtualClock
    transport: Transport
    order: Entropy | None = None
    """Draws among keys that are ready; None: the oldest first."""
    actor: LoopActor = field(init=False)

    def drive(self, role: Role, loop: ControlLoop) -> Wake:
        self.actor = LoopActor(loop, self.transport, self.clock, self.order)
        return loop.wake


@dataclass(slots=True)
class LiveDriver(Driver):
    """The wall clock. :meth:`run` is to be a task of the driver's owner, who cancels it."""

    port: Port
    where: str = "the API"
    """Names the server in what is logged."""
    complaints: Complaints = field(default_factory=Complaints)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    manager: LiveManager = field(init=False)

    def drive(self, role: Role, loop: ControlLoop) -> Wake:
        self.manager = LiveManager(
            loop, self.port, self.clock, pools=Pools(role.work), where=self.where, complaints=self.complaints
        )
        self.manager.signs.by_the_clock = self.admin is None
        return self.manager.wake

    def reached(self, cluster: str) -> None:
        self.loop.reached(cluster)
        self.manager.stir()

    async def run(self) -> None:
        """Until cancelled; :attr:`ready` is set once it watches."""
        await self.manager.run(self.ready.set)
