"""Go's regular expressions, matched in linear time: :func:`compile_pattern`.

Used for ``pattern`` in schemas, for validation rules, and for patterns in repositories, all of them untrusted: Python's
engine backtracks, and ``^(a+)+$`` would block a server forever. RE2 does not, and has Kubernetes' syntax; Go's errors
for invalid patterns come from ``re2syntax``. A pattern of a few letters may have thousands of states (``.{0,999}z``),
and time is states times text: a search that would exceed :data:`MAX_WORK` is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

from syncline.base.remember import remember
from syncline.kube.text.re2syntax import check_pattern

MAX_MEMORY = 2 << 20
"""Bytes of one compiled pattern with its states; detecting that one is too large takes 30 milliseconds."""
MAX_WORK = 20_000_000
"""Characters times states of one search: at worst a quarter of a second, normally a hundredth of that."""


class Match(Protocol):
    def group(self, index: int = 0, /) -> str: ...


class Pattern:
    """A compiled pattern; ``states`` is its size."""

    __slots__ = ("_engine", "states")

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.states: int = max(engine.programsize, 1)

    def work(self, text: str) -> int:
        """Return the cost of a search: characters times states."""
        return (len(text) + 1) * self.states

    def search(self, text: str) -> Match | None:
        """Return the first match, without groups. Raises ``re.error`` if the cost exceeds :data:`MAX_WORK`."""
        self._check(text)
        found: Match | None = self._engine.search(text)
        return found

    def finditer(self, text: str) -> Iterator[Match]:
        """Yield all matches; raises like :meth:`search`."""
        self._check(text)
        found: Iterator[Match] = self._engine.finditer(text)
        return found

    def _check(self, text: str) -> None:
        if self.work(text) > MAX_WORK:
            most = MAX_WORK // self.states
            raise re.error(f"pattern of {self.states} states on {len(text)} characters; at most {most} are searched")


def compile_pattern(text: str) -> Pattern:
    """Compile a pattern; raises ``re.error`` in Go's words if it is invalid."""
    made = _compiled(text)
    if isinstance(made, str):
        raise re.error(made)
    return made


@remember(512)
def _compiled(text: str) -> Pattern | str:
    """Return the pattern, or its error text; both are cached."""
    try:
        check_pattern(text)
    except re.error as error:
        return str(error)
    engine, options = _engine()
    try:
        return Pattern(engine.compile(text, options))
    except engine.error as error:
        return _report(error)


class Searcher:
    """A pattern that searches bytes, also for its groups; ``names`` has the numbers of each named group."""

    __slots__ = ("_engine", "names", "states")

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.states: int = max(engine.programsize, 1)
        self.names: dict[str, tuple[int, ...]] = {
            name.decode(): (number,) for name, number in engine.groupindex.items()
        }

    def search(self, data: bytes, start: int) -> tuple[tuple[int, int], ...] | None:
        """Return the spans of the first match from ``start`` on, then of its groups ((-1, -1) without a part). The
        caller counts the cost: bytes times states, and with groups more for each byte of the match."""
        found = self._engine.search(data, start)
        return tuple(found.span(group) for group in range(self._engine.groups + 1)) if found else None


def compile_searcher(text: str, *, groups: bool = False) -> Searcher:
    """Compile a pattern for bytes that may be no UTF-8; raises ``re.error`` in Go's words if it is invalid."""
    made = _searcher(text, groups)
    if isinstance(made, str):
        raise re.error(made)
    return made


@remember(512)
def _searcher(text: str, groups: bool) -> Searcher | str:
    try:
        check_pattern(text)
    except re.error as error:
        return str(error)
    engine, options = _engine(groups)
    try:
        return Searcher(engine.compile(text.encode("utf-8", "surrogateescape"), options))
    except engine.error as error:
        return _report(error)


def _report(error: Exception) -> str:
    report = error.args[0] if error.args else ""
    return report.decode("utf-8", "replace") if isinstance(report, bytes) else str(report)


@lru_cache(maxsize=2)
def _engine(groups: bool = False) -> tuple[Any, Any]:
    """Import RE2 with the first pattern: commands that need none start faster."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    options.never_capture = not groups
    """Groups would take fifty times as long."""
    return re2, options
