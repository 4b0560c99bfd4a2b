"""Go templates: :func:`parse` once, :meth:`Template.render` often. Pure; bounded in steps, output and depth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from syncline.kube.gotemplate.functions import Function


class TemplateError(Exception):
    """Why a template cannot be parsed or rendered, in Go's words: ``template: NAME:LINE: ...``."""


class MissingKey(Enum):
    """What a key that a map does not have gives (``missingkey=`` in Go's options)."""

    DEFAULT = "default"
    """``<no value>``, and so each of its fields."""
    INVALID = "invalid"
    """The same as ``DEFAULT``."""
    ZERO = "zero"
    """Nil: prints ``<no value>``, its fields are an error."""
    ERROR = "error"
    """An error."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one template; what exceeds them is a :class:`TemplateError`."""

    text: int = 1 << 20
    """Bytes of its text."""
    steps: int = 1_000_000
    """Nodes that one rendering evaluates."""
    output: int = 1 << 20
    """Bytes of the output."""
    nesting: int = 100
    """Control structures and parentheses within one another."""
    depth: int = 100
    """Templates that call one another."""


class Template:
    """A parsed template: immutable, may be rendered at the same time by many."""

    def render(self, data: Any) -> str:
        """Render with ``data`` as dot and ``$``. Raises :class:`TemplateError`."""
        raise NotImplementedError


def parse(
    name: str,
    text: str,
    functions: Mapping[str, Function],
    *,
    missing_key: MissingKey = MissingKey.DEFAULT,
    limits: Limits | None = None,
) -> Template:
    """Parse ``text``; ``functions`` add to the builtin ones and come before them. Raises :class:`TemplateError`."""
    raise NotImplementedError
