"""Runs a scenario with one seed, and says whether it went as expected: :func:`run_case`."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from syncline.rehearsal.answer.answer import Answer
from syncline.rehearsal.answer.judging import answer_of
from syncline.rehearsal.record import Record
from syncline.rehearsal.scenario import ScenarioError
from syncline.rehearsal.testing.case import Case
from syncline.rehearsal.testing.happening import played
from syncline.rehearsal.testing.judging import SAFE, Failure, failures
from syncline.rehearsal.testing.reading import expects_a_verdict


@dataclass(frozen=True)
class Result:
    """How a scenario went with a seed. ``error``: why it could not be played; ``answer`` is None then."""

    file: str
    name: str
    seed: int
    failures: tuple[Failure, ...] = ()
    error: str = ""
    answer: Answer | None = None

    @property
    def passed(self) -> bool:
        return not self.failures and not self.error

    def to_obj(self) -> dict[str, Any]:
        """Return the value of ``-o json``, without the answer's details."""
        found = {"file": self.file, "name": self.name, "seed": self.seed, "passed": self.passed, "error": self.error}
        ends: dict[str, Any] = {"verdict": "", "headline": "", "done_s": None}
        if self.answer is not None:
            ends = {
                "verdict": self.answer.outcome,
                "headline": self.answer.headline,
                "done_s": self.answer.done_s,
            }
        return {**found, **ends, "failures": [asdict(each) for each in self.failures]}


def run_case(case: Case, seed: int, scratch: Path) -> Result:
    """Play the scenario in a folder of its own. Equal scenarios and seeds have equal results."""
    asked = replace(case.asked, seed=seed)
    try:
        record = played(asked, case.happenings, scratch)
    except ScenarioError as error:
        return Result(case.file, case.name, seed, error=str(error))
    return result_of(case, seed, record)


def result_of(case: Case, seed: int, record: Record) -> Result:
    """Judge the record of a scenario. Pure."""
    asked = case.asked
    answer = answer_of(
        record,
        name=asked.name,
        seed=seed,
        durations=tuple(asked.world.durations.values()),
        assumed=(*asked.world.assumed, *asked.applications.assumed),
        laws=case.laws,
    )
    if asked.schedule is not None:
        answer = replace(answer, schedule=str(asked.schedule))
    expected = case.expected if expects_a_verdict(case) else (SAFE, *case.expected)
    return Result(case.file, case.name, seed, failures(expected, record, answer), answer=answer)
