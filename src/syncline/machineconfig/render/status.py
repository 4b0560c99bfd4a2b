"""Writes RenderDegraded, the only condition of a pool that rendering owns."""

from __future__ import annotations

from datetime import datetime

from syncline.kube.objects import Obj, dig, name_of
from syncline.machineconfig.pools.status import condition_is, put_condition

RENDER_DEGRADED = "RenderDegraded"


def render_status(pool: Obj, error: str | None, now: datetime) -> Obj:
    """Return ``status`` with RenderDegraded. ``error``: why the pool cannot be rendered, or None."""
    status: Obj = dict(pool.get("status") or {})
    conditions = list(dig(pool, "status", "conditions", default=[]) or [])
    if error is None and condition_is(conditions, RENDER_DEGRADED, "False"):
        return status
    message = "" if error is None else f"Failed to render configuration for pool {name_of(pool)}: {error}"
    put_condition(conditions, RENDER_DEGRADED, error is not None, now, message=message)
    return status | {"conditions": conditions}
