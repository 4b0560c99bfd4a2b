"""The controller of the order over clusters; a key is a FleetRollout, also one that does not exist yet."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, comes_or_goes, differ
from syncline.control.plan import Plan
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.budgets.observe import BUDGETS
from syncline.fleet.hub.registration.leases import AVAILABLE, NODES_UPDATING
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.parts import ORDER
from syncline.fleet.pull.notices import content_waits
from syncline.fleet.pull.observe import (
    APPS,
    BY_PROJECT,
    BY_TARGET,
    CLUSTERS,
    DECISIONS,
    DETAILS,
    GITOPS_CLUSTERS,
    PROJECTS,
    SETS,
    WORKS,
)
from syncline.fleet.pull.order.annotations import WINDOWS
from syncline.fleet.pull.order.groups import BY_NEED, CLUSTER_SETS, INDICES, OF_APPSET, ROLLOUTS, group_of
from syncline.fleet.pull.order.model import GroupSeen
from syncline.fleet.pull.order.observe import Reading
from syncline.fleet.pull.order.plan import plan_group
from syncline.fleet.pull.order.proven import REVISIONS
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    generation,
    labels_of,
    meta,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
)

GATHER_S = 1.0
"""Seconds from a change to the look at the group, so that one write covers what many clusters report."""
MOST_IN_PLACE = 100
"""Applications up to which a group is planned on the event loop; with more, in a thread."""
CONFIG_MAPS, SECRETS = GroupKind("", "ConfigMap"), GroupKind("", "Secret")


def order_controller(reading: Reading) -> Controller[GroupSeen]:
    """Return the controller."""
    return Controller(
        name=ORDER,
        kind=ROLLOUTS,
        predicate=differ(generation, lambda one: one.get("status"), lambda one: meta(one).get("deletionTimestamp")),
        at_rest=lambda _rollout: True,
        watches=(
            Watch(APPS, _of_app, differ(_content)),
            Watch(APPS, _dependents, differ(lambda one: (dig(one, "status", "sync"), dig(one, "status", "health")))),
            Watch(WORKS, _of_work, differ(generation, lambda one: one.get("status"))),
            Watch(DETAILS, _of_details, differ(lambda one: one.get("report"))),
            Watch(CLUSTERS, _of_cluster, differ(_judged)),
            Watch(CLUSTER_SETS, _all, differ(annotations_of, lambda one: one.get("spec"))),
            Watch(SETS, _of_set, differ(lambda one: one.get("spec"))),
            Watch(ROLLOUTS, _who_depends_on_set, differ(lambda one: dig(one, "spec", "skip"))),
            Watch(BUDGETS, _all, differ(lambda one: (one.get("spec"), one.get("status")))),
            Watch(REVISIONS, _of_revision, comes_or_goes),
            Watch(PROJECTS, _of_project, differ(lambda one: one.get("spec"))),
            Watch(DECISIONS, _of_namespace, differ(lambda one: dig(one, "status", "decisions"))),
            Watch(GITOPS_CLUSTERS, _of_namespace, differ(lambda one: one.get("spec"))),
        ),
        reads=(CONFIG_MAPS, SECRETS),
        debounce_s=GATHER_S,
        indices=INDICES,
        observe=reading.group,
        plan=_plan,
        beside=lambda seen: seen.ref.namespace if len(seen.targets) > MOST_IN_PLACE else None,
    )


def _plan(seen: GroupSeen, now: datetime) -> Plan:
    return plan_group(seen, now)


def _content(app: Obj) -> tuple[Any, ...]:
    parts = labels_of(app), annotations_of(app), owner_references(app), meta(app).get("deletionTimestamp")
    return (*parts, app.get("spec"), app.get("operation"), content_waits(app))


def _judged(cluster: Obj) -> tuple[Any, ...]:
    conditions = dig(cluster, "status", "conditions") or ()
    said = [find_condition(conditions, one) or {} for one in (AVAILABLE, NODES_UPDATING)]
    return (
        labels_of(cluster),
        annotations_of(cluster).get(WINDOWS),
        dig(cluster, "spec", "hubAcceptsClient"),
        meta(cluster).get("deletionTimestamp"),
        [(one.get("status"), one.get("message")) for one in said],
    )


def _of_app(app: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    if names.is_carried(app):
        yield group_of(app)
    yield from _dependents(app, cache)


def _dependents(app: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Yield the groups of Applications that depend on one, by each name that they may have for it."""
    namespace, name, cluster = namespace_of(app), name_of(app), annotations_of(app).get(names.CLUSTER, "")
    owner = names.owning_set(app)
    for text in (name, f"{cluster}/{name}", f"{namespace}/{name}", f"{OF_APPSET}/{owner}"):
        yield from (group_of(one) for one in cache.indexed(BY_NEED, f"{namespace} {text}"))
    if not cluster:
        for space in {namespace_of(one) for one in cache.objects(ROLLOUTS)}:
            yield from (group_of(one) for one in cache.indexed(BY_NEED, f"{space} {namespace}/{name}"))


def _of_work(work: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    named = names.hub_application(work)
    app = cache.get(ObjectRef(*APPS, *named)) if named is not None else None
    return _of_app(app, cache) if app is not None else ()


def _of_details(report: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    work = cache.get(ObjectRef(*WORKS, namespace_of(report), name_of(report)))
    return _of_work(work, cache) if work is not None else ()


def _of_revision(revision: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    for owner in owner_references(revision):
        if owner.get("kind") == WORKS.kind:
            work = cache.get(ObjectRef(*WORKS, namespace_of(revision), str(owner.get("name"))))
            yield from _of_work(work, cache) if work is not None else ()


def _of_cluster(cluster: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    for one in cache.indexed(BY_TARGET, name_of(cluster)):
        yield from _of_app(one, cache)  # one that the hub denies is not waited for any more


def _who_depends_on_set(rollout: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    need = f"{namespace_of(rollout)} {OF_APPSET}/{name_of(rollout)}"
    return (group_of(one) for one in cache.indexed(BY_NEED, need))


def _of_set(one: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return (ObjectRef(*ROLLOUTS, namespace_of(one), name_of(one)),)


def _of_project(project: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (group_of(one) for one in cache.indexed(BY_PROJECT, name_of(project)))


def _of_namespace(one: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(each) for each in cache.objects(ROLLOUTS, namespace_of(one)))


def _all(_one: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return map(ref_of, cache.objects(ROLLOUTS))
