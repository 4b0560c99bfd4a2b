"""Explains clusters of a hub: who waits for acceptance, who does not answer, since when, and what to do. Pure."""

from __future__ import annotations

from datetime import datetime

from syncline.assembly.inspection.fleet import REQUEST
from syncline.base.cause import OR, Cause
from syncline.base.clock import format_time, time_or_none
from syncline.explain.view import Found, View, one_line, unread
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.registration.cleanup import next_to_go
from syncline.fleet.hub.registration.leases import ACCEPTED, AVAILABLE, CLOCK_SYNCED, LEASE, grace_of
from syncline.fleet.hub.registration.pending import pending_requests, stage_of
from syncline.kube.kinds.governance import POLICY
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, finalizers, is_terminating, name_of, ref_of
from syncline.patterns.policies.hub.rights import RIGHTS

LEASES = GroupKind("coordination.k8s.io", "Lease")
CLUSTERS, WORKS = MANAGED_CLUSTER.group_kind, MANIFEST_WORK.group_kind
ROTATED = "ClusterCertificateRotated"
_RBAC = "rbac.authorization.k8s.io"
_POLICIES = ObjectRef("apiextensions.k8s.io", "CustomResourceDefinition", "", f"policies.{POLICY.group}")
MAX_SHOWN = 5
LOOK_AT_AGENT = "on the cluster, see whether its agent runs and reaches the hub: syncline agent"


def explain_cluster(view: View, obj: Obj) -> Found:
    """Explain a ManagedCluster."""
    return {
        "pending": _pending,
        "denied": _denied,
        "accepted": _accepted,
        "leaving": explain_leaving,
        "joined": _joined,
    }[stage_of(obj)](view, obj)


def cluster_cause(view: View, name: str) -> Cause | None:
    """Return why nothing new is heard of a cluster; None if it answers."""
    ref = ObjectRef(*MANAGED_CLUSTER.group_kind, "", name)
    obj = view.cluster.get(ref)
    if obj is None:
        why = view.cluster.unread(ref)
        return (
            Cause(str(ref), "unread", one_line(why))
            if why
            else Cause(str(ref), "missing", "the hub has no such cluster")
        )
    found = explain_cluster(view, obj)
    return found.cause if found.blocked else None


def _condition(obj: Obj, kind: str) -> Obj:
    return find_condition(dig(obj, "status", "conditions") or (), kind) or {}


def _cause(obj: Obj, state: str, message: str, *because: Cause, since: str = "", fix: str = "") -> Cause:
    begun = time_or_none(since) or time_or_none(dig(obj, "metadata", "creationTimestamp"))
    return Cause(str(ref_of(obj)), state, one_line(message), begun, next_action=fix, because=because)


def _requests(view: View, obj: Obj) -> tuple[Cause, ...]:
    """Return the pending certificate requests of a cluster."""
    mine = [one for one in pending_requests(view.cluster.objects(REQUEST.group_kind)) if one.cluster == name_of(obj)]
    found = [
        Cause(
            str(ref_of(one.csr)),
            "passed over" if one.refused else "pending",
            one.refused or f"agent {one.agent} waits for its certificate; asked by {one.user}",
            one.since,
            one.until,
            "Kubernetes deletes the request; the agent makes another",
        )
        for one in mine[:MAX_SHOWN]
    ]
    return (*found, *unread(view, REQUEST.group_kind, ""))


def _pending(view: View, obj: Obj) -> Found:
    fix = f"if it shall join: syncline cluster accept {name_of(obj)}{OR}kubectl delete managedcluster {name_of(obj)}"
    text = "no one has accepted it yet; until then its agent can do nothing"
    return Found(_cause(obj, "NotAccepted", text, *_requests(view, obj), fix=fix), blocked=True)


def _denied(view: View, obj: Obj) -> Found:
    since = str(_condition(obj, ACCEPTED).get("lastTransitionTime") or "")
    fix = f"syncline cluster accept {name_of(obj)}{OR}to remove it: syncline cluster detach {name_of(obj)}"
    text = "its acceptance was taken back; what its works made stays on the cluster and is not updated"
    return Found(_cause(obj, "Denied", text, since=since, fix=fix), blocked=True)


def _accepted(view: View, obj: Obj) -> Found:
    said = _condition(obj, ACCEPTED)
    requests = _requests(view, obj)
    if not said:
        text = "the hub has not given it its rights yet"
        fix = "see that the hub's controllers run: syncline controller --roles hub"
        return Found(_cause(obj, "Accepted", text, *requests, fix=fix), blocked=True)
    since = str(said.get("lastTransitionTime") or "")
    if any(one.state == "pending" for one in requests):
        fix = f"approve it: syncline cluster accept {name_of(obj)}"
        return Found(
            _cause(obj, "Accepted", "its agent has no certificate yet", *requests, since=since, fix=fix), blocked=True
        )
    text = "its agent has not joined yet"
    return Found(_cause(obj, "Accepted", text, *requests, since=since, fix=LOOK_AT_AGENT), blocked=True)


