"""Runs scenarios in processes of their own, several at a time, each for a limited time: :func:`run_apart`."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from syncline.base.clock import SystemClock
from syncline.base.scratch import scratch
from syncline.rehearsal.answer.laws import RecordLaw
from syncline.rehearsal.answer.pythonlaws import python_laws
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.testing.reading import read_cases, root_of
from syncline.rehearsal.testing.running import Result, run_case


@dataclass(frozen=True, slots=True)
class Run:
    """One scenario with one seed, by name: a process reads its file again, so that nothing but names goes to it.
    ``laws``: a file of the caller with laws in Python."""

    file: Path
    name: str
    seed: int
    laws: Path | None = None


@dataclass(slots=True)
class _Process:
    number: int
    process: BaseProcess
    answers: Connection
    until: float


def laws_for(file: Path, laws: Path | None) -> tuple[RecordLaw, ...]:
    """Return the laws in Python for the scenarios of a file. Raises ScenarioError."""
    return python_laws(laws, root_of(file)) if laws is not None else ()


def run_here(run: Run, place: Path) -> Result:
    """Run it in this process, in a folder of its own."""
    case = next((each for each in read_cases(run.file, laws_for(run.file, run.laws)) if each.name == run.name), None)
    if case is None:
        return Result(str(run.file), run.name, run.seed, error="the scenario is no longer there")
    return run_case(case, run.seed, place)


def run_apart(
    runs: Sequence[Run], processes: int, limit_s: float, report: Callable[[Result], None] = lambda _result: None
) -> list[Result]:
    """Return the results in the order of the runs; ``report`` gets each when it is there. A run that takes longer than
    ``limit_s`` real seconds is ended and has failed."""
    with scratch() as place:  # here, since a process that is ended removes nothing
        return _run_all(runs, processes, limit_s, report, place)


def _run_all(
    runs: Sequence[Run], processes: int, limit_s: float, report: Callable[[Result], None], place: Path
) -> list[Result]:
    linux, clock = sys.platform == "linux", SystemClock()
    context = multiprocessing.get_context("fork") if linux else multiprocessing.get_context("spawn")
    found: dict[int, Result] = {}
    waiting = list(enumerate(runs))
    going: list[_Process] = []
    try:
        while waiting or going:
            while waiting and len(going) < processes:
                number, run = waiting.pop(0)
                answers, mine = context.Pipe(duplex=False)
                process = context.Process(target=_answered, args=(run, place / str(number), mine), daemon=True)
                process.start()
                mine.close()
                going.append(_Process(number, process, answers, clock.monotonic() + limit_s))
            left = min(each.until for each in going) - clock.monotonic()
            ready = wait([each.answers for each in going], timeout=max(left, 0.0))
            now = clock.monotonic()
            over = [each for each in going if each.answers in ready or each.until <= now]
            for each in over:
                going.remove(each)
                found[each.number] = _result(runs[each.number], each, limit_s, on_time=each.answers in ready)
                report(found[each.number])
    finally:
        for each in going:
            _end(each)
    return [found[number] for number in range(len(runs))]


def _answered(run: Run, place: Path, answers: Connection) -> None:
    try:
        found = run_here(run, place)
    except ScenarioError as error:
        found = Result(str(run.file), run.name, run.seed, error=str(error))
    except Exception as error:  # of one scenario; the others go on
        found = Result(str(run.file), run.name, run.seed, error=f"{type(error).__name__}: {error}")
    answers.send(found)


def _result(run: Run, each: _Process, limit_s: float, *, on_time: bool) -> Result:
    try:
        if on_time:
            found: Result = each.answers.recv()
            each.process.join()
            return found
    except EOFError:
        each.process.join()
        said = f"its process ended with code {each.process.exitcode}"
        return Result(str(run.file), run.name, run.seed, error=said)
    finally:
        _end(each)
    return Result(str(run.file), run.name, run.seed, error=f"it takes longer than {limit_s:g} s (--timeout)")


def _end(each: _Process) -> None:
    each.answers.close()
    if each.process.is_alive():
        each.process.kill()
    each.process.join()
