"""Collects all inputs of one reconcile of an Application; begin at :func:`observe_application`.

The controller calls it with the cache; it returns frozen values only. Missing input is a value, never a request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Protocol

from syncline.apply.asking import Asking
from syncline.apply.health import Health, HealthStatus
from syncline.apply.health.overrides import HealthQuestion
from syncline.apply.predicting import Kept
from syncline.argo.application import AppView
from syncline.argo.clusters import HERE, Cluster, destination_of, own_clusters
from syncline.argo.dependencies import dependencies
from syncline.argo.hydrator import sync_source, target_branch
from syncline.argo.parameters import PARAMETERS_MAP, enables_namespace
from syncline.argo.project import Reach
from syncline.argo.project.accounts import AccountError, account_for
from syncline.argo.project.scoped import with_scoped
from syncline.argo.settings import System, SystemSettings, with_globals
from syncline.argo.tracking import Tracking, instance_name
from syncline.base.action import Action
from syncline.base.clock import time_or_none
from syncline.base.masking import Masker
from syncline.control.cache import Cache, Snapshot
from syncline.gitops.application.content import with_content
from syncline.gitops.application.manifests import PATIENCE_S, Manifests, ManifestStore, Reading, local_manifests
from syncline.gitops.application.observing.named import Named, NamedCache
from syncline.gitops.application.observing.orphans import count_orphans
from syncline.gitops.application.observing.schemas import SchemaCache, Schemas
from syncline.gitops.comparison.compare import asks_server
from syncline.gitops.gates.placing import Placing, is_cluster_group
from syncline.gitops.gates.sequence import SEQUENCE_JOB
from syncline.gitops.holds.model import MANAGED_BY, POOL, Hold, application_label, holds_of, judged_with_holds
from syncline.gitops.sync.conditions import Condition, ConditionError, seen_by, waits_of
from syncline.gitops.sync.facts import Facts
from syncline.gitops.sync.kinds import KindTable
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.mapper import Mapper
from syncline.kube.objects import (
    GVK,
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    labels_of,
    name_of,
    owner_references,
    ref_of,
)
from syncline.kube.schema.extensions import SOURCE
from syncline.kube.secretvalues import secret_masker
from syncline.kube.version import GIT_VERSION
from syncline.sources.errors import SourceError
from syncline.sources.git.signatures import policy_for
from syncline.sources.rendering.environment import RenderContext, plain_version

INSTANCE_INDEX = "argocd-instance"
"""Index of live objects by the application in their tracking data."""
LOCAL_UNSIGNED = "Cannot use local manifests when source integrity is enforced"
NAMESPACES = GroupKind("", "Namespace")
SECRETS = GroupKind("", "Secret")


@dataclass(frozen=True)
class AppSettings:
    """Settings of the Application controller, collected once in ``assembly``."""

    control_namespace: str = "argocd"
    """Namespace whose Applications may name any project and need no prefix in tracking ids."""
    application_namespaces: tuple[str, ...] | None = None
    """Other enabled namespaces: names, globs, ``/expressions/``; None: ``application.namespaces`` of
    ``argocd-cmd-params-cm``."""
    hydrator: bool | None = None
    """Whether dry sources are hydrated; None: ``hydrator.enabled`` of ``argocd-cmd-params-cm``."""
    poll_s: float = 120.0
    """Seconds between reads of a repository without webhooks (upstream: timeout.reconciliation)."""
    error_poll_s: float = 60.0
    """Seconds until a failed source is retried."""
    sync_timeout_s: float = 0.0
    """Seconds that an operation may take, retries included; 0: no limit (upstream: sync timeout)."""
    tracking: Tracking = field(default_factory=Tracking)
    repo_grace_s: float = 180.0
    """Seconds for which an unreadable source changes nothing, unless a refresh is requested (upstream:
    controller.repo.error.grace.period.seconds)."""
    read_patience_s: float = PATIENCE_S
    """Seconds after which a reconcile continues without the render that it waits for, and reports it."""
    script_costs_s: Mapping[str, float] = field(default_factory=dict)
    """Virtual time only: seconds that user scripts and expressions take, by their text; others take none."""
    kube_version: str = GIT_VERSION
    """Version given to charts while the destination's is unknown."""


