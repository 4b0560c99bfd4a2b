"""What the next reconcile of an ApplicationSet does, as frozen data: :class:`PlannedSet`. For ``plan appset/NAME``,
``appset generate``, ``appset diff`` and rehearsals; ``assembly/inspection/sets.py`` makes it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from syncline.assembly.inspection.differences import ObjectDifference
from syncline.assembly.inspection.preview import PlannedSync, Verdict
from syncline.kube.objects import Obj, ObjectRef

MAX_DEPTH = 32
"""Depth to which fields are compared to name them."""
MAX_FIELDS = 500
"""Changed fields of an Application that are named."""
MAX_TEXT = 120
"""Characters of a value."""
ROW_VALUES, MAX_SHORT = 4, 40
"""Parameters of a row that a line names, and the characters of their values."""
_DERIVED = re.compile(r"Normalized$|\[\d+\]$|\.segments$")
"""Parameters of paths and names that are made of others."""


class SetVerb(StrEnum):
    """What happens to one Application."""

    CREATE = "create"
    CHANGE = "change"
    ADOPT = "adopt"
    """It exists without an owner: it is taken over and overwritten."""
    ORPHAN = "orphan"
    """It stays without an owner."""
    DELETE = "delete"
    KEEP = "keep"
    """The policy lets it stay as it is, although no row makes it any more or it may differ."""
    HOLD = "hold"
    """It would be created or deleted, but the deletions of the set are to be confirmed."""
    REFUSE = "refuse"
    """It is invalid, or another owner controls it: neither written nor deleted."""
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field of an Application: its path, and both values as text; empty: absent."""

    path: str
    before: str
    after: str

    def to_obj(self) -> Obj:
        return {"field": self.path, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class Origin:
    """The row that makes an Application. ``number`` counts from 1."""

    element: str
    """``spec.generators[0].matrix``."""
    number: int
    values: Mapping[str, str] = field(repr=False, hash=False)

    def __str__(self) -> str:
        """Return ``spec.generators[0].list row 2 (team=blue, …)``, without parameters that say what others say."""
        pairs = [f"{name}={_cut(value, MAX_SHORT)}" for name, value in self.values.items() if self._says(name)]
        more = f", … {len(pairs) - ROW_VALUES} more" if len(pairs) > ROW_VALUES else ""
        values = f" ({', '.join(pairs[:ROW_VALUES])}{more})" if pairs else ""
        return f"{self.element} row {self.number}{values}"

    def _says(self, name: str) -> bool:
        return bool(self.values[name]) and not _DERIVED.search(name)

    def to_obj(self) -> Obj:
        return {"generator": self.element, "row": self.number, "values": dict(self.values)}


@dataclass(frozen=True, slots=True)
class PlannedApplication:
    """One Application of the set, with what changes in it."""

    verb: SetVerb
    ref: ObjectRef
    why: str
    origin: Origin | None = None
    fields: tuple[FieldChange, ...] = ()
    difference: ObjectDifference | None = None
    wanted: Obj | None = field(default=None, repr=False)
    """The Application as it is stored afterwards; None if it goes or is not known."""
    own: PlannedSync | None = None
    """The plan of its next sync, where it was asked for."""

    def to_obj(self) -> Obj:
        made: Obj = {"action": str(self.verb), "application": f"{self.ref.namespace}/{self.ref.name}"}
        made |= {"reason": self.why, "row": self.origin.to_obj() if self.origin else None}
        made |= {"fields": [one.to_obj() for one in self.fields]}
        return made | ({"plan": self.own.to_obj()} if self.own is not None else {})


@dataclass(frozen=True, slots=True)
class PlannedInStep:
    """An Application in a step. ``waits``: why it is not Healthy yet; empty if it is."""

    name: str
    status: str
    waits: str = ""

    def to_obj(self) -> Obj:
        return {"application": self.name, "status": self.status, "why": self.waits}


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of a RollingSync. ``number`` 0: Applications in no step."""

    number: int
    selects: str
    max_update: str
    applications: tuple[PlannedInStep, ...]
    waits: str = ""
    """What the step waits for before any of its Applications is synced."""

    def to_obj(self) -> Obj:
        made: Obj = {"step": self.number, "selects": self.selects, "maxUpdate": self.max_update}
        return made | {"waitsFor": self.waits, "applications": [one.to_obj() for one in self.applications]}


@dataclass(frozen=True, slots=True)
class PlannedFailure:
    """Why nothing is created, changed or deleted at all. ``reason``: upstream's; ``place``: the generator element, with
    the row whose template failed."""

    reason: str
    message: str
    place: str = ""
    origin: Origin | None = None
    field: str = ""
    """The field of the set whose template failed: ``spec.template.spec.source.path``; empty if it is not known."""

    def __str__(self) -> str:
        place = str(self.origin) if self.origin is not None else self.place
        named = ", ".join(text for text in (self.field, place) if text)
        return f"{named}: {self.message}" if named else self.message

    def to_obj(self) -> Obj:
        made: Obj = {"reason": self.reason, "message": self.message, "generator": self.place, "field": self.field}
        return made | ({"row": self.origin.to_obj()} if self.origin is not None else {})


def together(failures: Iterable[PlannedFailure]) -> dict[PlannedFailure, str]:
    """Return the first of the failures that say the same, and how many other rows have it: `` (and 3 more rows)``."""
    rows: dict[tuple[str, str, str], list[PlannedFailure]] = {}
    for one in failures:
        rows.setdefault((one.place, one.field, one.message), []).append(one)
    counts = ((each[0], len(each) - 1) for each in rows.values())
    return {one: f" (and {more} more row{'' if more == 1 else 's'})" if more else "" for one, more in counts}


@dataclass(frozen=True, slots=True)
class PlannedSet:
    """A set's next reconcile."""

    ref: ObjectRef
    policy: str = "sync"
    rows: int = 0
    applications: tuple[PlannedApplication, ...] = ()
    steps: tuple[PlannedStep, ...] = ()
    warnings: tuple[str, ...] = ()
    failures: tuple[PlannedFailure, ...] = ()
    unsafe: tuple[str, ...] = ()
    """Deletions that wait for a confirmation."""

    def count(self, verb: SetVerb) -> int:
        return sum(one.verb is verb for one in self.applications)

    @property
    def verdict(self) -> Verdict:
        """The worst result, of the plans of its Applications too."""
        below = [one.own.verdict for one in self.applications if one.own is not None]
        changes = any(one.verb not in (SetVerb.UNCHANGED, SetVerb.KEEP) for one in self.applications)
        if self.unsafe or Verdict.UNSAFE in below:
            return Verdict.UNSAFE
        if self.failures or self.count(SetVerb.REFUSE) or Verdict.BLOCKED in below:
            return Verdict.BLOCKED
        return Verdict.CHANGES if changes or Verdict.CHANGES in below else Verdict.NOTHING

    def to_obj(self) -> Obj:
        return {
            "applicationSet": f"{self.ref.namespace}/{self.ref.name}",
            "policy": self.policy,
            "rows": self.rows,
            "verdict": str(self.verdict),
            "applications": [one.to_obj() for one in self.applications],
            "steps": [one.to_obj() for one in self.steps],
            "warnings": list(self.warnings),
            "failures": [one.to_obj() for one in self.failures],
            "unsafe": list(self.unsafe),
        }


def values_of(params: Mapping[str, Any]) -> dict[str, str]:
    """Return a row's parameters with dotted names and values as text, each cut to the maximum length."""
    found: dict[str, str] = {}
    _flatten(params, "", 0, found)
    return found


def _flatten(value: Any, path: str, depth: int, found: dict[str, str]) -> None:
    if len(found) >= MAX_FIELDS:
        return
    if isinstance(value, Mapping) and value and depth < MAX_DEPTH:
        for key, below in value.items():
            _flatten(below, f"{path}.{key}" if path else str(key), depth + 1, found)
    else:
        found[path] = value_text(value)


def value_text(value: Any) -> str:
    """Return a value on one line, cut to the maximum length."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, float) and value.is_integer():
        text = str(int(value))
    elif isinstance(value, list):
        text = f"[{', '.join(value_text(one) for one in value)}]"
    elif isinstance(value, Mapping):
        text = f"{{{', '.join(f'{key}: {value_text(one)}' for key, one in value.items())}}}"
    elif isinstance(value, bool) or value is None:
        text = "null" if value is None else str(value).lower()
    else:
        text = str(value)
    return _cut(text, MAX_TEXT)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def field_changes(before: Obj, after: Obj) -> tuple[FieldChange, ...]:
    """Return the fields that differ, in the order of ``after``, then those that go; at most the limit."""
    return tuple(_changes(before, after, "", 0))[:MAX_FIELDS]


def patched_fields(before: Obj, patch: Obj) -> tuple[FieldChange, ...]:
    """Return the fields that a merge patch changes in ``before``."""
    return tuple(_patched(before, patch, "", 0))[:MAX_FIELDS]


def _patched(before: Any, patch: Any, path: str, depth: int) -> list[FieldChange]:
    if isinstance(before, Mapping) and isinstance(patch, Mapping) and depth < MAX_DEPTH:
        pairs = ((before.get(key), value, _joined(path, str(key))) for key, value in patch.items())
        return [change for old, new, at in pairs for change in _patched(old, new, at, depth + 1)]
    return _changes(before, patch, path, depth)


def _changes(before: Any, after: Any, path: str, depth: int) -> list[FieldChange]:
    if before == after and type(before) is type(after):
        return []
    if before is None and isinstance(after, Mapping) and after:
        before = {}
    if isinstance(before, Mapping) and isinstance(after, Mapping) and depth < MAX_DEPTH:
        keys = dict.fromkeys((*after, *before))
        return [
            change
            for key in keys
            for change in _changes(before.get(key), after.get(key), _joined(path, str(key)), depth + 1)
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after) and depth < MAX_DEPTH:
        pairs = enumerate(zip(before, after, strict=True))
        return [change for at, pair in pairs for change in _changes(*pair, f"{path}[{at}]", depth + 1)]
    return [FieldChange(path, _shown(before), _shown(after))]


def _joined(path: str, key: str) -> str:
    plain = key.replace("-", "").replace("_", "").isalnum()
    name = key if plain else f"[{key}]"
    return f"{path}.{name}" if path and plain else f"{path}{name}"


def _shown(value: Any) -> str:
    return "" if value is None else value_text(value)
