"""Draws what of a pattern was installed when: bars on a time axis, in a terminal or as SVG. Values in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from xml.sax.saxutils import escape

from syncline.cli.frame.output import age
from syncline.patterns.installing.timeline import Row

WIDTH: Final = 48
BAR, GOES_ON, POINT = "█", "›", "│"
LEFT, RIGHT, LINE, SCALE = 300, 120, 22, 560
"""Of the picture, in pixels."""


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


def drawn_rows(rows: Sequence[Row], now: datetime) -> str:
    """Return the picture as SVG."""
    began, until = _span(rows, now)
    total = max((until - began).total_seconds(), 1.0)
    height = LINE * (len(rows) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + SCALE + RIGHT}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f'<text x="{LEFT}" y="14">{began:%H:%M:%S}</text>',
        f'<text x="{LEFT + SCALE}" y="14" text-anchor="end">{until:%H:%M:%S}</text>',
    ]
    for number, row in enumerate(rows, 1):
        x = LEFT + (row.began - began).total_seconds() / total * SCALE
        width = max(((row.ended or until) - row.began).total_seconds() / total * SCALE, 3.0)
        y = LINE * number
        color = "#3a7" if row.ended is not None else "#d90"
        wave = f" (wave {row.wave})" if row.wave else ""
        parts.append(f'<text x="4" y="{y + 14}">{escape(row.what + wave)}</text>')
        parts.append(f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="14" fill="{color}"/>')
        parts.append(f'<text x="{LEFT + SCALE + 8}" y="{y + 14}">{escape(row.state[:20])}</text>')
    return "\n".join([*parts, "</svg>"])


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
