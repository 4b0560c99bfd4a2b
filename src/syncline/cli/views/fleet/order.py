"""Formats the order over clusters that a roll-out takes: for ``syncline plan``. Values in, text out; no requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from syncline.assembly.inspection.order import PlannedOrder
from syncline.base.clock import format_time
from syncline.fleet.hub.budgets.model import Budget
from syncline.fleet.pull.order.forecasting import Ahead
from syncline.fleet.pull.order.groups import needs_of
from syncline.fleet.pull.order.steering import counted
from syncline.fleet.pull.order.windows import judge_windows
from syncline.kube.objects import Obj, name_of
from syncline.views.applications import short_revision
from syncline.views.texts import age, one_line

MAX_CLUSTERS = 200
"""Clusters that the text shows; ``-o json`` has all."""


def describe_order(order: PlannedOrder) -> str:
    """Return the text: release, then waves with what gates them and what becomes of each cluster, then the end."""
    lines = _header(order)
    shown = 0
    of_wave: dict[int, list[Ahead]] = {}
    for one in order.forecast.ahead:
        of_wave.setdefault(one.standing.target.wave, []).append(one)
    counted_waves = sorted(wave for wave, found in of_wave.items() if any(one.standing.counts for one in found))
    for wave, mine in sorted(of_wave.items(), key=lambda one: one[0]):
        lines += ["", *_wave(order, wave, mine, counted_waves)]
        fit = mine[: max(MAX_CLUSTERS - shown, 0)]
        shown += len(fit)
        lines += _clusters(order, fit)
        if len(fit) < len(mine):
            lines.append(f"    … and {len(mine) - len(fit)} more (-o json shows all)")
    return "\n".join([*lines, "", _summary(order)])


def _header(order: PlannedOrder) -> list[str]:
    made = order.forecast.now
    lines = [f"Order over clusters of {order.ref.namespace}/{order.ref.name}, in force: {order.seen.force}"]
    lines.append(f"  {'rolls back from' if made.going_back else 'release'} {made.release}")
    for one in made.revisions:
        asked, commit = str(one.get("targetRevision") or "HEAD"), str(one.get("commit") or "")
        named = " ".join(str(one[key]) for key in ("repoURL", "chart") if one.get(key))
        lines.append(f"    {named} {asked}" + (f" → {short_revision(commit)}" if commit not in ("", asked) else ""))
    return lines


def _wave(order: PlannedOrder, wave: int, mine: Sequence[Ahead], waves: Sequence[int]) -> list[str]:
    before = [one for one in waves if (one > wave if order.forecast.now.going_back else one < wave)]
    gates = [f"after wave {', '.join(map(str, before[-3:]))}"] if before else []
    gates += [f"each healthy for {_span(longest)}"] if (longest := _healthy_for(mine)) else []
    done = sum(one.standing.done for one in mine if one.standing.counts)
    head = f"wave {wave}: {counted(len(mine), 'Application')}, {done} done"
    return [head + (f"; {'; '.join(gates)}" if gates else "")]


def _healthy_for(mine: Sequence[Ahead]) -> int:
    return max((int(one.standing.target.asked.healthy_for.total_seconds()) for one in mine), default=0)


def _span(seconds: int) -> str:
    hours, rest = divmod(seconds, 3600)
    minutes, left = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (left, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count)


def _clusters(order: PlannedOrder, mine: Sequence[Ahead]) -> Iterator[str]:
    names = max((len(one.standing.target.cluster.name) for one in mine), default=0)
    apps = max((len(one.standing.target.name) for one in mine), default=0)
    for one in mine:
        target = one.standing.target
        yield (
            f"  {_mark(one)} {target.cluster.name:<{names}}  {target.name:<{apps}}  {_change(one)}  "
            f"{_when(one, order.now)}"
        ).rstrip()
        yield from (f"      {text}" for text in _gates(order, one))


def _mark(one: Ahead) -> str:
    if not one.standing.counts:
        return "-"
    if one.standing.failed:
        return "✘"
    return " " if one.standing.done else "~" if one.standing.target.carried else "+"


def _change(one: Ahead) -> str:
    carried, goal = one.standing.target.carried or "(none)", one.standing.goal or "?"
    return carried if carried == goal else f"{carried} → {goal}"


def _when(one: Ahead, now: datetime) -> str:
    standing = one.standing
    if not standing.counts:
        return one_line(standing.why) or "does not count"
    if standing.failed:
        return f"failed: {one_line(standing.failed)}"
    if standing.done:
        return one_line(standing.why) or "done"
    if not standing.pending:
        ends = f"; done at {format_time(one.ends)}" if one.ends else ""
        return f"under way{f': {one_line(standing.why)}' if standing.why else ''}{ends}"
    if one.begins is None:
        return "does not begin"
    return "begins now" if one.begins <= now else f"begins at {format_time(one.begins)} (in {age(now, one.begins)})"


def _gates(order: PlannedOrder, one: Ahead) -> Iterator[str]:
    """Yield what a cluster waits for, one after the other, then what it has to pass besides."""
    if one.standing.done or not one.standing.counts:
        return
    for number, wait in enumerate(one.waits):
        until = f", until {format_time(wait.until)}" if wait.until else ""
        yield f"{'then ' if number else ''}waits: {one_line(wait.why)}{until}"
    target = one.standing.target
    said = " ".join(wait.why for wait in one.waits)
    if needs := needs_of(target.app):
        yield f"depends on {', '.join(needs)}" + ("" if target.needs else ": done")
    closed = judge_windows(target.cluster.windows, order.now)
    if target.cluster.windows and closed is None:
        yield f"maintenance windows of {', '.join(owner for owner, _ in target.cluster.windows)}: permit now"
    elif closed is not None and closed.why not in said:
        yield f"{closed.why}" + (f", until {format_time(closed.until)}" if closed.until else "")
    budgets = budgets_of(order, target.cluster.name)
    if budgets and "FleetDisruptionBudget" not in said:
        yield f"takes a place in FleetDisruptionBudget {', '.join(budgets)}"


def budgets_of(order: PlannedOrder, cluster: str) -> list[str]:
    """Return the budgets that select a cluster."""
    member = order.seen.fleet.clusters.get(cluster)
    known = (Budget.of(one) for one in order.seen.fleet.budgets)
    return [] if member is None else sorted(name_of(one.obj) for one in known if one.selects(member))


def _summary(order: PlannedOrder) -> str:
    ahead = [one for one in order.forecast.ahead if one.standing.counts]
    left = [one for one in ahead if not one.standing.done]
    if not left:
        return f"Order: nothing to do ({counted(len(ahead), 'Application')} done)"
    begin = sum(one.begins is not None and one.begins <= order.now and one.standing.pending for one in left)
    never = [one for one in left if one.ends is None]
    failed = sum(bool(one.standing.failed) for one in left)
    parts = [f"{begin} begin now", f"{len(left) - begin - failed} later", *([f"{failed} failed"] if failed else [])]
    if order.forecast.ends is not None:
        when = f"{format_time(order.forecast.ends)} (in {age(order.now, order.forecast.ends)})"
        return f"Order: {', '.join(parts)}; done at {when} at the earliest, if each cluster is healthy at once"
    why = "" if order.forecast.complete else "; the order is too long to be followed to its end"
    return f"Order: {', '.join(parts)}; no end is known for {counted(len(never), 'Application')}{why}"


def order_obj(order: PlannedOrder) -> Obj:
    """Return the order for ``-o json``; null: not known."""
    made = order.forecast
    return {
        "rollout": f"{order.ref.namespace}/{order.ref.name}",
        "inForce": order.seen.force,
        "release": made.now.release,
        "rollsBack": made.now.going_back,
        "revisions": [dict(one) for one in made.now.revisions],
        "endsAt": format_time(made.ends) if made.ends else None,
        "clusters": [_obj(order, one) for one in made.ahead],
    }


def _obj(order: PlannedOrder, one: Ahead) -> Obj:
    target = one.standing.target
    return {
        "wave": target.wave,
        "cluster": target.cluster.name,
        "application": target.name,
        "from": target.carried or None,
        "to": one.standing.goal or None,
        "counts": one.standing.counts,
        "done": one.standing.done,
        "failed": one.standing.failed or None,
        "why": one.standing.why or None,
        "beginsNow": target.key in order.forecast.now.permits,
        "beginsAt": format_time(one.begins) if one.begins else None,
        "endsAt": format_time(one.ends) if one.ends else None,
        "waits": [{"why": wait.why, "until": format_time(wait.until) if wait.until else None} for wait in one.waits],
        "healthyForSeconds": int(target.asked.healthy_for.total_seconds()),
        "dependsOn": list(needs_of(target.app)),
        "windows": [owner for owner, _ in target.cluster.windows],
        "budgets": budgets_of(order, target.cluster.name),
    }
