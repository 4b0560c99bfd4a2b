"""Parses configurations of spec 3.x: text to a canonical configuration, a report, or one error sentence.
:func:`parse`."""

from __future__ import annotations

from typing import Any, NamedTuple

from syncline.ignition.checking import check
from syncline.ignition.golang import Version, parse_version
from syncline.ignition.jsontext import JsonError, Source, line_column, read
from syncline.ignition.report import Entry, Report, Severity
from syncline.ignition.rules import Spec
from syncline.ignition.schema import NEWEST, version_text
from syncline.ignition.typed import Mistype, decode, folded

INVALID = "config is not valid"
EMPTY = "not a config (empty)"
INVALID_VERSION = "invalid config version (couldn't parse)"
UNKNOWN_VERSION = "unsupported config version"

_MINORS = {version_text(minor): minor for minor in range(NEWEST + 1)}


class Parsed(NamedTuple):
    """The result. ``config`` is canonical plain JSON at its own version, None if refused; then ``error`` has upstream's
    reason, and ``report`` the details if there are any. Warnings do not refuse."""

    config: dict[str, Any] | None
    report: Report
    error: str | None


def minor_of(version: Version) -> int | None:
    """Return the y of a known 3.y.0; None for every other version."""
    return _MINORS.get(str(version))


def parse(raw: bytes, *, newest: int = NEWEST, release_2_26: bool = False) -> Parsed:
    """Parse and check a configuration of spec 3.0 to 3.``newest`` at its own version. Never raises.

    Source: ``ParseCompatibleVersion`` of coreos/ignition, without its translation to the newest version.
    ``release_2_26``: see :class:`~syncline.ignition.rules.Spec`.
    """
    if not raw:
        return _refused(EMPTY)
    try:
        source = read(raw)
    except JsonError as problem:
        line, column = line_column(raw, problem.offset)
        return _refused(INVALID, Entry(Severity.ERROR, problem.message, (), line, column))
    for each in _readings(source):
        text, mistype = _version(each.value)
        if mistype is not None:
            return _refused(INVALID, _mistyped(each, mistype))
    version = parse_version(text)
    if version is None:
        return _refused(INVALID_VERSION)
    minor = minor_of(version)
    if minor is None or minor > newest:
        return _refused(UNKNOWN_VERSION)
    return parse_source(source, Spec(minor, release_2_26))


def parse_source(source: Source, spec: Spec) -> Parsed:
    """Like :func:`parse`, for parsed text of a known version."""
    for each in _readings(source):
        config, mistype = decode(spec.minor, each.value)
        if mistype is not None:
            return _refused(INVALID, _mistyped(each, mistype))
    report = check(spec, config, source)
    return Parsed(None, report, INVALID) if report.fatal else Parsed(config, report, None)


def validate(config: dict[str, Any], version: str, *, release_2_26: bool = False) -> Report:
    """The report about a canonical configuration (see :func:`~syncline.ignition.typed.canonical`) at ``version``
    (``3.4.0``): rules, then duplicates, without places. Raises ValueError for a version that does not exist."""
    parsed = parse_version(version)
    minor = None if parsed is None else minor_of(parsed)
    if minor is None:
        raise ValueError(f"Ignition spec {version!r}: known are {', '.join(_MINORS)}")
    # Also where nothing is in it: a configuration without version is none.
    stated = config if config.get("ignition") else {**config, "ignition": {"version": ""}}
    return check(Spec(minor, release_2_26), stated)


def _readings(source: Source) -> tuple[Source, ...]:
    """Values that a repeated key loses are read, too; the last reading counts."""
    return (source,) if source.first is None else (source.first, source)


def _refused(error: str, *entries: Entry) -> Parsed:
    return Parsed(None, Report(entries), error)


def _version(document: Any) -> tuple[str, Mistype | None]:
    """``ignition.version`` as upstream's first look reads it: keys in any case, the last one wins."""
    found = ""
    if document is None:
        return found, None
    if not isinstance(document, dict):
        return found, _stub((), document, "util.versionStub")
    for outer, section in document.items():
        if folded(outer) != "ignition" or section is None:
            continue
        if not isinstance(section, dict):
            return found, _stub((outer,), section, "struct { Version string }")
        for inner, value in section.items():
            if folded(inner) != "version" or value is None:
                continue
            if not isinstance(value, str):
                return found, _stub((outer, inner), value, "string")
            found = value
    return found, None


def _stub(path: tuple[str, ...], value: Any, wanted: str) -> Mistype:
    kinds = {bool: "bool", int: "number", float: "number", str: "string", list: "array"}
    what = kinds.get(type(value), "object")
    where = f"struct field versionStub.{'.'.join(path)}" if path else "value"
    return Mistype(path, f"json: cannot unmarshal {what} into Go {where} of type {wanted}")


def _mistyped(source: Source, mistype: Mistype) -> Entry:
    place = source.place(mistype.path)
    line, column = source.line_column(place.end if place.shape is None else place.start)
    return Entry(Severity.ERROR, mistype.sentence(source), (), line, column)
