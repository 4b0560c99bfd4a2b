"""Object metadata inside custom resources: read by its own type, wherever a schema says that a whole object stands.

Called when the body of a custom resource is read. In come an object and its schema; returns the object with metadata as
its type writes it (empty fields left out, unknown ones gone) and texts for strict decoding. Checks of names and labels
are made by the validators. Source: apiextensions-apiserver ``pkg/apiserver/schema/objectmeta``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from syncline.kube.errors import FieldCause
from syncline.kube.objects import Obj
from syncline.kube.patching.fields import decode
from syncline.kube.schema import fieldcauses as causes
from syncline.kube.schema import store
from syncline.kube.schema.model import Schema


class MetadataError(ValueError):
    """Metadata, ``apiVersion`` or ``kind`` of a type that cannot be read; the text is Go's."""


@lru_cache(maxsize=1)
def _object_meta() -> Schema:
    return Schema.from_openapi(store.definitions()[store.OBJECT_META])


def _read(metadata: Any) -> tuple[Obj, tuple[str, ...]]:
    if not isinstance(metadata, dict):
        kind = {str: "string", bool: "bool", list: "array"}.get(type(metadata), "number")
        raise MetadataError(f"json: cannot unmarshal {kind} into Go value of type v1.ObjectMeta")
    found = decode(metadata, _object_meta())
    if found.errors:
        raise MetadataError(found.errors[0].replace("Go struct field .", "Go struct field ObjectMeta."))
    kept = {name: _plain(value) for name, value in found.obj.items()}
    return {name: value for name, value in kept.items() if value not in (None, "", {}, [])}, found.unknown


def _plain(value: Any) -> Any:
    """A null among texts (labels, annotations, finalizers) is the empty text."""
    if isinstance(value, dict):
        return {key: "" if item is None else item for key, item in value.items()}
    return value


def coerce_root(obj: Obj) -> tuple[Obj, list[str]]:
    """(object, unknown fields) with the metadata of the object itself; raises :class:`MetadataError`."""
    if obj.get("metadata") is None:
        return obj, []
    kept, unknown = _read(obj["metadata"])
    return (obj if kept == obj["metadata"] else {**obj, "metadata": kept}), [_below(text, "") for text in unknown]


def _below(text: str, path: str) -> str:
    """``unknown field "x"`` of metadata, reported from the object."""
    return text.replace('"', f'"{causes.child(path, "metadata")}.', 1)


def object_places(raw: Any) -> Obj | None:
    """Return what of a schema :func:`embedded_objects` needs: the ways to whole objects; None: it has none."""
    if not isinstance(raw, dict):
        return None
    made = {key: raw[key] for key in ("x-kubernetes-embedded-resource",) if raw.get(key)}
    below = {key: found for key in ("additionalProperties", "items") if (found := object_places(raw.get(key)))}
    places = {name: object_places(one) for name, one in (raw.get("properties") or {}).items()}
    # A field that is described is not one of the others, also where no object stands in it.
    kept = places if "additionalProperties" in below else {name: one for name, one in places.items() if one}
    found = made | below | ({"properties": kept} if kept else {})
    return found if made or below or any(places.values()) else None


def embedded_objects(value: Any, raw: Any, path: str = "") -> list[tuple[Obj, str]]:
    """(object, path) of every whole object inside, the outer ones first."""
    if not isinstance(raw, dict):
        return []
    found: list[tuple[Obj, str]] = []
    if isinstance(value, dict):
        if path and raw.get("x-kubernetes-embedded-resource"):
            found.append((value, path))
        properties, additional = raw.get("properties") or {}, raw.get("additionalProperties")
        for name in sorted(value):
            if name in properties or additional:
                below = properties.get(name, additional)
                found += embedded_objects(value[name], below, causes.child(path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += embedded_objects(item, raw.get("items"), f"{path}[{index}]")
    return found


def coerce_embedded(obj: Obj, raw: Any) -> list[str]:
    """Rewrites the metadata of embedded objects in place; returns their unknown fields.

    Raises :class:`MetadataError` where a field is of a type that cannot be read.
    """
    unknown: list[str] = []
    for inside, path in embedded_objects(obj, raw):
        for name in ("apiVersion", "kind"):
            if name in inside and not isinstance(inside[name], str):
                raise _at(causes.invalid_value(causes.child(path, name), inside[name], "must be a string"))
        if inside.get("metadata") is None:
            continue
        try:
            kept, extra = _read(inside["metadata"])
        except MetadataError as error:
            where = causes.child(path, "metadata")
            raise _at(causes.invalid_value(where, inside["metadata"], str(error))) from None
        inside["metadata"] = kept
        unknown += [_below(text, path) for text in extra]
    return unknown


def _at(cause: FieldCause) -> MetadataError:
    return MetadataError(f"{cause.field}: {cause.message}")
