"""Which fields each transformer changes: the built-in table, ``configurations`` and ``crds``.

Called once per kustomization. The built-in table is data (``data/field_specs.json``); files of ``configurations``
are read strictly, ``crds`` are OpenAPI documents with ``x-kubernetes-…`` marks. Source: kustomize ``builtinconfig``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources
from typing import Any

from syncline.sources.kustomize.failure import BuildError, about
from syncline.sources.kustomize.kustomization import FIELD_SPEC, read_yaml
from syncline.sources.kustomize.loader import Folder
from syncline.sources.kustomize.resources.ordering import KIND_ORDER, sort_text
from syncline.sources.kustomize.resources.resource import Gvk
from syncline.sources.kustomize.transforming.fieldspec import FieldSpec, merge_specs, sorted_specs
from syncline.sources.kustomize.yaml.shapes import TEXT, ListOf, Struct, read_struct

Specs = tuple[FieldSpec, ...]

_NAMES = {
    "name_prefix": "namePrefix",
    "name_suffix": "nameSuffix",
    "namespace": "namespace",
    "common_labels": "commonLabels",
    "labels": "labels",
    "template_labels": "templateLabels",
    "common_annotations": "commonAnnotations",
    "var_reference": "varReference",
    "images": "images",
    "replicas": "replicas",
}
_SHAPE = Struct(
    "TransformerConfig",
    {
        **dict.fromkeys(_NAMES.values(), ListOf(FIELD_SPEC)),
        "nameReference": ListOf(
            Struct(
                "NameBackReferences",
                {"group": TEXT, "version": TEXT, "kind": TEXT, "fieldSpecs": ListOf(FIELD_SPEC)},
            )
        ),
    },
)


@dataclass(frozen=True, slots=True)
class BackReference:
    """The fields that reference objects of ``target``."""

    target: Gvk
    referrers: Specs


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    name_prefix: Specs = ()
    name_suffix: Specs = ()
    namespace: Specs = ()
    common_labels: Specs = ()
    labels: Specs = ()
    template_labels: Specs = ()
    common_annotations: Specs = ()
    var_reference: Specs = ()
    images: Specs = ()
    replicas: Specs = ()
    name_reference: tuple[BackReference, ...] = ()

    def merge(self, other: TransformerConfig) -> TransformerConfig:
        """Both; raises :class:`BuildError` where one spec says create and the other does not."""
        if other is self or other == _NOTHING:
            return self
        if self == _NOTHING and other is default_config():
            return other
        return _sorted(self._joined(other))

    def _joined(self, other: TransformerConfig) -> TransformerConfig:
        made: dict[str, Any] = {}
        for each in fields(self):
            if each.name != "name_reference":
                with about(f"failed to merge {_NAMES[each.name]} fieldSpec"):
                    made[each.name] = merge_specs(getattr(self, each.name), getattr(other, each.name))
        with about("failed to merge NameReference fieldSpec"):
            references = _merge_references(self.name_reference, other.name_reference)
        return TransformerConfig(**made, name_reference=references)


_NOTHING = TransformerConfig()


def _merge_references(references: Iterable[BackReference], more: Iterable[BackReference]) -> tuple[BackReference, ...]:
    made = list(references)
    for reference in more:
        index = next((at for at, old in enumerate(made) if old.target == reference.target), None)
        if index is None:
            made.append(reference)
        else:
            made[index] = replace(made[index], referrers=merge_specs(made[index].referrers, reference.referrers))
    return tuple(made)


@cache
def default_config() -> TransformerConfig:
    """The built-in table."""
    stored = (resources.files("syncline.sources.kustomize") / "data" / "field_specs.json").read_bytes()
    return TransformerConfig()._joined(_config(json.loads(stored)))


def config_of(folder: Folder, files: list[str]) -> TransformerConfig:
    """The built-in table with the files of ``configurations`` merged in."""
    extra = TransformerConfig()
    for name in files:
        with about("error unmarshaling JSON"):
            read = read_struct(_SHAPE, read_yaml(folder.load(name)), strict=True)
        extra = extra.merge(_sorted(_config(read)))
    return default_config().merge(extra) if files else default_config()


def _config(raw: dict[str, Any]) -> TransformerConfig:
    made = {name: tuple(FieldSpec.of(spec) for spec in raw.get(given) or ()) for name, given in _NAMES.items()}
    references = tuple(
        BackReference(
            Gvk(entry.get("group") or "", entry.get("version") or "", entry.get("kind") or ""),
            tuple(FieldSpec.of(spec) for spec in entry.get("fieldSpecs") or ()),
        )
        for entry in raw.get("nameReference") or ()
    )
    return TransformerConfig(**made, name_reference=references)


def _sorted(config: TransformerConfig) -> TransformerConfig:
    made: dict[str, Any] = {name: sorted_specs(getattr(config, name)) for name in _NAMES}
    references = sorted(
        config.name_reference, key=lambda each: (KIND_ORDER.get(each.target.kind, 0), sort_text(each.target))
    )
    return TransformerConfig(**made, name_reference=tuple(references))


_MARKS = "x-kubernetes-"
MAX_CRD_DEPTH = 64
"""References inside references of one document in ``crds``."""


def config_from_crds(folder: Folder, files: list[str]) -> TransformerConfig:
    """Return the labels, annotations, names and references that the documents of ``crds`` declare."""
    made = TransformerConfig()
    for name in files:
        content = folder.load(name)
        document = read_yaml(content)
        if not isinstance(document, dict):
            raise BuildError(f"unable to parse open API definition from '{name}': it is no mapping")
        for type_name in sorted(document):
            properties = _properties(document, type_name)
            if all(each in properties for each in ("kind", "apiVersion", "metadata")):
                kind = Gvk(kind=type_name.rsplit(".", 1)[-1])
                made = made.merge(_crd_config(document, type_name, kind, ()))
    return made


def _properties(document: dict[str, Any], type_name: str) -> dict[str, Any]:
    entry = document.get(type_name)
    schema = (entry.get("Schema") or entry.get("schema")) if isinstance(entry, dict) else None
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def _crd_config(document: dict[str, Any], type_name: str, kind: Gvk, path: tuple[str, ...]) -> TransformerConfig:
    made = TransformerConfig()
    if len(path) > MAX_CRD_DEPTH:
        return made
    for name, raw in _properties(document, type_name).items():
        if not isinstance(raw, dict):
            continue
        spec = FieldSpec("/".join((*path, name)), kind)
        if f"{_MARKS}annotation" in raw:
            made = made.merge(TransformerConfig(common_annotations=(spec,)))
        if f"{_MARKS}label-selector" in raw:
            made = made.merge(TransformerConfig(common_labels=(spec,)))
        if f"{_MARKS}identity" in raw:
            made = made.merge(TransformerConfig(name_prefix=(spec,)))
        version, target = raw.get(f"{_MARKS}object-ref-api-version"), raw.get(f"{_MARKS}object-ref-kind")
        if isinstance(version, str) and isinstance(target, str):
            key = raw.get(f"{_MARKS}object-ref-name-key") or "name"
            referrer = FieldSpec("/".join((*path, name, key)), kind)
            reference = BackReference(Gvk(version=version, kind=target), (referrer,))
            made = made.merge(TransformerConfig(name_reference=(reference,)))
        if isinstance(raw.get("$ref"), str):
            made = made.merge(_crd_config(document, raw["$ref"], kind, (*path, name)))
    return made
