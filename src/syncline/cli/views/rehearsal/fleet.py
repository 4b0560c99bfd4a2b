"""Formats the rehearsal of a fleet for people: verdict, classes, waves, who holds whom. Values in, text out."""

from __future__ import annotations

from collections.abc import Iterator

from syncline.cli.frame.output import table
from syncline.cli.frame.terminal import one_cell
from syncline.cli.views.rehearsal.text import describe_answer, offset
from syncline.rehearsal.answer.answer import Outcome
from syncline.rehearsal.fleet.answer import FleetAnswer
from syncline.rehearsal.fleet.judging import count, shown
from syncline.rehearsal.fleet.overview import overview

MAX_ROWS = 30
"""Rows of a table; ``-o json`` has all."""
MAX_CELL = 90
"""Characters of a sentence in a table."""


def describe_fleet(found: FleetAnswer) -> str:
    """Return the whole text, without escape sequences."""
    head, _, rest = describe_answer(overview(found)).partition("\n\n")
    parts = [head, *("\n".join(lines) for lines in ([*_classes(found)], [*_waves(found)], [*_held(found)]) if lines)]
    return "\n\n".join([*parts, rest])


def _classes(found: FleetAnswer) -> Iterator[str]:
    yield f"CLASSES  {count(found.clusters)}; those of a class are equal up to their names, one of each was played"
    rows = []
    for one in found.classes[:MAX_ROWS]:
        laws = ", ".join(breach.law for breach in one.answer.breaches) or "-"
        rows.append(
            (
                str(len(one.clusters)),
                one.played,
                str(one.applications),
                str(one.reached),
                offset(one.begins_s) if one.reached else "-",
                offset(one.ends_s) if one.reached else "-",
                str(one.outcome),
                laws,
                str(len(one.answer.outages)),
                _short(one.answer.headline) if one.outcome is not Outcome.SAFE else "-",
            )
        )
    heads = ("CLUSTERS", "PLAYED", "APPS", "REACHED", "BEGINS", "ENDS", "VERDICT", "LAWS BROKEN", "OUTAGES", "WHY")
    yield table(heads, rows)
    if len(found.classes) > MAX_ROWS:
        yield f"{len(found.classes) - MAX_ROWS} more classes are not shown; -o json has all"


def _waves(found: FleetAnswer) -> Iterator[str]:
    if not found.waves:
        return
    yield "WAVES"
    rows = [
        (
            one.group,
            str(one.wave),
            str(one.clusters),
            offset(one.begins_s) if one.begins_s is not None else "never",
            offset(one.ends_s),
            f"{one.proved} of {one.clusters}",
            _short(one.why) or "-",
        )
        for one in found.waves[:MAX_ROWS]
    ]
    yield table(("SET", "WAVE", "CLUSTERS", "BEGINS", "ENDS", "PROVED", "WHY NOT"), rows)
    if len(found.waves) > MAX_ROWS:
        yield f"{len(found.waves) - MAX_ROWS} more waves are not shown; -o json has all"


def _held(found: FleetAnswer) -> Iterator[str]:
    for problem in found.problems:
        yield one_cell(f"HUB  {problem}")
    for one in found.held[:MAX_ROWS]:
        by = f", held by {shown(one.by)}" if one.by else ""
        yield one_cell(f"HELD  {shown(one.clusters)} never get {one.group}{by}: {one.why}")


def _short(text: str) -> str:
    flat = one_cell(text)
    return flat if len(flat) <= MAX_CELL else f"{flat[: MAX_CELL - 1]}…"
