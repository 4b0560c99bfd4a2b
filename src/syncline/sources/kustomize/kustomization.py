"""Finds and parses ``kustomization.yaml`` strictly, and converts old fields: :func:`load_kustomization`.

Called once per folder of a build; returns a :class:`Kustomization` with warnings about deprecated fields. Source of
fields, checks and texts: kustomize ``api/types``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from syncline.kube.yaml import loading as yaml
from syncline.sources.kustomize.failure import BuildError, about
from syncline.sources.kustomize.loader import Folder
from syncline.sources.kustomize.yaml.reader import AFTER_FIRST
from syncline.sources.kustomize.yaml.shapes import ANY, BOOL, INT, TEXT, Fields, ListOf, MapOf, Struct, read_struct

FILE_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
KIND, VERSION = "Kustomization", "kustomize.config.k8s.io/v1beta1"
COMPONENT_KIND, COMPONENT_VERSION = "Component", "kustomize.config.k8s.io/v1alpha1"

_TEXTS = ListOf(TEXT)
_TEXT_MAP = MapOf(TEXT)
_GVK: Fields = {"group": TEXT, "version": TEXT, "kind": TEXT}
_ID: Fields = {**_GVK, "name": TEXT, "namespace": TEXT}

FIELD_SPEC = Struct("FieldSpec", {**_GVK, "path": TEXT, "create": BOOL})
GENERATOR_OPTIONS = Struct(
    "GeneratorOptions",
    {"labels": _TEXT_MAP, "annotations": _TEXT_MAP, "disableNameSuffixHash": BOOL, "immutable": BOOL},
)
CONFIG_MAP_ARGS: Fields = {
    "namespace": TEXT,
    "name": TEXT,
    "behavior": TEXT,
    "literals": _TEXTS,
    "files": _TEXTS,
    "envs": _TEXTS,
    "env": TEXT,
    "options": GENERATOR_OPTIONS,
}
SECRET_ARGS: Fields = {**CONFIG_MAP_ARGS, "type": TEXT}
SELECTOR = Struct("Selector", {**_ID, "annotationSelector": TEXT, "labelSelector": TEXT})
PATCH_OPTIONS = Struct("PatchArgs", {"allowNameChange": BOOL, "allowKindChange": BOOL})
PATCH: Fields = {"path": TEXT, "patch": TEXT, "target": SELECTOR, "options": PATCH_OPTIONS}
IMAGE: Fields = {"name": TEXT, "newName": TEXT, "tagSuffix": TEXT, "newTag": TEXT, "digest": TEXT}
FIELD_OPTIONS = Struct("FieldOptions", {"delimiter": TEXT, "index": INT, "encoding": TEXT, "create": BOOL})
REPLACEMENT: Fields = {
    "source": Struct("SourceSelector", {**_ID, "fieldPath": TEXT, "options": FIELD_OPTIONS}),
    "targets": ListOf(
        Struct(
            "TargetSelector",
            {"select": SELECTOR, "reject": ListOf(SELECTOR), "fieldPaths": _TEXTS, "options": FIELD_OPTIONS},
        )
    ),
    "sourceValue": TEXT,
}
REPLICA: Fields = {"name": TEXT, "count": INT}
SORT_OPTIONS = Struct(
    "SortOptions",
    {"order": TEXT, "legacySortOptions": Struct("LegacySortOptions", {"orderFirst": _TEXTS, "orderLast": _TEXTS})},
)
METADATA = Struct("ObjectMeta", {"name": TEXT, "namespace": TEXT, "labels": _TEXT_MAP, "annotations": _TEXT_MAP})
_VAR = Struct(
    "Var",
    {
        "name": TEXT,
        "objref": Struct("Target", {"apiVersion": TEXT, **_ID}),
        "fieldref": Struct("FieldSelector", {"fieldPath": TEXT}),
    },
)
_LABEL = Struct(
    "Label", {"pairs": _TEXT_MAP, "includeSelectors": BOOL, "includeTemplates": BOOL, "fields": ListOf(FIELD_SPEC)}
)
HELM_CHART: Fields = {
    **dict.fromkeys(("name", "version", "repo", "releaseName", "namespace", "valuesFile", "valuesMerge"), TEXT),
    **dict.fromkeys(("kubeVersion", "nameTemplate"), TEXT),
    **dict.fromkeys(("additionalValuesFiles", "apiVersions"), _TEXTS),
    **dict.fromkeys(("includeCRDs", "skipHooks", "skipTests", "debug", "devel"), BOOL),
    "valuesInline": MapOf(ANY),
}
_HELM_CHART_ARGS = Struct(
    "HelmChartArgs",
    {
        **dict.fromkeys(("chartName", "chartVersion", "chartRepoUrl", "chartHome", "chartRepoName", "helmBin"), TEXT),
        **dict.fromkeys(("helmHome", "values", "valuesMerge", "releaseName", "releaseNamespace"), TEXT),
        "valuesLocal": MapOf(ANY),
        "extraArgs": _TEXTS,
    },
)
_FIELDS = Struct(
    "Kustomization",
    {
        **dict.fromkeys(("kind", "apiVersion", "namePrefix", "nameSuffix", "namespace"), TEXT),
        **dict.fromkeys(
            ("resources", "components", "crds", "bases", "configurations", "patchesStrategicMerge"), _TEXTS
        ),
        **dict.fromkeys(("generators", "transformers", "validators", "buildMetadata"), _TEXTS),
        **dict.fromkeys(("openapi", "commonLabels", "commonAnnotations"), _TEXT_MAP),
        "metadata": METADATA,
        "labels": ListOf(_LABEL),
        "patchesJson6902": ListOf(Struct("Patch", PATCH)),
        "patches": ListOf(Struct("Patch", PATCH)),
        "images": ListOf(Struct("Image", IMAGE)),
        "imageTags": ListOf(Struct("Image", IMAGE)),
        "replacements": ListOf(Struct("ReplacementField", {**REPLACEMENT, "path": TEXT})),
        "replicas": ListOf(Struct("Replica", REPLICA)),
        "vars": ListOf(_VAR),
        "sortOptions": SORT_OPTIONS,
        "configMapGenerator": ListOf(Struct("ConfigMapArgs", CONFIG_MAP_ARGS)),
        "secretGenerator": ListOf(Struct("SecretArgs", SECRET_ARGS)),
        "helmGlobals": Struct("HelmGlobals", {"chartHome": TEXT, "configHome": TEXT}),
        "helmCharts": ListOf(Struct("HelmChart", HELM_CHART)),
        "helmChartInflationGenerator": ListOf(_HELM_CHART_ARGS),
        "generatorOptions": GENERATOR_OPTIONS,
    },
)

_FIX = "Run 'kustomize edit fix' to update your Kustomization automatically."
_DEPRECATED = {
    "bases": f"# Warning: 'bases' is deprecated. Please use 'resources' instead. {_FIX}",
    "commonLabels": f"# Warning: 'commonLabels' is deprecated. Please use 'labels' instead. {_FIX}",
    "imageTags": f"# Warning: 'imageTags' is deprecated. Please use 'images' instead. {_FIX}",
    "patchesJson6902": f"# Warning: 'patchesJson6902' is deprecated. Please use 'patches' instead. {_FIX}",
    "patchesStrategicMerge": f"# Warning: 'patchesStrategicMerge' is deprecated. Please use 'patches' instead. {_FIX}",
    "vars": f"# Warning: 'vars' is deprecated. Please use 'replacements' instead. [EXPERIMENTAL] {_FIX}",
}


@dataclass(frozen=True, slots=True)
class Kustomization:
    """A parsed kustomization. ``fields`` has the given fields by canonical names; ``file`` is the file's name."""

    fields: dict[str, Any]
    file: str
    warnings: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.fields.get(name) or None

    def texts(self, name: str) -> list[str]:
        return list(self.fields.get(name) or ())

    def entries(self, name: str) -> list[dict[str, Any]]:
        return list(self.fields.get(name) or ())

    def text(self, name: str) -> str:
        return str(self.fields.get(name) or "")

    @property
    def is_component(self) -> bool:
        return self.fields.get("kind") == COMPONENT_KIND


