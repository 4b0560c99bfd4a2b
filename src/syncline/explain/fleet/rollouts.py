"""Explains roll-outs over clusters: which cluster waits for what, down to the cluster, the budget or the failure. Pure.

The waits are those that the hub's controllers have written (``fleet/pull/order/explaining.py``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from syncline.base.cause import Cause
from syncline.explain.fleet.clusters import cluster_cause
from syncline.explain.fleet.replicasets import BUDGETS, explain_budget
from syncline.explain.view import Found, View, one_line, unread
from syncline.fleet.pull import names
from syncline.fleet.pull.order.explaining import (
    ENDED,
    URGENT,
    entries_of,
    entry_cause,
    phase_of,
    rollout_cause,
    waits_for_cluster,
)
from syncline.fleet.pull.order.steering import typed_target
from syncline.kube.kinds.fleetrollouts import ROLLOUT
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, name_of, namespace_of

ROLLOUTS: Final = ROLLOUT.group_kind
MAX_SHOWN: Final = 5
"""Clusters that a chain names; ``syncline rollout get`` shows all."""
_BUDGET: Final = re.compile(r"^FleetDisruptionBudget (\S+)")


def explain_rollout(view: View, rollout: Obj) -> Found:
    """Explain a FleetRollout: its phase, then its clusters, the most urgent first."""
    if phase_of(rollout) in ENDED:
        return Found(rollout_cause(rollout), blocked=False)
    entries = entries_of(rollout)
    below = [_entry(view, rollout, one) for one in entries[:MAX_SHOWN]]
    if len(entries) > MAX_SHOWN:
        left = len(entries) - MAX_SHOWN
        below.append(Cause("further clusters", str(left), f"syncline rollout get {typed_target(rollout)} shows them"))
    blocked = phase_of(rollout) in URGENT or any(one.because for one in below)
    return Found(_short(rollout_cause(rollout, *below)), blocked)


def _entry(view: View, rollout: Obj, entry: Obj) -> Cause:
    """Return the cause of a cluster, with what it waits for below it."""
    return _short(entry_cause(rollout, entry, *_below(view, entry)))


def _below(view: View, entry: Obj) -> tuple[Cause, ...]:
    why = str(entry.get("why") or "")
    if "is not available" in why:
        away = cluster_cause(view, str(entry.get("cluster")))
        return () if away is None else (away,)
    if (named := _BUDGET.match(why)) is not None:
        budget = view.cluster.get(ObjectRef(*BUDGETS, "", named[1]))
        return () if budget is None else (explain_budget(view, budget).cause,)
    return ()


def _short(cause: Cause) -> Cause:
    return replace(cause, message=one_line(cause.message))


def rollout_of(view: View, namespace: str, name: str) -> Obj | None:
    """Return the FleetRollout of a group; None: there is none, the hub has no such kind, or it may not be read."""
    return view.cluster.get(ObjectRef(*ROLLOUTS, namespace, name)) if _served(view) else None


def _served(view: View) -> bool:
    return view.cluster.mapper.preferred(ROLLOUTS) is not None


def with_rollout(view: View, found: Found, rollout: Obj | None) -> Found:
    """Return the explanation of a set with its roll-out below, while that goes on."""
    if rollout is None or phase_of(rollout) in ENDED:
        return found
    below = explain_rollout(view, rollout)
    head = found.cause
    if not found.blocked and not head.because:
        head = replace(head, state=below.cause.state, message=below.cause.message, since=below.cause.since)
    # what holds the order comes first: a sync by hand would go around it
    because = (*head.because, below.cause) if found.blocked else (below.cause, *head.because)
    return Found(replace(head, because=because), found.blocked or below.blocked)


def order_causes(view: View, app: Obj) -> tuple[Cause, ...]:
    """Return what an Application waits for in its roll-out, or does; empty: nothing."""
    group = names.owning_set(app) or f"{name_of(app)}.app"
    rollout = rollout_of(view, namespace_of(app), group)
    if rollout is None or phase_of(rollout) in ENDED:
        return ()
    cluster = annotations_of(app).get(names.CLUSTER, "")
    found = [_entry(view, rollout, one) for one in entries_of(rollout, cluster, name_of(app))]
    return tuple(_short(rollout_cause(rollout, one)) for one in found)


def order_entry(view: View, app: Obj) -> tuple[Obj, Obj] | None:
    """Return the roll-out that an Application is in and its entry there; None: it is in none."""
    rollout = rollout_of(view, namespace_of(app), names.owning_set(app) or f"{name_of(app)}.app")
    if rollout is None or phase_of(rollout) == "Unordered":
        return None
    named = annotations_of(app).get(names.CLUSTER, ""), name_of(app)
    listed = dig(rollout, "status", "clusters") or ()
    found = next((one for one in listed if (one.get("cluster"), one.get("application")) == named), None)
    return None if found is None else (rollout, found)


def waits_of_cluster(view: View, cluster: str) -> Sequence[Cause]:
    """Return what a cluster waits for in all roll-outs, or what it does."""
    if not _served(view):
        return ()
    found = [_short(one) for one in waits_for_cluster(view.cluster.objects(ROLLOUTS), cluster)]
    return (*found[:MAX_SHOWN], *unread(view, ROLLOUTS, ""))
