"""With which rights the GitOps controllers work: ``--rights cluster`` or ``--rights managed-by``.

With ``managed-by`` they are the service account of OpenShift's default instance. It reads the cluster, creates
namespaces, and writes in namespaces whose label names the control namespace. ``deploy/managed-by.yaml`` has the same
objects.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

from syncline.apply.managed import ACCOUNT
from syncline.assembly.roles import Role
from syncline.cluster.access.users import UserInfo, service_account_user
from syncline.gitops.managed.controller import managed_namespaces
from syncline.gitops.managed.plan import RBAC, READ, binding_in
from syncline.kube.objects import Obj

CLUSTER_ACCOUNT: Final = "syncline-application-controller"
"""The service account with ``--rights cluster``, on the embedded cluster."""
OPERATOR: Final = "syncline-managed-namespaces"
"""Service account and field manager of the controller that keeps the rights, on the embedded cluster."""
READER: Final = "syncline:managed-by"
SETS: Final = "syncline:application-sets"


class Rights(StrEnum):
    """The value of ``--rights``."""

    CLUSTER = "cluster"
    """Everything on the embedded cluster; elsewhere what the kubeconfig's user may do."""
    MANAGED_BY = "managed-by"
    """Those of an application controller of OpenShift GitOps in namespaces with the label."""


def gitops_user(control_namespace: str, rights: Rights = Rights.CLUSTER) -> UserInfo:
    """Return the user of the GitOps controllers on the embedded cluster, and, with ``managed-by``, anywhere."""
    account = ACCOUNT if rights is Rights.MANAGED_BY else CLUSTER_ACCOUNT
    return service_account_user(control_namespace, account)


def rights_objects(control_namespace: str, rights: Rights) -> list[Obj]:
    """Return the account of the GitOps controllers with its rights, for the embedded cluster."""
    if rights is Rights.MANAGED_BY:
        return managed_by_objects(control_namespace)
    account = _account(control_namespace, CLUSTER_ACCOUNT)
    return [account, _binding(CLUSTER_ACCOUNT, "cluster-admin", CLUSTER_ACCOUNT, control_namespace)]


def managed_by_objects(control_namespace: str) -> list[Obj]:
    """Return the account with what it may do outside managed namespaces. In the control namespace it has what the
    operator gives, and the parts of ApplicationSets that another account of an instance has otherwise."""
    cluster: list[Obj] = [
        READ,
        # CreateNamespace=true. An existing namespace stays as it is: who could label one could write in it.
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["create"]},
        # Holds that have expired; there are none without machine configs.
        {"apiGroups": ["syncline.dev"], "resources": ["holds"], "verbs": ["delete"]},
    ]
    sets: list[Obj] = [
        {"apiGroups": ["argoproj.io"], "resources": ["applicationsets/status"], "verbs": ["patch", "update"]},
        {"apiGroups": ["argoproj.io"], "resources": ["applicationsets/finalizers"], "verbs": ["update"]},
    ]
    here: dict[str, Any] = {"name": SETS, "namespace": control_namespace}
    return [
        _account(control_namespace, ACCOUNT),
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": READER}, "rules": cluster},
        _binding(READER, READER, ACCOUNT, control_namespace),
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": here, "rules": sets},
        {**binding_in(control_namespace, control_namespace), "metadata": here, "roleRef": _ref("Role", SETS)},
    ]


def managed_namespaces_role(control_namespace: str) -> Role:
    """Return the role that does for managed namespaces what the GitOps operator does, on the embedded cluster."""
    rules = [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": [RBAC], "resources": ["clusterroles"], "verbs": ["list", "watch"]},
        {
            "apiGroups": [RBAC],
            "resources": ["roles", "rolebindings"],
            "verbs": ["bind", "create", "delete", "escalate", "list", "update", "watch"],
        },
        {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["list", "watch"]},
    ]
    return Role(
        name="managed-namespaces",
        controllers=(managed_namespaces(control_namespace),),
        user=service_account_user(control_namespace, OPERATOR),
        manager=OPERATOR,
        objects=(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": control_namespace}},
            _account(control_namespace, OPERATOR),
            {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": OPERATOR}, "rules": rules},
            _binding(OPERATOR, OPERATOR, OPERATOR, control_namespace),
        ),
    )


def _account(namespace: str, name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def _binding(name: str, role: str, account: str, namespace: str) -> Obj:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": _ref("ClusterRole", role),
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


def _ref(kind: str, name: str) -> Obj:
    return {"apiGroup": RBAC, "kind": kind, "name": name}
