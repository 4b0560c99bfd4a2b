"""``syncline rehearse``: what a commit would do, in virtual time, before it touches anything."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import click

from syncline.base.clock import SystemClock
from syncline.base.scratch import scratch
from syncline.cli.frame.failure import FAILED, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.rehearse.fleet import CODES, WHY_NOT, on_fleet, plain_name
from syncline.cli.rehearse.repositories import folders_of
from syncline.cli.views.rehearsal.text import describe_answer, describe_compared
from syncline.kube.text.durations import DurationError, format_duration, parse_duration
from syncline.rehearsal.answer.answer import Answer
from syncline.rehearsal.answer.pythonlaws import python_laws
from syncline.rehearsal.exploring import Bounds, Course, question_of
from syncline.rehearsal.faults import Schedule
from syncline.rehearsal.fleet.given import is_fleet
from syncline.rehearsal.given.demonstration import demonstration
from syncline.rehearsal.given.durations import Origin
from syncline.rehearsal.given.files import read_files
from syncline.rehearsal.given.target import asked_of, is_target
from syncline.rehearsal.given.world import GivenWorld, default_world, read_world
from syncline.rehearsal.guided.batches import MAX_PROCESSES
from syncline.rehearsal.guided.keeping import MAX_TEXT, Kept, KeptError
from syncline.rehearsal.mishaps import Timed
from syncline.rehearsal.playing import Asked, Then, Turn
from syncline.rehearsal.rehearsing import Settings, rehearse
from syncline.rehearsal.repository import files_at, origins_of
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.testing.mishaps import faults_of
from syncline.rehearsal.testing.reading import root_of

MAX_REVISIONS = 2
MAX_UNTIL, MAX_BUDGET = timedelta(days=7), timedelta(days=2)
MAX_SCHEDULES, MAX_FAULTS_FILE = 1_000_000, 65_536


@click.command("rehearse")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option("--demo", is_flag=True, help="Rehearse a change that cannot be made, and its cure; needs nothing.")
@click.option("--world", "world_file", type=click.Path(path_type=Path), default=None, help="The cluster, as YAML.")
@click.option(
    "--measured", type=click.Path(path_type=Path), default=None, metavar="RECORD", help="Durations, as in this record."
)
@click.option("--from", "origin", default="", metavar="FILE|CONTEXT", help="The cluster: a snapshot, or a live one.")
@click.option(
    "--revision",
    "revisions",
    multiple=True,
    help="PATH at this branch, tag or commit, not its work tree; given twice, the two are compared.",
)
@click.option("--after", default="", help="What is deployed before: PATH at this branch, tag or commit.")
@click.option(
    "--catalog", "catalogs", multiple=True, metavar="NAME=FOLDER", help="Operators, for patterns; repeatable."
)
@click.option(
    "--repository", "repositories", multiple=True, metavar="URL=FOLDER", help="A local copy of another one; repeatable."
)
@click.option("--path", "folder", default="", help="Deploy this folder of PATH, not its Applications.")
@click.option("-n", "--namespace", default="", help="Where a folder without Applications is deployed; of app/NAME.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of what is drawn.")
@click.option("--explore", type=click.IntRange(1, MAX_SCHEDULES), default=None, help="Rehearse N schedules of faults.")
@click.option("--budget", default="", metavar="60s", help="Time for --explore; alone: as many schedules as fit.")
@click.option("--processes", type=click.IntRange(1, MAX_PROCESSES), default=2, help="Of --explore, at a time.")
@click.option("--resume", type=click.Path(path_type=Path), default=None, help="A file that keeps what --explore did.")
@click.option("--faults", type=click.Path(path_type=Path), default=None, help="A file with faults.")
@click.option("--at", "middle", default="", metavar="5m", help="Compare: abort then, roll back then (--after), go on.")
@click.option("--until", default="24h", show_default=True, help="Virtual time after which it ends.")
@click.option("--laws", type=click.Path(path_type=Path), default=None, help="A file of yours with laws in Python.")
@click.option("--without-law", "without", multiple=True, metavar="LAW", help="Do not hold it to this law; repeatable.")
@click.option("--races", is_flag=True, help="Of a pattern: operators whose outcome depends on which comes first.")
@click.option("--no-cures", is_flag=True, help="Do not look for cures.")
@click.option("--no-range", is_flag=True, help="Do not rehearse with the least and longest durations, too.")
@output_option("json", "yaml", "markdown", "html", "junit", "svg")
def rehearse_command(
    path: Path | None,
    demo: bool,
    world_file: Path | None,
    measured: Path | None,
    origin: str,
    revisions: tuple[str, ...],
    after: str,
    catalogs: tuple[str, ...],
    repositories: tuple[str, ...],
    folder: str,
    namespace: str,
    seed: int,
    explore: int | None,
    budget: str,
    processes: int,
    resume: Path | None,
    faults: Path | None,
    middle: str,
    until: str,
    laws: Path | None,
    without: tuple[str, ...],
    races: bool,
    no_cures: bool,
    no_range: bool,
    output: str | None,
) -> int:
    """Say what a commit would do to a cluster, what would get stuck, why, and which change cures it.

    The real controllers run in virtual time on a cluster of a few lines of YAML (--world): hours take seconds, and
    nothing is touched. PATH is the folder of a repository, or a file; or app/NAME, appset/NAME: what a sync of it would
    do to its cluster. The first line is the verdict, the second one what to do.

    \b
    Exit codes: 0 safe, 1 failed, 2 usage, 3 blocked, 4 unsafe (a law is broken); the demo ends with 0
    Examples:   syncline rehearse --demo
                syncline rehearse . --world world.yaml
                syncline rehearse . --after main --revision feature/chrony
                syncline rehearse . --revision main --revision feature/chrony
                syncline rehearse . --explore 200 --budget 60s
                syncline rehearse . --after main --at 5m
                syncline rehearse . --after main --world fleet.yaml
                syncline rehearse app/shop --revision feature/chrony
    """
    if demo == (path is not None):
        raise click.UsageError("give PATH, or --demo")
    if origin and world_file is not None:
        raise click.UsageError("the world is --world or --from, not both")
    if races and path is not None:
        return _races(path, revisions, catalogs, output)
    if len(revisions) > MAX_REVISIONS:
        raise click.UsageError("--revision is given once, or twice to compare two")
    try:
        bounds = _bounds(explore, budget, processes)
        if resume is not None and (bounds is None or middle or len(revisions) > 1):
            raise click.UsageError("--resume goes with --explore, and with one revision")
        more = python_laws(laws, root_of(path or Path())) if laws is not None else ()
        settings = Settings(without, cures=not no_cures, ranged=not no_range, explore=bounds, more=more, report=_report)
        limit = read_duration("--until", until, MAX_UNTIL)
        schedule, mishaps = _faults(faults, limit) if faults is not None else (None, ())
        copies = {url: read_files(place) for url, place in folders_of(repositories).items()}
        if path is not None and world_file is not None and is_fleet(world_file):
            given = dict(zip(WHY_NOT, (bounds, resume, middle, folder, catalogs, namespace, mishaps), strict=False))
            rest = settings, output, schedule, partial(_timed, record=measured), given
            return on_fleet(path, world_file, revisions, after, copies, seed, limit, *rest)
        with scratch() as place:
            several: list[tuple[str, Asked]] = []
            for revision in revisions or ("",):
                asked = (
                    demonstration() if path is None else _asked(path, world_file, origin, revision, after, namespace)
                )
                asked = replace(asked, name=plain_name(Path(folder))) if folder else asked
                world = replace(_timed(asked.world, measured), catalogs=_catalogs(catalogs), repositories=copies)
                asked = replace(asked, world=world, path=folder, namespace=namespace, seed=seed, until=limit)
                asked = replace(asked, schedule=schedule, mishaps=mishaps)
                several += _turned(asked, read_duration("--at", middle, MAX_UNTIL)) if middle else [(revision, asked)]
            names = [name for name, _ in several]
            if resume is not None and bounds is not None:
                settings = replace(settings, explore=resumed(bounds, several[0][1], resume))
            answers = [rehearse(one, place / str(number), settings) for number, (_, one) in enumerate(several)]
    except ScenarioError as error:
        raise CommandFailed(str(error), USAGE if error.usage else FAILED) from error
    if len(answers) > 1:
        _print_several(answers, names, output)
    else:
        _print(answers[0], output)
    return 0 if demo else CODES[answers[-1].outcome]


def _target(path: Path, world_file: Path | None, origin: str, revision: str, after: str, namespace: str) -> Asked:
    from syncline.cli.rehearse.snapshot import world_from

    if world_file is not None:
        raise ScenarioError(
            f"{path.as_posix()}: is of a cluster; allowed: --from FILE|CONTEXT, not --world", usage=True
        )
    return asked_of(path, world_from(origin), namespace, revision, after)


def _asked(path: Path, world_file: Path | None, origin: str, revision: str, after: str, namespace: str = "") -> Asked:
    if is_target(path):
        return _target(path, world_file, origin, revision, after, namespace)
    place = path.resolve()
    files = files_at(place, revision) if revision else read_files(place)
    if origin:
        from syncline.cli.rehearse.snapshot import world_from

        world = world_from(origin)
    else:
        world = read_world(world_file) if world_file is not None else default_world(files)
    before = files_at(place, after) if after else None
    clone = place if (place / ".git").exists() else None
    return Asked(plain_name(place), files, world, before, clone=clone, origins=origins_of(clone))


def _races(path: Path, revisions: tuple[str, ...], catalogs: tuple[str, ...], output: str | None) -> int:
    from syncline.cli.pattern.races import print_races, report
    from syncline.cli.pattern.rehearse import given_operators
    from syncline.rehearsal.races.examining import Settings as Examining
    from syncline.rehearsal.races.given import Given, values_in

    place = path.resolve()
    if revisions:
        raise click.UsageError("--races reads the folder as it is on the disk, without --revision")
    try:
        values = values_in(read_files(place), plain_name(place))
    except ScenarioError as error:
        raise CommandFailed(str(error), USAGE) from error
    return print_races(Given(place, values, *given_operators(catalogs, None)), Examining(report=report), output)


def _timed(world: GivenWorld, record: Path | None) -> GivenWorld:
    """Return the world with the durations that a record measured; what it states or draws itself stays."""
    if record is None:
        return world
    from syncline.rehearsal.reality.files import read_recording
    from syncline.rehearsal.reality.measuring import measured

    found = measured(read_recording(record).record())
    own = {name: each for name, each in world.durations.items() if each.origin is not Origin.GUESSED}
    return replace(world, durations={**found, **own})


def _catalogs(given: tuple[str, ...]) -> dict[str, Path]:
    if not given:
        return {}
    from syncline.assembly.operators.folders import FolderError, parse_catalogs

    try:
        return parse_catalogs(given)
    except FolderError as error:
        raise ScenarioError(f"--catalog: {error}", usage=True) from error


def _turned(asked: Asked, at: timedelta) -> list[tuple[str, Asked]]:
    """Return what can be done in the middle of the roll-out, the roll-out itself last. Raises ScenarioError (usage)."""
    if asked.mishaps:
        raise ScenarioError("--at: found --faults that last; allowed: a schedule of faults", usage=True)
    back = [Then.ROLL_BACK, Then.IN_ORDER] if asked.before is not None else []
    ways = [Then.ABORT, *back, Then.NOTHING]
    return [(str(way), replace(asked, turn=Turn(at, way))) for way in ways]


def read_duration(option: str, text: str, most: timedelta) -> timedelta:
    """Return the duration of an option. Raises ScenarioError (usage)."""
    try:
        found = parse_duration(text)
    except DurationError as error:
        raise ScenarioError(f"{option} {text!r}: allowed: a duration such as 90m or 24h", usage=True) from error
    if not timedelta(0) < found <= most:
        limit = format_duration(most)
        raise ScenarioError(f"{option} {text}: allowed: more than nothing, at most {limit}", usage=True)
    return found


def resumed(bounds: Bounds, asked: Asked, file: Path) -> Bounds:
    """Return the bounds of an exploration that goes on with what a file has, and keeps in it what it does. Raises
    ScenarioError (usage) for a file of another one."""
    if file.exists() and (not file.is_file() or file.stat().st_size > MAX_TEXT):
        raise ScenarioError(f"--resume {file}: allowed: a file of at most {MAX_TEXT} bytes, or a new name", usage=True)
    text = file.read_text("utf-8", "replace") if file.exists() else ""
    try:
        kept = Kept.read(text, {"question": question_of(asked)}, Course.of_obj)
        file.write_text(kept.text())
    except KeptError as error:
        raise ScenarioError(f"--resume {file}: {error}", usage=True) from error
    except OSError as error:
        raise ScenarioError(f"--resume {file}: it cannot be written: {error.strerror}", usage=True) from error

    def keep(course: Course) -> None:
        with file.open("a") as out:
            out.write(kept.add(course))

    return replace(bounds, known=dict(kept.parts), keep=keep)


def _bounds(explore: int | None, budget: str, processes: int) -> Bounds | None:
    if explore is None and not budget:
        return None
    if not budget:
        return Bounds(explore or 0, processes=processes)
    clock = SystemClock()
    end = clock.monotonic() + read_duration("--budget", budget, MAX_BUDGET).total_seconds()
    return Bounds(explore or MAX_SCHEDULES, lambda: clock.monotonic() >= end, processes)


def _faults(file: Path, until: timedelta) -> tuple[Schedule | None, tuple[Timed, ...]]:
    schedule, mishaps = faults_of(_text(file), str(file))
    if late := next((each for each in mishaps if each.at >= until), None):
        raise ScenarioError(f"--faults {file}: found {late}; allowed: before --until", usage=True)
    return schedule, mishaps


def _text(file: Path) -> str:
    if not file.is_file() or file.stat().st_size > MAX_FAULTS_FILE:
        said = f"--faults {file}: allowed: a file of at most {MAX_FAULTS_FILE} bytes with faults"
        raise ScenarioError(said, usage=True)
    return file.read_text("utf-8", "replace")


def _report(text: str) -> None:
    if sys.stderr.isatty():
        click.echo(text, err=True)


def _print_several(answers: list[Answer], names: list[str], output: str | None) -> None:
    if output in ("json", "yaml"):
        print_documents([answer.to_obj() for answer in answers], output)
        return
    if output:
        raise CommandFailed(
            f"-o {output} has one answer; several, of --revision and --at, are text, json or yaml", USAGE
        )
    print(describe_compared(answers, names))


def _print(answer: Answer, output: str | None) -> None:
    from syncline.cli.views.rehearsal.documents import html_answer, junit_answer, markdown_answer
    from syncline.cli.views.rehearsal.picture import draw_answer

    texts = {"markdown": markdown_answer, "html": html_answer, "junit": junit_answer, "svg": draw_answer}
    if output in texts:
        print(texts[output](answer), end="")
    elif output:
        print_documents(answer.to_obj(), output)
    else:
        print(describe_answer(answer))
