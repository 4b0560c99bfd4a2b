"""A fleet that pulls its Applications, in virtual time and in one process, with an account of what each part costs.

The hub is entirely real: embedded API with its admission, roles ``hub``, ``pull`` and ``gitops`` (ApplicationSets), and
the built-in controllers. Each cluster has an API, built-in and GitOps controllers and an agent of its own; it has no
nodes, so its guestbook has objects without pods, and its repository is a table. All clusters begin with the objects of
one that was set up once, whose decoded forms they share.

CPU is that of the one thread. What a request of an agent costs the API of the hub counts as the hub's.
"""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from syncline.assembly.builtin import cluster_role
from syncline.assembly.destinations import RemoteClusters, RoutedTransport, VirtualWay
from syncline.assembly.embedded.core import ClusterCore, build_core
from syncline.assembly.embedded.install import ensure_objects
from syncline.assembly.fleet.agent import AgentSettings, agent_role, agent_user
from syncline.assembly.fleet.hub import HubSettings, hub_role
from syncline.assembly.fleet.objects import hub_objects, spoke_objects
from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.assembly.fleet.webhooks import INSIDE, admit_inside
from syncline.assembly.gitops import gitops
from syncline.assembly.rights import gitops_user
from syncline.assembly.roles import Role, SimulatedDriver, start
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.builtin import BuiltinSettings
from syncline.cluster.storage.store import Event, Store, Stored
from syncline.control.executor import run_in_place
from syncline.control.virtual import VirtualDriver, WatchActor
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.spoke.link import SPOKE
from syncline.gitops.application.manifests import Manifests
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import Unavailable
from syncline.kube.objects import Obj, dig
from syncline.kube.transport.kubeconfig import ClusterAccess
from syncline.kube.transport.outbound import Stream
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext

NAMESPACE = "openshift-gitops"
GROUP = "cluster.open-cluster-management.io"
CLUSTERS = f"/apis/{GROUP}/v1/managedclusters"
SETS = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applicationsets"
APPS = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applications"
GITOPS_CLUSTERS = f"/apis/apps.open-cluster-management.io/v1beta1/namespaces/{NAMESPACE}/gitopsclusters"
HUB_URL = "https://hub.bench:6443"
MERGE = {"content-type": "application/merge-patch+json"}
HUB_API = "hub: API for agents"
HUB_LEASES = "hub: leases"
SPOKES = "clusters"
BENCH = "the bench itself"


# -- what it costs ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Meter:
    """CPU of the thread by part; of nested parts each second counts for the innermost."""

    spent_ns: Counter[str] = field(default_factory=Counter)
    _open: list[str] = field(default_factory=list)
    _since: int = 0

    @contextlib.contextmanager
    def of(self, part: str) -> Iterator[None]:
        self._turn()
        self._open.append(part)
        try:
            yield
        finally:
            self._turn()
            self._open.pop()

    def _turn(self) -> None:
        now = time.thread_time_ns()
        if self._open:
            self.spent_ns[self._open[-1]] += now - self._since
        self._since = now

    def seconds(self) -> dict[str, float]:
        return {part: spent / 1e9 for part, spent in self.spent_ns.items()}


@dataclass(slots=True)
class Asked:
    """Requests to the API of the hub, by who sent them, verb and resource. ``idle``: writes that changed nothing."""

    requests: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    idle: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def note(self, who: str, request: Request, revision: int, answer: Response, after: int) -> None:
        verb, resource = _verb(request), _resource(request.path)
        self.requests[who, verb, resource] += 1
        if request.method not in ("GET", "HEAD") and revision == after:
            self.idle[who, f"{verb} {answer.status}", resource] += 1


def _verb(request: Request) -> str:
    if request.method == "GET":
        return "watch" if request.query.get("watch") else "get" if _is_named(request.path) else "list"
    return {"POST": "create", "PUT": "update", "DELETE": "delete"}.get(request.method, "patch")


def _parts(path: str) -> list[str]:
    """Return the parts of a path after group and version, without the namespace."""
    parts = path.strip("/").split("/")
    parts = parts[3:] if parts[0] == "apis" else parts[2:]
    inside = len(parts) > 2 and parts[0] == "namespaces" and parts[2] not in ("status", "finalize")
    return parts[2:] if inside else parts


def _is_named(path: str) -> bool:
    return len(_parts(path)) != 1


def _resource(path: str) -> str:
    parts = _parts(path)
    return "/".join([parts[0], *parts[2:]]) if parts else "discovery"


