"""What installed operators do, as data: which objects they make, when, and what they look at when they do.

A file of ``behaviours/``, or of the administrator's folder, describes the operator of one package. Each line names the
source that says so. An operator without a file is *unknown*: it makes nothing here, and nothing follows from that.

A line counts from when its operator is up (``when: started``), or from when an object of a kind is there
(``when: {group, kind}``); ``after`` is how long it takes. What it ``looks`` at is read at that moment, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from importlib.resources import files
from typing import Any, Final

from syncline.base.clock import time_or_none
from syncline.kube.objects import GroupKind, Obj, copied, dig, name_of, namespace_of
from syncline.kube.text.durations import DurationError, parse_duration
from syncline.kube.yaml.loading import load
from syncline.patterns.operators.catalogs.schemas import BEHAVIOUR, given, shape_problem
from syncline.patterns.operators.catalogs.standins import definitions_of

MOST_CHARS: Final = 200_000
MOST_DUE: Final = 1_000
"""Lines that an operator carries out, over all objects that trigger them."""
PLACE: Final = re.compile(r"\$\{(?P<name>[a-zA-Z][a-zA-Z0-9.-]*)\}")


class BehaviourError(ValueError):
    """A file of behaviours cannot be read; one sentence with the line and the fix."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a line reads: the first object of a kind, in the order of names, that has these values.

    ``named``: names that are preferred, before any that ``where`` finds. ``source``: who says so.
    """

    name: str
    kind: GroupKind
    named: tuple[str, ...] = ()
    where: Mapping[str, str] | None = None
    """Values by annotation; None: only ``named`` count."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that an operator does. ``trigger`` None: when it is up. ``needs``: the looks that must find something
    before it goes on."""

    name: str
    trigger: GroupKind | None
    after: timedelta
    looks: tuple[Look, ...]
    needs: tuple[str, ...]
    creates: tuple[Obj, ...]
    status: Obj | None
    source: str
    each: str = ""
    """Path of a list in the triggering object: the line counts for each entry, an object."""
    unless: tuple[tuple[str, str], ...] = ()
    """Environment variables in ``spec.config`` of the Subscription that switch the line off."""

    def kinds(self) -> Iterable[GroupKind]:
        if self.trigger is not None:
            yield self.trigger
        yield from (one.kind for one in self.looks)
        for one in self.creates:
            yield _group_kind(one)


@dataclass(frozen=True, slots=True)
class Behaviour:
    package: str
    lines: tuple[Line, ...]
    source: str = ""


@dataclass(frozen=True, slots=True)
class Behaviours:
    """All known operators by package."""

    by_package: Mapping[str, Behaviour] = field(default_factory=dict)

    def of(self, package: str) -> Behaviour | None:
        """Return what an operator does; None: it is unknown."""
        return self.by_package.get(package)

    def kinds(self) -> frozenset[GroupKind]:
        return frozenset(kind for one in self.by_package.values() for line in one.lines for kind in line.kinds())

    def with_(self, others: Behaviours) -> Behaviours:
        """Return these with others in place of those of the same package."""
        return Behaviours({**self.by_package, **others.by_package})


def _group_kind(obj: Obj) -> GroupKind:
    group, slash, _ = str(obj.get("apiVersion") or "").partition("/")
    return GroupKind(group if slash else "", str(obj.get("kind") or ""))


def read_behaviour(text: str, where: str) -> Behaviour:
    """Read one file. Raises :class:`BehaviourError`."""
    if len(text) > MOST_CHARS:
        raise BehaviourError(f"{where}: a file has at most {MOST_CHARS} characters")
    try:
        value = given(load(text, file=where))
    except ValueError as error:
        raise BehaviourError(f"{where}: {error}") from None
    if not isinstance(value, dict) or not value.get("package"):
        raise BehaviourError(f"{where}: write package: NAME and lines:")
    if not value.get("source"):
        raise BehaviourError(f"{where}: a file needs a source: the address of who says what the operator does")
    lines = value.get("lines") or []
    for number, one in enumerate(lines if isinstance(lines, list) else (), 1):
        unknown = set(one) - _FIELDS if isinstance(one, dict) else set()
        if unknown:
            raise BehaviourError(f"{where}: line {number}: unknown field {sorted(map(str, unknown))[0]}")
    if problem := shape_problem(value, BEHAVIOUR, where):
        raise BehaviourError(problem)
    made = tuple(_line(one, f"{where}: line {number}") for number, one in enumerate(lines, 1))
    return Behaviour(value["package"], made, str(value["source"]))


_FIELDS: Final = frozenset(
    ("name", "when", "after", "each", "unless", "looks", "needs", "serves", "creates", "status", "source")
)


def _line(line: Any, where: str) -> Line:
    if not line.get("source"):
        raise BehaviourError(f"{where}: a line needs a source: the address of who says so")
    when = line.get("when", "started")
    trigger = None if when == "started" else GroupKind(str(when.get("group") or ""), str(when["kind"]))
    looks = tuple(_look(one, where, str(line["source"])) for one in line.get("looks") or ())
    needs = tuple(line.get("needs") or ())
    missing = set(needs) - {one.name for one in looks}
    if missing:
        raise BehaviourError(f"{where}: needs {sorted(missing)[0]}, which is not one of its looks")
    try:
        after = parse_duration(str(line.get("after", "0s")))
    except DurationError as error:
        raise BehaviourError(f"{where}: after: {error}") from None
    creates, status = (*definitions_of(line.get("serves") or ()), *(line.get("creates") or ())), line.get("status")
    each, unless = str(line.get("each") or ""), tuple(sorted((line.get("unless") or {}).items()))
    name, source = str(line.get("name") or ""), str(line["source"])
    return Line(name, trigger, after, looks, needs, creates, status, source, each, unless)


def _look(line: Any, where: str, source: str) -> Look:
    if not line.get("name") or not line.get("kind"):
        raise BehaviourError(f"{where}: a look has a name and a kind")
    kind = GroupKind(str(line.get("group") or ""), str(line["kind"]))
    return Look(
        str(line["name"]),
        kind,
        tuple(line.get("named") or ()),
        line.get("annotations"),
        str(line.get("source") or source),
    )


def shipped() -> Behaviours:
    """Return the behaviours that come with Syncline."""
    folder = files("syncline.patterns.operators") / "behaviours"
    found = sorted((one for one in folder.iterdir() if one.name.endswith(".yaml")), key=lambda one: one.name)
    read = (read_behaviour(one.read_text(encoding="utf-8"), one.name) for one in found)
    return Behaviours({one.package: one for one in read})


def found_by(look: Look, objects: Sequence[Obj]) -> str:
    """Return the name of the object that a look finds; "" if there is none."""
    names = {name_of(one) for one in objects}
    preferred = next((name for name in look.named if name in names), "")
    if preferred or look.where is None:
        return preferred
    wanted = look.where.items()
    fitting = sorted(name_of(one) for one in objects if wanted <= (dig(one, "metadata", "annotations") or {}).items())
    return fitting[0] if fitting else ""


@dataclass(frozen=True, slots=True)
class Due:
    """A line that an operator carries out. ``obj``: what triggered it, if that was an object. ``at``: when it is due;
    ``waits_for``: what it looks for and does not find."""

    line: Line
    obj: Obj | None
    at: datetime
    waits_for: str = ""
    found: Mapping[str, str] = field(default_factory=dict)
    entry: Mapping[str, Any] = field(default_factory=dict)
    """The entry of the list ``each`` that it is about."""

    def objects(self, namespace: str) -> tuple[Obj, ...]:
        """Return the objects that it makes. ``namespace``: of the operator."""
        home = namespace_of(self.obj) if self.obj is not None else namespace
        names = {
            "namespace": namespace,
            "object": name_of(self.obj) if self.obj is not None else "",
            "object.namespace": home,
        }
        names |= {f"each.{key}": str(value) for key, value in self.entry.items()}
        return tuple(_filled(copied(one), {**names, **self.found}) for one in self.line.creates)


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    """Replace ``${NAME}`` in all texts; a field of which nothing is left goes."""
    if isinstance(value, dict):
        made = {key: _filled(one, names) for key, one in value.items()}
        return {key: one for key, one in made.items() if one != "" or value[key] == ""}
    if isinstance(value, list):
        return [_filled(one, names) for one in value]
    if isinstance(value, str):
        return PLACE.sub(lambda found: names.get(found["name"], found[0]), value)
    return value


def due(
    behaviour: Behaviour,
    up_since: datetime,
    objects: Mapping[GroupKind, Sequence[Obj]],
    now: datetime,
    environment: Mapping[str, str] | None = None,
) -> list[Due]:
    """Return the lines of an operator that is up since then, each with its moment. ``environment``: what its
    Subscription sets."""
    made: list[Due] = []
    for line in behaviour.lines:
        if line.unless and set(line.unless) <= (environment or {}).items():
            continue
        triggers: Sequence[Obj | None] = (None,) if line.trigger is None else objects.get(line.trigger, ())
        for obj in triggers:
            created = time_or_none(dig(obj, "metadata", "creationTimestamp")) if obj is not None else None
            at = max(up_since, created or up_since) + line.after
            made += (_look_around(Due(line, obj, at, entry=entry), objects, now) for entry in _entries(line, obj))
    return made[:MOST_DUE]


def _entries(line: Line, obj: Obj | None) -> Iterable[Obj]:
    if not line.each:
        return ({},)
    found = dig(obj or {}, *line.each.split("."), default=None)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else ()


def _look_around(one: Due, objects: Mapping[GroupKind, Sequence[Obj]], now: datetime) -> Due:
    if one.at > now:
        return one
    found = {look.name: found_by(look, objects.get(look.kind, ())) for look in one.line.looks}
    missing = next((name for name in one.line.needs if not found[name]), "")
    return replace(one, waits_for=missing, found=found)
