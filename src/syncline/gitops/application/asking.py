"""Questions that a plan needs answered first: expressions of users, evaluated beside the loop.

Begin at :class:`Ask`. A plan that lacks an answer becomes one that asks (``plan.py``); its performer lets the driver
run the evaluation, and the plan is made again with the answers in the same pass. What takes longer goes on by itself:
the Application says what it waits for, and its end wakes it. What ran out of its budget rests.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol, TypeAlias

from syncline.base.action import Late, Purpose, Work
from syncline.base.clock import Clock, format_time
from syncline.base.rests import Rests
from syncline.gitops.diff.jq import Addressed, Answer, Answers, JqQuestion, Overran, Unreadable
from syncline.kube.objects import ObjectRef

__all__ = ["Answered", "AnswerBook", "Ask", "AskPerformer", "Asking", "Evaluator", "Stopped"]

PATIENCE_S = 2.0
"""Answers that take longer come later, and the pass goes on without them."""
MAX_KEPT_APPS = 10_000
MAX_KEPT_ANSWERS = 200_000
"""Answers that are kept, in all; a hundred bytes each mostly."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """An evaluation that ran out of its budget: the expression, and what it took."""

    expression: str
    why: str


Found: TypeAlias = Addressed | Unreadable | Stopped


class Evaluator(Protocol):
    """Answers questions, blocking; assembly gives one that asks a process of its own."""

    def answers(self, questions: Sequence[JqQuestion]) -> list[Found]:
        """One for each, in order; never raises for what an expression does."""
        ...


@dataclass(frozen=True, slots=True)
class Ask:
    """Have the questions answered."""

    app: ObjectRef
    project: str
    questions: tuple[JqQuestion, ...] = field(repr=False)
    reason: str

    def describe(self) -> str:
        return f"evaluate jq expressions of {self.app} for {len(self.questions)} objects"


@dataclass(frozen=True, slots=True)
class Asking:
    """Questions of an Application that are being answered beside its passes."""

    since: datetime
    count: int

    @property
    def text(self) -> str:
        return (
            f"waiting since {format_time(self.since)} for jq expressions of ignoreDifferences, which are evaluated for "
            f"{self.count} objects"
        )


Answered: TypeAlias = "dict[str, Answer] | Asking"
"""What :class:`Ask` comes to."""


class AnswerBook:
    """What is known for each Application. It holds nothing that cannot be asked again. Bounded."""

    def __init__(self, limit: int = MAX_KEPT_ANSWERS) -> None:
        self._known: OrderedDict[ObjectRef, Answers] = OrderedDict()
        self._asking: dict[ObjectRef, Asking] = {}
        self._count = 0
        self._limit = limit
        self.rests = Rests()

    def of(self, app: ObjectRef) -> Answers:
        return self._known.get(app) or Answers()

    def asking(self, app: ObjectRef) -> Asking | None:
        """What is being asked for it; None: nothing."""
        return self._asking.get(app)

    def begin(self, app: ObjectRef, asking: Asking) -> Asking:
        self._asking[app] = asking
        return asking

    def end(self, app: ObjectRef) -> None:
        self._asking.pop(app, None)

    def learn(self, app: ObjectRef, answers: dict[str, Answer]) -> None:
        before = self._known.pop(app, Answers())
        made = before.with_more(answers)
        if len(made.known) > self._limit // 2:
            made = Answers().with_more(answers)
        self._known[app] = made
        self._count += len(made.known) - len(before.known)
        while len(self._known) > 1 and (self._count > self._limit or len(self._known) > MAX_KEPT_APPS):
            self._count -= len(self._known.popitem(last=False)[1].known)


class AskPerformer:
    """Performs :class:`Ask` in the driver's worker."""

    def __init__(self, evaluator: Evaluator, book: AnswerBook, clock: Clock) -> None:
        self._evaluator = evaluator
        self._book = book
        self._clock = clock

    def perform(self, action: Ask) -> Generator[Work, Any, Answered]:
        now = self._clock.now()
        resting = {one.key: self._resting(action, one, now) for one in action.questions}
        known: dict[str, Answer] = {key: found for key, found in resting.items() if found is not None}
        due = [one for one in action.questions if resting[one.key] is None]
        if not due:
            return self._keep(action, due, known, [])
        found = yield Work(
            action.describe(),
            partial(self._evaluator.answers, due),
            Purpose.EVALUATION,
            project=action.project,
            late=Late(PATIENCE_S, partial(self._keep_late, action, due, known)),
        )
        if isinstance(found, list):
            return self._keep(action, due, known, found)
        return self._book.begin(action.app, Asking(now, len(due)))

    def _resting(self, action: Ask, question: JqQuestion, now: datetime) -> Overran | None:
        for expression in question.expressions:
            left = self._book.rests.left(expression, str(action.app), now.timestamp())
            if left:
                return Overran(expression, "took too long a short while ago", now + timedelta(seconds=left))
        return None

    def _keep_late(self, action: Ask, due: list[JqQuestion], known: dict[str, Answer], found: Any) -> None:
        self._book.end(action.app)
        if not isinstance(found, list):  # a defect of ours: it is tried again as after what took too long
            why = f"could not be evaluated ({type(found).__name__})"
            found = [Stopped(one.expressions[0], why) for one in due]
        self._keep(action, due, known, found)

    def _keep(
        self, action: Ask, due: list[JqQuestion], known: dict[str, Answer], found: list[Found]
    ) -> dict[str, Answer]:
        now, share = self._clock.now(), str(action.app)
        stopped = {one.expression: one.why for one in found if isinstance(one, Stopped)}
        pauses = {one: self._book.rests.tired(one, share, now.timestamp()) for one in stopped}
        until = {one: now + timedelta(seconds=pause) for one, pause in pauses.items()}
        made = dict(known)
        for question, one in zip(due, found, strict=True):
            made[question.key] = (
                Overran(one.expression, one.why, until[one.expression]) if isinstance(one, Stopped) else one
            )
            for expression in set(question.expressions) - set(stopped):
                self._book.rests.well(expression, share)
        self._book.learn(action.app, made)
        return made
