"""Evaluate match conditions and expressions of policies, within their budget.

Source: apiserver ``admission/plugin/webhook/matchconditions``, ``admission/plugin/cel`` (condition, composition).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from syncline.cluster.validation.policy.admissionrules import CONDITION, Expressions
from syncline.kube.cel.nodes import CelError
from syncline.kube.cel.program import MAX_STEPS, Program
from syncline.kube.cel.values import EvaluationError

CALLS_PER_REQUEST = 10
"""Budget of all expressions of one policy, in units of one evaluation's limit (``RuntimeCELCostBudget`` and
``PerCallLimit``)."""
CONDITION_SHARE = 4
"""Match conditions get a quarter of that (``RuntimeCELCostBudgetMatchConditions``)."""
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class OutOfBudget(Exception):
    """The budget of this policy and request is used up."""

    def __init__(self) -> None:
        super().__init__(OUT_OF_BUDGET)


class Budget:
    """Remaining budget, in calls of an evaluation."""

    __slots__ = ("left",)

    def __init__(self, *, conditions: bool = False) -> None:
        self.left = MAX_STEPS * CALLS_PER_REQUEST // (CONDITION_SHARE if conditions else 1)

    def spend(self, steps: int) -> None:
        self.left -= steps

    def check(self) -> None:
        """Raise OutOfBudget if nothing is left."""
        if self.left <= 0:
            raise OutOfBudget


@dataclass(frozen=True, slots=True)
class Compiled:
    """An expression with its program, or its compile error."""

    text: str
    program: Program | None
    problem: str = ""

    def evaluate(self, values: Mapping[str, Any], budget: Budget) -> Any:
        """Return the value; raise EvaluationError in Kubernetes' words, or OutOfBudget."""
        if self.program is None:
            raise EvaluationError(f"compilation error: {self.problem}")
        try:
            result = self.program.evaluate(values, budget.spend, limit=budget.left)
        except EvaluationError as error:
            budget.check()
            raise EvaluationError(f"expression '{self.text}' resulted in error: {error}") from None
        budget.check()
        return result


def compiled(
    text: str, wanted: Any, expressions: Expressions, *, authorizer: bool = True, composed: bool = True
) -> Compiled:
    try:
        return Compiled(text, expressions.program(text, wanted, authorizer=authorizer, composed=composed))
    except CelError as error:
        return Compiled(text, None, str(error))


@dataclass(frozen=True, slots=True)
class Conditions:
    """``ignore``: a failed evaluation skips the request instead of refusing it (failurePolicy)."""

    expressions: tuple[Compiled, ...]
    ignore: bool

    def match(self, values: Mapping[str, Any]) -> bool:
        """Return whether all conditions hold; raise EvaluationError on failures, unless another condition is false."""
        if not self.expressions:
            return True
        errors: list[str] = []
        budget = Budget(conditions=True)
        for one in self.expressions:
            try:
                if one.evaluate(values, budget) is False:
                    return False
            except EvaluationError as error:
                errors.append(str(error))
            except OutOfBudget as error:
                errors = [str(error)]
                break
        if errors and not self.ignore:
            raise EvaluationError(verdict(errors))
        return not errors


def held(values: Mapping[str, Any], conditions: Conditions) -> bool | str:
    """As :meth:`Conditions.match`, but return failures as text."""
    try:
        return conditions.match(values)
    except EvaluationError as error:
        return str(error)


def conditions_of(owner: Mapping[str, Any], expressions: Expressions) -> Conditions:
    listed: Iterable[Any] = owner.get("matchConditions") or ()
    made = (compiled(str(one.get("expression") or ""), CONDITION, expressions, composed=False) for one in listed)
    return Conditions(tuple(made), owner.get("failurePolicy") == "Ignore")


def verdict(errors: list[str]) -> str:
    """Return errors as Go's Aggregate prints them, each text once."""
    texts = list(dict.fromkeys(errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
