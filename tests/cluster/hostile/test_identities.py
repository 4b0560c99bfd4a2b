"""What each identity must not do, as a table; the same request by one who may shows that nothing else was wrong."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jwt
import pytest
from tests.cluster.hostile.identities import IDENTITIES, RBAC, Place, rule, signing_request

from syncline.cluster.access.tokens import ISSUER
from syncline.cluster.access.users import ADMIN
from syncline.kube.objects import Obj

DEV, SYSTEM, OTHER = (f"/api/v1/namespaces/{name}" for name in ("dev", "kube-system", "other"))
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
JSON_PATCH, MERGE = "application/json-patch+json", "application/merge-patch+json"
STRATEGIC, APPLY = "application/strategic-merge-patch+json", "application/apply-patch+yaml"
WEAK = ("anonymous", "nobody", "viewer", "editor", "robot", "node", "approver", "actor", "binder")


@dataclass(frozen=True)
class Attempt:
    who: str
    method: str
    path: str
    body: Any = None
    content: str = "application/json"
    headers: dict[str, Any] = field(default_factory=dict)
    says: str = ""
    """Part of the refusal."""
    nobody_may: bool = False
    """Even an administrator is refused."""

    def __str__(self) -> str:
        return f"{self.who} {self.method} {self.path} {self.content.partition('/')[2][:12]} {self.headers} {self.says}"


def reading_secrets() -> Iterator[Attempt]:
    """By every way in which a list can be asked for."""
    ways = (
        "",
        "?watch=1",
        "?limit=1",
        "?fieldSelector=metadata.name%3Ds",
        "?labelSelector=a%3Db",
        "?resourceVersion=0",
    )
    for who in (*WEAK, "dev-admin", "status-writer", "one-secret"):
        for root in ("/api/v1", SYSTEM, OTHER):
            for way in ways:
                yield Attempt(who, "GET", f"{root}/secrets{way.replace('%3D', '=')}")
            for accept in (TABLE, METADATA):
                yield Attempt(who, "GET", f"{root}/secrets", headers={"accept": accept})
        yield Attempt(who, "GET", "/api/v1/watch/secrets")
        yield Attempt(who, "GET", f"{SYSTEM}/secrets/s")
        yield Attempt(who, "GET", "/api/v1/watch/namespaces/kube-system/secrets/s")
        yield Attempt(who, "GET", f"{SYSTEM}/secrets/s", headers={"accept": METADATA.replace("List", "")})
    for who in ("anonymous", "nobody", "viewer", "robot", "node", "status-writer"):
        for way in ("", "?watch=1", "/s"):
            yield Attempt(who, "GET", f"{DEV}/secrets{way}")
    yield Attempt("one-secret", "GET", f"{DEV}/secrets")
    yield Attempt("one-secret", "GET", f"{DEV}/secrets/other")
    yield Attempt("one-secret", "GET", f"{DEV}/secrets?fieldSelector=metadata.name!=s")


def writing_elsewhere() -> Iterator[Attempt]:
    patched: Obj = {"data": {"a": "eHg="}}
    for who in (*WEAK, "dev-admin"):
        for root in (SYSTEM, OTHER):
            for plural, name in (("secrets", "s"), ("configmaps", "m"), ("serviceaccounts", "boss")):
                at = f"{root}/{plural}"
                yield Attempt(who, "POST", at, {"metadata": {"name": "new"}})
                yield Attempt(who, "PUT", f"{at}/{name}", {"metadata": {"name": name}})
                yield Attempt(who, "DELETE", f"{at}/{name}")
                yield Attempt(who, "DELETE", at)
            at = f"{root}/configmaps"
            yield Attempt(who, "PATCH", f"{at}/m", patched, MERGE)
            yield Attempt(who, "PATCH", f"{at}/m", patched, STRATEGIC)
            yield Attempt(who, "PATCH", f"{at}/m", [{"op": "remove", "path": "/data/a"}], JSON_PATCH)
            applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
            yield Attempt(who, "PATCH", f"{at}/m?fieldManager=x&force=true", applied, APPLY)
            fresh = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "fresh"}}
            yield Attempt(who, "PATCH", f"{at}/fresh?fieldManager=x", fresh, APPLY)
        for path in ("/api/v1/nodes/n2", "/api/v1/namespaces/other", "/api/v1/namespaces/kube-node-lease"):
            yield Attempt(who, "DELETE", path)
        yield Attempt(who, "PUT", "/api/v1/namespaces/other/finalize", {"metadata": {"name": "other"}, "spec": {}})
        for path in ("/metrics", "/logs", "/debug/pprof", "/configz"):
            yield Attempt(who, "GET", path)


def subresources() -> Iterator[Attempt]:
    """Ways into pods and onto nodes."""
    pod = f"{DEV}/pods/p"
    for who in ("anonymous", "nobody", "viewer", "robot", "status-writer", "one-secret"):
        for sub in ("exec?command=sh", "attach", "portforward?ports=80", "proxy"):
            for method in ("GET", "POST"):
                yield Attempt(who, method, f"{pod}/{sub}")
        eviction = {"metadata": {"name": "p"}}
        yield Attempt(who, "POST", f"{pod}/eviction", eviction)
        yield Attempt(who, "POST", f"{pod}/binding", {"target": {"kind": "Node", "name": "n2"}})
        container = {"name": "spy", "image": "i"}
        yield Attempt(
            who, "PATCH", f"{pod}/ephemeralcontainers", {"spec": {"ephemeralContainers": [container]}}, STRATEGIC
        )
        yield Attempt(who, "PATCH", f"{pod}/resize", {"spec": {"containers": []}}, STRATEGIC)
        yield Attempt(who, "GET", f"{DEV}/services/svc/proxy")
        yield Attempt(who, "POST", f"{DEV}/serviceaccounts/boss/token", {"spec": {}})
        scale = {"metadata": {"name": "d"}, "spec": {"replicas": 0}}
        yield Attempt(who, "PUT", "/apis/apps/v1/namespaces/dev/deployments/d/scale", scale)
    for who in (*WEAK, "dev-admin"):
        yield Attempt(who, "GET", "/api/v1/nodes/n1/proxy")
        yield Attempt(who, "GET", f"{SYSTEM}/pods/p/log")
        yield Attempt(who, "POST", f"{SYSTEM}/pods/p/exec?command=sh")
        yield Attempt(who, "POST", f"{SYSTEM}/serviceaccounts/boss/token", {"spec": {}})
    for who in ("viewer", "editor", "dev-admin", "nobody"):
        for path in ("/apis/apps/v1/namespaces/dev/deployments/d/status", f"{pod}/status"):
            if who != "nobody":
                yield Attempt(who, "PATCH", path, {"status": {"observedGeneration": 99}}, MERGE)
            yield Attempt("nobody", "PUT", path, {"metadata": {"name": path.split("/")[-2]}})
    yield Attempt(
        "status-writer", "PATCH", "/apis/apps/v1/namespaces/dev/deployments/d", {"spec": {"replicas": 9}}, MERGE
    )


def _role(*rules: Obj, kind: str = "Role", **metadata: Any) -> Obj:
    return {"metadata": {"name": "more", **metadata}, "rules": list(rules)}


def _binding(role: str, who: str, kind: str = "ClusterRole") -> Obj:
    subject = {"kind": "User", "name": IDENTITIES[who].name, "apiGroup": "rbac.authorization.k8s.io"}
    ref = {"kind": kind, "name": role, "apiGroup": "rbac.authorization.k8s.io"}
    return {"metadata": {"name": "mine"}, "subjects": [subject], "roleRef": ref}


ALL = rule("*", "*", "*")
GRANT = "attempting to grant RBAC permissions not currently held"


def escalation() -> Iterator[Attempt]:
    everything: list[Obj] = [
        ALL,
        rule("", "secrets", "get"),
        rule("", "*", "get"),
        rule("*", "pods", "*"),
        rule("", "nodes/proxy", "get"),
        rule("", "pods/exec", "create"),
        rule("", "users,groups", "impersonate"),
        rule("rbac.authorization.k8s.io", "clusterroles", "escalate,bind"),
        rule("certificates.k8s.io", "signers", "sign"),
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]
    for wanted in everything:
        yield Attempt("role-writer", "POST", f"{RBAC}/clusterroles", _role(wanted), says=GRANT)
        at = f"{RBAC}/clusterroles/role-writer"
        add = [{"op": "add", "path": "/rules/-", "value": wanted}]
        yield Attempt("role-writer", "PATCH", at, add, JSON_PATCH, says=GRANT)
        yield Attempt("role-writer", "PATCH", at, {"rules": [wanted]}, MERGE, says=GRANT)
        own = {"metadata": {"name": "role-writer"}, "rules": [wanted]}
        yield Attempt("role-writer", "PUT", at, own, says=GRANT)
        applied = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", **own}
        yield Attempt("role-writer", "PATCH", f"{at}?fieldManager=x&force=true", applied, APPLY, says=GRANT)
        labels = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
        yield Attempt("role-writer", "POST", f"{RBAC}/clusterroles", _role(wanted, labels=labels), says=GRANT)
        if "nonResourceURLs" not in wanted:
            yield Attempt("role-writer", "POST", f"{RBAC}/namespaces/dev/roles", _role(wanted), says=GRANT)
            yield Attempt("role-writer", "POST", f"{RBAC}/namespaces/kube-system/roles", _role(wanted), says=GRANT)
    gathering = _role() | {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]}}
    says = "must have cluster-admin privileges to use the aggregationRule"
    yield Attempt("role-writer", "POST", f"{RBAC}/clusterroles", gathering, says=says)
    selectors = {
        "aggregationRule": {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}]}
    }
    yield Attempt("role-writer", "PATCH", f"{RBAC}/clusterroles/view", selectors, MERGE)
    for who in ("role-writer", "binder", "dev-admin"):
        roles = ("cluster-admin", "admin", "edit", "system:node", "actor", "system:kube-controller-manager")
        for role in roles if who != "dev-admin" else [*roles[:1], *roles[3:]]:
            at = f"{RBAC}/namespaces/dev/rolebindings"
            yield Attempt(who, "POST", at, _binding(role, who), says=GRANT)
            if who != "dev-admin":
                yield Attempt(who, "POST", f"{RBAC}/clusterrolebindings", _binding(role, who), says=GRANT)
                yield Attempt(
                    who, "POST", f"{RBAC}/namespaces/kube-system/rolebindings", _binding(role, who), says=GRANT
                )
    # A binding that exists cannot be taken over either.
    subjects = {"subjects": _binding("x", "role-writer")["subjects"]}
    yield Attempt("role-writer", "PATCH", f"{RBAC}/clusterrolebindings/cluster-admin", subjects, MERGE, says=GRANT)
    yield Attempt("binder", "PATCH", f"{RBAC}/clusterrolebindings/cluster-admin", subjects, MERGE, says=GRANT)
    yield Attempt(
        "binder",
        "POST",
        f"{RBAC}/namespaces/dev/rolebindings",
        _binding("gone", "binder", "Role"),
        says="not found",
        nobody_may=False,
    )
    for who in WEAK:
        yield Attempt(who, "POST", f"{RBAC}/clusterroles", _role(ALL))
        yield Attempt(who, "DELETE", f"{RBAC}/clusterroles/cluster-admin")
        if who != "binder":
            yield Attempt(who, "POST", f"{RBAC}/clusterrolebindings", _binding("cluster-admin", who))
            yield Attempt(who, "DELETE", f"{RBAC}/clusterrolebindings")


def impersonation() -> Iterator[Attempt]:
    yes, path = "impersonate-user", "/version"
    wishes: list[dict[str, Any]] = [
        {yes: "alice"},
        {yes: "kubernetes-admin"},
        {yes: "bob", "impersonate-group": "system:masters"},
        {yes: "bob", "impersonate-group": ["devs", "system:masters"]},
        {yes: "bob", "impersonate-group": "system:nodes"},
        {yes: "bob", "impersonate-uid": "1"},
        {yes: "bob", "impersonate-extra-scopes": "write"},
        {yes: "bob", "impersonate-extra-scopes": ["read", "write"]},
        {yes: "bob", "impersonate-extra-other": "read"},
        {yes: "system:node:n1", "impersonate-group": "system:nodes"},
        {yes: "system:anonymous"},
        {yes: "system:serviceaccount:kube-system:boss"},
        {yes: "system:serviceaccount:kube-system:clusterrole-aggregation-controller"},
        {yes: "system:serviceaccount:dev"},
        {yes: "system:kube-controller-manager"},
        {yes: "BOB"},
        {yes: "bob "},
    ]
    for wish in wishes:
        for who in ("actor", "nobody", "viewer", "anonymous", "node"):
            yield Attempt(who, "GET", path, headers=wish, says="cannot impersonate")
    one, listed = "/api/v1/namespaces/dev/configmaps/m", "/api/v1/namespaces/dev/configmaps"
    for asked, wish in (
        (one, {yes: "bob", "impersonate-group": "system:masters"}),
        (one, {yes: "bob", "impersonate-group": ["a", "b", "c", "system:masters"]}),
        (one, {yes: "bob", "impersonate-group": ["a", ""]}),
        (one, {yes: "bob", "impersonate-uid": "1"}),
        (one, {yes: "system:node:n1"}),
        (one, {yes: "system:serviceaccount:kube-system:boss"}),
        (listed, {yes: "kubernetes-admin"}),
        ("/version", {yes: "bob"}),
    ):
        no = "system:masters" not in wish.get("impersonate-group", ()) and asked != "/version"
        yield Attempt("constrained", "GET", asked, headers=wish, says="cannot impersonate", nobody_may=no)
    for wish in ({"impersonate-group": "system:masters"}, {"impersonate-uid": "1"}, {"impersonate-extra-x": "y"}):
        yield Attempt("actor", "GET", path, headers=wish, says="without impersonating a user name", nobody_may=True)
    yield Attempt("nobody", "GET", path, headers={yes: "system:serviceaccount:dev:robot"})
    yield Attempt("editor", "GET", path, headers={yes: "system:serviceaccount:kube-system:robot"})


def certificates() -> Iterator[Attempt]:
    def csr(signer: str, *subject: str, usages: tuple[str, ...] = ("client auth",)) -> Obj:
        spec = {"request": signing_request(*subject), "signerName": signer, "usages": list(usages)}
        return {"metadata": {"name": "mine"}, "spec": spec}

    client = "kubernetes.io/kube-apiserver-client"
    masters = "system:masters group is not allowed"
    yield Attempt("approver", "POST", CSRS, csr(client, "me", "system:masters"), says=masters, nobody_may=True)
    yield Attempt("approver", "POST", CSRS, csr(client, "me", "a", "system:masters"), says=masters, nobody_may=True)
    for who in ("anonymous", "viewer", "editor", "dev-admin", "node", "nobody"):
        if who != "node":
            yield Attempt(who, "POST", CSRS, csr(client, "x"))
        for sub in ("approval", "status"):
            yield Attempt(who, "PATCH", f"{CSRS}/mine/{sub}", {"status": {}}, MERGE)
        yield Attempt(who, "DELETE", f"{CSRS}/kube-apiserver-client")
    condition = {"type": "Approved", "status": "True", "reason": "x", "message": "y"}
    approved = {"status": {"conditions": [condition]}}
    says = f'user not permitted to approve requests with signerName "{client}"'
    yield Attempt("approver", "PATCH", f"{CSRS}/kube-apiserver-client/approval", approved, MERGE, says=says)
    signed = {"status": {"certificate": base64.b64encode(b"x").decode()}}
    for name, signer in (("kube-apiserver-client", client), ("mine", "example.com/mine")):
        says = f'user not permitted to sign requests with signerName "{signer}"'
        failed = {"status": {"conditions": [condition | {"type": "Failed"}]}}
        yield Attempt("approver", "PATCH", f"{CSRS}/{name}/status", failed, MERGE, says=says)
        del signed["status"]["certificate"]
        signed["status"]["certificate"] = base64.b64encode(b"x").decode()


def reviews_and_namespaces() -> Iterator[Attempt]:
    spec = {"user": "kubernetes-admin", "resourceAttributes": {"verb": "get", "resource": "secrets"}}
    for who in (*WEAK, "dev-admin"):
        yield Attempt(who, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
        yield Attempt(who, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}})
        local = {"spec": {**spec, "resourceAttributes": {**spec["resourceAttributes"], "namespace": "other"}}}  # type: ignore[dict-item]
        yield Attempt(who, "POST", "/apis/authorization.k8s.io/v1/namespaces/other/localsubjectaccessreviews", local)
    yield Attempt(
        "anonymous",
        "POST",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
    )
    for name in ("default", "kube-system", "kube-public"):
        says = "this namespace may not be deleted"
        yield Attempt("dev-admin", "DELETE", f"/api/v1/namespaces/{name}", nobody_may=True)
        yield Attempt("admin", "DELETE", f"/api/v1/namespaces/{name}", says=says, nobody_may=True)


GROUPS: dict[str, Callable[[], Iterator[Attempt]]] = {
    "reading secrets": reading_secrets,
    "writing elsewhere": writing_elsewhere,
    "subresources": subresources,
    "escalation": escalation,
    "impersonation": impersonation,
    "certificate requests": certificates,
    "reviews and system namespaces": reviews_and_namespaces,
}


@pytest.mark.parametrize("group", GROUPS)
def test_no_identity_does_what_it_must_not(group: str, figure: Callable[[str, str], None]) -> None:
    place = Place()
    count, controls = 0, 0
    for attempt in GROUPS[group]():
        user = IDENTITIES.get(attempt.who, ADMIN)
        before = place.core.store.revision
        answer = place.ask(
            user, attempt.method, attempt.path, attempt.body, content=attempt.content, headers=attempt.headers
        )
        told = str(answer.obj.get("message")) if isinstance(answer.obj, dict) else ""
        refused = answer.status in (401, 403) or (attempt.says and answer.status in (400, 404))
        assert refused, f"{attempt}: {answer.status} {str(answer.obj)[:300]}"
        assert attempt.says in told, f"{attempt}: {told}"
        assert place.core.store.revision == before, f"{attempt} changed the store"
        assert "c2VjcmV0" not in answer.raw.decode(), f"{attempt} tells the secret"
        count += 1
        path = attempt.path + ("&" if "?" in attempt.path else "?") + "dryRun=All"
        by_admin = place.ask(
            ADMIN, attempt.method, path, attempt.body, content=attempt.content, headers=attempt.headers
        )
        if attempt.nobody_may:
            assert not by_admin.ok, f"{attempt}: an administrator may"
        else:
            assert by_admin.status not in (401, 403, 500), f"{attempt}: {by_admin.status} {str(by_admin.obj)[:300]}"
            controls += 1
    figure(f"attempts refused, {group}", f"{count}, of which {controls} also tried by one who may")


ALLOWED = [
    Attempt("viewer", "GET", f"{DEV}/pods"),
    Attempt("viewer", "GET", f"{DEV}/pods/p/log"),
    Attempt("editor", "GET", f"{DEV}/secrets"),
    Attempt("editor", "GET", "/version", headers={"impersonate-user": "system:serviceaccount:dev:robot"}),
    Attempt("dev-admin", "POST", f"{RBAC}/namespaces/dev/rolebindings?dryRun=All", _binding("edit", "viewer")),
    Attempt("one-secret", "GET", f"{DEV}/secrets/s"),
    Attempt("one-secret", "GET", f"{DEV}/secrets?fieldSelector=metadata.name=s"),
    Attempt("one-secret", "GET", f"{DEV}/secrets?watch=1&fieldSelector=metadata.name=s"),
    Attempt("binder", "POST", f"{RBAC}/clusterrolebindings?dryRun=All", _binding("view", "viewer")),
    Attempt("role-writer", "POST", f"{RBAC}/namespaces/dev/roles?dryRun=All", _role(rule("", "pods", "get"))),
    Attempt("status-writer", "PATCH", f"{DEV}/pods/p/status?dryRun=All", {"status": {"reason": "x"}}, MERGE),
    Attempt("actor", "GET", "/version", headers={"impersonate-user": "bob", "impersonate-group": "devs"}),
    Attempt("actor", "GET", "/version", headers={"impersonate-user": "bob", "impersonate-extra-scopes": "read"}),
    Attempt("nobody", "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {"spec": {"namespace": "dev"}}),
]


@pytest.mark.parametrize("attempt", ALLOWED, ids=str)
def test_what_they_may_is_done(attempt: Attempt) -> None:
    place = Place()
    user = IDENTITIES[attempt.who]
    answer = place.ask(
        user, attempt.method, attempt.path, attempt.body, content=attempt.content, headers=attempt.headers
    )
    ours = answer.status in (200, 201, 404) and "forbidden" not in str(answer.obj)
    assert ours, f"{attempt}: {answer.status} {str(answer.obj)[:300]}"


# --- tokens and certificates -------------------------------------------------------------------------------------

ROBOT = f"{DEV}/serviceaccounts/robot"


def _forged(place: Place, token: str, **changes: Any) -> dict[str, str]:
    """Tokens with the claims of a good one (and ``changes``) that our key has not signed so."""
    claims = jwt.decode(token, options={"verify_signature": False}) | changes
    head, body, signature = token.split(".")
    other = place.foreign.service_accounts
    pem = place.keys.service_accounts.public_pem
    kid = {"kid": place.keys.service_accounts.key_id}
    encoded = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")

    def header(**fields: str) -> str:
        return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")

    def hmac(key: str) -> str:
        import hashlib
        import hmac as hashed

        start = f"{header(alg='HS256', typ='JWT', **kid)}.{encoded}"
        digest = hashed.new(key.encode(), start.encode(), hashlib.sha256).digest()
        return f"{start}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"

    return {
        "signed by another cluster": jwt.encode(claims, other.private_pem.reveal(), "ES256", headers=kid),
        "without algorithm": f"{header(alg='none', **kid)}.{encoded}.",
        "without algorithm, with a signature": f"{header(alg='none', **kid)}.{encoded}.{signature}",
        "signed with our public key as a secret": hmac(str(pem)),
        "signed with an empty secret": hmac(""),
        "without signature": f"{head}.{body}.",
        "with the signature of another body": f"{head}.{encoded}.{signature}"
        if changes
        else f"{head}.{body}x.{signature}",
        "with one letter changed": f"{head}.{body}.{'B' if signature[0] == 'A' else 'A'}{signature[1:]}",
        "of two parts": f"{head}.{body}",
        "of four parts": f"{token}.x",
        "empty parts": "..",
        "very long": token + "A" * 200_000,
        "no token": "x",
    }


def _stale(place: Place) -> Iterator[tuple[str, str]]:
    """Tokens that were good once, or are good for something else. Each is made good first."""
    hour = place.token(ROBOT, expirationSeconds=3600)
    yield "that has expired", hour
    place.later(3601)
    yield "for another audience", place.token(ROBOT, audiences=["vault"])
    pod = {"apiVersion": "v1", "kind": "Pod", "name": "p"}
    bound = place.token(ROBOT, boundObjectRef=pod)
    assert place.credentials("/version", token=bound).status == 200
    place.ask(ADMIN, "DELETE", f"{DEV}/pods/p?gracePeriodSeconds=0")
    yield "bound to a pod that is gone", bound
    spec = {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "i"}]}
    assert place.ask(ADMIN, "POST", f"{DEV}/pods", {"metadata": {"name": "p"}, "spec": spec}).status == 201
    yield "bound to a pod of that name before", bound
    secret = place.token(ROBOT, boundObjectRef={"apiVersion": "v1", "kind": "Secret", "name": "s"})
    place.ask(ADMIN, "DELETE", f"{DEV}/secrets/s")
    yield "bound to a secret that is gone", secret
    node = place.token(ROBOT, boundObjectRef={"apiVersion": "v1", "kind": "Node", "name": "n2"})
    place.ask(ADMIN, "DELETE", "/api/v1/nodes/n2")
    yield "bound to a node that is gone", node
    account = place.token(ROBOT)
    place.ask(ADMIN, "DELETE", ROBOT)
    yield "of an account that is gone", account
    assert place.ask(ADMIN, "POST", f"{DEV}/serviceaccounts", {"metadata": {"name": "robot"}}).status == 201
    yield "of an account of that name before", account


def test_no_token_opens_the_api_that_should_not(figure: Callable[[str, str], None]) -> None:
    place = Place()
    good = place.token(ROBOT)
    assert place.credentials("/version", token=good).status == 200
    now = int(place.clock.now().timestamp())
    changed: list[dict[str, Any]] = [
        {},
        {"sub": "system:serviceaccount:kube-system:boss"},
        {"exp": now + 10**9},
        {"aud": [ISSUER, "x"]},
        {"iss": "https://evil"},
        {"kubernetes.io": {"namespace": "kube-system", "serviceaccount": {"name": "boss", "uid": ""}}},
        {"kubernetes.io": {"namespace": "dev"}},
        {"kubernetes.io": "x"},
    ]
    count = 0
    for claims in changed:
        for what, token in _forged(place, good, **claims).items():
            answer = place.credentials("/version", token=token)
            assert answer.status == 401, f"a token {what} with {claims}: {answer.obj}"
            review = {"spec": {"token": token}}
            observed = place.ask(ADMIN, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", review).obj["status"]
            assert not observed.get("authenticated"), f"a token {what} with {claims} is reviewed as {observed}"
            count += 2
    for what, token in _stale(place):
        if what == "that has expired":
            place.later(3600.5)
        assert place.credentials("/version", token=token).status == 401, f"a token {what}"
        count += 1
    fresh = place.token(ROBOT)
    assert place.credentials("/version", token=fresh).status == 200, "a new one of the account is good"
    figure("tokens refused", str(count))


SIGNED_WRONGLY: list[tuple[str, dict[str, Any]]] = [
    ("our key, our claims, no account", {"kubernetes.io": None}),
    ("our key, another issuer", {"iss": "https://other"}),
    ("our key, no end", {"exp": None}),
    ("our key, an end that is no number", {"exp": "never"}),
    ("our key, an account without uid", {"kubernetes.io": {"namespace": "dev", "serviceaccount": {"name": "robot"}}}),
    ("our key, an account that is a list", {"kubernetes.io": {"namespace": "dev", "serviceaccount": ["robot"]}}),
    (
        "our key, a namespace that is a list",
        {"kubernetes.io": {"namespace": ["dev"], "serviceaccount": {"name": "robot", "uid": "x"}}},
    ),
    ("our key, for nobody", {"aud": []}),
    ("our key, audience of a wrong type", {"aud": {"x": 1}}),
]


@pytest.mark.parametrize(("what", "changes"), SIGNED_WRONGLY, ids=[what for what, _ in SIGNED_WRONGLY])
def test_what_our_key_signed_for_another_purpose_is_no_token(what: str, changes: dict[str, Any]) -> None:
    place = Place()
    claims = jwt.decode(place.token(ROBOT), options={"verify_signature": False}) | changes
    claims = {key: value for key, value in claims.items() if value is not None}
    key = place.keys.service_accounts
    token = jwt.encode(claims, key.private_pem.reveal(), "ES256", headers={"kid": key.key_id})
    assert place.credentials("/version", token=token).status == 401


TOKEN_REQUESTS: list[tuple[dict[str, Any], int]] = [
    ({"expirationSeconds": 1}, 422),
    ({"expirationSeconds": -1}, 422),
    ({"expirationSeconds": 2**40}, 422),
    ({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "none"}}, 404),
    ({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "other"}}, 409),
    ({"boundObjectRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "m"}}, 400),
    ({"boundObjectRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}, 400),
]


@pytest.mark.parametrize(("spec", "status"), TOKEN_REQUESTS, ids=str)
def test_a_token_is_not_issued_for_what_it_cannot_be_bound_to(spec: dict[str, Any], status: int) -> None:
    place = Place()
    assert place.ask(ADMIN, "POST", f"{ROBOT}/token", {"spec": spec}).status == status
    to_pod_of_another = {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}}
    refused = place.ask(ADMIN, "POST", f"{DEV}/serviceaccounts/boss/token", {"spec": to_pod_of_another})
    assert refused.status == 400 and "different serviceaccount" in refused.obj["message"]


def test_a_certificate_speaks_only_within_its_time_and_by_its_common_name() -> None:
    place = Place()

    def der(*args: Any, **options: Any) -> bytes:
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import Encoding

        pair = place.keys.authority.issue(*args, **options)
        return x509.load_pem_x509_certificate(pair.certificate_pem.encode()).public_bytes(Encoding.DER)

    now = place.clock.now()
    good = der("jane", now=now, organizations=("system:masters",))
    assert place.credentials("/api/v1/secrets", certificate_der=good).status == 200
    assert place.credentials("/api/v1/secrets", certificate_der=der("jane", now=now)).status == 403
    assert place.credentials("/api/v1/secrets", certificate_der=b"\x30\x03no").status == 403, "nobody is anonymous"
    place.later(3 * 365 * 86400)
    assert place.credentials("/api/v1/secrets", certificate_der=good).status == 401
