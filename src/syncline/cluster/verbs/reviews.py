"""Questions in the form of objects: who am I, may they, what may I, whose token is this.

Called by ``api`` for POST of the review kinds; nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable

from syncline.base.clock import format_time
from syncline.cluster.authz import Decision
from syncline.cluster.rbac import Attributes, compact
from syncline.cluster.users import UserInfo
from syncline.cluster.verbs.body import read_typed
from syncline.cluster.verbs.exchange import Exchange
from syncline.kube.client import Response
from syncline.kube.errors import BadRequest, FieldCause, invalid
from syncline.kube.objects import Obj, dig

__all__ = ["REVIEWS"]


def _body(x: Exchange) -> Obj:
    body = read_typed(x, x.resource.gvk)
    info = x.resource.info
    version = body.get("apiVersion", info.api_version)
    if version != info.api_version:
        raise BadRequest(
            f"the API version in the data ({version}) does not match the expected API version ({info.api_version})"
        )
    if body.get("kind", info.kind) != info.kind:
        raise BadRequest(f'{body["kind"]} in version "{info.version}" cannot be handled as a {info.kind}')
    return body


def _answer(x: Exchange, body: Obj, status: Obj) -> Response:
    info = x.resource.info
    answer: Obj = {"kind": info.kind, "apiVersion": info.api_version, "metadata": body.get("metadata") or {}}
    if "spec" in body or info.kind != "SelfSubjectReview":
        answer["spec"] = body.get("spec") or {}
    answer["status"] = status
    return Response.of(201, answer)


def _user_obj(user: UserInfo) -> Obj:
    shown: Obj = {"username": user.name}
    if user.uid:
        shown["uid"] = user.uid
    if user.groups:
        shown["groups"] = list(user.groups)
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in sorted(user.extra.items())}
    return shown


# --- authentication ------------------------------------------------------------------------------------------------


def self_subject_review(x: Exchange) -> Response:
    body = _body(x)
    metadata = {**(body.get("metadata") or {}), "creationTimestamp": format_time(x.now)}
    return _answer(x, {"metadata": metadata}, {"userInfo": _user_obj(x.user)})


def token_review(x: Exchange) -> Response:
    body = _body(x)
    token = dig(body, "spec", "token", default="")
    if not token:
        raise BadRequest("token is required for TokenReview in authentication")
    audiences = [str(item) for item in dig(body, "spec", "audiences", default=[])]
    reviewer = x.backend.review_token
    found = reviewer(token, x.now, audiences) if reviewer else None
    if found is None:
        return _answer(x, body, {"user": {}, "error": "invalid bearer token"})
    user, accepted = found
    status: Obj = {"authenticated": True, "user": _user_obj(user)}
    if accepted:
        status["audiences"] = list(accepted)
    return _answer(x, body, status)


# --- authorization -------------------------------------------------------------------------------------------------


def self_subject_access_review(x: Exchange) -> Response:
    body = _body(x)
    return _judge(x, body, x.user)


def subject_access_review(x: Exchange) -> Response:
    body = _body(x)
    spec = body.get("spec") or {}
    if not spec.get("user") and not spec.get("groups"):
        message = 'Invalid value: "": at least one of user or group must be specified'
        raise invalid(x.resource.info.kind, "", [FieldCause("FieldValueInvalid", message, "spec.user")], GROUP)
    return _judge(x, body, _asked_user(spec))


def local_subject_access_review(x: Exchange) -> Response:
    body = _body(x)
    spec = body.get("spec") or {}
    namespace = dig(spec, "resourceAttributes", "namespace")
    if namespace != x.route.namespace:
        message = f'Invalid value: "{namespace or ""}": must match metadata.namespace'
        field = "spec.resourceAttributes.namespace"
        raise invalid(x.resource.info.kind, "", [FieldCause("FieldValueInvalid", message, field)], GROUP)
    return _judge(x, body, _asked_user(spec))


GROUP = "authorization.k8s.io"


def _asked_user(spec: Obj) -> UserInfo:
    extra = {str(key): tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return UserInfo(str(spec.get("user", "")), tuple(spec.get("groups") or ()), str(spec.get("uid", "")), extra)


def _judge(x: Exchange, body: Obj, user: UserInfo) -> Response:
    spec = body.get("spec") or {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (other is None):
        what = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        cause = FieldCause("FieldValueInvalid", f"Invalid value: {{}}: {what}", "spec.resourceAttributes")
        raise invalid(x.resource.info.kind, "", [cause], GROUP)
    decision = x.backend.authorizer.decide(user, _attributes(resource, other))
    return _answer(x, body, _decision_obj(decision))


def _attributes(resource: Obj | None, other: Obj | None) -> Attributes:
    if resource is None:
        return Attributes(str((other or {}).get("verb", "")), path=str((other or {}).get("path", "")))
    return Attributes(
        str(resource.get("verb", "")),
        str(resource.get("group", "")),
        str(resource.get("resource", "")),
        str(resource.get("subresource", "")),
        str(resource.get("namespace", "")),
        str(resource.get("name", "")),
    )


def _decision_obj(decision: Decision) -> Obj:
    status: Obj = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status


def self_subject_rules_review(x: Exchange) -> Response:
    body = _body(x)
    namespace = dig(body, "spec", "namespace", default="")
    if not namespace:
        raise BadRequest("no namespace on request")
    held, errors = x.backend.authorizer.rules(x.user, namespace)
    status: Obj = {
        "resourceRules": [rule.to_obj() for rule in compact(held) if rule.resources],
        "nonResourceRules": [rule.to_obj() for rule in held if rule.non_resource_urls],
        "incomplete": bool(errors),
    }
    if errors:
        status["evaluationError"] = errors
    return _answer(x, body, status)


REVIEWS: dict[tuple[str, str], Callable[[Exchange], Response]] = {
    ("authentication.k8s.io", "selfsubjectreviews"): self_subject_review,
    ("authentication.k8s.io", "tokenreviews"): token_review,
    (GROUP, "selfsubjectaccessreviews"): self_subject_access_review,
    (GROUP, "subjectaccessreviews"): subject_access_review,
    (GROUP, "localsubjectaccessreviews"): local_subject_access_review,
    (GROUP, "selfsubjectrulesreviews"): self_subject_rules_review,
}
"""The kinds that are asked and not stored."""
