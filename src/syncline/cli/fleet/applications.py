"""The Applications that a cluster of the hub pulls, for ``syncline cluster get``."""

from __future__ import annotations

from collections.abc import Sequence

from syncline.cli.access.connection import Connection
from syncline.cli.access.snapshots import looking
from syncline.cli.app.target import CONTROL_NAMESPACE
from syncline.explain.fleet.applications import URGENT, ApplicationState, Standing
from syncline.explain.fleet.carried import applications_of
from syncline.explain.view import View
from syncline.fleet.pull.observe import APPS
from syncline.kube.objects import Obj, ObjectRef, name_of, namespace_of

MAX_NAMED = 5
"""Applications that the line names; ``-o json`` has all."""


def applications_on(link: Connection, cluster: str) -> list[ApplicationState] | None:
    """Return the Applications that a cluster pulls, the most urgent first; None: the hub has no such kind, or they may
    not be listed."""
    if link.mapper.preferred(APPS) is None:
        return None
    with looking(link, CONTROL_NAMESPACE, tell=False) as cache:
        found = applications_of(View(cache, link.now()), cluster)
        return None if cache.unread(ObjectRef(*APPS, "", "")) else found


def applications_text(found: Sequence[ApplicationState] | None) -> str:
    """Return ``12, 2 failing (shop, web)``; empty without any."""
    if found is None:
        return "?"
    parts = []
    for one in Standing:
        named = [name_of(each.app or {}) for each in found if each.standing is one]
        if not named or one is Standing.WELL:
            continue
        more = f", … {len(named) - MAX_NAMED} more" if len(named) > MAX_NAMED else ""
        parts.append(f"{len(named)} {one} ({', '.join(named[:MAX_NAMED])}{more})")
    return ", ".join([str(len(found)), *parts]) if found else ""


def applications_obj(found: Sequence[ApplicationState] | None) -> Obj | None:
    """Return the same for ``-o json``; null: they may not be read."""
    if found is None:
        return None
    listed = [
        {"name": f"{namespace_of(one.app or {})}/{name_of(one.app or {})}", "standing": str(one.standing)}
        for one in found
    ]
    return {"total": len(found), "failing": sum(one.standing in URGENT for one in found), "listed": listed}
