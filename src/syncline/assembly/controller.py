"""The GitOps controllers as a process of their own, against any Kubernetes API over HTTP.

Started by ``syncline controller``. Several replicas share the Applications by Leases (``control/leader.py``): each
watches everything, so that taking over is a matter of seconds, and works on the shards that it holds. Told to stop, it
begins nothing new, lets the passes in flight end, and gives its Leases back. It never runs a cluster and imports none.

An API that is away, not there yet, or hidden behind something that answers in its place is waited for, at the start and
later. Work goes through connections with a fence: nothing is written once the Leases were not renewed in time, also
not by a process that was stopped in the middle of a request and goes on when others have taken over.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from syncline.assembly.destinations import is_unmanaged
from syncline.assembly.embedded.install import install_missing, not_established
from syncline.assembly.gitops import GitOpsSettings, foreign_objects
from syncline.assembly.jumps import tell_jumps
from syncline.assembly.ports import HttpPort
from syncline.assembly.roles import LiveDriver, Role
from syncline.assembly.running import running_gitops
from syncline.base.clock import Clock, SystemClock, steady_now
from syncline.base.journal import Journal
from syncline.control.leader import LeaderSettings, Share, release_all, shard_of, share_round
from syncline.control.manager import LiveManager, drive, wait_s
from syncline.control.vitals import Complaints, Health, LeaseSigns
from syncline.kube.errors import ApiError, Forbidden, Unanswered, Unauthorized, Unavailable
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef, ref_of
from syncline.kube.transport.kubeconfig import ClusterAccess

__all__ = ["ControllerSettings", "Gate", "HttpPort", "Replica", "StartError", "serve_controller"]

log = logging.getLogger("syncline.assembly")

ESTABLISH_S = 60.0
"""A definition that is not served after this long is told of."""
LOOK_S = 0.1
"""Between looks at whether passes have ended or definitions are served."""


class StartError(Exception):
    """Why the controllers cannot run there, in one sentence with the fix."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """``leader`` None: this process is the only one, and says so by ``--no-leader-elect``."""

    gitops: GitOpsSettings
    leader: LeaderSettings | None = None
    grace_s: float = 20.0
    """How long passes in flight may take to end after the signal to stop."""
    patient: bool = False
    """Whether a refusal at the start (no credentials, no rights, no definitions) is tried again instead of raised."""


@dataclass(slots=True)
class Gate:
    """Which Applications this replica may work on now."""

    shards: int = 1
    open: frozenset[int] = frozenset()

    def admits(self, ref: ObjectRef) -> bool:
        return shard_of(ref, self.shards) in self.open


@dataclass(slots=True)
class Replica:
    """One running process: its way to the API, its loop, its share. ``ready`` is set once it watches.

    ``port`` is for Leases, webhooks and what is installed: it has connections of its own, so that no renewal waits
    behind the work, and no fence.
    """

    settings: ControllerSettings
    access: ClusterAccess
    port: HttpPort
    clock: Clock
    journal: Journal
    gate: Gate = field(default_factory=Gate)
    share: Share = field(default_factory=Share)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    manager: LiveManager | None = None
    ports: dict[tuple[str, int], int] = field(default_factory=dict)
    """Where the faces listen, by the address that was asked for."""
    leases: LeaseSigns | None = None
    starting: str = "the controllers have not begun yet"
    """Why it does not watch yet; empty once what it needs is installed."""
    dropping: bool = False
    """The share was lost, and the work is being dropped."""
    ending: bool = False
    complaints: Complaints = field(default_factory=Complaints)

    # -- what others ask ---------------------------------------------------------------------------------------

    def fence(self) -> str:
        """Why nothing may be written now, empty while it may: asked before the first byte of each writing request.

        A replica that holds nothing works on nothing that is shared out; what was begun while it held something is
        stopped here, until all of it is dropped.
        """
        leader = self.settings.leader
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

    def _steady(self) -> datetime:
        return steady_now(self.clock)

    # -- work --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch and work until cancelled; begins again with an empty cache when the share was lost by force."""
        while True:
            lost = asyncio.Event()
            running = asyncio.create_task(self._work(lost), name="gitops")
            losing = asyncio.create_task(lost.wait(), name="gitops lost its share")
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
        work = HttpPort(self.access, self.fence)

        def driver(role: Role) -> LiveDriver:
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
            running_gitops(
                self.settings.gitops,
                self.clock,
                driver,
                lambda access: HttpPort(access, self.fence),
                inner=self.port,
                admits=self.gate.admits,
                health=self.health,
            ) as (running, self.ports),
        ):
            closing.push_async_callback(work.close)
            self.manager = running.manager
            await self._install()
            async with asyncio.TaskGroup() as group:
                group.create_task(running.run(), name="gitops loop")
                group.create_task(self._tell_jumps(), name="gitops clock")
                if self.settings.leader is None:
                    self._open(frozenset({0}))
                else:
                    group.create_task(self._keep_share(self.settings.leader, lost), name="gitops leases")

    async def _tell_jumps(self) -> None:
        leader = self.settings.leader
        namespace = self.settings.gitops.application.control_namespace
        await tell_jumps(self.clock, self.port, namespace, leader.identity if leader is not None else "")

    async def _install(self) -> None:
        """What the controllers need and the cluster has not. Raises :class:`StartError` unless ``patient``."""
        objects = foreign_objects(self.settings.gitops.application.control_namespace)
        for attempt in range(1, 1_000_000):
            if not self.starting:
                return
            try:
                await _installed(self.port, objects, self.clock, self.access.server)
                self.starting = ""
            except (ApiError, StartError) as error:
                refused = error if isinstance(error, ApiError) else Unavailable(str(error))
                report = error if isinstance(error, StartError) else _start_error(self.access.server, refused)
                if not self.settings.patient and not _may_pass(error):
                    raise report from error
                self.starting = str(report)
                if self.complaints.due(refused, self._steady()):
                    log.warning("%s; trying again", report)
                await asyncio.sleep(wait_s(attempt, refused))

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
        """Open the gate for what was gained once the Applications were read again: a standby whose watch is late would
        repeat what its predecessor has done and recorded. What cannot be read in time stays closed for a round more."""
        kept = working & self.gate.open
        if working != kept and self.manager is not None:
            self._open(kept)
            try:
                async with asyncio.timeout(leader.retry_s):
                    await self.manager.look_again(APPLICATION.group_kind)
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
        if gained and self.manager is not None:
            for app in self.manager.loop.cache.objects(APPLICATION.group_kind):
                if shard_of(ref_of(app), self.gate.shards) in gained:
                    self.manager.wake("application", ref_of(app))

    def _busy_shards(self) -> frozenset[int]:
        busy = self.manager.loop.queue.busy() if self.manager is not None else []
        return frozenset(shard_of(key.ref, self.gate.shards) for key in busy)

    # -- the end -----------------------------------------------------------------------------------------------

    async def hand_over(self) -> None:
        """Begin nothing new, and wait until what runs has ended (bounded by ``grace_s``)."""
        self.ending, self.gate.open = True, frozenset()
        until = self._steady() + timedelta(seconds=self.settings.grace_s)
        while self._busy_shards() and self._steady() < until:
            await asyncio.sleep(LOOK_S)

    async def give_back(self) -> None:
        """After the work has stopped: nobody shall have to wait for our Leases to expire."""
        if self.settings.leader is not None:
            leader, now = self.settings.leader, self._steady()
            await drive(release_all(self.share, leader, now, stamp=self.clock.now()), self.port)


