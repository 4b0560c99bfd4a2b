"""Makes the schema data that Syncline ships: definitions, descriptions and the table of resources.

Run by a developer when the Kubernetes version moves, and by a test that compares. In come the JSON schemas of the
``kubernetes-validate`` package and, for the table, the ``lightkube-models`` wheel; out go the files of
``src/syncline/kube/schema/data``. Equal input gives equal output.

    python tools/build_schema.py                                 definitions and descriptions
    python tools/build_schema.py --models lightkube_models.whl   the table of resources as well
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from importlib import resources
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

VERSION = "v1.36.0"
"""The Kubernetes release whose API is spoken."""

DATA = Path(__file__).parent.parent / "src" / "syncline" / "kube" / "schema" / "data"
OLD_REF = "#/$defs/"
NEW_REF = "#/components/schemas/"

KEPT = (
    "format",
    "required",
    "enum",
    "pattern",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
)

OVERRIDES: dict[str, dict[str, Any]] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    },
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
"""Types whose Go code reads JSON in its own way; the published schema says less than the code does."""

DEFAULTS: dict[tuple[str, str], Any] = {
    ("io.k8s.api.core.v1.ContainerPort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.ServicePort", "protocol"): "TCP",
}
"""Defaults of list-map keys (``+default`` markers of Kubernetes' types): an element without the key has them."""


def source() -> dict[str, Any]:
    """All definitions as published, with ``$defs`` references."""
    package = resources.files("kubernetes_validate") / "kubernetes-json-schema" / f"{VERSION}-local"
    loaded: dict[str, Any] = json.loads((package / "_definitions.json").read_text())
    return loaded["$defs"]


def _plain(raw: dict[str, Any]) -> dict[str, Any]:
    """One schema without descriptions, with one type, and with references of OpenAPI 3."""
    made: dict[str, Any] = {key: raw[key] for key in KEPT if key in raw}
    if "$ref" in raw:
        made["$ref"] = raw["$ref"].replace(OLD_REF, NEW_REF)
    kind = raw.get("type")
    if kind is not None:
        made["type"] = kind if isinstance(kind, str) else next(k for k in kind if k != "null")
    for key in ("items", "additionalProperties"):
        if isinstance(raw.get(key), dict):
            made[key] = _plain(raw[key])
    if "properties" in raw:
        made["properties"] = {name: _plain(field) for name, field in raw["properties"].items()}
    return made


def _definition(name: str, raw: dict[str, Any]) -> dict[str, Any]:
    made = dict(OVERRIDES[name]) if name in OVERRIDES else _plain(raw)
    for field in ("apiVersion", "kind"):
        # The package narrows these two for its own checks; Kubernetes leaves them open.
        if "x-kubernetes-group-version-kind" in raw and field in made.get("properties", {}):
            made["properties"][field] = {"type": "string"}
    for (owner, field), value in DEFAULTS.items():
        if owner == name:
            made["properties"][field]["default"] = value
    return made


def build_definitions(published: dict[str, Any]) -> bytes:
    """The definitions without their texts, as one line of JSON."""
    return _json({name: _definition(name, raw) for name, raw in published.items()})


def build_descriptions(published: dict[str, Any]) -> bytes:
    """Definition → field → description; the type's own under the empty name."""
    texts: dict[str, dict[str, str]] = {}
    for name, raw in published.items():
        fields = {"": raw.get("description", "")}
        fields |= {field: spec.get("description", "") for field, spec in raw.get("properties", {}).items()}
        texts[name] = {field: text for field, text in fields.items() if text}
    return _json(texts)


def _belongs(row: dict[str, Any], published: dict[str, Any]) -> bool:
    """The models may be newer than the definitions: kinds they do not know are dropped, and so are status
    subresources of kinds that have no status."""
    identity = {key: row[key] for key in ("group", "version", "kind")}
    found = [raw for raw in published.values() if identity in raw.get("x-kubernetes-group-version-kind", ())]
    if found and "status" not in found[0]["properties"]:
        row["subresources"] = [entry for entry in row["subresources"] if entry["name"] != "status"]
    return bool(found)


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, help="lightkube-models wheel, for the table of resources")
    options = parser.parse_args()
    published = source()
    DATA.mkdir(parents=True, exist_ok=True)
    for name, build in (("definitions", build_definitions), ("descriptions", build_descriptions)):
        packed = lzma.compress(build(published), preset=9 | lzma.PRESET_EXTREME)
        (DATA / f"{name}.json.xz").write_bytes(packed)
        sys.stdout.write(f"{name}: {len(packed)} bytes\n")
    if options.models:
        from resource_table import build_resources

        rows = [row for row in build_resources(options.models) if _belongs(row, published)]
        lines = ",\n".join(json.dumps(row, sort_keys=True) for row in rows)
        (DATA / "resources.json").write_text(f"[\n{lines}\n]\n")
        sys.stdout.write(f"resources: {len(rows)}\n")


if __name__ == "__main__":
    main()
