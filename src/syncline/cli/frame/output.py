"""Output of commands: tables like kubectl's, and the other forms of ``-o``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from syncline.cli.frame.terminal import one_cell, plain

GAP = 3
"""Spaces between columns, as in kubectl."""


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return left-aligned columns, three spaces apart; empty cells as ``<none>``."""
    cells = [[one_cell(str(cell)) if cell != "" else "<none>" for cell in row] for row in rows]
    widths = [max([len(header), *(len(row[i]) for row in cells)]) for i, header in enumerate(headers)]
    lines = []
    for row in [list(headers), *cells]:
        padded = [cell.ljust(width + GAP) for cell, width in zip(row, widths)]
        lines.append("".join(padded).rstrip())
    return "\n".join(lines)


def output_option(*forms: str, also: tuple[str, ...] = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``-o/--output`` with these forms; no value means the table, as does ``wide`` if there is no wider one.
    ``also``: other names of the flag."""
    known = forms if "wide" in forms else (*forms, "wide")

    def narrowed(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
        return value if value in forms else None

    return click.option(
        "-o",
        "--output",
        *also,
        "output",
        type=click.Choice(known),
        default=None,
        callback=narrowed,
        help=f"One of {', '.join(known)}.",
    )


def print_names(resource: str, names: Iterable[str]) -> None:
    """Print ``resource/name`` lines for ``-o name``, as kubectl does."""
    for name in names:
        print(f"{resource}/{name}")


def print_table(text: str, count: int, kind: str) -> None:
    """Print ``text``; without rows, report on stderr that no ``kind`` was found, as kubectl does."""
    if count:
        print(text)
    else:
        click.echo(f"No {kind} found.", err=True)


def print_documents(value: Any, form: str) -> None:
    """Print any JSON value as ``json`` or ``yaml``."""
    if form == "json":
        print(json.dumps(value, indent=2, ensure_ascii=False))
        return
    from syncline.kube.yaml.loading import dump

    text = dump(value)
    # A character that would be escaped on output is written as JSON's escape: JSON is YAML.
    print(text if plain(text) == text else json.dumps(value, indent=2, ensure_ascii=False) + "\n", end="")
