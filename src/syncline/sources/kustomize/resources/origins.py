"""``buildMetadata``: annotates each object with its origin and the transformers that changed it.

Called by ``build``. An origin is a JSON value; :func:`annotated` prints it in kustomize's format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncline.sources.kustomize.resources.resource import Resource

ORIGIN = "config.kubernetes.io/origin"
TRANSFORMATIONS = "alpha.config.kubernetes.io/transformations"
ORIGIN_OPTION, TRANSFORMER_OPTION, MANAGED_BY = "originAnnotations", "transformerAnnotations", "managedByLabel"


def of_file(path: str) -> dict[str, Any]:
    return {"path": path}


def of_builtin(file: str, kind: str) -> dict[str, Any]:
    return {"configuredIn": file, "configuredBy": {"apiVersion": "builtin", "kind": kind}}


def of_plugin(resource: Resource) -> dict[str, Any] | None:
    """Return the origin of objects that the plugin configured by ``resource`` creates or changes."""
    if resource.origin is None:
        return None
    named = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": resource.name,
        "namespace": resource.namespace,
    }
    return {
        "configuredIn": resource.origin.get("path", ""),
        "configuredBy": {name: value for name, value in named.items() if value},
    }


def add(resource: Resource, origin: dict[str, Any]) -> None:
    """Record that a transformer changed the object; for one without origin the first record becomes its origin."""
    if resource.origin is None:
        resource.origin = origin
    else:
        resource.transformations.append(origin)


def annotated(resource: Resource, annotations: Mapping[str, str], options: list[str]) -> dict[str, str]:
    """Return ``annotations`` with the records that ``buildMetadata`` enables, and without others."""
    made = {name: text for name, text in annotations.items() if name not in (ORIGIN, TRANSFORMATIONS)}
    if ORIGIN_OPTION in options and resource.origin is not None:
        made[ORIGIN] = _text(resource.origin, "")
    if TRANSFORMER_OPTION in options and resource.transformations:
        made[TRANSFORMATIONS] = "".join("- " + _text(each, "  ") for each in resource.transformations)
    return made


def _text(origin: Mapping[str, Any], indent: str) -> str:
    lines: list[str] = []
    for name, value in origin.items():
        if isinstance(value, dict):
            lines.append(f"{name}:")
            lines += [f"  {inner}: {text}" for inner, text in value.items()]
        elif value:
            lines.append(f"{name}: {value}")
    return f"\n{indent}".join(lines) + "\n"
