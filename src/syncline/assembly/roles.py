"""A role: controllers that run together under one identity, as a frozen value; :func:`start` runs one on a driver.

Live, virtual and remote clusters use the same roles, so a rehearsal shows what will run. ``docs/roles.md`` shows how to
write one.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from syncline.assembly.embedded.install import ensure_objects
from syncline.base.action import Handler
from syncline.base.clock import Clock, VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.access.users import UserInfo
from syncline.cluster.resources.hosted import Hosted
from syncline.control.cache import Cache
from syncline.control.controller import Controller
from syncline.control.executor import HandlersOf, kube_handlers, run_in_place
from syncline.control.informer import Scope
from syncline.control.loop import ControlLoop
from syncline.control.manager import LiveManager, Port
from syncline.control.pools import Pools, PoolSettings
from syncline.control.virtual import LoopActor
from syncline.control.vitals import Complaints
from syncline.kube.client import Transport
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, Obj, ObjectRef

Wake = Callable[[str, ObjectRef], None]
"""Reports an event outside the API for this key of this controller."""
Follow = Callable[[ControlLoop, Wake], Callable[[], None]]
"""Connects events outside the API (machines, processes) to the loop; returns the function that disconnects them."""


LeavesOut = Callable[[GroupKind], bool]


def _nothing(_kind: GroupKind) -> bool:
    return False


def follow_nothing(_loop: ControlLoop, _wake: Wake) -> Callable[[], None]:
    return lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Controllers that share a loop, and what they need."""

    name: str
    """Used in names of tasks and Leases, and in ``syncline controller --roles``."""
    controllers: tuple[Controller[Any], ...]
    user: UserInfo
    """The user on an embedded cluster; elsewhere the kubeconfig decides."""
    manager: str
    """Field manager of the role's writes."""
    handlers: Callable[[Cache, Clock], Mapping[type, Handler]] = lambda _cache, _clock: {}
    """Handlers of the role's actions, beside those of Kubernetes."""
    elsewhere: HandlersOf | None = None
    """Handlers for other clusters; None: there are none."""
    objects: tuple[Obj, ...] = ()
    """Objects that must exist before the role starts, in order."""
    hosted: tuple[Hosted, ...] = ()
    """Kinds that are computed on request, where the API is in this process."""
    work: PoolSettings = field(default_factory=PoolSettings)
    """Limits of blocking work that runs at once."""
    scopes: Mapping[GroupKind, Scope | None] = field(default_factory=dict)
    """Kinds of which only a part may be watched at home, or nothing (None)."""
    follow: Follow = follow_nothing


@dataclass(slots=True)
class Driver(ABC):
    """Provides a loop with time and a connection to an API."""

    clock: Clock
    journal: Journal
    admin: Transport | None = field(default=None, kw_only=True)
    """The transport that installs the role's objects in process; None: the driver's owner installs them."""
    host: Callable[[Hosted], None] | None = field(default=None, kw_only=True)
    """Serves the role's computed kinds (``Registry.host``); None: the API is elsewhere."""
    strict: bool = field(default=False, kw_only=True)
    """Whether a planner's exception ends the run."""
    leaves_out: LeavesOut = field(default=_nothing, kw_only=True)
    """Kinds that controllers of all kinds do not watch there."""
    loop: ControlLoop = field(init=False, repr=False)
    """The loop of the started role."""

    def reached(self, cluster: str) -> None:
        """Report that a joined cluster was fully listed, was lost, or is back."""
        self.loop.reached(cluster)

    @abstractmethod
    def drive(self, role: Role, loop: ControlLoop) -> Wake:
        """Connect the loop to the API; return the function that reports events outside it."""


def loop_of(
    role: Role, clock: Clock, journal: Journal, *, strict: bool = False, leaves_out: LeavesOut = _nothing
) -> ControlLoop:
    """Return the loop of a role; ``strict`` and ``leaves_out`` as in :class:`ControlLoop`."""
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
        scopes=role.scopes,
    )


def gated(role: Role, admits: Callable[[ObjectRef], bool]) -> Role:
    """Return the role, limited to the keys that ``admits`` accepts now."""

    def only(controller: Controller[Any]) -> Controller[Any]:
        observe = controller.observe
        return replace(controller, observe=lambda cache, ref: observe(cache, ref) if admits(ref) else None)

    return replace(role, controllers=tuple(map(only, role.controllers)))


def start(role: Role, driver: Driver) -> Callable[[], None]:
    """Start ``role``; returns the function that disconnects it from events outside the API."""
    if driver.admin is not None:
        run_in_place(ensure_objects(role.objects), driver.admin)
    if driver.host is not None:
        for one in role.hosted:
            driver.host(one)
    loop = loop_of(role, driver.clock, driver.journal, strict=driver.strict, leaves_out=driver.leaves_out)
    driver.loop = loop
    return role.follow(loop, driver.drive(role, loop))


@dataclass(slots=True)
class SimulatedDriver(Driver):
    """Virtual time. The loop is :attr:`actor`; add it to a ``VirtualDriver``."""

    clock: VirtualClock
    transport: Transport
    order: Entropy | None = None
    """Random choice among ready keys; None: the oldest first."""
    actor: LoopActor = field(init=False)

    def drive(self, role: Role, loop: ControlLoop) -> Wake:
        self.actor = LoopActor(loop, self.transport, self.clock, self.order)
        return loop.wake


@dataclass(slots=True)
class LiveDriver(Driver):
    """The wall clock. The driver's owner runs :meth:`run` as a task and cancels it."""

    port: Port
    where: str = "the API"
    """Name of the server in logs."""
    complaints: Complaints = field(default_factory=Complaints)
    draw: Callable[[], float] | None = None
    """Spreads attempts to reach a server with many clients; None: it has few."""
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    manager: LiveManager = field(init=False)

    def drive(self, role: Role, loop: ControlLoop) -> Wake:
        self.manager = LiveManager(
            loop,
            self.port,
            self.clock,
            pools=Pools(role.work),
            where=self.where,
            complaints=self.complaints,
            draw=self.draw,
        )
        self.manager.signs.by_the_clock = self.admin is None
        return self.manager.wake

    def reached(self, cluster: str) -> None:
        self.loop.reached(cluster)
        self.manager.stir()

    async def run(self) -> None:
        """Run until cancelled; :attr:`ready` is set once it watches."""
        await self.manager.run(self.ready.set)
