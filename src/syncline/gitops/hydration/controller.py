"""The hydration controller: connects the pure planner with caches and watches; decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from syncline.argo.application import AppView
from syncline.argo.clusters import destination_of
from syncline.argo.hydrator import GroupKey, group_key
from syncline.argo.parameters import PARAMETERS_MAP
from syncline.argo.settings import CONFIG_MAP, System, with_globals
from syncline.control.cache import OfKind, Snapshot
from syncline.control.controller import Controller, Watch
from syncline.gitops.application.observing.observe import (
    AppSettings,
    Destinations,
    effective_settings,
    hydrates,
    served_texts,
    versioned_context,
    works_in,
)
from syncline.gitops.application.observing.system import SystemCache
from syncline.gitops.hydration.plan import Group, Member, plan_hydration
from syncline.gitops.hydration.work import HydrationCache
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.objects import GroupKind, Obj, ObjectRef, is_terminating, name_of, namespace_of, ref_of

GROUPS = "syncline-hydration"
"""Index of Applications by hydration group and by the branch that they write."""
CONFIG_MAPS = GroupKind("", "ConfigMap")
SECRETS = GroupKind("", "Secret")


class Hydrations:
    """State of the hydrator outside the API; :meth:`controller` returns the controller itself."""

    def __init__(
        self,
        book: HydrationCache,
        settings: AppSettings,
        admits: Callable[[ObjectRef], bool] = lambda _ref: True,
        destinations: Destinations | None = None,
    ) -> None:
        self._book = book
        self._settings = settings
        self._admits = admits
        self._destinations = destinations
        self._system = SystemCache(settings)

    def controller(self) -> Controller[Group]:
        """Return the controller of Applications with ``spec.sourceHydrator``, in groups by their leaders."""
        return Controller(
            name="hydrator",
            kind=APPLICATION.group_kind,
            watches=(
                Watch(APPLICATION.group_kind, self._leader, when=_is_hydrated),
                Watch(APP_PROJECT.group_kind, self._of_project),
                Watch(CONFIG_MAPS, self._of_settings),
            ),
            reads=(SECRETS,),
            indices={GROUPS: OfKind(APPLICATION.group_kind, _indexed)},
            predicate=_is_hydrated,
            observe=self.observe,
            plan=plan_hydration,
        )

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Group | None:
        app = cache.get(ref)
        system = self._system.of(cache)
        key = _key(app) if app is not None else None
        if key is None or not hydrates(self._settings, system):
            return None
        apps = self._members(cache, repr(key), system)
        if not apps or ref_of(apps[0]) != ref or not self._admits(ref):
            return None
        branch = [one for one in self._members(cache, repr(key.destination), system) if _key(one) != key]
        return Group(
            key,
            tuple(self._member(cache, one, system) for one in apps),
            effective_settings(self._settings, system.settings),
            system.settings.hydration,
            self._book.resolution(key),
            self._book.looking(key),
            self._book.run(key),
            tuple(branch),
        )

    def _members(self, cache: Snapshot, value: str, system: System) -> list[Obj]:
        """Return the sorted members, without terminating Applications and those of namespaces that are not enabled."""
        found = [
            app
            for app in cache.indexed(GROUPS, value)
            if not is_terminating(app)
            and not AppView(app).skipped
            and works_in(namespace_of(app), self._settings, system)
        ]
        return sorted(found, key=ref_of)

    def _member(self, cache: Snapshot, app: Obj, system: System) -> Member:
        control = self._settings.control_namespace
        view = AppView(app, control_namespace=control)
        ref = ObjectRef(APP_PROJECT.group, APP_PROJECT.kind, control, view.project)
        project = cache.get(ref)
        if project is not None and system.settings.global_projects:
            named = {name_of(one): one for one in cache.objects(ref.group_kind, control)}
            project = with_globals(project, system.settings.global_projects, named)
        there = self._destination(cache, view, system)
        served = served_texts(info.gvk for info in there.mapper.versions()) if there is not None else set()
        version = there.mapper.version if there is not None else ""
        return Member(view, project, versioned_context(view, self._settings, version, served))

    def _destination(self, cache: Snapshot, view: AppView, system: System) -> Snapshot | None:
        """Return the snapshot of the cluster whose versions charts get; None if unknown."""
        secrets = cache.objects(SECRETS, self._settings.control_namespace)
        cluster = destination_of(view.obj, system.settings.clusters(secrets))
        if isinstance(cluster, str):
            return None
        if cluster.is_here:
            return cache
        return self._destinations.snapshot(cluster.server) if self._destinations is not None else None

    # -- who reconciles again ------------------------------------------------------------------------------------------

    def _leader(self, obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        """Return the leaders of all groups that write the same branch, as a collision there concerns them."""
        key = _key(obj)
        if key is None:
            return ()
        groups = {_key(app) for app in cache.indexed(GROUPS, repr(key.destination))} | {key}
        system = self._system.of(cache)
        found = [self._members(cache, repr(group), system) for group in groups if group is not None]
        return [ref_of(apps[0]) for apps in found if apps]

    def _of_project(self, obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return [ref for ref in _hydrated(cache) if self._uses(cache, ref, name_of(obj))]

    def _uses(self, cache: Snapshot, ref: ObjectRef, project: str) -> bool:
        app = cache.get(ref)
        key = _key(app) if app is not None else None
        return key is not None and any(AppView(one).project == project for one in cache.indexed(GROUPS, repr(key)))

    def _of_settings(self, obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        ours = name_of(obj) in (CONFIG_MAP, PARAMETERS_MAP)
        return _hydrated(cache) if ours and namespace_of(obj) == self._settings.control_namespace else ()


def _is_hydrated(old: Obj | None, new: Obj | None) -> bool:
    """Return whether the old or new Application is hydrated."""
    return any(obj is not None and AppView(obj).hydrator is not None for obj in (old, new))


def _key(app: Obj) -> GroupKey | None:
    hydrator = AppView(app).hydrator
    return None if hydrator is None else group_key(hydrator)


def _indexed(app: Obj) -> Iterable[str]:
    key = _key(app) if app.get("kind") == APPLICATION.kind else None
    return () if key is None else (repr(key), repr(key.destination))


def _hydrated(cache: Snapshot) -> list[ObjectRef]:
    return [ref_of(app) for app in cache.objects(APPLICATION.group_kind) if AppView(app).hydrator is not None]
