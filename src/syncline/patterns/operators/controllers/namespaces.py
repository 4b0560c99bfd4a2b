"""The controller of namespaces with Subscriptions: resolves them, and makes InstallPlans."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from syncline.base.action import Action
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import (
    Create,
    Delete,
    Emit,
    Outcome,
    Patch,
    Plan,
    Requeue,
    Result,
    Retry,
    awaiting_lists,
    set_status,
)
from syncline.control.plan import Done as NothingToDo
from syncline.kube.kinds.operatorlifecycle import INSTALL_PLAN
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    generation,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from syncline.patterns.operators.catalogs.model import Catalog, SourceKey
from syncline.patterns.operators.controllers.looking import (
    GLOBAL_NAMESPACE,
    GROUPS,
    MANAGER,
    NAMESPACES,
    PLANS,
    SOURCES,
    SUBSCRIPTIONS,
    VERSIONS,
    Offers,
    by_name,
    its_namespace,
    namespace_ref,
    unlisted,
)
from syncline.patterns.operators.controllers.sources import health_of, is_healthy
from syncline.patterns.operators.groups import fails_forward
from syncline.patterns.operators.phases import is_copied
from syncline.patterns.operators.resolver.resolve import Request, resolve, uses_global
from syncline.patterns.operators.resolving import (
    Decided,
    adopted,
    decide,
    outlived,
    planned,
    settle,
    unplanned,
    waits_for_plan,
)
from syncline.patterns.operators.subscriptions import check_plan, deprecated, plan_not_found, update_health

_KINDS = (SUBSCRIPTIONS, VERSIONS, PLANS, GROUPS, SOURCES)
DEBOUNCE_S = 0.5
"""Several Subscriptions of a wave come at the same time, and are resolved together."""


MOST_IN_PLACE = 200
"""Entries of catalogues up to which a namespace is resolved on the loop: about ten milliseconds."""


@dataclass(frozen=True, slots=True)
class Looked:
    """``sources``: the CatalogSources that the namespace can use; ``catalogs``: those of them that are healthy."""

    namespace: str
    subscriptions: tuple[Obj, ...]
    csvs: Mapping[str, Obj]
    plans: tuple[Obj, ...]
    groups: tuple[Obj, ...]
    sources: tuple[Obj, ...]
    catalogs: Mapping[SourceKey, Catalog]
    unlisted: tuple[str, ...] = ()


def _refreshed(looked: Looked, now: datetime) -> tuple[Obj, ...]:
    """Return the Subscriptions with the health of their catalogues and the state of their InstallPlans."""
    plans, health = by_name(looked.plans), [health_of(one, now) for one in looked.sources]

    def fresh(one: Obj) -> Obj:
        spec, before = one.get("spec") or {}, one.get("status") or {}
        status = update_health(spec, before, health, now)
        status = deprecated(status, str(spec.get("channel") or ""), _deprecations(looked, spec, status), now)
        reference = status.get("installPlanRef")
        if reference:
            plan = plans.get(str(reference.get("name")))
            status = plan_not_found(status, now) if plan is None else check_plan(status, plan.get("status") or {}, now)
        return one if status is before else {**one, "status": status}

    return tuple(fresh(one) for one in looked.subscriptions)


def _deprecations(looked: Looked, spec: Obj, status: Obj) -> Obj | None:
    """Return what the catalogue says about the installed version; None: it does not have it."""
    source = SourceKey(str(spec.get("source") or ""), str(spec.get("sourceNamespace") or ""))
    package = looked.catalogs[source].packages.get(str(spec.get("name") or "")) if source in looked.catalogs else None
    if package is None:
        return None
    channel = package.channels.get(str(spec.get("channel") or package.default_channel))
    entry = next((one for one in channel.entries if one.name == status.get("installedCSV")), None) if channel else None
    if channel is None or entry is None:
        return None
    return {"package": package.deprecated, "channel": channel.deprecated, "bundle": entry.bundle.deprecated}


@dataclass(frozen=True, slots=True)
class _Pass:
    """One look at a namespace. ``decided`` None: nothing is resolved in this pass, for the reason ``why``."""

    subscriptions: tuple[Obj, ...]
    why: str
    decided: Decided | None = None


def _look(looked: Looked, now: datetime) -> _Pass:
    forward = any(map(fails_forward, looked.groups))
    fresh = _refreshed(looked, now)
    subscriptions = adopted(fresh, looked.plans, now)
    settled, changed = settle(subscriptions, looked.csvs, by_name(looked.plans), forward, now)
    if changed or subscriptions != fresh:
        return _Pass(settled, "the state of Subscriptions changes, and is looked at again")
    if all(map(waits_for_plan, settled)):
        return _Pass(settled, "all Subscriptions have an InstallPlan that is not done")
    found = resolve(Request(looked.namespace, settled, looked.csvs, looked.groups, looked.catalogs))
    decided = decide(settled, found, looked.plans, now)
    why = decided.error or found.error or f"{len(found.steps)} steps are planned"
    return _Pass(decided.subscriptions, why, decided)


def _named(plan: Obj) -> str:
    metadata, spec = plan["metadata"], plan["spec"]
    text = json.dumps([metadata["namespace"], spec["generation"], spec["clusterServiceVersionNames"]])
    return f"install-{hashlib.sha256(text.encode()).hexdigest()[:5]}"


def _begun(looked: Looked, wanted: Obj) -> Obj | None:
    """Return the InstallPlan that was created for this, and got no status: a crash came between."""

    def same(one: Obj) -> bool:
        names = one["spec"].get("clusterServiceVersionNames") == wanted["spec"]["clusterServiceVersionNames"]
        return names and not dig(one, "status", "plan", default=None)

    return next((one for one in looked.plans if same(one)), None)


def plan(looked: Looked, now: datetime) -> Plan:
    """Plan one reconcile of a namespace."""
    if looked.unlisted:
        return Plan(*awaiting_lists(looked.unlisted))
    old = tuple(Delete.of(one, "newer generations exist") for one in outlived(looked.plans))
    if not looked.subscriptions:
        return Plan((old,) if old else (), why="no Subscription is here")
    found = _look(looked, now)
    decided = found.decided
    if decided is None or decided.plan is None:
        outcome: Outcome = NothingToDo()
        if decided is not None and decided.error:
            outcome = Retry(decided.error)
        elif decided is not None and decided.again_s is not None:
            outcome = Requeue(decided.again_s, found.why)
        status = _statuses(looked, found.subscriptions, found.why)
        return Plan((old,) if old else (), outcome, found.why, (*status, *_events(looked, found)))
    begun = _begun(looked, decided.plan)
    if begun is not None:
        return _referring(looked, decided, begun, now)
    wanted = {key: value for key, value in decided.plan.items() if key != "status"}
    metadata = {key: value for key, value in wanted["metadata"].items() if key != "generateName"}
    create = Create({**wanted, "metadata": {**metadata, "name": _named(decided.plan)}}, found.why)
    return Plan((*((old,) if old else ()), (create,)), why=found.why)


def _statuses(looked: Looked, subscriptions: Iterable[Obj], why: str) -> tuple[Action, ...]:
    known = by_name(looked.subscriptions)
    made: list[Action] = []
    for one in subscriptions:
        if name_of(one) in known:
            made += set_status(known[name_of(one)], one.get("status") or {}, why)
    return tuple(made)


def _events(looked: Looked, found: _Pass) -> tuple[Action, ...]:
    """Return an Event on the namespace when a resolution fails for a new reason."""
    failed = found.decided is not None and any(
        one.get("type") == "ResolutionFailed" for each in found.subscriptions for one in _conditions(each)
    )
    said = [one for each in looked.subscriptions for one in _conditions(each) if one.get("type") == "ResolutionFailed"]
    if not failed or any(one.get("message") == found.why for one in said):
        return ()
    where = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": looked.namespace}}
    return (Emit(where, "ResolutionFailed", found.why, MANAGER, warning=True, limited=True),)


def _conditions(subscription: Obj) -> list[Obj]:
    found: list[Obj] = dig(subscription, "status", "conditions", default=None) or []
    return found


def _referring(looked: Looked, decided: Decided, created: Obj, now: datetime) -> Plan:
    """Write the first status of a new InstallPlan, and the references to it."""
    assert decided.plan is not None, "there is an InstallPlan"
    why, name = "the InstallPlan is made", name_of(created)
    body = {"metadata": {"uid": uid_of(created)}, "status": decided.plan["status"]}
    write = Patch(INSTALL_PLAN, looked.namespace, name, body, why, subresource="status")
    after = planned(decided, created, now)
    return Plan(((write,), _statuses(looked, after.subscriptions, why)), why=f"{why}: {name}")


def follow_up(looked: Looked, done: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Looked, Plan] | None:
    """Continue once the InstallPlan was created, or could not be."""
    made = next((one for one in results if isinstance(one.action, Create)), None)
    if made is None:
        return None
    found = _look(looked, now)
    if found.decided is None or found.decided.plan is None:
        return None
    if made.ok:
        return looked, _referring(looked, found.decided, made.value, now)
    failed = unplanned(looked.subscriptions, str(made.error), now)
    status = _statuses(looked, failed.subscriptions, failed.error)
    return looked, Plan(outcome=Retry(failed.error), why=failed.error, status=status)


def _observe(offers: Offers, cache: Snapshot, ref: ObjectRef) -> Looked | None:
    namespace = ref.name
    here = cache.get(ref)
    if here is None or is_terminating(here):
        return None
    subscriptions = tuple(one for one in cache.objects(SUBSCRIPTIONS, namespace) if not is_terminating(one))
    plans = tuple(cache.objects(PLANS, namespace))
    if not subscriptions and not plans:
        return None
    groups = tuple(cache.objects(GROUPS, namespace))
    places = dict.fromkeys((namespace, GLOBAL_NAMESPACE)) if uses_global(groups) else {namespace: None}
    sources = [one for place in places for one in cache.objects(SOURCES, place)]
    sources.sort(key=lambda one: namespace_of(one) + name_of(one))
    catalogs = dict(_usable(offers, namespace, sources))
    csvs = by_name(one for one in cache.objects(VERSIONS, namespace) if not is_copied(one))
    missing = unlisted(cache, _KINDS)
    return Looked(namespace, subscriptions, csvs, plans, groups, tuple(sources), catalogs, missing)


def _usable(offers: Offers, namespace: str, sources: Iterable[Obj]) -> Iterable[tuple[SourceKey, Catalog]]:
    """Yield the healthy catalogues: by priority, those of the namespace before others, by name."""

    def rank(one: Obj) -> tuple[int, bool, str]:
        return -int(dig(one, "spec", "priority", default=0) or 0), namespace_of(one) != namespace, name_of(one)

    for one in sorted(sources, key=rank):
        found = offers(one) if is_healthy(one) else ""
        if not isinstance(found, str):
            yield SourceKey(name_of(one), namespace_of(one)), found


def _users(source: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Map a CatalogSource to the namespaces that can use it."""
    if namespace_of(source) != GLOBAL_NAMESPACE:
        return (namespace_ref(namespace_of(source)),)
    return (namespace_ref(name) for name in {namespace_of(one) for one in cache.objects(SUBSCRIPTIONS)})


