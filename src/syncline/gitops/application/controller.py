"""The Application controller: connects the pure planner with caches, handlers and watches; decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial

from syncline.apply.asking import AnswerCache, Ask
from syncline.apply.diff.memo import Verdicts
from syncline.apply.predicting import PredictionCache
from syncline.argo.application import REFRESH, AppView
from syncline.argo.dependencies import DEPENDS_ON, depends_on
from syncline.argo.parameters import PARAMETERS_MAP
from syncline.argo.settings import CONFIG_MAP
from syncline.control.cache import OfKind, Snapshot
from syncline.control.controller import EVERY, METADATA, Controller, Watch, comes_or_goes, differ
from syncline.control.plan import Plan, Result
from syncline.gitops.application.compared import Comparisons
from syncline.gitops.application.content import CHUNKS, CONTENTS, of_chunk, of_content
from syncline.gitops.application.content import INDICES as CONTENT_INDICES
from syncline.gitops.application.manifests import Manifests, ManifestStore
from syncline.gitops.application.observing.masking import masked_plan
from syncline.gitops.application.observing.named import NamedCache
from syncline.gitops.application.observing.observe import (
    INSTANCE_INDEX,
    AppObserved,
    AppSettings,
    Destinations,
    observe_application,
    render_context,
    works_in,
)
from syncline.gitops.application.observing.schemas import SchemaCache
from syncline.gitops.application.observing.system import SystemCache
from syncline.gitops.application.operating.operation import OperationPlan, settle_operation
from syncline.gitops.application.plan import compare_application, plan_application, settle_asked
from syncline.gitops.application.reports import Reports
from syncline.gitops.application.status import compared_before_end
from syncline.gitops.destinations import applications_in
from syncline.gitops.holds.model import MANAGED_BY, POOL, application_label, holds_of
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    labels_of,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
)

CONTROLLER = "application"
"""Name of the controller."""
MOST_IN_PLACE = 300
"""Manifests and live objects up to which an Application is planned on the event loop; larger ones go to a thread."""
DEPENDENCY_INDEX = "syncline-depends-on"
"""Index of Applications by the Applications that they wait for."""
CONFIG_MAPS = GroupKind("", "ConfigMap")
CRDS = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")


class Applications:
    """State of the Application controller between reconciles; :meth:`controller` returns the controller itself."""

    def __init__(
        self,
        store: ManifestStore,
        settings: AppSettings,
        destinations: Destinations | None = None,
        predictions: PredictionCache | None = None,
        answers: AnswerCache | None = None,
    ) -> None:
        """``answers``: results of evaluations that ran outside reconciles."""
        self._predictions = predictions
        self._store = store
        self._answers = answers or AnswerCache()
        self._settings = settings
        self._destinations = destinations
        self._schemas, self._named = SchemaCache(), NamedCache()
        self._compare = partial(compare_application, verdicts=Verdicts(), comparisons=Comparisons())
        self._system, self._reports = SystemCache(settings), Reports()

    def controller(self, admits: Callable[[ObjectRef], bool] = lambda _ref: True) -> Controller[AppObserved]:
        """Return the controller of kind Application; it watches projects, definitions and all tracked objects.
        ``admits``: whether this replica works on an Application."""
        return Controller(
            name=CONTROLLER,
            kind=APPLICATION.group_kind,
            watches=(
                Watch(APP_PROJECT.group_kind, _of_project),
                Watch(CRDS, lambda _obj, cache: _all(cache)),
                Watch(CONFIG_MAPS, self._of_settings),
                Watch(APPLICATION.group_kind, _of_dependency),
                Watch(HOLD.group_kind, _of_hold),
                Watch(POOL, _of_pool),
                Watch(CONTENTS, of_content, differ(lambda one: one.get("content"))),
                Watch(CHUNKS, of_chunk, comes_or_goes),
                Watch(None, self._of_live, self._matters, cluster=EVERY, reads=METADATA),
            ),
            indices={
                INSTANCE_INDEX: self._system.instances,
                DEPENDENCY_INDEX: OfKind(APPLICATION.group_kind, _depended_on),
                **CONTENT_INDICES,
            },
            urgent=_is_operating,
            reaches=lambda server, home: applications_in(home, server, self._settings.control_namespace),
            at_rest=_is_at_rest,
            beside=_beside,
            observe=lambda cache, ref: self._noted(ref, self.observe(cache, ref) if admits(ref) else None),
            plan=self.plan,
            settle=self.settle,
        )

    def works_on(self, cache: Snapshot, ref: ObjectRef) -> bool:
        """Return whether the settings enable the Application's namespace."""
        return works_in(ref.namespace, self._settings, self._system.of(cache))

    def last_read(self, app: Obj) -> Manifests | None:
        """Return the last render of an Application's source, or None if it is not cached."""
        view = AppView(app)
        return self._store.get(view.sources, view.revisions_wanted, render_context(view, self._settings))

    def observe(self, cache: Snapshot, ref: ObjectRef) -> AppObserved | None:
        if not self.works_on(cache, ref):
            return None
        app = cache.get(ref)
        if app is not None and AppView(app).skipped:
            return None  # on a hub most are: nothing else is read for them
        system = replace(self._system.of(cache), answers=self._answers.of(ref))
        books = self._schemas, system, self._destinations, self._named
        observed = observe_application(cache, ref, self._store, self._settings, *books)
        if observed is None:
            return None
        return replace(
            observed,
            predictions=None if self._predictions is None else self._predictions.known(),
            asking=self._answers.asking(ref),
        )

    def plan(self, observed: AppObserved, now: datetime) -> Plan:
        return masked_plan(observed.view, plan_application(observed, now, self._compare))

    def settle(
        self, observed: AppObserved, plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[AppObserved, Plan] | None:
        if len(results) == 1 and isinstance(results[0].action, Ask):
            further = settle_asked(observed, results[0], now, self._compare)
        else:
            further = settle_operation(observed, plan, results, now) if isinstance(plan, OperationPlan) else None
        return None if further is None else (further[0], masked_plan(observed.view, further[1]))

    def _of_settings(self, obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        is_ours = name_of(obj) in (CONFIG_MAP, PARAMETERS_MAP) and namespace_of(obj) == self._settings.control_namespace
        return _all(cache) if is_ours else ()

    def _noted(self, ref: ObjectRef, observed: AppObserved | None) -> AppObserved | None:
        self._reports.note(ref, observed)
        return observed

    def _matters(self, old: Obj | None, new: Obj | None) -> bool:
        return new is None or self._reports.matters(old, new, self._of_live(new, None))

    def _of_live(self, obj: Obj, _cache: Snapshot | None) -> Iterable[ObjectRef]:
        if owner_references(obj) and self._system.instances.tracking.is_copied(obj):
            return  # a ReplicaSet of a Deployment, for one: it takes no part in a comparison
        for instance in self._system.instances(obj):
            namespace, separator, name = instance.partition("_")
            if not separator:
                namespace, name = self._settings.control_namespace, instance
            yield ObjectRef(APPLICATION.group, APPLICATION.kind, namespace, name)


def _beside(observed: AppObserved) -> str | None:
    """Return the project if planning takes long enough for a worker thread: 0.1 ms per new object."""
    manifests = (made for made in (observed.latest, observed.pinned) if made is not None)
    size = len(observed.live) + sum(len(made.objects) for made in manifests)
    return observed.view.project if size > MOST_IN_PLACE else None


def _is_operating(app: Obj) -> bool:
    """Return whether an operation runs or has ended since the last comparison. Such Applications go first: of a
    thousand that start together, the first should become Synced and Healthy early, not all of them late."""
    ended = str(dig(app, "status", "operationState", "finishedAt", default="") or "")
    return bool(app.get("operation")) or bool(ended and ended >= str(dig(app, "status", "reconciledAt", default="")))


def _is_at_rest(app: Obj) -> bool:
    """Return whether the Application is Synced without a request, so that its own status change needs no reconcile."""
    asked = app.get("operation") or dig(app, "metadata", "deletionTimestamp") or REFRESH in annotations_of(app)
    return not asked and dig(app, "status", "sync", "status") == "Synced" and not compared_before_end(app)


def _of_dependency(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the Applications that wait for this one."""
    return [ref_of(app) for app in cache.indexed(DEPENDENCY_INDEX, f"{namespace_of(obj)}/{name_of(obj)}")]


def _of_hold(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    label = labels_of(obj).get(MANAGED_BY)
    return [ref for ref in _all(cache) if label == application_label(cache.get(ref) or {})] if label else ()


def _of_pool(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the Applications whose operations hold this pool."""
    held = [hold for hold in holds_of(cache.objects(HOLD.group_kind)) if name_of(obj) in hold.pools]
    return [ref for hold in held for ref in _of_hold(hold.obj, cache)]


def _of_project(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    for app in cache.objects(APPLICATION.group_kind):
        if ((app.get("spec") or {}).get("project") or "default") == name_of(obj):
            yield ref_of(app)


def _depended_on(obj: Obj) -> Iterable[str]:
    if obj.get("kind") != APPLICATION.kind or DEPENDS_ON not in annotations_of(obj):
        return ()
    return [f"{ref.namespace}/{ref.name}" for ref in depends_on(obj)]


def _all(cache: Snapshot) -> Iterable[ObjectRef]:
    return [ref_of(app) for app in cache.objects(APPLICATION.group_kind)]
