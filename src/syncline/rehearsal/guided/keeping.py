"""What an exploration has done so far, as the text of a file: :class:`Kept`. A killed one goes on where it was.

The first line says what is explored, each further one is a part of it; a line that a death cut off is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

FORMAT = 1
MAX_TEXT = 256 * 2**20
"""Maximum characters of a file."""


class KeptError(Exception):
    """The text is of no exploration, or of another one; the message names what was found and what is allowed."""


class Part(Protocol):
    """A part of an exploration; parts of equal numbers are equal."""

    @property
    def number(self) -> int: ...

    def to_obj(self) -> dict[str, Any]: ...


P = TypeVar("P", bound=Part)


@dataclass
class Kept(Generic[P]):
    """``about``: what is explored, as plain values by name; a file of another one is refused."""

    about: Mapping[str, Any]
    parts: dict[int, P] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str, about: Mapping[str, Any], of: Callable[[Any], P]) -> Kept[P]:
        """Return what a file holds; an empty one is that of a new exploration. ``of`` makes a part of its JSON. Raises
        KeptError."""
        kept = cls(about)
        first, *lines = text.split("\n") if text.strip() else ("",)
        if not first:
            return kept
        try:
            found = json.loads(first)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise KeptError(f"found no exploration of format {FORMAT}; give the file of one, or a new name")
        wanted = json.loads(json.dumps(dict(about)))
        for name in sorted({*wanted, *found} - {"format"}):
            if wanted.get(name) != found.get(name):
                said = f"it explores {name} {found.get(name)!r}, and {wanted.get(name)!r} was asked for"
                raise KeptError(f"{said}; give the file of this exploration, or a new name")
        for line in lines[:-1]:  # what follows the last line break is empty, or was cut off
            try:
                part = of(json.loads(line))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
                raise KeptError(f"a line of it is no part of one: {line[:80]!r}; give a new name") from error
            kept.parts[part.number] = part
        return kept

    def text(self) -> str:
        """Return the whole text, with which a file begins again."""
        return json.dumps({"format": FORMAT, **self.about}) + "\n" + "".join(map(_line, self.parts.values()))

    def add(self, part: P) -> str:
        """Keep a part, and return the line to append."""
        self.parts[part.number] = part
        return _line(part)


def _line(part: Part) -> str:
    return json.dumps(part.to_obj(), separators=(",", ":")) + "\n"
