"""The report of a translation as people read it: each entry with its lines of the document and a line under the place.

Source: coreos/butane ``internal/report``. The other form, one line per entry, is ``str`` of the report itself.
"""

from __future__ import annotations

from typing import Final

from syncline.ignition.report import Entry, Report, Severity, path_text

_CONTEXT_LINES: Final = 2

_RESET: Final = "\033[0m"
_BLUE: Final = "\033[1;34m"
_COLORS: Final = {Severity.ERROR: "\033[1;31m", Severity.WARNING: "\033[1;33m", Severity.INFO: "\033[1;36m"}
_SPACES: Final = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000").union(
    map(chr, range(0x2000, 0x200B))
)


def boxed(report: Report, file: str, source: bytes, *, colored: bool = False) -> bytes:
    """Return all entries, separated by blank lines, as bytes: the document may contain invalid UTF-8."""
    lines = source.split(b"\n")
    return b"\n".join(_box(entry, file, lines, colored) for entry in report.entries)


def _paint(text: str, color: str, colored: bool) -> str:
    return f"{color}{text}{_RESET}" if colored else text


def _box(entry: Entry, file: str, lines: list[bytes], colored: bool) -> bytes:
    line, column = entry.line or 0, entry.column or 0
    if not (1 <= line <= len(lines) and 1 <= column <= len(lines[line - 1])):
        return f"{entry}\n".encode("utf-8", "surrogateescape")
    severity = _paint(entry.severity.value, _COLORS.get(entry.severity, _RESET), colored)
    path = f"[{path_text(entry.path)}]" if entry.path else ""
    first, last = max(1, line - _CONTEXT_LINES), min(len(lines), line + _CONTEXT_LINES)
    width = len(str(last))
    gutter = f" {' ' * width} |"
    head = f"{severity}{path}:\n  {_paint('-->', _BLUE, colored)} {file}:{line}:{column}\n{gutter}\n"
    out = [head.encode("utf-8", "surrogateescape")]
    for number in range(first, last + 1):
        out.append(f" {_paint(f'{number:{width}}', _BLUE, colored)} | ".encode() + lines[number - 1] + b"\n")
        if number == line:
            underlined = f"{gutter} {_underline(lines[number - 1], column, colored)} {entry.message}\n"
            out.append(underlined.encode("utf-8", "surrogateescape"))
    out.append(f"{gutter}\n".encode())
    return b"".join(out)


def _underline(line: bytes, column: int, colored: bool) -> str:
    """Return carets up to the next space. Like upstream it uses the column, in characters, as a byte offset."""
    rest = line[column - 1 :]
    text = rest.decode("utf-8", "surrogateescape")
    end = next((index for index, sign in enumerate(text) if sign in _SPACES), len(text))
    size = len(text[:end].encode("utf-8", "surrogateescape"))
    return " " * (column - 1) + _paint("^" * size, _BLUE, colored)
