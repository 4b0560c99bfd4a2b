"""A complete installation in virtual time: embedded cluster, machines, controllers, one clock and one seed.

Entry point: :class:`World`; scenarios, fault runs, tests and offline ``plan`` use it. It opens no socket and starts no
thread; Git repositories are read for real.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from syncline.assembly.builtin import cluster_role
from syncline.assembly.destinations import RemoteClusters, RoutedTransport, VirtualWay
from syncline.assembly.embedded.core import ClusterCore, build_core
from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.gitops import gitops, gitops_objects
from syncline.assembly.rights import Rights, gitops_user, managed_namespaces_role
from syncline.assembly.roles import Role, SimulatedDriver, start
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.access.users import service_account_user
from syncline.cluster.builtin import BuiltinSettings
from syncline.cluster.builtin.storage.provisioner import standard_class
from syncline.cluster.machines.scripted.stages import Timing
from syncline.cluster.machines.simulated import BootTimes
from syncline.cluster.storage.store import Key, Store, Stored
from syncline.control.executor import run_in_place
from syncline.control.virtual import LoopActor, VirtualDriver
from syncline.gitops.application.manifests import SourceReader
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request, Response, Transport
from syncline.rehearsal.given.state import WorldState, laid
from syncline.rehearsal.seams import SkewedDriver, SkewedWay

if TYPE_CHECKING:
    from syncline.machineconfig.ansible.reading import PlaybookReader
    from syncline.patterns.argocd.instances import Instance
    from syncline.patterns.installing.reading import CheckoutReader

MAX_BEGINNINGS = 8
"""Maximum number of cached beginnings, about 200 kB each."""


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The store's content that all worlds of a seed share before their controllers run."""

    revision: int
    objects: tuple[tuple[Key, int, bytes], ...]
    entropy: Entropy
    """The API's random state after the objects were created."""


@lru_cache(MAX_BEGINNINGS)
def _beginning(seed: int, control_namespace: str) -> _Beginning:
    """Install the base objects once for all worlds of a seed: this costs more than most simulations."""
    core = build_core(store=Store(), clock=VirtualClock(), entropy=Entropy(seed))
    core.bootstrap(port=6443)
    run_in_place(ensure_objects([*gitops_objects(control_namespace), standard_class()]), core.transport())
    store = core.store
    found = ((one.key, one.revision, one.raw) for resource in store.resources() for one in store.list(resource))
    return _Beginning(store.revision, tuple(found), core.api.backend.entropy)