def load_kustomization(folder: Folder) -> Kustomization:
    """Find and read the kustomization of ``folder``; raises :class:`BuildError`."""
    found: list[tuple[str, bytes]] = []
    for name in FILE_NAMES:
        try:
            found.append((name, folder.load(name)))
        except BuildError:
            continue
    if not found:
        raise BuildError(
            "unable to find one of 'kustomization.yaml', 'kustomization.yml' or 'Kustomization' "
            f"in directory '{folder.shown}'"
        )
    if len(found) > 1:
        raise BuildError(f"Found multiple kustomization files under: {folder.shown}")
    return parse_kustomization(found[0][1], found[0][0], folder.shown)


def parse_kustomization(content: bytes, file: str, shown: str) -> Kustomization:
    """Like :func:`load_kustomization`, for given content."""
    with about("invalid Kustomization"):
        fields = read_struct(_FIELDS, read_yaml(content), strict=True)
    warnings = tuple(message for name, message in _DEPRECATED.items() if name in fields)
    fields = _modern(fields)
    if not any(value != "" for name, value in fields.items() if name not in ("kind", "apiVersion")):
        raise BuildError("kustomization.yaml is empty")
    wrong = _wrong_header(fields)
    if wrong:
        raise BuildError(f"Failed to read kustomization file under {shown}:\n" + "\n".join(wrong))
    return Kustomization(fields, file, warnings)


