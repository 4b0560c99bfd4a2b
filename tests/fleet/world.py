"""A fleet in virtual time: a hub, its clusters and their agents, each on an embedded API, with one clock.

Between each agent and its hub, and each agent and its cluster, is a :class:`Cable` that a test can cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from syncline.assembly.builtin import cluster_role
from syncline.assembly.destinations import RemoteClusters, RoutedTransport, VirtualWay
from syncline.assembly.embedded.core import ClusterCore, build_core
from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.fleet.agent import AgentSettings, agent_role, agent_user
from syncline.assembly.fleet.answering import Sources
from syncline.assembly.fleet.hub import HubSettings, hub_role
from syncline.assembly.fleet.objects import hub_objects, spoke_objects
from syncline.assembly.fleet.webhooks import INSIDE, admit_inside
from syncline.assembly.gitops import gitops
from syncline.assembly.inspection.archive import BUMP
from syncline.assembly.machines.virtual import virtual_machines
from syncline.assembly.rights import Rights, gitops_user, managed_namespaces_role
from syncline.assembly.roles import Role, SimulatedDriver, Wake, start
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.access.pki import create_keys
from syncline.cluster.builtin import BuiltinSettings
from syncline.cluster.storage.store import Store, Stored
from syncline.control.executor import run_in_place
from syncline.control.loop import ControlLoop
from syncline.control.virtual import Actor, LoopActor, VirtualDriver
from syncline.fleet.spoke.link import SPOKE
from syncline.gitops.application.manifests import SourceReader
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import Unavailable
from syncline.kube.objects import Obj
from syncline.kube.transport.kubeconfig import ClusterAccess
from syncline.kube.transport.outbound import Stream
from syncline.rehearsal.seams import SkewedActor, SkewedClock

CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"
HUB_URL = "https://hub.test:6443"
MERGE = {"content-type": "application/merge-patch+json"}

Wrap = Callable[[Transport], Transport]


@dataclass(slots=True)
class Cable:
    """A connection that can be cut: requests get no answer, and watches end."""

    inner: Transport
    whole: bool = True
    _streams: list[Stream] = field(default_factory=list)

    def send(self, request: Request) -> Response:
        if not self.whole:
            return Response.refused(Unavailable("the server does not answer (cut off)"))
        answer = self.inner.send(request)
        if answer.stream is not None:
            self._streams.append(answer.stream)
        return answer

    def cut(self) -> None:
        self.whole = False
        streams, self._streams = self._streams, []
        for stream in streams:
            ready = stream.on_ready
            stream.close()
            if ready is not None:
                ready()

    def mend(self) -> None:
        self.whole = True


@dataclass(slots=True)
class _AgentDriver(SimulatedDriver):
    """The driver of an agent, whose clock may be wrong."""

    def drive(self, role: Role, loop: ControlLoop) -> Wake:
        assert isinstance(self.clock, SkewedClock), "clocks of agents may be wrong"
        self.actor = SkewedActor(loop, self.transport, self.order, clock=self.clock)
        return loop.wake


@dataclass(slots=True)
class Site:
    """One cluster: its API, and how its administrator sends requests."""

    core: ClusterCore
    admin: Transport
    time: VirtualDriver
    actors: list[Actor]

    def send(self, verb: str, path: str, body: Any = None) -> Obj:
        """Send a request and do what is due now. Raises ApiError."""
        headers = MERGE if verb == "PATCH" else {}
        path, _, text = path.partition("?")
        query = dict(part.split("=", 1) for part in text.split("&") if part)
        made: Obj = self.admin.send(Request(verb, path, query, headers=headers, body=body)).or_raise()
        self.time.settle()
        return made

    def get(self, path: str) -> Obj:
        return self.send("GET", path)

    def absent(self, path: str) -> bool:
        return self.admin.send(Request("GET", path)).status == 404


@dataclass(slots=True)
class Member(Site):
    """A managed cluster with its agent. ``hub_cable`` and ``own_cable``: from the agent to the hub and to its API."""

    name: str
    clock: SkewedClock
    hub_cable: Cable
    own_cable: Cable
    agent_id: str = "agent1"
    agent: LoopActor | None = None
    stop: Callable[[], None] = lambda: None


class Fleet:
    """A hub and clusters ``names``, all accepted. ``wrap`` adds a transport before that of the hub's controllers."""

    def __init__(
        self,
        *names: str,
        seed: int = 1,
        wrap: Wrap | None = None,
        settings: HubSettings | None = None,
        beside: Fleet | None = None,
    ) -> None:
        """``beside``: another fleet with whose time this one lives; its clusters may join this hub, too."""
        self._settings = settings or HubSettings()
        self.url = HUB_URL if beside is None else f"{HUB_URL.replace('hub', 'other-hub')}"
        self.sources: dict[str, Sources] = {}
        """How the agent of a cluster reads repositories."""
        if beside is None:
            self.clock, self.entropy, self.journal = VirtualClock(), Entropy(seed), Journal()
            self.time = VirtualDriver(self.clock)
        else:
            self.clock, self.entropy, self.journal = beside.clock, beside.entropy.fork("beside"), beside.journal
            self.time = beside.time
        hub = self._core("hub")
        self.hub = Site(hub, hub.transport(), self.time, [])
        self._cluster(self.hub)
        self._hub_actor: LoopActor | None = None
        self.start_hub(wrap)
        self.members: dict[str, Member] = {}
        for name in names:
            self.add(name)
        self.time.settle()

    # -- the hub -------------------------------------------------------------------------------------------------

    def start_hub(self, wrap: Wrap | None = None) -> None:
        """Start the controllers of the hub, with an empty memory if they ran before."""
        self.stop_hub()
        admit_inside(self.hub.core, self._settings)
        role = hub_role(self._settings, objects=hub_objects(INSIDE), reach=lambda: INSIDE)
        transport = self.hub.core.transport(role.user)
        run_in_place(ensure_objects(role.objects), self.hub.admin)
        driver = SimulatedDriver(self.clock, self.journal, wrap(transport) if wrap else transport, strict=True)
        start(role, driver)
        self._hub_actor = driver.actor
        self.time.add(driver.actor)

    def start_role(self, role: Role, site: Site | None = None, wrap: Wrap | None = None) -> LoopActor:
        """Run a further role on a cluster; None: on the hub."""
        where = site or self.hub
        run_in_place(ensure_objects(role.objects), where.admin)
        transport = where.core.transport(role.user)
        driver = SimulatedDriver(self.clock, self.journal, wrap(transport) if wrap else transport, strict=True)
        start(role, driver)
        self.time.add(driver.actor)
        self.time.settle()
        return driver.actor

    def start_gitops(
        self,
        site: Site,
        reader: SourceReader,
        settings: AppSettings | None = None,
        rights: Rights = Rights.CLUSTER,
        wrap: Wrap | None = None,
    ) -> LoopActor:
        """Run the GitOps controllers of a cluster, on the cluster itself."""
        chosen = settings or AppSettings()
        if rights is Rights.MANAGED_BY:
            self.start_role(managed_namespaces_role(chosen.control_namespace), site)
        user = gitops_user(chosen.control_namespace, rights)
        transport = site.core.transport(user)
        driver = SimulatedDriver(self.clock, self.journal, wrap(transport) if wrap else transport, strict=True)
        remotes = RemoteClusters(VirtualWay(driver, self.time, {}), chosen.control_namespace)
        role = gitops(reader, chosen, remotes, rights=rights, seed=self.entropy.fork("sets").uid()).role
        run_in_place(ensure_objects(role.objects), site.admin)
        start(role, driver)
        self.time.add(driver.actor)
        self.time.settle()
        return driver.actor

    def stop_hub(self) -> None:
        if self._hub_actor is not None:
            self.time.actors.remove(self._hub_actor)
        self._hub_actor = None

    def backup_hub(self) -> tuple[int, list[Stored]]:
        """Return what a backup of the hub holds: its revision and objects."""
        store = self.hub.core.store
        return store.revision, [one for resource in store.resources() for one in store.list(resource)]

    def restore_hub(self, backup: tuple[int, list[Stored]]) -> None:
        """Put a hub in place of this one that begins with a backup, at the same address, as ``syncline restore``."""
        self.stop_hub()
        for actor in self.hub.actors:
            self.time.actors.remove(actor)
        for member in self.members.values():
            member.hub_cable.cut()
        revision, objects = backup
        store = Store()
        store.restore(revision + BUMP, objects)
        core = build_core(store=store, clock=self.clock, entropy=self.entropy.fork("restored"))
        core.bootstrap(port=6443)
        self.hub.core, self.hub.admin, self.hub.actors = core, core.transport(), []
        self._cluster(self.hub)
        self.start_hub()
        for name, member in self.members.items():
            member.hub_cable.inner = core.transport(agent_user(name, member.agent_id))
            member.hub_cable.mend()

    # -- clusters ------------------------------------------------------------------------------------------------

    def add(
        self, name: str, *, accepted: bool = True, labels: Mapping[str, str] | None = None, nodes: int = 0
    ) -> Member:
        """Add a cluster that is registered at the hub, with so many machines, and start its agent."""
        core = self._core(name)
        member = self._member(name, core, "agent1")
        self._cluster(member, nodes)
        run_in_place(ensure_objects(spoke_objects()), member.admin)
        self.hub.send("POST", CLUSTERS, managed_cluster(name, accepted=accepted, labels=labels))
        self.start_agent(name)
        return member

    def adopt(self, name: str, site: Site, *, agent: str, labels: Mapping[str, str] | None = None) -> Member:
        """Let a cluster that there is join this hub under a name, with a further agent of another id."""
        member = self._member(name, site.core, agent)
        self.hub.send("POST", CLUSTERS, managed_cluster(name, labels=labels))
        self.start_agent(name)
        return member

    def _member(self, name: str, core: ClusterCore, agent: str) -> Member:
        hub, own = Cable(self.hub.core.transport(agent_user(name, agent))), Cable(core.transport())
        made = Member(core, core.transport(), self.time, [], name, SkewedClock(self.clock), hub, own, agent_id=agent)
        self.members[name] = made
        return made

    def start_agent(self, name: str, *, wrap_hub: Wrap | None = None, wrap_own: Wrap | None = None) -> None:
        """Start the agent of a cluster, with an empty memory if it ran before."""
        self.stop_agent(name)
        member = self.members[name]
        own: dict[str, Transport] = {SPOKE: wrap_own(member.own_cable) if wrap_own else member.own_cable}
        home = wrap_hub(member.hub_cable) if wrap_hub else member.hub_cable
        driver = _AgentDriver(member.clock, self.journal, RoutedTransport(home, own), strict=True)
        settings = AgentSettings(
            name, member.agent_id, self.url, self.entropy.fork(name), sources=self.sources.get(name)
        )
        role = agent_role(settings, VirtualWay(driver, self.time, own), ClusterAccess("https://spoke.test"))
        member.stop = start(role, driver)
        member.agent = driver.actor
        self.time.add(driver.actor)

    def stop_agent(self, name: str) -> None:
        member = self.members[name]
        if member.agent is not None:
            member.stop()
            self.time.actors.remove(member.agent)
        member.agent = None

    def cluster(self, name: str) -> Obj:
        """Return the ManagedCluster of a member."""
        return self.hub.get(f"{CLUSTERS}/{name}")

    def work(self, cluster: str, name: str, *manifests: Obj, **spec: Any) -> Obj:
        """Create a ManifestWork and do what is due now."""
        return self.hub.send("POST", WORKS.format(cluster), manifest_work(cluster, name, *manifests, **spec))

    # -- parts ---------------------------------------------------------------------------------------------------

    def _core(self, name: str) -> ClusterCore:
        core = build_core(store=Store(), clock=self.clock, entropy=self.entropy.fork(name))
        core.bootstrap(port=6443)
        return core

    def _cluster(self, site: Site, nodes: int = 0) -> None:
        """Run the built-in controllers of a cluster, and its machines."""
        driver = SimulatedDriver(self.clock, self.journal, site.core.transport(), strict=True)
        authority = create_keys(self.clock.now()).authority
        settings = BuiltinSettings("virtual cluster", machines_tell=True, authority=authority)
        if nodes:
            machines = virtual_machines(site.core, self.clock, nodes)
            settings = replace(settings, heartbeats=machines.room.heartbeat)
            start(cluster_role(settings, machines.room, follow=machines.attach), driver)
        else:
            start(cluster_role(settings), driver)
        site.actors.append(driver.actor)
        self.time.add(driver.actor)


def managed_cluster(name: str, *, accepted: bool = True, labels: Mapping[str, str] | None = None) -> Obj:
    return {
        "apiVersion": "cluster.open-cluster-management.io/v1",
        "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"hubAcceptsClient": accepted, "leaseDurationSeconds": 60},
    }


def manifest_work(cluster: str, name: str, *manifests: Obj, **spec: Any) -> Obj:
    return {
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {"name": name, "namespace": cluster},
        "spec": {"workload": {"manifests": list(manifests)}, **spec},
    }


def config_map(name: str, namespace: str = "default", **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}
