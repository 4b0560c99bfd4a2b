"""Draws what of a pattern was installed when: bars on a time axis, in a terminal or as SVG. Values in, text out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final
from xml.sax.saxutils import escape

from syncline.cli.views.timeline import svg_offset, svg_text, ticks
from syncline.patterns.installing.timeline import Row
from syncline.views.texts import age

WIDTH: Final = 48
BAR, GOES_ON, POINT = "█", "›", "│"
RIGHT, LINE, SCALE, TOP, LETTER, MOST_SAID = 250, 24, 560, 66, 8, 30
"""Of the picture, in pixels but for the letters of what is said of a row."""
LEGEND: Final = {
    "pattern": "the whole",
    "operator": "operator comes up",
    "sync": "sync of an Application",
    "behind": "sync without success",
    "job": "Job, with a pod",
    "wait": "wait without a pod",
    "storage": "storage class is made",
}
STYLE: Final = """<style>
.ground{fill:#fbfaf7}.title{fill:#222;font-weight:bold}.name{fill:#333}.faint{fill:#706b62}.grid{stroke:#dcd8cf}
.pattern{fill:#b9b3a8}.operator{fill:#3b6ea5}.sync{fill:#4f9d69}.job{fill:#c0594b}.wait{fill:#d9a441}.behind{fill:#d3a297}.storage{fill:#7a5aa6}
@media(prefers-color-scheme:dark){.ground{fill:#1d1f21}.title{fill:#eceae4}.name{fill:#d6d3cc}.faint{fill:#a09c93}
.grid{stroke:#3a3d40}.pattern{fill:#5d5a55}.operator{fill:#6fa3dc}.sync{fill:#6cbd87}.job{fill:#e07a6b}.storage{fill:#a98ad6}}
</style>"""


def describe_rows(rows: Sequence[Row], now: datetime) -> str:
    """Return a table with a bar for each row."""
    began, until = _span(rows, now)
    widest = max(len(row.what) for row in rows)
    head = f"{'WHAT'.ljust(widest)}   WAVE   BEGAN      TOOK     STATE            "
    lines = [head + f"{began:%H:%M:%S}".ljust(WIDTH - 8) + f"{until:%H:%M:%S}"]
    for row in rows:
        took = age(row.began, row.ended or now)
        text = f"{row.what.ljust(widest)}   {row.wave:<4}   {row.began:%H:%M:%S}   {took:<6}   {row.state[:16]:<16} "
        lines.append(text + _bar(row, began, until, now))
    return "\n".join(line.rstrip() for line in lines)


def drawn_rows(rows: Sequence[Row], now: datetime, title: str = "") -> str:
    """Return the picture as SVG without fonts, scripts or links from elsewhere, for light and dark backgrounds."""
    began, until = _span(rows, now)
    total = max((until - began).total_seconds(), 1.0)
    names = [row.what + (f" (wave {row.wave})" if row.wave else "") for row in rows]
    left = 30 + LETTER * max(map(len, names))
    bottom = TOP + LINE * len(rows)
    width = max(left + SCALE + RIGHT, 40 + LETTER * len(title))

    def x_of(instant: datetime) -> float:
        return round(left + (instant - began).total_seconds() / total * SCALE, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 44}" width="{width}" '
        f'height="{bottom + 44}" font-family="ui-monospace, monospace" font-size="13">',
        STYLE,
        f'<rect width="{width}" height="{bottom + 44}" rx="8" class="ground"/>',
        svg_text(20, 26, title or f"{rows[0].what}, since {began:%H:%M:%S}", "title"),
    ]
    for tick in ticks(total):
        x = x_of(began + timedelta(seconds=tick))
        parts.append(f'<line x1="{x}" y1="{TOP - 6}" x2="{x}" y2="{bottom}" class="grid"/>')
        parts.append(svg_text(x, TOP - 12, svg_offset(tick), "faint", anchor="middle"))
    for number, (row, name) in enumerate(zip(rows, names, strict=True)):
        y = TOP + LINE * number
        parts.append(svg_text(left - 10, y + 15, name, "name", anchor="end"))
        parts += _drawn(row, y, x_of, until)
    x = 20
    for kind in dict.fromkeys(map(_style, rows)):
        parts.append(f'<rect x="{x}" y="{bottom + 14}" width="12" height="12" rx="2" class="{kind}"/>')
        parts.append(svg_text(x + 18, bottom + 25, LEGEND[kind], "faint"))
        x += 36 + LETTER * len(LEGEND[kind])
    return "\n".join([*parts, "</svg>"]) + "\n"


def _style(row: Row) -> str:
    return "behind" if row.kind == "sync" and not row.state.startswith("Synced") else row.kind


def _drawn(row: Row, y: int, x_of: Callable[[datetime], float], until: datetime) -> list[str]:
    left, right = x_of(row.began), x_of(row.ended or until)
    state = row.state if row.ended is not None else f"{row.state} …"
    if row.ended == row.began:
        corner = f"{left},{y + 3} {left + 7},{y + 10} {left},{y + 17} {left - 7},{y + 10}"
        return [f'<polygon points="{corner}" class="{_style(row)}"/>', svg_text(left + 12, y + 15, state, "faint")]
    wide = max(round(right - left, 1), 2.0)
    faded = "" if row.ended is not None else ' opacity="0.55"'
    bar = f'<rect x="{left}" y="{y + 3}" width="{wide}" height="{LINE - 8}" rx="3" class="{_style(row)}"{faded}>'
    title = f"{row.what}: {row.began:%H:%M:%S} - {f'{row.ended:%H:%M:%S}' if row.ended is not None else '…'}"
    said = f"{age(row.began, row.ended or until)}  {state}"
    return [f"{bar}<title>{escape(title)}</title></rect>", svg_text(left + wide + 6, y + 15, said[:MOST_SAID], "faint")]


def _span(rows: Sequence[Row], now: datetime) -> tuple[datetime, datetime]:
    began = min(row.began for row in rows)
    ends = [now if row.ended is None else row.ended for row in rows]
    return began, max(ends)


def _bar(row: Row, began: datetime, until: datetime, now: datetime) -> str:
    total = max((until - began).total_seconds(), 1.0)

    def at(instant: datetime) -> int:
        return min(int((instant - began).total_seconds() / total * WIDTH), WIDTH - 1)

    start, end = at(row.began), at(row.ended or now)
    if row.ended == row.began:
        return " " * start + POINT
    return " " * start + BAR * max(end - start, 1) + (GOES_ON if row.ended is None else "")
