"""The ``authorizer`` variable of expressions: its values and checks.

Used by ``functions`` where an expression goes from ``authorizer`` to a decision; the evaluating code provides the
function that decides. Source: apiserver ``cel/library/authz.go``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from syncline.kube.cel.values import EvaluationError, no_overload


@dataclass(frozen=True, slots=True)
class Asked:
    """One access check, for a ``path`` or for a resource."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Ruling:
    allowed: bool
    reason: str = ""


Decide = Callable[[Asked], Ruling]


@dataclass(frozen=True, slots=True)
class AuthorizerValue:
    """The variable ``authorizer``; ``account`` returns the deciding function of a service account by its name."""

    decide: Decide
    account: Callable[[str, str], Decide]


@dataclass(frozen=True, slots=True)
class _Group:
    decide: Decide
    group: str


@dataclass(frozen=True, slots=True)
class _Path:
    decide: Decide
    path: str


@dataclass(frozen=True, slots=True)
class ResourceCheck:
    decide: Decide
    asked: Asked


def _path(value: AuthorizerValue, path: str) -> _Path:
    if not path.strip():
        raise EvaluationError("path must not be empty")
    return _Path(value.decide, path)


def _group(value: AuthorizerValue, group: str) -> _Group:
    return _Group(value.decide, group)


def _account(value: AuthorizerValue, namespace: str, name: str) -> AuthorizerValue:
    return replace(value, decide=value.account(namespace, name))


def _resource(value: _Group, resource: str) -> ResourceCheck:
    return ResourceCheck(value.decide, Asked("", value.group, resource))


def _subresource(value: ResourceCheck, name: str) -> ResourceCheck:
    return replace(value, asked=replace(value.asked, subresource=name))


def _namespace(value: ResourceCheck, name: str) -> ResourceCheck:
    return replace(value, asked=replace(value.asked, namespace=name))


def _name(value: ResourceCheck, name: str) -> ResourceCheck:
    return replace(value, asked=replace(value.asked, name=name))


def _selected(value: ResourceCheck, _selector: str) -> ResourceCheck:
    """Return the check unchanged: RBAC does not consider selectors."""
    return value


def _check(value: object, verb: str) -> Ruling:
    if isinstance(value, _Path):
        return value.decide(Asked(verb, path=value.path))
    if isinstance(value, ResourceCheck):
        return value.decide(replace(value.asked, verb=verb))
    raise no_overload()


FUNCTIONS: dict[str, Callable[..., object]] = {
    "path": _path,
    "group": _group,
    "serviceAccount": _account,
    "resource": _resource,
    "subresource": _subresource,
    "namespace": _namespace,
    "name": _name,
    "fieldSelector": _selected,
    "labelSelector": _selected,
    "check": _check,
    "allowed": lambda ruling: ruling.allowed,
    "reason": lambda ruling: ruling.reason,
    "errored": lambda ruling: False,
    "error": lambda ruling: "",
}
