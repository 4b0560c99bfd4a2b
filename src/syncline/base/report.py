"""Problems of an input, collected instead of raised: :class:`Report`.

Validators fill it; callers stop at the first error or continue without the bad part. Positions point at the user's own
file, also when the faulty object was generated from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A position in a source file; line and column count from 1, 0 is unknown."""

    file: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        parts = [self.file or "<input>"]
        if self.line:
            parts.append(str(self.line))
            if self.column:
                parts.append(str(self.column))
        return ":".join(parts)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem. ``path`` is the field (``spec.template``); ``fix`` says what to do, empty if unknown."""

    severity: Severity
    message: str
    path: str = ""
    position: Position | None = None
    fix: str = ""

    def __str__(self) -> str:
        where = f"{self.position}: " if self.position else ""
        field_ = f"{self.path}: " if self.path else ""
        fix = f"; {self.fix}" if self.fix else ""
        return f"{where}{field_}{self.message}{fix}"


@dataclass(slots=True)
class Report:
    """An ordered collection of diagnostics."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def error(self, message: str, path: str = "", position: Position | None = None, fix: str = "") -> None:
        self.diagnostics.append(Diagnostic(Severity.ERROR, message, path, position, fix))

    def warning(self, message: str, path: str = "", position: Position | None = None, fix: str = "") -> None:
        self.diagnostics.append(Diagnostic(Severity.WARNING, message, path, position, fix))

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.severity is Severity.ERROR]

    @property
    def warnings(self) -> list[Diagnostic]:
        return [d for d in self.diagnostics if d.severity is Severity.WARNING]

    @property
    def ok(self) -> bool:
        return not self.errors

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.diagnostics)

    def __str__(self) -> str:
        return "\n".join(str(d) for d in self.diagnostics)