async def serve_controller(
    access: ClusterAccess,
    settings: ControllerSettings,
    clock: Clock,
    stop: asyncio.Event,
    started: Callable[[Replica], None] = lambda _replica: None,
    made: Callable[[Replica], None] = lambda _replica: None,
) -> None:
    """Install what is missing, work until ``stop``, hand over. Raises :class:`StartError` and ListenError."""
    port = HttpPort(access)
    replica = Replica(settings, access, port, clock, Journal(limit=10_000))
    made(replica)
    try:
        working = asyncio.create_task(replica.run(), name="gitops replica")
        stopping = asyncio.create_task(stop.wait(), name="gitops stop")
        ready = asyncio.create_task(replica.ready.wait(), name="gitops ready")
        ready.add_done_callback(lambda task: None if task.cancelled() else started(replica))
        try:
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            await replica.hand_over()
        finally:
            for task in (working, stopping, ready):
                task.cancel()
            await asyncio.gather(working, stopping, ready, return_exceptions=True)
            with contextlib.suppress(ApiError):
                await replica.give_back()
    finally:
        await port.close()


def _may_pass(error: ApiError | StartError) -> bool:
    """Whether the next try may find it otherwise, though nobody does anything about it."""
    return isinstance(error, ApiError) and not isinstance(error, Unauthorized | Forbidden)


def _start_error(server: str, error: ApiError) -> StartError:
    return StartError(
        f"{server}: what the controllers need is missing and cannot be installed: {error}; "
        "apply deploy/controller.yaml with the rights of an administrator"
        if not _may_pass(error)
        else f"{server}: what the controllers need cannot be looked at: {error}"
    )


async def _installed(port: HttpPort, objects: list[Obj], clock: Clock, server: str) -> None:
    """Put there what is missing and wait until it is served. Raises ApiError, and StartError after a minute."""
    definitions = [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]
    until = steady_now(clock) + timedelta(seconds=ESTABLISH_S)
    rest = await drive(install_missing(objects), port)
    while rest or (waiting := await drive(not_established(definitions), port)):
        if steady_now(clock) > until:
            names = ", ".join(str(obj["kind"]) for obj in rest) or ", ".join(waiting)
            raise StartError(f"{server} does not serve {names} after {ESTABLISH_S:g} s; look at its definitions")
        await asyncio.sleep(LOOK_S)
        rest = await drive(install_missing(rest), port) if rest else []
