"""``syncline rehearse`` with the world of a fleet: what a commit would do to all of its clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from syncline.base.scratch import scratch
from syncline.cli.frame.failure import BLOCKED, FAILED, UNSAFE
from syncline.cli.frame.output import print_documents
from syncline.rehearsal.answer.answer import Outcome
from syncline.rehearsal.faults import Schedule
from syncline.rehearsal.fleet.answer import FleetAnswer
from syncline.rehearsal.fleet.given import read_fleet
from syncline.rehearsal.given.files import Files, read_files
from syncline.rehearsal.given.world import GivenWorld
from syncline.rehearsal.rehearsing import Settings
from syncline.rehearsal.repository import files_at
from syncline.rehearsal.scenario import ScenarioError

CODES = {Outcome.SAFE: 0, Outcome.FAILED: FAILED, Outcome.BLOCKED: BLOCKED, Outcome.UNSAFE: UNSAFE}


WHY_NOT = {
    "--explore": "explores one cluster; rehearse one of them with its entry as the world, or a fleet with --faults",
    "--resume": "keeps an exploration, which is of one cluster",
    "--at": "turns back one cluster; a fleet is turned back by `syncline rollout roll-back`, one wave after the other",
    "--path": "deploys a folder to one cluster; clusters of a fleet get what the ApplicationSets of their hub make",
    "--catalog": "is for a pattern on one cluster",
    "--namespace": "is that of one folder or Application",
    "--faults with when": "are of nodes and processes of one cluster; clusters of a fleet take a schedule",
    "two --revision": "two answers are compared for one cluster; rehearse each with --revision and compare -o json",
}
"""Why a fleet does not take an option."""


def on_fleet(
    path: Path,
    world_file: Path,
    revisions: tuple[str, ...],
    after: str,
    repositories: Mapping[str, Files],
    seed: int,
    limit: timedelta,
    settings: Settings,
    output: str | None,
    schedule: Schedule | None,
    timed: Callable[[GivenWorld], GivenWorld],
    unknown: Mapping[str, object],
) -> int:
    """Rehearse and print; return the exit code. ``timed``: brings measured durations into a cluster's world;
    ``unknown``: options that a fleet does not know, with what is given. Raises ScenarioError."""
    from syncline.rehearsal.fleet.rehearsing import FleetAsked, rehearse_fleet

    given = next((name for name, value in unknown.items() if value), "two --revision" if len(revisions) > 1 else "")
    if given:
        why = WHY_NOT.get(given, "is for the world of one cluster")
        raise ScenarioError(f"{given}: {why}; {world_file} has clusters", usage=True)
    place = path.resolve()
    revision = revisions[0] if revisions else ""
    files = files_at(place, revision) if revision else read_files(place)
    before = files_at(place, after) if after else None
    world = read_fleet(world_file)
    world = replace(world, groups=tuple(replace(each, world=timed(each.world)) for each in world.groups))
    asked = FleetAsked(plain_name(place), files, world, before, repositories, seed, limit, schedule)
    with scratch() as folder:
        found = rehearse_fleet(asked, folder, settings)
    _print(found, output)
    return CODES[found.outcome]


def plain_name(place: Path) -> str:
    """Return a name that an Application may have: that of the folder or file."""
    text = place.stem if place.is_file() else place.name
    kept = "".join(letter if letter.isalnum() else "-" for letter in text.lower()).strip("-")
    return kept[:50] or "repository"


def _print(found: FleetAnswer, output: str | None) -> None:
    from syncline.cli.views.rehearsal.documents import html_answer, junit_answer, markdown_answer
    from syncline.cli.views.rehearsal.fleet import describe_fleet
    from syncline.cli.views.rehearsal.picture import draw_answer
    from syncline.rehearsal.fleet.overview import overview

    if output in ("json", "yaml"):
        print_documents(found.to_obj(), output)
    elif output in ("markdown", "html"):
        print(
            {"markdown": markdown_answer, "html": html_answer}[output](overview(found), describe_fleet(found)), end=""
        )
    elif output in ("svg", "junit"):
        print({"svg": draw_answer, "junit": junit_answer}[output](overview(found)), end="")
    else:
        print(describe_fleet(found))
