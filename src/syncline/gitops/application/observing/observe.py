"""Everything one reconcile over an Application reads, read once.

Called by the controller with the cache; returns frozen values only. Missing input is a value, never a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Protocol

from syncline.apply.health import Health, HealthStatus
from syncline.apply.health.overrides import HealthQuestion
from syncline.apply.predicting import Kept
from syncline.argo.application import AppView
from syncline.argo.clusters import HERE, Cluster, destination_of
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
from syncline.gitops.application.manifests import PATIENCE_S, Manifests, ManifestStore, Reading, local_manifests
from syncline.gitops.application.observing.asking import Asking
from syncline.gitops.application.observing.named import Named, NamedCache
from syncline.gitops.application.observing.orphans import count_orphans
from syncline.gitops.application.observing.schemas import SchemaCache, Schemas
from syncline.gitops.application.operating.depends import dependencies
from syncline.gitops.comparison.compare import asks_server
from syncline.gitops.holds.model import MANAGED_BY, POOL, Hold, application_label, holds_of, judged_with_holds
from syncline.gitops.sync.conditions import ConditionError, waits_of
from syncline.gitops.sync.model import KindTable
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, dig, labels_of, name_of, owner_references, ref_of
from syncline.kube.secretvalues import secret_masker
from syncline.kube.version import GIT_VERSION
from syncline.sources.errors import SourceError
from syncline.sources.git.signatures import policy_for
from syncline.sources.rendering.environment import RenderContext, plain_version

__all__ = [
    "INSTANCE_INDEX",
    "LOCAL_UNSIGNED",
    "AppObserved",
    "AppSettings",
    "Destinations",
    "compared_revisions",
    "effective_settings",
    "hydrates",
    "local_texts",
    "observe_application",
    "pinned_revisions",
    "render_context",
    "served_texts",
    "signed_only",
    "versioned_context",
    "wanted_revisions",
    "works_in",
]

INSTANCE_INDEX = "argocd-instance"
"""Index of all live objects by the application that their tracking data names."""
LOCAL_UNSIGNED = "Cannot use local manifests when source integrity is enforced"
NAMESPACES = GroupKind("", "Namespace")
SECRETS = GroupKind("", "Secret")


@dataclass(frozen=True)
class AppSettings:
    """Settings of the Application controller, put together once in ``assembly``."""

    control_namespace: str = "argocd"
    """Where Applications may name any project and need no prefix in tracking ids."""
    application_namespaces: tuple[str, ...] | None = None
    """Other namespaces whose Applications are worked on: names, globs, ``/expressions/``; None: those that
    ``application.namespaces`` of ``argocd-cmd-params-cm`` lists."""
    hydrator: bool | None = None
    """Whether dry sources are hydrated; None: as ``hydrator.enabled`` of ``argocd-cmd-params-cm`` says."""
    poll_s: float = 120.0
    """Seconds between reads a repository without notice (upstream: timeout.reconciliation)."""
    error_poll_s: float = 60.0
    """Seconds until a source that failed is tried again."""
    sync_timeout_s: float = 0.0
    """Seconds that an operation may take, its retries included; 0: as long as it likes (upstream: sync timeout)."""
    tracking: Tracking = field(default_factory=Tracking)
    repo_grace_s: float = 180.0
    """Seconds for which a source that cannot be read changes nothing, unless a refresh is requested (upstream:
    controller.repo.error.grace.period.seconds)."""
    read_patience_s: float = PATIENCE_S
    """Seconds after which an Application continues without the render that it waits for, and says so."""
    script_costs_s: Mapping[str, float] = field(default_factory=dict)
    """Virtual time: what scripts and expressions of users take, by their text; others take none."""
    kube_version: str = GIT_VERSION
    """What charts get where the destination has not said its version."""


class Destinations(Protocol):
    """Other clusters, as far as they are connected; assembly gives them."""

    def snapshot(self, server: str) -> Snapshot | None:
        """What is known of a cluster; None until it was seen whole once."""
        ...

    def problem(self, server: str) -> str:
        """Why it cannot be seen or reached now, in one sentence; empty where all is well."""
        ...


def _nowhere() -> Snapshot:
    """A cluster of which nothing is known."""
    return Cache(Mapper(), {INSTANCE_INDEX: lambda _obj: ()})


@dataclass(frozen=True, slots=True)
class Referred:
    """What conditions of manifests name, where the project may see it, and why the rest may not be read."""

    objects: Mapping[ObjectRef, Obj] = field(default_factory=dict)
    unread: Mapping[ObjectRef, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AppObserved:
    """One Application, its project, its manifests and what is live."""

    view: AppView
    project: Obj | None
    latest: Manifests | None
    """Manifests at the revision that the spec asks for; None: not rendered yet."""
    pinned: Manifests | None
    """Manifests at the revision of the operation in progress; None: no operation, or not rendered yet."""
    live: Mapping[ObjectRef, Obj]
    kinds: KindTable
    settings: AppSettings
    kube_version: str = ""
    """The destination's own; empty: not known."""
    reading: Reading | None = None
    """The render for the spec that continues now; ``latest`` is from before."""
    pinned_reading: Reading | None = None
    """That of the operation in progress."""
    namespace_live: Obj | None = None
    unread: Mapping[ObjectRef, str] = field(default_factory=dict)
    """Of its objects those that may not be read, and why: that they are not in ``live`` says nothing."""
    project_unread: str = ""
    """Why it is not known what its project says."""
    clusters_unread: str = ""
    """Why it is not known which clusters are declared."""
    clusters: tuple[Cluster, ...] = (HERE,)
    """Clusters that a destination may name."""
    pools: tuple[Obj, ...] = ()
    """MachineConfigPools of the cluster that the project may hold."""
    other_pools: tuple[Obj, ...] = ()
    """Those that it may not hold."""
    holds: tuple[Hold, ...] = ()
    """Holds that operations of this Application took, by name."""
    all_holds: tuple[Hold, ...] = ()
    orphans: int | None = None
    """Objects of the destination namespace that no Application tracks; None: the project does not warn of them."""
    remote: str = ""
    """Server of the destination where it is another cluster; empty at home."""
    remote_problem: str = ""
    """Why that cluster cannot be seen now."""
    referred: Referred = field(default_factory=Referred, repr=False)
    """What conditions of its manifests refer to."""
    followed: frozenset[GroupKind] = field(default=frozenset(), repr=False)
    """Of the kinds of its objects those that a working watch of the destination shows."""
    before: tuple[Obj | ObjectRef, ...] = ()
    """Applications that this one depends on, and theirs; a reference where the project sees none."""
    schemas: Schemas = field(default_factory=Schemas, repr=False)
    """Of built-in kinds and of the cluster's definitions."""
    compared: Manifests | None = None
    """Manifests at the commit that the status was compared to, if they are still known."""
    system: System = field(default_factory=System, compare=False)
    """What ``argocd-cm`` says about all Applications."""
    asking: Asking | None = None
    """Questions that are being answered beside the passes."""
    predictions: Mapping[str, Kept] | None = field(default=None, compare=False, repr=False)
    """Answers of the API server by question; None: it cannot be asked."""

    @property
    def asks_server(self) -> bool:
        """Whether the API server says what differs."""
        able = self.predictions is not None and not self.remote_problem
        return able and asks_server(self.view.obj, self.system.parameters.server_side_diff)

    @cached_property
    def reach(self) -> Reach:
        """What the project lets this Application name at its destination."""
        return Reach(self.project, self.cluster, self.project_clusters, self.kinds.namespaced)

    @cached_property
    def reach_of_applications(self) -> Reach:
        """The same among Applications."""
        return _among_applications(self.view, self.project, self.clusters, self.settings)

    def lookup(self, ref: ObjectRef) -> Obj | None:
        """What the destination holds under a reference; nothing where the project may not see it."""
        return None if self.reach.refuses(ref) else self.live.get(ref) or self.referred.objects.get(ref)

    def unread_there(self, ref: ObjectRef) -> str:
        """Why what a condition refers to may not be read; empty: it may."""
        return self.referred.unread.get(ref, "")

    @property
    def account(self) -> str:
        """Who is impersonated at the destination; empty: no one."""
        try:
            return self._account()
        except AccountError:
            return ""

    @property
    def account_problem(self) -> str:
        """Why the required impersonation is impossible; empty where it is possible."""
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
        """The destination; the one at home where it cannot be resolved."""
        found = destination_of(self.view.obj, self.clusters)
        return HERE if isinstance(found, str) else found

    @property
    def project_clusters(self) -> tuple[dict[str, str], ...]:
        """Clusters that belong to the Application's project."""
        return _own_clusters(self.view, self.clusters)

    def at_destination(self, steps: tuple[tuple[Action, ...], ...]) -> tuple[tuple[Action, ...], ...]:
        """These steps as they are done to the destination."""
        return _addressed(steps, self.remote, self.account)

    def at_cluster(self, steps: tuple[tuple[Action, ...], ...]) -> tuple[tuple[Action, ...], ...]:
        """These steps as the controllers themselves do them in the destination's cluster."""
        return _addressed(steps, self.remote, "")

    @cached_property
    def health(self) -> Callable[[Obj], Health | None]:
        """The health check of this installation; pools that are held count as Healthy."""
        return judged_with_holds(self.system.health, self.all_holds)

    @cached_property
    def unjudged(self) -> tuple[HealthQuestion, ...]:
        """Objects on which a script of a user has not been asked."""
        return self.system.unjudged((*self.live.values(), *self.referred.objects.values()))

    def shown_health(self, obj: Obj) -> Health | None:
        """The same for the status: until the script of a user has answered, the object is as healthy as it was."""
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
        """Whether Applications of its namespace are worked on."""
        return works_in(self.view.namespace, self.settings, self.system)

    @property
    def context(self) -> RenderContext:
        """What a render may know, with the API versions that are served now."""
        served = served_texts(self.kinds.served)
        return versioned_context(self.view, self.settings, self.kube_version, served)


