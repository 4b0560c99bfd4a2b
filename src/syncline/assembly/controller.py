"""Runs roles as a separate process against any Kubernetes API over HTTP: the GitOps controllers, those of machines.

Started by ``syncline controller``; :data:`ROLES` lists the roles. Several replicas share the keys of a role by Leases
(``control/leader.py``): each watches everything, so that a takeover takes seconds, and works on the shards that it
holds. At SIGTERM it starts nothing new, lets running reconciles end, and releases its Leases. It never runs a cluster.

It waits for an API that is unreachable, not ready, or hidden behind a proxy, at the start and later. Requests go
through connections with a fence: nothing is written once the Leases were not renewed in time, not even by a process
that was stopped in the middle of a request and continues after a takeover.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from syncline.assembly.destinations import is_unmanaged
from syncline.assembly.embedded.install import install_missing, not_established
from syncline.assembly.endpoints.gitops import role_endpoints
from syncline.assembly.gitops import GitOpsSettings, foreign_objects
from syncline.assembly.jumps import tell_jumps
from syncline.assembly.ports import HttpPort
from syncline.assembly.rights import Rights, gitops_user
from syncline.assembly.roles import LiveDriver, Role, gated, start
from syncline.assembly.running import Ports, running_gitops, source_reader
from syncline.assembly.settings import HubWebhookSettings
from syncline.assembly.sources.hydrating import HydratingReader
from syncline.base.clock import Clock, SystemClock, steady_now
from syncline.base.journal import Journal
from syncline.cluster.access.users import UserInfo
from syncline.control.controller import Controller
from syncline.control.leader import LeaderSettings, Share, release_all, shard_of, share_round
from syncline.control.manager import LiveManager, drive, wait_s
from syncline.control.vitals import Complaints, Health, LeaseSigns
from syncline.fleet.spoke.klusterlet.model import Agents
from syncline.kube.errors import ApiError, Forbidden, Unanswered, Unauthorized, Unavailable
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import GroupKind, Obj, ObjectRef, ref_of
from syncline.kube.transport.kubeconfig import ClusterAccess

__all__ = ["ROLES", "ControllerSettings", "HttpPort", "Replica", "StartError", "serve_controller"]

log = logging.getLogger("syncline.assembly")

ESTABLISH_S = 60.0
"""Seconds after which a CRD that is not served is reported."""
LOOK_S = 0.1
"""Seconds between checks whether reconciles have ended or CRDs are served."""


class StartError(Exception):
    """The controllers cannot run there; one sentence with the fix."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """``leader`` None: this process is the only one (``--no-leader-elect``)."""

    gitops: GitOpsSettings
    leader: LeaderSettings | None = None
    """Leases of the GitOps controllers; every other role has one Lease, and one replica does all its work."""
    roles: tuple[str, ...] = ("gitops",)
    """Names in :data:`ROLES`, in its order. The first one serves the endpoints."""
    grace_s: float = 20.0
    """Seconds that running reconciles may take to end after the stop signal."""
    pull_variant: str = ""
    """``basic`` or ``acm``: whose rules the pull model follows; empty: by namespace."""
    auto_approve_users: tuple[str, ...] = ()
    """Role hub: users whose first requests are approved, and whose clusters are accepted, without people."""
    manifest_limit: int = 512_000
    """Role hub: bytes of the manifests of a ManifestWork."""
    hub_webhooks: HubWebhookSettings | None = None
    """Role hub: where its webhooks listen; None: the API server asks no webhook."""
    agents: Agents | None = None
    """Who runs the agents of Klusterlets; needed by that role."""
    patient: bool = False
    """Whether a refusal at the start (no credentials, rights or CRDs) is retried instead of raised."""
    _reader: list[HydratingReader] = field(default_factory=list, init=False, repr=False, compare=False)

    def reader(self) -> HydratingReader:
        """Return the reader of repositories, which the roles of this process share."""
        if not self._reader:
            self._reader.append(source_reader(self.gitops))
        return self._reader[0]


@dataclass(slots=True)
class Gate:
    """The shards that this replica may work on now."""

    shards: int = 1
    open: frozenset[int] = frozenset()

    def admits(self, ref: ObjectRef) -> bool:
        return shard_of(ref, self.shards) in self.open


@dataclass(slots=True)
class Replica:
    """One running process: its connection to the API, its loop, its share. ``ready`` is set once it watches.

    ``port`` is for Leases and webhooks: its own connections, without a fence, so that no renewal waits behind other
    requests.
    """

    settings: ControllerSettings
    served: Served
    leader: LeaderSettings | None
    access: ClusterAccess
    port: HttpPort
    clock: Clock
    journal: Journal
    gate: Gate = field(default_factory=Gate)
    share: Share = field(default_factory=Share)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    manager: LiveManager | None = None
    ports: dict[tuple[str, int], int] = field(default_factory=dict)
    """Ports of the endpoints by requested address."""
    leases: LeaseSigns | None = None
    starting: str = "the controllers have not begun yet"
    """Why it does not watch yet; empty once its objects are installed."""
    dropping: bool = False
    """The share was lost, and running work is being stopped."""
    ending: bool = False
    complaints: Complaints = field(default_factory=Complaints)
    all: Sequence[Replica] = ()
    """All replicas of this process, one per role."""

    # -- queries -----------------------------------------------------------------------------------------------

    def fence(self) -> str:
        """Return why nothing may be written now, or ""; checked before the first byte of each writing request. A
        replica without shards works on no shared keys; work that it started before is blocked here until all of it has
        stopped."""
        leader = self.leader
        if leader is None:
            return ""
        until = self.share.valid_until(leader)
        if self.dropping or (until is not None and self._steady() >= until):
            return (
                f"the Leases of {leader.identity} were not renewed for {leader.renew_deadline_s:g} s, others may work"
            )
        return ""

    def health(self) -> Health:
        owed = self.clock.owed.total_seconds() if isinstance(self.clock, SystemClock) else 0.0
        note = f"the machine's clock jumped; {owed:+.0f} s of it are still to be followed" if abs(owed) >= 1 else ""
        if self.manager is None or self.starting:
            return Health((), (self.starting,), (note,) if note else ())
        return self.manager.health(self.leases, note)

    def health_of_all(self) -> Health:
        """Return the health of all roles of this process."""
        every = [each.health() for each in self.all]
        stuck = [problem for each in every for problem in each.stuck]
        unready = [problem for each in every for problem in each.unready]
        notes = [note for each in every for note in each.notes]
        return Health(*(tuple(dict.fromkeys(part)) for part in (stuck, unready, notes)))

    def _steady(self) -> datetime:
        return steady_now(self.clock)

    # -- work --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch and work until cancelled; after losing the share by force, restart with an empty cache."""
        while True:
            lost = asyncio.Event()
            running = asyncio.create_task(self._work(lost), name=self.served.name)
            losing = asyncio.create_task(lost.wait(), name=f"{self.served.name} lost its share")
            try:
                await asyncio.wait((running, losing), return_when=asyncio.FIRST_COMPLETED)
                if running.done():
                    running.result()
                log.warning("the Leases could not be renewed in time: requests in flight are dropped, beginning again")
            finally:
                self.gate.open = frozenset()
                for task in (running, losing):
                    task.cancel()
                await asyncio.gather(running, losing, return_exceptions=True)
                self.dropping = False

    async def _work(self, lost: asyncio.Event) -> None:
        work = HttpPort(acting(self.access, self.served), self.fence)

        def driver(_user: UserInfo) -> LiveDriver:
            where = f"the API at {self.access.server}"
            return LiveDriver(
                self.clock,
                self.journal,
                work,
                where=where,
                complaints=self.complaints,
                ready=self.ready,
                leaves_out=is_unmanaged,
            )

        async with (
            contextlib.AsyncExitStack() as closing,
            self.served.running(self, driver) as (running, self.ports),
        ):
            closing.push_async_callback(work.close)
            self.manager = running.manager
            await self._install()
            async with asyncio.TaskGroup() as group:
                group.create_task(running.run(), name=f"{self.served.name} loop")
                if self is self.all[0]:
                    group.create_task(self._tell_jumps(), name="clock")
                if self.leader is None:
                    self._open(frozenset({0}))
                else:
                    group.create_task(self._keep_share(self.leader, lost), name=f"{self.served.name} leases")

    async def _tell_jumps(self) -> None:
        leader = self.leader
        namespace = self.settings.gitops.application.control_namespace
        await tell_jumps(self.clock, self.port, namespace, leader.identity if leader is not None else "")

    async def _install(self) -> None:
        """Create the missing objects that the controllers need. Raises :class:`StartError` unless ``patient``."""
        for attempt in range(1, 1_000_000):
            if not self.starting:
                return
            try:
                await self._installed()
                self.starting = ""
            except (ApiError, StartError) as error:
                refused = error if isinstance(error, ApiError) else Unavailable(str(error))
                report = error if isinstance(error, StartError) else self._start_error(refused)
                if not self.settings.patient and not _may_pass(error):
                    raise report from error
                self.starting = str(report)
                if self.complaints.due(refused, self._steady()):
                    log.warning("%s; trying again", report)
                await asyncio.sleep(wait_s(attempt, refused))

    async def _installed(self) -> None:
        """Install as the kubeconfig's user, also where another user acts later."""
        own = HttpPort(self.access)
        try:
            await _installed(own, self.served.objects, self.clock, self.access.server)
        finally:
            await own.close()

    def _start_error(self, error: ApiError) -> StartError:
        server = self.access.server
        return StartError(
            f"{server}: what the controllers need is missing and cannot be installed: {error}; "
            f"apply deploy/{self.served.rights} with the rights of an administrator"
            if not _may_pass(error)
            else f"{server}: what the controllers need cannot be read: {error}"
        )

    # -- shares ------------------------------------------------------------------------------------------------

    async def _keep_share(self, leader: LeaderSettings, lost: asyncio.Event) -> None:
        self.gate.shards = leader.shards
        while True:
            before, why = self.gate.open, self.share.why
            began = self._steady()
            try:
                async with asyncio.timeout(leader.renew_deadline_s / 2):
                    steps = share_round(self.share, leader, began, self._busy_shards(), stamp=self.clock.now())
                    self.share = await drive(steps, self.port)
                    trouble, away = self.share.trouble, self.share.away
            except TimeoutError:
                trouble, away = f"Leases cannot be renewed: {self.access.server} gave no answer in time", True
            self._note_round(trouble, Unanswered(trouble) if away else Unavailable(trouble))
            if self.share.why != why and not trouble:
                log.info("%s", self.share.why)
            working = self.share.working(leader, self._steady())
            expired = frozenset(self.share.held) - working - self.share.leaving
            if expired or (before - working - self.share.leaving):
                self.share, self.dropping = self.share.lost(), True
                lost.set()
                return
            await self._take_up(working, leader)
            await asyncio.sleep(leader.retry_s)

    async def _take_up(self, working: frozenset[int], leader: LeaderSettings) -> None:
        """Open the gate for new shards after reading their objects again: a standby with a late watch would repeat what
        its predecessor has done and recorded. If the read is late, they stay closed for another round."""
        kept = working & self.gate.open
        if working != kept and self.manager is not None:
            self._open(kept)
            try:
                async with asyncio.timeout(leader.retry_s):
                    for kind in sorted({controller.kind for controller in self._gated()}):
                        await self.manager.watches.look_again(kind)
            except TimeoutError:
                return
        self._open(working)

    def _note_round(self, trouble: str, cause: ApiError) -> None:
        now, known = self._steady(), self.leases
        since = (known.since if known is not None and known.trouble else None) or now
        self.leases = LeaseSigns(now, trouble, since if trouble else None, self.share.vacant_since, self.share.why)
        if trouble and self.complaints.due(cause, now):
            log.warning("%s; trying again", trouble)

    def _open(self, working: frozenset[int]) -> None:
        if self.ending:
            return
        gained = working - self.gate.open
        self.gate.open = working
        for controller in self._gated() if gained else ():
            assert self.manager is not None, "what is gated runs"
            for obj in self.manager.loop.cache.objects(controller.kind):
                if shard_of(ref_of(obj), self.gate.shards) in gained:
                    self.manager.wake(controller.name, ref_of(obj))

    def _gated(self) -> list[Controller[Any]]:
        """Return the controllers whose keys are sharded."""
        every = [] if self.manager is None else self.manager.loop.controllers.values()
        return [each for each in every if self.served.shared is None or each.kind in self.served.shared]

    def _busy_shards(self) -> frozenset[int]:
        busy = self.manager.loop.queue.busy() if self.manager is not None else []
        return frozenset(shard_of(key.ref, self.gate.shards) for key in busy)

    # -- the end -----------------------------------------------------------------------------------------------

    async def hand_over(self) -> None:
        """Start nothing new, and wait until running work has ended (at most ``grace_s``)."""
        self.ending, self.gate.open = True, frozenset()
        until = self._steady() + timedelta(seconds=self.settings.grace_s)
        while self._busy_shards() and self._steady() < until:
            await asyncio.sleep(LOOK_S)

    async def give_back(self) -> None:
        """Release the Leases after the work has stopped, so that others take over before they expire."""
        if self.leader is not None:
            leader, now = self.leader, self._steady()
            await drive(release_all(self.share, leader, now, stamp=self.clock.now()), self.port)


