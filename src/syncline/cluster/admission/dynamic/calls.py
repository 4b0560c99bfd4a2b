"""Results of one request's outbound calls, over all its runs.

A request that needs a result stops with ``outbound.Awaiting`` and runs again with the result; results are stored under
a key of the call, so that only a changed call is repeated. Its clock and random values stay the same (:class:`Tape`).
It does no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from syncline.base.entropy import Entropy
from syncline.kube.transport.outbound import Outcome

MAX_RUNS = 256
"""Runs of one request. Each had new calls, so more indicates a loop in our code or in webhooks."""

T = TypeVar("T")


class Asking:
    """``uid``: reviews have the same uid in every run, since responses repeat it."""

    __slots__ = ("_answers", "_entropy", "_uids")

    def __init__(self, entropy: Entropy) -> None:
        self._answers: dict[str, Outcome] = {}
        self._uids: dict[str, str] = {}
        self._entropy = entropy

    def uid(self, key: str) -> str:
        if key not in self._uids:
            self._uids[key] = self._entropy.uid()
        return self._uids[key]

    def knows(self, key: str) -> bool:
        return key in self._answers

    def learn(self, keys: Sequence[str], outcomes: Sequence[Outcome]) -> None:
        self._answers.update(zip(keys, outcomes, strict=True))

    def answer(self, key: str) -> Outcome:
        return self._answers[key]


class Tape(Entropy):
    """Repeatable random values: after ``rewind`` it returns the same ids again, then new ones."""

    def __init__(self, source: Entropy) -> None:
        super().__init__(0)
        self._source = source
        self._drawn: list[Any] = []
        self._at = 0

    @property
    def untaped(self) -> Entropy:
        """Return random values that must not repeat."""
        return self._source

    def rewind(self) -> None:
        self._at = 0

    def _next(self, draw: Callable[[], T]) -> T:
        if self._at == len(self._drawn):
            self._drawn.append(draw())
        self._at += 1
        value: T = self._drawn[self._at - 1]
        return value

    def fork(self, name: str) -> Entropy:
        return self._source.fork(name)

    def uid(self) -> str:
        return self._next(self._source.uid)

    def suffix(self, length: int = 5) -> str:
        return self._next(lambda: self._source.suffix(length))

    def token(self, size: int = 32) -> str:
        return self._next(lambda: self._source.token(size))

    def uniform(self, low: float, high: float) -> float:
        return self._next(lambda: self._source.uniform(low, high))

    def randrange(self, stop: int) -> int:
        return self._next(lambda: self._source.randrange(stop)) % stop

    def choice(self, items: list[T]) -> T:
        return items[self.randrange(len(items))]
