"""Regular expressions of kustomizations: Go's syntax, anchored or not, with bounds.

Python's engine can take exponential time where Go's cannot, so the lengths of pattern and text are bounded and
patterns that repeat a repetition are refused.
"""

from __future__ import annotations

import re

from syncline.kube.re2 import compile_pattern
from syncline.sources.kustomize.failure import BuildError

__all__ = ["MAX_PATTERN", "MAX_TEXT", "Anchored", "searches"]

MAX_PATTERN = 1024
"""Characters of a pattern; names and kinds are shorter than 254."""
MAX_TEXT = 65536
"""Characters of a text that is searched."""

_NESTED = re.compile(r"[+*}]\)*[)][*+{]")


class Anchored:
    """A pattern that has to match the whole text; the empty one allows all."""

    def __init__(self, pattern: str) -> None:
        self._pattern = _compiled(f"^(?:{pattern})$") if pattern else None

    def allows(self, text: str) -> bool:
        return self._pattern is None or self._pattern.search(text[:MAX_TEXT]) is not None


def searches(pattern: str, text: str) -> bool:
    """Whether ``pattern`` matches anywhere in ``text``."""
    return _compiled(pattern).search(text[:MAX_TEXT]) is not None


def _compiled(pattern: str) -> re.Pattern[str]:
    if len(pattern) > MAX_PATTERN:
        raise BuildError(f"the pattern has {len(pattern)} characters, at most {MAX_PATTERN} are allowed")
    if _NESTED.search(pattern):
        raise BuildError(f"the pattern {pattern!r} repeats a repetition, which could take for ever; write it plainly")
    try:
        return compile_pattern(pattern)
    except re.error as error:
        raise BuildError(f"error parsing regexp: {error}: `{pattern}`") from None
