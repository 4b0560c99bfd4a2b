"""``kustomize build``: computes the resources of a folder with a kustomization. :func:`build`.

Called by the renderer and by the command line with a :class:`Source` and a folder. Steps and their order: kustomize
``KustTarget`` — resources, generators, components, transformers, validators, vars; then hashes, references, values of
vars, order. Nothing is fetched, run or written.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from syncline.sources.errors import Problem
from syncline.sources.kustomize.failure import BuildError, about
from syncline.sources.kustomize.kustomization import Kustomization, load_kustomization, read_yaml
from syncline.sources.kustomize.loader import Folder, Source
from syncline.sources.kustomize.resources import origins
from syncline.sources.kustomize.resources.ordering import LEGACY, sort_resources
from syncline.sources.kustomize.resources.resmap import IdIndex, ResMap
from syncline.sources.kustomize.resources.resource import BUILD_ANNOTATIONS, Resource
from syncline.sources.kustomize.resources.schema import BUILTIN_VERSION
from syncline.sources.kustomize.transforming import transform
from syncline.sources.kustomize.transforming.config import TransformerConfig, config_from_crds, config_of
from syncline.sources.kustomize.transforming.fieldspec import FieldSpec, merge_specs
from syncline.sources.kustomize.transforming.generate import merged_options
from syncline.sources.kustomize.transforming.nameref import fix_references
from syncline.sources.kustomize.transforming.patching import in_file
from syncline.sources.kustomize.transforming.plugins import (
    Context,
    Generate,
    Transform,
    generator,
    helm_refused,
    plugin_generator,
    plugin_transformer,
    transformer,
)
from syncline.sources.kustomize.transforming.variables import Variable, add_variables, bind, resolve_vars
from syncline.sources.kustomize.yaml.node import is_empty
from syncline.sources.kustomize.yaml.reader import read_resources
from syncline.sources.kustomize.yaml.writer import write_all

ENGINE = "kustomize-v5.8.1"
"""Whose behaviour this is; printed by ``buildMetadata: [managedByLabel]``."""

LOCAL_CONFIG = "config.kubernetes.io/local-config"

Edit = Callable[[Kustomization], Kustomization]
"""A change of the outermost kustomization before it is built (what ``kustomize edit`` does on disk)."""

Order = str
"""``--reorder``: ``legacy``, ``none`` or empty for the default."""


@dataclass(frozen=True, slots=True)
class Built:
    """The objects in output order; warnings and notices (upstream's log) in upstream's words."""

    objects: tuple[dict[str, Any], ...]
    warnings: tuple[str, ...]
    notices: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return write_all(self.objects)


@dataclass(slots=True)
class _Gathered:
    """The intermediate result of a kustomization."""

    resources: ResMap = field(default_factory=ResMap)
    config: TransformerConfig = field(default_factory=TransformerConfig)
    variables: dict[str, Variable] = field(default_factory=dict)


def build(source: Source, path: str, *, order: Order = "", edit: Edit | None = None) -> Built:
    """Build the folder ``path`` of ``source``; raises :class:`BuildError`."""
    found = source.find(path)
    if found is None or not found[1]:
        raise BuildError(f"must build at directory: '{source.shown(path)}': not a valid directory")
    folder = Folder(source, found[0])
    target = _Target(folder, load_kustomization(folder), Context())
    if edit is not None:
        target.kustomization = edit(target.kustomization)
    return target.finish(order)


class _Target:
    """One kustomization with its folder; ``origin`` records where it was found, None if that is not needed."""

    def __init__(
        self, folder: Folder, kustomization: Kustomization, context: Context, origin: str | None = None
    ) -> None:
        self.folder = folder
        self.kustomization = kustomization
        self.context = context
        self.metadata: list[str] = kustomization.texts("buildMetadata")
        self.origin = origin
        self.outer_namespace = ""
        """Of the kustomizations around this one; charts without a namespace are rendered for it."""
        context.warnings += kustomization.warnings
        folder.source.built += 1
        if folder.source.built > folder.source.limits.kustomizations:
            raise BuildError(
                f"more than {folder.source.limits.kustomizations} kustomizations in one build",
                problem=Problem.TOO_LARGE,
            )

    def finish(self, order: Order) -> Built:
        self._use_schema(outermost=True)
        self.metadata = self.kustomization.texts("buildMetadata")
        if self.metadata:
            self.origin = ""
        gathered = self.gather(_Gathered())
        transform.add_hashes(gathered.resources)
        fix_references(gathered.resources, gathered.config.name_reference)
        unused = resolve_vars(gathered.resources, gathered.variables, gathered.config.var_reference)
        if unused:
            self.context.notices.append(f"well-defined vars that were never replaced: {','.join(unused)}")
        resources = ResMap(_without_local(gathered.resources))
        resources.resources = self._ordered(resources, order)
        if origins.MANAGED_BY in self.metadata:
            label = FieldSpec("metadata/labels", create=True)
            transform.set_labels({"app.kubernetes.io/managed-by": ENGINE}, (label,))(resources)
        for resource in resources:
            _finish_annotations(resource, self.metadata)
        objects = tuple(resource.value() for resource in resources)
        return Built(objects, tuple(self.context.warnings), tuple(self.context.notices))

    def _ordered(self, resources: ResMap, order: Order) -> list[Resource]:
        options = self.kustomization.fields.get("sortOptions")
        if options is not None:
            if order:
                self.context.notices.append(
                    "Warning: Sorting order is set both in 'kustomization.yaml' ('sortOptions') and in a CLI flag "
                    "('--reorder'). Using the kustomization file over the CLI flag."
                )
            return sort_resources(resources, options)
        return sort_resources(resources, {"order": LEGACY}) if order != "none" else resources.resources

    def _use_schema(self, *, outermost: bool) -> None:
        wanted = self.kustomization.fields.get("openapi") or {}
        document = read_yaml(self.folder.load(wanted["path"])) if "path" in wanted else None
        if self.context.chosen and not outermost:
            return
        version = wanted.get("version") or ""
        if document is not None:
            if "version" in wanted:
                raise BuildError("builtin version and custom schema provided, cannot use both")
            self.context.use(document)
        elif version:
            if version != BUILTIN_VERSION:
                raise BuildError("the specified OpenAPI version is not built in")
            self.context.chosen = True

    def gather(self, gathered: _Gathered) -> _Gathered:
        """Add the resources, generators, components, transformers, validators and vars of this kustomization, in
        order."""
        given = self.kustomization
        with about("accumulating resources"):
            self._add_paths(gathered, given.texts("resources"))
        gathered.config = gathered.config.merge(config_of(self.folder, given.texts("configurations")))
        if given.texts("crds"):
            with about(f"loading CRDs [{' '.join(given.texts('crds'))}]"):
                crds = config_from_crds(self.folder, given.texts("crds"))
            gathered.config = gathered.config.merge(crds)
        self._run_generators(gathered)
        with about("accumulating components"):
            gathered = self._add_components(gathered)
        self._run_transformers(gathered)
        self._run_validators(gathered)
        variables = [Variable.of(raw) for raw in given.entries("vars")]
        bind(gathered.resources, variables)
        add_variables(gathered.variables, variables)
        return gathered

    # Resources and bases

    def _add_paths(self, gathered: _Gathered, paths: Iterable[str]) -> None:
        for path in paths:
            try:
                self._add_file(gathered, path)
            except BuildError as error:
                if error.malformed or error.problem in (Problem.TOO_LARGE, Problem.EXHAUSTED):
                    raise
                with about(f"accumulation err='{error.message}'"):
                    inner = self._enter(path, component=False)
                    with about(f"recursed accumulation of path '{inner.folder.shown}'"):
                        more = inner.gather(_Gathered())
                    self._join(gathered, more, inner.folder)

    def _add_file(self, gathered: _Gathered, path: str) -> None:
        with about(f"accumulating resources from '{path}'"):
            content = self.folder.text(path)
            try:
                found = ResMap(Resource(node) for node in read_resources(content))
            except BuildError as error:
                raise in_file(error, path) from None
        self.context.seen_resources = True
        if self.origin is not None:
            for resource in found:
                resource.origin = origins.of_file(posixpath.normpath(posixpath.join(self.origin, path)))
        with about(f"merging resources from '{path}'"):
            gathered.resources.extend(found)
        limit = self.folder.source.limits.resources
        if len(gathered.resources) > limit:
            raise BuildError(f"more than {limit} resources in one build", problem=Problem.TOO_LARGE)

    def _enter(self, path: str, *, component: bool) -> _Target:
        folder = self.folder.enter(path)
        with about(f"couldn't make target for path '{folder.shown}'"):
            kustomization = load_kustomization(folder)
        origin = None if self.origin is None else posixpath.normpath(posixpath.join(self.origin, path))
        inner = _Target(folder, kustomization, self.context, origin)
        inner.metadata = self.metadata
        inner.outer_namespace = self.kustomization.text("namespace") or self.outer_namespace
        inner._use_schema(outermost=False)
        if component and not kustomization.is_component:
            found = kustomization.text("kind")
            raise BuildError(f"expected kind 'Component' for path '{folder.shown}' but got '{found}'")
        if not component and kustomization.is_component:
            raise BuildError(f"expected kind != 'Component' for path '{folder.shown}'")
        return inner

    def _join(self, gathered: _Gathered, more: _Gathered, folder: Folder) -> None:
        with about(f"recursed merging from path '{folder.shown}'"):
            gathered.resources.extend(more.resources)
            gathered.config = gathered.config.merge(more.config)
            add_variables(gathered.variables, more.variables.values())

    def _add_components(self, gathered: _Gathered) -> _Gathered:
        for path in self.kustomization.texts("components"):
            inner = self._enter(path, component=True)
            with about(f"recursed accumulation of path '{inner.folder.shown}'"):
                more = inner.gather(gathered)
            gathered = _Gathered()
            self._join(gathered, more, inner.folder)
        return gathered

    # Generators

    def _run_generators(self, gathered: _Gathered) -> None:
        steps: list[tuple[Generate, dict[str, Any] | None]] = []
        common = self.kustomization.fields.get("generatorOptions")
        for name, kind in (("configMapGenerator", "ConfigMapGenerator"), ("secretGenerator", "SecretGenerator")):
            for entry in self.kustomization.entries(name):
                settings = {**entry, "options": merged_options(entry.get("options"), common)}
                steps.append((generator(kind, settings, self.folder), self._by(kind)))
        for entry in self.kustomization.entries("helmCharts"):
            settings = {**(self.kustomization["helmGlobals"] or {}), **entry}
            settings["namespace"] = (
                settings.get("namespace") or self.kustomization.text("namespace") or (self.outer_namespace)
            )
            charts = self.folder.source.charts
            if charts is None:
                raise helm_refused(settings)
            steps.append((charts.generator(settings, self.folder), self._by("HelmChartInflationGenerator")))
        with about("loading generator plugins"):
            for resource in self._plugins("generators"):
                with about("failed to load generator"):
                    made = plugin_generator(resource, self.folder, self.context)
                steps.append((made, origins.of_plugin(resource)))
        index = IdIndex(gathered.resources)
        for step, origin in steps:
            found = step()
            for resource in found:
                resource.origin = resource.origin or origin
            with about("merging from generator"):
                gathered.resources.absorb(found, index)

    def _by(self, kind: str) -> dict[str, Any] | None:
        if self.origin is None:
            return None
        return origins.of_builtin(posixpath.join(self.origin, self.kustomization.file), kind)

    def _plugins(self, name: str) -> list[Resource]:
        """Return the resources that configure plugins, inline or from files and folders."""
        found = _Gathered()
        paths: list[str] = []
        for text in self.kustomization.texts(name):
            try:
                resources = [Resource(node) for node in read_resources(text)]
            except BuildError:
                paths.append(text)
                continue
            if self.origin is not None:
                for resource in resources:
                    resource.origin = origins.of_file(posixpath.join(self.origin, self.kustomization.file))
            found.resources.extend(resources)
        self._add_paths(found, paths)
        return found.resources.resources

    # Transformers

    def _run_transformers(self, gathered: _Gathered) -> None:
        steps = self._builtin_steps(gathered.config)
        for resource in self._plugins("transformers"):
            steps.append((plugin_transformer(resource, self.folder, self.context), origins.of_plugin(resource)))
        for step, origin in steps:
            step(gathered.resources)
            if origin is not None:
                for resource in gathered.resources:
                    origins.add(resource, origin)
            gathered.resources.drop_empty()

    def _builtin_steps(self, config: TransformerConfig) -> list[tuple[Transform, dict[str, Any] | None]]:
        """Return the transformers for the fields of the kustomization, in kustomize's order."""
        return [
            (transformer(kind, settings, self.folder, self.context), self._by(kind))
            for kind, settings in _asked_for(self.kustomization, config)
        ]

    def _run_validators(self, gathered: _Gathered) -> None:
        for resource in self._plugins("validators"):
            step = plugin_transformer(resource, self.folder, self.context)
            before = [_comparable(each) for each in gathered.resources]
            step(gathered.resources)
            if before != [_comparable(each) for each in gathered.resources]:
                raise BuildError("validator shouldn't modify the resource map")


def _asked_for(given: Kustomization, config: TransformerConfig) -> Iterable[tuple[str, dict[str, Any]]]:
    if given.texts("patchesStrategicMerge"):
        yield "PatchStrategicMergeTransformer", {"paths": given.texts("patchesStrategicMerge")}
    for entry in given.entries("patches"):
        yield "PatchTransformer", entry
    if given.text("namespace"):
        metadata = {"namespace": given.text("namespace")}
        yield "NamespaceTransformer", {"metadata": metadata, "fieldSpecs": config.namespace}
    if given.text("namePrefix"):
        yield "PrefixTransformer", {"prefix": given.text("namePrefix"), "fieldSpecs": config.name_prefix}
    if given.text("nameSuffix"):
        yield "SuffixTransformer", {"suffix": given.text("nameSuffix"), "fieldSpecs": config.name_suffix}
    for entry in given.entries("labels"):
        yield "LabelTransformer", {"labels": entry.get("pairs") or {}, "fieldSpecs": _label_specs(entry, config)}
    if given["commonLabels"] or given["labels"]:
        # Upstream runs it for either field, which shows in the notes about transformers.
        yield "LabelTransformer", {"labels": given["commonLabels"] or {}, "fieldSpecs": config.common_labels}
    if given["commonAnnotations"]:
        settings = {"annotations": given["commonAnnotations"], "fieldSpecs": config.common_annotations}
        yield "AnnotationsTransformer", settings
    for entry in given.entries("patchesJson6902"):
        names = {"target": "target", "path": "path", "patch": "jsonOp"}
        yield "PatchJson6902Transformer", {new: entry[old] for old, new in names.items() if old in entry}
    for entry in given.entries("replicas"):
        yield "ReplicaCountTransformer", {"replica": entry, "fieldSpecs": config.replicas}
    for entry in given.entries("images"):
        yield "ImageTagTransformer", {"imageTag": entry, "fieldSpecs": config.images}
    if given.entries("replacements"):
        yield "ReplacementTransformer", {"replacements": given.entries("replacements")}


def _label_specs(entry: dict[str, Any], config: TransformerConfig) -> tuple[FieldSpec, ...]:
    with about("failed to merge labels"):
        specs = merge_specs((FieldSpec.of(raw) for raw in entry.get("fields") or ()), config.labels)
        if entry.get("includeSelectors"):
            return merge_specs(specs, config.common_labels)
        if entry.get("includeTemplates"):
            specs = merge_specs(specs, config.template_labels)
        return merge_specs(specs, (FieldSpec("metadata/labels", create=True),))


VALIDATED_BY = "validated-by"
"""The one label that a validator may add."""


def _comparable(resource: Resource) -> dict[str, Any]:
    value = resource.copy()
    value.set_labels({name: text for name, text in value.labels().items() if name != VALIDATED_BY})
    return value.value()


def _without_local(resources: ResMap) -> list[Resource]:
    """Drop resources marked as local configuration."""
    return [
        resource
        for resource in resources
        if not is_empty(resource.node) and resource.annotations().get(LOCAL_CONFIG, "false") == "false"
    ]


def _finish_annotations(resource: Resource, metadata: list[str]) -> None:
    """Convert annotations to text without kustomize's own; an empty mapping or null disappears."""
    kept = {name: text for name, text in resource.annotations().items() if name not in BUILD_ANNOTATIONS}
    resource.set_annotations(origins.annotated(resource, kept, metadata))
