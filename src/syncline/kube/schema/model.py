"""One view of fields for built-in kinds and custom resources: :class:`Schema`.

Used by patches, field ownership, strict decoding and the OpenAPI writer. A :class:`Schema` of a kind or an
``openAPIV3Schema`` is a lazy tree with references resolved, so a recursive schema is finite but infinitely deep.
Schemas are shared and read-only. They validate nothing and guess nothing: properties are unset unless the document or
the defaults of structured-merge-diff, named at each property, set them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from syncline.kube.objects import GVK, Obj
from syncline.kube.schema import store

REF_PREFIX = "#/components/schemas/"
"""How the stored definitions point at each other; the OpenAPI documents use the same form."""

_EMBEDDED_FIELDS: Obj = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"$ref": f"{REF_PREFIX}{store.OBJECT_META}"},
}


class Schema:
    """One node. Attributes are plain values; ``field``, ``items`` and ``additional`` lead further down.

    ``type`` is ``object``, ``array``, ``string``, ``integer``, ``number``, ``boolean`` or ``""`` (any value, and
    int-or-string). ``list_type`` is ``atomic``, ``set`` or ``map`` for arrays and ``""`` for others; ``map_type`` is
    ``granular`` or ``atomic`` for objects and ``""`` for others. ``merge_key`` and ``patch_strategy`` serve
    strategic merge patches (``merge``, ``replace``, ``merge,retainKeys``, ``retainKeys`` or empty). ``name`` is the
    definition's name (``io.k8s.api.core.v1.PodSpec``), empty for what is written in place.
    """

    __slots__ = (
        "_additional",
        "_children",
        "_items",
        "format",
        "int_or_string",
        "list_map_keys",
        "list_type",
        "map_type",
        "merge_key",
        "name",
        "nullable",
        "patch_strategy",
        "preserve_unknown",
        "properties",
        "raw",
        "required",
        "type",
    )

    def __init__(self, raw: Mapping[str, Any], name: str = "") -> None:
        self.raw = raw
        self.name = name
        self.type: str = _type_of(raw)
        self.format: str = raw.get("format") or ""
        self.int_or_string = bool(raw.get("x-kubernetes-int-or-string"))
        self.preserve_unknown = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
        self.nullable = bool(raw.get("nullable"))
        self.required: tuple[str, ...] = tuple(raw.get("required") or ())
        self.merge_key: str = raw.get("x-kubernetes-patch-merge-key") or ""
        self.patch_strategy: str = raw.get("x-kubernetes-patch-strategy") or ""
        self.list_type, self.list_map_keys = _list_relationship(raw, self.type)
        self.map_type: str = (raw.get("x-kubernetes-map-type") or "granular") if self.type == "object" else ""
        self.properties: Mapping[str, Any] = _properties_of(raw)
        self._children: dict[str, Schema] = {}
        self._items: Schema | None = None
        self._additional: Schema | None = None

    @classmethod
    def from_openapi(cls, raw: Mapping[str, Any], *, resource: bool = False) -> Schema:
        """The view of a CustomResourceDefinition's ``openAPIV3Schema``.

        ``resource`` says that this is the root of a kind: ``apiVersion``, ``kind`` and ``metadata`` are then fields
        with their usual types, whatever the document says about them (apiextensions, structural schemas).
        """
        return cls({**raw, "x-kubernetes-embedded-resource": True} if resource else raw)

    @property
    def default(self) -> Any:
        """The declared default, or None."""
        return self.raw.get("default")

    @property
    def embedded(self) -> bool:
        """True for a whole object with its own ``apiVersion``, ``kind`` and ``metadata``."""
        return bool(self.raw.get("x-kubernetes-embedded-resource"))

    @property
    def is_open(self) -> bool:
        """True if undeclared fields are allowed: untyped, or unknown fields preserved."""
        return self.preserve_unknown or (self.type == "" and not self.properties)

    @property
    def is_map(self) -> bool:
        """True if keys are data: an object described by ``additionalProperties``."""
        return self.additional is not None

    def field(self, name: str) -> Schema | None:
        """Return the schema of a declared field or of a map's value; None for an undeclared name."""
        child = self._children.get(name)
        if child is None:
            raw = self.properties.get(name)
            if raw is None:
                return self.additional
            child = self._children[name] = _schema(raw)
        return child

    @property
    def items(self) -> Schema | None:
        """The schema of the elements of an array."""
        if self._items is None and isinstance(self.raw.get("items"), dict):
            self._items = _schema(self.raw["items"])
        return self._items

    @property
    def additional(self) -> Schema | None:
        """The schema of the values of a map; None if this is no map."""
        if self._additional is None:
            raw = self.raw.get("additionalProperties")
            if raw is True:
                raw = {}
            if isinstance(raw, dict):
                self._additional = _schema(raw)
        return self._additional

    def __repr__(self) -> str:
        return f"Schema({self.type or 'any'}, fields={len(self.properties)})"


def _type_of(raw: Mapping[str, Any]) -> str:
    kind = raw.get("type")
    return kind if isinstance(kind, str) else ""


def _properties_of(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    declared = raw.get("properties") or {}
    if raw.get("x-kubernetes-embedded-resource"):
        return {**declared, **_EMBEDDED_FIELDS}
    return declared if isinstance(declared, Mapping) else {}


def _list_relationship(raw: Mapping[str, Any], kind: str) -> tuple[str, tuple[str, ...]]:
    """List type and map keys; without a list type the patch strategy decides, else the list is atomic.

    Source: kube-openapi ``schemaconv``.
    """
    if kind != "array":
        return "", ()
    declared = raw.get("x-kubernetes-list-type")
    if declared:
        return declared, tuple(raw.get("x-kubernetes-list-map-keys") or ())
    if "merge" in (raw.get("x-kubernetes-patch-strategy") or "").split(","):
        key = raw.get("x-kubernetes-patch-merge-key")
        return ("map", (key,)) if key else ("set", ())
    return "atomic", ()


def _schema(raw: Mapping[str, Any]) -> Schema:
    """A node, with its reference resolved; what stands beside a reference overrides its target."""
    reference = raw.get("$ref")
    if not isinstance(reference, str):
        return Schema(raw)
    target = definition(reference.removeprefix(REF_PREFIX))
    if target is None:
        return Schema({})
    beside = {key: value for key, value in raw.items() if key != "$ref"}
    return Schema({**target.raw, **beside}, target.name) if beside else target


@cache
def definition(name: str) -> Schema | None:
    """A built-in type by its definition name (``io.k8s.api.core.v1.PodSpec``), or None."""
    raw = store.definitions().get(name)
    return None if raw is None else Schema(raw, name)


@cache
def schema_for(gvk: GVK) -> Schema | None:
    """The schema of a built-in kind, or None for kinds that Kubernetes itself does not define."""
    name = store.kinds().get(gvk)
    return None if name is None else definition(name)
