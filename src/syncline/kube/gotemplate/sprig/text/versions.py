"""Semantic versions and constraints as Masterminds/semver 3.4 reads them: ``v1`` is 1.0.0, ``1.x`` a range."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from syncline.kube.gotemplate.functions import Function, FunctionError, Kind, spend
from syncline.kube.gotemplate.sprig.text.json import quoted
from syncline.kube.gotemplate.values import Opaque, Uint64, encode
from syncline.kube.text.re2 import compile_searcher

STRING = Kind.STRING

MAX_CHARS = 1_000
"""Characters of the longest version or constraint."""
MAX_UINT64 = (1 << 64) - 1
_EXTRA = r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
_PARTS = re.compile(r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*")
_VERSION = re.compile(rf"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?{_EXTRA}")


@dataclass(frozen=True, slots=True)
class VersionValue(Opaque):
    """What methods of a version return: a copy, which lacks the methods of a pointer."""

    go_type: ClassVar[str] = "semver.Version"
    kind: ClassVar[str] = "struct"

    numbers: tuple[int, int, int]
    prerelease: str = ""
    metadata: str = ""
    original: str = ""

    def text(self) -> str:
        major, minor, patch = self.numbers
        prerelease = f"-{self.prerelease}" if self.prerelease else ""
        return f"{major}.{minor}.{patch}{prerelease}" + (f"+{self.metadata}" if self.metadata else "")

    def json(self) -> str:
        return quoted(self.text())

    def key(self) -> tuple[Any, ...]:
        """Return what versions are compared by: a prerelease comes before its release, metadata does not count."""
        return self.numbers, not self.prerelease, prerelease_key(self.prerelease)

    def methods(self) -> Mapping[str, Function]:
        return {
            "Major": Function(lambda: Uint64(self.numbers[0])),
            "Minor": Function(lambda: Uint64(self.numbers[1])),
            "Patch": Function(lambda: Uint64(self.numbers[2])),
            "Prerelease": Function(lambda: self.prerelease, result=STRING),
            "Metadata": Function(lambda: self.metadata, result=STRING),
            "String": Function(self.text, result=STRING),
            "IncMajor": Function(lambda: self._next(0)),
            "IncMinor": Function(lambda: self._next(1)),
            "IncPatch": Function(lambda: self._next(2)),
            "SetPrerelease": Function(self._with_prerelease, (STRING,)),
            "SetMetadata": Function(self._with_metadata, (STRING,)),
        }

    def _next(self, place: int) -> VersionValue:
        """Return the next version; the next patch of a prerelease is its release."""
        numbers = [*self.numbers[: place + 1], 0, 0][:3]
        if place < 2 or not self.prerelease:
            numbers[place] += 1
        return VersionValue((numbers[0], numbers[1], numbers[2]))

    def _with_prerelease(self, text: str) -> VersionValue:
        if text and not _PARTS.fullmatch(text):
            raise FunctionError("invalid prerelease string")
        _check_prerelease(text)
        return VersionValue(self.numbers, text, self.metadata)

    def _with_metadata(self, text: str) -> VersionValue:
        if text and not _PARTS.fullmatch(text):
            raise FunctionError("invalid metadata string")
        return VersionValue(self.numbers, self.prerelease, text)


class Version(VersionValue):
    """A version as ``semver`` gives it; ``original`` is its text as given."""

    __slots__ = ()
    go_type: ClassVar[str] = "*semver.Version"
    kind: ClassVar[str] = "ptr"

    def methods(self) -> Mapping[str, Function]:
        def test(holds: Callable[[int], Any], result: Kind = Kind.BOOL) -> Function:
            return Function(lambda other: holds(_compared(self, other)), (Kind.VERSION,), result=result)

        return {
            **VersionValue.methods(self),
            "Original": Function(lambda: self.original, result=STRING),
            "Compare": test(lambda order: order, Kind.INT),
            "Equal": test(lambda order: order == 0),
            "LessThan": test(lambda order: order < 0),
            "LessThanEqual": test(lambda order: order <= 0),
            "GreaterThan": test(lambda order: order > 0),
            "GreaterThanEqual": test(lambda order: order >= 0),
        }


def _compared(one: VersionValue, other: VersionValue) -> int:
    return (one.key() > other.key()) - (one.key() < other.key())


def prerelease_key(text: str) -> tuple[tuple[bool, int, bytes], ...]:
    """Numbers come before words; a number beyond 64 bits is a word."""
    keys = []
    for part in text.split(".") if text else ():
        number = part.isdigit() and int(part) <= MAX_UINT64
        keys.append((not number, int(part) if number else 0, b"" if number else encode(part)))
    return tuple(keys)


def _check_prerelease(text: str) -> None:
    if any(part.isdigit() and len(part) > 1 and part[0] == "0" for part in text.split(".")):
        raise FunctionError("version segment starts with 0")


def parse_version(text: str) -> Version:
    """Parse a version. Raises :class:`FunctionError` in the library's words."""
    found = _VERSION.fullmatch(text) if len(text) <= MAX_CHARS else None
    if found is None:
        raise FunctionError("invalid semantic version")
    major, minor, patch, prerelease, metadata = found.groups()
    for part in (major, minor, patch):
        if part and int(part) > MAX_UINT64:
            raise FunctionError(
                f'error parsing version segment: strconv.ParseUint: parsing "{part}": value out of range'
            )
    _check_prerelease(prerelease or "")
    numbers = (int(major), int(minor or 0), int(patch or 0))
    return Version(numbers, prerelease or "", metadata or "", text)


