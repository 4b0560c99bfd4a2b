"""The objects that every cluster has from its first moment.

Called by ``assembly`` on a new store and at each start (what is missing is made again, what is there is left alone).
Objects go through the API like any other, so that they are defaulted, validated and get their uids. ServiceAccounts and
the CA's ConfigMap of each namespace are made by controllers, not here.
"""

from __future__ import annotations

from collections.abc import Callable

from syncline.cluster.bootstrap_roles import (
    AGGREGATE,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    RBAC,
    ROLE_BINDINGS,
    ROLES,
    Binding,
    Role,
)
from syncline.cluster.pki import SERVICE_IP
from syncline.cluster.rbac import aggregated_rules
from syncline.kube.client import Request, Response
from syncline.kube.errors import AlreadyExists, error_from_status
from syncline.kube.objects import Obj, name_of, namespace_of

__all__ = ["bootstrap_objects", "install"]

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")

_RBAC_METADATA: Obj = {
    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
}

_PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "Service": "/api/v1/namespaces/{namespace}/services",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ClusterRole": f"/apis/{RBAC}/v1/clusterroles",
    "ClusterRoleBinding": f"/apis/{RBAC}/v1/clusterrolebindings",
    "Role": f"/apis/{RBAC}/v1/namespaces/{{namespace}}/roles",
    "RoleBinding": f"/apis/{RBAC}/v1/namespaces/{{namespace}}/rolebindings",
}


def install(send: Callable[[Request], Response], objects: list[Obj]) -> int:
    """Create what is missing, in order; how many were made. Raises the ApiError of the first refusal.

    ``send`` asks the API as a member of system:masters.
    """
    made = 0
    for obj in objects:
        path = _PATHS[obj["kind"]].format(namespace=namespace_of(obj))
        answer = send(Request("POST", path, body=obj))
        if answer.ok:
            made += 1
            continue
        error = error_from_status(answer.obj, answer.status)
        if not isinstance(error, AlreadyExists):
            raise error
    return made


def bootstrap_objects(*, port: int = 6443, ca_pem: str = "") -> list[Obj]:
    """Namespaces first, then what stands in them. ``port`` is what the server listens on."""
    objects = [_object("v1", "Namespace", name) for name in NAMESPACES]
    objects += [_priority("system-cluster-critical", 2_000_000_000, "must be in the cluster; may move between nodes")]
    objects += [_priority("system-node-critical", 2_000_001_000, "must run on its node")]
    objects += [_service(port)]
    if ca_pem:
        objects.append(_authentication(ca_pem))
    return objects + _rbac()


def _object(api_version: str, kind: str, name: str, namespace: str = "", **fields: object) -> Obj:
    metadata: Obj = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def _priority(name: str, value: int, description: str) -> Obj:
    return _object(
        "scheduling.k8s.io/v1", "PriorityClass", name, value=value, description=f"For pods that {description}."
    )


def _service(port: int) -> Obj:
    service = _object("v1", "Service", "kubernetes", "default")
    service["metadata"]["labels"] = {"component": "apiserver", "provider": "kubernetes"}
    service["spec"] = {
        "type": "ClusterIP",
        "clusterIP": SERVICE_IP,
        "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": port}],
    }
    return service


def _authentication(ca_pem: str) -> Obj:
    """Where extension API servers learn which client certificates to trust."""
    return _object(
        "v1", "ConfigMap", "extension-apiserver-authentication", "kube-system", data={"client-ca-file": ca_pem}
    )


def _rbac() -> list[Obj]:
    roles = [_role(role) for role in CLUSTER_ROLES]
    return [
        *_aggregated(roles),
        *(_role(role) for role in ROLES),
        *(_binding(binding) for binding in CLUSTER_ROLE_BINDINGS),
        *(_binding(binding) for binding in ROLE_BINDINGS),
    ]


def _aggregated(roles: list[Obj]) -> list[Obj]:
    """With the rules that the aggregation controller would arrive at: ``view`` feeds ``edit`` feeds ``admin``."""
    for name in ("view", "edit", "admin"):
        roles = [
            {**role, "rules": aggregated_rules(role, roles) or []} if name_of(role) == name else role for role in roles
        ]
    return roles


def _role(role: Role) -> Obj:
    obj = _object(f"{RBAC}/v1", "Role" if role.namespace else "ClusterRole", role.name, role.namespace)
    labels = dict(_RBAC_METADATA["labels"])
    if role.part_of:
        labels[AGGREGATE + role.part_of] = "true"
    obj["metadata"] |= {"labels": labels, "annotations": dict(_RBAC_METADATA["annotations"])}
    obj["rules"] = [rule.to_obj() for rule in role.rules]
    if role.selects:
        obj["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {AGGREGATE + role.selects: "true"}}]}
    return obj


def _binding(binding: Binding) -> Obj:
    kind = "RoleBinding" if binding.namespace else "ClusterRoleBinding"
    role_kind = "ClusterRole" if binding.cluster_role else "Role"
    obj = _object(f"{RBAC}/v1", kind, binding.name, binding.namespace)
    obj["metadata"] |= {field: dict(value) for field, value in _RBAC_METADATA.items()}
    obj["roleRef"] = {"apiGroup": RBAC, "kind": role_kind, "name": binding.role}
    if binding.subjects:
        obj["subjects"] = [_subject(subject) for subject in binding.subjects]
    return obj


def _subject(text: str) -> Obj:
    kind, _, name = text.partition(" ")
    if kind == "ServiceAccount":
        namespace, _, name = name.partition("/")
        return {"kind": kind, "name": name, "namespace": namespace}
    return {"kind": kind, "apiGroup": RBAC, "name": name}
