"""The schema of the recordings' own kind, ``example.dev/v1 Widget``, as their description gives it."""

from __future__ import annotations

from typing import Any

from syncline.kube.objects import GVK
from syncline.kube.schema.model import Schema, schema_for

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


def _object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def _keyed(*keys: str, **fields: Any) -> dict[str, Any]:
    types = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return {"type": "array", "items": _object(**fields), **types}


SET = {"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}
TEXTS = {"type": "object", "additionalProperties": TEXT}
WIDGET = Schema.from_openapi(
    _object(
        spec=_object(
            size=NUMBER,
            cpu={"x-kubernetes-int-or-string": True},
            colour=TEXT,
            enabled={"type": "boolean"},
            labels=TEXTS,
            nested={"type": "object", "additionalProperties": TEXTS},
            free={"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            parts=_keyed("name", name=TEXT, count=NUMBER, tags=SET),
            ports=_keyed("port", "protocol", port=NUMBER, protocol=TEXT, name=TEXT),
            steps={"type": "array", "items": _object(run=TEXT)},
            tags=SET,
        ),
        status=_object(phase=TEXT),
    ),
    resource=True,
)


def schema_of(gvk: GVK) -> Schema | None:
    return WIDGET if (gvk.group, gvk.kind) == ("example.dev", "Widget") else schema_for(gvk)
