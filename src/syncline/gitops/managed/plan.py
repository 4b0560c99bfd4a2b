"""The Role and the RoleBinding of the application controller in a managed namespace; pure. :func:`plan_rights`.

As the OpenShift GitOps operator, it gives the controller the rules of the cluster's ClusterRole ``admin``, reads of
everything, and Argo CD's own kinds. Source: ``controllers/argocd/openshift/openshift.go`` and
``controllers/argocd/rolebinding.go`` of the operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from syncline.apply.managed import ACCOUNT, LABEL, manager_of
from syncline.base.action import Action
from syncline.control.plan import Create, Delete, Plan, Replace
from syncline.kube.objects import GroupKind, Obj, copied, is_terminating, labels_of, name_of

RBAC: Final = "rbac.authorization.k8s.io"
ROLES: Final = GroupKind(RBAC, "Role")
BINDINGS: Final = GroupKind(RBAC, "RoleBinding")
ADMIN: Final = "admin"
"""The ClusterRole whose rules the controller gets in each namespace."""
INSTANCE: Final = ACCOUNT.partition("-argocd-")[0]
"""Name of the instance, as the operator's labels have it."""
READ: Final[Obj] = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
_OWN: Final[tuple[Obj, ...]] = (
    READ,
    {"apiGroups": ["monitoring.coreos.com"], "resources": ["*"], "verbs": ["*"]},
    {
        "apiGroups": ["argoproj.io"],
        "resources": ["applications", "applicationsets", "appprojects", "argocds"],
        "verbs": ["*"],
    },
)
_MARK: Final = {"app.kubernetes.io/part-of": "argocd", "app.kubernetes.io/managed-by": INSTANCE}


@dataclass(frozen=True, slots=True)
class ManagedNamespace:
    """A namespace, and what it has of the controller's rights."""

    namespace: Obj
    control: str
    admin: Obj | None
    """The ClusterRole ``admin``; None: the cluster has none, and nothing is granted by it."""
    role: Obj | None
    binding: Obj | None


def plan_rights(seen: ManagedNamespace, _now: datetime) -> Plan:
    """Plan Role and RoleBinding of a namespace: kept while its label names our instance, taken away afterwards."""
    name, label = name_of(seen.namespace), manager_of(seen.namespace)
    if is_terminating(seen.namespace):
        return Plan(why="the namespace is being deleted, and its roles with it")
    if seen.control not in (name, label):
        reason = f"the label {LABEL} names {label}" if label else f"the namespace has no label {LABEL}"
        ours = [one for one in (seen.binding, seen.role) if one is not None and is_ours(one)]
        return Plan((tuple(Delete.of(one, reason) for one in ours),) if ours else (), why=reason)
    wanted = role_in(name, seen.admin), binding_in(name, seen.control)
    reason = f"instance {seen.control} manages the namespace"
    steps: list[tuple[Action, ...]] = [
        step
        for made, live in zip(wanted, (seen.role, seen.binding), strict=True)
        if (step := _write(made, live, reason))
    ]
    return Plan(tuple(steps), why=reason)


def is_ours(obj: Obj) -> bool:
    """Return whether an operator's labels are on a Role or a RoleBinding of the account's name."""
    labels: Mapping[str, str] = labels_of(obj)
    return all(labels.get(key) == value for key, value in _MARK.items())


def role_in(namespace: str, admin: Obj | None) -> Obj:
    rules = [*_OWN, *((admin or {}).get("rules") or ())]
    return {**_object("Role", namespace), "rules": copied(rules)}


def binding_in(namespace: str, control: str) -> Obj:
    return {
        **_object("RoleBinding", namespace),
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": control}],
    }


def _object(kind: str, namespace: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/name": INSTANCE, **_MARK}
    metadata = {"name": ACCOUNT, "namespace": namespace, "labels": labels}
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata}


def _write(wanted: Obj, live: Obj | None, reason: str) -> tuple[Action, ...]:
    """A binding to another role is made again, since its ``roleRef`` cannot change."""
    if live is None:
        return (Create(wanted, reason),)
    if live.get("roleRef") != wanted.get("roleRef"):
        return Delete.of(live, "it binds another role"), Create(wanted, reason)
    if is_ours(live) and all(live.get(key) == wanted.get(key) for key in ("rules", "subjects")):
        return ()
    metadata: Obj = {**live["metadata"], "labels": {**labels_of(live), **labels_of(wanted)}}
    return (Replace({**wanted, "metadata": metadata}, reason),)