class Destinations(Protocol):
    """The other clusters, as far as they are connected; provided by ``assembly``."""

    def snapshot(self, server: str) -> Snapshot | None:
        """Return the snapshot of a cluster; None until its first complete list."""
        ...

    def problem(self, server: str) -> str:
        """Return why the cluster cannot be read or reached now, in one sentence; empty if it can."""
        ...


def _nowhere() -> Snapshot:
    """Return the snapshot of an unknown cluster: empty."""
    return Cache(Mapper(), {INSTANCE_INDEX: lambda _obj: ()})


@dataclass(frozen=True, slots=True)
class Referred:
    """Objects that the manifests' conditions refer to and the project permits, and why others cannot be read."""

    objects: Mapping[ObjectRef, Obj] = field(default_factory=dict)
    unread: Mapping[ObjectRef, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AppObserved:
    """An Application with its project, manifests and live objects."""

    view: AppView
    project: Obj | None
    latest: Manifests | None
    """Manifests at the revision of the spec; None: not rendered yet."""
    pinned: Manifests | None
    """Manifests at the revision of the running operation; None: no operation, or not rendered yet."""
    live: Mapping[ObjectRef, Obj]
    kinds: KindTable
    settings: AppSettings
    kube_version: str = ""
    """Version of the destination; empty: unknown."""
    content: str = ""
    """As in :class:`RenderContext`."""
    reading: Reading | None = None
    """The running render for the spec; ``latest`` is older."""
    pinned_reading: Reading | None = None
    """The running render for the operation."""
    namespace_live: Obj | None = None
    unread: Mapping[ObjectRef, str] = field(default_factory=dict)
    """Objects that cannot be read, and why; their absence from ``live`` proves nothing."""
    project_unread: str = ""
    """Why the project cannot be read, or ""."""
    clusters_unread: str = ""
    """Why the cluster declarations cannot be read, or ""."""
    clusters: tuple[Cluster, ...] = (HERE,)
    """Clusters that a destination may name."""
    pools: tuple[Obj, ...] = ()
    """MachineConfigPools that the project may hold."""
    other_pools: tuple[Obj, ...] = ()
    """MachineConfigPools that the project may not hold."""
    holds: tuple[Hold, ...] = ()
    """Holds of this Application's operations, by name."""
    all_holds: tuple[Hold, ...] = ()
    orphans: int | None = None
    """Number of untracked objects in the destination namespace; None: the project does not warn of them."""
    remote: str = ""
    """Server URL of a remote destination; empty: the local cluster."""
    remote_problem: str = ""
    """Why the remote cluster cannot be read now, or ""."""
    referred: Referred = field(default_factory=Referred, repr=False)
    """Objects that conditions of the manifests refer to."""
    followed: frozenset[GroupKind] = field(default=frozenset(), repr=False)
    """Kinds of its objects that a working watch of the destination covers."""
    before: tuple[Obj | ObjectRef, ...] = ()
    """Applications that this one depends on, directly or not; a reference where the project cannot see one."""
    schemas: Schemas = field(default_factory=Schemas, repr=False)
    """Schemas of built-in kinds and of the cluster's CRDs."""
    compared: Manifests | None = None
    """Manifests at the commit that the status was compared to, if still cached."""
    system: System = field(default_factory=System, compare=False)
    """Settings of ``argocd-cm`` for all Applications."""
    asking: Asking | None = None
    """The running evaluation in the background, if any."""
    predictions: Mapping[str, Kept] | None = field(default=None, compare=False, repr=False)
    """Predictions of the API server by question; None: it cannot be queried."""

    @property
    def asks_server(self) -> bool:
        """Return whether server-side diff applies."""
        able = self.predictions is not None and not self.remote_problem
        return able and asks_server(self.view.obj, self.system.parameters.server_side_diff)

    @cached_property
    def reach(self) -> Reach:
        """Return what the project lets this Application name at its destination."""
        return Reach(self.project, self.cluster, self.project_clusters, self.kinds.namespaced)

    @cached_property
    def reach_of_applications(self) -> Reach:
        """Return what the project lets it see among Applications."""
        return _among_applications(self.view, self.project, self.clusters, self.settings)

    def lookup(self, ref: ObjectRef) -> Obj | None:
        """Return an object of the destination, or None if it does not exist or the project may not see it."""
        return None if self.reach.refuses(ref) else self.live.get(ref) or self.referred.objects.get(ref)

    def unread_there(self, ref: ObjectRef) -> str:
        """Return why an object of a condition cannot be read; empty if it can."""
        return self.referred.unread.get(ref, "")

    @property
    def account(self) -> str:
        """Return the user to impersonate at the destination; empty: none."""
        try:
            return self._account()
        except AccountError:
            return ""

    @property
    def account_problem(self) -> str:
        """Return why the required impersonation is impossible; empty if it is possible."""
        try:
            self._account()
        except AccountError as error:
            return f"failed to find a matching service account to impersonate: {error}"
        return ""

    def _account(self) -> str:
        if not self.system.settings.impersonates:
            return ""
        return account_for(self.project or {}, self.view.obj, self.cluster.server)

    @property
    def cluster(self) -> Cluster:
        """Return the destination; the local cluster if it cannot be resolved."""
        found = destination_of(self.view.obj, self.clusters)
        return HERE if isinstance(found, str) else found

    @property
    def project_clusters(self) -> tuple[dict[str, str], ...]:
        """Return the clusters that belong to the Application's project."""
        return _own_clusters(self.view, self.clusters)

    def at_destination(self, steps: tuple[tuple[Action, ...], ...]) -> tuple[tuple[Action, ...], ...]:
        """Address the steps to the destination, as the impersonated user."""
        return _addressed(steps, self.remote, self.account)

    def at_cluster(self, steps: tuple[tuple[Action, ...], ...]) -> tuple[tuple[Action, ...], ...]:
        """Address the steps to the destination's cluster, as the controller itself."""
        return _addressed(steps, self.remote, "")

    @cached_property
    def health(self) -> Callable[[Obj], Health | None]:
        """Return the health check of this installation; held pools count as Healthy."""
        return judged_with_holds(self.system.health, self.all_holds)

    @cached_property
    def unjudged(self) -> tuple[HealthQuestion, ...]:
        """Return the objects whose user scripts have no result yet."""
        return self.system.unjudged((*self.live.values(), *self.referred.objects.values()))

    def shown_health(self, obj: Obj) -> Health | None:
        """Return the health for the status: until a user's script has a result, the previous health."""
        found = self.health(obj)
        return (self._health_before.get(ref_of(obj)) or found) if found is not None and found.awaited else found

    @cached_property
    def _health_before(self) -> dict[ObjectRef, Health]:
        rows = dig(self.view.status, "resources", default=())
        known = set(HealthStatus) - {HealthStatus.MISSING}
        return {
            ObjectRef(*(str(row.get(key) or "") for key in ("group", "kind", "namespace", "name"))): Health(
                HealthStatus(row["health"]["status"]), str(row["health"].get("message") or ""), unsettled=True
            )
            for row in rows
            if dig(row, "health", "status") in known
        }

    @property
    def enabled(self) -> bool:
        """Return whether the Application's namespace is enabled."""
        return works_in(self.view.namespace, self.settings, self.system)

    @property
    def context(self) -> RenderContext:
        """Return the context of a render, with the API versions that are served now."""
        served = served_texts(self.kinds.served)
        found = versioned_context(self.view, self.settings, self.kube_version, served)
        return replace(found, content=self.content)


def works_in(namespace: str, settings: AppSettings, system: System) -> bool:
    """Return whether a namespace is enabled; Applications of others are neither read nor written."""
    patterns = settings.application_namespaces
    if patterns is None:
        patterns = system.parameters.application_namespaces
    return enables_namespace(namespace, settings.control_namespace, patterns)


def hydrates(settings: AppSettings, system: System) -> bool:
    """Return whether dry sources are rendered into Git."""
    return system.parameters.hydrator if settings.hydrator is None else settings.hydrator


def _own_clusters(view: AppView, clusters: tuple[Cluster, ...]) -> tuple[dict[str, str], ...]:
    return tuple(own_clusters(clusters, view.project))


def _among_applications(
    view: AppView, project: Obj | None, clusters: tuple[Cluster, ...], settings: AppSettings
) -> Reach:
    home = next((one for one in clusters if one.is_here), HERE)
    reach = Reach(project, project_clusters=_own_clusters(view, clusters))
    return reach.of_applications(home, view.namespace, settings.control_namespace)


def served_texts(kinds: Iterable[GVK]) -> set[str]:
    """Return API versions in the form that charts use."""
    return {text for gvk in kinds for text in (gvk.api_version, f"{gvk.api_version}/{gvk.kind}")}


def render_context(view: AppView, settings: AppSettings) -> RenderContext:
    """Return the context of a render: the Application that needs it."""
    return RenderContext(
        application=instance_name(view.obj, settings.control_namespace),
        project=view.project,
        namespace=view.destination_namespace,
        kube_version=plain_version(settings.kube_version),
        source=annotations_of(view.obj).get(SOURCE, ""),
    )


def versioned_context(view: AppView, settings: AppSettings, version: str, served: Iterable[str]) -> RenderContext:
    """As :func:`render_context`, with the versions of the destination."""
    found = plain_version(version or settings.kube_version)
    return replace(render_context(view, settings), kube_version=found, api_versions=tuple(sorted(served)))


def local_texts(view: AppView) -> tuple[str, ...]:
    """Return the manifests that the request contains."""
    return _texts(view.operation)


def _texts(operation: Obj | None) -> tuple[str, ...]:
    return tuple(str(text) for text in dig(operation, "sync", "manifests", default=()) or ())


def _kept_local(view: AppView, project: Obj | None) -> Manifests | None:
    """Return the manifests of the last operation if it brought its own; comparisons use them until the next one."""
    texts = _texts(dig(view.operation_state, "operation"))
    if not texts:
        return None
    if signed_only(project, view.sources):
        return Manifests(view.revisions_wanted, (), (), operation_start(view), error=LOCAL_UNSIGNED, local=True)
    return local_manifests(texts, view.revisions_wanted, operation_start(view))


def signed_only(project: Obj | None, sources: tuple[Obj, ...]) -> bool:
    """Return whether the project requires signatures for a source; charts and artifacts have none."""
    urls = [str(one.get("repoURL") or "") for one in sources if not one.get("chart")]
    try:
        return any(url and not url.startswith("oci://") and policy_for(project or {}, url) for url in urls)
    except SourceError:  # a policy that cannot be parsed counts as one
        return True


def operation_start(view: AppView) -> datetime:
    """Return when the operation began, or the epoch if unknown."""
    return time_or_none(dig(view.operation_state, "startedAt")) or datetime.fromtimestamp(0, UTC)


def wanted_revisions(view: AppView) -> tuple[str, ...]:
    """Return the revisions of the operation, else of its sources: ``revisions`` for several sources, ``revision`` for
    one. A status written by hand may hold a wrong number of them."""
    sync = dig(view.operation, "sync", default={})
    sources = operation_sources(view)
    several = sync.get("revisions")
    if several and (len(sources) > 1 or view.multi_source):
        return tuple(str(revision) for revision in several)
    if len(sources) == 1 and sync.get("revision"):
        return (str(sync["revision"]),)
    return tuple(str(source.get("targetRevision") or "") for source in sources)


def _current_result(view: AppView) -> Obj:
    """Return the result of the running operation, or an empty dict."""
    state = view.operation_state or {}
    over = state.get("phase") in ("Succeeded", "Failed", "Error")
    found = None if over else state.get("syncResult")
    return found if isinstance(found, dict) else {}


def operation_sources(view: AppView) -> tuple[Obj, ...]:
    """Return the sources of the running operation: from its result, its request (rollback), or the spec."""
    result = _current_result(view)
    for holder in (result, dig(view.operation, "sync", default={})):
        if holder.get("sources"):
            return tuple(holder["sources"])
        if isinstance(holder.get("source"), dict) and holder["source"].get("repoURL"):
            return (holder["source"],)
    return view.sources


def pinned_revisions(view: AppView) -> tuple[str, ...]:
    """Return the resolved commits of the running operation; empty before."""
    result = _current_result(view)
    several = result.get("revisions")
    if several:
        return tuple(str(revision) for revision in several)
    return (str(result["revision"]),) if result.get("revision") else ()


def compared_revisions(view: AppView) -> tuple[str, ...]:
    """Return the commits that the status was compared to; empty before the first comparison."""
    sync = dig(view.status, "sync", default={})
    if sync.get("revisions"):
        return tuple(str(revision) for revision in sync["revisions"])
    return (str(sync["revision"]),) if sync.get("revision") else ()


def observe_application(
    cache: Snapshot,
    ref: ObjectRef,
    store: ManifestStore,
    settings: AppSettings,
    schemas: SchemaCache | None = None,
    system: System | None = None,
    destinations: Destinations | None = None,
    book: NamedCache | None = None,
) -> AppObserved | None:
    """Return the inputs of a reconcile, or None if the Application is deleted. Caches save work only."""
    app = cache.get(ref)
    system = system or System()
    settings = effective_settings(settings, system.settings)
    if app is None:
        return None
    view = AppView(app, control_namespace=settings.control_namespace)
    project_ref = ObjectRef(APP_PROJECT.group, APP_PROJECT.kind, settings.control_namespace, view.project)
    clusters = system.settings.clusters(cache.objects(SECRETS, settings.control_namespace))
    cluster = destination_of(app, clusters)
    remote = "" if isinstance(cluster, str) or cluster.is_here else cluster.server
    there: Snapshot | None = cache
    problem = ""
    if remote:
        there = destinations.snapshot(remote) if destinations is not None else None
        problem = destinations.problem(remote) if destinations is not None else "this process does not connect to it"
    looked = there if there is not None else _nowhere()
    context = with_content(cache, app, render_context(view, settings))
    project = _project(cache, project_ref, system.settings, clusters)
    latest = _kept_local(view, project) or store.get(view.sources, view.revisions_wanted, context)
    pinned, pinned_reading = _of_operation(view, store, context)
    latest, pinned = (_explained(view, found, settings, system) for found in (latest, pinned))
    all_holds = holds_of(looked.objects(HOLD.group_kind))
    label = application_label(app)
    book = book or NamedCache()
    kinds = book.kinds(looked)
    reach, pools = _among_applications(view, project, clusters, settings), looked.objects(POOL)
    renders = latest, pinned
    named = _named(book, renders, kinds, view.destination_namespace)
    live = _live(looked, view, named, settings)
    return AppObserved(
        view=replace(view, mask=_masker(renders, live, system.settings)),
        project=project,
        latest=latest,
        pinned=pinned,
        reading=store.reading(view.sources, view.revisions_wanted, context),
        pinned_reading=pinned_reading,
        live=live,
        kinds=kinds,
        settings=settings,
        kube_version=looked.mapper.version,
        content=context.content,
        namespace_live=_namespace(looked, view, cluster),
        unread=_unread(looked, view, named, cluster),
        project_unread=cache.unread(project_ref) if project is None else "",
        clusters_unread=cache.unread(ObjectRef(*SECRETS, settings.control_namespace, "")),
        clusters=clusters,
        pools=tuple(pool for pool in pools if reach.holds(name_of(pool))),
        other_pools=tuple(pool for pool in pools if not reach.holds(name_of(pool))),
        holds=tuple(hold for hold in all_holds if labels_of(hold.obj).get(MANAGED_BY) == label),
        all_holds=all_holds,
        referred=_referred(looked, view, project, cluster, clusters, kinds, named),
        followed=_followed(looked, named, live),
        before=dependencies(partial(_application, cache, reach), app),
        orphans=count_orphans(looked, app, project, settings.tracking),
        compared=store.get(view.sources, compared_revisions(view), context),
        schemas=(schemas or SchemaCache()).of(looked, _objects(live, renders)),
        system=system,
        remote=remote,
        remote_problem=problem if there is None or problem else "",
    )


def _of_operation(
    view: AppView, store: ManifestStore, context: RenderContext
) -> tuple[Manifests | None, Reading | None]:
    """Return the manifests of the running operation, and their render if it is running."""
    if view.operation is None:
        return None, None
    sources, asked = operation_sources(view), pinned_revisions(view) or wanted_revisions(view)
    local = local_texts(view)
    if local:
        return local_manifests(local, asked, operation_start(view)), None
    return store.get(sources, asked, context), store.reading(sources, asked, context)


def _explained(view: AppView, found: Manifests | None, settings: AppSettings, system: System) -> Manifests | None:
    """Add to a render error why a hydrated source may not exist yet."""
    if found is None or not found.error or view.hydrator is None:
        return found
    synced, staged = sync_source(view.hydrator)["targetRevision"], target_branch(view.hydrator)
    why = ""
    if not hydrates(settings, system):
        why = f"dry sources are not hydrated: hydrator.enabled of {PARAMETERS_MAP} is not true"
    elif staged != synced and "app path does not exist" in found.error:
        why = f"waiting for an external process to update {synced} from {staged}"
    return replace(found, error=f"{found.error} - {why}") if why else found


def _application(cache: Snapshot, reach: Reach, ref: ObjectRef) -> Obj | None:
    """Return an Application that another depends on; None also if the project cannot see it."""
    found = cache.get(ref)
    if found is None and cache.unread(ref):  # its state is unknown
        return {
            "apiVersion": APPLICATION.api_version,
            "kind": ref.kind,
            "metadata": {"name": ref.name, "namespace": ref.namespace},
        }
    return found if found is not None and reach.sees_application(found, ref) else None


def _masker(renders: tuple[Manifests | None, ...], live: Mapping[ObjectRef, Obj], system: SystemSettings) -> Masker:
    """Return a masker of the Secrets in its manifests and among its live objects."""

    return secret_masker(partial(_objects, live, renders), system.hidden_annotations)


def _objects(live: Mapping[ObjectRef, Obj], renders: tuple[Manifests | None, ...]) -> Iterator[Obj]:
    yield from live.values()
    for manifests in renders:
        yield from manifests.objects if manifests is not None else ()


def effective_settings(settings: AppSettings, system: SystemSettings) -> AppSettings:
    """Return the settings of this process, overridden by those of the installation."""
    if system.tracking is None and system.poll_s is None:
        return settings
    poll = settings.poll_s if system.poll_s is None else system.poll_s
    return replace(settings, tracking=system.tracking or settings.tracking, poll_s=poll)


def _project(cache: Snapshot, ref: ObjectRef, system: SystemSettings, clusters: tuple[Cluster, ...]) -> Obj | None:
    """Return the project with its scoped objects and the lists of the global projects that select it."""
    found = cache.get(ref)
    if found is None:
        return None
    found = with_scoped(found, cache.objects(SECRETS, ref.namespace), clusters)
    if not system.global_projects:
        return found
    refs = [ref._replace(name=entry.name) for entry in system.global_projects]
    named = {one.name: project for one in refs if (project := cache.get(one)) is not None}
    return with_globals(found, system.global_projects, named)


def _named(
    book: NamedCache, renders: tuple[Manifests | None, ...], kinds: KindTable, namespace: str
) -> tuple[Named, ...]:
    """Return the names of each distinct render."""
    objects = {id(one.objects): one.objects for one in renders if one is not None}
    return tuple(book.of(each, kinds, namespace) for each in objects.values())


def _followed(cache: Snapshot, named: tuple[Named, ...], live: Mapping[ObjectRef, Obj]) -> frozenset[GroupKind]:
    kinds = {NAMESPACES, *(kind for one in named for kind in one.kinds), *(ref.group_kind for ref in live)}
    return frozenset(filter(cache.follows, kinds))


def _live(cache: Snapshot, view: AppView, named: tuple[Named, ...], settings: AppSettings) -> dict[ObjectRef, Obj]:
    """Return tracked objects without an owner, and objects with the key of a manifest."""
    found: dict[ObjectRef, Obj] = {}
    for obj in cache.indexed(INSTANCE_INDEX, instance_name(view.obj, settings.control_namespace)):
        ref = ref_of(obj)
        if not owner_references(obj) and ref != view.ref:  # a child of an app of apps, but not the application itself
            found[ref] = obj
    for ref in (ref for one in named for ref in one.refs):
        obj_ = cache.get(ref)
        if obj_ is not None:
            found[ref] = obj_
    return found


def _namespace(cache: Snapshot, view: AppView, cluster: Cluster | str) -> Obj | None:
    """Return the destination namespace. One that the Secret of the cluster names is there: it can't be looked at."""
    name = view.destination_namespace
    if isinstance(cluster, Cluster) and name in cluster.namespaces and not cluster.cluster_resources:
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return cache.get(ObjectRef(*NAMESPACES, "", name))


def _unread(cache: Snapshot, view: AppView, named: tuple[Named, ...], cluster: Cluster | str) -> dict[ObjectRef, str]:
    """Return which objects of manifests and status, or else needed by a sync, cannot be read, and why. What the Secret
    of the cluster leaves out is the comparison's to say."""
    if cache.reads_all():
        return {}
    rows = dig(view.status, "resources", default=[])
    refs = {ObjectRef(*(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name"))) for row in rows}
    refs.update(ref for one in named for ref in one.refs)
    if "CreateNamespace=true" in dig(view.spec, "syncPolicy", "syncOptions", default=[]):
        refs.add(ObjectRef(*NAMESPACES, "", view.destination_namespace))
    if any(ref.group == POOL.group for ref in refs):  # pools are held before a machine config changes
        refs |= {ObjectRef(*POOL, "", ""), ObjectRef(*HOLD.group_kind, "", "")}
    there = cluster if isinstance(cluster, Cluster) else HERE
    mine = [ref for ref in sorted(refs) if not there.refuses(ref.kind, ref.namespace, ref.name)]
    return {ref: why for ref in mine if (why := cache.unread(ref))}


def _referred(
    cache: Snapshot,
    view: AppView,
    project: Obj | None,
    cluster: Cluster | str,
    clusters: tuple[Cluster, ...],
    kinds: KindTable,
    named: tuple[Named, ...],
) -> Referred:
    conditioned = [obj for one in named for obj in one.conditioned]
    gated = [obj for one in named for obj in one.gated]
    if not conditioned and not gated:
        return Referred()
    there = HERE if isinstance(cluster, str) else cluster
    reach = Reach(project, there, _own_clusters(view, clusters), kinds.namespaced)
    refs: dict[ObjectRef, None] = {}
    for obj in conditioned:
        try:
            conditions = waits_of(obj, kinds, view.destination_namespace, reach.refuses)
        except ConditionError:
            continue  # the operation reports it and ends
        for one in conditions:
            refs |= _looked_at(one, cache)
    for gate in placing(view, kinds, reach).gates(map(Facts.of, gated), gated)[0]:
        refs |= {} if gate.refused else _looked_at(gate.condition, cache)
    return Referred(
        {ref: known for ref in refs if (known := cache.get(ref)) is not None},
        {ref: why for ref in refs if (why := cache.unread(ref))},
    )


def placing(view: AppView, kinds: KindTable, reach: Reach) -> Placing:
    """Return what decides which waves of the Application have a gate behind them."""
    annotations = annotations_of(view.obj)
    asked = annotations.get(SEQUENCE_JOB, "")
    group = is_cluster_group(view.spec, annotations)
    return Placing(kinds, view.destination_namespace, reach.refuses, group, asked)


def _looked_at(condition: Condition, cache: Snapshot) -> dict[ObjectRef, None]:
    """Return the objects that a condition looks at now."""
    refs = {condition.ref: None}

    def find(ref: ObjectRef) -> Obj | None:
        refs[ref] = None
        return cache.get(ref)

    condition.problem(None, lambda _obj: None, known=seen_by(find, lambda _ref: ""))
    return refs


def _addressed(steps: tuple[tuple[Action, ...], ...], cluster: str, user: str) -> tuple[tuple[Action, ...], ...]:
    """Set cluster and user in all actions."""
    if not cluster and not user:
        return steps
    return tuple(tuple(replace(action, cluster=cluster, user=user) for action in step) for step in steps)
