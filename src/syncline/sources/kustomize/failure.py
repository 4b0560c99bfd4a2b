"""The error of a build, :class:`BuildError`, raised by every module of the engine.

Messages use kustomize's own words where it has them, because people search for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from syncline.sources.errors import Problem, SourceError

MALFORMED = "MalformedYAMLError"
"""Part of the text of an error about YAML syntax (kustomize's own word)."""

_SECRETIVE = re.compile(r"Secret|stringData|\bdata\b")
"""A text that may carry values of a Secret: a patch of one, or a path into its data."""


def quoted(text: str) -> str:
    """Quote a text in an error, with possible Secret values masked."""
    return "(not shown: it may hold values of a Secret)" if _SECRETIVE.search(text) else text


class BuildError(SourceError):
    """A kustomization cannot be built; ``malformed``: a file is not YAML."""

    def __init__(self, message: str, *, problem: Problem = Problem.INVALID, fix: str = "") -> None:
        super().__init__(problem, message, field="spec.source.path", fix=fix)

    @property
    def malformed(self) -> bool:
        return MALFORMED in self.message


@contextmanager
def about(prefix: str) -> Iterator[None]:
    """Prefix the message of a :class:`BuildError` raised inside with ``prefix: ``."""
    try:
        yield
    except BuildError as error:
        raise BuildError(f"{prefix}: {error.message}", problem=error.problem, fix=error.fix) from None
