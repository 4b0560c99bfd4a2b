"""Small rules of Go's standard library on which Ignition's verdicts rest: paths, versions, quoted text."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Version", "clean", "extension", "joined", "parse_version", "quoted"]


def clean(path: str) -> str:
    """The shortest equal path (``path.Clean``): no ``.``, ``..``, doubled or trailing slash; ``.`` for nothing."""
    rooted = path.startswith("/")
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            parts.append(part)
        elif parts and parts[-1] != "..":
            parts.pop()
        elif not rooted:
            parts.append(part)
    done = "/".join(parts)
    return f"/{done}" if rooted else done or "."


def joined(*parts: str) -> str:
    """Parts with one slash between them, cleaned (``path.Join``); empty parts do not count."""
    some = [part for part in parts if part]
    return clean("/".join(some)) if some else ""


def extension(path: str) -> str:
    """From the last dot of the last element (``path.Ext``): ``.service``; empty without a dot."""
    last = path.rpartition("/")[2]
    dot = last.rfind(".")
    return last[dot:] if dot >= 0 else ""


@dataclass(frozen=True, slots=True, order=False)
class Version:
    """A semantic version as coreos/go-semver reads it. Equality compares all parts."""

    major: int
    minor: int
    patch: int
    pre: str = ""
    build: str = ""

    def __str__(self) -> str:
        pre = f"-{self.pre}" if self.pre else ""
        build = f"+{self.build}" if self.build else ""
        return f"{self.major}.{self.minor}.{self.patch}{pre}{build}"

    @property
    def numbers(self) -> tuple[int, int, int]:
        return self.major, self.minor, self.patch

    def older_than(self, other: Version) -> bool:
        """By precedence: a pre-release comes before its release; build data does not count."""
        if self.numbers != other.numbers:
            return self.numbers < other.numbers
        if not self.pre or not other.pre:
            return bool(self.pre) and not other.pre
        return [_rank(part) for part in self.pre.split(".")] < [_rank(part) for part in other.pre.split(".")]


_INT = re.compile(r"[+-]?[0-9]+")
_IDENTIFIER = re.compile(r"(?:[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?")


def parse_version(text: str) -> Version | None:
    """``3.4.0``; leading zeros and signs pass, as in coreos/go-semver. None if it is no version."""
    text, _, build = text.partition("+")
    text, _, pre = text.partition("-")
    parts = text.split(".", 2)
    if len(parts) != 3 or not all(_INT.fullmatch(part) for part in parts):
        return None
    if not (_IDENTIFIER.fullmatch(pre) and _IDENTIFIER.fullmatch(build)):
        return None
    numbers = [int(part) if len(part) < 21 else 2**63 for part in parts]
    if any(not -(2**63) <= number < 2**63 for number in numbers):
        return None
    major, minor, patch = numbers
    return Version(major, minor, patch, pre, build)


def _rank(part: str) -> tuple[bool, int, str]:
    """Numbers come before words."""
    return (False, int(part), "") if part.isascii() and part.isdigit() and len(part) < 4000 else (True, 0, part)


_QUOTES = {'"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(text: str) -> str:
    """``%q``: the text in double quotes, unprintable characters escaped."""
    return '"' + "".join(_quoted_sign(sign) for sign in text) + '"'


def _quoted_sign(sign: str) -> str:
    if sign in _QUOTES:
        return _QUOTES[sign] if sign != "\v" else "\\v"
    if sign == "\v":
        return "\\v"
    if sign.isprintable():
        return sign
    code = ord(sign)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
