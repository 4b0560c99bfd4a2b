"""Problems of a configuration: :class:`Report`, a list of entries with severity, position and sentence.

Used by every parser, validator and translator of this room, so that a report on a translated document can refer to the
text that a person wrote.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the root of the document."""


class Severity(Enum):
    """The severity of an entry; ``deprecated`` only exists in spec 2.x."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    DEPRECATED = "deprecated"


@dataclass(frozen=True, slots=True)
class Entry:
    """``path``: where in the document, empty for the whole of it. ``line`` and ``column`` count from 1, columns in
    bytes; None where the source is not known, 0 where the place is the end of the source. ``excerpt``: the lines before
    the place with a caret under it, as spec 2.x reports quote them; such entries print over several lines."""

    severity: Severity
    message: str
    path: Path = ()
    line: int | None = None
    column: int | None = None
    excerpt: str = ""

    def __str__(self) -> str:
        """One line as upstream prints it: ``error at $.storage.files.0.path, line 3 col 5: path not absolute``."""
        if self.excerpt:
            return f"{self.severity.value} at line {self.line}, column {self.column}\n{self.excerpt}{self.message}"
        places = [path_text(self.path)] if self.path else []
        if self.line is not None:
            places.append(f"line {self.line} col {self.column}")
        at = f" at {', '.join(places)}" if places else ""
        return f"{self.severity.value}{at}: {self.message}"


@dataclass(frozen=True, slots=True)
class Report:
    """Entries in the order in which they were found."""

    entries: tuple[Entry, ...] = ()

    @property
    def fatal(self) -> bool:
        """True if the configuration must be refused."""
        return any(entry.severity is Severity.ERROR for entry in self.entries)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def __add__(self, other: Report) -> Report:
        return Report(self.entries + other.entries)

    def __str__(self) -> str:
        """Return every entry on its own line, each ended by a newline."""
        return "".join(f"{entry}\n" for entry in self.entries)

    @staticmethod
    def joined(reports: Iterable[Report]) -> Report:
        return Report(tuple(entry for report in reports for entry in report.entries))


def path_text(path: Path) -> str:
    """``$.storage.files.0``."""
    return ".".join(("$", *(str(step) for step in path)))