def read_yaml(content: bytes) -> Any:
    """Parse the first document like Kubernetes' YAML reader, including YAML 1.1 booleans."""
    loaded = yaml.load_all(content, by_lines=False)
    for problem in loaded.report.errors:
        line = problem.position.line if problem.position else 0
        if AFTER_FIRST in problem.message and line > 1:
            return read_yaml(b"\n".join(content.split(b"\n")[: line - 1]))
        raise BuildError(f"yaml: line {line}: {problem.message}")
    return loaded.documents[0].value if loaded.documents else None


def _modern(fields: dict[str, Any]) -> dict[str, Any]:
    """Convert old fields to their replacements (kustomize ``FixKustomization``)."""
    made = dict(fields)
    made["kind"] = made.get("kind") or KIND
    made["apiVersion"] = made.get("apiVersion") or (COMPONENT_VERSION if made["kind"] == COMPONENT_KIND else VERSION)
    for old, new in (("bases", "resources"), ("imageTags", "images")):
        if made.pop(old, None):
            made[new] = [*made.get(new, ()), *fields[old]]
    for name in ("configMapGenerator", "secretGenerator"):
        if name in made:
            made[name] = [_with_envs(entry) for entry in made[name]]
    charts = made.pop("helmChartInflationGenerator", None) or []
    if charts:
        homes = {"chartHome": charts[-1].get("chartHome", ""), "configHome": charts[-1].get("helmHome", "")}
        made.setdefault("helmGlobals", {name: home for name, home in homes.items() if home})
        made["helmCharts"] = [*made.get("helmCharts", ()), *(_chart(old) for old in charts)]
    return made


_CHART_FIELDS = {
    "chartName": "name",
    "chartVersion": "version",
    "chartRepoUrl": "repo",
    "values": "valuesFile",
    "valuesLocal": "valuesInline",
    "valuesMerge": "valuesMerge",
    "releaseName": "releaseName",
}


def _chart(old: dict[str, Any]) -> dict[str, Any]:
    """Convert an entry of the deprecated list to the current form (kustomize ``types.SplitHelmParameters``)."""
    return {new: old[name] for name, new in _CHART_FIELDS.items() if old.get(name)}


def _with_envs(entry: dict[str, Any]) -> dict[str, Any]:
    if not entry.get("env"):
        return entry
    return {**entry, "envs": [*entry.get("envs", ()), entry["env"]], "env": ""}


def _wrong_header(fields: dict[str, Any]) -> list[str]:
    wrong = []
    kind = fields["kind"]
    if kind not in (KIND, COMPONENT_KIND):
        wrong.append(f"kind should be {KIND} or {COMPONENT_KIND}")
    wanted = COMPONENT_VERSION if kind == COMPONENT_KIND else VERSION
    if fields["apiVersion"] != wanted:
        wrong.append(f"apiVersion for {kind} should be {wanted}")
    return wrong
