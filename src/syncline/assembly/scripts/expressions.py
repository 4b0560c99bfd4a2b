"""Evaluates users' scripts and jq expressions in child processes, for controllers and commands.

:class:`Expressions` is the evaluator for ``apply/asking.py``; :class:`AnswersNow` evaluates
directly for a command's comparison, which nothing else waits for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from syncline.apply.asking import Found, Question, Stopped
from syncline.apply.diff.jq import Addressed, Answers, JqQuestion, Known, Overran, Unreadable
from syncline.apply.diff.jq import Question as Asked
from syncline.apply.health.overrides import HealthQuestion, failed_health, meaning
from syncline.apply.lua import OVERRAN, LuaResult
from syncline.assembly.scripts.process import ScriptEnded, ScriptOverran, ScriptProcess
from syncline.kube.objects import namespace_of

EXPRESSION_S = 1.0
"""CPU seconds for one expression on one object, as upstream."""
KILL_S = 0.5
"""A Lua script ends itself after its second; one stuck in C code is killed this much later."""
SLOW_S, MAX_SLOW_S = 0.05, 10.0
"""Evaluations longer than the first are slow; the second limits their sum in one comparison."""
MAX_S = 300.0
"""Limit in seconds of all evaluations of one comparison."""
TOGETHER = f"was not evaluated: all expressions of the comparison took longer than {MAX_SLOW_S:g} s"
TOO_MUCH = "ended the process that evaluates it: it takes more memory than it may"


class Expressions:
    """An :class:`~syncline.apply.asking.Evaluator`; safe to use from several threads."""

    def __init__(self, expression_s: float = EXPRESSION_S) -> None:
        self._expression_s = expression_s
        self._idle: list[ScriptProcess] = []
        self._lock = threading.Lock()

    def answers(self, questions: Sequence[Question]) -> list[Found]:
        """Return one result per question; an expression that exceeded its budget is not run for the other objects."""
        with self._lock:
            process = self._idle.pop() if self._idle else ScriptProcess()
        stopped: dict[tuple[str, str], Stopped] = {}
        found: list[Found] = []
        slow_s, end = 0.0, time.monotonic() + MAX_S
        for question in questions:
            names, share = _names(question)
            known = next((stopped[one, share] for one in names if (one, share) in stopped), None)
            if known is None and (slow_s > MAX_SLOW_S or time.monotonic() > end):
                known = Stopped(names[0], TOGETHER)
            begun = time.monotonic()
            one = known or self._answered(process, question)
            taken = time.monotonic() - begun
            slow_s += taken if taken > SLOW_S else 0.0
            if isinstance(one, Stopped):
                stopped[one.expression, share] = one
            found.append(one)
        with self._lock:
            self._idle.append(process)
        return found

    def _answered(self, process: ScriptProcess, question: Question) -> Found:
        names, limit_s = _names(question)[0], self._expression_s
        if isinstance(question, HealthQuestion):
            limit_s += KILL_S
            given = {"obj": question.obj, "actionParams": {}}
            request: dict[str, Any] = {"script": names[0], "names": given, "openLibs": question.entry.open_libs}
        else:
            request = {"rules": question.rules, "obj": question.obj}
        try:
            answer = process.ask(msgspec.json.encode(request), limit_s)
        except ScriptOverran as error:
            return Stopped(names[error.number], f"ran longer than {self._expression_s:g} s")
        except ScriptEnded as error:
            return Stopped(names[error.number], TOO_MUCH)
        if not isinstance(question, HealthQuestion):
            return Unreadable(answer["error"]) if "error" in answer else Addressed(tuple(answer["trees"]))
        why = str(answer.get("error", ""))
        if why.startswith(OVERRAN):
            return Stopped(names[0], why.removeprefix("the script "))
        return failed_health(why, question.obj) if why else meaning(LuaResult(**answer), question.obj)

    def close(self) -> None:
        """End the processes; later calls start new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.close()


def _names(question: Question) -> tuple[tuple[str, ...], str]:
    """Return the texts to evaluate, and the scope for which they pause."""
    if isinstance(question, HealthQuestion):
        return (question.entry.script,), namespace_of(question.obj)
    return question.expressions, ""


@dataclass(frozen=True)
class AnswersNow(Answers):
    """Answers that are evaluated on first use, and cached."""

    evaluator: Expressions = field(default_factory=Expressions, repr=False)
    found: dict[str, Known | Overran] = field(default_factory=dict, repr=False)

    def find(self, question: Asked) -> Known | Overran | None:
        if question.key not in self.found and isinstance(question, JqQuestion | HealthQuestion):
            (one,) = self.evaluator.answers((question,))
            self.found[question.key] = Overran(one.expression, one.why) if isinstance(one, Stopped) else one
        return self.found.get(question.key)