def works_in(namespace: str, settings: AppSettings, system: System) -> bool:
    """Whether Applications of a namespace are worked on; of the others nothing is read and nothing is written."""
    patterns = settings.application_namespaces
    if patterns is None:
        patterns = system.parameters.application_namespaces
    return enables_namespace(namespace, settings.control_namespace, patterns)


def hydrates(settings: AppSettings, system: System) -> bool:
    """Whether dry sources are rendered into Git."""
    return system.parameters.hydrator if settings.hydrator is None else settings.hydrator


def _own_clusters(view: AppView, clusters: tuple[Cluster, ...]) -> tuple[dict[str, str], ...]:
    return tuple({"server": one.server, "name": one.name} for one in clusters if one.project == view.project)


def _among_applications(
    view: AppView, project: Obj | None, clusters: tuple[Cluster, ...], settings: AppSettings
) -> Reach:
    home = next((one for one in clusters if one.is_here), HERE)
    reach = Reach(project, project_clusters=_own_clusters(view, clusters))
    return reach.of_applications(home, view.namespace, settings.control_namespace)


def served_texts(kinds: Iterable[GVK]) -> set[str]:
    """API versions as charts get them."""
    return {text for gvk in kinds for text in (gvk.api_version, f"{gvk.api_version}/{gvk.kind}")}


