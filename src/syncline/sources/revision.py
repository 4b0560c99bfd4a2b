"""Resolves a ``targetRevision`` from the references that a repository advertises: :func:`choose`. Pure.

Called by ``sources/git/mirrors.py``. Rules: Argo CD ``util/git`` and ``util/versions`` (reference argocd-app 5.6): a
version constraint matches tags only, an exact version is a plain name, forty hex digits are used unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import total_ordering

_FULL_SHA = re.compile(r"[0-9a-f]{40}")
_SHORT_SHA = re.compile(r"[0-9a-f]{7,39}")


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """An advertised reference; ``sha`` is the commit, for annotated tags the one they point to."""

    name: str
    sha: str


@dataclass(frozen=True, slots=True)
class Refs:
    """All references of a repository, sorted. Two equal values mean that nothing changed."""

    refs: tuple[Ref, ...]
    head: str = ""
    """Name of the branch that HEAD points at, empty if it is detached or unknown."""

    def sha_of(self, name: str) -> str | None:
        return next((ref.sha for ref in self.refs if ref.name == name), None)

    def tags(self) -> list[str]:
        prefix = "refs/tags/"
        return [ref.name.removeprefix(prefix) for ref in self.refs if ref.name.startswith(prefix)]


@dataclass(frozen=True, slots=True)
class ResolvedRevision:
    """``revision`` as requested, ``ref`` the matching reference (empty for a commit), ``sha`` the commit."""

    revision: str
    sha: str
    ref: str = ""


def is_full_sha(text: str) -> bool:
    return _FULL_SHA.fullmatch(text.lower()) is not None


def is_short_sha(text: str) -> bool:
    return _SHORT_SHA.fullmatch(text.lower()) is not None


def choose(revision: str, refs: Refs) -> ResolvedRevision | None:
    """Return the commit for ``revision``, None if no reference matches. The caller handles abbreviated commits."""
    wanted = revision or "HEAD"
    if is_full_sha(wanted):
        return ResolvedRevision(revision, wanted.lower())
    constraint = None if Version.parse(wanted) else parse_constraint(wanted)
    if constraint is not None:
        tag = _highest(constraint, refs.tags())
        return _named(revision, f"refs/tags/{tag}", refs) if tag else None
    for name in (wanted, f"refs/heads/{wanted}", f"refs/tags/{wanted}", f"refs/{wanted}", f"refs/remotes/{wanted}"):
        found = _named(revision, name, refs)
        if found is not None:
            return found
    return None


def choose_tag(revision: str, prefix: str, refs: Refs) -> ResolvedRevision | None:
    """Return the tag for a range of versions (or one version) among those that begin with ``prefix``."""
    if Version.parse(revision):
        return _named(revision, f"refs/tags/{prefix}{revision}", refs)
    constraint = parse_constraint(revision)
    if constraint is None:
        return None
    tag = _highest(constraint, [one.removeprefix(prefix) for one in refs.tags() if one.startswith(prefix)])
    return _named(revision, f"refs/tags/{prefix}{tag}", refs) if tag else None


def _named(revision: str, name: str, refs: Refs) -> ResolvedRevision | None:
    sha = refs.sha_of(name)
    if sha is None:
        return None
    return ResolvedRevision(revision, sha, refs.head if name == "HEAD" and refs.head else name)


def _highest(constraint: Callable[[Version], bool], tags: Iterable[str]) -> str | None:
    versions = [(version, tag) for tag in tags if (version := Version.parse(tag)) is not None and constraint(version)]
    return max(versions)[1] if versions else None


_NUMBER = r"[0-9]{1,20}"
"""What Go reads into 64 bits; a longer one is no version."""
_VERSION = re.compile(rf"v?({_NUMBER})(?:\.({_NUMBER}))?(?:\.({_NUMBER}))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")


@total_ordering
@dataclass(frozen=True, slots=True)
class Version:
    """A semantic version, parsed as leniently as by Masterminds/semver: ``v1`` is 1.0.0."""

    numbers: tuple[int, int, int]
    prerelease: str = ""

    @staticmethod
    def parse(text: str) -> Version | None:
        match = _VERSION.fullmatch(text)
        if match is None:
            return None
        major, minor, patch, prerelease = match.groups()
        return Version((int(major), int(minor or 0), int(patch or 0)), prerelease or "")

    def _key(self) -> tuple[tuple[int, int, int], bool, list[tuple[bool, int, str]]]:
        parts = self.prerelease.split(".") if self.prerelease else []
        bare = [part.lstrip("0") if part.isdigit() else "" for part in parts]  # numbers of any length, by their digits
        keys = [(not part.isdigit(), len(digits), digits or part) for part, digits in zip(parts, bare)]
        return self.numbers, not self.prerelease, keys

    def __lt__(self, other: Version) -> bool:
        return self._key() < other._key()


Constraint = Callable[[Version], bool]

_TERM = re.compile(
    rf"\s*(=|!=|>|<|>=|=>|<=|=<|~|~>|\^)?\s*v?({_NUMBER}|[xX*])(?:\.({_NUMBER}|[xX*]))?(?:\.({_NUMBER}|[xX*]))?"
    r"(-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?(?=[\s,]|$)[\s,]*"
)
MAX_CONSTRAINT = 1000
"""Letters of a range; looking for its hyphens takes time by their square."""
_HYPHEN = re.compile(r"(\S+)\s+-\s+(\S+)")


def parse_constraint(text: str) -> Constraint | None:
    """Parse ``1.x``, ``>=1.0 <2``, ``~1.2 || ^3``, ``1 - 2`` into a predicate, or None if it is no constraint.

    Prereleases match only if one of the joined terms has one (Masterminds/semver 3.4).
    """
    if len(text) > MAX_CONSTRAINT:
        return None
    alternatives: list[list[Constraint]] = []
    for part in text.split("||"):
        terms = _terms(_HYPHEN.sub(r">=\1 <=\2", part.strip()))
        if terms is None:
            return None
        stable = [] if any(with_prerelease for _, with_prerelease in terms) else [_is_release]
        alternatives.append([*stable, *(test for test, _ in terms)])
    return lambda version: any(all(term(version) for term in terms) for terms in alternatives)


def _is_release(version: Version) -> bool:
    return not version.prerelease


def _terms(text: str) -> list[tuple[Constraint, bool]] | None:
    """Return the terms, each with whether it names a prerelease."""
    terms: list[tuple[Constraint, bool]] = []
    position = 0
    while position < len(text):
        match = _TERM.match(text, position)
        if match is None or match.end() == position:
            return None
        terms.append(_term(match))
        position = match.end()
    return terms or None


def _term(match: re.Match[str]) -> tuple[Constraint, bool]:
    operator, *texts, prerelease = match.groups()
    given: list[int] = []
    for part in texts:
        if part is None or part in "xX*":
            break
        given.append(int(part))
    low = Version((*given, 0, 0, 0)[:3], (prerelease or "")[1:])  # type: ignore[arg-type]
    return _comparison(operator or "=", given, low), bool(low.prerelease)


def _comparison(operator: str, given: list[int], low: Version) -> Constraint:
    above = _above(given, len(given))
    match operator:
        case "=":
            return (lambda v: low <= v < above) if len(given) < 3 else (lambda v: v == low)
        case "!=":
            return (lambda v: not low <= v < above) if len(given) < 3 else (lambda v: v != low)
        case ">":
            return (lambda v: v >= above) if len(given) < 3 else (lambda v: v > low)
        case ">=" | "=>":
            return lambda v: v >= low
        case "<":
            return lambda v: v < low
        case "<=" | "=<":
            return (lambda v: v < above) if len(given) < 3 else (lambda v: v <= low)
        case "~" | "~>":
            top = _above(given, min(len(given), 2))
            return lambda v: low <= v < top
        case _:
            leading = next((index for index, number in enumerate(given) if number), len(given) - 1)
            caret = _above(given, leading + 1)
            return lambda v: low <= v < caret


def _above(given: list[int], kept: int) -> Version:
    """Return the first version after all that share the first ``kept`` numbers of ``given``."""
    if kept <= 0:
        return Version((2**63, 0, 0))
    head = [*given[: kept - 1], given[kept - 1] + 1]
    return Version((*head, 0, 0, 0)[:3])  # type: ignore[arg-type]
