"""The controller of ClusterServiceVersions: their phases, their Deployments, copies in other namespaces, deletion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from syncline.base.action import Action
from syncline.base.clock import time_or_none
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import (
    Create,
    Delete,
    Done,
    Emit,
    Outcome,
    Patch,
    Plan,
    Requeue,
    Result,
    awaiting_lists,
    set_status,
)
from syncline.kube.errors import Forbidden
from syncline.kube.kinds.operatorlifecycle import OPERATOR_CONDITION, OPERATOR_GROUP, SERVICE_VERSION
from syncline.kube.objects import (
    GVK,
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    finalizers,
    generation,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
    resource_version,
    uid_of,
)
from syncline.kube.version import GIT_VERSION
from syncline.patterns.operators.controllers.copies import copying, unwanted
from syncline.patterns.operators.controllers.installing import (
    MOST_TRIES,
    Carried,
    first_steps,
    passing,
    serving_steps,
    unconverted,
    with_certificates,
)
from syncline.patterns.operators.controllers.looking import (
    ACCOUNTS,
    BINDINGS,
    CLUSTER_BINDINGS,
    CLUSTER_ROLES,
    CONDITIONS,
    CONFIGS,
    DEFINITIONS,
    DEPLOYMENTS,
    GROUPS,
    HOOKS,
    MANAGER,
    NAMESPACES,
    ROLES,
    SECRETS,
    SERVICES,
    SERVICES_OF_APIS,
    SUBSCRIPTIONS,
    VERSIONS,
    by_name,
    unlisted,
)
from syncline.patterns.operators.deployments import deployment_specs
from syncline.patterns.operators.granted import grants_of
from syncline.patterns.operators.names import FINALIZER, MANAGED, OWNER, OWNER_NAMESPACE, PROVIDED_APIS, owner_labels
from syncline.patterns.operators.phases import (
    INSTALLING,
    PENDING,
    SUCCEEDED,
    Around,
    Moved,
    install_failed,
    is_copied,
    step,
)
from syncline.patterns.operators.requirements import Needs
from syncline.patterns.operators.serving import Around as Serving
from syncline.patterns.operators.serving import api_name, owned_apis, secret_name, served_by

AGAIN_S = 10.0
"""Seconds until requirements are judged again that no watch reports."""
ROTATION_S = 86_400.0
"""Longest time until certificates are looked at again."""
_RBAC = (CLUSTER_ROLES, CLUSTER_BINDINGS, ROLES, BINDINGS)
_KINDS = (VERSIONS, GROUPS, DEPLOYMENTS, DEFINITIONS, ACCOUNTS, SERVICES, SECRETS, SERVICES_OF_APIS, *HOOKS, *_RBAC)


@dataclass(frozen=True, slots=True)
class Looked:
    """``rights``: what belongs to it in the whole cluster: RBAC, webhooks, aggregated APIs;
    ``copies``: by namespace; ``namespaces``: those that exist and stay."""

    csv: Obj
    around: Around
    copies: Mapping[str, Obj]
    namespaces: tuple[str, ...]
    rights: tuple[Obj, ...] = ()
    copies_disabled: bool = False
    original: Obj | None = None
    """Of a copy: what it is a copy of."""
    carried: Carried = field(default_factory=Carried)
    """What this reconcile has written of an installation."""
    unlisted: tuple[str, ...] = ()


def plan(looked: Looked, now: datetime) -> Plan:
    """Plan one reconcile of a ClusterServiceVersion."""
    if looked.unlisted:
        return Plan(*awaiting_lists(looked.unlisted))
    csv = looked.csv
    if is_copied(csv):
        gone = looked.original is None or is_terminating(looked.original)
        why = "the original is gone" if gone else "the original keeps it"
        return Plan(((Delete.of(csv, why),),) if gone and not is_terminating(csv) else (), why=why)
    if is_terminating(csv):
        return _finish(looked)
    if FINALIZER not in finalizers(csv):
        why = "its cluster-wide rights go before it"
        return Plan(((_finalizers(csv, [*finalizers(csv), FINALIZER], why),),), why=why)
    if (rests := _rests(csv, now)) > 0:
        why = str(dig(csv, "status", "message", default=""))
        return Plan(outcome=Requeue(rests, why, background=True), why=why)
    moved = step(csv, looked.around, now)
    actions = _actions(looked, moved)
    status = set_status(csv, moved.status, str(moved.status.get("message") or ""))
    why = str(moved.error or moved.status.get("message") or "nothing changes")
    if moved.install:
        # The status follows when the Deployments are written; see follow_up.
        return Plan(actions, why=why)
    return Plan(actions, _outcome(moved, now), why, (*status, *_events(csv, moved)))


def _rests(csv: Obj, now: datetime) -> float:
    """Return the seconds until a failed installation is tried again: what it wrote would trigger it at once."""
    since = time_or_none(dig(csv, "status", "lastTransitionTime", default=None))
    if dig(csv, "status", "reason", default="") != "InstallComponentFailed" or since is None:
        return 0.0
    return AGAIN_S - (now - since).total_seconds()


def _actions(looked: Looked, moved: Moved) -> tuple[tuple[Action, ...], ...]:
    csv = looked.csv
    where, name = namespace_of(csv), name_of(csv)
    if moved.delete:
        return ((Delete.of(csv, "it has been replaced"),),)
    steps: list[tuple[Action, ...]] = []
    if moved.annotations is not None:
        body = {"metadata": {"annotations": dict(moved.annotations)}}
        steps.append((Patch(SERVICE_VERSION, where, name, body, "it is a member of the OperatorGroup"),))
    if moved.provided is not None:
        group = next(one for one in looked.around.groups if namespace_of(one) == where)
        body = {"metadata": {"annotations": {PROVIDED_APIS: moved.provided}}}
        steps.append((Patch(OPERATOR_GROUP, where, name_of(group), body, "what its operators provide"),))
    if moved.install:
        steps += first_steps(csv, looked.around)
    if moved.remove_deployments:
        names = {str(one.get("name")) for one in deployment_specs(csv)}
        found = [one for key, one in looked.around.deployments.items() if key in names]
        steps.append(tuple(Delete.of(one, "the operator may not run here") for one in found))
    if name not in looked.around.conditions:
        steps.append((Create(_condition(csv), "where the operator says that it is not ready to be upgraded"),))
    steps.append(copying(csv, moved, looked.around.groups, looked.copies, looked.namespaces, looked.copies_disabled))
    return tuple(one for one in steps if one)


def _condition(csv: Obj) -> Obj:
    accounts = {
        str(dig(one, "spec", "template", "spec", "serviceAccountName", default="")) for one in deployment_specs(csv)
    }
    owner = {
        "apiVersion": SERVICE_VERSION.api_version,
        "kind": SERVICE_VERSION.kind,
        "name": name_of(csv),
        "uid": uid_of(csv),
        "controller": True,
        "blockOwnerDeletion": False,
    }
    return {
        "apiVersion": OPERATOR_CONDITION.api_version,
        "kind": OPERATOR_CONDITION.kind,
        "metadata": {"name": name_of(csv), "namespace": namespace_of(csv), "ownerReferences": [owner]},
        "spec": {
            "deployments": [str(one.get("name")) for one in deployment_specs(csv)],
            "serviceAccounts": sorted(accounts - {""}),
        },
    }


def _outcome(moved: Moved, now: datetime) -> Outcome:
    phase = moved.status.get("phase")
    if phase == PENDING:
        return Requeue(AGAIN_S, str(moved.status.get("message") or ""), background=True)
    if phase == INSTALLING:
        return Requeue(AGAIN_S, str(moved.status.get("message") or ""))
    if moved.error:
        return Requeue(AGAIN_S, moved.error, background=True)
    rotates = time_or_none(moved.status.get("certsRotateAt"))
    if phase == SUCCEEDED and rotates is not None:
        left = min(max((rotates - now).total_seconds(), 1.0), ROTATION_S)
        return Requeue(left, "certificates are looked at again", background=True)
    return Done()


def _events(csv: Obj, moved: Moved) -> tuple[Action, ...]:
    """Return an Event when phase or reason change."""
    before, after = csv.get("status") or {}, moved.status
    if [before.get(key) for key in ("phase", "reason")] == [after.get(key) for key in ("phase", "reason")]:
        return ()
    reason, message = str(after.get("reason") or ""), str(after.get("message") or "")
    return (Emit(csv, reason, message, MANAGER, warning=after.get("phase") == "Failed", limited=True),)


def _finalizers(csv: Obj, wanted: list[str], why: str) -> Patch:
    metadata = {"uid": uid_of(csv), "resourceVersion": resource_version(csv), "finalizers": wanted}
    return Patch(SERVICE_VERSION, namespace_of(csv), name_of(csv), {"metadata": metadata}, why)


def _finish(looked: Looked) -> Plan:
    csv = looked.csv
    if FINALIZER not in finalizers(csv):
        return Plan(why="it is being deleted")
    why = "its operator is removed"
    left = tuple(Delete.of(one, why) for one in (*looked.rights, *looked.copies.values()) if not is_terminating(one))
    last = _finalizers(csv, [one for one in finalizers(csv) if one != FINALIZER], why)
    there = looked.around.serving.definitions if looked.around.serving is not None else {}
    converted = tuple(one for one in unconverted(csv, looked.around.csvs) if one.name in there)
    return Plan(tuple(one for one in (left, converted, (last,)) if one), why=why)


def follow_up(looked: Looked, done: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Looked, Plan] | None:
    """Go on once the certificates are there, and write the phase once all was written, or could not be."""
    moved = step(looked.csv, looked.around, now) if not is_copied(looked.csv) else None
    if moved is None or not moved.install or any(one.action in done.status for one in results):
        return None
    looked = replace(looked, carried=looked.carried.with_(results))
    failed = next((one for one in results if not one.ok and not isinstance(one.action, Create)), None)
    if failed is not None and passing(failed.error) and looked.carried.tries < MOST_TRIES:
        return looked, Plan(looked.carried.left(_install_steps(looked)), why=str(failed.error))
    made = looked.carried.certified
    if failed is None and made and not looked.carried.registering:
        further = replace(looked, carried=replace(looked.carried, registering=True))
        return further, Plan(_install_steps(further), why="its certificates are there")
    if failed is None and not looked.carried.deployed and deployment_specs(looked.csv):
        return None
    status = with_certificates(moved.status, tuple(made.values()), now)
    if failed is not None:
        forbidden = isinstance(failed.error, Forbidden)
        status = install_failed(looked.csv, str(failed.error), now, forbidden=forbidden)
    why = str(status.get("message") or "")
    after = Moved(status)
    events = _events(looked.csv, after)
    return looked, Plan(outcome=_outcome(after, now), why=why, status=(*set_status(looked.csv, status, why), *events))


def _install_steps(looked: Looked) -> tuple[tuple[Action, ...], ...]:
    if not looked.carried.registering:
        return first_steps(looked.csv, looked.around)
    authorities = {deployment: one.authority for deployment, one in looked.carried.certified.items()}
    return serving_steps(looked.csv, looked.around, authorities)


def _observe(cache: Snapshot, ref: ObjectRef) -> Looked | None:
    csv = cache.get(ref)
    if csv is None:
        return None
    copied = is_copied(csv)
    home = labels_of(csv).get("olm.copiedFrom", "")
    original = cache.get(ObjectRef(*VERSIONS, home, ref.name)) if copied else None
    config = cache.get(ObjectRef(*CONFIGS, "", "cluster")) or {}
    mine = owner_labels(ref.name, ref.namespace)
    rights = [one for kind in (*_RBAC[:2], SERVICES_OF_APIS, *HOOKS) for one in _labelled(cache, kind, mine)]
    every = cache.objects(VERSIONS)
    copies = {namespace_of(one): one for one in every if unwanted(one, csv)}
    namespaces = tuple(name_of(one) for one in cache.objects(NAMESPACES) if not is_terminating(one))
    return Looked(
        csv,
        _around(cache, csv),
        copies,
        namespaces,
        tuple(rights),
        bool(dig(config, "spec", "features", "disableCopiedCSVs", default=False)),
        original,
        unlisted=unlisted(cache, _KINDS),
    )


def _around(cache: Snapshot, csv: Obj) -> Around:
    namespace = namespace_of(csv)
    managed = [one for one in cache.objects(DEPLOYMENTS, namespace) if labels_of(one).get(MANAGED) == "true"]
    subscriptions = cache.objects(SUBSCRIPTIONS, namespace)
    mine = next((one for one in subscriptions if dig(one, "status", "currentCSV", default="") == name_of(csv)), {})
    kinds = (CLUSTER_ROLES, CLUSTER_BINDINGS)
    rbac = [*(one for kind in kinds for one in _kinded(cache, kind, "")), *_kinded(cache, ROLES, namespace)]
    needs = Needs(
        definitions=_definitions(cache, csv),
        accounts=by_name(cache.objects(ACCOUNTS, namespace)),
        api_services=by_name(cache.objects(SERVICES_OF_APIS)),
        served=_served(cache, csv),
        grants=grants_of([*rbac, *_kinded(cache, BINDINGS, namespace)]),
        server_version=GIT_VERSION,
    )
    return Around(
        by_name(one for one in cache.objects(VERSIONS, namespace) if not is_copied(one)),
        cache.objects(GROUPS),
        by_name(managed),
        by_name(cache.objects(CONDITIONS, namespace)),
        needs,
        dig(mine, "spec", "config", default=None),
        _serving(cache, csv, needs) if served_by(csv) else None,
    )


def _serving(cache: Snapshot, csv: Obj, needs: Needs) -> Serving:
    namespace, mine = namespace_of(csv), owner_labels(name_of(csv), namespace_of(csv))
    return Serving(
        tuple(one for kind in HOOKS for one in _labelled(cache, kind, mine)),
        needs.api_services,
        needs.definitions,
        frozenset(name_of(one) for one in cache.objects(SERVICES, namespace)),
        frozenset(name_of(one) for one in cache.objects(SECRETS, namespace)),
    )


def _kinded(cache: Snapshot, kind: GroupKind, namespace: str) -> list[Obj]:
    return [{**one, "kind": kind.kind} for one in cache.objects(kind, namespace)]


def _labelled(cache: Snapshot, kind: GroupKind, labels: Mapping[str, str]) -> list[Obj]:
    """Return the objects of a cluster-wide kind that have these labels."""
    found = (one for one in cache.objects(kind) if labels.items() <= labels_of(one).items())
    return [{**one, "apiVersion": f"{kind.group}/v1", "kind": kind.kind} for one in found]


def _definitions(cache: Snapshot, csv: Obj) -> dict[str, Obj]:
    described = dig(csv, "spec", "customresourcedefinitions", default=None) or {}
    names = {str(one.get("name")) for which in ("owned", "required") for one in described.get(which) or ()}
    found = {name: cache.get(ObjectRef(*DEFINITIONS, "", name)) for name in names}
    return {name: one for name, one in found.items() if one is not None}


def _served(cache: Snapshot, csv: Obj) -> frozenset[tuple[str, str, str]]:
    native = dig(csv, "spec", "nativeAPIs", default=None) or ()
    required = dig(csv, "spec", "apiservicedefinitions", "required", default=None) or ()
    asked = {tuple(str(one.get(part) or "") for part in ("group", "version", "kind")) for one in (*native, *required)}
    return frozenset((g, v, k) for g, v, k in asked if cache.mapper.find(GVK(g, v, k)) is not None)


def _of_deployment(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    owner, home = labels_of(obj).get(OWNER), labels_of(obj).get(OWNER_NAMESPACE)
    if owner and home:
        yield ObjectRef(*VERSIONS, home, owner)


def _of_owned(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    """Map an object to the operators that own it."""
    for one in owner_references(obj):
        if one.get("kind") == VERSIONS.kind:
            yield ObjectRef(*VERSIONS, namespace_of(obj), str(one.get("name")))


def _of_secret(secret: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Map a Secret, of which only the name is known, to the operators whose certificate it holds."""
    for one in cache.objects(VERSIONS, namespace_of(secret)):
        if any(secret_name(deployment) == name_of(secret) for deployment in served_by(one)):
            yield ref_of(one)