Running = contextlib.AbstractAsyncContextManager[tuple[LiveDriver, Ports]]


@dataclass(frozen=True, slots=True)
class Served:
    """A role as this process runs it. ``rights``: the file in ``deploy/`` with its RBAC."""

    name: str
    rights: str
    objects: tuple[Obj, ...]
    """Objects installed if missing."""
    running: Callable[[Replica, Callable[[UserInfo], LiveDriver]], Running]
    shared: frozenset[GroupKind] | None = None
    """The kinds whose controllers are sharded by Leases; None: all of the role."""
    user: str = ""
    """Who acts, if not the kubeconfig's user, who impersonates this one and only installs."""


def _gitops(settings: ControllerSettings) -> Served:
    def running(replica: Replica, driver_of: Callable[[UserInfo], LiveDriver]) -> Running:
        return running_gitops(
            settings.gitops,
            driver_of,
            lambda access: HttpPort(access, replica.fence),
            inner=replica.port,
            admits=replica.gate.admits,
            health=replica.health_of_all,
            reader=settings.reader(),
        )

    namespace = settings.gitops.application.control_namespace
    objects = tuple(foreign_objects(namespace))
    if settings.gitops.rights is Rights.MANAGED_BY:
        user = gitops_user(namespace, Rights.MANAGED_BY).name
        return Served("gitops", "managed-by.yaml", objects, running, SHARED, user)
    return Served("gitops", "controller.yaml", objects, running, SHARED)


