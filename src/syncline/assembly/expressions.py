"""Evaluates jq expressions of users, in processes for that: what the controllers and the commands hand to comparisons.

:class:`Expressions` is the evaluator of ``gitops/application/asking.py``; :class:`AnswersNow` answers a comparison of a
command at once, which has nobody else to wait for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from syncline.assembly.script_process import ScriptEnded, ScriptOverran, ScriptProcess
from syncline.gitops.application.asking import Found, Stopped
from syncline.gitops.diff.jq import Addressed, Answer, Answers, JqQuestion, Overran, Unreadable

__all__ = ["AnswersNow", "Expressions"]

EXPRESSION_S = 1.0
"""Of the processor, for one expression on one object, as upstream."""
SLOW_S, MAX_SLOW_S = 0.05, 10.0
"""Evaluations that take longer than this may take so long together, of one comparison."""
MAX_S = 300.0
"""All evaluations of one comparison."""
TOGETHER = f"was not evaluated: all expressions of the comparison took longer than {MAX_SLOW_S:g} s"
TOO_MUCH = "ended the process that evaluates it: it takes more memory than it may"


class Expressions:
    """An :class:`~syncline.gitops.application.asking.Evaluator`; safe to use from several threads."""

    def __init__(self, expression_s: float = EXPRESSION_S) -> None:
        self._expression_s = expression_s
        self._idle: list[ScriptProcess] = []
        self._lock = threading.Lock()

    def answers(self, questions: Sequence[JqQuestion]) -> list[Found]:
        """One for each; an expression that ran out of its budget is not evaluated for the other objects."""
        with self._lock:
            process = self._idle.pop() if self._idle else ScriptProcess()
        stopped: dict[str, Stopped] = {}
        found: list[Found] = []
        slow_s, end = 0.0, time.monotonic() + MAX_S
        for question in questions:
            known = next((stopped[one] for one in question.expressions if one in stopped), None)
            if known is None and (slow_s > MAX_SLOW_S or time.monotonic() > end):
                known = Stopped(question.expressions[0], TOGETHER)
            begun = time.monotonic()
            one = known or self._answered(process, question)
            taken = time.monotonic() - begun
            slow_s += taken if taken > SLOW_S else 0.0
            if isinstance(one, Stopped):
                stopped[one.expression] = one
            found.append(one)
        with self._lock:
            self._idle.append(process)
        return found

    def _answered(self, process: ScriptProcess, question: JqQuestion) -> Found:
        request = msgspec.json.encode({"rules": question.rules, "obj": question.obj})
        try:
            answer: dict[str, Any] = process.ask(request, self._expression_s)
        except ScriptOverran as error:
            return Stopped(question.expressions[error.number], f"ran longer than {self._expression_s:g} s")
        except ScriptEnded as error:
            return Stopped(question.expressions[error.number], TOO_MUCH)
        return Unreadable(answer["error"]) if "error" in answer else Addressed(tuple(answer["trees"]))

    def close(self) -> None:
        """End the processes; what comes later starts others."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.close()


@dataclass(frozen=True)
class AnswersNow(Answers):
    """Answers that are found when they are asked for, and remembered."""

    evaluator: Expressions = field(default_factory=Expressions, repr=False)
    found: dict[str, Answer] = field(default_factory=dict, repr=False)

    def of(self, question: JqQuestion) -> Answer:
        if question.key not in self.found:
            (one,) = self.evaluator.answers((question,))
            self.found[question.key] = Overran(one.expression, one.why) if isinstance(one, Stopped) else one
        return self.found[question.key]
