"""Suggests an existing name for a missing object. One bounded request."""

from __future__ import annotations

from syncline.cli.access.connection import Connection
from syncline.cli.frame.arguments import did_you_mean
from syncline.kube import client
from syncline.kube.objects import ResourceInfo, name_of

MAX_NAMES = 500
"""Limit of objects in the request."""


def suggestion(link: Connection, info: ResourceInfo, namespace: str, name: str) -> str:
    """Return `` Did you mean 'x'?``, or "" if no name is similar or the names cannot be listed."""
    answer = link.send(client.list_(info, namespace, limit=MAX_NAMES))
    if not answer.ok:
        return ""
    found = did_you_mean(name, map(name_of, answer.obj.get("items") or []))
    return f".{found}" if found else ""
