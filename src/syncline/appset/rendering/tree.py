"""Templates of whole trees: :func:`planted` parses every text of a JSON tree once, :meth:`Tree.fill` renders a row.

What has no tags is shared by all results, so they are read-only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from syncline.appset.rendering.errors import RenderError
from syncline.appset.rendering.text import Fill, Params, Renderer


class Tree(ABC):
    """A tree with tags."""

    __slots__ = ()

    @abstractmethod
    def fill(self, params: Params) -> Any:
        """Render a row; raises :class:`RenderError` for the first text that fails, in the order of the tree."""


@dataclass(frozen=True, slots=True)
class Text(Tree):
    template: Fill

    def fill(self, params: Params) -> str:
        return self.template(params)


@dataclass(frozen=True, slots=True)
class Broken(Tree):
    """A text that cannot be parsed: an error for every row."""

    message: str

    def fill(self, params: Params) -> Any:
        raise RenderError(self.message)


@dataclass(frozen=True, slots=True)
class Items(Tree):
    """``whole``: the list; ``parts``: its items with tags, by index."""

    whole: list[Any]
    parts: tuple[tuple[int, Tree], ...]

    def fill(self, params: Params) -> list[Any]:
        made = list(self.whole)
        for index, part in self.parts:
            made[index] = part.fill(params)
        return made


@dataclass(frozen=True, slots=True)
class Entries(Tree):
    """``fixed``: entries without tags; ``parts``: the others, with their fixed key."""

    fixed: dict[str, Any]
    parts: tuple[tuple[str, Tree], ...]

    def fill(self, params: Params) -> dict[str, Any]:
        made = dict(self.fixed)
        for key, part in self.parts:
            made[key] = part.fill(params)
        return made


@dataclass(frozen=True, slots=True)
class KeyedEntries(Tree):
    """Entries of which a key has tags. Of two keys that come out equal the later one wins."""

    parts: tuple[tuple[Tree | str, Any], ...]

    def fill(self, params: Params) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, part in self.parts:
            value = part.fill(params) if isinstance(part, Tree) else part
            made[key.fill(params) if isinstance(key, Tree) else key] = value
        return made


@dataclass(frozen=True, slots=True)
class Wrapped(Tree):
    """A tree whose errors get a prefix."""

    inner: Tree
    prefix: str

    def fill(self, params: Params) -> Any:
        try:
            return self.inner.fill(params)
        except RenderError as error:
            raise RenderError(f"{self.prefix}{error}", missing_key=error.missing_key) from None


def planted(value: Any, renderer: Renderer) -> Any:
    """Return ``value`` itself if nothing in it has a tag, else its :class:`Tree`."""
    if isinstance(value, str):
        return planted_text(value, renderer)
    if isinstance(value, dict):
        return entries([(planted_text(key, renderer), planted(item, renderer)) for key, item in value.items()])
    if isinstance(value, list):
        return items([planted(item, renderer) for item in value])
    return value


def planted_text(text: str, renderer: Renderer) -> Any:
    try:
        template = renderer.template(text)
    except RenderError as error:
        return Broken(str(error))
    return text if template is None else Text(template)


def items(parts: list[Any]) -> Any:
    """Return a list of what :func:`planted` gave, or its tree."""
    grown = tuple((index, part) for index, part in enumerate(parts) if isinstance(part, Tree))
    return Items(parts, grown) if grown else parts


def entries(pairs: list[tuple[Any, Any]]) -> Any:
    """Return a map of keys and values that :func:`planted` gave, or its tree."""
    if any(isinstance(key, Tree) for key, _ in pairs):
        return KeyedEntries(tuple(pairs))
    grown = tuple((key, part) for key, part in pairs if isinstance(part, Tree))
    if not grown:
        return dict(pairs)
    return Entries({key: part for key, part in pairs if not isinstance(part, Tree)}, grown)


def wrapped(value: Any, prefix: str) -> Any:
    """Return what :func:`planted` gave, with a prefix for its errors."""
    return Wrapped(value, prefix) if isinstance(value, Tree) else value
