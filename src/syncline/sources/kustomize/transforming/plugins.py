"""The built-in generators and transformers by name, from a kustomization's fields or from files of their own.

Called by ``build``. Settings come in; functions that generate resources or change a :class:`ResMap` leave. Programs,
containers and other plugins are refused: nothing is ever run. Source: kustomize ``builtinhelpers`` and plugin loader.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from syncline.sources.errors import Problem
from syncline.sources.kustomize.failure import BuildError, about, quoted
from syncline.sources.kustomize.kustomization import (
    CONFIG_MAP_ARGS,
    FIELD_SPEC,
    HELM_CHART,
    IMAGE,
    METADATA,
    PATCH,
    REPLACEMENT,
    REPLICA,
    SECRET_ARGS,
    SELECTOR,
    read_yaml,
)
from syncline.sources.kustomize.loader import Folder
from syncline.sources.kustomize.resources.resmap import ResMap
from syncline.sources.kustomize.resources.resource import Resource
from syncline.sources.kustomize.resources.schema import MergeSchema, builtin_schema, combined, schema_from_openapi
from syncline.sources.kustomize.transforming import transform
from syncline.sources.kustomize.transforming.fieldspec import FieldSpec
from syncline.sources.kustomize.transforming.generate import (
    generate_config_map,
    generate_secret,
    service_account_for_gke,
)
from syncline.sources.kustomize.transforming.patching import (
    json_patch_transformer,
    patch_transformer,
    strategic_transformer,
)
from syncline.sources.kustomize.transforming.replace import apply_replacements
from syncline.sources.kustomize.yaml.shapes import BOOL, INT, TEXT, Fields, ListOf, MapOf, Struct, read_struct
from syncline.sources.kustomize.yaml.writer import write_one

Transform = Callable[[ResMap], None]
Generate = Callable[[], list[Resource]]


@dataclass(slots=True)
class Context:
    """What one build shares: the schema in use, set by the first kustomization that names one."""

    custom: MergeSchema | None = None
    chosen: bool = False
    seen_resources: bool = False
    warnings: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def schema(self) -> MergeSchema:
        """The schema in use now."""
        return self.custom or builtin_schema()

    def use(self, document: Any) -> None:
        """Take a custom schema; resources that were read before keep the built-in one in use beside it."""
        made = schema_from_openapi(document)
        self.custom = combined(made, builtin_schema()) if self.seen_resources else made
        self.chosen = True


_SPECS: Fields = {"fieldSpecs": ListOf(FIELD_SPEC)}
_TARGETS = ListOf(
    Struct("Target", {"selector": SELECTOR, "fieldPath": TEXT, "filePathPosition": INT}),
)
_HEADER: Fields = {"apiVersion": TEXT, "kind": TEXT, "metadata": METADATA}
_SHAPES: dict[str, Fields] = {
    "AnnotationsTransformer": {"annotations": MapOf(TEXT), **_SPECS},
    "LabelTransformer": {"labels": MapOf(TEXT), **_SPECS},
    "NamespaceTransformer": {**_SPECS, "unsetOnly": BOOL, "setRoleBindingSubjects": TEXT},
    "PrefixTransformer": {"prefix": TEXT, **_SPECS},
    "SuffixTransformer": {"suffix": TEXT, **_SPECS},
    "PrefixSuffixTransformer": {"prefix": TEXT, "suffix": TEXT, **_SPECS},
    "ImageTagTransformer": {"imageTag": Struct("Image", IMAGE), **_SPECS},
    "ReplicaCountTransformer": {"replica": Struct("Replica", REPLICA), **_SPECS},
    "PatchTransformer": PATCH,
    "PatchStrategicMergeTransformer": {"paths": ListOf(TEXT), "patches": TEXT},
    "PatchJson6902Transformer": {"target": SELECTOR, "path": TEXT, "jsonOp": TEXT},
    "ReplacementTransformer": {"replacements": ListOf(Struct("ReplacementField", {**REPLACEMENT, "path": TEXT}))},
    "ValueAddTransformer": {"value": TEXT, "targets": _TARGETS, "targetFilePath": TEXT},
    "HashTransformer": {},
    "ConfigMapGenerator": CONFIG_MAP_ARGS,
    "SecretGenerator": SECRET_ARGS,
    "IAMPolicyGenerator": {
        "cloud": TEXT,
        "kubernetesService": Struct("KubernetesService", {"name": TEXT, "namespace": TEXT}),
        "serviceAccount": Struct("ServiceAccount", {"name": TEXT, "projectId": TEXT}),
    },
    "HelmChartInflationGenerator": {**HELM_CHART, "chartHome": TEXT, "configHome": TEXT},
}
_GENERATORS = ("ConfigMapGenerator", "SecretGenerator", "IAMPolicyGenerator", "HelmChartInflationGenerator")


def transformer(kind: str, settings: dict[str, Any], folder: Folder, context: Context) -> Transform:
    """A built-in transformer for a field of a kustomization; ``settings`` carry its field specs."""
    with about(f"trouble configuring builtin {kind} with config: `\n{quoted(_shown(settings))}`"):
        return _transformer(kind, settings, folder, context)


def generator(kind: str, settings: dict[str, Any], folder: Folder) -> Generate:
    return lambda: [_generate(kind, settings, folder)]


def helm_refused(settings: dict[str, Any]) -> BuildError:
    shown = write_one({key: value for key, value in settings.items() if key != "valuesInline"})
    return BuildError(
        f"trouble configuring builtin HelmChartInflationGenerator with config: `\n{shown}`: must specify --enable-helm",
        problem=Problem.UNSUPPORTED,
        fix="render the chart as a Helm source of its own",
    )


def _shown(settings: dict[str, Any]) -> str:
    return write_one({name: value for name, value in settings.items() if name != "fieldSpecs" and value})


def plugin_transformer(resource: Resource, folder: Folder, context: Context) -> Transform:
    """A transformer or validator that is a resource of its own."""
    kind, settings = _plugin(resource)
    if kind in _GENERATORS:
        if kind == "HelmChartInflationGenerator":
            raise BuildError(f"plugin {resource.original_id} fails configuration: must specify --enable-helm")
        raise BuildError(f"plugin {resource.original_id} not a transformer")
    with about(f"plugin {resource.original_id} fails configuration"):
        return _transformer(kind, settings, folder, context)


def plugin_generator(resource: Resource, folder: Folder, context: Context) -> Generate:
    """A generator that is a resource of its own."""
    kind, settings = _plugin(resource)
    metadata = settings.get("metadata") or {}
    if kind not in _GENERATORS:
        with about(f"plugin {resource.original_id} fails configuration"):
            _transformer(kind, settings, folder, context)
        raise BuildError(f"plugin {resource.original_id} not a generator")
    if kind == "HelmChartInflationGenerator":
        with about(f"plugin {resource.original_id} fails configuration"):
            if folder.source.charts is None:
                raise BuildError("must specify --enable-helm")
            return folder.source.charts.generator(settings, folder)
    for name in ("name", "namespace"):
        settings[name] = settings.get(name) or metadata.get(name) or ""
    return generator(kind, settings, folder)


def _plugin(resource: Resource) -> tuple[str, dict[str, Any]]:
    gvk = resource.gvk
    if gvk.group or gvk.version != "builtin":
        raise BuildError(
            f"external plugins disabled; unable to load external plugin '{resource.original_id.gvk.kind}'",
            problem=Problem.UNSUPPORTED,
        )
    if gvk.kind not in _SHAPES:
        raise BuildError(f"unable to load builtin {gvk}")
    shape = Struct(gvk.kind, {**_HEADER, **_SHAPES[gvk.kind]})
    with about(f"plugin {resource.original_id} fails configuration: error unmarshaling JSON: while decoding JSON"):
        return gvk.kind, read_struct(shape, resource.value(), strict=False)


def _generate(kind: str, settings: dict[str, Any], folder: Folder) -> Resource:
    match kind:
        case "ConfigMapGenerator":
            return generate_config_map(settings, folder)
        case "SecretGenerator":
            return generate_secret(settings, folder)
        case _:
            return service_account_for_gke(settings)


def _specs(settings: dict[str, Any]) -> tuple[FieldSpec, ...]:
    """Field specs: from a kustomization already read, from a plugin's own file as they were written."""
    return tuple(
        spec if isinstance(spec, FieldSpec) else FieldSpec.of(spec) for spec in settings.get("fieldSpecs") or ()
    )


