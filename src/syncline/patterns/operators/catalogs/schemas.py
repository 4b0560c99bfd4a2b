"""The shape of documents of a catalogue, and of files of behaviours: structural schemas, as custom resources have."""

from __future__ import annotations

from typing import Any, Final

from syncline.kube.kinds.structure import ANY, BOOL, STR, Fields, items, mapping, obj, strings
from syncline.kube.objects import Obj
from syncline.kube.schema.custom.valuecheck import check_value

MOST_ENTRIES: Final = 10_000
_NAME: Obj = STR | {"minLength": 1, "maxLength": 253}
_API: Fields = dict.fromkeys(("group", "kind", "version"), STR)
_METADATA: Obj = ANY | {"properties": {"name": _NAME}, "required": ["name"]}
_MANIFEST = obj({"apiVersion": _NAME, "kind": _NAME, "metadata": _METADATA}, "apiVersion", "kind", "metadata")
MANIFEST: Final[Obj] = _MANIFEST | {"x-kubernetes-preserve-unknown-fields": True}
"""An object with a kind and a name."""

_OWNED = obj(dict.fromkeys(("kind", "name", "version"), _NAME), "kind", "name", "version")
_DESCRIBED = obj(dict.fromkeys(("owned", "required"), items(_OWNED)))
METADATA: Final = obj(
    {
        "annotations": mapping(STR),
        "crdDescriptions": _DESCRIBED,
        "customResourceDefinitions": _DESCRIBED,
        "displayName": STR,
        "installModes": items(obj({"supported": BOOL, "type": STR}, "supported", "type")),
        "minKubeVersion": STR,
        "provider": obj({"name": STR, "url": STR}),
    }
)
_ENTRY = obj({"name": _NAME, "replaces": STR, "skipRange": STR, "skips": strings()}, "name")
_DEPRECATED = obj({"message": STR, "reference": obj({"name": STR, "schema": STR})})
_ENTRIES = items(_ENTRY) | {"maxItems": MOST_ENTRIES}
_PROPERTY = obj({"type": STR}, "type")
_BUNDLE: Fields = {"image": STR, "name": _NAME, "package": _NAME, "properties": items(_PROPERTY)}
DOCUMENTS: Final[dict[str, Obj]] = {
    "olm.package": obj({"defaultChannel": STR, "description": STR, "icon": ANY, "name": _NAME}, "name"),
    "olm.channel": obj({"entries": _ENTRIES, "name": _NAME, "package": _NAME}, "name", "package"),
    "olm.bundle": obj(_BUNDLE, "name", "package"),
    "olm.deprecations": obj({"entries": items(_DEPRECATED), "package": _NAME}, "package"),
}
"""Schemas by ``schema`` of a document; others are not read."""
PROPERTIES: Final[dict[str, Obj]] = {
    "olm.package": obj({"packageName": _NAME, "version": STR}, "packageName"),
    "olm.gvk": obj(_API, *_API),
    "olm.gvk.required": obj(_API, *_API),
    "olm.package.required": obj({"packageName": _NAME, "versionRange": STR}, "packageName", "versionRange"),
    "olm.label": obj({"label": STR}, "label"),
    "olm.label.required": obj({"label": STR}, "label"),
    "olm.csv.metadata": METADATA,
    "olm.bundle.object": obj({"data": STR}, "data"),
    "olm.constraint": {"type": "object"},
}
"""Schemas of values by type of property; others are kept as they are."""

_WHEN: Obj = {"anyOf": [{"type": "string", "enum": ["started"]}, obj({"group": STR, "kind": _NAME}, "kind")]}
_LOOK = obj(
    {
        **dict.fromkeys(("group", "source"), STR),
        "annotations": mapping(STR),
        "kind": _NAME,
        "name": _NAME,
        "named": strings(),
    },
    "kind",
    "name",
)
_SERVED = obj({**dict.fromkeys(("kind", "name", "version"), _NAME), "cluster": BOOL}, "kind", "name", "version")
LINE: Final = obj(
    {
        **dict.fromkeys(("after", "each", "name", "source"), STR),
        "creates": items(MANIFEST) | {"maxItems": 50},
        "looks": items(_LOOK) | {"maxItems": 20},
        "needs": strings(),
        "serves": items(_SERVED) | {"maxItems": 50},
        "status": ANY,
        "unless": mapping(STR),
        "when": _WHEN,
    }
)
BEHAVIOUR: Final = obj({"lines": items(LINE) | {"maxItems": 100}, "package": STR, "source": STR})


def given(value: Any) -> Any:
    """Return a value without nulls, which mean that nothing is given."""
    if isinstance(value, dict):
        return {key: given(one) for key, one in value.items() if one is not None}
    return [given(one) for one in value if one is not None] if isinstance(value, list) else value


def shape_problem(value: Any, schema: Obj, where: str) -> str:
    """Return what is wrong with a value, with the path of the field; "" if it has the shape of the schema."""
    found = check_value(value, schema)
    return f"{where}: {found[0].field or 'it'}: {found[0].message}" if found else ""
