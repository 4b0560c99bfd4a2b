"""The GitOps controllers as a process of their own, against any Kubernetes API over HTTP.

Started by ``syncline controller``. Several replicas share the Applications by Leases (``control/leader.py``): each
watches everything, so that taking over is a matter of seconds, and works on the shards that it holds. Told to stop, it
begins nothing new, lets the passes in flight end, and gives its Leases back. It never runs a cluster and imports none.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from syncline.assembly.destinations import LiveWay, RemoteClusters, RoutedPort
from syncline.assembly.faces import gitops_faces
from syncline.assembly.gitops import GitOpsSettings, foreign_objects, gitops_loop
from syncline.assembly.install import install_missing, not_established
from syncline.assembly.metrics import MeasuredLoop
from syncline.assembly.ports import HttpPort
from syncline.assembly.reading import GitSourceReader, renderers_with
from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.control.leader import LeaderSettings, Share, release_all, shard_of, share_round
from syncline.control.manager import LiveManager, drive
from syncline.control.pools import Pools
from syncline.gitops.resource_filter import ResourceFilter
from syncline.kube.errors import ApiError
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kubeconfig import ClusterAccess
from syncline.kube.objects import GroupKind, Obj, ObjectRef, ref_of

__all__ = ["ControllerSettings", "ForeignLoop", "Gate", "HttpPort", "Replica", "StartError", "serve_controller"]

log = logging.getLogger("syncline.assembly")

ESTABLISH_S = 60.0
"""A definition that is not served after this long will not be."""
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


class ForeignLoop(MeasuredLoop):
    """Leaves out the kinds that no Application manages and that change all the time on a real cluster."""

    def wanted_kinds(self) -> set[GroupKind]:
        left_out = ResourceFilter()
        return {kind for kind in super().wanted_kinds() if not left_out.excludes(kind.group, kind.kind, "")}


@dataclass(slots=True)
class Gate:
    """Which Applications this replica may work on now."""

    shards: int = 1
    open: frozenset[int] = frozenset()

    def admits(self, ref: ObjectRef) -> bool:
        return shard_of(ref, self.shards) in self.open


@dataclass(slots=True)
class Replica:
    """One running process: its way to the API, its loop, its share. ``ready`` is set once it watches."""

    settings: ControllerSettings
    port: HttpPort
    clock: Clock
    journal: Journal
    gate: Gate = field(default_factory=Gate)
    share: Share = field(default_factory=Share)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    manager: LiveManager | None = None
    ports: dict[tuple[str, int], int] = field(default_factory=dict)
    """Where the faces listen, by the address that was asked for."""

    # -- work --------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Watch and work until cancelled; begins anew with an empty cache when the share was lost by force."""
        while True:
            lost = asyncio.Event()
            running = asyncio.create_task(self._work(lost), name="gitops")
            losing = asyncio.create_task(lost.wait(), name="gitops lost its share")
            try:
                await asyncio.wait((running, losing), return_when=asyncio.FIRST_COMPLETED)
                if running.done():
                    running.result()
                log.warning("the Leases could not be renewed in time: requests in flight are dropped, starting anew")
            finally:
                self.gate.open = frozenset()
                for task in (running, losing):
                    task.cancel()
                await asyncio.gather(running, losing, return_exceptions=True)

    async def _work(self, lost: asyncio.Event) -> None:
        gitops = self.settings.gitops
        reader = GitSourceReader(
            gitops.cache_directory,
            allow_local=gitops.allow_local_repos,
            renderers=renderers_with(gitops.plugins),
            entropy=Entropy(),
            limits=gitops.remotes,
        )
        way = LiveWay(self.clock, HttpPort)
        remotes = RemoteClusters(way, self.clock, self.journal)
        loop = gitops_loop(
            self.clock,
            self.journal,
            reader,
            gitops.application,
            admits=self.gate.admits,
            loop=ForeignLoop,
            remotes=remotes,
        )
        manager = self.manager = LiveManager(loop, RoutedPort(self.port, way), self.clock, pools=Pools(gitops.pools))
        remotes.wake = lambda ref: manager.wake("application", ref)
        async with (
            contextlib.AsyncExitStack() as closing,
            gitops_faces(gitops, loop, self.port, reader, self.gate.admits, work=manager.pools.counts) as self.ports,
            asyncio.TaskGroup() as group,
        ):
            closing.push_async_callback(way.close)
            closing.callback(remotes.close)
            group.create_task(manager.run(self.ready.set), name="gitops loop")
            if self.settings.leader is None:
                self._open(frozenset({0}))
            else:
                group.create_task(self._keep_share(self.settings.leader, lost), name="gitops leases")

    # -- shares ------------------------------------------------------------------------------------------------

    async def _keep_share(self, leader: LeaderSettings, lost: asyncio.Event) -> None:
        self.gate.shards = leader.shards
        while True:
            before, why = self.gate.open, self.share.why
            try:
                async with asyncio.timeout(leader.renew_deadline_s / 2):
                    steps = share_round(self.share, leader, self.clock.now(), self._busy_shards())
                    self.share = await drive(steps, self.port)
            except TimeoutError:
                log.warning("the Leases could not be renewed: no answer in time")
            if self.share.why != why:
                log.info("%s", self.share.why)
            working = self.share.working(leader, self.clock.now())
            expired = frozenset(self.share.held) - working - self.share.leaving
            if expired or (before - working - self.share.leaving):
                self.share = Share(why="lost")
                lost.set()
                return
            self._open(working)
            await asyncio.sleep(leader.retry_s)

    def _open(self, working: frozenset[int]) -> None:
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
        self.gate.open = frozenset()
        until = self.clock.now() + timedelta(seconds=self.settings.grace_s)
        while self._busy_shards() and self.clock.now() < until:
            await asyncio.sleep(LOOK_S)

    async def give_back(self) -> None:
        """After the work has stopped: nobody shall have to wait for our Leases to expire."""
        if self.settings.leader is not None:
            await drive(release_all(self.share, self.settings.leader, self.clock.now()), self.port)


async def serve_controller(
    access: ClusterAccess,
    settings: ControllerSettings,
    clock: Clock,
    stop: asyncio.Event,
    started: Callable[[Replica], None] = lambda _replica: None,
) -> None:
    """Install what is missing, work until ``stop``, hand over. Raises :class:`StartError` and ListenError."""
    port = HttpPort(access)
    replica = Replica(settings, port, clock, Journal(limit=10_000))
    try:
        await _install(port, foreign_objects(settings.gitops.application.control_namespace), clock, access.server)
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


async def _install(port: HttpPort, objects: list[Obj], clock: Clock, server: str) -> None:
    definitions = [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]
    until = clock.now() + timedelta(seconds=ESTABLISH_S)
    try:
        rest = await drive(install_missing(objects), port)
        while rest or (waiting := await drive(not_established(definitions), port)):
            if clock.now() > until:
                names = ", ".join(str(obj["kind"]) for obj in rest) or ", ".join(waiting)
                raise StartError(f"{server} does not serve {names} after {ESTABLISH_S:g} s; look at its definitions")
            await asyncio.sleep(LOOK_S)
            rest = await drive(install_missing(rest), port) if rest else []
    except ApiError as error:
        raise StartError(
            f"{server}: what the controllers need is missing and cannot be installed: {error}; "
            "apply deploy/controller.yaml with the rights of an administrator"
        ) from error