def _affix(kind: str, settings: dict[str, Any]) -> Transform:
    if "fieldSpecs" not in settings:
        raise BuildError("fieldSpecs is not expected to be nil")
    specs, prefix, suffix = _specs(settings), settings.get("prefix") or "", settings.get("suffix") or ""
    if kind == "PrefixTransformer":
        return transform.set_prefix(prefix, specs)
    if kind == "SuffixTransformer":
        return transform.set_suffix(suffix, specs)
    steps = (transform.set_prefix(prefix, specs), transform.set_suffix(suffix, specs))

    def both(resources: ResMap) -> None:
        for step in steps:
            step(resources)

    return both


def _transformer(kind: str, settings: dict[str, Any], folder: Folder, context: Context) -> Transform:
    specs = _specs(settings)
    match kind:
        case "AnnotationsTransformer":
            return transform.set_annotations(settings.get("annotations") or {}, specs)
        case "LabelTransformer":
            return transform.set_labels(settings.get("labels") or {}, specs)
        case "NamespaceTransformer":
            namespace = (settings.get("metadata") or {}).get("namespace") or ""
            unset_only, subjects = bool(settings.get("unsetOnly")), settings.get("setRoleBindingSubjects") or ""
            return transform.set_namespace(namespace, specs, unset_only=unset_only, subjects=subjects)
        case "PrefixTransformer" | "SuffixTransformer" | "PrefixSuffixTransformer":
            return _affix(kind, settings)
        case "ImageTagTransformer":
            return transform.set_image(settings.get("imageTag") or {}, specs)
        case "ReplicaCountTransformer":
            replica = settings.get("replica") or {}
            return transform.set_replicas(replica.get("name") or "", replica.get("count") or 0, specs)
        case "PatchTransformer":
            return patch_transformer(settings, folder, context.schema)
        case "PatchStrategicMergeTransformer":
            return strategic_transformer(settings, folder, context.schema)
        case "PatchJson6902Transformer":
            return json_patch_transformer(settings, folder)
        case "ReplacementTransformer":
            replacements = load_replacements(settings.get("replacements") or [], folder)
            return lambda resources: apply_replacements(resources, replacements)
        case "ValueAddTransformer":
            return _value_add(settings, folder)
        case _:
            return transform.add_hashes


def _value_add(settings: dict[str, Any], folder: Folder) -> Transform:
    value = (settings.get("value") or "").strip() or folder.path.rsplit("/", 1)[-1]
    targets = list(settings.get("targets") or ())
    if settings.get("targetFilePath"):
        raw = read_yaml(folder.load(settings["targetFilePath"]))
        targets += read_struct(Struct("Targets", {"targets": _TARGETS}), raw, strict=False).get("targets", [])
    return transform.add_values(value, targets)


def load_replacements(entries: list[dict[str, Any]], folder: Folder) -> list[dict[str, Any]]:
    """The entries of ``replacements``, those in files read."""
    made: list[dict[str, Any]] = []
    for entry in entries:
        path = entry.get("path") or ""
        if not path:
            made.append(entry)
            continue
        if entry.get("source") is not None or entry.get("targets"):
            raise BuildError("cannot specify both path and inline replacement")
        raw = read_yaml(folder.load(path))
        if not isinstance(raw, list | dict):
            raise BuildError(f"unsupported replacement type encountered within replacement path: {path}")
        for each in raw if isinstance(raw, list) else [raw]:
            made.append(read_struct(Struct("Replacement", REPLACEMENT), each, strict=False))
    return made
