"""``syncline replay``: a recorded operation, played offline with the code of today."""

from __future__ import annotations

from pathlib import Path

import click

from syncline.base.scratch import scratch
from syncline.cli.frame.failure import FAILED, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.rehearse.repositories import folders_of
from syncline.cli.views.rehearsal.reality import describe_replay, replay_to_obj
from syncline.rehearsal.reality.files import read_recording
from syncline.rehearsal.reality.replaying import replayed
from syncline.rehearsal.scenario import ScenarioError

DIFFERS = 1


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--repository",
    "repositories",
    multiple=True,
    metavar="URL=FOLDER",
    help="A clone with the recorded commits; repeatable. Addresses that are folders of this machine need none.",
)
@output_option("json", "yaml")
def replay(file: Path, repositories: tuple[str, ...], output: str | None) -> int:
    """Play a record of `syncline record` again, offline and in virtual time, with the code of today.

    The cluster begins as it was. Commits, writes of people and failures of nodes come when they came; all else is left
    to the controllers. The first line says whether they do what they did, or where they first go another way, and why.

    \b
    Exit codes: 0 as recorded, 1 differs, 2 usage
    Example:    syncline replay incident.jsonl --repository https://git.example.com/shop.git=../shop
    """
    try:
        with scratch() as place:
            found = replayed(read_recording(file), folders_of(repositories), place / "replay")
    except ScenarioError as error:
        raise CommandFailed(str(error), USAGE if error.usage else FAILED) from error
    if output:
        print_documents(replay_to_obj(found), output)
    else:
        print(describe_replay(found, file.name))
    return DIFFERS if found.differences else 0