def render_context(view: AppView, settings: AppSettings) -> RenderContext:
    """Who asks for a render."""
    return RenderContext(
        application=instance_name(view.obj, settings.control_namespace),
        project=view.project,
        namespace=view.destination_namespace,
        kube_version=plain_version(settings.kube_version),
    )


def versioned_context(view: AppView, settings: AppSettings, version: str, served: Iterable[str]) -> RenderContext:
    """As :func:`render_context`, with the versions of the destination."""
    found = plain_version(version or settings.kube_version)
    return replace(render_context(view, settings), kube_version=found, api_versions=tuple(sorted(served)))


def local_texts(view: AppView) -> tuple[str, ...]:
    """Manifests that the request brings with it."""
    return _texts(view.operation)


def _texts(operation: Obj | None) -> tuple[str, ...]:
    return tuple(str(text) for text in dig(operation, "sync", "manifests", default=()) or ())


def _kept_local(view: AppView, project: Obj | None) -> Manifests | None:
    """Manifests of the last operation, if it brought its own: until the next one they are what is compared with."""
    texts = _texts(dig(view.operation_state, "operation"))
    if not texts:
        return None
    if signed_only(project, view.sources):
        return Manifests(view.revisions_wanted, (), (), operation_start(view), error=LOCAL_UNSIGNED, local=True)
    return local_manifests(texts, view.revisions_wanted, operation_start(view))


