"""Secrets that declare repositories and clusters: their names, labels and plain fields.

Used by ``syncline repo`` and ``syncline cluster``. :func:`plain_fields` returns only fields without credentials.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from syncline.cli.access.connection import Connection, namespaced
from syncline.cli.frame.failure import CommandFailed
from syncline.kube import client
from syncline.kube.objects import GVK, Obj, dig, meta, name_of

SECRET = GVK("", "v1", "Secret")
LABEL = "argocd.argoproj.io/secret-type"
MANAGED_BY = "managed-by"
PLAIN = {
    "url",
    "name",
    "type",
    "project",
    "server",
    "namespaces",
    "clusterResources",
    "shard",
    "insecure",
    "insecureIgnoreHostKey",
    "enableLfs",
    "enableOCI",
    "forceHttpBasicAuth",
    "depth",
}
"""Fields that may be shown."""
FNV_OFFSET, FNV_PRIME = 2166136261, 16777619

namespace_options = namespaced("Namespace of these Secrets.", "-N", "--app-namespace", "namespace")


def _fnv32a(text: str) -> int:
    """Return the FNV-1a hash, with which Argo CD names these Secrets (``util/db`` secrets.go)."""
    value = FNV_OFFSET
    for byte in text.encode():
        value = (value ^ byte) * FNV_PRIME & 0xFFFFFFFF
    return value


def repository_secret_name(url: str, project: str = "", prefix: str = "repo") -> str:
    """Return ``repo-<hash>``: one Secret per URL and project."""
    return f"{prefix}-{_fnv32a(url + project)}"


def cluster_secret_name(server: str) -> str:
    """Return ``cluster-<host>-<hash>``."""
    return f"cluster-{(urlsplit(server).hostname or 'local').lower()}-{_fnv32a(server)}"


def secret_object(kind: str, namespace: str, name: str, fields: Mapping[str, str]) -> Obj:
    """Return a Secret of secret-type ``kind``, without empty fields."""
    data = {key: base64.b64encode(value.encode()).decode() for key, value in sorted(fields.items()) if value}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {LABEL: kind},
            "annotations": {MANAGED_BY: "argocd.argoproj.io"},
        },
        "type": "Opaque",
        "data": data,
    }


def fields_of(secret: Obj) -> dict[str, str]:
    """Return all decodable fields, decoded; for look-ups only, never for output."""
    found = {}
    for key, value in (dig(secret, "data", default={}) or {}).items():
        try:
            found[str(key)] = base64.b64decode(str(value), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
    return found


def plain_fields(secret: Obj) -> dict[str, str]:
    """Return the fields without credentials."""
    return {key: value for key, value in fields_of(secret).items() if key in PLAIN}


def declared(link: Connection, namespace: str, kind: str) -> list[Obj]:
    """Return the Secrets of a type, sorted by name."""
    request = client.list_(link.resource(SECRET), namespace, label_selector=f"{LABEL}={kind}")
    found: list[Obj] = sorted(link.ask(request).get("items") or [], key=name_of)
    return found


def write(link: Connection, secret: Obj, *, upsert: bool, what: str) -> str:
    """Return ``created``, ``unchanged`` or ``updated``; without ``upsert`` a different Secret is not replaced."""
    info = link.resource(SECRET)
    answer = link.send(client.create(info, secret, field_manager="syncline"))
    if answer.status != 409:
        link.check(answer)
        return "created"
    known: Any = link.ask(client.get(info, str(meta(secret)["namespace"]), name_of(secret)))
    if known.get("data") == secret["data"]:
        return "unchanged"
    if not upsert:
        raise CommandFailed(f"existing {what} spec is different; use upsert flag to force update (--upsert)")
    link.ask(client.update(info, known | {"data": secret["data"]}, field_manager="syncline"))
    return "updated"


def remove(link: Connection, secret: Obj) -> None:
    """Delete the Secret."""
    link.ask(client.delete(link.resource(SECRET), str(meta(secret).get("namespace")), name_of(secret)))
