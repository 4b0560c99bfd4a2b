"""An Application as upstream's Go types write it: unknown fields and empty ``omitempty`` fields are left out.

The controllers of upstream read and write Applications through those types, so two objects are compared, and merge
patches are computed, in this form. Pure. The table follows ``pkg/apis/application/v1alpha1/types.go``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from syncline.kube.objects import Obj

_Field: TypeAlias = tuple[str, str]
"""How a field is written, and the type below it (``[T]``: a list of T; empty: any value without types of its own)."""

OMITTED, ALWAYS, POINTER, RAW = "omitted", "always", "pointer", "raw"
"""An empty value is left out; written even if empty; left out only if absent; any JSON, unchanged."""


def _fields(
    plain: str = "", *, always: str = "", pointer: str = "", raw: str = "", below: Mapping[str, str] = {}
) -> dict[str, _Field]:
    ways = ((OMITTED, plain), (ALWAYS, always), (POINTER, pointer), (RAW, raw))
    return {name: (way, below.get(name, "")) for way, names in ways for name in names.split()}


_TOOLS: Final = {"helm": "Helm", "kustomize": "Kustomize", "directory": "Directory", "plugin": "Plugin"}
_SELECTOR: Final = "group version kind name namespace"

_TYPES: Final[Mapping[str, Mapping[str, _Field]]] = {
    "Spec": _fields(
        "ignoreDifferences info sources",
        always="destination project",
        pointer="source syncPolicy revisionHistoryLimit sourceHydrator",
        below={
            "source": "Source",
            "sources": "[Source]",
            "destination": "Destination",
            "syncPolicy": "SyncPolicy",
            "ignoreDifferences": "[IgnoreDifference]",
            "info": "[Info]",
            "sourceHydrator": "Hydrator",
        },
    ),
    "Destination": _fields("server namespace name"),
    "Info": _fields(always="name value"),
    "IgnoreDifference": _fields(
        "group name namespace jsonPointers jqPathExpressions managedFieldsManagers", always="kind"
    ),
    "Source": _fields(
        "path targetRevision chart ref name tagPrefix",
        always="repoURL",
        pointer="helm kustomize directory plugin",
        below=_TOOLS,
    ),
    "Helm": _fields(
        "valueFiles parameters releaseName values fileParameters version passCredentials ignoreMissingValueFiles "
        "skipCrds namespace kubeVersion apiVersions skipTests skipSchemaValidation",
        raw="valuesObject",
        below={"parameters": "[HelmParameter]", "fileParameters": "[HelmFile]"},
    ),
    "HelmParameter": _fields("name value forceString"),
    "HelmFile": _fields("name path"),
    "Kustomize": _fields(
        "namePrefix nameSuffix images commonLabels version commonAnnotations forceCommonLabels forceCommonAnnotations "
        "namespace commonAnnotationsEnvsubst replicas patches components ignoreMissingComponents labelWithoutSelector "
        "kubeVersion apiVersions labelIncludeTemplates",
        below={"replicas": "[Replica]", "patches": "[KustomizePatch]"},
    ),
    "Replica": _fields(always="name count"),
    "KustomizePatch": _fields("path patch options", pointer="target", below={"target": "KustomizeTarget"}),
    "KustomizeTarget": _fields(f"{_SELECTOR} annotationSelector labelSelector"),
    "Directory": _fields("recurse jsonnet exclude include disableExtensionFilter", below={"jsonnet": "Jsonnet"}),
    "Jsonnet": _fields("extVars tlas libs", below={"extVars": "[Variable]", "tlas": "[Variable]"}),
    "Variable": _fields("code", always="name value"),
    "Plugin": _fields("name env parameters", below={"env": "[Info]", "parameters": "[PluginParameter]"}),
    "PluginParameter": _fields(always="name", pointer="string map array"),
    "Hydrator": _fields(
        always="drySource syncSource",
        pointer="hydrateTo",
        below={"drySource": "DrySource", "syncSource": "SyncSource", "hydrateTo": "HydrateTo"},
    ),
    "DrySource": _fields(always="repoURL targetRevision path", pointer="helm kustomize directory plugin", below=_TOOLS),
    "SyncSource": _fields("repoURL", always="targetBranch path"),
    "HydrateTo": _fields(always="targetBranch"),
    "SyncPolicy": _fields(
        "syncOptions",
        pointer="automated retry managedNamespaceMetadata",
        below={"automated": "Automated", "retry": "Retry", "managedNamespaceMetadata": "Labelled"},
    ),
    "Automated": _fields(pointer="prune selfHeal allowEmpty enabled"),
    "Retry": _fields("limit refresh", pointer="backoff", below={"backoff": "Backoff"}),
    "Backoff": _fields("duration maxDuration", pointer="factor"),
    "Labelled": _fields("labels annotations"),
}
_EMPTY: Final[Mapping[str, Any]] = {"destination": {}, "drySource": {}, "syncSource": {}, "count": 0}
"""Written for an absent field that is always written; any other field: the empty text."""
TOOL_BLOCKS: Final = ("kustomize", "helm", "directory")


def typed_spec(spec: Obj) -> Obj:
    """Return ``spec`` of an Application as Go's types write it. Shares nothing that is changed; never raises."""
    made: Obj = _typed(spec, "Spec")
    return made


def typed_application(app: Obj) -> Obj:
    """Return an Application with a typed ``spec``, and ``metadata`` without its empty lists and maps."""
    metadata = {key: value for key, value in (app.get("metadata") or {}).items() if not _empty(value)}
    spec = app.get("spec")
    return {**app, "metadata": metadata, "spec": typed_spec(spec if isinstance(spec, dict) else {})}


def normalized_spec(spec: Obj) -> Obj:
    """Return a typed ``spec`` in the form in which upstream stores and compares it: an empty project is ``default``;
    an empty sync policy and empty blocks of tools are left out (upstream: ``NormalizeApplicationSpec``)."""
    made = typed_spec(spec)
    made["project"] = made["project"] or "default"
    if not made.get("syncPolicy"):
        made.pop("syncPolicy", None)
    if made.get("sources"):
        made["sources"] = [_normalized_source(source) for source in made["sources"]]
    elif "source" in made:
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


def _typed(value: Any, name: str) -> Any:
    if name.startswith("["):
        return [_typed(item, name[1:-1]) for item in value] if isinstance(value, list) else value
    fields = _TYPES.get(name)
    if fields is None or not isinstance(value, dict):
        return value
    made: Obj = {}
    for key, (way, below) in fields.items():
        item = value.get(key)
        if item is None:
            if way == ALWAYS:
                made[key] = _typed(_EMPTY.get(key, ""), below)
            continue
        item = item if way == RAW else _typed(item, below)
        if way != OMITTED or not _empty(item):
            made[key] = item
    return made


def _empty(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {}) or (value == 0 and not isinstance(value, bool))
