"""``syncline test``: the scenarios that stand beside manifests, played in virtual time."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path

import click

from syncline.cli.frame.failure import FAILED, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.rehearse.command import read_duration
from syncline.cli.rehearse.processes import Run, laws_for, run_apart
from syncline.cli.views.rehearsal.results import describe_results, junit_results, markdown_results
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.testing.case import Case
from syncline.rehearsal.testing.reading import MAX_SEED, MAX_SEEDS, case_files, read_cases
from syncline.rehearsal.testing.running import Result

MAX_LIMIT = timedelta(days=1)
MAX_RUNS = 10_000
MAX_PROCESSES = 64
FORMS = ("junit", "markdown", "json")


@click.command("test")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--filter", "patterns", multiple=True, metavar="NAME", help="Only scenarios whose name is or matches it.")
@click.option("--seed", type=click.IntRange(0, MAX_SEED), default=None, help="This seed instead of the file's.")
@click.option("--seeds", type=click.IntRange(1, MAX_SEEDS), default=None, help="The seeds 1 to N instead.")
@click.option("-j", "--processes", type=click.IntRange(1, MAX_PROCESSES), default=None, help="At a time [the cores].")
@click.option("--timeout", default="10m", show_default=True, help="Real time of one scenario.")
@click.option("--laws", type=click.Path(path_type=Path), default=None, help="A file of yours with laws in Python.")
@click.option("--report", "reports", multiple=True, metavar="FORM=FILE", help="Write junit, markdown or json, too.")
@click.option("--if-any", is_flag=True, help="Pass if there is no scenario.")
@click.option("--show", is_flag=True, help="Print the whole answer of each scenario, too.")
@click.option("--list", "listed", is_flag=True, help="Only list the scenarios.")
@output_option("json", "yaml", "junit", "markdown")
def test_command(
    paths: tuple[Path, ...],
    patterns: tuple[str, ...],
    seed: int | None,
    seeds: int | None,
    processes: int | None,
    timeout: str,
    laws: Path | None,
    reports: tuple[str, ...],
    if_any: bool,
    show: bool,
    listed: bool,
    output: str | None,
) -> int:
    """Play the scenarios of files *.rehearsal.yaml, and say which of them end as they expect.

    PATH is a file or a folder [the current one]. What fails is printed with what was found, what happened at that time,
    and the command that plays it again. docs/testing-repositories.md describes the files.

    \b
    Exit codes: 0 all passed, 1 some failed, 2 a file or the command line is wrong
    Examples:   syncline test
                syncline test apps/shop --filter 'rollback*' --seeds 5
                syncline test --report junit=results.xml --report markdown=summary.md
    """
    if seed is not None and seeds is not None:
        raise click.UsageError("give --seed or --seeds")
    try:
        limit_s = read_duration("--timeout", timeout, MAX_LIMIT).total_seconds()
        wanted = [_wanted(report) for report in reports]
        found = _found(paths or (Path(),), patterns, laws, if_any=if_any)
        if listed:
            print("\n".join(f"{case.file}  {case.name}" for case in found))
            return 0
        given = None if seed is None and seeds is None else (seed,) if seed is not None else range(1, (seeds or 0) + 1)
        runs = [Run(Path(case.file), case.name, one, laws) for case in found for one in given or case.seeds]
        if len(runs) > MAX_RUNS:
            raise ScenarioError(f"found {len(runs)} scenarios and seeds; allowed: at most {MAX_RUNS}", usage=True)
    except ScenarioError as error:
        raise CommandFailed(str(error), USAGE if error.usage else FAILED) from error
    results = run_apart(runs, processes or min(os.cpu_count() or 1, MAX_PROCESSES), limit_s, _report)
    for form, file in wanted:
        _write(file, _document(results, form))
    _print(results, output, show=show)
    return 0 if all(result.passed for result in results) else FAILED


def _found(paths: Sequence[Path], patterns: Sequence[str], laws: Path | None, *, if_any: bool) -> list[Case]:
    """Return the scenarios; each wrong file is named before any of them is played. Raises ScenarioError."""
    files = dict.fromkeys(file for path in paths for file in case_files(path))
    cases: list[Case] = []
    wrong: list[str] = []
    for file in files:
        try:
            cases += read_cases(file, laws_for(file, laws))
        except ScenarioError as error:
            wrong.append(str(error))
    if wrong:
        raise ScenarioError("\n       ".join(wrong), usage=True)
    kept = [case for case in cases if not patterns or any(fnmatchcase(case.name, one) for one in patterns)]
    if not kept and not if_any:
        where = ", ".join(str(path) for path in paths)
        names = f" of the names {', '.join(case.name for case in cases)}" if cases else ""
        raise ScenarioError(f"{where}: found no scenario{names} to play; write one in NAME.rehearsal.yaml", usage=True)
    return kept


def _report(result: Result) -> None:
    if sys.stderr.isatty():
        click.echo(f"{'passed' if result.passed else 'FAILED'}  {result.name}", err=True)


def _wanted(report: str) -> tuple[str, Path]:
    form, _, file = report.partition("=")
    if form not in FORMS or not file:
        raise ScenarioError(f"--report {report}: allowed: FORM=FILE with {', '.join(FORMS)}", usage=True)
    return form, Path(file)


def _document(results: Sequence[Result], form: str) -> str:
    if form == "junit":
        return junit_results(results)
    if form == "markdown":
        return markdown_results(results)
    return json.dumps([result.to_obj() for result in results], indent=2, ensure_ascii=False) + "\n"


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise CommandFailed(f"--report {file}: {error.strerror}") from error


def _print(results: Sequence[Result], output: str | None, *, show: bool) -> None:
    if output == "yaml":
        print_documents([result.to_obj() for result in results], output)
    elif output:
        print(_document(results, output), end="")
    elif results:
        print(describe_results(results, show=show))
    else:
        print("no scenario is there")
