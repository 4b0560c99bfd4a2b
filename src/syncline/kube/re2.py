"""Go's regular expressions: the same syntax, and time in proportion to the text.

Called for ``pattern`` in schemas, for validation rules, and for patterns of repositories. Definitions and
repositories are hostile until proven otherwise: Python's engine backtracks, and ``^(a+)+$`` would hold up a server for
ever. RE2 does not, and it reads the language that Kubernetes reads; what Go says of a faulty pattern comes from
``re2syntax``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

from syncline.base.remember import remember
from syncline.kube.re2syntax import check_pattern

__all__ = ["Match", "Pattern", "compile_pattern"]

MAX_MEMORY = 8 << 20
"""Bytes of one compiled pattern with its states (RE2's own default)."""


class Match(Protocol):
    def group(self, index: int = 0, /) -> str: ...


class Pattern(Protocol):
    """What is used of a compiled pattern."""

    def search(self, text: str, /) -> Match | None: ...

    def finditer(self, text: str, /) -> Iterator[Match]: ...


@remember(512)
def compile_pattern(text: str) -> Pattern:
    """Raises ``re.error`` in Go's words for what is no pattern."""
    check_pattern(text)
    engine, options = _engine()
    try:
        made: Pattern = engine.compile(text, options)
    except engine.error as error:
        told = error.args[0] if error.args else ""
        raise re.error(told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)) from None
    return made


@lru_cache(maxsize=1)
def _engine() -> tuple[Any, Any]:
    """Imported when the first pattern is compiled: commands that need none start faster."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    return re2, options
