"""What jq expressions of users address, as questions and answers: plain data on both sides.

Comparing is pure, and an expression may compute for ever. So a comparison looks its answers up (:class:`Answers`); what
is not known is raised as :class:`Unknown`, a process of its own answers the questions (:func:`answer`), and the
comparison is made again with the answers. They are remembered by expression and content of the object.
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

__all__ = [
    "Addressed",
    "Answers",
    "JqQuestion",
    "Known",
    "Overran",
    "Question",
    "Unknown",
    "Unreadable",
    "answer",
    "gathered",
    "without",
]

Rule = tuple[tuple[str, ...], tuple[str, ...]]
"""JSON pointers, then jq expressions, in the order in which they take parts away."""
MAX_TREE_BYTES = 256 << 10
"""What one expression addresses in one object, as JSON; more is refused."""
SHOWN = 200
"""Characters of an expression in a message."""


@dataclass(frozen=True)
class JqQuestion:
    """The question which fields ``rules`` address in ``obj``; without an object: whether all of them can be parsed."""

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
    """One tree for each expression in the order of the rules; None: it failed for this object and addresses nothing."""

    trees: tuple[Tree | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An expression cannot be read, or no expression can be evaluated on this machine."""

    why: str


@dataclass(frozen=True, slots=True)
class Overran:
    """An expression took more time or memory than it may; nothing of the kind is evaluated until then."""

    expression: str
    why: str
    until: datetime | None = None
    """None: it is not tried again."""

    def __str__(self) -> str:
        return f"{self.expression[:SHOWN]!r} {self.again}"

    @property
    def again(self) -> str:
        """Why it is not known, and when it is tried again."""
        return self.why if self.until is None else f"{self.why}; it is tried again after {format_time(self.until)}"


Answer: TypeAlias = Addressed | Unreadable | Overran
Known: TypeAlias = Addressed | Unreadable | Health


class Question(Protocol):
    """Equal keys, equal answers."""

    @property
    def key(self) -> str: ...


class Unknown(Exception):
    """A comparison that needs answers."""

    def __init__(self, questions: Iterable[JqQuestion]) -> None:
        super().__init__("not answered yet")
        self.questions = tuple({question.key: question for question in questions}.values())


@dataclass(frozen=True)
class Answers:
    """Known answers, by key of the question."""

    known: Mapping[str, Known] = field(default_factory=dict, repr=False)
    overran: Mapping[str, Overran] = field(default_factory=dict, repr=False)

    def find(self, question: Question) -> Known | Overran | None:
        return self.known.get(question.key) or self.overran.get(question.key)

    def of(self, question: JqQuestion) -> Answer:
        """Raises :class:`Unknown`."""
        found = self.find(question)
        if found is None or isinstance(found, Health):
            raise Unknown((question,))
        return found

    def with_more(self, more: Mapping[str, Known | Overran]) -> Answers:
        known = {key: one for key, one in more.items() if not isinstance(one, Overran)}
        overran = {key: one for key, one in more.items() if isinstance(one, Overran)}
        return Answers({**self.known, **known}, {**self.overran, **overran})

    def at(self, now: datetime) -> Answers:
        """Without what may be tried again."""
        left = {key: one for key, one in self.overran.items() if one.until is None or now < one.until}
        return self if len(left) == len(self.overran) else Answers(self.known, left)


def gathered(*parts: Callable[[], Any]) -> list[Any]:
    """The results of all. Raises :class:`Unknown` with the questions of all."""
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
    """In the process for it: evaluate. ``begins`` is called with the number of each expression before it runs."""
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
    """``obj`` without what the rules address; what is not there ignores nothing, and nothing takes all of it."""
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
    """``value`` without the parts of ``tree``; what nothing is taken from is shared."""
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
