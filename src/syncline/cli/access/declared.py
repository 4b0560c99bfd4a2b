"""Secrets that declare repositories and clusters, as they are read and written from the command line.

Used by ``syncline repo`` and ``syncline cluster``. :func:`plain_fields` returns only fields without credentials.
"""

from __future__ import annotations

from typing import Any

from syncline.argo.stores.secrets import LABEL, fields_of
from syncline.cli.access.connection import Connection, namespaced
from syncline.cli.frame.failure import CommandFailed
from syncline.kube import client
from syncline.kube.objects import GVK, Obj, meta, name_of

SECRET = GVK("", "v1", "Secret")
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
namespace_options = namespaced("Namespace of these Secrets.", "-N", "--app-namespace", "namespace")


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
