"""Parses specification 1 and 2.x: the newest version is tried first, then the previous ones. :func:`parse2`.

Source: coreos/ignition v0.35.0 ``config/v2_*/config.go``.
"""

from __future__ import annotations

import gzip
import zlib
from typing import Any, NamedTuple

from syncline.ignition.golang import UrlError, Version, parse_url, parse_version
from syncline.ignition.jsontext import JsonError, Source, read
from syncline.ignition.report import Entry, Report, Severity
from syncline.ignition.schema import Schema
from syncline.ignition.spec2.checking import check, excerpt
from syncline.ignition.spec2.lifting import lift
from syncline.ignition.spec2.tables import FIRST, NEWEST, spec1, spec2
from syncline.ignition.typed import Mistype, decode_as, mistypes

INVALID = "config is not valid"
UNKNOWN_VERSION = "unsupported config version"


class Parsed2(NamedTuple):
    """``config`` is decoded at the version that was asked for; None if refused. ``error`` as upstream says it."""

    config: dict[str, Any] | None
    report: Report
    error: str | None

    @property
    def text(self) -> str:
        """The report as 2.x prints it: entries with a newline between them."""
        return "\n".join(_text(entry) for entry in self.report.entries)


def _text(entry: Entry) -> str:
    if entry.line is None:
        return f"{entry.severity.value}: {entry.message}"
    return f"{entry.severity.value} at line {entry.line}, column {entry.column}\n{entry.excerpt}{entry.message}"


def parse2(raw: bytes, newest: int = NEWEST) -> Parsed2:
    """Read a configuration of specification 1 or 2.0 to 2.``newest`` as 2.``newest``. Never raises."""
    refusal = _no_config(raw)
    if refusal:
        return Parsed2(None, Report(), refusal)
    try:
        source = read(raw)
    except JsonError as problem:
        return _refused(Source(raw, None), *problem.older)
    for minor in range(newest, -1, -1):
        table = spec2(minor)
        config, mistype = _decoded(table, source)
        version = None if mistype is not None else _version(minor, config)
        if version is None or version.older_than(Version(2, minor, 0)):
            continue
        if version != Version(2, minor, 0):
            return Parsed2(None, Report(), UNKNOWN_VERSION)
        report = check(table, config, source)
        if report.fatal:
            return Parsed2(None, report, INVALID)
        return Parsed2(lift(config, minor, newest), report, None)
    return _parse1(source, newest)


def _parse1(source: Source, newest: int) -> Parsed2:
    config, mistype = _decoded(spec1(), source)
    if mistype is not None:
        return _mistyped(source)
    if config["ignitionVersion"] != 1:
        return Parsed2(None, Report(), UNKNOWN_VERSION)
    report = check(spec1(), config, source)
    if report.fatal:
        return Parsed2(None, report, INVALID)
    old = Entry(Severity.DEPRECATED, "config format deprecated")
    return Parsed2(lift(config, FIRST, newest), report + Report((old,)), None)


def _mistyped(source: Source) -> Parsed2:
    """No version could read it: upstream looks once more with the newest for a place to show. That old reader gives up
    at the first number where none fits, and else tells the first wrong value."""
    if source.first is not None and isinstance(source.value, dict) and mistypes(spec2(NEWEST), source.first.value):
        source = source.first
    if not isinstance(source.value, dict):
        _, first = decode_as(spec2(NEWEST), source.value)
        found = [first] if first is not None else []
    else:
        found = mistypes(spec2(NEWEST), source.value)
    if not found:
        return Parsed2(None, Report(), "HandleParseErrors called with a valid config")
    mistype = next((one for one in found if one.message.startswith(_NO_NUMBER)), found[0])
    message, _, field = mistype.sentence(source).partition(" into ")
    place = source.place(mistype.path)
    wanted = field.rpartition(" of type ")[2]
    offset = place.end if place.shape is None else place.start
    return _refused(source, f"{message} into Go value of type {wanted}", offset)


_NO_NUMBER = "json: cannot unmarshal number into"


def _refused(source: Source, message: str, offset: int) -> Parsed2:
    line, column, text = excerpt(source, offset)
    return Parsed2(None, Report((Entry(Severity.ERROR, message, (), line, column, text),)), INVALID)


def _no_config(raw: bytes) -> str:
    if not raw:
        return "not a config (empty)"
    header = _unzipped_head(raw).partition(b"\n")[0]
    if header.decode("utf-8", "replace").rstrip() == "#cloud-config":
        return "not a config (found coreos-cloudconfig)"
    return "not a config (found coreos-cloudinit script)" if header.startswith(b"#!") else ""


_HEAD_MAX = 64 * 1024
"""Bytes that are unzipped to look for the first line of a script."""


def _unzipped_head(raw: bytes) -> bytes:
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        return zlib.decompressobj(wbits=31).decompress(raw, _HEAD_MAX)
    except (zlib.error, gzip.BadGzipFile):
        return raw


def _version(minor: int, config: dict[str, Any]) -> Version | None:
    text = config["ignition"].get("version", "")
    if minor == 0 and not text:
        return Version(0, 0, 0)
    return parse_version(text)


def _decoded(table: Schema, source: Source) -> tuple[dict[str, Any], Mistype | None]:
    """2.0 also parsed versions, URLs and hashes while reading. Values that a repeated key loses are read, too."""
    config, mistype = decode_as(table, source.value)
    if mistype is None and source.first is not None:
        mistype = decode_as(table, source.first.value)[1]
    if mistype is None and table.minor == 0 and not _readable(table, "Config", config):
        mistype = Mistype((), "unreadable value")
    return config, mistype


def _readable(table: Schema, kind: str, value: dict[str, Any]) -> bool:
    for name, field in table.objects[kind].fields.items():
        part = value.get(name)
        if part is None:
            continue
        for item in part if field.many else (part,):
            if not field.scalar:
                good = _readable(table, field.type, item)
            elif field.type == "semver":
                good = not item or parse_version(item) is not None
            elif field.type == "hash":
                good = "-" in item
            else:
                good = field.type != "url" or _is_url(item)
            if not good:
                return False
    return True


def _is_url(text: str) -> bool:
    try:
        parse_url(text)
    except UrlError:
        return False
    return True
