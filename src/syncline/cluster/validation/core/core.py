"""Namespaces, config maps, secrets, service accounts, nodes, quotas, leases.

The API calls it through :func:`syncline.cluster.validation.strategy.strategy_for`. Source: Kubernetes
``pkg/apis/core/validation``, ``pkg/apis/coordination/validation`` and the strategies in ``pkg/registry/core``.
"""

from __future__ import annotations

import base64
import json
from typing import Any, ClassVar

from syncline.base.clock import parse_time
from syncline.cluster.validation.engine import names
from syncline.cluster.validation.engine import rules as r
from syncline.cluster.validation.engine.base import Context, Kind, spec_of
from syncline.cluster.validation.engine.causes import forbidden, invalid, required, too_long
from syncline.cluster.validation.engine.fields import IMMUTABLE
from syncline.cluster.validation.engine.metadata import metadata_update_causes
from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj, annotations_of, dig

NAME_LABEL = "kubernetes.io/metadata.name"
MAX_DATA_BYTES = 1024 * 1024
FROZEN = "field is immutable when `immutable` is set"


class NamespaceKind(Kind):
    has_status = True
    namespaced = False
    name_check = names.dns_label
    empty_status: ClassVar[Obj | None] = {"phase": "Active"}

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        """Set phase Active, and the finalizer ``kubernetes`` in the spec, which remains until it is empty."""
        super().prepare_create(obj, ctx)
        spec = obj.setdefault("spec", {})
        listed = spec.get("finalizers") or []
        spec["finalizers"] = listed if "kubernetes" in listed else [*listed, "kubernetes"]
        metadata = obj.setdefault("metadata", {})
        if metadata.get("name"):
            metadata["labels"] = (metadata.get("labels") or {}) | {NAME_LABEL: metadata["name"]}

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        super().prepare_update(new, old, ctx, subresource)
        if subresource == "finalize":
            new["status"] = old.get("status") or {}
        elif not subresource:
            new["spec"] = {**(new.get("spec") or {}), "finalizers": dig(old, "spec", "finalizers", default=[])}
            if not new["spec"]["finalizers"]:
                del new["spec"]["finalizers"]

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        for name in spec_of(obj).get("finalizers") or ():
            causes += [invalid("spec.finalizers", name, problem) for problem in names.qualified_name(str(name))]
            if "/" not in str(name) and name != "kubernetes":
                why = "name is neither a standard finalizer name nor is it fully qualified"
                causes.append(invalid("spec.finalizers", name, why))
        return causes

    def status_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        phase, dying = dig(new, "status", "phase") or "Active", dig(new, "metadata", "deletionTimestamp")
        if not dying and phase != "Active":
            why = "may only be 'Active' if `deletionTimestamp` is empty"
            return [invalid("status.Phase", phase, why)]
        if dying and phase != "Terminating":
            why = "may only be 'Terminating' if `deletionTimestamp` is not empty"
            return [invalid("status.Phase", phase, why)]
        return []


def _key_causes(obj: Obj, key: str) -> list[FieldCause]:
    return [
        invalid(f"{key}[{name}]", name, problem)
        for name in sorted(obj.get(key) or {})
        for problem in names.config_key(name)
    ]


def _frozen_causes(new: Obj, old: Obj, *parts: str) -> list[FieldCause]:
    """Refuse changes to what ``immutable: true`` protects."""
    if old.get("immutable") is not True:
        return []
    causes = [] if new.get("immutable") is True else [forbidden("immutable", FROZEN)]
    return causes + [forbidden(part, FROZEN) for part in parts if (new.get(part) or {}) != (old.get(part) or {})]