def _joined(view: View, obj: Obj) -> Found:
    available, clock, rotated = (_condition(obj, kind) for kind in (AVAILABLE, CLOCK_SYNCED, ROTATED))
    since = str(available.get("lastTransitionTime") or "")
    below = []
    if clock.get("status") == "False":
        below.append(_said(obj, "clock", clock, "set the clock of the cluster by NTP; its agent writes no status so"))
    if rotated.get("status") == "False":
        below.append(_said(obj, "certificate", rotated, "look at its requests: kubectl get csr"))
    unreached = _policies(view, obj)
    notes = [unreached] if unreached is not None else []
    text = str(available.get("message") or "")
    match available.get("status"):
        case "True":
            return Found(_cause(obj, "Available", text, *below, *notes, since=since), blocked=bool(below))
        case "False":
            fix = "look at the API server of the cluster; its agent works"
            return Found(_cause(obj, "Unavailable", text, *below, since=since, fix=fix), blocked=True)
    text = f"{text} {_lease(view, obj)}".strip()
    return Found(_cause(obj, "Unreachable", text, *below, since=since, fix=LOOK_AT_AGENT), blocked=True)


def _policies(view: View, obj: Obj) -> Cause | None:
    """Return that the policies of this hub do not reach a cluster, because its agent may not read them."""
    role = ObjectRef(_RBAC, "Role", name_of(obj), RIGHTS)
    if view.cluster.get(_POLICIES) is None or view.cluster.unread(role) or view.cluster.get(role) is not None:
        return None
    text = "the policies of this hub do not reach it: its agent has no right to read them"
    fix = "run the role that grants it: syncline controller --roles policies (deploy/policies.yaml)"
    return Cause(f"policies of {name_of(obj)}", "NoRights", text, next_action=fix)


def _said(obj: Obj, what: str, condition: Obj, fix: str) -> Cause:
    since = time_or_none(condition.get("lastTransitionTime"))
    message = one_line(str(condition.get("message") or ""))
    return Cause(f"{what} of {name_of(obj)}", str(condition.get("reason")), message, since, next_action=fix)


def last_sign(view: View, cluster: str) -> datetime | None:
    """Return when the agent of a cluster renewed its lease last; None: never, or it may not be read."""
    lease = view.cluster.get(ObjectRef(*LEASES, cluster, LEASE))
    return time_or_none(dig(lease or {}, "spec", "renewTime"))


def _lease(view: View, obj: Obj) -> str:
    renewed = last_sign(view, name_of(obj))
    if renewed is None:
        return ""
    return f"Last sign of life {format_time(renewed)}; the hub waits {grace_of(obj).total_seconds():.0f} s."


def explain_leaving(view: View, obj: Obj) -> Found:
    """Explain a cluster that is being removed: which works it waits for, and whether their agent answers."""
    name = name_of(obj)
    works = view.cluster.objects(WORKS, name)
    held = ", ".join(finalizers(obj)) or "none"
    since = str(dig(obj, "metadata", "deletionTimestamp") or "")
    if not works:
        text = f"is being removed; finalizers left: {held}"
        fix = "see that the hub's controllers run: syncline controller --roles hub" if finalizers(obj) else ""
        return Found(_cause(obj, "Leaving", text, since=since, fix=fix), blocked=bool(finalizers(obj)))
    shown = next_to_go(works)
    below = tuple(
        Cause(
            str(ref_of(one)),
            "Terminating" if is_terminating(one) else "Present",
            f"held by {', '.join(finalizers(one)) or 'nothing'}",
            time_or_none(dig(one, "metadata", "deletionTimestamp")),
        )
        for one in shown[:MAX_SHOWN]
    )
    answers = _condition(obj, AVAILABLE).get("status") == "True"
    left = "1 work is" if len(works) == 1 else f"{len(works)} works are"
    text = f"{left} left in its namespace; its agent deletes what they made"
    fix = (
        "wait for the agent"
        if answers
        else (
            f"its agent does not answer: start it, and it cleans up{OR}if the cluster is gone for ever, remove the "
            f"finalizers of its works: kubectl edit manifestwork -n {name}"
        )
    )
    return Found(_cause(obj, "Leaving", text, *below, since=since, fix=fix), blocked=not answers)