class World:
    """A cluster with its controllers. ``wrap`` adds a fault transport before the GitOps controllers' transport."""

    def __init__(
        self,
        reader: SourceReader,
        *,
        seed: int = 1,
        settings: AppSettings | None = None,
        shuffle: bool = False,
        nodes: int = 1,
        timing: Timing | None = None,
        boots: BootTimes | None = None,
        order: Entropy | None = None,
        state: WorldState | None = None,
        rights: Rights = Rights.CLUSTER,
    ) -> None:
        """``timing``, ``boots``: durations of containers and machines; None: the quick ones of simulations. ``order``:
        draws among ready keys, instead of what ``shuffle`` makes of the seed. ``state``: what the cluster holds when
        its controllers begin; None: it is new. ``rights``: of the GitOps controllers."""
        self._times = timing, boots
        self._rights = rights
        self.clock = VirtualClock() if state is None else VirtualClock(state.at)
        self.entropy = Entropy(seed)
        self.journal = Journal()
        self.settings = settings or AppSettings()
        self._reader = reader
        self.order = self.entropy.fork("order") if shuffle else order
        store, begun = Store(), _beginning(seed, self.settings.control_namespace)
        store.restore(begun.revision, (Stored.load(*each) for each in begun.objects))
        self.core: ClusterCore = build_core(store=store, clock=self.clock, entropy=self.entropy)
        self.core.api.backend.entropy = begun.entropy.copy()
        self.admin = self.core.transport()
        self.hushed = False
        """Whether Events of type Normal are not kept: no one reads what went well before a rehearsal begins."""
        self.left_out = laid(state, self.core) if state is not None else ()
        """What of the state could not be made, in sentences."""
        self.others: dict[str, Transport] = {}
        """Transports of other clusters by server; remove one to make it unreachable."""
        self._far: list[LoopActor] = []
        self._rooms: list[LoopActor] = []
        """Actors of the machine-config controllers, if they run."""
        self._unfollow: Callable[[], None] = lambda: None
        self.playbooks: PlaybookReader | None = None
        """Reads the repositories of AnsibleConfigs; None: their controller does not run."""
        self._start(nodes)

    def _start(self, nodes: int) -> None:
        from syncline.assembly.machines.virtual import virtual_machines

        machines = self.machines = virtual_machines(self.core, self.clock, nodes, *self._times)
        self.driver = VirtualDriver(self.clock)
        self._builtin = BuiltinSettings("virtual cluster", machines.room.heartbeat, machines_tell=True)
        role = cluster_role(self._builtin, machines.room, follow=machines.attach)
        self.cluster_actor, _ = self._started(role, self.core)
        self.driver.add(self.cluster_actor)
        if self._rights is Rights.MANAGED_BY:
            self.start_role(managed_namespaces_role(self.settings.control_namespace))
        self.start_gitops()

    def start_gitops(self, wrap: Callable[[Transport], Transport] | None = None) -> None:
        """Start new GitOps controllers on the same cluster, as after a restart."""
        namespace = self.settings.control_namespace
        driver = self._driver(self.core.transport(gitops_user(namespace, self._rights)), wrap)
        remotes = RemoteClusters(VirtualWay(driver, self.driver, self.others), namespace)
        seed = self.entropy.fork("sets").uid()
        role = gitops(self._reader, self.settings, remotes, rights=self._rights, seed=seed).role
        if self._rights is not Rights.CLUSTER:  # else the world began with what the role needs
            run_in_place(ensure_objects(role.objects), self.admin)
        start(role, driver)
        self.gitops_actor = driver.actor
        self.driver.actors = [self.cluster_actor, *self._far, self.gitops_actor, *self._rooms]

    def _started(
        self, role: Role, core: ClusterCore, wrap: Callable[[Transport], Transport] | None = None
    ) -> tuple[LoopActor, Callable[[], None]]:
        driver = self._driver(core.transport(role.user), wrap)
        driver.host = core.registry.host
        stop = start(role, driver)
        return driver.actor, stop

    def _driver(self, home: Transport, wrap: Callable[[Transport], Transport] | None) -> SimulatedDriver:
        transport: Transport = _Way(self, home)
        way = wrap(transport) if wrap else transport
        if isinstance(way, SkewedWay):
            return SkewedDriver(way.clock, self.journal, way, self.order, strict=True)
        return SimulatedDriver(self.clock, self.journal, way, self.order, strict=True)

    def start_machine_config(self, wrap: Callable[[Transport], Transport] | None = None) -> None:
        """Install the prerequisites of the machine-config controllers and run them with one agent per machine. A second
        call restarts them on the same cluster and machines."""
        from syncline.assembly.machines.ansible import with_playbooks
        from syncline.assembly.machines.objects import machineconfig_objects
        from syncline.assembly.machines.role import MachineConfigSettings, machineconfig_role
        from syncline.assembly.machines.simulatedhosts import SimulatedHosts

        settings = MachineConfigSettings(self.settings.control_namespace)
        run_in_place(ensure_objects(machineconfig_objects(settings, "")), self.admin)
        hosts = SimulatedHosts(self.machines.room.machines, self.clock)
        self._unfollow()
        role = machineconfig_role(settings, hosts=hosts)
        if self.playbooks is not None:
            role = with_playbooks(role, settings, self.playbooks)
        actor, self._unfollow = self._started(role, self.core, wrap)
        self._rooms = [actor]
        self.driver.actors = [self.cluster_actor, *self._far, self.gitops_actor, *self._rooms]

    def start_patterns(self, checkouts: CheckoutReader) -> None:
        """Install what Validated Patterns need, and run their controllers; each ArgoCD object gets GitOps controllers
        of its namespace, which read with the reader of the world."""
        from syncline.assembly.patterns.role import PatternSettings, pattern_objects, patterns_role

        settings = PatternSettings(self.settings.control_namespace)
        role = patterns_role(settings, checkouts, self.begin_instance, entropy=self.entropy.fork("passwords"))
        self.start_role(replace(role, objects=tuple(pattern_objects())))

    def start_role(self, role: Role, wrap: Callable[[Transport], Transport] | None = None) -> Callable[[], None]:
        """Install the objects of one more role, and run its controllers. Returns the function that ends them, as when
        their process dies."""
        run_in_place(ensure_objects(role.objects), self.admin)
        actor, stop = self._started(role, self.core, wrap)
        self._rooms.append(actor)
        self.driver.add(actor)

        def end() -> None:
            stop()
            self._leave(actor)

        return end

    def _leave(self, actor: LoopActor) -> None:
        self._rooms.remove(actor)
        self.driver.actors = [one for one in self.driver.actors if one is not actor]

    def begin_instance(self, instance: Instance) -> Callable[[], None]:
        """Start the GitOps controllers of an ArgoCD object's namespace, with the rights of its account alone."""
        settings = replace(self.settings, control_namespace=instance.namespace)
        user = service_account_user(instance.namespace, instance.account)
        driver = self._driver(self.core.transport(user), None)
        remotes = RemoteClusters(VirtualWay(driver, self.driver, self.others), instance.namespace)
        seed = self.entropy.fork(f"sets of {instance}").uid()
        role = gitops(self._reader, settings, remotes, seed=seed).role
        stop = start(replace(role, user=user, objects=()), driver)
        self._rooms.append(driver.actor)
        self.driver.add(driver.actor)

        def end() -> None:
            stop()
            self._leave(driver.actor)

        return end

    def reorder(self, seed: int) -> None:
        """Draw among ready keys by a seed from now on, also in controllers that are started later; 0: as before."""
        if not seed:
            return
        self.order = Entropy(f"order/{seed}")
        for actor in self.driver.actors:
            if isinstance(actor, LoopActor):
                actor.shuffle = self.order

    def add_cluster(self, server: str) -> ClusterCore:
        """Add an embedded cluster without machines, at ``server``, for a client that has a Secret for it."""
        core = build_core(store=Store(), clock=self.clock, entropy=self.entropy.fork(server))
        core.bootstrap(port=6443)
        self.others[server] = core.transport()
        self._far.append(self._started(cluster_role(self._builtin), core)[0])
        self.driver.actors.append(self._far[-1])
        return core

    def send(self, method: str, path: str, body: Any = None, content_type: str = "") -> Any:
        """Send one request as the administrator. Raises the API error if it is refused."""
        headers = {"content-type": content_type} if content_type else {}
        path, _, text = path.partition("?")
        query = dict(part.split("=", 1) for part in text.split("&") if part)
        return self.admin.send(Request(method, path, query, headers, body)).or_raise()


class _Way(RoutedTransport):
    """The way of controllers to the API. What goes well is not reported as long as the world is hushed."""

    def __init__(self, world: World, home: Transport) -> None:
        super().__init__(home, world.others)
        self._world = world

    def send(self, request: Request) -> Response:
        reports = self._world.hushed and request.method == "POST" and request.path.endswith("/events")
        if reports and isinstance(request.body, dict) and request.body.get("type") == "Normal":
            return Response.of(201, request.body)
        return super().send(request)
