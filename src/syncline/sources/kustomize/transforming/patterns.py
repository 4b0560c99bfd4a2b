"""Regular expressions of kustomizations: Go's syntax, anchored or not, with bounds on pattern and text."""

from __future__ import annotations

import re
from functools import lru_cache

from syncline.kube.text.re2 import Pattern, compile_pattern
from syncline.sources.kustomize.failure import BuildError

MAX_PATTERN = 1024
"""Characters of a pattern; names and kinds are shorter than 254."""
MAX_TEXT = 65536
"""Characters of a text that is searched."""


class Anchored:
    """A pattern that has to match the whole text; the empty one allows all."""

    def __init__(self, pattern: str) -> None:
        self._pattern = _compiled(f"^(?:{pattern})$") if pattern else None

    def allows(self, text: str) -> bool:
        return self._pattern is None or _search(self._pattern, text)


def searches(pattern: str, text: str) -> bool:
    """Return True if ``pattern`` matches anywhere in ``text``."""
    return _search(_compiled(pattern), text)


def _search(pattern: Pattern, text: str) -> bool:
    if len(text) > MAX_TEXT:
        raise BuildError(f"a text of {len(text)} characters is searched, at most {MAX_TEXT} are allowed")
    try:
        return pattern.search(text) is not None
    except re.error as error:
        raise BuildError(str(error)) from None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Pattern:
    if len(pattern) > MAX_PATTERN:
        raise BuildError(f"the pattern has {len(pattern)} characters, at most {MAX_PATTERN} are allowed")
    try:
        return compile_pattern(pattern)
    except re.error as error:
        raise BuildError(f"error parsing regexp: {error}: `{pattern}`") from None
