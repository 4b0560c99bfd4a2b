"""Translate ownership of the replica count between an object and its Scale.

Writes of the scale subresource call it, whose ``managedFields`` refer to ``autoscaling/v1`` Scale. It takes and returns
entries; it mutates and refuses nothing (a malformed entry owns nothing).

Source of the rules: apimachinery ``managedfields.ScaleHandler``, including its habits: a new entry has no time, and an
updater that leaves the count unchanged owns it in a separate entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from syncline.kube.objects import Obj
from syncline.kube.patching import fieldset
from syncline.kube.patching.fieldset import FieldSet

SCALE_VERSION = "autoscaling/v1"
_IN_SCALE = ("spec", "replicas")

_Identity = tuple[str, str, str, str]


def _identity(entry: Obj) -> _Identity:
    """Return an entry's identity; an applier's does not depend on the version it wrote."""
    operation = str(entry.get("operation"))
    version = "" if operation == "Apply" else str(entry.get("apiVersion"))
    return str(entry.get("manager") or ""), operation, version, str(entry.get("subresource") or "")


def _read(entries: Any) -> Iterator[tuple[Obj, FieldSet]]:
    """Yield each owner's last entry with its fields."""
    kept = {_identity(entry): entry for entry in entries or () if isinstance(entry, dict)}
    for entry in kept.values():
        try:
            yield entry, fieldset.parse(entry.get("fieldsV1") or {})
        except ValueError:
            continue


def _has(fields: FieldSet, path: Sequence[str]) -> bool:
    node: Any = fields
    for step in path:
        node = node.get(f"f:{step}")
        if node is None:
            return False
    return fieldset.is_member(node)


def scale_entries(entries: Any, path: Sequence[str]) -> list[Obj]:
    """Return ``managedFields`` of the scale of an object with ``entries``, whose count is at ``path``."""
    owned = fieldset.serialise(fieldset.field_set([_IN_SCALE]))
    return [
        {**entry, "apiVersion": SCALE_VERSION, "fieldsV1": owned}
        for entry, fields in _read(entries)
        if _has(fields, path)
    ]


def parent_entries(entries: Any, of_scale: Any, path: Sequence[str], api_version: str) -> list[Obj]:
    """Return ``managedFields`` of the object after a scale write that left the entries ``of_scale``."""
    count = fieldset.field_set([tuple(path)])
    written = {_identity(entry): entry for entry, fields in _read(of_scale) if _has(fields, _IN_SCALE)}
    result: list[Obj] = []
    for entry, fields in _read(entries):
        if not _has(fields, path) or written.pop(_identity(entry), None) is not None:
            result.append(entry)
            continue
        left = fieldset.difference(fields, count)
        if left:
            result.append({**entry, "fieldsV1": fieldset.serialise(left)})
    for entry in written.values():
        made = {name: value for name, value in entry.items() if name != "time"}
        result.append({**made, "apiVersion": api_version, "fieldsV1": fieldset.serialise(count)})
    return sorted(result, key=_order)


def _order(entry: Obj) -> tuple[str, str, str, str, str]:
    """Sort key of stored entries: appliers first, then by time, manager, version and subresource."""
    names = ("operation", "time", "manager", "apiVersion", "subresource")
    operation, time, manager, version, subresource = (str(entry.get(name) or "") for name in names)
    return operation, time, manager, version, subresource