def _of_api(service: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Map an APIService to the operators that provide or require it."""
    for one in cache.objects(VERSIONS):
        required = dig(one, "spec", "apiservicedefinitions", "required", default=None) or ()
        if any(api_name(each) == name_of(service) for each in (*owned_apis(one), *required)):
            yield ref_of(one)


def _available(service: Obj) -> object:
    return [(one.get("type"), one.get("status")) for one in dig(service, "status", "conditions", default=None) or ()]


def _of_definition(definition: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    name = name_of(definition)
    for one in cache.objects(VERSIONS):
        described = dig(one, "spec", "customresourcedefinitions", default=None) or {}
        if any(each.get("name") == name for which in ("owned", "required") for each in described.get(which) or ()):
            yield ref_of(one)


def _every(_obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(one) for one in cache.objects(VERSIONS) if not is_copied(one))


def _neighbours(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(one) for one in cache.objects(VERSIONS, namespace_of(obj)))


def _copies(csv: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Map a copy to its original, an original to its copies and to the others of its namespace."""
    if home := labels_of(csv).get("olm.copiedFrom"):
        yield ObjectRef(*VERSIONS, home, name_of(csv))
        return
    yield from _neighbours(csv, cache)
    for one in cache.objects(VERSIONS):
        if unwanted(one, csv):
            yield ref_of(one)


def _phase(csv: Obj) -> object:
    return dig(csv, "status", "phase"), dig(csv, "status", "reason")


def version_controller() -> Controller[Looked]:
    return Controller(
        name="cluster-service-version",
        kind=VERSIONS,
        predicate=differ(generation, annotations_of, labels_of, is_terminating, finalizers, _phase),
        watches=(
            Watch(VERSIONS, _copies, differ(_phase, is_terminating)),
            Watch(GROUPS, _every, differ(generation, annotations_of, lambda one: dig(one, "status", "namespaces"))),
            Watch(DEPLOYMENTS, _of_deployment),
            Watch(DEFINITIONS, _of_definition, differ(generation, lambda one: dig(one, "status", "conditions"))),
            Watch(ACCOUNTS, _neighbours, differ()),
            Watch(SERVICES, _of_owned, differ()),
            Watch(SECRETS, _of_secret, differ()),
            Watch(SERVICES_OF_APIS, _of_api, differ(generation, _available, lambda one: one.get("spec"))),
            *(Watch(kind, _of_deployment, differ(generation, labels_of)) for kind in HOOKS),
            Watch(CONDITIONS, _neighbours, differ(generation, lambda one: one.get("status"))),
            Watch(SUBSCRIPTIONS, _neighbours, differ(generation)),
            Watch(NAMESPACES, _every, differ(is_terminating)),
            Watch(CONFIGS, _every, differ(generation)),
        ),
        reads=(CLUSTER_ROLES, CLUSTER_BINDINGS, ROLES, BINDINGS),
        debounce_s=0.2,
        observe=_observe,
        plan=plan,
        settle=follow_up,
    )
