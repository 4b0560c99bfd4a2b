"""The embedded cluster as a running process: disk, HTTP, controllers, machines, and its GitOps controllers.

Started by ``syncline apiserver`` and ``syncline up``; tests over HTTP start it on their own event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from syncline.assembly.embedded.auditing import AuditFile, read_policy
from syncline.assembly.embedded.core import ClusterCore, build_core
from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.embedded.measuring import gauges_of, metrics_answer
from syncline.assembly.endpoints.private import write_private
from syncline.assembly.settings import DATABASE, KEYS, ClusterSettings
from syncline.base.clock import Clock, SystemClock
from syncline.base.entropy import Entropy
from syncline.base.interpreter import tune_interpreter
from syncline.base.journal import Journal
from syncline.cluster.access.audit import AuditTrail
from syncline.cluster.access.auditpolicy import METADATA_OF_ALL, AuditPolicyError
from syncline.cluster.access.pki import ClusterKeys, KeyPair, create_keys, kubeconfig_for, load_or_create_keys
from syncline.cluster.access.users import ADMIN, ANONYMOUS
from syncline.cluster.bootstrap import FRONT_PROXY
from syncline.cluster.fairness.control import Fairness
from syncline.cluster.serving.connections import allow_many_connections
from syncline.cluster.serving.metrics import Metrics
from syncline.cluster.serving.serve import (
    ApiServer,
    Durability,
    ServeError,
    threadsafe,
    tls_context,
)
from syncline.cluster.serving.webhooks import Caller
from syncline.cluster.storage.disk import SCHEMA_VERSION, Disk, DiskError, Listener
from syncline.cluster.storage.encryption import HOW_TO_MAKE, Encryption, EncryptionError, encryption_of
from syncline.cluster.storage.retention import LISTED_FOR, LOOK_EVERY, Retention
from syncline.cluster.storage.store import Store, WriteRefused
from syncline.control.executor import run_in_place
from syncline.control.manager import DirectPort, LiveManager
from syncline.kube.errors import InternalError
from syncline.kube.objects import Obj

if TYPE_CHECKING:
    from syncline.assembly.embedded.working import Working
    from syncline.assembly.fleet.hub import HubSettings
    from syncline.assembly.gitops import GitOpsSettings
    from syncline.assembly.machines.virtual import LiveMachines
    from syncline.assembly.roles import LiveDriver, Role
    from syncline.assembly.sources.hydrating import HydratingReader
    from syncline.control.cache import Snapshot

__all__ = ["LiveCluster", "running_cluster", "write_private"]

log = logging.getLogger("syncline.assembly")


@dataclass(slots=True)
class LiveCluster:
    """A serving cluster. ``stopped`` ends with the first fatal failure."""

    core: ClusterCore
    settings: ClusterSettings
    url: str
    port: int
    kubeconfig: Obj
    stopped: asyncio.Future[None]
    working: Working
    gitops_ports: dict[tuple[str, int], int] = field(default_factory=dict)
    """Ports of webhooks and metrics by requested address."""
    certificate: KeyPair | None = None
    """Key pair of the API server; None without TLS."""
    config_server_url: str = ""
    """URL of the config server for joining machines, or ""."""
    reader: HydratingReader | None = None
    """Of repositories, shared by the roles; None until the GitOps controllers start."""

    @property
    def journal(self) -> Journal:
        return self.working.journal

    @property
    def machines(self) -> LiveMachines:
        return self.working.machines

    async def start_gitops(self, settings: GitOpsSettings) -> LiveManager:
        """Install what the GitOps controllers need, and run them; returns once they watch. Raises ListenError."""
        from syncline.assembly.jumps import tell_jumps
        from syncline.assembly.ports import HttpPort
        from syncline.assembly.rights import Rights, managed_namespaces_role
        from syncline.assembly.running import running_gitops, source_reader

        clock = self.core.clock
        if settings.rights is Rights.MANAGED_BY:
            await self.run_role(managed_namespaces_role(settings.application.control_namespace))
        self.reader = source_reader(settings)
        running = running_gitops(settings, self.working.driver, HttpPort, reader=self.reader)
        driver, self.gitops_ports = await self.working.endpoints.enter_async_context(running)
        self.working.begin(tell_jumps(clock, driver.port, settings.application.control_namespace), "gitops clock")
        return await self._run(driver, "gitops")

    async def _run(self, driver: LiveDriver, name: str) -> LiveManager:
        self.working.begin(driver.run(), name)
        await driver.ready.wait()
        return driver.manager

    async def run_role(self, role: Role) -> LiveManager:
        """Install a role's objects and run it as its user; returns once it watches."""
        from syncline.assembly.roles import start

        driver = self.working.driver(role.user)
        start(role, driver)
        return await self._run(driver, role.name)

    async def start_machine_config(
        self, control_namespace: str, config_server: tuple[str, int] | None = None
    ) -> LiveManager:
        """Install what the machine-config controllers need, and run them; returns once they watch. ``config_server``:
        host and port that serve joining machines. Raises ListenError."""
        from syncline.assembly.machines.ansible import with_playbooks
        from syncline.assembly.machines.objects import machineconfig_objects
        from syncline.assembly.machines.role import MachineConfigSettings, machineconfig_role
        from syncline.assembly.machines.simulatedhosts import SimulatedHosts
        from syncline.assembly.sources.playbooks import Playbooks

        settings = MachineConfigSettings(control_namespace)
        authority = str(self.kubeconfig["clusters"][0]["cluster"].get("certificate-authority-data") or "")
        hosts = SimulatedHosts(self.machines.room.machines, self.core.clock)
        role = machineconfig_role(settings, hosts=hosts, objects=machineconfig_objects(settings, authority))
        if self.reader is not None:
            role = with_playbooks(role, settings, Playbooks(self.reader.sources), learner=self.reader)
        manager = await self.run_role(role)
        if config_server is not None:
            await self._start_config_server(control_namespace, *config_server, manager.loop.cache)
        return manager

    async def start_hub(self, settings: HubSettings, pull_variant: str = "", poll_s: float = 180.0) -> LiveManager:
        """Install what a hub needs, and run its controllers, those of the pull model and of policies, until they watch.
        ``pull_variant``: ``basic``, ``acm``, or empty; ``poll_s``: seconds between two looks at a repository."""
        from syncline.assembly.fleet.hub import hub_role
        from syncline.assembly.fleet.objects import hub_objects
        from syncline.assembly.fleet.policies import policies_role, policy_objects
        from syncline.assembly.fleet.pull import pull_objects, pull_role, pull_settings
        from syncline.assembly.fleet.webhooks import INSIDE, answering

        self.working.caller.inside = answering(self.core, settings)
        manager = await self.run_role(hub_role(settings, objects=hub_objects(INSIDE), reach=lambda: INSIDE))
        pulling = pull_settings(settings.control_namespace, pull_variant, settings.manifest_limit, poll_s)
        needed = tuple(pull_objects(pulling))
        await self.run_role(pull_role(pulling, reader=self.reader, renderer=self.reader, objects=needed))
        await self.run_role(policies_role(objects=tuple(policy_objects()), embedded=True))
        return manager

    async def start_patterns(self, settings: GitOpsSettings) -> LiveManager:
        """Run the controllers of Patterns and of ArgoCD objects, each of which gets GitOps controllers of its namespace
        with the rights of its account; returns once they watch."""
        from syncline.assembly.patterns.checkouts import Checkouts
        from syncline.assembly.patterns.live import beginning
        from syncline.assembly.patterns.role import PatternSettings, pattern_objects, patterns_role

        assert self.reader is not None, "the GitOps controllers have started"
        mine = PatternSettings(settings.application.control_namespace)
        role = patterns_role(
            mine,
            Checkouts(self.reader.sources),
            beginning(settings, self.working, self.reader),
            learner=self.reader,
            objects=tuple(pattern_objects()),
        )
        return await self.run_role(role)

    async def _start_config_server(self, namespace: str, host: str, port: int, cache: Snapshot) -> None:
        from syncline.assembly.endpoints import configserver

        transport = self.core.transport(judged=False)
        run_in_place(ensure_objects(configserver.config_server_objects(namespace)), transport)

        def kubeconfig(address: str) -> str:
            return configserver.joining_kubeconfig(transport.send, namespace, address or self.url)

        tls = tls_context(self.certificate, "") if self.certificate is not None else None
        endpoint = configserver.config_server(host, port, cache, kubeconfig, tls, self.settings.allowed_hosts)
        taken = await self.working.endpoints.enter_async_context(endpoint)
        self.config_server_url = url_of("https" if tls else "http", host, taken)


