"""Identity and permissions of a node agent: a client certificate as a kubelet has it, and RBAC objects.

``syncline node kubeconfig`` creates them with an administrator's access, on any cluster; ``deploy/node-agent.yaml`` has
the same objects. RBAC cannot restrict an agent to its own node, so an admission policy does, as the NodeRestriction
plugin does where it runs. Source of names, signer and usages: Kubernetes ``certificates.k8s.io`` and the kubelet's
bootstrap.
"""

from __future__ import annotations

from datetime import timedelta

from syncline.base.secret import Secret
from syncline.kube.certificates import Identity
from syncline.kube.certificates import certificate_request as request_of
from syncline.kube.objects import Obj
from syncline.machineconfig.agent.files.serverauthority import CONFIG_MAP

NAME = "syncline-node-agent"
NODES, NODE_PREFIX = "system:nodes", "system:node:"
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SELF_RENEWAL = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
RBAC = "rbac.authorization.k8s.io"
ADMISSION = "admissionregistration.k8s.io/v1"
READ = ["get", "list", "watch"]
WRITE = ["create", "patch", "update"]
_ROLES = "node-role.kubernetes.io/"


def certificate_request(node: str, key_pem: Secret, name: str, lifetime: timedelta) -> Obj:
    """Return a CertificateSigningRequest ``name`` for the client certificate of ``node``."""
    who = Identity(f"{NODE_PREFIX}{node}", (NODES,))
    return request_of(who, key_pem, SIGNER, {"name": name}, expiration_s=int(lifetime.total_seconds()))


def node_rights() -> list[Obj]:
    """Return the RBAC objects that node agents need beyond a kubelet's."""
    node, config = [""], ["machineconfiguration.openshift.io"]
    rules = [
        _rule(node, ["nodes"], [*READ, *WRITE]),
        _rule(node, ["nodes/status"], ["patch", "update"]),
        _rule(config, ["machineconfigs", "machineconfigpools", "machineconfignodes", "pinnedimagesets"], READ),
        _rule(config, ["controllerconfigs"], READ),
        # Certificates that are no secret, by their name alone: their namespace need not be there yet.
        _rule(node, ["configmaps"], ["get"]) | {"resourceNames": [CONFIG_MAP[1]]},
        _rule(config, ["machineconfignodes/status"], ["patch", "update"]),
        _rule(["operator.openshift.io"], ["machineconfigurations"], READ),
        _rule(["apiextensions.k8s.io"], ["customresourcedefinitions"], READ),
        _rule(["certificates.k8s.io"], ["certificatesigningrequests"], ["create", *READ]),
    ]
    return [
        {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": NAME}, "rules": rules},
        _bound(NAME, NAME),
        _bound(f"{NAME}-renewal", SELF_RENEWAL),
        *_in_namespace("default", _rule(node, ["events"], ["create", "patch"])),
        *_in_namespace("kube-node-lease", _rule(["coordination.k8s.io"], ["leases"], ["get", *WRITE])),
        _policy(),
        {
            "apiVersion": ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": NAME},
            "spec": {"policyName": NAME, "validationActions": ["Deny"]},
        },
    ]


def _rule(groups: list[str], resources: list[str], verbs: list[str]) -> Obj:
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}


def _bound(name: str, role: str) -> Obj:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": NODES}],
    }


def _in_namespace(namespace: str, rule: Obj) -> list[Obj]:
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": NAME, "namespace": namespace}}
    bound = _bound(NAME, NAME)
    return [
        role | {"rules": [rule]},
        bound
        | {
            "kind": "RoleBinding",
            "metadata": role["metadata"],
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": NAME},
        },
    ]


def _policy() -> Obj:
    """Return the admission policy: a node writes only its own objects, and keeps its pool and its taints."""
    matched = [
        ("", ["nodes", "nodes/status"]),
        ("machineconfiguration.openshift.io", ["machineconfignodes", "machineconfignodes/status"]),
        ("coordination.k8s.io", ["leases"]),
    ]
    rules = [
        {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": resources}
        for group, resources in matched
    ]
    changed = "request.operation == 'UPDATE' && request.resource.resource == 'nodes'"
    validations = [
        {
            "expression": f"request.userInfo.username == '{NODE_PREFIX}' + object.metadata.name",
            "messageExpression": "request.userInfo.username + ' may write objects of its own name only'",
        },
        {
            "expression": f"!({changed}) || ({_same_roles('object', 'oldObject')} && "
            f"{_same_roles('oldObject', 'object')})",
            "message": f"a node may not change its labels {_ROLES}*: they decide which pool it is in",
        },
        {
            "expression": f"!({changed}) || ({_same_spec('taints')} && {_same_spec('unschedulable')})",
            "message": "a node may not change its taints, nor whether it is cordoned",
        },
    ]
    return {
        "apiVersion": ADMISSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": [{"name": "nodes", "expression": f"'{NODES}' in request.userInfo.groups"}],
            "validations": validations,
        },
    }


def _same_roles(of: str, other: str) -> str:
    """Return a CEL expression: all role labels of one object are labels of the other."""
    there = f"(has({other}.metadata.labels) && k in {other}.metadata.labels)"
    kept = f"{of}.metadata.labels.all(k, !k.startsWith('{_ROLES}') || {there})"
    return f"(!has({of}.metadata.labels) || {kept})"


def _same_spec(field: str) -> str:
    has = [f"has({of}.spec.{field})" for of in ("object", "oldObject")]
    return f"{has[0]} == {has[1]} && (!{has[0]} || object.spec.{field} == oldObject.spec.{field})"
