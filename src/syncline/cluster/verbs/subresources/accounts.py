"""serviceaccounts/token."""

from __future__ import annotations

from typing import Any

from syncline.base.clock import format_time
from syncline.cluster.store import Key
from syncline.cluster.tokens import BoundObject
from syncline.cluster.verbs.body import read_typed
from syncline.cluster.verbs.exchange import Exchange
from syncline.kube.client import Response
from syncline.kube.errors import ApiError, BadRequest, FieldCause, conflict, invalid, not_found
from syncline.kube.objects import GVK, Obj, meta, uid_of

__all__ = ["request_token"]

TOKEN_REQUEST = GVK("authentication.k8s.io", "v1", "TokenRequest")
DEFAULT_LIFETIME_S = 3600
MIN_LIFETIME_S = 600
MAX_LIFETIME_S = 1 << 32

_BOUND = {"Pod": ("/pods", True), "Secret": ("/secrets", True), "Node": ("/nodes", False)}


def request_token(x: Exchange) -> Response:
    """TokenRequest: a signed token for the account (registry ``serviceaccount/storage/token.go``)."""
    tokens = x.backend.tokens
    if tokens is None:
        raise ApiError("this cluster has no key to sign service account tokens with", code=501, reason="NotImplemented")
    body = read_typed(x, TOKEN_REQUEST)
    if body.get("kind", "TokenRequest") != "TokenRequest":
        raise BadRequest("the body of the request is not a TokenRequest")
    account = x.current()
    spec: Obj = dict(body.get("spec") or {})
    lifetime = spec.get("expirationSeconds") or DEFAULT_LIFETIME_S
    _check_lifetime(lifetime)
    bound = _bound_object(x, spec.get("boundObjectRef"))
    audiences = [str(item) for item in spec.get("audiences") or ()]
    issued = tokens.issue(
        x.route.namespace,
        x.route.name,
        account.uid,
        now=x.now,
        lifetime_s=lifetime,
        audiences=audiences,
        bound=[bound] if bound else [],
    )
    metadata = {k: meta(account.obj)[k] for k in ("name", "namespace", "uid")}
    answer: Obj = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {**metadata, "creationTimestamp": format_time(x.now)},
        "spec": {
            "audiences": audiences or ["https://kubernetes.default.svc"],
            "expirationSeconds": lifetime,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": issued.token.reveal(), "expirationTimestamp": format_time(issued.expires_at)},
    }
    return Response.of(201, answer)


def _check_lifetime(lifetime: Any) -> None:
    if not isinstance(lifetime, int) or isinstance(lifetime, bool):
        raise BadRequest("TokenRequest: spec.expirationSeconds must be an integer")
    problem = ""
    if lifetime < MIN_LIFETIME_S:
        problem = "may not specify a duration less than 10 minutes"
    elif lifetime > MAX_LIFETIME_S:
        problem = "may not specify a duration larger than 2^32 seconds"
    if problem:
        cause = FieldCause("FieldValueInvalid", f"Invalid value: {lifetime}: {problem}", "spec.expirationSeconds")
        raise invalid("TokenRequest", "", [cause], "authentication.k8s.io")


def _bound_object(x: Exchange, ref: Any) -> BoundObject | None:
    if not ref:
        return None
    kind, name = str(ref.get("kind", "")), str(ref.get("name", ""))
    where = _BOUND.get(kind)
    if where is None:
        raise BadRequest(f"cannot bind token for serviceaccount to a {kind}: only Pod, Secret and Node can be bound")
    resource, namespaced = where
    stored = x.store.get(Key(resource, x.route.namespace if namespaced else "", name))
    if stored is None:
        raise not_found(resource.lstrip("/"), name)
    uid = ref.get("uid") or stored.uid
    if uid != stored.uid:
        why = f"the UID in the bound object reference ({uid}) does not match the UID in record. The object might have "
        raise conflict(kind, name, why + "been deleted and then recreated")
    return BoundObject(kind, name, uid_of(stored.obj))