def signed_only(project: Obj | None, sources: tuple[Obj, ...]) -> bool:
    """Whether the project wants signatures of one of these sources; charts and artifacts have none."""
    urls = [str(one.get("repoURL") or "") for one in sources if not one.get("chart")]
    try:
        return any(url and not url.startswith("oci://") and policy_for(project or {}, url) for url in urls)
    except SourceError:  # a policy that cannot be read is one
        return True


def operation_start(view: AppView) -> datetime:
    """When the operation began, the beginning of time where nothing says so."""
    return time_or_none(dig(view.operation_state, "startedAt")) or datetime.fromtimestamp(0, UTC)


def wanted_revisions(view: AppView) -> tuple[str, ...]:
    """Revisions that the operation asks for, else those of its sources: ``revisions`` where there are several sources,
    ``revision`` where there is one. A status written by hand may hold a wrong number."""
    sync = dig(view.operation, "sync", default={})
    sources = operation_sources(view)
    several = sync.get("revisions")
    if several and (len(sources) > 1 or view.multi_source):
        return tuple(str(revision) for revision in several)
    if len(sources) == 1 and sync.get("revision"):
        return (str(sync["revision"]),)
    return tuple(str(source.get("targetRevision") or "") for source in sources)


def _current_result(view: AppView) -> Obj:
    """The result of the operation in progress; that of a former one says nothing about it."""
    state = view.operation_state or {}
    over = state.get("phase") in ("Succeeded", "Failed", "Error")
    found = None if over else state.get("syncResult")
    return found if isinstance(found, dict) else {}


def operation_sources(view: AppView) -> tuple[Obj, ...]:
    """Sources of the operation in progress: of its result, of its request (rollback), else of the spec."""
    result = _current_result(view)
    for holder in (result, dig(view.operation, "sync", default={})):
        if holder.get("sources"):
            return tuple(holder["sources"])
        if isinstance(holder.get("source"), dict) and holder["source"].get("repoURL"):
            return (holder["source"],)
    return view.sources


def pinned_revisions(view: AppView) -> tuple[str, ...]:
    """The commits that the operation in progress has settled on, empty before."""
    result = _current_result(view)
    several = result.get("revisions")
    if several:
        return tuple(str(revision) for revision in several)
    return (str(result["revision"]),) if result.get("revision") else ()


def compared_revisions(view: AppView) -> tuple[str, ...]:
    """The commits that the status was compared to, empty before the first comparison."""
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
    """None: the Application is gone. ``schemas`` and ``book`` spare work; what is seen is the same without."""
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
    context = render_context(view, settings)
    project = _project(cache, project_ref, system.settings, clusters)
    latest = _kept_local(view, project) or store.get(view.sources, view.revisions_wanted, context)
    pinned, pinned_reading = _of_operation(view, store, context)
    latest, pinned = (_explained(view, found, settings, system) for found in (latest, pinned))
    all_holds = holds_of(looked.objects(HOLD.group_kind))
    label = application_label(app)
    book = book or NamedCache()
    kinds = book.kinds(looked)
    reach = _among_applications(view, project, clusters, settings)
    pools = looked.objects(POOL)
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
        namespace_live=looked.get(ObjectRef("", "Namespace", "", view.destination_namespace)),
        unread=_unread(looked, view, named),
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
    """Manifests of the operation in progress, and the render of them that continues."""
    if view.operation is None:
        return None, None
    sources, asked = operation_sources(view), pinned_revisions(view) or wanted_revisions(view)
    local = local_texts(view)
    if local:
        return local_manifests(local, asked, operation_start(view)), None
    return store.get(sources, asked, context), store.reading(sources, asked, context)


