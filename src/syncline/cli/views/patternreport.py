"""Shows what became of a pattern's installation: operators, waits, and Applications that are not well. Text out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from syncline.cli.frame.output import table
from syncline.cli.views.patterntimeline import describe_rows
from syncline.patterns.installing.report import Child, Operator, Wait
from syncline.views.texts import age

if TYPE_CHECKING:
    from syncline.rehearsal.installing.playing import Played

MAX_WAITS: Final = 40
MAX_WIDTH: Final = 110


def summary(name: str, group: str, played: Played) -> str:
    """Return one sentence on the whole."""
    up = sum(one.ended is not None for one in played.operators)
    well = sum(one.well for one in played.children)
    ends = [row.ended for row in played.rows if row.ended is not None]
    took = age(played.began, max(ends, default=played.ended))
    end = "" if played.calm else "; its time was over while things still changed"
    return (
        f"pattern {name}, group {group}: {up} of {len(played.operators)} operators and {well} of "
        f"{len(played.children)} Applications are well, the last change after {took}{end}"
    )


def describe_installed(title: str, played: Played) -> str:
    """Return the whole story: timeline, operators, waits, Applications."""
    parts = [
        title,
        describe_rows(played.rows, played.ended),
        describe_operators(played.operators),
        describe_waits(played.waits, played.ended) if played.waits else "",
        describe_children(played.children),
    ]
    return "\n\n".join(part for part in parts if part)


def describe_operators(operators: Sequence[Operator]) -> str:
    """Return a table: which version of which package came up when, or what is in its way."""
    rows = [
        (
            one.package,
            one.namespace,
            one.channel or "(default)",
            one.csv or one.phase,
            f"{one.ended:%H:%M:%S}" if one.ended is not None else "-",
            one.why or ("unknown: it makes nothing here" if one.unknown else ""),
        )
        for one in operators
    ]
    return table(("OPERATOR", "NAMESPACE", "CHANNEL", "VERSION", "SUCCEEDED", "NOTE"), rows)


def describe_waits(waits: Sequence[Wait], now: datetime) -> str:
    """Return a table: who waited for what, the longest first."""
    ordered = sorted(waits, key=lambda one: (one.since - (one.until or now), one.who))
    rows = [
        (
            one.who,
            f"{one.since:%H:%M:%S}",
            age(one.since, one.until or now) + ("" if one.until else " ›"),
            _cut(one.what),
        )
        for one in ordered[:MAX_WAITS]
    ]
    more = f"\n{len(waits) - MAX_WAITS} shorter waits are not shown; -o json has all" if len(waits) > MAX_WAITS else ""
    return table(("WHO", "SINCE", "FOR", "WAITED FOR"), rows) + more


def describe_children(children: Sequence[Child]) -> str:
    """Return a table of Applications, then why some are not Synced and Healthy."""
    lines = [
        table(("APPLICATION", "SYNC", "HEALTH", "MADE OF"), [(o.name, o.sync, o.health, o.source) for o in children])
    ]
    lines += [f"{one.name}: {one.why or 'no reason is known'}" for one in children if not one.well]
    return "\n".join(lines)


def _length(one: Wait, now: datetime) -> str:
    return age(one.since, one.until or now) + ("" if one.until else " ›")


def _cut(text: str) -> str:
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 1] + "…"