def _machineconfig(settings: ControllerSettings) -> Served:
    from syncline.assembly.machines.ansible import with_playbooks
    from syncline.assembly.machines.objects import foreign_machineconfig_objects
    from syncline.assembly.machines.role import MachineConfigSettings, machineconfig_role
    from syncline.assembly.sources.playbooks import Playbooks

    reader, mine = settings.reader(), MachineConfigSettings(settings.gitops.application.control_namespace)
    role = machineconfig_role(mine, objects=foreign_machineconfig_objects(mine))
    return served_role(with_playbooks(role, mine, Playbooks(reader.sources), learner=reader), settings)


def _hub(settings: ControllerSettings) -> Served:
    from syncline.assembly.fleet.hub import HubSettings, hub_role
    from syncline.assembly.fleet.objects import foreign_hub_objects
    from syncline.assembly.fleet.webhookserver import WITHOUT_WEBHOOKS, WebhookServer

    namespace = settings.gitops.application.control_namespace
    mine = HubSettings(namespace, settings.auto_approve_users, settings.manifest_limit)
    found, hooks = WebhookServer(mine), settings.hub_webhooks
    role = hub_role(mine, objects=foreign_hub_objects(), reach=lambda: found.reach)
    served = served_role(replace(role, follow=found.follow), settings)

    @contextlib.asynccontextmanager
    async def running(
        replica: Replica, driver_of: Callable[[UserInfo], LiveDriver]
    ) -> AsyncIterator[tuple[LiveDriver, Ports]]:
        if hooks is None:
            log.warning("%s", WITHOUT_WEBHOOKS)
        async with contextlib.AsyncExitStack() as stack:
            listens = found.serving(hooks, replica.port, replica.clock) if hooks is not None else None
            more = await stack.enter_async_context(listens) if listens is not None else {}
            driver, ports = await stack.enter_async_context(served.running(replica, driver_of))
            yield driver, {**ports, **more}

    return replace(served, running=running)


