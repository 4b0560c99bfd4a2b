"""The controllers of ClusterRoles: of the APIs that installed operators provide, and of OperatorGroups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from syncline.base.action import Action
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Apply, Delete, Plan, awaiting_lists
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
    owner_references,
    ref_of,
)
from syncline.patterns.operators.controllers.looking import (
    CLUSTER_ROLES,
    DEFINITIONS,
    GROUPS,
    MANAGER,
    SERVICES_OF_APIS,
    VERSIONS,
    by_name,
    unlisted,
)
from syncline.patterns.operators.groups import provided_apis, read_apis
from syncline.patterns.operators.names import OWNER, OWNER_KIND, OWNER_NAMESPACE, PROVIDED_APIS
from syncline.patterns.operators.phases import SUCCEEDED, is_copied
from syncline.patterns.operators.providing import api_roles, group_labels, group_roles


@dataclass(frozen=True, slots=True)
class Looked:
    """``wanted``: the roles that belong to it; ``found``: those of their names; ``surplus``: what is left of a group
    that is gone."""

    wanted: tuple[Obj, ...]
    found: Mapping[str, Obj]
    surplus: tuple[Obj, ...] = ()
    unlisted: tuple[str, ...] = ()


def plan(looked: Looked, now: datetime) -> Plan:
    """Plan one reconcile of the roles of an operator, or of a group."""
    if looked.unlisted:
        return Plan(*awaiting_lists(looked.unlisted))
    steps: list[Action] = [Delete.of(one, "its OperatorGroup is gone") for one in looked.surplus]
    for one in looked.wanted:
        if not _is_as(looked.found.get(name_of(one)), one):
            steps.append(Apply(one, MANAGER, "who may use what operators provide", force=True))
    return Plan((tuple(steps),) if steps else (), why=f"{len(looked.wanted)} ClusterRoles, {len(steps)} to write")


def _is_as(found: Obj | None, wanted: Obj) -> bool:
    if found is None or not labels_of(wanted).items() <= labels_of(found).items():
        return False
    owners = {str(one.get("uid")) for one in owner_references(found)}
    if any(str(one.get("uid")) not in owners for one in owner_references(wanted)):
        return False
    # What a role aggregates is filled in by the cluster.
    part = "rules" if "rules" in wanted else "aggregationRule"
    return found.get(part) == wanted.get(part)


def _of_operator(cache: Snapshot, ref: ObjectRef) -> Looked | None:
    csv = cache.get(ref)
    if csv is None or is_terminating(csv) or is_copied(csv) or dig(csv, "status", "phase", default="") != SUCCEEDED:
        return None
    definitions, services = (
        {one: found for one in names if (found := cache.get(ObjectRef(*kind, "", one))) is not None}
        for kind, names in ((DEFINITIONS, _owned(csv)), (SERVICES_OF_APIS, _served(csv)))
    )
    kinds = (
        (definitions, DEFINITIONS, "apiextensions.k8s.io/v1"),
        (services, SERVICES_OF_APIS, "apiregistration.k8s.io/v1"),
    )
    typed = [
        {name: {**one, "kind": kind.kind, "apiVersion": version} for name, one in found.items()}
        for found, kind, version in kinds
    ]
    wanted = tuple(api_roles(csv, *typed))
    return Looked(wanted, _found(cache, wanted), unlisted=unlisted(cache, (CLUSTER_ROLES, DEFINITIONS)))


def _owned(csv: Obj) -> set[str]:
    return {str(one.get("name")) for one in dig(csv, "spec", "customresourcedefinitions", "owned", default=None) or ()}


def _served(csv: Obj) -> set[str]:
    owned = dig(csv, "spec", "apiservicedefinitions", "owned", default=None) or ()
    return {f"{one.get('version')}.{one.get('group')}" for one in owned}


def _of_group(cache: Snapshot, ref: ObjectRef) -> Looked | None:
    group = cache.get(ref)
    missing = unlisted(cache, (CLUSTER_ROLES, GROUPS, VERSIONS))
    if group is None or is_terminating(group):
        mine = group_labels(ref.name, ref.namespace)
        left = (one for one in cache.objects(CLUSTER_ROLES) if mine.items() <= labels_of(one).items())
        return Looked((), {}, tuple(one for one in left if not is_terminating(one)), missing)
    csvs = [one for one in cache.objects(VERSIONS, ref.namespace) if not is_copied(one)]
    known = read_apis(annotations_of(group).get(PROVIDED_APIS, ""))
    wanted = tuple(group_roles(group, known.union(*map(provided_apis, csvs))))
    return Looked(wanted, _found(cache, wanted), unlisted=missing)


def _found(cache: Snapshot, wanted: Iterable[Obj]) -> dict[str, Obj]:
    roles = (cache.get(ObjectRef(*CLUSTER_ROLES, "", name_of(one))) for one in wanted)
    return by_name(one for one in roles if one is not None)


def _providers(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Map a CustomResourceDefinition or an APIService to the operators that provide it."""
    name = name_of(obj)
    return (ref_of(one) for one in cache.objects(VERSIONS) if name in _owned(one) | _served(one))


def _owners(role: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Map the role of an API to the operators that provide it."""
    names = {str(one.get("name")) for one in owner_references(role)}
    if not names:
        return ()
    return (ref_of(one) for one in cache.objects(VERSIONS) if names & (_owned(one) | _served(one)))


def _group(role: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    labels = labels_of(role)
    if labels.get(OWNER_KIND) == GROUPS.kind:
        yield ObjectRef(*GROUPS, labels.get(OWNER_NAMESPACE, ""), labels.get(OWNER, ""))


def _groups(csv: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(one) for one in cache.objects(GROUPS, namespace_of(csv)))


def role_controllers() -> tuple[Controller[Looked], ...]:
    of_apis = Controller(
        name="provided-api-roles",
        kind=VERSIONS,
        predicate=differ(lambda one: dig(one, "status", "phase"), generation),
        watches=(
            Watch(DEFINITIONS, _providers, differ()),
            Watch(SERVICES_OF_APIS, _providers, differ()),
            Watch(CLUSTER_ROLES, _owners, differ(labels_of, lambda one: one.get("rules"))),
        ),
        observe=_of_operator,
        plan=plan,
    )
    of_groups = Controller(
        name="operator-group-roles",
        kind=GROUPS,
        predicate=differ(annotations_of, is_terminating),
        watches=(
            Watch(VERSIONS, _groups, differ(generation)),
            Watch(CLUSTER_ROLES, _group, differ(labels_of, lambda one: one.get("aggregationRule"))),
        ),
        observe=_of_group,
        plan=plan,
    )
    return of_apis, of_groups
