"""Expressions in CEL that people write about a rehearsal, compiled and evaluated with a bound: :class:`Condition`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from syncline.kube.cel.nodes import CelError
from syncline.kube.cel.program import CostExceeded, Program, compile_program
from syncline.kube.cel.types import BOOL, DYN
from syncline.kube.cel.values import EvaluationError
from syncline.kube.objects import Obj
from syncline.rehearsal.fields import Field
from syncline.rehearsal.record import SECRET, Record

MAX_TEXT = 10_000
MAX_STEPS = 20_000_000
"""Steps of all evaluations of one condition."""
MAX_OBJECTS = 20_000
OF_OBJECT = {"object": DYN, "before": DYN, "gone": DYN, "at": DYN}
"""A version: the object, the version before or null, whether it is deleted, seconds since the commit."""
OF_END = {"objects": DYN, "journal": DYN}
"""What is there at the end, but Secrets, and the journal: ``at``, ``who``, ``subject``, ``what``, ``why``."""


@dataclass(frozen=True)
class Condition:
    text: str
    program: Program

    def broken(self, values: Mapping[str, Any], left: list[int]) -> str:
        """Return why it does not hold; empty if it holds. ``left``: the steps that it may still take, reduced by those
        that it takes."""

        def spend(steps: int) -> None:
            left[0] -= steps

        try:
            found = self.program.evaluate(values, spend, limit=left[0])
        except CostExceeded:
            return f"takes more than {MAX_STEPS} steps to judge; write a cheaper expression"
        except EvaluationError as error:
            return f"cannot be judged: {error}"
        return "" if found is True else "breaks the law"


def condition_of(at: Field, text: str, variables: Mapping[str, Any]) -> Condition:
    """Compile the text of a field. Raises ScenarioError with what is allowed."""
    if len(text) > MAX_TEXT:
        raise at.wrong(f"{len(text)} characters", f"at most {MAX_TEXT}")
    try:
        program = compile_program(text, dict(variables))
    except CelError as error:
        raise at.wrong(f"{text!r}: {error}", f"CEL with the variables {', '.join(variables)}") from error
    if program.type not in (BOOL, DYN):
        raise at.wrong(f"an expression of type {program.type}", "one that is true or false")
    return Condition(text, program)


def end_values(record: Record) -> Obj:
    """Return the values of :data:`OF_END`."""
    last = [versions[-1] for versions in record.by_ref.values()]
    objects = [each.obj for each in last if not each.gone and each.ref.kind != SECRET][:MAX_OBJECTS]
    journal = [
        {"at": record.seconds(each.when), "who": each.who, "subject": each.subject, "what": each.what, "why": each.why}
        for each in record.journal
    ]
    return {"objects": objects, "journal": journal}