@dataclass(slots=True)
class Metered:
    """A transport to the hub that counts, and that can be cut. ``part``: whose time it is; None: the caller's."""

    inner: Transport
    who: str
    store: Store
    meter: Meter
    asked: Asked
    part: str | None = None
    whole: bool = True
    _streams: list[Stream] = field(default_factory=list)

    def send(self, request: Request) -> Response:
        if request.cluster:
            return self.inner.send(request)
        if not self.whole:
            return Response.refused(Unavailable("the server does not answer (cut off)"))
        before = self.store.revision
        part = HUB_LEASES if _resource(request.path) == "leases" else self.part
        with self.meter.of(part) if part is not None else contextlib.nullcontext():
            answer = self.inner.send(request)
        self.asked.note(self.who, request, before, answer, self.store.revision)
        if answer.stream is not None and self.part is not None:
            self._streams = [one for one in self._streams if not one.ended]
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


@dataclass(slots=True)
class Ledger:
    """What is written on the hub, from its store: by resource, and when last; which Applications are as they shall be,
    which clusters have reported which Application whole."""

    clock: VirtualClock
    meter: Meter
    writes: Counter[str] = field(default_factory=Counter)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    last: dict[str, datetime] = field(default_factory=dict)
    apps: dict[str, str] = field(default_factory=dict)
    """The revision at which each Application is Synced, Healthy and its operation Succeeded; else empty."""
    reports: dict[str, Counter[str]] = field(default_factory=dict)
    """For each set how many of its clusters report Healthy and Synced, by revision."""

    def __call__(self, event: Event) -> None:
        with self.meter.of(BENCH):
            resource = event.stored.key.resource
            short = resource.rpartition("/")[2]
            self.writes[short] += 1
            self.last[short] = self.clock.now()
            self.kinds[short, event.type] += 1
            if short == "applications":
                self.apps[event.stored.key.name] = _revision_of(event.stored.obj) if event.type != "DELETED" else ""
            elif short == "multiclusterapplicationsetreports":
                entries = dig(event.stored.obj, "statuses", "clusterConditions") or ()
                well = [one.get("syncRevision", "") for one in entries if _is_well(one)]
                self.reports[event.stored.key.name] = Counter(well)

    def reported(self) -> int:
        """Return how many pairs of Application and cluster are Synced and Healthy in the report of their set."""
        return sum(one.total() for one in self.reports.values())

    def done(self) -> int:
        return sum(map(bool, self.apps.values()))


def _revision_of(app: Obj) -> str:
    status = app.get("status") or {}
    well = dig(status, "sync", "status") == "Synced" and dig(status, "health", "status") == "Healthy"
    whole = dig(status, "operationState", "phase") == "Succeeded" and status.get("resources")
    return str(dig(status, "sync", "revision") or "") if well and whole else ""


def _is_well(entry: Obj) -> bool:
    return (entry.get("syncStatus"), entry.get("healthStatus")) == ("Synced", "Healthy")


# -- time -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Timed:
    """An actor whose time counts for a part."""

    inner: WatchActor
    part: str
    meter: Meter

    @property
    def stirred(self) -> Callable[[], None]:
        return self.inner.stirred

    @stirred.setter
    def stirred(self, call: Callable[[], None]) -> None:
        self.inner.stirred = call

    def pump(self) -> bool:
        with self.meter.of(self.part):
            return self.inner.pump()

    def next_due(self, *, foreground_only: bool) -> datetime | None:
        return self.inner.next_due(foreground_only=foreground_only)

    def step(self) -> bool:
        with self.meter.of(self.part):
            return self.inner.step()

    def describe(self) -> str:
        return self.inner.describe()


