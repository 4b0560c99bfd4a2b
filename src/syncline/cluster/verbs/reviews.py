"""Reviews, requests in the form of objects: authentication and authorization of users and tokens.

``api`` calls it for POST of the review kinds; nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable

from syncline.base.clock import format_time
from syncline.cluster.access.authz import Decision
from syncline.cluster.access.rbac import Attributes, compact
from syncline.cluster.access.users import UserInfo
from syncline.cluster.validation.engine import names
from syncline.cluster.verbs import admitting
from syncline.cluster.verbs.body import read_typed
from syncline.cluster.verbs.exchange import Exchange
from syncline.kube.client import Response
from syncline.kube.errors import BadRequest, FieldCause, invalid
from syncline.kube.objects import Obj, dig
from syncline.kube.schema import fieldcauses as causes


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
    return (admitting.admitted(x, "CREATE", body) or body) if admitting.concerned(x) else body


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


GROUP = "authorization.k8s.io"


def self_subject_access_review(x: Exchange) -> Response:
    body = _body(x)
    _refuse(_spec_causes(body.get("spec") or {}, asks_user=False) + _metadata_causes(body))
    return _judge(x, body, x.user)


def subject_access_review(x: Exchange) -> Response:
    body = _body(x)
    spec = body.get("spec") or {}
    _refuse(_spec_causes(spec, asks_user=True) + _metadata_causes(body))
    return _judge(x, body, _asked_user(spec))


def local_subject_access_review(x: Exchange) -> Response:
    body = _body(x)
    spec = body.get("spec") or {}
    found = _spec_causes(spec, asks_user=True) + _metadata_causes(body, but_namespace=True)
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and resource.get("namespace", "") != x.route.namespace:
        where = "spec.resourceAttributes.namespace"
        found.append(causes.invalid_value(where, resource.get("namespace", ""), "must match metadata.namespace"))
    if other is not None:
        found.append(causes.invalid_value("spec.nonResourceAttributes", other, "disallowed on this kind of request"))
    _refuse(found)
    body["metadata"] = {**(body.get("metadata") or {}), "namespace": x.route.namespace}
    return _judge(x, body, _asked_user(spec))


def _refuse(found: list[FieldCause]) -> None:
    """Raise Invalid without a kind, because decoding a review drops its kind."""
    if found:
        raise invalid("", "", found, GROUP)


def _spec_causes(spec: Obj, *, asks_user: bool) -> list[FieldCause]:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    found: list[FieldCause] = []
    if resource is not None and other is not None:
        why = "cannot be specified in combination with resourceAttributes"
        found.append(causes.invalid_value("spec.nonResourceAttributes", other, why))
    if resource is None and other is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        found.append(causes.invalid_value("spec.resourceAttributes", None, why))
    if asks_user and not spec.get("user") and not spec.get("groups"):
        found.append(causes.invalid_value("spec.user", "", "at least one of user or group must be specified"))
    for field in ("fieldSelector", "labelSelector"):
        selector = (resource or {}).get(field)
        if selector is not None:
            found += _selector_causes(selector, f"spec.resourceAttributes.{field}", labels=field == "labelSelector")
    return found


def _selector_causes(selector: Obj, path: str, *, labels: bool) -> list[FieldCause]:
    raw, requirements = selector.get("rawSelector"), selector.get("requirements") or []
    found: list[FieldCause] = []
    if raw and requirements:
        found.append(
            causes.invalid_value(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")
        )
    if not raw and not requirements:
        why = f"when {path} is specified, requirements or rawSelector is required"
        found.append(causes.required(f"{path}.requirements", why))
    for index, requirement in enumerate(requirements):
        found += _requirement_causes(requirement, f"{path}.requirements[{index}]", labels=labels)
    return found


def _requirement_causes(requirement: Obj, path: str, *, labels: bool) -> list[FieldCause]:
    """Return the errors of a requirement; unknown operators are accepted, for newer servers."""
    operator, values, key = requirement.get("operator"), requirement.get("values"), requirement.get("key") or ""
    found: list[FieldCause] = []
    if operator in ("In", "NotIn") and not values:
        why = "must be specified when `operator` is 'In' or 'NotIn'"
        found.append(causes.required(f"{path}.values", why))
    if operator in ("Exists", "DoesNotExist") and values:
        why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        found.append(causes.forbidden(f"{path}.values", why))
    if labels:
        found += [causes.invalid_value(f"{path}.key", key, problem) for problem in names.qualified_name(key)]
    elif not key:
        found.append(causes.required(f"{path}.key", "must be specified"))
    return found


def _metadata_causes(body: Obj, *, but_namespace: bool = False) -> list[FieldCause]:
    ignored = {"managedFields", "creationTimestamp", *(("namespace",) if but_namespace else ())}
    given = {key: value for key, value in (body.get("metadata") or {}).items() if value and key not in ignored}
    why = "must be empty except for namespace" if but_namespace else "must be empty"
    return [causes.invalid_value("metadata", given, why)] if given else []


def _asked_user(spec: Obj) -> UserInfo:
    extra = {str(key): tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return UserInfo(str(spec.get("user", "")), tuple(spec.get("groups") or ()), str(spec.get("uid", "")), extra)


def _judge(x: Exchange, body: Obj, user: UserInfo) -> Response:
    spec = dict(body.get("spec") or {})
    for field in ("resourceAttributes", "nonResourceAttributes"):
        if isinstance(spec.get(field), dict):
            spec[field] = {key: value for key, value in spec[field].items() if value != ""}
    asked = _attributes(spec.get("resourceAttributes"), spec.get("nonResourceAttributes"))
    return _answer(x, {**body, "spec": spec}, _decision_obj(x.backend.authorizer.decide(user, asked)))


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
    return _answer(x, {}, status)


REVIEWS: dict[tuple[str, str], Callable[[Exchange], Response]] = {
    ("authentication.k8s.io", "selfsubjectreviews"): self_subject_review,
    ("authentication.k8s.io", "tokenreviews"): token_review,
    (GROUP, "selfsubjectaccessreviews"): self_subject_access_review,
    (GROUP, "subjectaccessreviews"): subject_access_review,
    (GROUP, "localsubjectaccessreviews"): local_subject_access_review,
    (GROUP, "selfsubjectrulesreviews"): self_subject_rules_review,
}
"""The kinds that are evaluated and not stored."""