def _pull(settings: ControllerSettings) -> Served:
    from syncline.assembly.fleet.pull import foreign_pull_objects, pull_role, pull_settings

    application = settings.gitops.application
    mine = pull_settings(
        application.control_namespace, settings.pull_variant, settings.manifest_limit, application.poll_s
    )
    reader, objects = settings.reader(), tuple(foreign_pull_objects(mine))
    role = pull_role(mine, reader=reader, renderer=reader, objects=objects)
    return served_role(role, settings)


def _patterns(settings: ControllerSettings) -> Served:
    from syncline.assembly.patterns.checkouts import Checkouts
    from syncline.assembly.patterns.role import PatternSettings, foreign_pattern_objects, patterns_role

    reader, mine = settings.reader(), PatternSettings(settings.gitops.application.control_namespace)
    objects = tuple(foreign_pattern_objects())
    role = patterns_role(mine, Checkouts(reader.sources), None, learner=reader, objects=objects)
    return served_role(role, settings)


def _policies(settings: ControllerSettings) -> Served:
    from syncline.assembly.fleet.policies import foreign_policy_objects, policies_role

    return served_role(policies_role(objects=tuple(foreign_policy_objects())), settings)


def _klusterlet(settings: ControllerSettings) -> Served:
    from syncline.assembly.fleet.klusterlet import foreign_klusterlet_objects, klusterlet_role

    assert settings.agents is not None, "this role comes with who runs its agents"
    return served_role(klusterlet_role(settings.agents, objects=foreign_klusterlet_objects()), settings)


