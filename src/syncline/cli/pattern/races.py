"""``syncline pattern races``: pairs of operators whose outcome depends on which of them comes first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from syncline.cli.frame.output import output_option, print_documents, table
from syncline.cli.pattern.rehearse import FOLDER, given_objects, given_operators
from syncline.cli.pattern.values import rendered, values_options
from syncline.patterns.operators.racing.pairs import Found, Race, race_to_obj


@click.command("races")
@values_options
@click.option(
    "--catalog", "catalogs", multiple=True, metavar="NAME=FOLDER", help="File-based catalogues, as for `syncline up`."
)
@click.option("--operator-behaviours", "behaviours", type=FOLDER, default=None, help="What installed operators do.")
@click.option(
    "--objects",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of objects that the cluster has before the pattern comes.",
)
@output_option("json", "yaml")
def races_of_group(
    files: tuple[Path, ...],
    given: tuple[str, ...],
    texts: tuple[str, ...],
    catalogs: tuple[str, ...],
    behaviours: Path | None,
    objects: tuple[Path, ...],
    output: str | None,
) -> int:
    """Print the pairs of operators of a cluster group of which one reads once what the other one makes, from the files
    of what operators do: with the reason, and what the reader takes if it comes first.

    \b
    Example:  syncline pattern races -f values-global.yaml -f values-hub.yaml \\
                --catalog redhat-operators=examples/operators/redhat-operators
    """
    from syncline.patterns.operators.racing.foreseen import foreseen
    from syncline.patterns.operators.racing.pairs import races

    catalogues, does = given_operators(catalogs, behaviours)
    found = races(foreseen(rendered(files, given, texts), catalogues.catalogs, does), given_objects(objects))
    if output:
        print_documents(document(found), output)
    else:
        print(described(found))
    return 0


def document(found: Found) -> dict[str, Any]:
    """Return all that is known as JSON."""
    return {
        "races": [race_to_obj(one) for one in found.races],
        "waiting": [{"reader": one.reader, "maker": one.maker, "what": one.what} for one in found.waiting],
        "operators": [one.package for one in found.operators],
        "unknown": list(found.unknown),
        "unresolved": dict(found.unresolved),
        "looks": found.looks,
    }


def described(found: Found) -> str:
    """Return the pairs as a table, then each with its reason, then what is not known."""
    said = f"of {len(found.operators)} operators, which read {found.looks} things once"
    lines = [f"pairs whose outcome depends on their order: {len(found.races)}, {said}"]
    if found.races:
        rows = [(one.reader.package, f"{one.look.kind.kind} {one.best.name}", _maker(one)) for one in found.races]
        lines += ["", table(("READER", "READS ONCE", "MADE BY"), rows)]
    for one in found.races:
        lines += ["", f"{one.reason}; {one.consequence}.", f"  sources: {', '.join(_sources(one))}"]
        if one.circle:
            lines.append(f"  {one.maker.package} waits for {one.circle}, which {one.reader.package} brings itself")
    if found.waiting:
        lines.append("")
    lines += [f"{one.reader} waits for {one.what} of {one.maker}: no order is needed" for one in found.waiting]
    if found.unknown:
        lines += ["", f"what they do is unknown, so nothing is said of them: {', '.join(found.unknown)}"]
    lines += [f"{package}: {why}" for package, why in sorted(found.unresolved.items())]
    return "\n".join(lines)


def _maker(one: Race) -> str:
    return f"{one.maker.package}{f' (of {one.maker.brought_by})' if one.maker.brought_by else ''}"


def _sources(one: Race) -> list[str]:
    return list(dict.fromkeys((one.look.source or one.line.source, one.best.source)))
