"""Evaluation of user scripts and expressions outside the event loop.

Begin at :class:`Ask`. A plan that lacks a result becomes a plan with this action (``plan.py``). Its handler runs the
evaluation in the driver's worker; then the same reconcile plans again with the results. A longer evaluation continues
in the background: the status reports it, and its end wakes the Application. One over budget pauses.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from syncline.apply.diff.jq import Addressed, Answers, JqQuestion, Known, Overran, Unreadable
from syncline.apply.health import Health
from syncline.apply.health.overrides import HealthQuestion
from syncline.base.action import Action, Late, Purpose, Work
from syncline.base.clock import Clock, format_time
from syncline.base.rests import Rests
from syncline.kube.objects import ObjectRef, namespace_of

MAX_RESTING_NAMESPACES = 3
"""A script that pauses in this many namespaces pauses in all."""
MAX_COST_S = 1.0
"""Seconds that a script or an expression may run."""
PATIENCE_S = 2.0
"""Seconds that a reconcile waits for results; then it continues without them."""
MAX_KEPT_APPS = 10_000
MAX_KEPT_ANSWERS = 200_000
"""Cached results in total, mostly of about a hundred bytes."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """An evaluation that exceeded its budget: the expression, and the time it took."""

    expression: str
    why: str


Question: TypeAlias = JqQuestion | HealthQuestion
Found: TypeAlias = Addressed | Unreadable | Health | Stopped


class Evaluator(Protocol):
    """Evaluates questions, blocking; ``assembly`` provides one that uses a child process."""

    def answers(self, questions: Sequence[Question]) -> list[Found]:
        """Return one result per question, in order; never raises for what an expression does."""
        ...


@dataclass(frozen=True, slots=True)
class Ask(Action):
    """Evaluate the questions."""

    app: ObjectRef
    project: str
    questions: tuple[Question, ...] = field(repr=False)
    reason: str

    def describe(self) -> str:
        return f"evaluate scripts and expressions of users for {len(self.questions)} objects of {self.app}"


@dataclass(frozen=True, slots=True)
class Asking:
    """Questions of an Application that are being evaluated in the background."""

    since: datetime
    count: int

    @property
    def text(self) -> str:
        return (
            f"waiting since {format_time(self.since)} for scripts and expressions of users (health, "
            f"jqPathExpressions), which are evaluated for {self.count} objects"
        )


Answered: TypeAlias = "dict[str, Known | Overran] | Asking"
"""The result of :class:`Ask`."""


class AnswerCache:
    """Cached results of each Application; all can be computed again. Bounded."""

    def __init__(self, limit: int = MAX_KEPT_ANSWERS) -> None:
        self._known: OrderedDict[ObjectRef, Answers] = OrderedDict()
        self._asking: dict[ObjectRef, Asking] = {}
        self._count = 0
        self._limit = limit
        self._expressions, self._scripts = Rests(), Rests(MAX_RESTING_NAMESPACES)

    def of(self, app: ObjectRef) -> Answers:
        return self._known.get(app) or Answers()

    def asking(self, app: ObjectRef) -> Asking | None:
        """Return the running evaluation of an Application, or None."""
        return self._asking.get(app)

    def begin(self, app: ObjectRef, asking: Asking) -> Asking:
        self._asking[app] = asking
        return asking

    def end(self, app: ObjectRef) -> None:
        self._asking.pop(app, None)

    def rests(self, question: Question, app: ObjectRef) -> tuple[Rests, tuple[str, ...], str]:
        """Return the table of pauses, the texts that may pause, and their scope: an expression for its Application, a
        script for the namespace of the object."""
        if isinstance(question, HealthQuestion):
            return self._scripts, (question.entry.script,), namespace_of(question.obj)
        return self._expressions, question.expressions, str(app)

    def learn(self, app: ObjectRef, answers: dict[str, Known | Overran]) -> None:
        before = self._known.pop(app, Answers())
        made = before.with_more(answers)
        if len(made.known) > self._limit // 2:
            made = Answers().with_more(answers)
        self._known[app] = made
        self._count += len(made.known) - len(before.known)
        while len(self._known) > 1 and (self._count > self._limit or len(self._known) > MAX_KEPT_APPS):
            self._count -= len(self._known.popitem(last=False)[1].known)


class AskHandler:
    """Performs :class:`Ask` in the driver's worker."""

    def __init__(
        self, evaluator: Evaluator, book: AnswerCache, clock: Clock, costs_s: Mapping[str, float] = MappingProxyType({})
    ) -> None:
        """``costs_s``: run time of scripts and expressions in virtual time; one over the limit is stopped without
        running."""
        self._costs_s = costs_s
        self._evaluator = evaluator
        self._book = book
        self._clock = clock

    def handle(self, action: Ask) -> Generator[Work, Any, Answered]:
        now = self._clock.now()
        resting = {one.key: self._resting(action, one, now) for one in action.questions}
        known: dict[str, Known | Overran] = {key: found for key, found in resting.items() if found is not None}
        due = [one for one in action.questions if resting[one.key] is None]
        if not due:
            return self._keep(action, due, known, [])
        found = yield Work(
            action.describe(),
            partial(self._found, action, due),
            Purpose.EVALUATION,
            project=action.project,
            late=Late(PATIENCE_S, partial(self._keep_late, action, due, known)),
            takes_s=sum(self._cost_s(action, one) for one in due),
        )
        if isinstance(found, list):
            return self._keep(action, due, known, found)
        return self._book.begin(action.app, Asking(now, len(due)))

    def _cost_s(self, action: Ask, question: Question) -> float:
        return sum(self._costs_s.get(name, 0.0) for name in self._book.rests(question, action.app)[1])

    def _found(self, action: Ask, due: list[Question]) -> list[Found]:
        dear = [self._cost_s(action, one) > MAX_COST_S for one in due]
        found = iter(
            self._evaluator.answers([one for one, over in zip(due, dear) if not over]) if not all(dear) else ()
        )
        stopped = (Stopped(self._book.rests(one, action.app)[1][0], f"ran longer than {MAX_COST_S:g} s") for one in due)
        return [one if over else next(found) for one, over in zip(stopped, dear)]

    def _resting(self, action: Ask, question: Question, now: datetime) -> Overran | None:
        rests, names, share = self._book.rests(question, action.app)
        for name in names:
            left = rests.left(name, share, now.timestamp())
            if left:
                return Overran(name, "took too long a short while ago", now + timedelta(seconds=left))
        return None

    def _keep_late(self, action: Ask, due: list[Question], known: dict[str, Known | Overran], found: Any) -> None:
        self._book.end(action.app)
        if not isinstance(found, list):  # a bug of ours: retried like an evaluation that took too long
            why = f"could not be evaluated ({type(found).__name__})"
            found = [Stopped(self._book.rests(one, action.app)[1][0], why) for one in due]
        self._keep(action, due, known, found)

    def _keep(
        self, action: Ask, due: list[Question], known: dict[str, Known | Overran], found: list[Found]
    ) -> dict[str, Known | Overran]:
        now, made = self._clock.now(), dict(known)
        until: dict[tuple[str, str], datetime] = {}
        for question, one in zip(due, found, strict=True):
            rests, names, share = self._book.rests(question, action.app)
            if not isinstance(one, Stopped):
                made[question.key] = one
                for name in names:
                    rests.well(name, share)
                continue
            at = (one.expression, share)
            if at not in until:
                until[at] = now + timedelta(seconds=rests.tired(*at, now.timestamp()))
            made[question.key] = Overran(one.expression, one.why, until[at])
        self._book.learn(action.app, made)
        return made
