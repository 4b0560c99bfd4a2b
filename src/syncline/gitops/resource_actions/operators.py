"""Actions of well-known operators' kinds. Names and effects: Argo CD ``resource_customizations``."""

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
)
from syncline.gitops.resource_actions.model import Act, ActionFailed, ActionKind, Discover, Offer
from syncline.kube.objects import Obj, annotations_of, name_of

PAUSED = "autoscaling.keda.sh/paused"
PAUSED_REPLICAS = "autoscaling.keda.sh/paused-replicas"
ROLLING = "strimzi.io/manual-rolling-update"
RECONCILES = "cnpg.io/reconciliationLoop"
NEVER = {"0", *(f"0{unit}" for unit in ("ns", "us", "µs", "ms", "s", "m", "h"))}
"""Refresh intervals that mean no refresh."""
PAUSE_ICON, PLAY_ICON = "fa fa-fw fa-pause-circle", "fa fa-fw fa-play-circle"

SUSPENDABLE: dict[str, Act] = {
    "suspend": set_field((("spec", "suspend"), True)),
    "resume": unset_if_true("spec", "suspend"),
}
FLUX = {
    "helm.toolkit.fluxcd.io": ("HelmRelease",),
    "image.toolkit.fluxcd.io": ("ImageRepository", "ImageUpdateAutomation"),
    "kustomize.toolkit.fluxcd.io": ("Kustomization",),
    "notification.toolkit.fluxcd.io": ("Receiver",),
    "source.toolkit.fluxcd.io": ("Bucket", "GitRepository", "HelmChart", "HelmRepository", "OCIRepository"),
}
FLUX_QUIET = {"notification.toolkit.fluxcd.io": ("Alert", "Provider")}
"""Kinds that can be suspended but reconcile nothing."""


def _flux(*, reconciles: bool) -> ActionKind:
    def discover(obj: Obj) -> tuple[Offer, ...]:
        off = bool(at(obj, "spec", "suspend"))
        offered = (Offer("suspend", disabled=off), Offer("resume", disabled=not off))
        return (*offered, Offer("reconcile", disabled=off)) if reconciles else offered

    asked = annotate("reconcile.fluxcd.io/requestedAt", lambda now: f"By Argo CD at: {now:%Y-%m-%dT%H:%M:%S}")
    return ActionKind(discover, SUSPENDABLE | ({"reconcile": asked} if reconciles else {}))


def _refreshed(name: str, *, unless_on_change: bool) -> ActionKind:
    def discover(obj: Obj) -> tuple[Offer, ...]:
        never = str(at(obj, "spec", "refreshInterval")) in NEVER
        on_change = unless_on_change and at(obj, "spec", "refreshPolicy") == "OnChange"
        return (Offer(name, disabled=never and not on_change),)

    return ActionKind(discover, {name: annotate("force-sync", second)})


def _rolling(obj: Obj) -> tuple[Offer, ...]:
    return (Offer("rolling-update", disabled=annotations_of(obj).get(ROLLING) == "true"),)


def _pausable(disabled_pause: bool, disabled_resume: bool, resume: str = "resume") -> tuple[Offer, Offer]:
    return Offer("pause", disabled_pause, PAUSE_ICON), Offer(resume, disabled_resume, PLAY_ICON)


def _scaled_job(obj: Obj) -> tuple[Offer, ...]:
    paused = annotations_of(obj).get(PAUSED) == "true"
    return _pausable(paused, not paused)


def _scaled_object(obj: Obj) -> tuple[Offer, ...]:
    paused = annotations_of(obj).get(PAUSED) == "true"
    either = paused or PAUSED_REPLICAS in annotations_of(obj)
    return (*_pausable(either, not either), Offer("paused-replicas", paused, PAUSE_ICON, params=("replicas",)))


def _paused_at(obj: Obj, params: Mapping[str, str], _now: datetime) -> None:
    put(obj, ("metadata", "annotations", PAUSED_REPLICAS), str(replicas_of(params, least=0)))


def _unpaused(obj: Obj, _params: Mapping[str, str], _now: datetime) -> None:
    for key in (PAUSED, PAUSED_REPLICAS):
        put(obj, ("metadata", "annotations", key), REMOVED)


