"""An Application as upstream's Go types write it: unknown fields and empty ``omitempty`` fields are left out.

The controllers of upstream read and write Applications through those types, so two objects are compared, and merge
patches are computed, in this form. Pure. The types are in ``gotypes.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from syncline.argo.gotypes import SPEC, conform, is_empty
from syncline.kube.objects import Obj

TOOL_BLOCKS: Final = ("kustomize", "helm", "directory")


def typed_spec(spec: Obj) -> Obj:
    """Return ``spec`` of an Application as Go's types write it. Shares nothing that is changed; never raises."""
    made: Obj = conform(spec, SPEC, strict=False)
    return made


def typed_application(app: Obj) -> Obj:
    """Return an Application with a typed ``spec``, and ``metadata`` without its empty lists and maps."""
    metadata = {
        key: value for key, value in (app.get("metadata") or {}).items() if value is not None and not is_empty(value)
    }
    spec = app.get("spec")
    return {**app, "metadata": metadata, "spec": typed_spec(spec if isinstance(spec, dict) else {})}


def normalized_spec(spec: Obj) -> Obj:
    """Return a typed ``spec`` in the form in which upstream compares it; see :func:`stored_spec`."""
    return stored_spec(typed_spec(spec))


def stored_spec(spec: Obj) -> Obj:
    """Return ``spec`` in the form in which upstream stores it: an empty project is ``default``; an empty sync policy
    and empty blocks of tools are left out (upstream: ``NormalizeApplicationSpec``). All other fields stay."""
    made = {**spec, "project": spec.get("project") or "default"}
    if not made.get("syncPolicy"):
        made.pop("syncPolicy", None)
    if made.get("sources"):
        made["sources"] = [_normalized_source(source) for source in made["sources"]]
    elif isinstance(made.get("source"), dict):
        made["source"] = _normalized_source(made["source"])
    return made


def _normalized_source(source: Obj) -> Obj:
    kept = {key: value for key, value in source.items() if key not in TOOL_BLOCKS or _says(key, value)}
    directory = kept.get("directory")
    if isinstance(directory, dict) and not _is_set(directory):
        kept["directory"] = {key: value for key, value in directory.items() if key in ("exclude", "include")}
    return kept


def _is_set(directory: Obj) -> bool:
    return any(key in directory for key in ("recurse", "jsonnet", "disableExtensionFilter"))


def _says(key: str, block: Any) -> bool:
    """Return whether a block of a tool says anything. What only changes how Kustomize labels does not count."""
    if not isinstance(block, dict):
        return bool(block)
    return bool(set(block) - _NOT_COUNTED.get(key, frozenset()))


_NOT_COUNTED: Final[Mapping[str, frozenset[str]]] = {
    "kustomize": frozenset(
        {
            "forceCommonLabels",
            "forceCommonAnnotations",
            "commonAnnotationsEnvsubst",
            "labelWithoutSelector",
            "labelIncludeTemplates",
        }
    ),
}
