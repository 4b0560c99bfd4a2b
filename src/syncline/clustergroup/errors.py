"""Why values give no objects: :class:`ValuesRefused`, :class:`RenderFailed`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """``path``: a JSON pointer into the values."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"at {self.path or '/'}: {self.message}"


class ValuesRefused(ValueError):
    """The values are not what the chart's schema allows."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__("values don't meet the specification of clusterGroup: " + "; ".join(map(str, violations)))


class RenderFailed(ValueError):
    """Values that the schema allows, and that give no objects. ``part``: the kind of objects that was made.
    ``unreadable``: a value breaks the YAML of its object."""

    def __init__(self, part: str, message: str, *, unreadable: bool = False) -> None:
        self.part, self.unreadable = part, unreadable
        super().__init__(f"{part}: {message}")
