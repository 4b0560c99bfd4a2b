"""The ApplicationSet controller: connects the pure planner with caches, answers and watches; decides nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from syncline.apply.asking import AnswerCache
from syncline.appset.asking import AnswerStore
from syncline.appset.deciding import Unchanged
from syncline.appset.generators.generate import generate
from syncline.appset.observing.kinds import ListStore
from syncline.appset.observing.memory import Generations, Refreshes
from syncline.appset.observing.observe import (
    CONFIG_MAPS,
    OWNED_INDEX,
    REFRESH,
    SECRETS,
    SetObserved,
    Surroundings,
    config_map_names,
    decision_kinds,
    observe_set,
    owned_by,
    uses_clusters,
)
from syncline.appset.plan import Means, SetPlan, Stage, plan_set, settle_set
from syncline.appset.rendering.kept import RenderedApplications
from syncline.appset.status import ERROR
from syncline.argo.clusters import is_cluster_secret
from syncline.argo.parameters import PARAMETERS_MAP, enables_namespace
from syncline.argo.rollout.strategy import is_strict
from syncline.argo.settings import CONFIG_MAP
from syncline.control.cache import OfKind, Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, owner_of_kind
from syncline.control.plan import Plan, Result, Retry
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, meta, name_of, namespace_of, ref_of

CONTROLLER: Final = "applicationset"
"""Name of the controller."""
MOST_IN_PLACE: Final = 20
"""Applications up to which a set is planned on the event loop; larger and unknown ones go to a thread."""

_owners = owner_of_kind(APPLICATION_SET.group_kind)


class ApplicationSets:
    """State of the controller between reconciles; :meth:`controller` returns the controller itself."""

    def __init__(
        self,
        store: AnswerStore,
        control_namespace: str = "argocd",
        *,
        expressions: AnswerCache | None = None,
        lists: ListStore | None = None,
        around: Surroundings | None = None,
        seed: str = "",
    ) -> None:
        """``store``: answers to questions of generators; ``expressions``: results of jq expressions; ``lists``: objects
        of decision resources; ``seed``: a secret, what templates draw from (empty: they cannot)."""
        self._store = store
        self._expressions = expressions or AnswerCache()
        self._lists = lists or ListStore()
        self._around = around or Surroundings(control_namespace)
        self._generations, self._refreshes = Generations(partial(generate, kept=RenderedApplications())), Refreshes()
        self._means = Means(self._generations, Unchanged(), seed)
        self._progressive = False

    def controller(self, admits: Callable[[ObjectRef], bool] = lambda _ref: True) -> Controller[SetObserved]:
        """Return the controller of kind ApplicationSet. ``admits``: whether this replica works on a set."""
        return Controller(
            name=CONTROLLER,
            kind=APPLICATION_SET.group_kind,
            predicate=self._matters,
            watches=(
                Watch(APPLICATION.group_kind, _owners, when=self._application_matters),
                Watch(APPLICATION.group_kind, _strict_owners, when=_evidence_differs),
                Watch(SECRETS, self._of_secret),
                Watch(CONFIG_MAPS, self._of_config_map),
                Watch(APP_PROJECT.group_kind, _of_project, when=comes_or_goes),
            ),
            indices={OWNED_INDEX: OfKind(APPLICATION.group_kind, owned_by)},
            beside=self._beside,
            observe=lambda cache, ref: self.observe(cache, ref) if admits(ref) else None,
            plan=self.plan,
            settle=self.settle,
        )

    def works_on(self, cache: Snapshot, ref: ObjectRef) -> bool:
        """Return whether the settings enable the set's namespace."""
        around = self._around
        return enables_namespace(ref.namespace, around.control_namespace, around.settings(cache).namespaces)

    def observe(self, cache: Snapshot, ref: ObjectRef) -> SetObserved | None:
        if not self.works_on(cache, ref):
            return None
        appset = cache.get(ref)
        if appset is None:
            self._generations.forget(ref)
            return None
        maps = {
            name: cache.get(ObjectRef(*CONFIG_MAPS, self._around.control_namespace, name))
            for name in config_map_names(appset)
        }
        known = self._lists.known()
        kinds = decision_kinds(appset, {name: one for name, one in maps.items() if one is not None})
        listed = {key: known[key] for key in kinds if key in known}
        observed = observe_set(cache, ref, self._around, self._store.known(), listed)
        if observed is None:
            return None
        self._progressive = observed.settings.progressive
        return replace(
            observed,
            expressions=self._expressions.of(ref),
            evaluating=self._expressions.asking(ref),
            rows_before=self._generations.rows_before(ref),
            request=self._refreshes.of(ref),
        )

    def plan(self, observed: SetObserved, now: datetime) -> Plan:
        return plan_set(observed, now, self._means)

    def settle(
        self, observed: SetObserved, plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[SetObserved, Plan] | None:
        further = settle_set(observed, plan, results, now, self._means)
        if further is not None and _is_in_order(further[1]):
            made = further[1].generated
            assert made is not None, "a set in order was generated"
            self._generations.in_order(observed.ref, made)
        return further

    def _beside(self, observed: SetObserved) -> str | None:
        """Return whose share of threads plans a large set, or one whose templates may compute for seconds; None: it is
        planned in place."""
        known = self._generations.known(observed.ref)
        small = known is not None and max(len(known.made), len(observed.current)) <= MOST_IN_PLACE
        return None if small and not dig(observed.obj, "spec", "goTemplate") else observed.project

    # -- which changes matter ----------------------------------------------------------------------------------

    def _matters(self, old: Obj | None, new: Obj | None) -> bool:
        """Return whether a change of a set may matter: not its own status, but the states of its rollout."""
        self._refreshes.note(old, new)
        if old is None or new is None:
            return True
        if self._progressive and dig(old, "status", "applicationStatus") != dig(new, "status", "applicationStatus"):
            return True
        parts = ("uid", "labels", "finalizers", "deletionTimestamp")
        if old.get("spec") != new.get("spec") or any(meta(old).get(key) != meta(new).get(key) for key in parts):
            return True
        before, after = annotations_of(old), annotations_of(new)
        refreshed = REFRESH in before and REFRESH not in after
        return before != after and not (refreshed and {**after, REFRESH: before[REFRESH]} == before)

    def _application_matters(self, old: Obj | None, new: Obj | None) -> bool:
        """Return whether a change of an Application may matter to its set; those that come are the set's own."""
        if old is None or new is None:
            return old is not None
        if old.get("spec") != new.get("spec") or any(meta(old).get(key) != meta(new).get(key) for key in _WRITTEN):
            return True
        return self._progressive and any(dig(old, *path) != dig(new, *path) for path in _ROLLED)

    def _of_secret(self, secret: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        if not is_cluster_secret(secret) or namespace_of(secret) != self._around.control_namespace:
            return ()
        return [ref_of(one) for one in _sets(cache) if uses_clusters(one) or _is_invalid(one)]

    def _of_config_map(self, obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        if namespace_of(obj) != self._around.control_namespace:
            return ()
        name = name_of(obj)
        if name in (PARAMETERS_MAP, CONFIG_MAP):
            return map(ref_of, _sets(cache))
        return [
            ref_of(one) for one in _sets(cache) if any(name == map_ or "{{" in map_ for map_ in config_map_names(one))
        ]


_WRITTEN: Final = ("labels", "annotations", "finalizers", "ownerReferences")
_ROLLED: Final = (
    ("status", "health", "status"),
    ("status", "sync", "status"),
    ("status", "operationState", "phase"),
    ("status", "operationState", "startedAt"),
)


def _is_in_order(plan: SetPlan) -> bool:
    guard = plan.decision.guard if plan.decision is not None else None
    ends = plan.stage in (Stage.STATUS, Stage.END) and plan.decision is not None and plan.generated is not None
    return ends and not isinstance(plan.outcome, Retry) and (guard is None or guard.confirmed)


def _sets(cache: Snapshot) -> list[Obj]:
    return cache.objects(APPLICATION_SET.group_kind)


def _strict_owners(app: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the set of an Application if it wants strict evidence."""
    return [ref for ref in _owners(app, cache) if is_strict(cache.get(ref) or {})]


def _evidence_differs(old: Obj | None, new: Obj | None) -> bool:
    if old is None or new is None:
        return False
    paths = (("status", "reconciledAt"), ("status", "operationState", "finishedAt"), ("operation",))
    return any(dig(old, *path) != dig(new, *path) for path in paths)


def _of_project(_project: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the sets with invalid Applications: the project may be the missing one, or the set names none at all."""
    return [ref_of(one) for one in _sets(cache) if _is_invalid(one)]


def _is_invalid(appset: Obj) -> bool:
    found: Any = dig(appset, "status", "conditions", default=[]) or []
    return any(one.get("type") == ERROR and one.get("status") == "True" for one in found if isinstance(one, dict))