def _explained(view: AppView, found: Manifests | None, settings: AppSettings, system: System) -> Manifests | None:
    """Why a hydrated source may not be there yet, beside what is wrong with it."""
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
    """An Application that another one depends on; None also where the project may not see it."""
    found = cache.get(ref)
    if found is None and cache.unread(ref):  # it is not known how it stands
        return {
            "apiVersion": APPLICATION.api_version,
            "kind": ref.kind,
            "metadata": {"name": ref.name, "namespace": ref.namespace},
        }
    return found if found is not None and reach.sees_application(found, ref) else None


def _masker(renders: tuple[Manifests | None, ...], live: Mapping[ObjectRef, Obj], system: SystemSettings) -> Masker:
    """Of the Secrets that its manifests hold and that are live."""

    return secret_masker(partial(_objects, live, renders), system.hidden_annotations)


def _objects(live: Mapping[ObjectRef, Obj], renders: tuple[Manifests | None, ...]) -> Iterator[Obj]:
    yield from live.values()
    for manifests in renders:
        yield from manifests.objects if manifests is not None else ()


def effective_settings(settings: AppSettings, system: SystemSettings) -> AppSettings:
    """The settings of this process, with those that the installation sets."""
    if system.tracking is None and system.poll_s is None:
        return settings
    poll = settings.poll_s if system.poll_s is None else system.poll_s
    return replace(settings, tracking=system.tracking or settings.tracking, poll_s=poll)


def _project(cache: Snapshot, ref: ObjectRef, system: SystemSettings, clusters: tuple[Cluster, ...]) -> Obj | None:
    """With what belongs to it alone, and the lists of the global projects that its labels select."""
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
    """Of each render once."""
    objects = {id(one.objects): one.objects for one in renders if one is not None}
    return tuple(book.of(each, kinds, namespace) for each in objects.values())


def _followed(cache: Snapshot, named: tuple[Named, ...], live: Mapping[ObjectRef, Obj]) -> frozenset[GroupKind]:
    kinds = {NAMESPACES, *(kind for one in named for kind in one.kinds), *(ref.group_kind for ref in live)}
    return frozenset(filter(cache.follows, kinds))


def _live(cache: Snapshot, view: AppView, named: tuple[Named, ...], settings: AppSettings) -> dict[ObjectRef, Obj]:
    """What is tracked as ours and has no owner, and whatever has the key of a manifest."""
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


def _unread(cache: Snapshot, view: AppView, named: tuple[Named, ...]) -> dict[ObjectRef, str]:
    """Of what the manifests and the status name; and what else a sync of them has to know."""
    if cache.reads_all():
        return {}
    rows = dig(view.status, "resources", default=[])
    refs = {ObjectRef(*(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name"))) for row in rows}
    refs.update(ref for one in named for ref in one.refs)
    if "CreateNamespace=true" in dig(view.spec, "syncPolicy", "syncOptions", default=[]):
        refs.add(ObjectRef(*NAMESPACES, "", view.destination_namespace))
    if any(ref.group == POOL.group for ref in refs):  # pools are held before a machine config changes
        refs |= {ObjectRef(*POOL, "", ""), ObjectRef(*HOLD.group_kind, "", "")}
    return {ref: why for ref in sorted(refs) if (why := cache.unread(ref))}


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
    if not conditioned:
        return Referred()
    there = HERE if isinstance(cluster, str) else cluster
    reach = Reach(project, there, _own_clusters(view, clusters), kinds.namespaced)
    refs: dict[ObjectRef, None] = {}
    for obj in conditioned:
        try:
            refs |= dict.fromkeys(one.ref for one in waits_of(obj, kinds, view.destination_namespace, reach.refuses))
        except ConditionError:
            continue  # the operation says so and ends
    return Referred(
        {ref: known for ref in refs if (known := cache.get(ref)) is not None},
        {ref: why for ref in refs if (why := cache.unread(ref))},
    )


def _addressed(steps: tuple[tuple[Action, ...], ...], cluster: str, user: str) -> tuple[tuple[Action, ...], ...]:
    """The same steps, addressed; their shape stays."""
    if not cluster and not user:
        return steps
    return tuple(tuple(replace(action, cluster=cluster, user=user) for action in step) for step in steps)
