"""Regular expressions of kustomizations: Go's syntax, anchored or not, with bounds.

Python's engine can take exponential time where Go's cannot, so the lengths of pattern and text are bounded, and
patterns are refused that repeat what has choices itself.
"""

from __future__ import annotations

import re
from functools import lru_cache

from syncline.kube.re2 import compile_pattern
from syncline.sources.kustomize.failure import BuildError

__all__ = ["MAX_PATTERN", "MAX_STEPS", "MAX_TEXT", "Anchored", "searches"]

MAX_PATTERN = 1024
"""Characters of a pattern; names and kinds are shorter than 254."""
MAX_TEXT = 65536
"""Characters of a text that is searched."""
MAX_STEPS = 10**8
"""Positions that a match may try at most: the text's length to the power of the open repetitions."""

_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]])*\]|\(\?[a-zA-Z-]*:?|[()|*+?]|\{\d*,?\d*\}|.", re.DOTALL)
_OPEN = re.compile(r"[*+]|\{\d*,\}")


class Anchored:
    """A pattern that has to match the whole text; the empty one allows all."""

    def __init__(self, pattern: str) -> None:
        self._pattern = _compiled(f"^(?:{pattern})$") if pattern else None

    def allows(self, text: str) -> bool:
        return self._pattern is None or _search(self._pattern, text)


def searches(pattern: str, text: str) -> bool:
    """Whether ``pattern`` matches anywhere in ``text``."""
    return _search(_compiled(pattern), text)


def _search(compiled: tuple[re.Pattern[str], int], text: str) -> bool:
    pattern, repetitions = compiled
    if len(text) > MAX_TEXT or (repetitions > 1 and len(text) ** repetitions > MAX_STEPS):
        raise BuildError(f"the pattern {pattern.pattern!r} could take too long on a text of {len(text)} characters")
    return pattern.search(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> tuple[re.Pattern[str], int]:
    if len(pattern) > MAX_PATTERN:
        raise BuildError(f"the pattern has {len(pattern)} characters, at most {MAX_PATTERN} are allowed")
    try:
        made = compile_pattern(pattern)
    except re.error as error:
        raise BuildError(f"error parsing regexp: {error}: `{pattern}`") from None
    return made, _repetitions(pattern)


def _repetitions(pattern: str) -> int:
    """How many repetitions without an end; raises :class:`BuildError` where one repeats choices."""
    tokens = _TOKEN.findall(pattern)
    choices = [False]
    closed: bool | None = None
    count = 0
    for token in tokens:
        if token.startswith("(") and not token.startswith("\\"):
            choices.append(False)
            closed = None
            continue
        if token == ")" and len(choices) > 1:
            closed = choices.pop()
            choices[-1] = choices[-1] or closed
            continue
        if _OPEN.fullmatch(token):
            count += 1
            if closed:
                raise BuildError(
                    f"the pattern {pattern!r} repeats a choice, which could take for ever; write it plainly"
                )
        if token in ("*", "+", "?", "|") or (token.startswith("{") and token.endswith("}")):
            choices[-1] = True
        closed = None
    return count
