"""The namespaces that cluster sets of the hub want on each of their clusters; pure.

Rules: ``pkg/registration/spoke/managedcluster/managed_namespace_reconcile.go`` of upstream. Namespaces are created and
labelled, never deleted.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.base.action import Action
from syncline.control.plan import Create, Patch, Plan, Result, set_status
from syncline.fleet.conditions import condition, with_condition
from syncline.fleet.spoke.link import SPOKE
from syncline.kube.objects import GVK, Obj, dig, is_terminating, labels_of, name_of

NAMESPACE: Final = GVK("", "v1", "Namespace")
AVAILABLE: Final = "NamespaceAvailable"
MAX_LABEL: Final = 63
MAX_SHOWN: Final = 1024


def hub_label(hub_url: str) -> str:
    """Return the label of namespaces that a hub wants; its value is "true", and "false" when the hub no longer does."""
    return f"clusterset.open-cluster-management.io/{hashlib.sha256(hub_url.encode()).hexdigest()[:MAX_LABEL]}"


@dataclass(frozen=True, slots=True)
class Observed:
    """A ManagedCluster and the namespaces of the cluster by name."""

    cluster: Obj
    label: str
    live: dict[str, Obj]


def plan_namespaces(observed: Observed, _now: datetime) -> Plan:
    """Create and label what the hub wants, and take the label from others."""
    wanted = _wanted(observed.cluster)
    steps: list[Action] = []
    for name in wanted:
        live = observed.live.get(name)
        why = "a cluster set of the hub wants it"
        if live is None:
            metadata = {"name": name, "labels": {observed.label: "true"}}
            made = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
            steps.append(Create(made, why, cluster=SPOKE))
        elif labels_of(live).get(observed.label) != "true":
            steps.append(_labelled(name, observed.label, "true", why))
    for name, live in observed.live.items():
        if name not in wanted and labels_of(live).get(observed.label) == "true":
            steps.append(_labelled(name, observed.label, "false", "no cluster set of the hub wants it"))
    return Plan((tuple(steps),) if steps else (), why=f"{len(wanted)} namespaces of cluster sets")


def settle_namespaces(
    observed: Observed, plan: Plan, results: tuple[Result, ...], now: datetime
) -> tuple[Observed, Plan] | None:
    """Report on the hub what became of each namespace. A refusal is data here: it is tried again as any failure."""
    if plan.status:
        return None
    failed = {name_of_target(one): str(one.error)[:MAX_SHOWN] for one in results if not one.ok}
    live: Obj = observed.cluster.get("status") or {}
    entries = [
        {**one, "conditions": with_condition(one.get("conditions") or (), _said(failed.get(one["name"], "")), now)}
        for one in live.get("managedNamespaces") or ()
    ]
    written = set_status(observed.cluster, {**live, "managedNamespaces": entries}, plan.why) if entries else ()
    return (observed, Plan((), plan.outcome, plan.why, written)) if written else None


def name_of_target(result: Result) -> str:
    match result.action:
        case Create(obj=obj):
            return name_of(obj)
        case Patch(name=name):
            return name
    return ""


def _wanted(cluster: Obj) -> list[str]:
    entries = () if is_terminating(cluster) else dig(cluster, "status", "managedNamespaces") or ()
    return list(dict.fromkeys(str(one["name"]) for one in entries))


def _labelled(name: str, label: str, value: str, why: str) -> Patch:
    return Patch(NAMESPACE, "", name, {"metadata": {"labels": {label: value}}}, why, cluster=SPOKE)


def _said(problem: str) -> Obj:
    if problem:
        return condition(AVAILABLE, "False", "NamespaceApplyFailed", f"Failed to apply namespace: {problem}")
    return condition(AVAILABLE, "True", "NamespaceApplied", "Namespace successfully applied and managed")
