"""Laws that people keep in their repository, as CEL in files ``*.rehearsal.yaml``; pure. Entry point: :func:`own_laws`.

A law about a kind is checked at each version of each object of it since the commit, with ``object``, ``before`` (the
version before, or null), ``gone`` and ``at`` (seconds since the commit). A law without a kind is checked once, at the
end, with ``objects`` (all that are there) and ``journal`` (``at``, ``who``, ``subject``, ``what``, ``why``).
Expressions have no clock, no chance and a bound on their steps; one that cannot be evaluated breaks its law.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import YamlError, load
from syncline.rehearsal.answer.condition import MAX_STEPS, OF_END, OF_OBJECT, Condition, condition_of, end_values
from syncline.rehearsal.answer.laws import BUILT_IN, Finding, RecordLaw
from syncline.rehearsal.fields import Field
from syncline.rehearsal.given.files import Files
from syncline.rehearsal.record import Record, Version
from syncline.rehearsal.scenario import ScenarioError

SUFFIX = ".rehearsal.yaml"
FIRST_LINE = "# +argocd:skip-file-rendering"
KEYS = ("laws", "scenarios")
"""Scenarios are for ``syncline test``: ``rehearsal/testing/reading.py``."""
LAW = ("name", "demand", "reason", "kind", "must")
MAX_LAWS = 100
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def own_laws(files: Files) -> tuple[RecordLaw, ...]:
    """Return the laws of a repository, by file. Raises ScenarioError (usage) with file, key, value and what is
    allowed."""
    found: list[RecordLaw] = []
    names = {law.name for law in BUILT_IN}
    for path in sorted(files.content):
        if not path.endswith(SUFFIX):
            continue
        for at in _laws_in(path, files.text(path)):
            law = _law(at)
            if law.name in names:
                raise at["name"].wrong(f"the name {law.name} twice", "a name that no other law has")
            names.add(law.name)
            found.append(law)
    if len(found) > MAX_LAWS:
        raise ScenarioError(f"*{SUFFIX}: found {len(found)} laws; allowed: at most {MAX_LAWS}", usage=True)
    return tuple(found)


def _laws_in(path: str, text: str) -> tuple[Field, ...]:
    if not text.startswith(FIRST_LINE):
        said = f"{path}: the first line is not {FIRST_LINE!r}, so that the file would be deployed; put it there"
        raise ScenarioError(said, usage=True)
    try:
        return Field(Path(path), "", load(text.encode(), file=path)).known(*KEYS)["laws"].each()
    except YamlError as error:
        raise ScenarioError(str(error), usage=True) from error


def _law(at: Field) -> RecordLaw:
    name = at.known(*LAW).needed("name", "a name such as web-keeps-two")
    if not _NAME.fullmatch(name):
        raise at["name"].wrong(repr(name), "lower case letters, digits and -")
    text, kind = at.needed("must", "an expression in CEL that is true while the law holds"), at["kind"].text()
    condition = condition_of(at["must"], text, OF_OBJECT if kind else OF_END)
    demand = at["demand"].text(text)
    check = _of_objects(condition, kind) if kind else _of_end(condition)
    return RecordLaw(name, demand, at["reason"].text("it is a law of this repository"), check)


def _of_objects(condition: Condition, kind: str) -> Callable[[Record], Iterator[Finding]]:
    def check(record: Record) -> Iterator[Finding]:
        left = [MAX_STEPS]
        for ref, versions in record.by_ref.items():
            if kind not in (ref.kind, f"{ref.group}/{ref.kind}"):
                continue
            before: Version | None = None
            for version in versions:
                if version.at >= record.began:
                    known = before.obj if before is not None and not before.gone else None
                    values: Obj = {"object": version.obj, "before": known, "gone": version.gone}
                    values["at"] = record.seconds(version.at)
                    if why := condition.broken(values, left):
                        name = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
                        yield Finding(version.at, f"{ref.kind} {name} {why}")
                        return
                before = version

    return check


def _of_end(condition: Condition) -> Callable[[Record], Iterator[Finding]]:
    def check(record: Record) -> Iterator[Finding]:
        if why := condition.broken(end_values(record), [MAX_STEPS]):
            yield Finding(record.ended, f"at the end, it {why}")

    return check