class ConfigMapKind(Kind):
    def content_causes(self, obj: Obj) -> list[FieldCause]:
        causes: list[FieldCause] = []
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        for name in sorted(data):
            causes += [invalid(f"data[{name}]", name, problem) for problem in names.config_key(name)]
            if name in binary:
                causes.append(invalid(f"data[{name}]", name, "duplicate of key present in binaryData"))
        causes += _key_causes(obj, "binaryData")
        size = sum(len(str(value).encode()) for value in data.values())
        size += sum(len(str(value)) * 3 // 4 for value in binary.values())
        return [*causes, too_long("[]", MAX_DATA_BYTES)] if size > MAX_DATA_BYTES else causes

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        return metadata_update_causes(new, old) + _frozen_causes(new, old, "data", "binaryData")


_SECRET_KEYS: dict[str, tuple[str, ...]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
ACCOUNT_TOKEN, ACCOUNT_NAME = "kubernetes.io/service-account-token", "kubernetes.io/service-account.name"


class SecretKind(Kind):
    """Secrets. Values are only measured, or parsed if their type is JSON; they never enter a message."""

    def content_causes(self, obj: Obj) -> list[FieldCause]:
        data, kind = obj.get("data") or {}, obj.get("type", "")
        causes = _key_causes(obj, "data")
        if sum(len(str(value)) * 3 // 4 for value in data.values()) > MAX_DATA_BYTES:
            causes.append(too_long("data", MAX_DATA_BYTES))
        if kind == ACCOUNT_TOKEN:
            if not dig(obj, "metadata", "annotations", ACCOUNT_NAME):
                causes.append(required(f"metadata.annotations[{ACCOUNT_NAME}]"))
        elif kind == "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                causes += [required("data[username]"), required("data[password]")]
        else:
            needed = _SECRET_KEYS.get(kind, ())
            causes += [
                required(f"data[{key}]")
                for key in needed
                if key not in data or (kind == "kubernetes.io/ssh-auth" and not data[key])
            ]
        causes += _json_causes(data, kind)
        return causes

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        if new.get("type") != "kubernetes.io/tls":
            return []
        for key, what in (("tls.crt", "certificate"), ("tls.key", "key")):
            text = base64.b64decode((new.get("data") or {}).get(key) or "")
            if b"-----BEGIN " not in text:
                return [f"tls: failed to find any PEM data in {what} input"]
        return []

    def update_causes(self, new: Obj, old: Obj) -> list[FieldCause]:
        causes = metadata_update_causes(new, old)
        if new.get("type") != old.get("type"):
            causes.append(invalid("type", new.get("type"), IMMUTABLE))
        return causes + _frozen_causes(new, old, "data")


def _json_causes(data: Obj, kind: str) -> list[FieldCause]:
    """Require that pull secrets contain JSON."""
    for key in _SECRET_KEYS.get(kind, ()) if "docker" in kind else ():
        if key in data:
            try:
                json.loads(base64.b64decode(data[key]))
            except (ValueError, RecursionError):
                why = json_problem(data[key])
                return [invalid(f"data[{key}]", "<secret contents redacted>", why)]
    return []


def json_problem(encoded: str) -> str:
    """Return where Go's JSON decoder stops. The message shows only that character, nothing around it."""
    try:
        text = base64.b64decode(encoded).decode("utf-8", "replace")
        json.loads(text)
    except RecursionError:
        return "exceeded max depth"
    except json.JSONDecodeError as error:
        rest = text[error.pos :]
        if not rest.strip():
            return "unexpected end of JSON input"
        for word in ("null", "true", "false"):
            known = next((at for at, char in enumerate(word) if rest[at : at + 1] != char), len(word))
            if known and known < len(word) and rest[known:]:
                return f"invalid character '{rest[known]}' in literal {word} (expecting '{word[known]}')"
        return f"invalid character '{rest[0]}' looking for beginning of value"
    return "invalid character in JSON"


ENFORCED_SECRETS = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountKind(Kind):
    """Service accounts; only metadata is checked."""

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        if ENFORCED_SECRETS not in annotations_of(new) or (old is not None and ENFORCED_SECRETS in annotations_of(old)):
            return []
        why = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        return [f"metadata.annotations[{ENFORCED_SECRETS}]: {why}"]


def _is_time(value: Any) -> bool:
    try:
        parse_time(str(value))
    except ValueError:
        return False
    return True


_TIME = r.must(_is_time, "must be an RFC 3339 time")


class LeaseKind(Kind):
    revalidates = False
    judged_again = True
    rules = r.spec(
        r.field("leaseDurationSeconds", r.at_least(1, "must be greater than 0")),
        r.natural("leaseTransitions"),
        r.field("acquireTime", _TIME),
        r.field("renewTime", _TIME),
    )

    def prepare_create(self, obj: Obj, ctx: Context) -> None:
        """Drop the fields of coordinated election, a feature that is off."""
        _without(obj, "strategy", "preferredHolder")

    def prepare_update(self, new: Obj, old: Obj, ctx: Context, subresource: str) -> None:
        super().prepare_update(new, old, ctx, subresource)
        _without(new, *(key for key in ("strategy", "preferredHolder") if spec_of(old).get(key) is None))


def _without(obj: Obj, *keys: str) -> None:
    if any(key in spec_of(obj) for key in keys):
        obj["spec"] = {key: value for key, value in spec_of(obj).items() if key not in keys}
