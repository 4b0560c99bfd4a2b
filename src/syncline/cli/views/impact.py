"""Formats an impact: the conclusion first, then the reasons, then the nodes. Values in, text out."""

from __future__ import annotations

from collections.abc import Sequence

from syncline.cli.frame.output import table
from syncline.machineconfig.impact.pace import Pace
from syncline.machineconfig.impact.report import Impact, NodeImpact, PoolImpact
from syncline.machineconfig.impact.rollout import State

MAX_NODES = 20
"""Nodes of a pool that are listed without ``--all``."""
STEPS = {
    "drain": "drain",
    "write": "files",
    "system": "OS, kernel or extensions",
    "service": "service",
    "reboot": "reboot",
}


def describe_impact(found: Impact, notes: Sequence[str] = (), *, everything: bool = False) -> str:
    """``notes``: about the request; those of the result follow. ``everything``: list every node."""
    blocks = ["\n".join(found.changed)]
    summary = [_indented(pool.clauses()) for pool in found.pools]
    summary += [_indented((f"refused: {first}", *rest)) for first, *rest in (each.clauses() for each in found.refused)]
    blocks.append("\n".join(summary) or "no node is touched")
    blocks += [_indented(play.clauses()) for play in found.plays]
    blocks.append(_causes(found.pools))
    blocks.append(_nodes(found.pools, everything))
    blocks.append("\n".join(dict.fromkeys(text for pool in found.pools if (text := _lengths(pool)))))
    blocks.append("\n".join(f"note: {text}" for text in (*notes, *found.notes)))
    return "\n\n".join(block for block in blocks if block)


def _indented(clauses: Sequence[str]) -> str:
    return "\n".join((clauses[0], *(f"  {text}" for text in clauses[1:])))


def _causes(pools: Sequence[PoolImpact]) -> str:
    rows = []
    for pool in pools:
        for cause in pool.causes:
            source = f"{cause.config} ({cause.origin})" if cause.origin else cause.config
            pending = "pending before; " if cause.pending else ""
            rows.append([str(cause), ", ".join(cause.actions), pending + cause.why, source or "-", pool.name])
    if not rows:
        return ""
    together: dict[tuple[str, ...], list[str]] = {}
    for *cells, name in rows:
        together.setdefault(tuple(cells), []).append(name)
    return table(
        ("CHANGE", "ASKS FOR", "WHY", "FROM", "POOL"), [[*cells, ",".join(names)] for cells, names in together.items()]
    )


def _nodes(pools: Sequence[PoolImpact], everything: bool) -> str:
    rows: list[list[str]] = []
    more: list[str] = []
    for pool in pools:
        shown = pool.nodes if everything else pool.nodes[:MAX_NODES]
        rows += [_row(node) for node in shown]
        if len(shown) < len(pool.nodes):
            more.append(f"… and {len(pool.nodes) - len(shown)} more of pool {pool.name}; --all lists them")
    if not rows:
        return ""
    return "\n".join([table(("NODE", "POOL", "ACTION", "WAVE", "START", "END", "CAUSE"), rows), *more])


def _row(node: NodeImpact) -> list[str]:
    action = ", ".join(node.steps) if node.state is State.DONE else node.state.value
    begun = node.starts_s is not None
    wave = "now" if begun and not node.wave else str(node.wave) if node.wave else "-"
    more = f" and {len(node.causes) - 1} more" if len(node.causes) > 1 else ""
    why = node.reason if not node.causes else f"{node.causes[0]}{more}"
    cause = f"{why}; its drain cannot finish" if node.state is State.BLOCKED else why or "-"
    return [node.node, node.pool, action, wave, _span(node.starts_s), _span(node.ends_s), cause]


def _span(seconds: float | None) -> str:
    """Return the time from now, such as ``+5m20s``."""
    if seconds is None:
        return "-"
    minutes, left = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = ((days, "d"), (hours, "h"), (minutes, "m"), (left, "s"))
    shown = [f"{value}{unit}" for value, unit in parts if value]
    return "+" + ("".join(shown[:2]) or "0s")


def _lengths(pool: PoolImpact) -> str:
    used = [name for name in STEPS if name in pool.used]
    if not used:
        return ""
    return f"durations: {', '.join(_length(pool.pace, name) for name in used)}"


def _length(pace: Pace, name: str) -> str:
    length = pace.lengths()[name]
    updates = "update" if length.updates == 1 else "updates"
    known = f"measured on {length.updates} {updates}" if length.measured else "assumed"
    return f"{STEPS[name]} {_span(length.seconds)[1:]} ({known})"
