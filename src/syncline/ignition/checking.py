"""Checks a configuration: objects by their rules, lists for duplicates, the source for unknown keys. :func:`check`.

The three checks run in upstream's order, each parents first and fields in the order of the table, so the report has
upstream's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from syncline.ignition.jsontext import Source
from syncline.ignition.report import Entry, Path, Report, Severity, path_text
from syncline.ignition.rules import RULES, Finding, Rule, Spec, path_problem
from syncline.ignition.schema import Object, schema


def check(spec: Spec, config: dict[str, Any], source: Source | None = None) -> Report:
    """Return the report about a canonical configuration, with lines and columns if its source is given."""
    findings = [*rule_findings(spec, config), *duplicates(spec, config)]
    if source is None:
        return Report(tuple(Entry(severity, message, path) for severity, path, message in findings))
    unused = list(_unused(spec, config, source.value))
    if not findings and not unused:
        return Report()
    entries = [_placed(finding, source, key=False) for finding in findings]
    return Report((*entries, *(_placed(finding, source, key=key) for finding, key in unused)))


def _placed(finding: Finding, source: Source, *, key: bool) -> Entry:
    severity, path, message = finding
    line, column = source.line_column(source.key_start(path) if key else source.place(path).start)
    return Entry(severity, message, path, line, column)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What there is to read in one kind of object. ``lists``: name, kind of the items (None for plain ones), whether
    the list shares its namespace with others; ``parts``: name, whether it is a list, plan of the items."""

    rule: Rule | None
    paths: tuple[str, ...]
    lists: tuple[tuple[str, Object | None, bool], ...]
    parts: tuple[tuple[str, bool, _Plan], ...]


@cache
def _plan(minor: int, name: str) -> _Plan:
    objects = schema(minor).objects
    kind = objects[name]
    fields = kind.fields.values()
    return _Plan(
        RULES.get(name),
        tuple(field.name for field in fields if field.type == "device" and field.many),
        tuple(
            (field.name, None if field.scalar else objects[field.type], field.name in kind.shared)
            for field in fields
            if field.many and field.name not in kind.plain
        ),
        tuple((field.name, field.many, _plan(minor, field.type)) for field in fields if not field.scalar),
    )


# -- the rules of objects --------------------------------------------------------------------------------------------


def rule_findings(spec: Spec, config: dict[str, Any]) -> list[Finding]:
    """Return the findings of the rules, with paths from the root."""
    findings: list[Finding] = []
    _walk(spec, _plan(spec.minor, "Config"), config, (), findings)
    return findings


def _walk(spec: Spec, plan: _Plan, value: dict[str, Any], path: Path, findings: list[Finding]) -> None:
    if plan.rule is not None:
        for severity, inner, message in plan.rule(spec, value):
            findings.append((severity, (*path, *inner), message))
    for name in plan.paths:
        for index, device in enumerate(value.get(name) or ()):
            if problem := path_problem(device):
                findings.append((Severity.ERROR, (*path, name, index), problem))
    for name, many, below in plan.parts:
        part = value.get(name)
        if not part:
            continue
        if not many:
            _walk(spec, below, part, (*path, name), findings)
            continue
        for index, item in enumerate(part):
            _walk(spec, below, item, (*path, name, index), findings)


# -- duplicates ------------------------------------------------------------------------------------------------------


def item_key(kind: Object | None, item: Any) -> str:
    """Return the key that identifies an item of a list; ``kind`` is None for plain items."""
    if kind is None:
        return str(item)
    if kind.key == "partition":
        if number := item.get("number"):
            return f"number:{number}"
        label = item.get("label")
        return "" if label is None else f"label:{label}"
    return item.get(kind.key) or ""


def duplicates(spec: Spec, config: dict[str, Any]) -> list[Finding]:
    """Return the entries whose key an earlier entry of the same namespace has."""
    findings: list[Finding] = []
    _double(_plan(spec.minor, "Config"), config, (), findings)
    return findings


def _double(plan: _Plan, value: dict[str, Any], path: Path, findings: list[Finding]) -> None:
    common: set[str] = set()
    for name, kind, shared in plan.lists:
        items = value.get(name)
        if not items:
            continue
        seen = common if shared else set()
        for index, item in enumerate(items):
            key = item_key(kind, item)
            if key in seen:
                findings.append((Severity.ERROR, (*path, name, index), "duplicate entry defined"))
            seen.add(key)
    for name, many, below in plan.parts:
        part = value.get(name)
        if not part or not (below.lists or below.parts):
            continue
        if not many:
            _double(below, part, (*path, name), findings)
            continue
        for index, item in enumerate(part):
            _double(below, item, (*path, name, index), findings)


# -- unknown keys ----------------------------------------------------------------------------------------------------


def _unused(spec: Spec, config: dict[str, Any], document: Any) -> Iterator[tuple[Finding, bool]]:
    """Keys that the specification does not know, and objects written as something else; the flag says whether the
    finding is about a key."""
    yield from _unknown(spec, schema(spec.minor).root, document, ())


def _unknown(spec: Spec, kind: Object, document: Any, path: Path) -> Iterator[tuple[Finding, bool]]:
    if not isinstance(document, dict):
        message = (
            f"context tree does not match content tree at {path_text(path)}. Line and column reporting may be "
            "inconsistent. Unused keys may not be reported"
        )
        yield (Severity.WARNING, path, message), False
        return
    for key in document:
        if key not in kind.fields:
            yield (Severity.WARNING, (*path, key), f"unused key {key}"), True
    objects = schema(spec.minor).objects
    for name, field in kind.fields.items():
        if field.scalar or name not in document:
            continue
        inner, part = objects[field.type], document[name]
        if not field.many:
            if part is not None or not field.nullable:
                yield from _unknown(spec, inner, part, (*path, name))
        elif isinstance(part, list):
            for index, item in enumerate(part):
                yield from _unknown(spec, inner, item, (*path, name, index))