@contextlib.asynccontextmanager
async def running_cluster(settings: ClusterSettings, clock: Clock | None = None) -> AsyncIterator[LiveCluster]:
    """Start, yield, stop. Raises DiskError (data in use, damaged, newer) and ServeError (address taken)."""
    clock = clock or SystemClock()
    tune_interpreter()
    allow_many_connections()
    event_loop = asyncio.get_running_loop()
    disk, store = _open_store(settings)
    durability = Durability(store)
    stopped: asyncio.Future[None] = event_loop.create_future()
    retaining = event_loop.create_task(_retain(store, clock), name="retention")
    ports: list[DirectPort] = []
    space = asyncio.Event()
    bootstrapping: asyncio.Task[None] | None = None
    audit = None
    try:
        keys = _keys(settings, clock)
        audit, auditor = _auditing(settings, clock)
        core = build_core(
            store=store,
            clock=clock,
            entropy=Entropy(),
            keys=keys,
            without_credentials=ANONYMOUS if settings.tls else ADMIN,
        )
        if disk is not None:
            disk.follow(store, _listener(durability, stopped, event_loop, ports, space))
        fairness = Fairness(store, settings.max_requests_inflight + settings.max_mutating_requests_inflight)
        written = audit.families if audit is not None else tuple
        metrics = Metrics(lambda: gauges_of(store, server, disk), lambda: [*fairness.families(), *written()])
        core.api.documents["/metrics"] = lambda: metrics_answer(metrics)
        caller = Caller(keys.authority.issue(FRONT_PROXY, now=clock.now()))
        server = ApiServer(core.api, core.authenticator, clock, durability, [metrics.count], fairness, caller, auditor)
        certificate = keys.server if settings.tls else None
        where = (settings.host, settings.port, settings.allowed_hosts)
        await server.start(*where, certificate=certificate, client_ca_pem=keys.ca_pem)
        try:
            bootstrapping = await _bootstrap(core, durability, server.port, keys.ca_pem, space)
            url, kubeconfig = _way_in(settings, server.port, keys)
            # Other requests are served meanwhile.
            room = await asyncio.to_thread(importlib.import_module, "syncline.assembly.embedded.working")
            async with room.working(core, settings, url, keys, ports, caller) as found:
                yield LiveCluster(
                    core,
                    settings,
                    url,
                    server.port,
                    kubeconfig,
                    stopped,
                    found,
                    certificate=certificate,
                )
        finally:
            await server.stop()
            await caller.close()
    finally:
        for task in (retaining, bootstrapping):
            if task is not None:
                task.cancel()
        if disk is not None:
            disk.close()
        if audit is not None:
            audit.close()


