"""``syncline pattern races``: operators whose outcome depends on which of them comes first, and what rules it out."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from syncline.base.scratch import scratch
from syncline.cli.frame.failure import BLOCKED, FAILED, UNSAFE, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.pattern.rehearse import FOLDER, given_copies, given_objects, given_operators
from syncline.cli.pattern.values import merged, refusal, values_options
from syncline.cli.views.races import describe_races, races_document
from syncline.clustergroup.errors import RenderFailed, ValuesRefused
from syncline.rehearsal.answer.answer import Outcome
from syncline.rehearsal.races.examining import Settings, examined
from syncline.rehearsal.races.given import Given
from syncline.rehearsal.scenario import ScenarioError
from syncline.sources.errors import SourceError

CODES = {Outcome.SAFE: 0, Outcome.BLOCKED: BLOCKED, Outcome.UNSAFE: UNSAFE}


@click.command("races")
@values_options
@click.option(
    "--catalog", "catalogs", multiple=True, metavar="NAME=FOLDER", help="File-based catalogues, as for `syncline up`."
)
@click.option("--operator-behaviours", "behaviours", type=FOLDER, default=None, help="What installed operators do.")
@click.option(
    "--copy", "copies", multiple=True, metavar="ADDRESS=FOLDER", help="A folder for a repository, or REGISTRY/CHART."
)
@click.option(
    "--objects",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of objects that the cluster has before the pattern comes.",
)
@click.option("--seed", type=click.IntRange(1), default=None, help="Rehearse the schedule of this seed.")
@click.option("--every", is_flag=True, help="Rehearse each ordering that rules a race out, not the smallest alone.")
@click.option("--no-rehearsal", is_flag=True, help="Explore schedules of the files of operators alone.")
@output_option("json", "yaml")
def races_of_group(
    files: tuple[Path, ...],
    given: tuple[str, ...],
    texts: tuple[str, ...],
    catalogs: tuple[str, ...],
    behaviours: Path | None,
    copies: tuple[str, ...],
    objects: tuple[Path, ...],
    seed: int | None,
    every: bool,
    no_rehearsal: bool,
    output: str | None,
) -> int:
    """Find the pairs of operators of a cluster group of which one reads once what the other one makes: with the reason,
    a schedule that ends badly, and the smallest ordering (wave, gate, Job, wait) that rules it out in all schedules.

    The folder of the first values file counts as the pattern's. Nothing is served, no host is asked.

    \b
    Example:  syncline pattern races -f values-global.yaml -f values-hub.yaml \\
                --catalog redhat-operators=examples/operators/redhat-operators
    Exit codes: 0 no schedule ends badly, 3 one never ends, 4 one ends badly
    """
    try:
        values, warnings = merged(files, given, texts)
    except SourceError as error:
        raise CommandFailed(str(error)) from None
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    named = Given(
        files[0].parent,
        values,
        *given_operators(catalogs, behaviours),
        given_copies(copies),
        given_objects(objects),
    )
    return print_races(named, Settings(seed, not no_rehearsal, every, report), output)


def print_races(named: Given, settings: Settings, output: str | None) -> int:
    """Examine the races of a pattern, print what is found, and return the exit code."""
    try:
        with scratch() as place:
            answer = examined(named.values, named.installation(), place, settings)
    except ScenarioError as error:
        raise CommandFailed(str(error), USAGE if error.usage else FAILED) from error
    except RenderFailed as error:
        raise CommandFailed(str(error)) from None
    except ValuesRefused as refused:
        raise refusal(refused) from None
    if output:
        print_documents(races_document(answer), output)
    else:
        print(describe_races(answer))
    return CODES[answer.outcome]


def report(text: str) -> None:
    """Show a sentence to a person who waits."""
    if sys.stderr.isatty():
        click.echo(text, err=True)
