"""The deletion of a set: its Applications are orphaned, deleted in reverse order, or left to garbage collection; pure.

Rules: ``Reconcile`` and ``PerformReverseDeletion`` of upstream (reference argocd-applicationset §§2, 6, 7).
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from syncline.appset.observing.observe import SetObserved
from syncline.appset.writing.events import warned
from syncline.argo.application import RESOURCES_FINALIZER
from syncline.argo.rollout.steps import assign
from syncline.argo.rollout.strategy import is_reversed, steps_of
from syncline.base.action import Action
from syncline.base.clock import time_or_none
from syncline.control.plan import Delete, Done, Outcome, Patch, Plan, Replace, Requeue, Retry
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.objects import Obj, finalizers, is_terminating, meta, name_of, namespace_of, resource_version

POLL_S: Final = 10.0
"""Seconds between looks at an Application that is being deleted, beside its own changes."""
SLOW: Final = timedelta(minutes=2)
"""An Application that is being deleted for longer is reported."""


def plan_deletion(observed: SetObserved, now: datetime) -> Plan:
    """Plan for a set that is being deleted."""
    appset, current = observed.obj, observed.current
    steps: list[tuple[Action, ...]] = []
    if not observed.settings.policy_of(appset).deletes:
        if current:
            steps.append(tuple(Replace(_orphaned(app), "its set goes, and the policy keeps it") for app in current))
        current = ()
    if is_reversed(appset):
        waits = _in_reverse(appset, current, now)
        if waits is not None:
            return waits
    freed = without_finalizer(appset)
    if freed is not None:
        steps.append((freed,))
    why = "the set goes; " + ("its Applications stay" if steps and not current else "its Applications go with it")
    return Plan(tuple(steps), Done(), why)


def _orphaned(app: Obj) -> Obj:
    return {**app, "metadata": {key: value for key, value in app["metadata"].items() if key != "ownerReferences"}}


def _in_reverse(appset: Obj, current: tuple[Obj, ...], now: datetime) -> Plan | None:
    """Delete the next Application, or wait for the last one; None: all that are in steps are gone."""
    step_of = assign(steps_of(appset), current).step_of
    ordered = sorted((app for app in current if name_of(app) in step_of), key=lambda app: -step_of[name_of(app)])
    if not ordered:
        return None
    app = ordered[0]
    name, number = name_of(app), step_of[name_of(app)] + 1
    why = f"{len(ordered)} Applications go one at a time, now {name} of step {number}"
    if not is_terminating(app):
        return Plan(((Delete.of(app, why),),), Requeue(POLL_S, why), why)
    since = time_or_none(meta(app).get("deletionTimestamp"))
    if since is None or now - since <= SLOW:
        return Plan(outcome=Requeue(POLL_S, why), why=why)
    error = "application has not been deleted in over 2 minutes"
    text = f"{error}: {name}, finalizers {', '.join(finalizers(app)) or '-'}"
    outcome: Outcome = Retry(error)
    return Plan(((warned(appset, "DeletionSlow", text),),), outcome, f"{why}: {error}")


def without_finalizer(appset: Obj) -> Patch | None:
    """Return the patch that lets a set go, or None if it has no finalizer of ours."""
    left = [one for one in finalizers(appset) if one != RESOURCES_FINALIZER]
    return None if left == finalizers(appset) else _finalizers(appset, left, "the set may go")


def with_finalizer(appset: Obj) -> Patch | None:
    """Return the patch that makes a set wait for the ordered deletion of its Applications, or None if it has it."""
    known = finalizers(appset)
    if RESOURCES_FINALIZER in known:
        return None
    return _finalizers(appset, [*known, RESOURCES_FINALIZER], "its Applications shall go in order")


def _finalizers(appset: Obj, wanted: list[str], why: str) -> Patch:
    body = {"metadata": {"finalizers": wanted or None, "resourceVersion": resource_version(appset)}}
    return Patch(APPLICATION_SET, namespace_of(appset), name_of(appset), body, why)
