"""The ClusterRoles of what operators provide: for each API admin, edit, view, and for each OperatorGroup what
aggregates those of its APIs. Names, labels and rules are upstream's (``ensureProvidedAPIClusterRole``,
``ensureOpGroupClusterRole``)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from syncline.kube.objects import Obj, dig, name_of, namespace_of, uid_of
from syncline.patterns.operators.groups import Api
from syncline.patterns.operators.names import MANAGED, OWNER, OWNER_KIND, OWNER_NAMESPACE

RBAC: Final = "rbac.authorization.k8s.io"
VERBS: Final[Mapping[str, tuple[str, ...]]] = {
    "admin": ("*",),
    "edit": ("create", "update", "patch", "delete"),
    "view": ("get", "list", "watch"),
}
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_MOST_CHARS: Final = 253
"""Characters of a name."""


def base62(digest: bytes) -> str:
    """Return a digest as upstream prints it in names (``big.Int.Text(62)``)."""
    number, text = int.from_bytes(digest, "big"), ""
    while number:
        number, digit = divmod(number, 62)
        text = _DIGITS[digit] + text
    return text or "0"


def short_hash(text: str) -> str:
    return base62(hashlib.sha224(text.encode()).digest())


def aggregation_label(api: Api, suffix: str) -> str:
    """Return the label by which the role of a group finds those of its APIs."""
    value = 0xCBF29CE484222325
    for byte in str(api).encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64  # FNV-1a
    return f"olm.opgroup.permissions/aggregate-to-{value:x}-{suffix}"


def api_roles(csv: Obj, definitions: Mapping[str, Obj], services: Mapping[str, Obj]) -> Iterator[Obj]:
    """Yield the roles of the APIs that an operator provides and that are there: by name, the CustomResourceDefinitions
    and the APIServices, which own them."""
    for one in dig(csv, "spec", "customresourcedefinitions", "owned", default=None) or ():
        name, version = str(one.get("name") or ""), str(one.get("version") or "")
        plural, _, group = name.partition(".")
        if name in definitions and group:
            api, owner = Api(group, version, str(one.get("kind") or "")), definitions[name]
            yield from _roles(f"{name}-{version}-", api, group, plural, owner)
            rule = _rule(("get",), "apiextensions.k8s.io", "customresourcedefinitions") | {"resourceNames": [name]}
            yield _role(f"{name}-{version}-crdview", "view", rule, api, owner)
    for one in dig(csv, "spec", "apiservicedefinitions", "owned", default=None) or ():
        api = Api(*(str(one.get(part) or "") for part in ("group", "version", "kind")))
        service = services.get(f"{api.version}.{api.group}")
        if service is not None:
            plural = str(one.get("name") or "")
            yield from _roles(f"{plural}-{api.version}-", api, api.group, plural, service)


def _roles(prefix: str, api: Api, group: str, plural: str, owner: Obj) -> Iterator[Obj]:
    for suffix, verbs in VERBS.items():
        yield _role(prefix + suffix, suffix, _rule(verbs, group, plural), api, owner)


def _rule(verbs: Iterable[str], group: str, resource: str) -> Obj:
    return {"verbs": list(verbs), "apiGroups": [group], "resources": [resource]}


def _role(name: str, suffix: str, rule: Obj, api: Api, owner: Obj) -> Obj:
    labels = {f"{RBAC}/aggregate-to-{suffix}": "true", aggregation_label(api, suffix): "true", MANAGED: "true"}
    reference = {
        "apiVersion": str(owner.get("apiVersion")),
        "kind": str(owner.get("kind")),
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": False,
        "blockOwnerDeletion": False,
    }
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels, "ownerReferences": [reference]},
        "rules": [rule],
    }


def group_labels(name: str, namespace: str) -> dict[str, str]:
    """Return the labels of what belongs to an OperatorGroup."""
    return {OWNER: name, OWNER_KIND: "OperatorGroup", OWNER_NAMESPACE: namespace, MANAGED: "true"}


def group_roles(group: Obj, apis: Iterable[Api]) -> Iterator[Obj]:
    """Yield the roles of an OperatorGroup, which aggregate those of ``apis``."""
    name, namespace, known = name_of(group), namespace_of(group), tuple(apis)
    for suffix in VERBS:
        tail = f".{suffix}-{short_hash(f'{namespace}/{name}/{suffix}')}"
        labels = sorted({aggregation_label(api, suffix) for api in known})
        role: Obj = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {
                "name": f"olm.og.{name[: _MOST_CHARS - len('olm.og.') - len(tail)]}{tail}",
                "labels": group_labels(name, namespace),
            },
        }
        if labels:
            role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {one: "true"}} for one in labels]}
        yield role