@dataclass(frozen=True, slots=True)
class Term:
    """One comparison: ``given`` numbers of the bound were written, the others are any."""

    operator: str
    low: Version
    given: int


_OPERATOR = r"(=||!=|>|<|>=|=>|<=|=<|~|~>|\^)"
_NUMBERS = r"v?([0-9|xX*]+)(\.[0-9|xX*]+)?(\.[0-9|xX*]+)?"
_BOUND = rf"{_NUMBERS}(-(?:[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
_TERM = rf"{_OPERATOR}\s*({_BOUND})"
_ALL = rf"^\s*{_TERM}\s*(?:(?:\s+|,\s*){_TERM}\s*)*$"
_HYPHEN = rf"\s*({_BOUND})\s+-\s+({_BOUND})\s*"
_ANY = frozenset("xX*")


def _searched(pattern: str, text: str) -> list[list[str]]:
    """Return all matches, each with its groups."""
    searcher, data, at, found = compile_searcher(pattern, groups=True), encode(text), 0, []
    while (spans := searcher.search(data, at)) is not None and spans[0][1] > at:
        found.append([data[start:end].decode() if start >= 0 else "" for start, end in spans])
        at = spans[0][1]
    return found


def parse_constraint(text: str) -> list[list[Term]]:
    """Parse ``1.x``, ``>=1.0 <2``, ``~1.2 || ^3``, ``1 - 2`` into alternatives of terms.

    Raises :class:`FunctionError`.
    """
    if len(text) > MAX_CHARS:
        raise FunctionError(f"improper constraint: {text[:50]}… of {len(text)} characters")
    for whole, low, *parts in _searched(_HYPHEN, text):
        text = text.replace(whole, f">= {low}, <= {parts[4]} ", 1)
    return [_terms(part) for part in text.split("||")]


def _terms(text: str) -> list[Term]:
    if not _searched(_ALL, text):
        raise FunctionError(f"improper constraint: {text}")
    return [_term(*groups) for _, *groups in _searched(_TERM, text)]


def _term(operator: str, _: str, *bound: str) -> Term:
    *numbers, prerelease = bound
    texts = [number.removeprefix(".") for number in numbers]
    given = next((at for at, number in enumerate(texts) if not number or number in _ANY), 3)
    filled = [*texts[:given], *"000"[given:]]
    try:
        return Term(operator, parse_version(".".join(filled) + prerelease), given)
    except FunctionError:
        raise FunctionError("constraint parser error") from None


def fits(version: Version, alternatives: list[list[Term]]) -> bool:
    """A prerelease fits only terms of which one names a prerelease."""
    return any(
        (not version.prerelease or any(term.low.prerelease for term in terms))
        and all(_fits(version, term) for term in terms)
        for terms in alternatives
    )


def _fits(version: Version, term: Term) -> bool:
    key, low = version.key(), term.low.key()
    same = version.numbers[: term.given] == term.low.numbers[: term.given]
    match term.operator:
        case "" | "=":
            return _tilde(version, term) if term.given < 3 else key == low
        case "!=":
            return _differs(version, term)
        case ">":
            return _above(version, term)
        case ">=" | "=>":
            return key >= low
        case "<":
            return key < low
        case "<=" | "=<":
            if term.given == 3:
                return key <= low
            if term.given == 0:
                return version.numbers[0] <= 0 and version.numbers[1] <= 0
            return version.numbers[: term.given] <= term.low.numbers[: term.given]
        case "~" | "~>":
            return _tilde(version, term)
    return key >= low and _caret(version, term, same)


def _differs(version: Version, term: Term) -> bool:
    if term.given in (1, 2):
        if version.numbers[: term.given] != term.low.numbers[: term.given]:
            return True
        named = term.given == 2 and (version.prerelease or term.low.prerelease)
        return bool(named) and prerelease_key(version.prerelease) != prerelease_key(term.low.prerelease)
    if term.given == 0 and version.numbers != term.low.numbers:
        return True
    return version.key() != term.low.key()


def _above(version: Version, term: Term) -> bool:
    if term.given in (1, 2):
        return version.numbers[: term.given] > term.low.numbers[: term.given]
    return version.key() > term.low.key()


def _tilde(version: Version, term: Term) -> bool:
    if version.key() < term.low.key():
        return False
    if term.low.numbers == (0, 0, 0) and term.given in (0, 3):
        return True
    kept = 1 if term.given == 1 else 2
    return version.numbers[:kept] == term.low.numbers[:kept]


def _caret(version: Version, term: Term, same: bool) -> bool:
    major, minor, _ = term.low.numbers
    if major or term.given == 1:
        return version.numbers[0] == major
    if minor or term.given == 2:
        return version.numbers[:2] == (major, minor)
    return version.numbers == term.low.numbers


def _semver_compare(constraint: str, version: str) -> bool:
    spend(100 + 8 * len(constraint))
    alternatives = parse_constraint(constraint)
    return fits(parse_version(version), alternatives)


VERSIONS: Mapping[str, Function] = {
    "semver": Function(parse_version, (STRING,)),
    "semverCompare": Function(_semver_compare, (STRING, STRING), result=Kind.BOOL),
}