def _connected(source: Obj) -> object:
    return dig(source, "status", "connectionState", "lastObservedState"), dig(source, "spec", "priority")


def _beside(looked: Looked) -> str | None:
    """Return the namespace if its resolution takes long enough for a worker thread."""
    size = sum(one.size for one in looked.catalogs.values()) if looked.subscriptions else 0
    return looked.namespace if size > MOST_IN_PLACE else None


def namespace_controller(offers: Offers) -> Controller[Looked]:
    """Return the controller; ``offers``: the catalogues that the administrator has named."""
    return Controller(
        name="resolution",
        kind=NAMESPACES,
        predicate=differ(is_terminating),
        watches=(
            Watch(SUBSCRIPTIONS, its_namespace, differ(generation, lambda one: one.get("status"))),
            Watch(VERSIONS, its_namespace, differ(lambda one: dig(one, "status", "phase"), labels_of)),
            Watch(PLANS, its_namespace, differ(lambda one: dig(one, "status", "phase"), generation, _said)),
            Watch(GROUPS, its_namespace, differ(generation, annotations_of)),
            Watch(SOURCES, _users, differ(_connected)),
        ),
        debounce_s=DEBOUNCE_S,
        beside=_beside,
        observe=lambda cache, ref: _observe(offers, cache, ref),
        plan=plan,
        settle=follow_up,
    )


def _said(plan: Obj) -> object:
    return dig(plan, "status", "conditions")
