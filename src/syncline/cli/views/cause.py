"""Formats a chain of causes in at most ten lines. Values in, text out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from syncline.base.cause import OR, Cause
from syncline.cli.frame.terminal import one_cell
from syncline.explain.wording import next_step, subject_text
from syncline.views.texts import age, one_line

MAX_LINES = 10
"""Limit of lines in an explanation; ``-o json`` has all of it."""


def describe_cause(cause: Cause, now: datetime) -> str:
    """Return the head with its state and start, the indented chain below it, and the next steps, one line each."""
    step = next_step(cause)
    ways = [f"{word:>4}: {way}" for word, way in zip(("next", *("or",) * MAX_LINES), step.split(OR))] if step else []
    ways = ways[: MAX_LINES // 2]
    room = MAX_LINES - len(ways)
    lines = [_line(each, depth, now) for each, depth in _walk(cause, 0)]
    if len(lines) > room:
        hidden = len(lines) - room + 1
        lines = [*lines[: room - 1], f"  … and {hidden} more causes (-o json shows all)"]
    return "\n".join(one_cell(line) for line in (*lines, *ways))


def _walk(cause: Cause, depth: int) -> Iterator[tuple[Cause, int]]:
    yield cause, depth
    for each in cause.because:
        yield from _walk(each, depth + 1)


def _line(cause: Cause, depth: int, now: datetime) -> str:
    since = f" for {age(cause.since, now)}" if cause.since is not None else ""
    overdue = " (overdue)" if cause.until is not None and now >= cause.until else ""
    said = one_line(cause.message)
    message = f": {said}" if said else ""
    return f"{'  ' * depth}{subject_text(cause.subject)} {cause.state}{since}{overdue}{message}"