def _maria(obj: Obj) -> tuple[Offer, ...]:
    if at(obj, "spec", "suspend") is True:
        return (Offer("resume", icon="fa fa-fw fa-play", display="Resume"),)
    return (Offer("suspend", icon="fa fa-fw fa-pause", display="Suspend"),)


def _mongo(obj: Obj) -> tuple[Offer, ...]:
    paused = at(obj, "spec", "pause") is True
    return _pausable(paused, not paused, "unpause")


def _healthy(obj: Obj) -> list[str]:
    found = at(obj, "status", "instancesStatus", "healthy")
    return found if isinstance(found, list) else []


def _postgres(obj: Obj) -> tuple[Offer, ...]:
    stopped = annotations_of(obj).get(RECONCILES) == "disabled"
    last = (
        Offer("resume", icon="fa fa-fw fa-play", display="Resume Reconciliation")
        if stopped
        else Offer("suspend", icon="fa fa-fw fa-pause", display="Suspend Reconciliation")
    )
    return (
        Offer("restart", icon="fa fa-fw fa-recycle", display="Rollout restart Cluster"),
        Offer("reload", icon="fa fa-fw fa-rotate-right", display="Reload all Configuration"),
        Offer(
            "promote",
            disabled=len(_healthy(obj)) < 2,
            icon="fa fa-fw fa-angles-up",
            display="Promote Replica to Primary",
            params=("instance",),
        ),
        last,
    )


def _promote(obj: Obj, params: Mapping[str, str], now: datetime) -> None:
    """Promote the next healthy instance, or the one with the given number or name."""
    wanted, healthy = params.get("instance", "any"), _healthy(obj)
    chosen: str | None
    if wanted == "any":
        primary = at(obj, "status", "currentPrimary")
        following = healthy.index(primary) + 1 if primary in healthy else 0
        chosen = healthy[following % len(healthy)] if healthy else None
    else:
        name = f"{name_of(obj)}-{wanted}" if wanted.strip().isdecimal() else wanted
        chosen = name if name in healthy else None
    if chosen is None:
        raise ActionFailed(f"Could not find a healthy instance matching the criteria: {wanted}")
    changed: dict[str, Any] = {
        "targetPrimary": chosen,
        "targetPrimaryTimestamp": second(now),
        "phase": "Switchover in progress",
        "phaseReason": f"Switching over to {chosen}",
    }
    for key, value in changed.items():
        put(obj, ("status", key), value)


def _kind(discover: Discover, **acts: Act) -> ActionKind:
    return ActionKind(discover, {name.replace("_", "-"): act for name, act in acts.items()})


ACTIONS: dict[str, ActionKind] = {
    **{f"{group}/{kind}": _flux(reconciles=True) for group, kinds in FLUX.items() for kind in kinds},
    **{f"{group}/{kind}": _flux(reconciles=False) for group, kinds in FLUX_QUIET.items() for kind in kinds},
    "core.strimzi.io/StrimziPodSet": _kind(_rolling, rolling_update=annotate(ROLLING, "true")),
    "external-secrets.io/ExternalSecret": _refreshed("refresh", unless_on_change=True),
    "external-secrets.io/PushSecret": _refreshed("push", unless_on_change=False),
    "k8s.mariadb.com/MariaDB": ActionKind(_maria, SUSPENDABLE),
    "keda.sh/ScaledJob": _kind(_scaled_job, pause=annotate(PAUSED, "true"), resume=annotate(PAUSED, REMOVED)),
    "keda.sh/ScaledObject": _kind(
        _scaled_object, pause=annotate(PAUSED, "true"), resume=edited(_unpaused), paused_replicas=edited(_paused_at)
    ),
    "postgresql.cnpg.io/Cluster": _kind(
        _postgres,
        restart=annotate("kubectl.kubernetes.io/restartedAt", second),
        reload=annotate("cnpg.io/reloadedAt", second),
        promote=edited(_promote),
        suspend=annotate(RECONCILES, "disabled"),
        resume=annotate(RECONCILES, REMOVED),
    ),
    "psmdb.percona.com/PerconaServerMongoDB": _kind(
        _mongo, pause=set_field((("spec", "pause"), True)), unpause=set_field((("spec", "pause"), False))
    ),
}