async def _bootstrap(
    core: ClusterCore, durability: Durability, port: int, ca_pem: str, space: asyncio.Event
) -> asyncio.Task[None] | None:
    """Create the objects of every cluster. ``space`` is set when a full disk accepts writes again.

    An existing store serves at once, even on a full disk: the returned task then writes when there is space. Raises
    DiskError if the disk rejects a new store.
    """
    new = core.store.revision == 0

    async def write() -> bool:
        space.clear()
        try:
            core.bootstrap(port=port, ca_pem=ca_pem)
            await durability.wait_for_all()
        except InternalError as refusal:
            if new:
                raise DiskError(f"{refusal}; the first objects of the cluster could not be written") from refusal
            log.warning("%s; the endpoints of default/kubernetes may name an earlier port until then", refusal)
            return False
        return True

    async def write_later() -> None:
        while True:
            await space.wait()
            if await write():
                return

    if await write():
        return None
    return asyncio.get_running_loop().create_task(write_later(), name="bootstrap")


def _auditing(settings: ClusterSettings, clock: Clock) -> tuple[AuditFile | None, AuditTrail | None]:
    """Return the file and the audit trail that fills it. Raises ServeError."""
    policy = METADATA_OF_ALL
    if settings.audit_policy is not None:
        try:
            policy = read_policy(settings.audit_policy)
        except AuditPolicyError as error:
            raise ServeError(f"audit policy {error}") from None
    if settings.audit_log is None:
        if settings.audit_policy is not None:
            raise ServeError("an audit policy has no effect without an audit log; name a file with --audit-log")
        return None, None
    try:
        audit = AuditFile(settings.audit_log, settings.audit_rotation)
    except OSError as error:
        raise ServeError(f"cannot write the audit log {settings.audit_log}: {error.strerror}; name a file") from error
    return audit, AuditTrail(policy, audit.note, clock, Entropy())


