"""One reconcile of an ``ArgoCD`` object; pure.

It writes the settings, makes the service account, and runs the GitOps controllers of the namespace. It binds the
account to cluster-admin only in namespaces that the administrator of this process lists (as upstream's
``ARGOCD_CLUSTER_CONFIG_NAMESPACES``), so that the right to make ArgoCD objects gives no other rights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from syncline.base.action import Action
from syncline.base.clock import format_time
from syncline.control.plan import Apply, Create, Done, Patch, Plan, Replace, Requeue, set_status
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import (
    Obj,
    finalizers,
    generation,
    gvk_of,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    resource_version,
    uid_of,
)
from syncline.patterns.argocd.instances import MAX_INSTANCES, Instance, RunInstance, StopInstance
from syncline.patterns.argocd.settings import config_maps, not_run, problems

FINALIZER: Final = "argoproj.io/finalizer"
MANAGER: Final = "syncline-patterns"
RBAC: Final = "rbac.authorization.k8s.io"
RECONCILED, SERVED = "Reconciled", "WorkloadsRun"


@dataclass(frozen=True)
class ArgoObserved:
    """An ArgoCD object and what stands beside it."""

    instance: Obj = field(repr=False)
    others: tuple[str, ...] = ()
    """Names of ArgoCD objects of the namespace that were there first."""
    maps: tuple[Obj, ...] = field(default=(), repr=False)
    account: bool = False
    bound: bool = False
    """Some binding names its service account."""
    project: bool = False
    """The project ``default`` is there."""
    cluster_wide: bool = False
    """The administrator lists its namespace."""
    here: bool = False
    """The controllers of this process work in its namespace already."""
    running: frozenset[Instance] = frozenset()
    why_not: str = ""
    unread: str = ""

    @property
    def wanted(self) -> Instance:
        return Instance(namespace_of(self.instance), name_of(self.instance))


def plan_argocd(observed: ArgoObserved, now: datetime) -> Plan:
    """Plan one reconcile."""
    if is_terminating(observed.instance):
        return _end(observed)
    if observed.unread:
        return Plan((), Requeue(60.0, observed.unread), observed.unread)
    if observed.others:
        why = f"namespace {observed.wanted.namespace} is the control namespace of ArgoCD {observed.others[0]}"
        return _said(observed, now, why, "Duplicate")
    steps = [*_settings(observed), *_account(observed)]
    if steps:
        why = "the settings, the account and the project that it names"
        return Plan(tuple((one,) for one in steps), Requeue(0.0, why), why)
    problem, reason = _cannot_run(observed)
    if problem:
        gone = (StopInstance(observed.wanted, problem),) if observed.wanted in observed.running else ()
        return _said(observed, now, problem, reason, gone)
    if observed.here or observed.wanted in observed.running:
        return _said(observed, now, "", "Success")
    why = f"Applications of namespace {observed.wanted.namespace} need controllers"
    return _said(observed, now, "", "Success", (RunInstance(observed.wanted, why),))


def _end(observed: ArgoObserved) -> Plan:
    """The controllers stop with their instance; settings and account stay."""
    why = "the ArgoCD object is being deleted"
    steps: list[tuple[Action, ...]] = []
    if observed.wanted in observed.running:
        steps.append((StopInstance(observed.wanted, why),))
    left = [one for one in finalizers(observed.instance) if one != FINALIZER]
    if len(left) != len(finalizers(observed.instance)):
        metadata = {
            "uid": uid_of(observed.instance),
            "resourceVersion": resource_version(observed.instance),
            "finalizers": left,
        }
        gvk = gvk_of(observed.instance)
        body = {"metadata": metadata}
        steps.append((Patch(gvk, observed.wanted.namespace, observed.wanted.name, body, why),))
    return Plan(tuple(steps), Done(), why)


def _settings(observed: ArgoObserved) -> list[Action]:
    there = {name_of(one): one for one in observed.maps}
    found: list[Action] = []
    for wanted in config_maps(observed.instance, source_namespaces=observed.cluster_wide):
        live = there.get(name_of(wanted))
        if live is None:
            found.append(Create(wanted, "a setting of the ArgoCD object"))
        elif live.get("data") != wanted["data"]:
            labels = labels_of(live) | labels_of(wanted)
            made = {**live, "data": wanted["data"], "metadata": {**live["metadata"], "labels": labels}}
            found.append(Replace(made, "the ArgoCD object says otherwise"))
    return found


def _account(observed: ArgoObserved) -> list[Action]:
    wanted, found = observed.wanted, list[Action]()
    metadata = {"name": wanted.account, "namespace": wanted.namespace}
    if not observed.account:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        found.append(Create(account, "the controllers of the instance act as it"))
    if observed.cluster_wide and not observed.bound:
        subject = {"kind": "ServiceAccount", **metadata}
        binding = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{wanted.namespace}-{wanted.account}"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [subject],
        }
        found.append(Apply(binding, MANAGER, "the administrator lists this namespace", force=True))
    if not observed.project:
        spec = {
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}],
            "destinations": [{"namespace": "*", "server": "*"}],
            "sourceRepos": ["*"],
        }
        project = {
            "apiVersion": APP_PROJECT.api_version,
            "kind": APP_PROJECT.kind,
            "metadata": {"name": "default", "namespace": wanted.namespace},
            "spec": spec,
        }
        found.append(Create(project, "every control namespace has it"))
    return found


def _cannot_run(observed: ArgoObserved) -> tuple[str, str]:
    wanted = observed.wanted
    if observed.here:
        return "", ""
    if observed.why_not:
        return f"{observed.why_not}: run syncline controller --namespace {wanted.namespace}", "NotRunHere"
    if not observed.bound:
        return f"no binding names ServiceAccount {wanted.namespace}/{wanted.account}, so it may do nothing", "NoRights"
    if wanted not in observed.running and len(observed.running) >= MAX_INSTANCES:
        return f"{len(observed.running)} instances run in this process, at most {MAX_INSTANCES}", "TooMany"
    return "", ""


def _said(observed: ArgoObserved, now: datetime, problem: str, reason: str, last: Sequence[Action] = ()) -> Plan:
    asked, wrong = not_run(observed.instance), problems(observed.instance)
    if not observed.cluster_wide and (observed.instance.get("spec") or {}).get("sourceNamespaces"):
        wrong.append("spec.sourceNamespaces: only where the administrator lists the namespace of the ArgoCD object")
    runs = not problem
    conditions = [
        _condition(observed, RECONCILED, runs, reason, problem or "; ".join(wrong), now),
        _condition(
            observed,
            SERVED,
            not asked,
            "NotRunHere" if asked else "NothingAsked",
            f"not run here: {', '.join(asked)}" if asked else "",
            now,
        ),
    ]
    state = "Running" if runs else "Unknown"
    parts = dict.fromkeys(("applicationController", "applicationSetController"), state)
    status = {**(observed.instance.get("status") or {}), **parts, "phase": "Available" if runs else "Failed"}
    status["conditions"] = conditions
    why = problem or f"namespace {observed.wanted.namespace} is a control namespace"
    steps = (tuple(last),) if last else ()
    return Plan(steps, Done(), why, set_status(observed.instance, status, why))


def _condition(observed: ArgoObserved, kind: str, holds: bool, reason: str, message: str, now: datetime) -> Obj:
    before = (observed.instance.get("status") or {}).get("conditions") or ()
    known: Obj = next((one for one in before if one.get("type") == kind), {})
    status = "True" if holds else "False"
    since = known.get("lastTransitionTime") if known.get("status") == status else None
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation(observed.instance),
        "lastTransitionTime": since or format_time(now),
    }
