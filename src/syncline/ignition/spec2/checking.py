"""Judging a configuration of specification 1 or 2.x, with upstream's order of entries and its quoted source.

Every object and field is visited, also absent ones. An entry gets the place of the innermost value that stands in the
source (its last byte, as upstream counts), and the lines before it if the value itself is what the rule examined.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from syncline.ignition.jsontext import Place, Source
from syncline.ignition.report import Entry, Report, Severity
from syncline.ignition.schema import Field, Object, Schema
from syncline.ignition.spec2.rules import FIELD_RULES, LIST_RULES, OBJECT_RULES, TYPE_RULES, Said
from syncline.ignition.typed import folded


@dataclass(slots=True)
class _Finding:
    severity: Severity
    message: str
    offset: int | None = None
    quoted: bool = False


def check(table: Schema, config: dict[str, Any], source: Source | None = None) -> Report:
    """The report about a decoded configuration; without source there are no places, and no words on unknown keys."""
    if source is None or _all_known(table, table.root, source.value):
        findings = _Walker(table, None).value(table.root, config, None)
        if source is None or not findings:
            return Report(tuple(_entry(finding, None) for finding in findings))
    findings = _Walker(table, source).value(table.root, config, source.root)
    for finding in findings[_QUOTED_MAX:]:
        finding.quoted = False
    return Report(tuple(_entry(finding, source) for finding in findings))


_QUOTED_MAX = 200
"""Entries that quote the source; a client that has more of them reads the first."""


def _all_known(table: Schema, kind: Object, document: Any) -> bool:
    """Whether no key is unknown; then places are only needed if a rule has something to say."""
    if not isinstance(document, dict):
        return True
    if not document.keys() <= kind.fields.keys() or (kind.name == "Security" and table.minor == 3):
        return False
    for name, part in document.items():
        field = kind.fields[name]
        if not field.scalar:
            inner = table.objects[field.type]
            items = part if isinstance(part, list) else (part,)
            if not all(_all_known(table, inner, item) for item in items):
                return False
    return True


def _entry(finding: _Finding, source: Source | None) -> Entry:
    if finding.offset is None or source is None:
        return Entry(finding.severity, finding.message)
    if not finding.quoted:
        line, column = _place(source, finding.offset)
        return Entry(finding.severity, finding.message, (), line, column)
    return Entry(finding.severity, finding.message, (), *excerpt(source, finding.offset))


def excerpt(source: Source, offset: int) -> tuple[int, int, str]:
    """Line and column of a byte, and the lines up to there with a caret under it."""
    offset = min(offset, len(source.raw))
    line, column = _place(source, offset)
    start = source.line_start(line)
    rows = [(line, source.raw[start:offset])]
    if line > 1:
        rows.insert(0, (line - 1, source.raw[source.line_start(line - 1) : start - 1]))
    text = "".join(f"{number:5d}: {_shown(row)}\n" for number, row in rows)
    return line, column, f"{text}{' ' * min(column + 5, _SHOWN_MAX)}^\n"


def _place(source: Source, offset: int) -> tuple[int, int]:
    """Line and column; the latter from 0 in the first line, from 1 in others: upstream's habit."""
    line = source.line(offset)
    return line, offset - source.line_start(line) + (line > 1)


_SHOWN_MAX = 64 * 1024
"""Bytes of a line that are quoted: a whole configuration in one line is quoted up to here once for each entry."""


def _shown(row: bytes) -> str:
    return row[:_SHOWN_MAX].decode("utf-8", "replace")


@dataclass(slots=True)
class _Walker:
    table: Schema
    source: Source | None

    def value(self, kind: Object, value: dict[str, Any], place: Place | None) -> list[_Finding]:
        """One object: its own rule first; if that is fatal nothing else."""
        rule = OBJECT_RULES.get(kind.name)
        findings = [] if rule is None else _findings(rule(self.table.minor, value))
        fatal = any(finding.severity is Severity.ERROR for finding in findings)
        _put(findings, place, quoted=True)
        if not fatal:
            inner = self.fields(kind, value, place)
            _put(inner, place, quoted=False)
            findings += inner
        return findings

    def fields(self, kind: Object, value: dict[str, Any], place: Place | None) -> list[_Finding]:
        if kind.name == "Security" and self.table.minor == 3:
            # in 2.3 the section was embedded, so its content is looked for one level too high
            kind, value = self.table.objects["TLS"], value.get("tls", {})
        members = place.shape if place is not None and isinstance(place.shape, dict) else None
        findings: list[_Finding] = []
        for name, field in kind.fields.items():
            inner = members[name][1] if members and name in members else None
            rule = FIELD_RULES.get((kind.name, name)) if self.table.minor >= 1 else None
            if rule is not None:
                said = _findings(rule(self.table.minor, value))
                _put(said, inner, quoted=True)
                findings += said
            findings += self.field(field, value.get(name), inner)
        if members is not None and self.source is not None:
            findings += self.unknown(kind, members)
        return findings

    def field(self, field: Field, value: Any, place: Place | None) -> list[_Finding]:
        if field.many:
            return self.items(field, value or (), place)
        if field.scalar:
            return self.plain(field, value, place)
        if value is None:
            if field.nullable:
                return []
            value = {}
        return self.value(self.table.objects[field.type], value, place)

    def plain(self, field: Field, value: Any, place: Place | None) -> list[_Finding]:
        rule = TYPE_RULES.get(field.type)
        if rule is None or (value is None and field.nullable):
            return []
        zero = 0 if field.type == "filemode" else ""
        findings = _findings(rule(self.table.minor, zero if value is None else value))
        _put(findings, place, quoted=True)
        return findings

    def items(self, field: Field, items: Any, place: Place | None) -> list[_Finding]:
        places = place.shape if place is not None and isinstance(place.shape, list) else ()
        rule = LIST_RULES.get(field.type)
        findings = [] if rule is None else _findings(rule(self.table.minor, items))
        _put(findings, place, quoted=True)
        if any(finding.severity is Severity.ERROR for finding in findings):
            return findings
        for index, item in enumerate(items):
            inner = places[index] if index < len(places) else place
            if field.scalar:
                findings += self.plain(field, item, inner)
            else:
                findings += self.value(self.table.objects[field.type], item, inner)
        _put(findings, place, quoted=False)
        return findings

    def unknown(self, kind: Object, members: dict[str, tuple[int, Place]]) -> list[_Finding]:
        findings: list[_Finding] = []
        assert self.source is not None
        for key, (start, _) in members.items():
            if key in kind.fields:
                continue
            end = self.source.key_end(start)
            findings.append(_Finding(Severity.WARNING, f"Config has unrecognized key: {key}", end, True))
            for name in kind.fields:
                if name.lower() == folded(key):
                    findings.append(_Finding(Severity.INFO, f"Did you mean {name} instead of {key}", end, True))
        return findings


def _findings(said: Iterator[Said]) -> list[_Finding]:
    return [_Finding(severity, message) for severity, message in said]


def _put(findings: list[_Finding], place: Place | None, *, quoted: bool) -> None:
    """Give a place to findings that have none yet."""
    if place is None:
        return
    for finding in findings:
        if finding.offset is None:
            finding.offset, finding.quoted = place.end - 1, quoted
