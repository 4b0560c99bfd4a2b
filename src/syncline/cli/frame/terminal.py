"""Cleans the output of every command: control characters of terminals are shown as escapes.

``cli/main.py`` and each group of commands put :func:`clean_output` around a run: whatever is printed goes through
:func:`plain`. Names, messages, annotations and logs come from repositories, clusters and programs; colours, links,
cursor movements and reordering of text in them are shown as escapes. Documents that other programs read go through
:func:`print_exact`.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import click

from syncline.base.masking import mask_credentials

_CONTROLS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # direction, invisible, line separators
)
_LINE_END = "(?!\r\n)"
_HOSTILE = re.compile(f"{_LINE_END}[{_CONTROLS}\ud800-\udfff]")
_CONTROL = re.compile(f"{_LINE_END}[{_CONTROLS}]")
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


def plain(text: str) -> str:
    r"""``text`` with control characters and invisible ones as ``\u001b``, the spelling of JSON, so that a document
    stays one. Tabs and ends of lines (``\n``, ``\r\n``) stay."""
    return _HOSTILE.sub(_escaped, text)


def plain_bytes(raw: bytes) -> bytes:
    """As :func:`plain` for bytes; invalid UTF-8 stays."""
    return _CONTROL.sub(_escaped, raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def one_cell(text: str) -> str:
    r"""As :func:`plain`, in one line: a line feed in a name or message starts no new line."""
    return plain(text).replace("\r", "\\u000d").replace("\n", "\\n").replace("\t", "\\t")


class _Clean:
    """A text stream that writes escaped text to another one; all else is the other's."""

    def __init__(self, inner: TextIO) -> None:
        self.inner = inner

    @property
    def encoding(self) -> str:
        """Always UTF-8: libraries bypass a stream that reports ASCII."""
        return "utf-8"

    def write(self, text: str) -> int:
        shown = plain(text)
        try:
            self.inner.write(shown)
        except UnicodeEncodeError as error:
            self.inner.write(shown.encode(error.encoding, "backslashreplace").decode(error.encoding))
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@contextlib.contextmanager
def clean_output() -> Iterator[None]:
    """Escape standard output and standard error until the context ends. Nested uses have no effect."""
    before: dict[str, Any] = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    mine = {name: _Clean(one) for name, one in before.items() if one is not None and not isinstance(one, _Clean)}
    for name, stream in mine.items():
        setattr(sys, name, stream)
    last, shape = logging.lastResort, logging.lastResort.formatter if logging.lastResort is not None else None
    if last is not None:
        last.setFormatter(LogLines("%(message)s"))
    try:
        yield
    finally:
        if last is not None:
            last.setFormatter(shape)
        for name, stream in mine.items():
            if getattr(sys, name) is stream:
                setattr(sys, name, stream.inner)


def undecorated() -> TextIO:
    """Return standard output itself, for code that draws on a terminal and cleans its texts with :func:`one_cell`."""
    stream: Any = sys.stdout
    return stream.inner if isinstance(stream, _Clean) else stream


def print_exact(document: str | bytes) -> None:
    """Print a document for other programs: exact bytes into a file or a pipe, escaped on a terminal."""
    raw = document if isinstance(document, bytes) else document.encode("utf-8", "replace")
    click.echo(plain_bytes(raw) if undecorated().isatty() else raw, nl=False)


class LogLines(logging.Formatter):
    """Formats each record as one line without anything like a credential; the lines of a traceback are indented, so
    that none looks like a record."""

    def format(self, record: logging.LogRecord) -> str:
        lines = mask_credentials(super().format(record)).split("\n")
        if record.exc_info or record.stack_info:
            return plain("\n    ".join(lines))
        return one_cell("\n".join(lines))


def start_logging() -> None:
    """Log a service's records to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogLines(LOG_FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
