"""Identity and permissions of a node agent: a client certificate as a kubelet has it, and RBAC objects.

``syncline node kubeconfig`` creates them with an administrator's access, on any cluster; ``deploy/node-agent.yaml`` has
the same objects. RBAC cannot restrict an agent to its own node, so an admission policy does, as the NodeRestriction
plugin does where it runs. Source of names, signer and usages: Kubernetes ``certificates.k8s.io`` and the kubelet's
bootstrap.
"""

from __future__ import annotations

import base64
import binascii
from datetime import timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from syncline.base.secret import Secret
from syncline.kube.objects import GVK, Obj
from syncline.machineconfig.agent.files.serverauthority import CONFIG_MAP

CSR = GVK("certificates.k8s.io", "v1", "CertificateSigningRequest")
NAME = "syncline-node-agent"
NODES, NODE_PREFIX = "system:nodes", "system:node:"
SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
SELF_RENEWAL = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
RBAC = "rbac.authorization.k8s.io"
ADMISSION = "admissionregistration.k8s.io/v1"
READ = ["get", "list", "watch"]
WRITE = ["create", "patch", "update"]
_ROLES = "node-role.kubernetes.io/"


def client_key() -> Secret:
    """Return a new private key as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PrivateFormat.PKCS8
    return Secret(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode())


def certificate_request(node: str, key_pem: Secret, name: str, lifetime: timedelta) -> Obj:
    """Return a CertificateSigningRequest ``name`` for the client certificate of ``node``."""
    key: Any = serialization.load_pem_private_key(key_pem.reveal().encode(), None)
    subject = [(NameOID.ORGANIZATION_NAME, NODES), (NameOID.COMMON_NAME, f"{NODE_PREFIX}{node}")]
    asked = x509.Name([x509.NameAttribute(oid, text) for oid, text in subject])
    signed = x509.CertificateSigningRequestBuilder().subject_name(asked).sign(key, hashes.SHA256())
    return {
        "apiVersion": CSR.api_version,
        "kind": CSR.kind,
        "metadata": {"name": name},
        "spec": {
            "request": base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": SIGNER,
            "usages": ["digital signature", "client auth"],
            "expirationSeconds": int(lifetime.total_seconds()),
        },
    }


def approved(request: Obj) -> Obj:
    """Return the request with the approval that ``kubectl certificate approve`` writes to its subresource."""
    fields = {"type": "Approved", "status": "True", "reason": "NodeAgent", "message": "asked for by an administrator"}
    return request | {"status": (request.get("status") or {}) | {"conditions": [fields]}}


def issued_certificate(request: Obj) -> tuple[str, str]:
    """Return the signed PEM, or the error that makes it fail; both are empty while it is pending."""
    status = request.get("status") or {}
    for each in status.get("conditions") or ():
        if each.get("type") in ("Denied", "Failed"):
            return "", f"{each['type']}: {each.get('message', '')}"
    try:
        return base64.b64decode(str(status.get("certificate") or "")).decode(), ""
    except (binascii.Error, UnicodeDecodeError):
        return "", "status.certificate is no PEM in base64"


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
