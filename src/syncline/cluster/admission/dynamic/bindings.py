"""Variables of admission expressions: the object, the request, its namespace, the authorizer.

Source: apiserver ``admission/plugin/cel`` (activation, condition) and ``cel/library/authz.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from syncline.cluster.access.authz import Authorizer
from syncline.cluster.access.rbac import Attributes
from syncline.cluster.access.users import UserInfo, service_account_user
from syncline.cluster.admission.dynamic.subject import Subject
from syncline.cluster.resources.registry import Resource
from syncline.kube.cel.authorizing import Asked, AuthorizerValue, ResourceCheck, Ruling
from syncline.kube.objects import GVK, Obj


def gvk_obj(gvk: GVK) -> Obj:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def gvr_obj(resource: Resource) -> Obj:
    info = resource.info
    return {"group": info.group, "version": info.version, "resource": info.plural}


def kind_in(subject: Subject, resource: Resource) -> GVK:
    """Return the kind of the sent object if the request is matched as ``resource``."""
    return resource.gvk if subject.kind == subject.resource.gvk else subject.kind


def user_obj(user: UserInfo) -> Obj:
    """Return authentication.k8s.io UserInfo without empty fields."""
    shown: Obj = {"username": user.name}
    if user.uid:
        shown["uid"] = user.uid
    if user.groups:
        shown["groups"] = list(user.groups)
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in sorted(user.extra.items())}
    return shown


def request_obj(subject: Subject, resource: Resource) -> Obj:
    """Return an AdmissionRequest without objects and uid. ``resource``: the version it is matched in."""
    request: Obj = {"kind": gvk_obj(kind_in(subject, resource)), "resource": gvr_obj(resource)}
    sub = {"subResource": subject.subresource} if subject.subresource else {}
    request |= sub
    request["requestKind"] = gvk_obj(subject.kind)
    request["requestResource"] = gvr_obj(subject.resource)
    if subject.subresource:
        request["requestSubResource"] = subject.subresource
    if subject.name:
        request["name"] = subject.name
    if subject.namespace:
        request["namespace"] = subject.namespace
    request["operation"] = subject.operation
    request["userInfo"] = user_obj(subject.user)
    request["dryRun"] = subject.dry_run
    request["options"] = subject.options
    return request


_SHOWN_METADATA = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "finalizers"),
)


def shown_namespace(namespace: Obj | None) -> Obj | None:
    if namespace is None:
        return None
    metadata = namespace.get("metadata") or {}
    return {
        "metadata": {key: metadata[key] for key in _SHOWN_METADATA if key in metadata},
        "spec": namespace.get("spec") or {},
        "status": namespace.get("status") or {},
    }


def authorizers(authorizer: Authorizer, subject: Subject) -> Mapping[str, Any]:
    """Return authorizers for the request's user, which can also check a service account."""

    def ask(user: UserInfo) -> Callable[[Asked], Ruling]:
        def decide(asked: Asked) -> Ruling:
            found = authorizer.decide(user, _attributes(asked))
            return Ruling(found.allowed, found.reason)

        return decide

    def account(namespace: str, name: str) -> Callable[[Asked], Ruling]:
        return ask(service_account_user(namespace, name))

    mine = AuthorizerValue(ask(subject.user), account)
    info = subject.resource.info
    asked = Asked("", info.group, info.plural, subject.subresource, subject.namespace, subject.name)
    return {"authorizer": mine, "authorizer.requestResource": ResourceCheck(mine.decide, asked)}


def _attributes(asked: Asked) -> Attributes:
    if asked.path:
        return Attributes(asked.verb, path=asked.path)
    return Attributes(asked.verb, asked.group, asked.resource, asked.subresource, asked.namespace, asked.name)
