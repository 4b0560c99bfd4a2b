"""Go's regular expressions: the same syntax, and time in proportion to the text.

Called for ``pattern`` in schemas, for validation rules, and for patterns of repositories. Definitions and
repositories are hostile until proven otherwise: Python's engine backtracks, and ``^(a+)+$`` would hold up a server for
ever. RE2 does not, and it reads the language that Kubernetes reads; what Go says of a faulty pattern comes from
``re2syntax``. A pattern of a few letters may have thousands of states (``.{0,999}z``), and time is the states times
the text: a search that would exceed :data:`MAX_WORK` is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

from syncline.base.remember import remember
from syncline.kube.text.re2syntax import check_pattern

__all__ = ["Pattern", "compile_pattern"]

MAX_MEMORY = 2 << 20
"""Bytes of one compiled pattern with its states; to find out that one is too large takes 30 milliseconds."""
MAX_WORK = 20_000_000
"""Characters times states of one search: a quarter of a second in the worst case, a hundredth of that as a rule."""


class Match(Protocol):
    def group(self, index: int = 0, /) -> str: ...


class Pattern:
    """A compiled pattern; ``states`` says how large it is."""

    __slots__ = ("_engine", "states")

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.states: int = max(engine.programsize, 1)

    def work(self, text: str) -> int:
        """Characters times states: what a search takes at most."""
        return (len(text) + 1) * self.states

    def search(self, text: str) -> Match | None:
        """The first match, of which only the whole is known. Raises ``re.error`` for more than :data:`MAX_WORK`."""
        self._check(text)
        found: Match | None = self._engine.search(text)
        return found

    def finditer(self, text: str) -> Iterator[Match]:
        """All matches; raises as :meth:`search`."""
        self._check(text)
        found: Iterator[Match] = self._engine.finditer(text)
        return found

    def _check(self, text: str) -> None:
        if self.work(text) > MAX_WORK:
            most = MAX_WORK // self.states
            raise re.error(f"pattern of {self.states} states on {len(text)} characters; at most {most} are searched")


def compile_pattern(text: str) -> Pattern:
    """Raises ``re.error`` in Go's words for what is no pattern."""
    made = _compiled(text)
    if isinstance(made, str):
        raise re.error(made)
    return made


@remember(512)
def _compiled(text: str) -> Pattern | str:
    """The pattern, or what is wrong with it: that is remembered, too."""
    try:
        check_pattern(text)
    except re.error as error:
        return str(error)
    engine, options = _engine()
    try:
        return Pattern(engine.compile(text, options))
    except engine.error as error:
        report = error.args[0] if error.args else ""
        return report.decode("utf-8", "replace") if isinstance(report, bytes) else str(report)


@lru_cache(maxsize=1)
def _engine() -> tuple[Any, Any]:
    """Imported when the first pattern is compiled: commands that need none start faster."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    options.never_capture = True
    """Groups would take fifty times as long."""
    return re2, options
