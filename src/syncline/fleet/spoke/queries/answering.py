"""What an agent finds on its cluster, as the rows of an answer that fits into an object; pure but for the action."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

import msgspec

from syncline.base.action import Action, Purpose, Work
from syncline.fleet.pull.queries.model import Question
from syncline.kube.kinds.applicationqueries import MAX_ROWS, MAX_TEXT
from syncline.kube.objects import Obj

MAX_NOTES: Final = 50
_IDENTITY: Final = ("group", "version", "kind", "namespace", "name", "pod", "container")


class Unanswerable(Exception):
    """A question without an answer; the text says why, with the fix."""


@dataclass(frozen=True, slots=True)
class Found:
    """Every row of an answer, as plain JSON; ``notes``: what it lacks."""

    rows: tuple[Obj, ...]
    notes: tuple[str, ...] = ()


class Reader(Protocol):
    """Reads the agent's cluster. Blocking."""

    def find(self, question: Question, app: Obj) -> Found:
        """Answer a question about ``app``, the Application as the cluster has it. Raises :class:`Unanswerable`."""
        ...


@dataclass(frozen=True, slots=True)
class Answered:
    """The rows of one object, each as JSON; ``next``: the first row that is not among them, 0: there is none."""

    rows: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    next: int = 0


@dataclass(frozen=True, slots=True)
class Answer(Action):
    """Read the cluster to answer a question. ``query``: its name on the hub."""

    query: str
    question: Question
    app: Obj = field(repr=False)
    reason: str

    def describe(self) -> str:
        return f"answer {self.query}: {self.question.what}"


@dataclass(frozen=True, slots=True)
class AnswerHandler:
    """Performs :class:`Answer`. One question of a person runs at a time, two of all."""

    reader: Reader

    def handle(self, action: Answer) -> Generator[Work, Any, Answered | Unanswerable]:
        run = partial(_answered, self.reader, action.question, action.app)
        try:
            answered: Answered = yield Work(action.describe(), run, Purpose.ANSWERS, project=action.question.asked_by)
        except Unanswerable as error:
            return error
        return answered


def _answered(reader: Reader, question: Question, app: Obj) -> Answered:
    return fitted(reader.find(question, app), question.offset, question.limit)


def fitted(found: Found, offset: int, limit: int) -> Answered:
    """Return the rows from ``offset`` that have at most ``limit`` bytes together. A row that is larger than that
    itself is replaced by its identity and its size."""
    rows: list[str] = []
    used = 0
    for one in found.rows[offset:]:
        text, size = _encoded(one)
        if size > limit:
            text, size = _encoded(_identity(one) | {"tooLarge": size})
        if rows and (used + size > limit or len(rows) == MAX_ROWS):
            return Answered(tuple(rows), _cut(found.notes), offset + len(rows))
        rows.append(text)
        used += size
    return Answered(tuple(rows), _cut(found.notes))


def size_of(row: Obj) -> int:
    """Return the bytes of a row in the JSON of an answer."""
    return _encoded(row)[1]


def _encoded(row: Obj) -> tuple[str, int]:
    """Return a row as JSON, and its bytes within the JSON of an object: quotes and backslashes count twice."""
    raw = msgspec.json.encode(row)
    return raw.decode(), len(raw) + raw.count(b'"') + raw.count(b"\\") + 3


def _identity(row: Obj) -> Obj:
    return {key: row[key] for key in _IDENTITY if key in row}


def _cut(notes: Iterable[str]) -> tuple[str, ...]:
    every = tuple(note[:MAX_TEXT] for note in notes)
    if len(every) <= MAX_NOTES:
        return every
    return (*every[: MAX_NOTES - 1], f"and {len(every) - MAX_NOTES + 1} more")
