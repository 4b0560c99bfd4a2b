"""Actions of Kubernetes' own workloads. Names and effects: Argo CD ``resource_customizations``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from syncline.gitops.resource_actions.edits import (
    REMOVED,
    annotate,
    at,
    edited,
    put,
    replicas_of,
    second,
    set_field,
    unset_if_true,
    without_empty,
)
from syncline.gitops.resource_actions.model import ActionFailed, ActionKind, Effect, Offer, Verb
from syncline.kube.objects import Obj, dig, name_of, namespace_of, uid_of

RESTARTED = annotate("kubectl.kubernetes.io/restartedAt", second, "spec", "template")
OVER = ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet")
"""Conditions that, if true, mark a Job as finished."""
RESTART = Offer("restart", icon="fa fa-fw fa-redo")
SCALE = Offer("scale", icon="fa fa-fw fa-plus-circle", params=("replicas",))
SUSPEND = Offer("suspend", icon="fa fa-fw fa-pause")
RESUME = Offer("resume", icon="fa fa-fw fa-play")


def owned_by(owner: Obj, *, controller: bool) -> list[Obj]:
    """Return the owner reference for objects created from this one."""
    found: Obj = {
        "apiVersion": owner.get("apiVersion"),
        "kind": owner.get("kind"),
        "name": name_of(owner),
    }
    if uid_of(owner):
        found["uid"] = uid_of(owner)
    return [found | ({"blockOwnerDeletion": True, "controller": True} if controller else {})]


def _scale(obj: Obj, params: Mapping[str, str], _now: datetime) -> None:
    put(obj, ("spec", "replicas"), replicas_of(params))


def _deployment(obj: Obj) -> tuple[Offer, ...]:
    paused = bool(at(obj, "spec", "paused"))
    pause = Offer("pause", disabled=paused, icon="fa fa-fw fa-pause-circle")
    return RESTART, pause, Offer("resume", disabled=not paused, icon="fa fa-fw fa-play-circle"), SCALE


def _cron_job(obj: Obj) -> tuple[Offer, ...]:
    create = Offer("create-job", icon="fa fa-fw fa-plus", display="Create Job")
    return create, RESUME if at(obj, "spec", "suspend") else SUSPEND


def _create_job(obj: Obj, _params: Mapping[str, str], now: datetime) -> tuple[Effect, ...]:
    """Create a Job like ``kubectl create job --from``, named by the minute, so that two clicks create one Job."""
    template = dig(obj, "spec", "jobTemplate")
    if not isinstance(template, dict):
        raise ActionFailed(f"CronJob {name_of(obj)} has no spec.jobTemplate")
    metadata: dict[str, Any] = without_empty(template.get("metadata") or {}) or {}
    annotations = dict(metadata.get("annotations") or {}) | {"cronjob.kubernetes.io/instantiate": "manual"}
    metadata |= {"name": f"{name_of(obj)}-{now:%y%m%d%H%M}", "annotations": annotations}
    metadata["ownerReferences"] = owned_by(obj, controller=True)
    if namespace_of(obj):
        metadata["namespace"] = namespace_of(obj)
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": without_empty(template.get("spec"))}
    return (Effect(Verb.CREATE, job),)


def _is_over(obj: Obj) -> bool:
    conditions = at(obj, "status", "conditions") or ()
    return any(one.get("type") in OVER and one.get("status") == "True" for one in conditions)


def _job(obj: Obj) -> tuple[Offer, ...]:
    if _is_over(obj):
        return ()
    offered = (RESUME if at(obj, "spec", "suspend") else SUSPEND,)
    return (*offered, Offer("terminate", icon="fa fa-fw fa-stop")) if obj.get("status") is not None else offered


def _terminate_job(obj: Obj, _params: Mapping[str, str], now: datetime) -> None:
    if obj.get("status") is None or _is_over(obj):
        return
    condition = {
        "lastTransitionTime": second(now),
        "message": "Job was terminated explicitly through Argo CD",
        "reason": "ManuallyTerminated",
        "status": "True",
        "type": "FailureTarget",
    }
    put(obj, ("status", "conditions"), [*(at(obj, "status", "conditions") or ()), condition])


def _always(*offers: Offer) -> Any:
    return lambda _obj: offers


ACTIONS: dict[str, ActionKind] = {
    "apps/DaemonSet": ActionKind(_always(RESTART), {"restart": RESTARTED}),
    "apps/StatefulSet": ActionKind(_always(RESTART, SCALE), {"restart": RESTARTED, "scale": edited(_scale)}),
    "apps/Deployment": ActionKind(
        _deployment,
        {
            "restart": RESTARTED,
            "pause": set_field((("spec", "paused"), True)),
            "resume": set_field((("spec", "paused"), REMOVED)),
            "scale": edited(_scale),
        },
    ),
    "batch/CronJob": ActionKind(
        _cron_job,
        {
            "create-job": _create_job,
            "suspend": set_field((("spec", "suspend"), True)),
            "resume": unset_if_true("spec", "suspend"),
        },
    ),
    "batch/Job": ActionKind(
        _job,
        {
            "suspend": set_field((("spec", "suspend"), True)),
            "resume": unset_if_true("spec", "suspend"),
            "terminate": edited(_terminate_job),
        },
    ),
}
