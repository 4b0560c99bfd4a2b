"""``syncline pattern rehearse``: installs a pattern in virtual time, from folders alone."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from syncline.base.clock import format_time
from syncline.base.scratch import scratch
from syncline.cli.frame.failure import BLOCKED, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.pattern.values import read_file
from syncline.clustergroup.defaults import layered
from syncline.kube.objects import Obj, dig
from syncline.kube.text.durations import DurationError, parse_duration
from syncline.kube.yaml.loading import YamlError, load_all
from syncline.patterns.installing.given import spec_given
from syncline.sources.errors import SourceError

if TYPE_CHECKING:
    from syncline.assembly.operators.folders import FolderCatalogs
    from syncline.patterns.operators.behaving import Behaviours
    from syncline.rehearsal.installing.playing import Installation, Played

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("rehearse")
@click.argument("folder", type=FOLDER, default=".")
@click.option("--group", default="", help="Cluster group [default: main.clusterGroupName of values-global.yaml].")
@click.option(
    "--catalog", "catalogs", multiple=True, metavar="NAME=FOLDER", help="File-based catalogues, as for `syncline up`."
)
@click.option("--operator-behaviours", "behaviours", type=FOLDER, default=None, help="What installed operators do.")
@click.option(
    "--copy", "copies", multiple=True, metavar="ADDRESS=FOLDER", help="A folder for a repository, or REGISTRY/CHART."
)
@click.option(
    "--layer",
    "layers",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A values file of this machine, laid over those of the pattern.",
)
@click.option(
    "--objects",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of objects that the cluster has before the pattern comes.",
)
@click.option("--platform", default="AWS", show_default=True, help="Platform of the cluster; empty: no OpenShift.")
@click.option("--openshift", default="4.18.0", show_default=True, help="Version of OpenShift.")
@click.option("--within", default="4h", show_default=True, help="Virtual time after which it ends.")
@output_option("json", "yaml", "svg")
def rehearse(
    folder: Path,
    group: str,
    catalogs: tuple[str, ...],
    behaviours: Path | None,
    copies: tuple[str, ...],
    layers: tuple[Path, ...],
    objects: tuple[Path, ...],
    platform: str,
    openshift: str,
    within: str,
    output: str | None,
) -> int:
    """Install the pattern in FOLDER on a cluster in virtual time, and show what happened: nothing is served, no host is
    asked, an hour takes seconds. The files count as they are on the disk.

    \b
    Example:  syncline pattern rehearse . --catalog redhat-operators=examples/operators/redhat-operators
    Exit codes: 0 all operators and Applications are well, 3 some are not
    """
    from syncline.rehearsal.installing.playing import Platform, play
    from syncline.rehearsal.scenario import ScenarioError

    limit = _limit(within)
    given = given_operators(catalogs, behaviours)
    asked = replace(
        _installation(folder, group, given, layers),
        copies=given_copies(copies),
        objects=given_objects(objects),
        platform=Platform(platform, openshift),
    )
    try:
        with scratch() as place:
            played = play(asked, place, limit=limit)
    except ScenarioError as error:
        raise CommandFailed(str(error), USAGE) from error
    _show(asked, played, output)
    return 0 if played.well else BLOCKED


def _limit(text: str) -> timedelta:
    try:
        return parse_duration(text)
    except DurationError as error:
        raise CommandFailed(f"--within {text}: {error}", USAGE) from error


def given_operators(catalogs: tuple[str, ...], behaviours: Path | None) -> tuple[FolderCatalogs, Behaviours]:
    """Return catalogues and what operators do, as options name them. Raises CommandFailed."""
    from syncline.assembly.operators.folders import FolderCatalogs, FolderError, parse_catalogs, read_behaviours

    try:
        return FolderCatalogs.read(parse_catalogs(catalogs)), read_behaviours(behaviours)
    except FolderError as error:
        raise CommandFailed(str(error), USAGE) from None


def _installation(
    folder: Path, group: str, operators: tuple[FolderCatalogs, Behaviours], layers: tuple[Path, ...]
) -> Installation:
    from syncline.rehearsal.installing.playing import Installation

    shared = folder / "values-global.yaml"
    if not shared.is_file():
        raise CommandFailed(f"{folder} has no values-global.yaml; name the folder of a pattern", USAGE)
    try:
        values = layered([read_file(shared), *(read_file(one) for one in layers)])
    except SourceError as error:
        raise CommandFailed(str(error), USAGE) from None
    spec = spec_given(values)
    group = group or str(spec.get("clusterGroupName") or "")
    name = str(dig(values, "global", "pattern") or folder.resolve().name)
    if not group:
        raise CommandFailed(f"{shared} has no main.clusterGroupName; name the cluster group with --group", USAGE)
    files = {f"rehearsed-{number}.yaml": one.read_text() for number, one in enumerate(layers)}
    more = [*(spec.get("extraValueFiles") or ()), *files]
    spec |= {"clusterGroupName": group} | ({"extraValueFiles": more} if more else {})
    return Installation(folder, name, group, *operators, spec, files)


def given_objects(files: tuple[Path, ...]) -> list[Obj]:
    """Return the objects of files. Raises CommandFailed."""
    try:
        return [one for file in files for one in load_all(file.read_bytes(), file=str(file)).values]
    except YamlError as error:
        raise CommandFailed(f"--objects: {error}", USAGE) from None


def given_copies(given: tuple[str, ...]) -> dict[str, Path]:
    """Return folders by address. Raises CommandFailed."""
    found: dict[str, Path] = {}
    for text in given:
        address, sign, folder = text.rpartition("=")
        if not sign or not Path(folder).is_dir():
            raise CommandFailed(f"--copy {text}: write ADDRESS=FOLDER with a folder that exists", USAGE)
        found[address] = Path(folder)
    return found


def _show(asked: Installation, played: Played, output: str | None) -> None:
    from syncline.cli.views.patternreport import describe_installed, summary
    from syncline.cli.views.patterntimeline import drawn_rows

    title = summary(asked.name, asked.group, played)
    if output == "svg":
        print(drawn_rows(played.rows, played.ended, title))
    elif output:
        print_documents(document(played), output)
    else:
        print(describe_installed(title, played))


def document(played: Played) -> Obj:
    """Return all that is known as JSON."""
    return {
        "began": format_time(played.began),
        "ended": format_time(played.ended),
        "calm": played.calm,
        "well": played.well,
        "timeline": [row.obj for row in played.rows],
        "operators": [_plain(asdict(one)) for one in played.operators],
        "applications": [_plain(asdict(one)) for one in played.children],
        "waits": [one.obj for one in played.waits],
    }


def _plain(fields: dict[str, Any]) -> Obj:
    return {key: format_time(value) if isinstance(value, datetime) else value for key, value in fields.items()}
