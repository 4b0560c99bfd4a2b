"""A cluster with people, accounts and nodes of few rights, reached by headers and certificates as over HTTP."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from syncline.assembly.embedded.core import ClusterCore, build_core
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.cluster.access.pki import ClusterKeys, create_keys
from syncline.cluster.access.users import ADMIN, ANONYMOUS, UserInfo, service_account_user
from syncline.cluster.serving.answers import refusal
from syncline.cluster.storage.store import Store
from syncline.kube.client import Request, Response
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj

__all__ = ["IDENTITIES", "RBAC", "Place", "signing_request"]

RBAC = "/apis/rbac.authorization.k8s.io/v1"
AUTHENTICATED = "system:authenticated"


def person(name: str, *groups: str) -> UserInfo:
    return UserInfo(name, (*groups, AUTHENTICATED))


IDENTITIES = {
    "anonymous": ANONYMOUS,
    "nobody": person("nobody"),
    "viewer": person("viewer"),
    "editor": person("editor"),
    "dev-admin": person("dev-admin"),
    "robot": service_account_user("dev", "robot"),
    "node": person("system:node:n1", "system:nodes"),
    "role-writer": person("role-writer"),
    "binder": person("binder"),
    "actor": person("actor"),
    "approver": person("approver"),
    "constrained": person("constrained"),
    "status-writer": person("status-writer"),
    "one-secret": person("one-secret"),
}
"""viewer, editor and dev-admin hold the roles of that name in the namespace dev, and nothing elsewhere."""


def _role(name: str, *rules: Obj) -> tuple[str, Obj]:
    return f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": list(rules)}


def _bind(user: str, role: str, namespace: str = "") -> tuple[str, Obj]:
    subject = {"kind": "User", "name": IDENTITIES[user].name, "apiGroup": "rbac.authorization.k8s.io"}
    ref = {"kind": "ClusterRole", "name": role, "apiGroup": "rbac.authorization.k8s.io"}
    kind = f"namespaces/{namespace}/rolebindings" if namespace else "clusterrolebindings"
    return f"{RBAC}/{kind}", {"metadata": {"name": f"{user}-{role}"}, "subjects": [subject], "roleRef": ref}


def rule(groups: str, resources: str, verbs: str, *names: str) -> Obj:
    made: Obj = {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(",")}
    return made | ({"resourceNames": list(names)} if names else {})


RBAC_GROUP = "rbac.authorization.k8s.io"
WRITES = "create,update,patch,delete,get,list"


def _objects() -> list[tuple[str, Obj]]:
    """All that stands in the place, beside what every cluster has."""
    pod = {"metadata": {"name": "p"}, "spec": {"serviceAccountName": "robot", "nodeName": "n1"}}
    pod["spec"]["containers"] = [{"name": "c", "image": "i"}]
    objects: list[tuple[str, Obj]] = [
        *(("/api/v1/namespaces", {"metadata": {"name": name}}) for name in ("dev", "other")),
        ("/api/v1/nodes", {"metadata": {"name": "n1"}}),
        ("/api/v1/nodes", {"metadata": {"name": "n2"}}),
    ]
    for namespace in ("dev", "other", "kube-system"):
        root = f"/api/v1/namespaces/{namespace}"
        for account in ("default", "robot", "boss"):
            objects.append((f"{root}/serviceaccounts", {"metadata": {"name": account}}))
        objects.append((f"{root}/secrets", {"metadata": {"name": "s"}, "data": {"password": "c2VjcmV0"}}))
        objects.append((f"{root}/configmaps", {"metadata": {"name": "m"}, "data": {"a": "b"}}))
        objects.append((f"{root}/pods", pod))
        objects.append((f"{root}/services", {"metadata": {"name": "svc"}, "spec": {"ports": [{"port": 80}]}}))
    objects += [
        _role("role-writer", rule(RBAC_GROUP, "roles,clusterroles,rolebindings,clusterrolebindings", WRITES)),
        _role(
            "binder",
            rule(RBAC_GROUP, "rolebindings,clusterrolebindings", WRITES),
            rule(RBAC_GROUP, "clusterroles", "bind", "view"),
        ),
        _role(
            "actor",
            rule("", "users", "impersonate", "bob"),
            rule("", "groups", "impersonate", "devs"),
            rule("", "serviceaccounts", "impersonate", "robot"),
            rule("authentication.k8s.io", "userextras/scopes", "impersonate", "read"),
        ),
        _role(
            "constrained",
            rule("authentication.k8s.io", "users,groups,nodes", "impersonate:user-info,impersonate:arbitrary-node"),
            rule("", "configmaps", "impersonate-on:user-info:get"),
        ),
        _role(
            "approver",
            rule("certificates.k8s.io", "certificatesigningrequests", "get,create,list,update"),
            rule(
                "certificates.k8s.io",
                "certificatesigningrequests/approval,certificatesigningrequests/status",
                "update,patch",
            ),
            rule("certificates.k8s.io", "signers", "approve", "example.com/mine"),
        ),
        _role(
            "status-writer",
            rule("apps", "deployments/status", "get,update,patch"),
            rule("", "pods/status", "get,update,patch"),
        ),
        _role("one-secret", rule("", "secrets", "get,list,watch", "s")),
        _bind("viewer", "view", "dev"),
        _bind("editor", "edit", "dev"),
        _bind("dev-admin", "admin", "dev"),
        _bind("role-writer", "role-writer"),
        _bind("constrained", "constrained"),
        _bind("role-writer", "view", "dev"),
        _bind("binder", "binder"),
        _bind("actor", "actor"),
        _bind("approver", "approver"),
        _bind("status-writer", "status-writer", "dev"),
        _bind("one-secret", "one-secret", "dev"),
    ]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    objects.append(("/apis/apps/v1/namespaces/dev/deployments", {"metadata": {"name": "d"}, "spec": spec}))
    return objects


def signing_request(common_name: str, *organizations: str) -> str:
    """A request for a certificate of that subject, as ``spec.request`` has it."""
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    request = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(KEY, hashes.SHA256())
    return base64.b64encode(request.public_bytes(serialization.Encoding.PEM)).decode()


KEY = ec.generate_private_key(ec.SECP256R1())


@dataclass
class Place:
    """``keys`` are the cluster's own; ``foreign`` those of another cluster."""

    clock: VirtualClock = field(default_factory=VirtualClock)

    def __post_init__(self) -> None:
        self.keys: ClusterKeys = create_keys(self.clock.now())
        self.foreign: ClusterKeys = create_keys(self.clock.now())
        self.core: ClusterCore = build_core(
            store=Store(), clock=self.clock, entropy=Entropy(1), keys=self.keys, without_credentials=ANONYMOUS
        )
        self.core.bootstrap(port=6443, ca_pem=self.keys.ca_pem)
        for path, obj in _objects():
            answer = self.ask(ADMIN, "POST", path, obj)
            assert answer.status == 201, answer.obj
        for signer in ("example.com/mine", "kubernetes.io/kube-apiserver-client"):
            spec = {"request": signing_request("x"), "signerName": signer, "usages": ["client auth"]}
            name = signer.partition("/")[2]
            path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
            assert self.ask(ADMIN, "POST", path, {"metadata": {"name": name}, "spec": spec}).status == 201

    def ask(
        self,
        user: UserInfo,
        method: str,
        path: str,
        body: Any = None,
        *,
        content: str = "application/json",
        headers: Mapping[str, str | list[str]] | None = None,
    ) -> Response:
        """As one whom the server already knows; ``headers`` may impersonate."""
        path, _, text = path.partition("?")
        query = dict(part.split("=", 1) for part in text.split("&") if part)
        several = {name: [value] if isinstance(value, str) else value for name, value in (headers or {}).items()}
        raw = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"content-type": content, **{name: values[0] for name, values in several.items()}}
        request = Request(method, path, query, sent, raw)
        try:
            acting = self.core.authenticator.acting(user, several, request).user
        except ApiError as error:
            return refusal(error)
        answer = self.core.api.handle(request, acting)
        if answer.stream is not None:
            answer.stream.close()
        return answer

    def credentials(self, path: str, *, token: str = "", certificate_der: bytes | None = None) -> Response:
        """As one whom only a token or a certificate tells."""
        headers = {"authorization": [f"Bearer {token}"]} if token else {}
        request = Request("GET", path)
        try:
            user = self.core.authenticator.authenticate(headers, certificate_der, self.clock.now(), request)
        except ApiError as error:
            return refusal(error)
        return self.core.api.handle(request, user)

    def token(self, path: str, **spec: Any) -> str:
        answer = self.ask(ADMIN, "POST", f"{path}/token", {"spec": spec})
        assert answer.status == 201, answer.obj
        return str(answer.obj["status"]["token"])

    def later(self, seconds: float) -> None:
        self.clock.advance(seconds)
