"""serviceaccounts/token: issue service-account tokens."""

from __future__ import annotations

from typing import Any

from syncline.base.clock import format_time
from syncline.cluster.access.tokens import ISSUER, BoundObject
from syncline.cluster.storage.store import Key
from syncline.cluster.verbs import admitting
from syncline.cluster.verbs.body import read_typed
from syncline.cluster.verbs.exchange import Exchange
from syncline.cluster.verbs.options import Validation
from syncline.kube.client import Response
from syncline.kube.errors import ApiError, BadRequest, FieldCause, conflict, invalid, not_found
from syncline.kube.objects import GVK, Obj, meta, uid_of

GROUP = "authentication.k8s.io"
TOKEN_REQUEST = GVK(GROUP, "v1", "TokenRequest")
DEFAULT_LIFETIME_S = 3600
MIN_LIFETIME_S = 600
MAX_LIFETIME_S = 1 << 32

_BOUND = {"Pod": "/pods", "Secret": "/secrets", "Node": "/nodes"}


def request_token(x: Exchange) -> Response:
    """Return a signed token for the account (registry ``serviceaccount/storage/token.go``)."""
    tokens = x.backend.tokens
    if tokens is None:
        raise ApiError("this cluster has no key to sign service account tokens with", code=501, reason="NotImplemented")
    body = _body(x)
    account = x.current()
    if admitting.concerned(x):
        body = admitting.admitted(x, "CREATE", body) or body
    spec: Obj = dict(body.get("spec") or {})
    lifetime = spec.get("expirationSeconds")
    lifetime = DEFAULT_LIFETIME_S if lifetime is None else lifetime
    _check_lifetime(lifetime)
    bound = _bound_objects(x, spec.get("boundObjectRef"))
    audiences = [str(item) for item in spec.get("audiences") or ()]
    issued = tokens.issue(
        x.route.namespace,
        x.route.name,
        account.uid,
        now=x.now,
        lifetime_s=lifetime,
        audiences=audiences,
        bound=bound,
    )
    metadata = {k: meta(account.obj)[k] for k in ("name", "namespace", "uid")}
    answer: Obj = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {**metadata, "creationTimestamp": format_time(x.now)},
        "spec": {
            "audiences": audiences or [ISSUER],
            "expirationSeconds": lifetime,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": issued.token.reveal(), "expirationTimestamp": format_time(issued.expires_at)},
    }
    return Response.of(201, answer)


def _body(x: Exchange) -> Obj:
    strict = (x.request.query or {}).get("fieldValidation") == Validation.STRICT
    body = read_typed(x, TOKEN_REQUEST, Validation.STRICT if strict else Validation.IGNORE)
    given = meta(body)
    if given.get("namespace") and given["namespace"] != x.route.namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if given.get("name") and given["name"] != x.route.name:
        why = f'Invalid value: "{given["name"]}": must match the service account name if specified'
        raise invalid("TokenRequest", x.route.name, [FieldCause("FieldValueInvalid", why, "metadata.name")], GROUP)
    return body


def _check_lifetime(lifetime: Any) -> None:
    problem = ""
    if lifetime < MIN_LIFETIME_S:
        problem = "may not specify a duration less than 10 minutes"
    elif lifetime > MAX_LIFETIME_S:
        problem = "may not specify a duration larger than 2^32 seconds"
    if problem:
        cause = FieldCause("FieldValueInvalid", f"Invalid value: {lifetime}: {problem}", "spec.expirationSeconds")
        raise invalid("TokenRequest", "", [cause], GROUP)


def _bound_objects(x: Exchange, ref: Any) -> list[BoundObject]:
    """Return the object that the token is bound to, and for a pod also its node."""
    if ref is None:
        return []
    version, kind, name = str(ref.get("apiVersion") or ""), str(ref.get("kind") or ""), str(ref.get("name") or "")
    resource = _BOUND.get(kind) if version in ("v1", "") and "/" not in version else None
    if resource is None:
        shown = version if "/" in version else f"/{version}"
        raise BadRequest(f"cannot bind token to object of type {shown}, Kind={kind}")
    stored = x.store.get(Key(resource, "" if kind == "Node" else x.route.namespace, name))
    if stored is None:
        raise not_found(resource.lstrip("/"), name)
    bound = [BoundObject(kind, name, uid_of(stored.obj))]
    if kind == "Pod":
        spec = stored.obj.get("spec") or {}
        if spec.get("serviceAccountName") != x.route.name:
            raise BadRequest(
                f'cannot bind token for serviceaccount "{x.route.name}" to pod running with different serviceaccount '
                "name."
            )
        node = spec.get("nodeName")
        if node:
            found = x.store.get(Key("/nodes", "", node))
            bound.append(BoundObject("Node", node, found.uid if found else ""))
    uid = ref.get("uid") or stored.uid
    if uid != stored.uid:
        why = f"the UID in the bound object reference ({uid}) does not match the UID in record. The object might have "
        raise conflict(kind, name, why + "been deleted and then recreated")
    return bound