def _keys(settings: ClusterSettings, clock: Clock) -> ClusterKeys:
    hosts = () if settings.host in ("0.0.0.0", "::") else (settings.host,)
    if settings.data is None:
        return create_keys(clock.now(), hosts)
    directory = settings.data / KEYS
    try:
        return load_or_create_keys(directory, clock.now(), hosts)
    except (OSError, ValueError) as error:
        # The library's message may span lines; it never quotes a key.
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DiskError(
            f"{directory}: a key or certificate cannot be used ({why}), and nothing was changed; restore a backup, or "
            "move the directory away: new ones are made, and every kubeconfig and token must be issued again"
        ) from error


def _encryption(settings: ClusterSettings) -> Encryption | None:
    path = settings.encryption
    if path is None:
        return None
    try:
        return encryption_of(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DiskError(f"{path}: cannot read the keys ({error.strerror}); {HOW_TO_MAKE} > {path}") from error
    except (EncryptionError, UnicodeDecodeError) as error:
        raise DiskError(f"{path}: {error}") from error


def _open_store(settings: ClusterSettings) -> tuple[Disk | None, Store]:
    if settings.data is None:
        return None, Store()
    encryption = _encryption(settings)
    disk = Disk(settings.data / DATABASE, encryption)
    if disk.upgraded_from < SCHEMA_VERSION:
        log.info("%s: was of format %d, is of format %d now", disk.path, disk.upgraded_from, SCHEMA_VERSION)
    elif disk.sealed:
        keys = encryption.described() if encryption else "no key"
        log.warning("%s: %d objects are rewritten, as %s asks", disk.path, disk.sealed, keys)
    store = Store(durable=True)
    try:
        loaded = disk.load()
        store.restore(loaded.revision, loaded.objects)
    except BaseException:
        disk.close()
        raise
    return disk, store


async def _retain(store: Store, clock: Clock) -> None:
    watched, listed = Retention(), Retention(LISTED_FOR)
    while True:
        now, revision = clock.now(), store.committed
        store.compact(watched.note(now, revision))
        store.close_lists(listed.note(now, revision))
        await asyncio.sleep(LOOK_EVERY.total_seconds())


def _listener(
    durability: Durability,
    stopped: asyncio.Future[None],
    event_loop: asyncio.AbstractEventLoop,
    ports: list[DirectPort],
    free: asyncio.Event,
) -> Listener:
    def full(refusal: WriteRefused) -> None:
        log.warning("%s", refusal)
        durability.take_back(refusal)
        for port in ports:
            port.expire_watches()

    def space(_: object) -> None:
        log.warning("there is space again: writes go on")
        free.set()

    def failed(error: DiskError) -> None:
        durability.fail(error)
        if not stopped.done():
            stopped.set_exception(error)

    return Listener(
        durable=threadsafe(event_loop, durability.advance),
        full=threadsafe(event_loop, full),
        space=threadsafe(event_loop, space),
        failed=threadsafe(event_loop, failed),
    )


def _way_in(settings: ClusterSettings, port: int, keys: ClusterKeys) -> tuple[str, Obj]:
    """Return the URL and the administrator's kubeconfig."""
    url = url_of("https" if settings.tls else "http", settings.host, port)
    kubeconfig = kubeconfig_for(
        server=url,
        ca_pem=keys.ca_pem if settings.tls else "",
        client=keys.admin if settings.tls else None,
    )
    return url, kubeconfig


def url_of(scheme: str, host: str, port: int) -> str:
    """Return the URL under which this machine reaches a listener."""
    reached = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    return f"{scheme}://{f'[{reached}]' if ':' in reached else reached}:{port}"


def kubeconfig_text(cluster: LiveCluster) -> str:
    """Return the kubeconfig as JSON, which every kubeconfig reader accepts as YAML."""
    return json.dumps(cluster.kubeconfig, indent=2) + "\n"
