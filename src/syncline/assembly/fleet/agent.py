"""The agent of a managed cluster as a role: one control loop per hub, whose home is the hub.

The cluster is joined to the loop as :data:`~syncline.fleet.spoke.link.SPOKE`. On the hub the agent watches only what it
may read: its ManagedCluster, and its namespace. It connects to both and listens nowhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from syncline.apply.actions import ReadObject
from syncline.apply.asking import Evaluator
from syncline.apply.handler import SYNC_ACTIONS, SyncHandler
from syncline.assembly.destinations import ClosablePort, LiveWay, Remote, RoutedPort, Way
from syncline.assembly.fleet.answering import Sources, SpokeReader
from syncline.assembly.roles import LiveDriver, Role, Wake, start
from syncline.base.action import Handler
from syncline.base.clock import Clock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.access.users import UserInfo
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.executor import kube_handlers
from syncline.control.informer import CRDS, Scope
from syncline.control.loop import ControlLoop, Joined
from syncline.fleet.hub.registration.leases import LEASE
from syncline.fleet.hub.registration.requests import CLUSTERS_GROUP, PREFIX
from syncline.fleet.spoke.addons.controller import AddOns
from syncline.fleet.spoke.applications.controller import report_controller
from syncline.fleet.spoke.applications.looking import LookInto, LookIntoHandler
from syncline.fleet.spoke.content.target import target_controller
from syncline.fleet.spoke.content.transfer import transfer_controller
from syncline.fleet.spoke.link import SPOKE, Link
from syncline.fleet.spoke.nodes.controller import nodes_controller
from syncline.fleet.spoke.queries.answering import Answer, AnswerHandler
from syncline.fleet.spoke.queries.controller import query_controller
from syncline.fleet.spoke.registration.controller import Registration, RegistrationSettings
from syncline.fleet.spoke.registration.rotation import Credentials
from syncline.fleet.spoke.work.controller import WorkAgent
from syncline.fleet.spoke.work.manifests.actions import Follow
from syncline.fleet.spoke.work.observe import APPLIED, WorkSettings
from syncline.gitops.destinations import Declared
from syncline.kube.kinds.applicationqueries import QUERY
from syncline.kube.kinds.content import AGENT_NAMESPACE, CHUNK, CONTENT, TARGET
from syncline.kube.kinds.governance import POLICY
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.kinds.syncline import REPORT
from syncline.kube.objects import GroupKind, ObjectRef
from syncline.kube.transport.kubeconfig import ClusterAccess
from syncline.patterns.policies.cluster.actions import FollowKinds
from syncline.patterns.policies.cluster.controllers import PolicyAgent
from syncline.patterns.policies.cluster.link import PolicyLink
from syncline.patterns.policies.names import KEY_SECRET

MANAGER: Final = "work-agent"
"""Field manager of the agent, as upstream's."""


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """``cluster``: name of the ManagedCluster; ``agent``: id of this agent; ``hub_url``: its hub's API server;
    ``hub_authority``: PEM of who signs the certificate of that, for the agents of add-ons."""

    cluster: str
    agent: str
    hub_url: str
    entropy: Entropy = field(default_factory=Entropy)
    registration: RegistrationSettings = field(default_factory=RegistrationSettings)
    work: WorkSettings = field(default_factory=WorkSettings)
    evaluator: Evaluator | None = None
    """Of the jq expressions of works; None: they are refused."""
    hub_authority: str = ""
    local_sources: bool = False
    """Whether repositories of Applications may be paths on this machine, when people ask for manifests."""
    sources: Sources | None = None
    """How repositories are read for that; None: as the credentials of the cluster allow."""


def agent_user(cluster: str, agent: str) -> UserInfo:
    """Return the user that the certificate of an agent names, with its groups."""
    groups = (PREFIX + cluster, CLUSTERS_GROUP, "system:authenticated")
    return UserInfo(f"{PREFIX}{cluster}:{agent}", groups)


def agent_scopes(cluster: str) -> dict[GroupKind, Scope | None]:
    """Return what an agent watches on its hub: its own ManagedCluster, and its namespace; no definitions."""
    inside = Scope(cluster)
    return {
        MANAGED_CLUSTER.group_kind: Scope(fields=f"metadata.name={cluster}"),
        GroupKind("coordination.k8s.io", "Lease"): Scope(cluster, f"metadata.name={LEASE}"),
        MANIFEST_WORK.group_kind: Scope(cluster, lean=True),
        GroupKind("addon.open-cluster-management.io", "ManagedClusterAddOn"): inside,
        REPORT.group_kind: inside,
        QUERY.group_kind: inside,
        CONTENT.group_kind: inside,
        TARGET.group_kind: inside,
        POLICY.group_kind: inside,
        GroupKind("", "Secret"): Scope(cluster, f"metadata.name={KEY_SECRET}"),
        CHUNK.group_kind: None,
        CRDS: None,
        APPLIED: None,
    }


def agent_controllers(link: Link, draw: Callable[[], bytes]) -> tuple[Controller[Any], ...]:
    """Return controllers beside those of registration and of works. ``draw``: returns 32 random bytes."""
    content = target_controller(link, draw), transfer_controller(link)
    return report_controller(link), query_controller(link), nodes_controller(link), *content


