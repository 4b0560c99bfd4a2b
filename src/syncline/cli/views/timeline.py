"""Draws the rollout of a pool: bars on a time axis, in a terminal or as SVG.

Values in, text out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from xml.sax.saxutils import escape

from syncline.base.clock import format_time
from syncline.machineconfig.nodes.timeline import NodeTimeline, Outcome, Stretch, Timeline
from syncline.views.texts import age

MAX_ROWS = 60
"""Nodes in a picture: those in trouble or in progress first; the numbers below count all."""
BAR = {Stretch.DRAINS: "▒", Stretch.REBOOTS: "█", Stretch.IN_PLACE: "▓", Stretch.PLAYS: "▚"}
LEGEND = "▒ drained and written   █ reboots   ▓ changed in place   ▚ playbook runs   › goes on"
MIN_BAR = 20
"""Characters of the narrowest time axis."""
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
MOST_TICKS = 8


def summary(timeline: Timeline) -> str:
    """Return ``worker → rendered-worker-b: 3 of 3 nodes in 2m32s, one at a time``."""
    text = f"{timeline.pool} → {timeline.config or 'nothing yet'}: {timeline.done} of {len(timeline.nodes)} nodes"
    if timeline.began is None:
        return text
    length = age(timeline.began, timeline.ended or timeline.now)
    most = timeline.most_at_once
    at_once = "" if not most else ", one at a time" if most == 1 else f", up to {most} at once"
    return f"{text} {'in' if timeline.ended else 'after'} {length}{at_once}"


def describe_timeline(timeline: Timeline, width: int = 100) -> str:
    """Return a line per node that has started; waiting nodes and those without Events are counted."""
    shown, left = _shown(timeline)
    lines = [summary(timeline)]
    if timeline.began is not None:
        lines += _rows(timeline, timeline.began, shown, width)
    return "\n".join([*lines, *left])


def _rows(timeline: Timeline, began: datetime, shown: Sequence[NodeTimeline], width: int) -> list[str]:
    widest = max(len(each.node) for each in shown)
    head = f"{'NODE'.ljust(widest)}   BEGAN      TOOK    IS         "
    cells = max(width - len(head), MIN_BAR)
    until = timeline.ended or timeline.now
    at = _scale(began, until, cells)
    ends = f"{began:%H:%M:%S}".ljust(cells - 8) + f"{until:%H:%M:%S}"
    lines = [head + ends]
    for each in shown:
        took, bar = age(each.targeted, each.ended or timeline.now), _bar(each, at, cells)
        lines.append(f"{each.node.ljust(widest)}   {each.targeted:%H:%M:%S}   {took:<7} {each.outcome:<10} {bar}")
    return [*lines, LEGEND]


def _scale(began: datetime, until: datetime, cells: int) -> Callable[[datetime], int]:
    length = max((until - began).total_seconds(), 1.0)
    return lambda instant: min(int((instant - began).total_seconds() / length * cells), cells)


def _bar(each: NodeTimeline, at: Callable[[datetime], int], cells: int) -> str:
    """Return the bar of a node; each span has at least one cell, so that rounding removes none."""
    text = ""
    for span in each.spans:
        text = text.ljust(at(span.since))
        end = cells - 1 if span.until is None else at(span.until)
        text += BAR[span.stretch] * max(end - len(text), 1)
        text += "›" if span.until is None else ""
    return text[: cells + len(each.spans)]


def _shown(timeline: Timeline) -> tuple[list[NodeTimeline], list[str]]:
    """Return the nodes that get a line, and sentences about the others."""
    begun = [each for each in timeline.nodes if each.targeted is not None]
    urgent = [each for each in begun if each.outcome is not Outcome.DONE]
    kept = (urgent + [each for each in reversed(begun) if each.outcome is Outcome.DONE])[:MAX_ROWS]
    shown = [each for each in begun if each in kept]
    waiting = [each for each in timeline.nodes if each.outcome is Outcome.WAITING and each.targeted is None]
    unreported = [each for each in timeline.nodes if each.outcome is not Outcome.WAITING and each.targeted is None]
    lines = [f"{len(begun) - len(shown)} more nodes are not shown; -o json has all"] if len(begun) > len(shown) else []
    if waiting:
        lines.append(f"{len(waiting)} wait for their turn: {_names(waiting)}")
    if unreported:
        lines.append(f"{len(unreported)} have no Events (any more) about it: {_names(unreported)}")
    lines += [f"{each.node} degraded: {each.reason}" for each in shown if each.outcome is Outcome.DEGRADED]
    return shown, lines


def _names(nodes: Sequence[NodeTimeline]) -> str:
    first = ", ".join(each.node for each in nodes[:5])
    return first + (", …" if len(nodes) > 5 else "")


# -- as a document ---------------------------------------------------------------------------------------------------


def timeline_document(timeline: Timeline) -> dict[str, Any]:
    """Return the value for ``-o json``: times as RFC 3339, durations in seconds, without unknown values."""
    return _known(
        {
            "pool": timeline.pool,
            "config": timeline.config,
            "began": timeline.began,
            "ended": timeline.ended,
            "done": timeline.done,
            "mostAtOnce": timeline.most_at_once,
            "nodes": [
                _known(
                    {
                        "name": each.node,
                        "is": str(each.outcome),
                        "targeted": each.targeted,
                        "ended": each.ended,
                        "seconds": _seconds(each.took(timeline.now)),
                        "reason": each.reason,
                        "spans": [
                            _known({"does": str(span.stretch), "since": span.since, "until": span.until})
                            for span in each.spans
                        ],
                    }
                )
                for each in timeline.nodes
            ],
        }
    )


def _known(found: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in found.items() if value not in (None, "")}
    return {key: format_time(value) if isinstance(value, datetime) else value for key, value in kept.items()}


def _seconds(length: timedelta | None) -> int | None:
    return None if length is None else int(length.total_seconds())


# -- as a picture ----------------------------------------------------------------------------------------------------

ROW, TOP, PLOT, RIGHT = 24, 66, 640, 70
CLASSES = {Stretch.DRAINS: "drains", Stretch.REBOOTS: "reboots", Stretch.IN_PLACE: "place", Stretch.PLAYS: "plays"}
WORDS = {
    Stretch.DRAINS: "drained and written",
    Stretch.REBOOTS: "reboots",
    Stretch.IN_PLACE: "changed in place",
    Stretch.PLAYS: "playbook runs",
}
STYLE = """<style>
.ground{fill:#fbfaf7}.title{fill:#222;font-weight:bold}.name{fill:#333}.wrong{fill:#c0392b}.faint{fill:#706b62}
.grid{stroke:#dcd8cf}.drains{fill:#d9a441}.reboots{fill:#3b6ea5}.place{fill:#4f9d69}.plays{fill:#8a5fb0}
@media(prefers-color-scheme:dark){.ground{fill:#1d1f21}.title{fill:#eceae4}.name{fill:#d6d3cc}.wrong{fill:#ff7b6b}
.faint{fill:#a09c93}.grid{stroke:#3a3d40}.drains{fill:#d9a441}.reboots{fill:#6fa3dc}.place{fill:#6cbd87}.plays{fill:#b48ad6}}
</style>"""
"""Colours for light and dark backgrounds."""


def draw_timeline(timeline: Timeline) -> str:
    """Return the timeline as an SVG without external fonts, scripts or links, for light and dark backgrounds."""
    shown, left = _shown(timeline)
    began, until = timeline.began or timeline.now, timeline.ended or timeline.now
    length = max((until - began).total_seconds(), 1.0)
    margin = 30 + 8 * max([len(each.node) for each in shown] or [4])
    bottom = TOP + ROW * len(shown)
    height, width = (
        bottom + 50 + 18 * len(left),
        max(margin + PLOT + RIGHT, 40 + 8 * max(map(len, [summary(timeline), *left]))),
    )

    def x_of(instant: datetime) -> float:
        return round(margin + (instant - began).total_seconds() / length * PLOT, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="ui-monospace, monospace" font-size="13">',
        STYLE,
        f'<rect width="{width}" height="{height}" rx="8" class="ground"/>',
        svg_text(20, 28, summary(timeline), "title"),
    ]
    for tick in ticks(length):
        x = x_of(began + timedelta(seconds=tick))
        parts.append(f'<line x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{bottom}" class="grid"/>')
        parts.append(svg_text(x, TOP - 14, svg_offset(tick), "faint", anchor="middle"))
    for index, each in enumerate(shown):
        parts += _drawn_row(each, TOP + ROW * index, margin, x_of, until)
    x = float(margin)
    for stretch in _met(shown):
        parts.append(f'<rect x="{x}" y="{bottom + 16}" width="12" height="12" rx="2" class="{CLASSES[stretch]}"/>')
        parts.append(svg_text(x + 18, bottom + 27, WORDS[stretch], "faint"))
        x += 40 + 8 * len(WORDS[stretch])
    parts += [svg_text(20, bottom + 54 + 18 * index, line, "faint") for index, line in enumerate(left)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _met(shown: Sequence[NodeTimeline]) -> list[Stretch]:
    """Return the spans that occur in the picture, for its legend."""
    there = {span.stretch for each in shown for span in each.spans}
    return [stretch for stretch in CLASSES if stretch in there]


def _drawn_row(
    each: NodeTimeline, y: int, margin: int, x_of: Callable[[datetime], float], until: datetime
) -> list[str]:
    parts = [
        svg_text(margin - 10, y + 15, each.node, "wrong" if each.outcome is Outcome.DEGRADED else "name", anchor="end")
    ]
    end = float(margin)
    for span in each.spans:
        left, right = x_of(span.since), x_of(span.until or until)
        title = f"{each.node} {span.stretch} {span.since:%H:%M:%S} - {f'{span.until:%H:%M:%S}' if span.until else '…'}"
        width = max(round(right - left, 1), 2.0)
        parts.append(
            f'<rect x="{left}" y="{y + 3}" width="{width}" height="{ROW - 8}" rx="3" '
            f'class="{CLASSES[span.stretch]}"><title>{escape(title)}</title></rect>'
        )
        end = max(end, round(left + width, 1))
    if each.spans and each.targeted is not None:
        took = age(each.targeted, each.ended or until) + ("" if each.ended else " …")
        parts.append(svg_text(end + 6, y + 15, took, "faint"))
    return parts


def svg_text(x: float, y: float, text: str, snapshot: str, *, anchor: str = "start") -> str:
    """Return a text of a class of :data:`STYLE`."""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="{snapshot}">{escape(text)}</text>'


def ticks(length_s: float) -> list[int]:
    """Return the seconds at which an axis of this length has a line."""
    step = next((each for each in STEPS_S if length_s / each <= MOST_TICKS), STEPS_S[-1])
    return list(range(0, int(length_s) + 1, step))


def svg_offset(seconds: int) -> str:
    """Return the text at a line of an axis: ``+1:02:03``."""
    minutes, left = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"+{hours}:{minutes:02}:{left:02}" if hours else f"+{minutes}:{left:02}"