class Crowd:
    """Runs the sites of a fleet in virtual time: only those with news or with something due, each until it is quiet."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self._awake: dict[int, VirtualDriver] = {}
        self._due: list[tuple[datetime, int, VirtualDriver]] = []
        self._count = count()
        self.parts: dict[int, tuple[Meter, str]] = {}

    def wake(self, site: VirtualDriver) -> None:
        self._awake[id(site)] = site

    def settle(self) -> None:
        while True:
            now = self.clock.now()
            while self._due and self._due[0][0] <= now:
                self.wake(heapq.heappop(self._due)[2])
            if not self._awake:
                return
            site = self._awake.pop(next(iter(self._awake)))
            self._run(site)

    def _run(self, site: VirtualDriver) -> None:
        meter, part = self.parts[id(site)]
        with meter.of(part):
            site.settle()
            for actor in site.actors:
                actor.stirred = lambda: self.wake(site)  # type: ignore[attr-defined]
            due = site._next(foreground_only=False)
        if due is not None:
            heapq.heappush(self._due, (due, next(self._count), site))

    def advance(self, seconds: float) -> None:
        end = self.clock.now() + timedelta(seconds=seconds)
        self.settle()
        while self._due and self._due[0][0] <= end:
            self.clock.set(max(self._due[0][0], self.clock.now()))
            self.settle()
        self.clock.set(end)

    def until(self, reached: Callable[[], bool], limit_s: float, step_s: float = 1.0) -> float:
        """Advance until ``reached()``, looked at each ``step_s``; return the virtual seconds. Raises SystemExit at the
        limit."""
        begun = self.clock.now()
        self.settle()
        while not reached():
            took = (self.clock.now() - begun).total_seconds()
            if took >= limit_s:
                raise SystemExit(f"not reached within {limit_s:g} virtual seconds")
            self.advance(step_s)
        return (self.clock.now() - begun).total_seconds()


# -- repositories -----------------------------------------------------------------------------------------------------


class Repositories:
    """A repository for each Application, with a branch for each cluster; a commit is a number."""

    def __init__(self) -> None:
        self.heads: Counter[tuple[str, str]] = Counter()
        self._made: dict[str, tuple[str, int]] = {}
        self._numbers = count(1)

    def commit(self, app: str, clusters: Iterable[str]) -> str:
        """Commit to the branches of these clusters; return the commit, which is the same in all."""
        heads = [(_repository(app), f"env/{one}") for one in clusters]
        number = next(self._numbers)
        self.heads |= dict.fromkeys(heads, number)
        return self._sha(heads[0][0], number)

    def release(self, app: str) -> str:
        """Make a commit on no branch, and return it."""
        return self._sha(_repository(app), next(self._numbers))

    def _sha(self, url: str, number: int) -> str:
        sha = hashlib.sha1(f"{url} {number}".encode(), usedforsecurity=False).hexdigest()
        self._made[sha] = url, number
        return sha

    def read(
        self, sources: tuple[Any, ...], revisions: tuple[str, ...], now: datetime, context: RenderContext = NO_CONTEXT
    ) -> Manifests:
        url, revision = str(sources[0]["repoURL"]), revisions[0]
        if revision not in self._made:
            revision = self._sha(url, self.heads[url, revision])
        return Manifests((revision,), guestbook(url.rpartition("/")[2], self._made[revision][1]), ("Directory",), now)

    def rows(self, *_: Any) -> Any:
        raise AssertionError("the sets of this bench ask no repository")

    def moment(self) -> int:
        return 0


def _repository(app: str) -> str:
    return f"https://git.example.com/{app}"


def guestbook(app: str, number: int) -> tuple[Obj, ...]:
    """Four objects without pods."""
    service = {"selector": {"app": app}, "ports": [{"port": 80}]}
    return (
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": app}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"{app}-files"}, "data": {"index": "x" * 400}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": app}, "data": {"version": str(number)}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": app}, "spec": service},
    )


# -- the fleet --------------------------------------------------------------------------------------------------------


class Cluster(VirtualDriver):
    """A managed cluster: the actors of its controllers and of its agent."""

    def __init__(self, clock: VirtualClock, name: str, core: ClusterCore) -> None:
        super().__init__(clock)
        self.name, self.core, self.admin = name, core, core.transport()
        self.link: Metered | None = None

    def send(self, verb: str, path: str, body: Any = None) -> Obj:
        made: Obj = self.admin.send(Request(verb, path, {}, MERGE if verb == "PATCH" else {}, body)).or_raise()
        return made


class PullFleet:
    """A hub with clusters that pull, all joined and at rest; no set yet."""

    def __init__(self, clusters: int, *, seed: int = 1, poll_s: float = 180.0, lease_s: int = 60) -> None:
        """``poll_s``: virtual seconds between two looks of a cluster at its repositories; ``lease_s``: between two
        renewals of its lease."""
        self.clock, self.entropy, self.meter, self.asked = VirtualClock(), Entropy(seed), Meter(), Asked()
        self.crowd, self.sources = Crowd(self.clock), Repositories()
        self.settings, self._lease_s = AppSettings(NAMESPACE, poll_s=poll_s), lease_s
        self.ledger = Ledger(self.clock, self.meter)
        self.hub = VirtualDriver(self.clock)
        self.core = self._core("hub", Store())
        self.core.bootstrap(port=6443)
        self.admin = self.core.transport()
        self.crowd.parts[id(self.hub)] = self.meter, "hub: driver"
        self._start_hub()
        self.core.store.subscribe(self.ledger)
        self.clusters: dict[str, Cluster] = {}
        self._beginning = self._set_up()
        for number in range(clusters):
            self.add(f"c{number:04}")
        for path, obj in _administrators():
            self.send("POST", path, obj)
        self.crowd.advance(150)

    def _core(self, name: str, store: Store) -> ClusterCore:
        return build_core(store=store, clock=self.clock, entropy=self.entropy.fork(name))

    def _driver(self, transport: Transport) -> SimulatedDriver:
        # Each line of a journal is kept: the fleet's are not read.
        return SimulatedDriver(self.clock, Forgetful(), transport, strict=True)

    def _begin(self, role: Role, site: VirtualDriver, transport: Transport, part: str = "") -> Callable[[], None]:
        driver = self._driver(transport)
        stop = start(role, driver)
        site.add(_Timed(driver.actor, part, self.meter) if part else driver.actor)
        self.crowd.wake(site)
        return stop

    # -- the hub -------------------------------------------------------------------------------------------------

    def _start_hub(self) -> None:
        settings, pulling = HubSettings(NAMESPACE), PullSettings(argo_namespace=NAMESPACE)
        admit_inside(self.core, settings)
        roles = [
            (cluster_role(BuiltinSettings("virtual cluster", machines_tell=True)), "built-in"),
            (hub_role(settings, objects=hub_objects(INSIDE), reach=lambda: INSIDE), "hub"),
            (pull_role(pulling, objects=tuple(pull_objects(pulling))), "pull"),
        ]
        for role, name in roles:
            run_in_place(ensure_objects(role.objects), self.admin)
            self._begin(role, self.hub, self._metered(role, name), f"hub: role {name}")
            self.crowd.settle()
        self._gitops(self.hub, self.admin, self.core, "gitops")

    def _metered(self, role: Role, name: str) -> Metered:
        return Metered(self.core.transport(role.user), name, self.core.store, self.meter, self.asked)

    def _gitops(self, site: VirtualDriver, admin: Transport, core: ClusterCore, name: str = "") -> None:
        user = gitops_user(NAMESPACE)
        transport: Transport = core.transport(user)
        if name:
            transport = Metered(transport, name, core.store, self.meter, self.asked)
        driver = self._driver(transport)
        remotes = RemoteClusters(VirtualWay(driver, site, {}), NAMESPACE)
        role = gitops(self.sources, self.settings, remotes, seed=self.entropy.fork("sets").uid()).role
        run_in_place(ensure_objects(role.objects), admin)
        start(role, driver)
        site.add(_Timed(driver.actor, f"hub: role {name}", self.meter) if name else driver.actor)
        self.crowd.wake(site)
        self.crowd.settle()

    def send(self, verb: str, path: str, body: Any = None) -> Obj:
        """Send a request to the hub as its administrator."""
        made: Obj = self.admin.send(Request(verb, path, {}, MERGE if verb == "PATCH" else {}, body)).or_raise()
        return made

    # -- clusters ------------------------------------------------------------------------------------------------

    def _set_up(self) -> tuple[int, list[Stored]]:
        """Set up one cluster without an agent, and return what its store holds: the beginning of each."""
        core = self._core("first", Store())
        core.bootstrap(port=6443)
        site = Cluster(self.clock, "first", core)
        run_in_place(ensure_objects(spoke_objects()), site.admin)
        self.crowd.parts[id(site)] = self.meter, SPOKES
        self._builtin(site)
        self._gitops(site, site.admin, core)
        self.crowd.settle()
        store = core.store
        return store.revision, [one for resource in store.resources() for one in store.list(resource)]

    def _builtin(self, site: Cluster) -> None:
        role = cluster_role(BuiltinSettings("virtual cluster", machines_tell=True))
        self._begin(role, site, site.core.transport(role.user))

    def add(self, name: str) -> Cluster:
        """Add a cluster that is registered at the hub and accepted, with its agent."""
        revision, objects = self._beginning
        store = Store()
        store.restore(revision, objects)
        site = self.clusters[name] = Cluster(self.clock, name, self._core(name, store))
        self.crowd.parts[id(site)] = self.meter, SPOKES
        self._builtin(site)
        cluster = {"apiVersion": f"{GROUP}/v1", "kind": "ManagedCluster", "metadata": {"name": name}}
        self.send(
            "POST", CLUSTERS, {**cluster, "spec": {"hubAcceptsClient": True, "leaseDurationSeconds": self._lease_s}}
        )
        self._gitops(site, site.admin, site.core)
        self._agent(site)
        self.crowd.settle()
        return site

    def _agent(self, site: Cluster) -> None:
        user = agent_user(site.name, "agent1")
        site.link = Metered(self.core.transport(user), "agent", self.core.store, self.meter, self.asked, part=HUB_API)
        own: dict[str, Transport] = {SPOKE: site.admin}
        driver = self._driver(RoutedTransport(site.link, own))
        settings = AgentSettings(site.name, "agent1", HUB_URL, self.entropy.fork(site.name))
        start(agent_role(settings, VirtualWay(driver, site, own), ClusterAccess("https://spoke.bench")), driver)
        site.add(driver.actor)
        self.crowd.wake(site)

    # -- what happens --------------------------------------------------------------------------------------------

    def fill(self, numbers: Iterable[int]) -> None:
        """Create one set over all clusters for each application."""
        for number in numbers:
            self.send("POST", SETS, application_set(f"app-{number:03}"))
        self.crowd.wake(self.hub)

    def forget_history(self) -> None:
        """Drop the history of all stores, as a server does in the course of time."""
        for core in (self.core, *(one.core for one in self.clusters.values())):
            core.store.compact(core.store.revision)

    def push(self, app: str, clusters: Iterable[str]) -> str:
        """Commit to the branches of clusters, whose webhooks make them look at once; return the commit."""
        named = list(clusters)
        sha = self.sources.commit(app, named)
        for name in named:
            site = self.clusters[name]
            body = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
            site.send("PATCH", f"{APPS}/{name}-{app}", body)
            self.crowd.wake(site)
        return sha


class Forgetful(Journal):
    """A journal that keeps nothing."""

    def write(self, entry: Any) -> None:
        pass


def application_set(app: str, revision: str = "env/{{name}}") -> Obj:
    """Return a set of one Application for each cluster that the Placement selects."""
    generator = {
        "configMapRef": "placement-generator",
        "labelSelector": {"matchLabels": {f"{GROUP}/placement": "all"}},
        "requeueAfterSeconds": 180,
    }
    apps = "apps.open-cluster-management.io"
    metadata = {
        "name": f"{{{{name}}}}-{app}",
        "labels": {f"{apps}/pull-to-ocm-managed-cluster": "true"},
        "annotations": {
            f"{apps}/ocm-managed-cluster": "{{name}}",
            f"{apps}/ocm-managed-cluster-app-namespace": NAMESPACE,
            "argocd.argoproj.io/skip-reconcile": "true",
        },
    }
    spec = {
        "project": "default",
        "source": {"repoURL": _repository(app), "path": ".", "targetRevision": revision},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        "syncPolicy": {"automated": {}},
    }
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "ApplicationSet",
        "metadata": {"name": app},
        "spec": {
            "generators": [{"clusterDecisionResource": generator}],
            "template": {"metadata": metadata, "spec": spec},
        },
    }


def _administrators() -> list[tuple[str, Obj]]:
    """Return what an administrator makes on the hub, each with the path of its collection."""
    binding = {"apiVersion": f"{GROUP}/v1beta2", "kind": "ManagedClusterSetBinding", "metadata": {"name": "global"}}
    placement = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Placement", "metadata": {"name": "all"}}
    # Else the Applications of a cluster that is away would be deleted.
    tolerations = [{"key": f"{GROUP}/{one}"} for one in ("unreachable", "unavailable")]
    data = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "placementdecisions",
        "statusListKey": "decisions",
        "matchKey": "clusterName",
    }
    labels = {"app.kubernetes.io/component": "server", "app.kubernetes.io/part-of": "argocd"}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "argocd-server", "labels": labels}}
    importer = {"apiVersion": "apps.open-cluster-management.io/v1beta1", "kind": "GitOpsCluster"}
    where = {"kind": "Placement", "apiVersion": f"{GROUP}/v1beta1", "name": "all", "namespace": NAMESPACE}
    server = {"cluster": "notused", "argoNamespace": NAMESPACE}
    maps = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "placement-generator"}, "data": data}
    return [
        (
            f"/apis/{GROUP}/v1beta2/namespaces/{NAMESPACE}/managedclustersetbindings",
            {**binding, "spec": {"clusterSet": "global"}},
        ),
        (
            f"/apis/{GROUP}/v1beta1/namespaces/{NAMESPACE}/placements",
            {**placement, "spec": {"tolerations": tolerations}},
        ),
        (f"/api/v1/namespaces/{NAMESPACE}/configmaps", maps),
        (f"/api/v1/namespaces/{NAMESPACE}/services", {**service, "spec": {"ports": [{"port": 443}]}}),
        (
            GITOPS_CLUSTERS,
            {**importer, "metadata": {"name": "importer"}, "spec": {"argoServer": server, "placementRef": where}},
        ),
    ]