def acting(access: ClusterAccess, served: Served) -> ClusterAccess:
    """Return the access of who acts: the user that a role impersonates, or the kubeconfig's own."""
    return replace(access, impersonate_user=served.user, impersonate_groups=()) if served.user else access


SHARED = frozenset({APPLICATION.group_kind, APPLICATION_SET.group_kind})
ROLES: Mapping[str, Callable[[ControllerSettings], Served]] = {
    "gitops": _gitops,
    "machineconfig": _machineconfig,
    "hub": _hub,
    "pull": _pull,
    "policies": _policies,
    "patterns": _patterns,
    "klusterlet": _klusterlet,
}


def served_role(role: Role, settings: ControllerSettings) -> Served:
    """Return any role, run by one replica; the file of its RBAC has its name."""

    @contextlib.asynccontextmanager
    async def running(
        replica: Replica, driver_of: Callable[[UserInfo], LiveDriver]
    ) -> AsyncIterator[tuple[LiveDriver, Ports]]:
        driver = driver_of(role.user)
        stop = start(gated(role, replica.gate.admits), driver)
        try:
            endpoints = settings.gitops if replica is replica.all[0] else replace(settings.gitops, metrics_listen=None)
            async with role_endpoints(endpoints, driver.manager, replica.health_of_all) as ports:
                yield driver, ports
        finally:
            stop()

    return Served(role.name, f"{role.name}.yaml", role.objects, running)


async def serve_controller(
    access: ClusterAccess,
    settings: ControllerSettings,
    clock: Clock,
    stop: asyncio.Event,
    started: Callable[[Replica], None] = lambda _replica: None,
    made: Callable[[Replica], None] = lambda _replica: None,
) -> None:
    """Install missing objects, work until ``stop``, hand over. ``made`` is called for each role, ``started`` with the
    first one when all watch. Raises :class:`StartError` and ListenError."""
    replicas: list[Replica] = []
    for name in settings.roles:
        served, leader = ROLES[name](settings), settings.leader
        if leader is not None and served.shared is None:
            leader = replace(leader, name=f"syncline-{name}-controller", shards=1, node="")
        journal = Journal(limit=10_000)
        port = HttpPort(acting(access, served))
        replicas.append(Replica(settings, served, leader, access, port, clock, journal, all=replicas))
    for replica in replicas:
        made(replica)

    async def tell() -> None:
        for replica in replicas:
            await replica.ready.wait()
        started(replicas[0])

    telling = asyncio.create_task(tell(), name="ready")
    serving = [asyncio.create_task(_serve(replica, stop), name=replica.served.name) for replica in replicas]
    try:
        await asyncio.wait(serving, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in (*serving, telling):
            task.cancel()
        await asyncio.gather(*serving, telling, return_exceptions=True)
    for task in serving:
        if not task.cancelled():
            task.result()


async def _serve(replica: Replica, stop: asyncio.Event) -> None:
    try:
        working = asyncio.create_task(replica.run(), name=f"{replica.served.name} replica")
        stopping = asyncio.create_task(stop.wait(), name=f"{replica.served.name} stop")
        try:
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            await replica.hand_over()
        finally:
            for task in (working, stopping):
                task.cancel()
            await asyncio.gather(working, stopping, return_exceptions=True)
            with contextlib.suppress(ApiError):
                await replica.give_back()
    finally:
        await replica.port.close()


def _may_pass(error: ApiError | StartError) -> bool:
    """Return whether a retry may succeed without any change by a user."""
    return isinstance(error, ApiError) and not isinstance(error, Unauthorized | Forbidden)


async def _installed(port: HttpPort, objects: Sequence[Obj], clock: Clock, server: str) -> None:
    """Create missing objects and wait until they are served. Raises ApiError, and StartError after a minute."""
    definitions = [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]
    until = steady_now(clock) + timedelta(seconds=ESTABLISH_S)
    rest = await drive(install_missing(objects), port)
    while rest or (waiting := await drive(not_established(definitions), port)):
        if steady_now(clock) > until:
            names = ", ".join(str(obj["kind"]) for obj in rest) or ", ".join(waiting)
            raise StartError(
                f"{server} does not serve {names} after {ESTABLISH_S:g} s; check its CustomResourceDefinitions"
            )
        await asyncio.sleep(LOOK_S)
        rest = await drive(install_missing(rest), port) if rest else []
