"""Draws the answer of a rehearsal as SVG: bars on a time axis, and below them who was unavailable. Values in, text
out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from syncline.cli.frame.terminal import one_cell
from syncline.cli.views.rehearsal.text import axis_end, offset
from syncline.cli.views.timeline import STYLE, svg_offset, svg_text, ticks
from syncline.kube.text.durations import format_seconds
from syncline.rehearsal.answer.answer import Answer, Bar, Doing, Outage

ROW, TOP, PLOT, RIGHT = 24, 92, 640, 90
SHORT_S = 0.5
MAX_ROWS = 80
"""Rows of a picture; ``-o json`` has all."""
CHARACTER = 8
"""Width of a character in pixels."""
CLASSES = {
    Doing.SYNC: "sync",
    Doing.WAVE: "wave",
    Doing.HOOK: "place",
    Doing.POOL: "sync",
    Doing.WAITS: "waits",
    Doing.DRAINS: "drains",
    Doing.REBOOTS: "reboots",
    Doing.IN_PLACE: "place",
    Doing.PLAYS: "plays",
    Doing.SETTLES: "settles",
    Doing.ROLLS: "sync",
}
MORE_STYLE = """<style>
.sync{fill:#b9b3a6}.wave{fill:#8fb3a0}.waits{fill:none;stroke:#c0392b;stroke-dasharray:3 3}.down{fill:#c0392b}
.low{fill:#e0a99f}.settles{fill:#d9e4d5}.safe{fill:#2e7d4f;font-weight:bold}
@media(prefers-color-scheme:dark){.sync{fill:#5d5a54}.waits{stroke:#ff7b6b}.down{fill:#ff7b6b}.low{fill:#8c4a42}
.settles{fill:#3c4a40}.safe{fill:#6cbd87}}
</style>"""
LEGEND = (
    ("sync", "sync, pool, clusters"),
    ("wave", "wave"),
    ("place", "hook"),
    ("settles", "becomes healthy"),
    ("drains", "drains"),
    ("reboots", "reboots"),
    ("plays", "playbook"),
    ("waits", "waits"),
    ("down", "no ready pod"),
)


def draw_answer(answer: Answer) -> str:
    """Return an SVG without external fonts, scripts or links, for light and dark backgrounds."""
    rows = list(dict.fromkeys(bar.row for bar in answer.bars if _shows(bar)))[:MAX_ROWS]
    outages = list(dict.fromkeys(each.subject for each in answer.outages))[:MAX_ROWS]
    margin = 30 + CHARACTER * max([len(text) for text in (*rows, *outages)] or [4])
    end = axis_end(answer)
    bottom = TOP + ROW * (len(rows) + len(outages))
    width, height = margin + PLOT + RIGHT, bottom + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="ui-monospace, monospace" font-size="13">',
        STYLE,
        MORE_STYLE,
        f'<rect width="{width}" height="{height}" rx="8" class="ground"/>',
        svg_text(20, 28, _cut(_title(answer), width), "safe" if answer.outcome == "safe" else "wrong"),
        svg_text(20, 48, _cut(_advice(answer), width), "name"),
        *_axis(end, margin, bottom),
    ]
    for index, row in enumerate(rows):
        mine = [bar for bar in answer.bars if bar.row == row]
        parts += _drawn_row(row, mine, TOP + ROW * index, margin, end)
    for index, subject in enumerate(outages):
        below = [each for each in answer.outages if each.subject == subject]
        parts += _drawn_outages(subject, below, TOP + ROW * (len(rows) + index), margin, end)
    return "\n".join([*parts, *_legend(answer, bottom), "</svg>"]) + "\n"


def _shows(bar: Bar) -> bool:
    """Return whether a bar is worth a row: a wave or a hook that took no time and did not fail is not."""
    return bar.doing not in (Doing.WAVE, Doing.HOOK) or bar.ends_s is None or bar.ends_s > bar.began_s + SHORT_S


def _title(answer: Answer) -> str:
    return one_cell(f"{str(answer.outcome).upper()}  {answer.name}: {answer.headline}")


def _advice(answer: Answer) -> str:
    best = next((cure for cure in answer.cures if cure.proved), None)
    if best is not None:
        return one_cell(f"do: {best.text} ({best.file}); rehearsed: {best.outcome}, {best.headline}")
    return one_cell(f"do: {answer.advice}") if answer.advice else ""


def _cut(text: str, width: int) -> str:
    room = (width - 40) // CHARACTER
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _axis(end: float, margin: int, bottom: int) -> Iterator[str]:
    for tick in ticks(end):
        x = round(margin + tick / end * PLOT, 1)
        yield f'<line x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{bottom}" class="grid"/>'
        yield svg_text(x, TOP - 14, svg_offset(tick), "faint", anchor="middle")


def _drawn_row(row: str, bars: Sequence[Bar], y: int, margin: int, end: float) -> Iterator[str]:
    wrong = any(bar.doing is Doing.WAITS and bar.ends_s is None for bar in bars)
    yield svg_text(margin - 10, y + 15, row, "wrong" if wrong else "name", anchor="end")
    right = float(margin)
    for bar in bars:
        title = f"{bar.row} {bar.doing} {offset(bar.began_s)} - {offset(bar.ends_s)} {bar.state}"
        text, at = _drawn_bar(bar.began_s, bar.ends_s, CLASSES[bar.doing], title, y, margin, end)
        yield text
        right = max(right, at)
    last = bars[-1]
    took = "…" if last.ends_s is None else format_seconds(round(last.ends_s - bars[0].began_s))
    yield svg_text(right + 6, y + 15, took, "faint")


def _drawn_outages(subject: str, outages: Sequence[Outage], y: int, margin: int, end: float) -> Iterator[str]:
    yield svg_text(margin - 10, y + 15, subject, "wrong", anchor="end")
    for each in outages:
        title = f"{subject}: {each.least} of {each.had} ready, {offset(each.since_s)} - {offset(each.until_s)}"
        kind = "down" if each.least == 0 else "low"
        yield _drawn_bar(each.since_s, each.until_s, kind, title, y, margin, end)[0]


def _drawn_bar(
    began_s: float, ends_s: float | None, kind: str, title: str, y: int, margin: int, end: float
) -> tuple[str, float]:
    left = round(margin + min(began_s / end, 1.0) * PLOT, 1)
    right = round(margin + min((end if ends_s is None else ends_s) / end, 1.0) * PLOT, 1)
    width = max(round(right - left, 1), 2.0)
    text = (
        f'<rect x="{left}" y="{y + 3}" width="{width}" height="{ROW - 8}" rx="3" class="{kind}">'
        f"<title>{escape(one_cell(title))}</title></rect>"
    )
    return text, left + width


def _legend(answer: Answer, bottom: int) -> Iterator[str]:
    """Yield what the colours mean that the picture has."""
    used = {CLASSES[bar.doing] for bar in answer.bars if _shows(bar)}
    used |= {"down"} if any(each.least == 0 for each in answer.outages) else set()
    x = 20.0
    for kind, word in (one for one in LEGEND if one[0] in used):
        yield f'<rect x="{x}" y="{bottom + 16}" width="12" height="12" rx="2" class="{kind}"/>'
        yield svg_text(x + 18, bottom + 27, word, "faint")
        x += 34 + CHARACTER * len(word)
