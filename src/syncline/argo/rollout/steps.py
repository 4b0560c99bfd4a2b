"""Assigns Applications to the steps of a RollingSync by their labels; pure.

Rules: ``buildAppDependencyList`` and ``validation_issues.go`` of upstream (reference argocd-applicationset §7).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from syncline.argo.rollout.strategy import Expression, Step
from syncline.kube.objects import Obj, labels_of, name_of

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Issues:
    """Problems of the steps; indices are zero-based."""

    operators: tuple[tuple[int, str], ...] = ()
    """Step and an operator that is not supported."""
    several: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Applications in more than one step."""
    empty: tuple[int, ...] = ()
    limits: tuple[tuple[int, str], ...] = ()
    """Step and an invalid ``maxUpdate``."""

    @property
    def message(self) -> str:
        """Return upstream's message about the most important problem; empty if there is none."""
        if self.operators:
            steps, found = _joined(self.operators)
            one = len(self.operators) == 1
            return (
                f"{'Step' if one else 'Steps'} {steps} {'has' if one else 'have'} invalid matchExpression operators: "
                f"{found}. Supported Operators are 'In' and 'NotIn'"
            )
        if self.several:
            names = sorted(self.several)
            steps_of = ["-".join(str(step + 1) for step in self.several[name]) for name in names]
            if len(names) == 1:
                return f"Application '{names[0]}' is selected by multiple steps: ({steps_of[0]})"
            quoted, listed = "', '".join(names), "), (".join(steps_of)
            return f"Applications '{quoted}' are selected by multiple steps: [({listed})]"
        if self.limits:
            steps, found = _joined(self.limits)
            if len(self.limits) == 1:
                return f"Step {steps} has an invalid maxUpdate value: {found}"
            return f"Steps {steps} have invalid maxUpdate values: [{found}]"
        if self.empty:
            listed = " ".join(str(step + 1) for step in self.empty)
            return f"Steps [{listed}] have no applications matching their criteria"
        return ""


def _joined(found: Iterable[tuple[int, str]]) -> tuple[str, str]:
    pairs = list(found)
    return ", ".join(str(step + 1) for step, _ in pairs), ", ".join(text for _, text in pairs)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The Applications of each step, and the (first) step of each Application."""

    names: tuple[tuple[str, ...], ...]
    step_of: Mapping[str, int]
    issues: Issues

    def label(self, name: str) -> str:
        """Return the step as in ``status.applicationStatus``: one-based, ``-1`` for none."""
        return str(self.step_of[name] + 1) if name in self.step_of else "-1"

    def counted(self, name: str) -> int:
        """Return the step in whose limit an Application counts: one in no step counts in the first, as upstream."""
        return self.step_of.get(name, 0)


def assign(steps: Sequence[Step], apps: Iterable[Obj]) -> Assignment:
    """Assign Applications (generated ones, or live ones for a deletion) to steps by their labels."""
    names: list[list[str]] = [[] for _ in steps]
    step_of: dict[str, int] = {}
    several: dict[str, tuple[int, ...]] = {}
    operators: dict[tuple[int, str], None] = {}
    for app in apps:
        name, labels = name_of(app), labels_of(app)
        for number, step in enumerate(steps):
            wrong = _unsupported(step.expressions, labels)
            if wrong is not None:
                operators.setdefault((number, wrong))
            elif _selects(step.expressions, labels):
                names[number].append(name)
                if name in step_of:
                    several[name] = (*several.get(name, (step_of[name],)), number)
                else:
                    step_of[name] = number
    empty = tuple(number for number, found in enumerate(names) if not found)
    return Assignment(tuple(map(tuple, names)), step_of, Issues(tuple(operators), several, empty))


def _unsupported(expressions: Iterable[Expression], labels: Mapping[str, str]) -> str | None:
    """Return the operator that stops the selection: only one whose key is there is looked at, as upstream."""
    for one in expressions:
        if one.key in labels and one.operator not in ("In", "NotIn"):
            return one.operator
        if not _matches(one, labels):
            return None
    return None


def _selects(expressions: Iterable[Expression], labels: Mapping[str, str]) -> bool:
    return all(_matches(one, labels) for one in expressions)


def _matches(one: Expression, labels: Mapping[str, str]) -> bool:
    """Match one expression. Without the label, In fails and any other operator passes, as upstream."""
    if one.key not in labels:
        return one.operator != "In"
    return (labels[one.key] in one.values) == (one.operator == "In")


def limit_of(step: Step, count: int) -> tuple[float, bool]:
    """Return how many of ``count`` Applications of a step may be updated at a time, and whether ``maxUpdate`` is valid.

    A percentage is rounded down, but is at least one unless it is ``0%``; an invalid text counts as one.
    """
    found = step.max_update
    if found is None:
        return math.inf, True
    if isinstance(found, int):
        return found, True
    bare = found[:-1] if found.endswith("%") else ""
    valid = _NUMBER.fullmatch(bare) is not None
    share = math.floor(int(bare) * count / 100) if valid else 0
    return (share if found == "0%" else max(share, 1)), valid


def with_limits(assignment: Assignment, wrong: Mapping[int, str]) -> Assignment:
    """Return the assignment with invalid values of ``maxUpdate`` by step, in the order of their discovery."""
    return replace(assignment, issues=replace(assignment.issues, limits=tuple(wrong.items())))
