"""What is wrong or strange in a configuration: entries with a severity, a place and a sentence.

Used by every parser, validator and translator of this room, so that a report can be carried from the translated
document back to the text that a person wrote.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

__all__ = ["Entry", "Path", "Report", "Severity"]

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the root of the document."""


class Severity(Enum):
    """How much an entry matters; ``deprecated`` only exists in spec 2.x."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    DEPRECATED = "deprecated"


@dataclass(frozen=True, slots=True)
class Entry:
    """``path``: where in the document, empty for the whole of it. ``line`` and ``column`` count from 1, None where the
    source is not known."""

    severity: Severity
    message: str
    path: Path = ()
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Entries in the order in which they were found."""

    entries: tuple[Entry, ...] = ()

    @property
    def fatal(self) -> bool:
        """Whether the configuration must be refused."""
        return any(entry.severity is Severity.ERROR for entry in self.entries)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __add__(self, other: Report) -> Report:
        return Report(self.entries + other.entries)

    @staticmethod
    def joined(reports: Iterable[Report]) -> Report:
        return Report(tuple(entry for report in reports for entry in report.entries))
