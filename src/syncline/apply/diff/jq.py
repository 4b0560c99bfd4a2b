"""Evaluation of users' jq expressions as questions and answers, both plain data.

A comparison is pure, but an expression may run forever. So a comparison looks up results (:class:`Answers`); a missing
one is raised as :class:`Unknown`, a child process evaluates it (:func:`answer`), and the comparison is made again.
Results are cached by expression and object content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import msgspec

from syncline.apply.health.verdict import Health
from syncline.base.clock import format_time
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj
from syncline.kube.patching.patches import json_patch
from syncline.kube.text.jq import JqFailed, Tree, addressed, check

Rule = tuple[tuple[str, ...], tuple[str, ...]]
"""JSON pointers, then jq expressions, in the order in which they remove fields."""
MAX_TREE_BYTES = 256 << 10
"""Limit of the fields that one expression addresses in one object, in bytes of JSON."""
SHOWN = 200
"""Limit of characters of an expression in a message."""


@dataclass(frozen=True)
class JqQuestion:
    """The question which fields ``rules`` address in ``obj``; without an object: whether all can be parsed."""

    rules: tuple[Rule, ...]
    obj: Obj | None = field(default=None, repr=False)

    @cached_property
    def key(self) -> str:
        content = msgspec.json.encode((self.rules, self.obj), order="deterministic")
        return hashlib.blake2b(content, digest_size=16).hexdigest()

    @property
    def expressions(self) -> tuple[str, ...]:
        return tuple(expression for _, expressions in self.rules for expression in expressions)


@dataclass(frozen=True, slots=True)
class Addressed:
    """One tree per expression, in order of the rules; None: it failed on this object and addresses nothing."""

    trees: tuple[Tree | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An expression is invalid, or this machine cannot evaluate any."""

    why: str


@dataclass(frozen=True, slots=True)
class Overran:
    """An expression exceeded its limit of time or memory; it is not evaluated before ``until``."""

    expression: str
    why: str
    until: datetime | None = None
    """None: it is not retried."""

    def __str__(self) -> str:
        return f"{self.expression[:SHOWN]!r} {self.again}"

    @property
    def again(self) -> str:
        """Return why there is no result, and when it is retried."""
        return self.why if self.until is None else f"{self.why}; it is tried again after {format_time(self.until)}"


Answer: TypeAlias = Addressed | Unreadable | Overran
Known: TypeAlias = Addressed | Unreadable | Health


class Question(Protocol):
    """A question with a key: equal keys mean equal answers."""

    @property
    def key(self) -> str: ...


class Unknown(Exception):
    """A comparison needs the answers to ``questions`` first."""

    def __init__(self, questions: Iterable[JqQuestion]) -> None:
        super().__init__("not answered yet")
        self.questions = tuple({question.key: question for question in questions}.values())


@dataclass(frozen=True)
class Answers:
    """Known answers by key of the question."""

    known: Mapping[str, Known] = field(default_factory=dict, repr=False)
    overran: Mapping[str, Overran] = field(default_factory=dict, repr=False)

    def find(self, question: Question) -> Known | Overran | None:
        return self.known.get(question.key) or self.overran.get(question.key)

    def of(self, question: JqQuestion) -> Answer:
        """Return the answer. Raises :class:`Unknown` if there is none."""
        found = self.find(question)
        if found is None or isinstance(found, Health):
            raise Unknown((question,))
        return found

    def with_more(self, more: Mapping[str, Known | Overran]) -> Answers:
        known = {key: one for key, one in more.items() if not isinstance(one, Overran)}
        overran = {key: one for key, one in more.items() if isinstance(one, Overran)}
        return Answers({**self.known, **known}, {**self.overran, **overran})

    def at(self, now: datetime) -> Answers:
        """Return the answers without failures that may be retried now."""
        left = {key: one for key, one in self.overran.items() if one.until is None or now < one.until}
        return self if len(left) == len(self.overran) else Answers(self.known, left)


def gathered(*parts: Callable[[], Any]) -> list[Any]:
    """Return the results of all parts. Raises :class:`Unknown` with the questions of all."""
    questions: list[JqQuestion] = []
    made: list[Any] = []
    for part in parts:
        try:
            made.append(part())
        except Unknown as unknown:
            questions += unknown.questions
    if questions:
        raise Unknown(questions)
    return made


def answer(question: JqQuestion, begins: Callable[[int], None] = lambda _number: None) -> Addressed | Unreadable:
    """Evaluate in the child process. ``begins`` is called with each expression's number before it runs."""
    trees: list[Tree | None] = []

    def address(expression: str, obj: Obj) -> Tree:
        begins(len(trees))
        try:
            tree = addressed(expression, obj)
            if len(msgspec.json.encode(tree)) > MAX_TREE_BYTES:
                raise JqFailed("it addresses too much")
        except JqFailed:
            trees.append(None)
            return {}
        trees.append(tree)
        return tree

    try:
        for number, expression in enumerate(question.expressions):
            begins(number)
            check(expression)
    except JqFailed as error:
        return Unreadable(f"{expression[:SHOWN]!r}: {error}")
    if question.obj is not None:
        without(question.obj, question.rules, address)
    return Addressed(tuple(trees))


def without(obj: Obj, rules: Iterable[Rule], address: Callable[[str, Obj], Tree | None]) -> Obj:
    """Return ``obj`` without the fields that the rules address; missing fields and rules that remove everything are
    ignored."""
    made = obj
    for pointers, expressions in rules:
        for pointer in pointers:
            try:
                made = json_patch(made, [{"op": "remove", "path": pointer}])
            except ApiError:
                continue
        for expression in expressions:
            made = _without(made, address(expression, made) or {})
    return made if isinstance(made, dict) else obj


def _without(value: Any, tree: Any) -> Any:
    """Return ``value`` without the parts in ``tree``; unchanged parts are shared."""
    if not tree:
        return value
    if isinstance(value, dict):
        return {
            key: _without(item, tree[key]) if key in tree else item
            for key, item in value.items()
            if tree.get(key) is not True
        }
    if isinstance(value, list):
        places = ((tree.get(str(place), {}), item) for place, item in enumerate(value))
        return [_without(item, below) for below, item in places if below is not True]
    return value
