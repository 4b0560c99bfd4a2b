"""Follows one object for a command that waits: its state now, then each change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from syncline.cli.access.connection import Connection
from syncline.kube import client
from syncline.kube.objects import Obj, ResourceInfo, resource_version

WATCH_S = 30
"""Seconds of one watch; the deadline is checked between two."""


def followed(link: Connection, info: ResourceInfo, where: tuple[str, str], timeout_s: float) -> Iterator[Obj | None]:
    """Yield the object at (namespace, name) now and after each change, None when it is not there; until ``timeout_s``
    seconds are over (0: never). The deadline is checked at every event and every end of a watch."""
    deadline = link.now() + timedelta(seconds=timeout_s) if timeout_s else None
    named = f"metadata.name={where[1]}"
    while True:
        # The version of the list, since that of the object may be too old for a watch.
        listed = link.ask(client.list_(info, where[0], field_selector=named))
        yield next(iter(listed.get("items") or []), None)
        request = client.watch(info, where[0], resource_version=resource_version(listed), field_selector=named)
        left = WATCH_S if deadline is None else max((deadline - link.now()).total_seconds(), 1.0)
        query = dict(request.query) | {"timeoutSeconds": str(max(int(min(left, WATCH_S)), 1))}
        for event in link.watch(client.Request("GET", request.path, query)):
            if event["type"] != "BOOKMARK":
                yield None if event["type"] == "DELETED" else event["object"]
            if deadline is not None and link.now() >= deadline:
                break
        if deadline is not None and link.now() >= deadline:
            return
