"""Deletion of an Application: hooks, order of deletion and removal of finalizers; pure.

Each stage is recorded as a finalizer and repeated until it is done: PreDelete hooks, the cascade (highest wave first),
PostDelete hooks, then the hooks that their delete policies remove. Rules: ``finalizeApplicationDeletion``, ``hook.go``
and ``sort_delete.go`` of Argo CD (reference argocd-sync §7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta

from syncline.apply.annotations import (
    DeletePolicy,
    delete_policies,
    is_delete_hook,
    listed_value,
    needs_deletion_approval,
    option_value,
    wave,
)
from syncline.apply.health import HealthStatus
from syncline.argo.application import RESOURCES_FINALIZER, AppView
from syncline.argo.conditions import Condition, merge_conditions
from syncline.argo.project import sync_permission
from syncline.argo.tracking import TrackingError
from syncline.base.action import Action
from syncline.base.clock import time_or_none
from syncline.control.plan import Create, Delete, Emit, Patch, Plan, Requeue
from syncline.gitops.application.manifests import Render
from syncline.gitops.application.observing.observe import AppObserved
from syncline.gitops.application.problems import spec_problems
from syncline.gitops.application.status import app_patch
from syncline.gitops.comparison.targets import scoped
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import (
    Obj,
    annotations_of,
    dig,
    finalizers,
    gvk_of,
    is_terminating,
    meta,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
)

PRE_DELETE = "pre-delete-finalizer.argocd.argoproj.io"
POST_DELETE = "post-delete-finalizer.argocd.argoproj.io"
CLEANUP = "/cleanup"
OURS = (RESOURCES_FINALIZER, PRE_DELETE, POST_DELETE)
APPROVED = "argocd.argoproj.io/deletion-approved"
DELETION_ERROR = "DeletionError"
CRD_KIND = "CustomResourceDefinition"
WAIT_S = 30.0
RETRY = timedelta(seconds=30)
"""How long a failed hook stays before it is created again: users can inspect it, and it does not run all the time."""
LEFT_BEHIND = "ObjectsLeftBehind"
COMPONENT = "syncline-application-controller"
MAX_NAMED = 3
"""Objects that one Event names with the reason why each stays; the others are counted."""
BARE_REVISION = 7
"""Characters of the commit in a generated name, as for sync hooks."""


class _Stuck(Exception):
    """The deletion cannot continue; the message says why in one sentence."""


def wanted_finalizers(obj: Obj, *, pre_delete: bool, post_delete: bool) -> list[str]:
    """Return the finalizers that an Application should have, given the delete hooks in its manifests."""
    wanted = list(finalizers(obj))
    for name, holds in ((PRE_DELETE, pre_delete), (POST_DELETE, post_delete)):
        both = (name, name + CLEANUP)
        if holds:
            wanted += [each for each in both if each not in wanted]
        else:
            wanted = [each for each in wanted if each not in both]
    return wanted


def plan_deletion(observed: AppObserved, now: datetime) -> Plan:
    """Return the next step of a deletion; without a destination nothing is deleted there (upstream, stage 1)."""
    view = observed.view
    mine = [name for name in finalizers(view.obj) if name.startswith(OURS)]
    if not mine:
        return Plan(why="deleted without cascade: its resources stay")
    if not view.is_in(observed.clusters) and observed.clusters_unread:
        return _failed(view, f"which clusters are declared is not known: {observed.clusters_unread}", now)
    if not view.is_in(observed.clusters):
        why = "its destination is not there: what it made is left alone"
        return _release(view, mine, why, _left(view, why) if _cascading(mine) else ())
    cascading = _cascading(mine)
    stages: tuple[tuple[list[str], Callable[[], Plan | None]], ...] = (
        ([name for name in mine if name == PRE_DELETE], lambda: _hooks(observed, "PreDelete", now)),
        (cascading, lambda: _cascade(observed, cascading[0])),
        ([name for name in mine if name == POST_DELETE], lambda: _hooks(observed, "PostDelete", now)),
        ([name for name in mine if name == PRE_DELETE + CLEANUP], lambda: _clean_up(observed, "PreDelete")),
        ([name for name in mine if name == POST_DELETE + CLEANUP], lambda: _clean_up(observed, "PostDelete")),
    )
    if observed.remote_problem:
        return _failed(view, f"Failed to load live state: {observed.remote_problem}", now)
    if observed.account_problem:
        return _failed(view, observed.account_problem, now)
    if observed.unread:
        return _failed(view, f"Failed to load live state: {min(observed.unread.values())}", now)
    for held, work in stages:
        if not held:
            continue
        try:
            going = work()
        except _Stuck as error:
            return _failed(view, str(error), now)
        report = _not_permitted(observed) if held is cascading and going is None else ()
        return going or _release(view, held, f"{held[0].partition('.')[0]}: nothing is left to do", report)
    return _release(view, mine, "nothing of it is left to delete")


# -- hooks --------------------------------------------------------------------------------------------------------


def _hooks(observed: AppObserved, kind: str, now: datetime) -> Plan | None:
    """Return the next step of the hooks of ``kind``, or None if all have run. Raises :class:`_Stuck`."""
    view, latest = observed.view, observed.latest
    problems = spec_problems(observed)
    if problems:
        raise _Stuck(f"no {kind} hook is read: {problems[0].message}")
    if observed.reading is not None and latest is None:
        raise _Stuck(f"the {kind} hooks are needed: {observed.reading.text}")
    due = latest is None or now >= latest.resolved_at + timedelta(seconds=observed.settings.poll_s)
    if due and observed.reading is None:
        why = f"the deletion needs the {kind} hooks"
        render = Render(view.name, view.sources, view.revisions_wanted, why, context=observed.context)
        return Plan(steps=((render,),), outcome=Requeue(0, "rendered"), why=why)
    assert latest is not None, "it is due when there is nothing"
    if latest.error:
        raise _Stuck(f"Failed to load target state: {latest.error}; without it no {kind} hook is known")
    wanted = _targets(observed, kind)
    there = {ref_of(obj): obj for obj in _managed(observed) if is_delete_hook(obj, kind)}
    missing = [obj for obj in wanted if ref_of(obj) not in there]
    if missing:
        for obj in missing:
            _check(observed, obj, kind)
        step = tuple(Create(obj, f"{kind} hook of {view.namespace}/{view.name}") for obj in missing)
        return Plan(
            steps=observed.at_destination((step,)), outcome=Requeue(WAIT_S, f"{kind} hooks run"), why=step[0].reason
        )
    return _judged(observed, kind, there.values(), now)


def _targets(observed: AppObserved, kind: str) -> list[Obj]:
    """Return the hooks to create: scoped, named and with tracking data."""
    view, latest = observed.view, observed.latest
    assert latest is not None, "hooks are looked for once there are manifests"
    tracking = observed.settings.tracking
    instance = tracking.instance_of_app(view.obj, observed.settings.control_namespace)
    found = []
    for obj in latest.objects:
        if is_delete_hook(obj, kind):
            named = _named(scoped(obj, observed.kinds, view.destination_namespace), kind, view, latest.revision)
            with suppress(TrackingError):  # the API server rejects such labels with a message
                named = tracking.stamp(named, instance, view.destination_namespace)
            found.append(named)
    return found


def _named(obj: Obj, kind: str, view: AppView, revision: str) -> Obj:
    """Derive a generated name from the commit and the deletion time, so that later reconciles find the object."""
    prefix = meta(obj).get("generateName")
    if name_of(obj) or not prefix:
        return obj
    deleted = time_or_none(view.obj["metadata"].get("deletionTimestamp"))
    second = int(deleted.timestamp()) if deleted else 0
    metadata = {key: value for key, value in meta(obj).items() if key != "generateName"}
    return obj | {"metadata": metadata | {"name": f"{prefix}{revision[:BARE_REVISION]}-{kind.lower()}-{second}"}}


def _check(observed: AppObserved, obj: Obj, kind: str) -> None:
    info = observed.kinds.served.get(gvk_of(obj))
    if info is None:
        raise _Stuck(f"{kind} hook {ref_of(obj)}: the cluster serves no {gvk_of(obj)}; install its definition")
    where = {"server": observed.cluster.server, "name": observed.cluster.name}
    refused = sync_permission(observed.project or {}, obj, info, where, observed.project_clusters)
    if refused:
        raise _Stuck(f"{kind} hook {ref_of(obj)}: {refused}")
    if ref_of(obj) in observed.live:
        raise _Stuck(f"{kind} hook {ref_of(obj)}: an object of this name is there and is not ours; rename or delete it")


def _judged(observed: AppObserved, kind: str, hooks: Iterable[Obj], now: datetime) -> Plan | None:
    """Return the plan to wait for running hooks or to retry failed ones, or None if all are healthy."""
    view = observed.view
    failed, running = [], []
    for obj in hooks:
        health = observed.system.health(obj)
        status = HealthStatus.HEALTHY if health is None else health.status
        if status is HealthStatus.DEGRADED:
            failed.append(obj)
        elif status is not HealthStatus.HEALTHY:
            running.append(obj)
    if failed:
        names = ", ".join(sorted(f"{namespace_of(obj)}/{name_of(obj)}" for obj in failed))
        text = f"{kind} hook(s) failed: {names}"
        due = [obj for obj in failed if now >= _ended(obj, now) + RETRY and not is_terminating(obj)]
        step = tuple(Delete.of(obj, "a failed hook is recreated", propagation="Background") for obj in due)
        return _failed(view, text, now, observed.at_destination((step,) if step else ()))
    if running:
        first = sorted(str(ref_of(obj)) for obj in running)
        why = f"waiting for completion of {kind} hook {first[0]}" + _more(len(first) - 1, "hooks")
        return Plan(outcome=Requeue(WAIT_S, why), why=why)
    return None


def _ended(obj: Obj, now: datetime) -> datetime:
    """Return when a hook failed by its conditions, else when it was created."""
    listed = dig(obj, "status", "conditions", default=[])
    times = [time_or_none(one.get("lastTransitionTime")) for one in listed if isinstance(one, dict)]
    known = [time for time in times if time is not None]
    return max(known) if known else time_or_none(meta(obj).get("creationTimestamp")) or now


def _clean_up(observed: AppObserved, kind: str) -> Plan | None:
    """Delete the hooks of ``kind`` whose delete policy matches; the worst health of all decides (behaviour 91)."""
    hooks = [obj for obj in _managed(observed) if is_delete_hook(obj, kind)]
    found = [observed.system.health(obj) for obj in hooks]
    statuses = {HealthStatus.HEALTHY if health is None else health.status for health in found}
    policy = None
    if HealthStatus.DEGRADED in statuses:
        policy = DeletePolicy.HOOK_FAILED
    elif statuses == {HealthStatus.HEALTHY}:
        policy = DeletePolicy.HOOK_SUCCEEDED
    going = [obj for obj in hooks if policy in delete_policies(obj)]
    if not going:
        return None
    why = f"waiting for deletion of {kind} hook {ref_of(going[0])}" + _more(len(going) - 1, "hooks")
    step = tuple(
        Delete.of(obj, f"its delete policy is {policy}", propagation="Background")
        for obj in going
        if not is_terminating(obj)
    )
    return Plan(steps=observed.at_destination((step,) if step else ()), outcome=Requeue(WAIT_S, why), why=why)


# -- the cascade --------------------------------------------------------------------------------------------------


def _cascade(observed: AppObserved, finalizer: str) -> Plan | None:
    """Return the next step of the cascade, or None if everything is deleted."""
    view = observed.view
    propagation = "Background" if finalizer.endswith("/background") else "Foreground"
    if observed.project is None:
        raise _Stuck(f"project {view.project} does not exist, so nothing may be deleted; make it, or name another")
    ours = [obj for obj in _managed(observed) if _cascades(obj, view.sync_options)]
    ending = sorted(str(ref_of(obj)) for obj in ours if is_terminating(obj))
    if ending:
        why = f"waiting for deletion of {ending[0]}" + _more(len(ending) - 1, "")
        return Plan(outcome=Requeue(WAIT_S, why), why=why)
    asking = [str(ref_of(obj)) for obj in ours if needs_deletion_approval(obj, view.sync_options)]
    if asking and not _approved(view):
        why = f"{asking[0]} goes only once the deletion is confirmed"
        return Plan(outcome=Requeue(WAIT_S, why, background=True), why=why)
    rounds = deletion_rounds(ours)
    if not rounds:
        return None
    reason = f"Application {view.namespace}/{view.name} is deleted with cascade"
    step = tuple(Delete.of(obj, reason, propagation=propagation) for obj in rounds[0])
    steps = observed.at_destination((step,))
    return Plan(steps=steps, outcome=Requeue(WAIT_S, "its resources are being deleted"), why=reason)


def _more(count: int, what: str) -> str:
    return f" and {count} more {what}".rstrip() if count > 0 else ""


def _approved(view: AppView) -> bool:
    """Return whether the approval annotation has a time at or after the deletion request (behaviour 89)."""
    approved = time_or_none(annotations_of(view.obj).get(APPROVED))
    asked = time_or_none(view.obj["metadata"].get("deletionTimestamp"))
    return approved is not None and asked is not None and approved >= asked


def _managed(observed: AppObserved) -> list[Obj]:
    """Return the tracked objects that the project permits; others could be marked by any client to have them deleted.
    An object that merely has the key of a manifest is not among them."""
    return [obj for obj, refused in _tracked(observed) if not refused]


def _tracked(observed: AppObserved) -> list[tuple[Obj, str]]:
    """Return each tracked object with the reason why the project does not permit it, or ""."""
    tracking = observed.settings.tracking
    instance = tracking.instance_of_app(observed.view.obj, observed.settings.control_namespace)
    found = [(ref, obj) for ref, obj in sorted(observed.live.items()) if tracking.app_name(obj) == instance]
    return [(obj, observed.reach.refuses_own(ref) if observed.project is not None else "") for ref, obj in found]


def _not_permitted(observed: AppObserved) -> tuple[Emit, ...]:
    """Emit one Event about all objects that the cascade leaves; nothing else reports that they still exist."""
    options = observed.view.sync_options
    refused = [why for obj, why in _tracked(observed) if why and _cascades(obj, options)]
    if not refused:
        return ()
    objects = "1 object is" if len(refused) == 1 else f"{len(refused)} objects are"
    first = f"the first {MAX_NAMED}" if len(refused) > MAX_NAMED else "namely"
    named = "; ".join(refused[:MAX_NAMED])
    return _left(observed.view, f"{objects} not deleted (delete by hand what is of no use), {first}: {named}")


def _left(view: AppView, text: str) -> tuple[Emit, ...]:
    return (Emit(view.obj, LEFT_BEHIND, text, COMPONENT, warning=True),)


def _cascades(obj: Obj, options: tuple[str, ...]) -> bool:
    if ref_of(obj).kind == CRD_KIND or owner_references(obj):
        return False
    if annotations_of(obj).get("helm.sh/resource-policy") == "keep":
        return False
    own = option_value(obj, "Delete")
    return (listed_value(options, "Delete") if own is None else own) != "false"


# -- the Application itself ---------------------------------------------------------------------------------------


def _failed(view: AppView, text: str, now: datetime, steps: tuple[tuple[Action, ...], ...] = ()) -> Plan:
    """Report the failure as a condition and retry the stage later."""
    merged = merge_conditions(
        view.status.get("conditions") or [], (DELETION_ERROR,), [Condition(DELETION_ERROR, text)], now
    )
    patch = app_patch(view, {**view.status, "conditions": merged}, text)
    return Plan(steps=steps, status=patch, outcome=Requeue(RETRY.total_seconds(), text), why=text)


def _cascading(mine: list[str]) -> list[str]:
    return [name for name in mine if name.startswith(RESOURCES_FINALIZER)]


def _release(view: AppView, mine: list[str], why: str, events: tuple[Emit, ...] = ()) -> Plan:
    """Remove our finalizers. ``events`` go first, as the Application may disappear with its last finalizer."""
    left = [name for name in finalizers(view.obj) if name not in mine]
    body = {"metadata": {"finalizers": left or None, "resourceVersion": view.obj["metadata"]["resourceVersion"]}}
    patch = Patch(APPLICATION, view.namespace, view.name, body, why)
    return Plan(steps=(*((events,) if events else ()), (patch,)), why=why)


def deletion_rounds(objects: Iterable[Obj]) -> list[tuple[Obj, ...]]:
    """Return the order in which an Application's objects are deleted, as rounds: the highest sync wave first, the next
    one when all of it is deleted (Argo CD ``controller/sort_delete.go``). Each round is sorted by reference."""
    rounds: dict[int, list[Obj]] = {}
    for obj in objects:
        rounds.setdefault(wave(obj), []).append(obj)
    return [tuple(sorted(rounds[number], key=ref_of)) for number in sorted(rounds, reverse=True)]
