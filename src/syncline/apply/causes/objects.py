"""Why one object of a cluster is not healthy: :func:`cause_of`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from syncline.apply.causes.advice import advice
from syncline.apply.causes.pods import explain_pod
from syncline.apply.causes.view import Found, View, one_line, warnings_of
from syncline.apply.causes.workloads import explain_job, explain_workload
from syncline.apply.health import HealthStatus, health_of
from syncline.base.cause import Cause
from syncline.base.clock import time_or_none
from syncline.kube.objects import GroupKind, Obj, dig, ref_of, uid_of

BAD: Final = (HealthStatus.DEGRADED, HealthStatus.MISSING, HealthStatus.UNKNOWN)


def cause_of(view: View, obj: Obj) -> Found:
    """Explain an object by its kind, of an unknown kind by health and Events."""
    return KINDS.get(ref_of(obj).group_kind, by_health)(view, obj)


def by_health(view: View, obj: Obj) -> Found:
    """Explain a kind of which only health and Events are known."""
    health = health_of(obj)
    state = str(health.status) if health is not None else "Present"
    said = health.message if health is not None else ""
    events = [] if state == HealthStatus.HEALTHY else warnings_of(view, obj)[:1]
    because = tuple(Cause("event", str(e.get("reason")), one_line(str(e.get("message")))) for e in events)
    blocked = state in BAD or bool(events)
    fix = advice(said) or (advice(because[0].message) if because else "")
    return Found(plain(obj, state, said, *because, fix=fix), blocked=blocked)


def _claim(view: View, claim: Obj) -> Found:
    phase = str(dig(claim, "status", "phase", default="Pending"))
    if phase == "Bound":
        return Found(plain(claim, phase, f"bound to {dig(claim, 'spec', 'volumeName', default='')}"), blocked=False)
    events = warnings_of(view, claim)
    said = str(events[0].get("message")) if events else "no volume matches it yet"
    wanted = dig(claim, "spec", "storageClassName")
    fix = "make a PersistentVolume that it can bind, or a StorageClass that provisions one"
    return Found(plain(claim, phase, f"storage class {wanted or '(default)'}: {said}", fix=fix), blocked=True)


def _service(view: View, service: Obj) -> Found:
    waits = dig(service, "spec", "type") == "LoadBalancer" and not dig(service, "status", "loadBalancer", "ingress")
    if not waits:
        return by_health(view, service)
    events = warnings_of(view, service)
    said = str(events[0].get("message")) if events else "no load balancer has given it an address yet"
    return Found(plain(service, "Progressing", said, fix=advice("load balancer")), blocked=bool(events))


def plain(obj: Obj, state: str, message: str, *because: Cause, fix: str = "") -> Cause:
    """Return a cause about an object, since its creation."""
    return Cause(
        subject=str(ref_of(obj)),
        state=state,
        message=one_line(message),
        since=time_or_none(dig(obj, "metadata", "creationTimestamp")),
        next_action=fix,
        evidence=(("uid", uid_of(obj)),) if uid_of(obj) else (),
        because=because,
    )


KINDS: Final[Mapping[GroupKind, Callable[[View, Obj], Found]]] = {
    GroupKind("", "Pod"): explain_pod,
    GroupKind("batch", "Job"): explain_job,
    GroupKind("apps", "Deployment"): explain_workload,
    GroupKind("apps", "ReplicaSet"): explain_workload,
    GroupKind("apps", "StatefulSet"): explain_workload,
    GroupKind("apps", "DaemonSet"): explain_workload,
    GroupKind("", "PersistentVolumeClaim"): _claim,
    GroupKind("", "Service"): _service,
}
