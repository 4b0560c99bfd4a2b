"""Semantic versions and ranges as OLM reads them (``blang/semver``): ``>=1.2.0 <2.0.0 || 3.x``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import total_ordering
from typing import Final

_NUMBER = r"0|[1-9]\d*"
_VERSION: Final = re.compile(
    rf"(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})\.(?P<patch>{_NUMBER})"
    r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+(?P<build>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)
_PART: Final = re.compile(r"(?P<operator>[<>=!]*)(?P<version>[0-9x*].*)")
MOST_CHARS: Final = 1024
"""Longest range that is read."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """Ordered as semver 2.0 says; build metadata does not count."""

    major: int
    minor: int
    patch: int
    pre: tuple[str, ...] = ()
    build: str = ""

    def _key(self) -> tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]:
        parts = tuple((not one.isdigit(), int(one) if one.isdigit() else 0, one) for one in self.pre)
        return (self.major, self.minor, self.patch), not self.pre, parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key() == other._key()

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        return text + (f"-{'.'.join(self.pre)}" if self.pre else "") + (f"+{self.build}" if self.build else "")


def parse_version(text: str) -> Version:
    """Read a version; raises ValueError."""
    found = _VERSION.fullmatch(text) if len(text) <= MOST_CHARS else None
    if found is None:
        raise ValueError(f"version {text[:64]!r}: write MAJOR.MINOR.PATCH, for example 1.2.3")
    pre = tuple(found["pre"].split(".")) if found["pre"] else ()
    return Version(int(found["major"]), int(found["minor"]), int(found["patch"]), pre, found["build"] or "")


def parse_tolerant(text: str) -> Version:
    """Read a version with a leading ``v``, leading zeros, or fewer than three numbers; raises ValueError."""
    parts = text.strip().removeprefix("v").split(".", 2)
    short = len(parts) < 3
    if short and any(sign in parts[-1] for sign in "+-"):
        raise ValueError(f"version {text[:64]!r}: a short one has neither pre-release nor build metadata")
    stripped = [_without_zeros(part) for part in parts]
    return parse_version(".".join([*stripped, *["0"] * (3 - len(stripped))]))


def _without_zeros(part: str) -> str:
    rest = part.lstrip("0")
    return part if len(part) < 2 else rest if rest[:1].isdigit() else f"0{rest}"


Range = Callable[[Version], bool]

_COMPARE: Final[dict[str, Callable[[Version, Version], bool]]] = {
    "": lambda one, other: one == other,
    "=": lambda one, other: one == other,
    "==": lambda one, other: one == other,
    "!": lambda one, other: one != other,
    "!=": lambda one, other: one != other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
}


def parse_range(text: str) -> Range:
    """Read a range; raises ValueError. Parts side by side all hold, ``||`` separates alternatives."""
    if len(text) > MOST_CHARS:
        raise ValueError(f"a range of versions has at most {MOST_CHARS} characters")
    alternatives = [_all(part) for part in re.sub(r"([<>=!])\s+", r"\1", text).split("||")]
    return lambda version: any(holds(version) for holds in alternatives)


def _all(text: str) -> Range:
    parts = [_one(part) for part in text.split()]
    if not parts:
        raise ValueError(f"range {text!r}: empty range")
    return lambda version: all(holds(version) for holds in parts)


def _one(text: str) -> Range:
    found = _PART.fullmatch(text)
    if found is None or found["operator"] not in _COMPARE:
        raise ValueError(f"range {text!r}: write an operator (= != < <= > >=) and a version")
    operator, bare = found["operator"], found["version"]
    if "x" in bare.split("-")[0]:
        return _wild(operator, bare)
    compare, bound = _COMPARE[operator], parse_version(bare)
    return lambda version: compare(version, bound)


def _wild(operator: str, text: str) -> Range:
    """Read ``1.x`` or ``1.2.x``: all versions below that prefix."""
    numbers = [int(part) for part in text.split(".") if part.isdigit()]
    if not numbers or len(numbers) > 2:
        raise ValueError(f"range {text!r}: x stands for a minor or a patch version")
    low = Version(numbers[0], numbers[1] if len(numbers) == 2 else 0, 0)
    high = Version(numbers[0] + 1, 0, 0) if len(numbers) == 1 else Version(numbers[0], numbers[1] + 1, 0)

    def inside(version: Version) -> bool:
        return low <= version < high

    table: dict[str, Range] = {
        **dict.fromkeys(("", "=", "=="), inside),
        **dict.fromkeys(("!", "!="), lambda version: not inside(version)),
        ">": lambda version: version >= high,
        ">=": lambda version: version >= low,
        "<": lambda version: version < low,
        "<=": lambda version: version < high,
    }
    return table[operator]