@dataclass(slots=True)
class Spoke:
    """The agent's own cluster, joined to the loop of its hub."""

    way: Way
    access: ClusterAccess
    evaluator: Evaluator | None = None
    """Of users' jq expressions."""
    local_sources: bool = False
    sources: Sources | None = None
    works: WorkAgent = field(init=False)
    policies: PolicyAgent = field(init=False)
    _remote: Remote | None = None

    def snapshot(self) -> Snapshot | None:
        remote = self._remote
        return remote.joined.cache if remote is not None and remote.observed_whole else None

    def problem(self) -> str:
        if self._remote is None:
            return "the cluster is not connected yet"
        return self._remote.error

    def handlers(self, cluster: str) -> Mapping[type, Handler]:
        """Return the handlers of the cluster; raises OSError for another one."""
        if cluster != SPOKE or self._remote is None:
            raise ConnectionError(f"cluster {cluster} is not connected")
        return self._remote.handlers

    def follow(self, loop: ControlLoop, _wake: Wake) -> Callable[[], None]:
        """Begin to watch the cluster; returns the function that stops it."""
        driver = self.way.driver
        joined = loop.join(SPOKE)
        mine: dict[type, Handler] = dict.fromkeys(SYNC_ACTIONS, SyncHandler(joined.mapper))
        mine |= kube_handlers(joined.mapper, driver.clock, MANAGER)
        mine |= self.works.handlers(self.evaluator)
        mine[LookInto] = LookIntoHandler(joined.mapper, driver.clock)
        reader = SpokeReader(self.way.blocking(SPOKE), driver.clock.now, self.local_sources, self.sources)
        mine[Answer] = AnswerHandler(reader)
        mine |= self.policies.handlers(joined.mapper)
        followed = Followed(joined)
        mine[Follow] = FollowHandler(followed, self.works.memory.tracks)
        mine[FollowKinds] = FollowHandler(followed, self.policies.memory.tracks)
        joined.scopes = {
            CRDS: Scope(metadata=True),
            APPLIED: Scope(lean=True),
            CONTENT.group_kind: Scope(AGENT_NAMESPACE),
            CHUNK.group_kind: Scope(AGENT_NAMESPACE, metadata=True),
        }
        remote = self._remote = Remote(Declared(SPOKE, "", ""), joined, mine, anchor=None)
        remote.stop = self.way.watch(self.access, remote, lambda: driver.reached(SPOKE))

        def stop() -> None:
            remote.stop()
            loop.leave(SPOKE)

        return stop


@dataclass(slots=True)
class Followed:
    """What works and policies ask to watch of one cluster, together."""

    joined: Joined
    kinds: dict[type, tuple[frozenset[GroupKind], Callable[[ObjectRef], bool]]] = field(default_factory=dict)

    def keeps(self, ref: ObjectRef) -> bool:
        return any(keeps(ref) for _, keeps in self.kinds.values())

    def follow(self) -> None:
        self.joined.follow(frozenset().union(*(kinds for kinds, _ in self.kinds.values())), self.keeps)


@dataclass(frozen=True, slots=True)
class FollowHandler:
    """Performs :class:`Follow` and :class:`FollowKinds`. ``keeps``: the objects whose changes matter."""

    followed: Followed
    keeps: Callable[[ObjectRef], bool]

    def handle(self, action: Follow | FollowKinds) -> Generator[object, object, None]:
        self.followed.kinds[type(action)] = action.kinds, self.keeps
        self.followed.follow()
        return
        yield


def agent_role(
    settings: AgentSettings, way: Way, access: ClusterAccess, credentials: Credentials | None = None
) -> Role:
    """Return the role of an agent. ``way`` watches its cluster, at ``access``; ``credentials``: the certificate that it
    keeps valid on the hub (None: it has another identity)."""
    spoke = Spoke(way, access, settings.evaluator, settings.local_sources, settings.sources)
    draws = settings.entropy.fork(f"agent/{settings.cluster}")
    link = Link(
        settings.cluster,
        settings.agent,
        settings.hub_url,
        spoke.snapshot,
        spoke.problem,
        lambda: draws.uniform(0.0, 1.0),
    )

    works = spoke.works = WorkAgent(link, settings.work)
    policies = spoke.policies = PolicyAgent(PolicyLink(settings.cluster, SPOKE, spoke.snapshot, spoke.problem))
    registration = Registration(link, way.driver.clock.now, credentials, settings.registration)
    addons = AddOns(link, way.driver.clock.now, settings.hub_authority)

    def handlers(cache: Snapshot, _clock: Clock) -> Mapping[type, Handler]:
        reading: dict[type, Handler] = {ReadObject: SyncHandler(cache.mapper)}
        return {**registration.handlers(), **addons.handlers(), **reading}

    return Role(
        name="agent",
        controllers=(
            *registration.controllers(),
            *works.controllers(),
            *addons.controllers(),
            *policies.controllers(),
            *agent_controllers(link, draws.key),
        ),
        user=agent_user(settings.cluster, settings.agent),
        manager=MANAGER,
        handlers=handlers,
        elsewhere=spoke.handlers,
        follow=spoke.follow,
        scopes=agent_scopes(settings.cluster),
    )


@contextlib.asynccontextmanager
async def running_agent(
    settings: AgentSettings,
    hub: ClosablePort,
    spoke: ClusterAccess,
    port_of: Callable[[ClusterAccess], ClosablePort],
    clock: Clock,
    journal: Journal,
    credentials: Credentials | None = None,
) -> AsyncIterator[LiveDriver]:
    """Yield the driver of an agent, whose ``run`` is left to the caller. ``hub``: the port to the hub, closed by the
    caller; ``port_of`` opens the port to the cluster; ``credentials`` as in :func:`agent_role`."""
    waits = settings.entropy.fork(f"waits/{settings.cluster}")
    driver = LiveDriver(clock, journal, hub, where=f"hub {settings.hub_url}", draw=lambda: waits.uniform(0.0, 1.0))
    way = LiveWay(driver, port_of)
    driver.port = RoutedPort(hub, way)
    async with contextlib.AsyncExitStack() as closing:
        closing.push_async_callback(way.close)
        closing.callback(start(agent_role(settings, way, spoke, credentials), driver))
        yield driver
