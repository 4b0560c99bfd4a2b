"""Who owns the replica count, reported from an object to its scale and back.

Called by the embedded API for writes of the scale subresource, whose ``managedFields`` speak of ``autoscaling/v1``
Scale. In come entries as they stand in objects, entries leave; nothing is changed in place and nothing is refused (an
entry that cannot be read owns nothing).

Source of the rules: apimachinery ``managedfields.ScaleHandler``, with its habits: an entry made here has no time, and a
plain writer that keeps the count has it in an entry of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from syncline.kube.objects import Obj
from syncline.kube.patching import fieldset
from syncline.kube.patching.fieldset import FieldSet

__all__ = ["parent_entries", "scale_entries"]

SCALE_VERSION = "autoscaling/v1"
_IN_SCALE = ("spec", "replicas")

_Identity = tuple[str, str, str, str]


def _identity(entry: Obj) -> _Identity:
    """An applier is the same whatever version it wrote."""
    operation = str(entry.get("operation"))
    version = "" if operation == "Apply" else str(entry.get("apiVersion"))
    return str(entry.get("manager") or ""), operation, version, str(entry.get("subresource") or "")


def _read(entries: Any) -> Iterator[tuple[Obj, FieldSet]]:
    """Each owner's last entry, with its fields."""
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
    """``managedFields`` of the scale of an object with ``entries``, whose count stands at ``path``."""
    owned = fieldset.serialise(fieldset.field_set([_IN_SCALE]))
    return [
        {**entry, "apiVersion": SCALE_VERSION, "fieldsV1": owned}
        for entry, fields in _read(entries)
        if _has(fields, path)
    ]


def parent_entries(entries: Any, of_scale: Any, path: Sequence[str], api_version: str) -> list[Obj]:
    """``managedFields`` of the object after its scale was written and got the entries ``of_scale``."""
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
    """The order in which entries are stored: appliers first, then by time, manager, version and subresource."""
    names = ("operation", "time", "manager", "apiVersion", "subresource")
    operation, time, manager, version, subresource = (str(entry.get(name) or "") for name in names)
    return operation, time, manager, version, subresource
