"""Renders a source to objects: chooses the tool as upstream does, renders, caches. :func:`render_opened`.

The gitops, appset and patterns rooms call it in a worker thread. Tools are :class:`Renderer` values; a tool of another
room is registered by passing a longer list. Tool detection: Argo CD ``util/app/discovery`` (reference argocd-app 5.1).
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from syncline.kube.kinds.argoproj import source_schema
from syncline.kube.objects import Obj
from syncline.kube.patching.patches import json_merge_patch
from syncline.kube.schema.custom.valuecheck import check_value
from syncline.kube.schema.extensions import SOURCE
from syncline.kube.yaml import loading as yaml
from syncline.sources.directory import (
    SKIP_MARKER,
    DirectoryLimits,
    DirectoryOptions,
    Manifests,
    SourcedObject,
    read_manifests,
    select_documents,
    select_files,
)
from syncline.sources.errors import Problem, SourceError
from syncline.sources.helm.dependencies import Remote
from syncline.sources.helm.rendering import ChartFiles, HelmOptions, chart_files, parse_helm, render_chart
from syncline.sources.kustomize.flags import NO_FLAGS, BuildFlags
from syncline.sources.kustomize.options import KustomizeOptions, parse_options
from syncline.sources.lookup import Lookup
from syncline.sources.rendering.cache import RenderCache, read_set_key
from syncline.sources.rendering.disclosure import undisclosing
from syncline.sources.rendering.environment import NO_CONTEXT, RenderContext, build_environment
from syncline.sources.rendering.jsonnet import JsonnetOptions, check_size, evaluate, imported, parse_jsonnet
from syncline.sources.rendering.plugins import PluginOptions, parse_plugin_options
from syncline.sources.rendering.source_type import SourceType
from syncline.sources.tree import Entry, MemoryTree, Tree, with_modes

if TYPE_CHECKING:
    from syncline.sources.kustomize.engine import KustomizeEngine
    from syncline.sources.kustomize.program import KustomizeProgram
    from syncline.sources.rendering.butane import Documents

__all__ = ["KustomizeRenderer", "RenderContext", "Rendered", "Renderer", "SourceType", "render_opened"]


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """The parts of an Application's ``spec.source`` that rendering needs. ``explicit`` names the given tool block,
    ``sha`` is the rendered commit, once it is known."""

    repo_url: str
    path: str = "."
    revision: str = "HEAD"
    directory: DirectoryOptions = field(default_factory=DirectoryOptions)
    explicit: SourceType | None = None
    kustomize: KustomizeOptions = field(default_factory=KustomizeOptions)
    helm: HelmOptions = field(default_factory=HelmOptions)
    jsonnet: JsonnetOptions = field(default_factory=JsonnetOptions)
    plugin: PluginOptions = field(default_factory=PluginOptions)
    context: RenderContext = field(default_factory=RenderContext)
    sha: str = ""
    refs: Mapping[str, Tree] = field(default_factory=dict, compare=False, repr=False)
    """Repositories of other sources by the names that values files may call them."""
    remote: Remote | None = field(default=None, compare=False, repr=False)
    """What the render may fetch; None: nothing."""
    variant: str = ""
    """Tells apart what equal files of a repository may be read as (large files or their pointers)."""
    disabled: frozenset[SourceType] = frozenset()
    """Tools that the settings forbid: their folders hold plain manifests then."""
    ansible: bool = False
    """Whether the settings let playbooks be captured."""
    found: dict[str, ChartFiles] = field(default_factory=dict, compare=False, repr=False)
    """What ``reads`` found, for ``render`` right after it."""

    @property
    def environment(self) -> dict[str, str]:
        """Return the ``$ARGOCD_APP_…`` variables of this source."""
        return build_environment(self.context, url=self.repo_url, path=self.path, revision=self.revision, sha=self.sha)


@dataclass(frozen=True, slots=True)
class Rendered:
    """The objects of a source at a commit. ``key`` identifies everything that was read: equal keys, equal objects."""

    objects: tuple[SourcedObject, ...]
    sha: str
    source_type: SourceType
    key: str
    warnings: tuple[str, ...] = ()
    cached: bool = False
    own_folder: bool = False
    """All that was read lies in the source's folder."""

    @property
    def manifests(self) -> list[Obj]:
        return [sourced.obj for sourced in self.objects]


class Renderer(Protocol):
    """One tool. ``reads`` returns every file that the result depends on, before rendering."""

    @property
    def source_type(self) -> SourceType: ...

    def reads(self, tree: Tree, spec: SourceSpec) -> tuple[Entry, ...]: ...

    def options(self, spec: SourceSpec) -> object: ...

    def render(self, tree: Tree, spec: SourceSpec, entries: tuple[Entry, ...]) -> Manifests: ...


@runtime_checkable
class Claiming(Protocol):
    """A tool that decides itself if a folder is its own, before detection by files."""

    @property
    def source_type(self) -> SourceType: ...

    def claims(self, tree: Tree, spec: SourceSpec) -> bool: ...


@runtime_checkable
class Named(Protocol):
    """A tool for sources of Applications whose annotation ``syncline.dev/source`` names it, and for no others."""

    @property
    def source_name(self) -> str: ...

    @property
    def source_type(self) -> SourceType: ...


@dataclass(frozen=True, slots=True)
class DirectoryRenderer:
    """Renders plain manifests, and Butane documents for OpenShift."""

    limits: DirectoryLimits = field(default_factory=DirectoryLimits)

    @property
    def source_type(self) -> SourceType:
        return SourceType.DIRECTORY

    def reads(self, tree: Tree, spec: SourceSpec) -> tuple[Entry, ...]:
        documents = self._documents(tree, spec)
        files = found = select_files(tree, spec.directory, self.limits)
        if documents is not None:
            files, found = documents.among(files)
        programs = _programs(tree, files)
        if not programs:
            return found
        # Imports are part of what is read; a path from the root tells them from the folder's own files.
        imports = imported(Lookup(tree), tree.path, programs, self._jsonnet(spec))
        return (*found, *(replace(entry, path=f"/{entry.path}") for entry in imports))

    def options(self, spec: SourceSpec) -> object:
        # Include and exclude decide which files are read, and those are in the key already.
        return self._jsonnet(spec)

    def render(self, tree: Tree, spec: SourceSpec, entries: tuple[Entry, ...]) -> Manifests:
        documents = self._documents(tree, spec)
        named = [entry for entry in entries if not entry.path.startswith("//")]
        files = tuple(entry for entry in named if not entry.path.startswith("/"))
        if documents is not None:
            files = documents.left_of(files)
        imports = [replace(entry, path=entry.path[1:]) for entry in named if entry.path.startswith("/")]
        manifests = self._manifests(tree, spec, files, imports)
        if documents is None:
            return manifests
        objects, warnings = documents.render(manifests.objects)
        return Manifests((*manifests.objects, *objects), (*manifests.warnings, *warnings))

    def _manifests(self, tree: Tree, spec: SourceSpec, files: tuple[Entry, ...], imports: list[Entry]) -> Manifests:
        if not imports:
            return read_manifests(tree, files, self.limits)
        mains = [entry.path for entry in _programs(tree, files)]
        evaluated = evaluate(Lookup(tree), tree.path, mains, imports, self._jsonnet(spec))
        return read_manifests(tree, files, self.limits, evaluated)

    def _documents(self, tree: Tree, spec: SourceSpec) -> Documents | None:
        """Return the Butane documents, None without any; then no Butane code is loaded."""
        entries = select_documents(tree, spec.directory, BUTANE)
        if not entries:
            return None
        from syncline.sources.rendering.butane import read_documents

        return read_documents(tree, entries)

    def _jsonnet(self, spec: SourceSpec) -> JsonnetOptions:
        return spec.jsonnet.expanded(spec.environment)


def _programs(tree: Tree, files: tuple[Entry, ...]) -> list[Entry]:
    """Return the Jsonnet files that are not excluded, by path from the root."""
    found = [entry for entry in files if entry.path.endswith(".jsonnet")]
    check_size(tree.path, found)
    contents = tree.read(found) if found else {}
    prefix = f"{tree.path}/" if tree.path else ""
    wanted = [entry for entry in found if SKIP_MARKER not in contents[entry.path]]
    return [replace(entry, path=prefix + entry.path) for entry in wanted]


@dataclass(frozen=True, slots=True)
class HelmRenderer:
    """Renders a chart with its values files, wherever they are in the repository."""

    @property
    def source_type(self) -> SourceType:
        return SourceType.HELM

    def reads(self, tree: Tree, spec: SourceSpec) -> tuple[Entry, ...]:
        spec.found[tree.path] = chart_files(Lookup(tree, spec.refs), tree.path, self._helm(spec), spec.remote)
        return spec.found[tree.path].entries

    def options(self, spec: SourceSpec) -> object:
        return self._helm(spec)

    def render(self, tree: Tree, spec: SourceSpec, entries: tuple[Entry, ...]) -> Manifests:
        lookup, options = Lookup(tree, spec.refs), self._helm(spec)
        files = spec.found.get(tree.path) or chart_files(lookup, tree.path, options, spec.remote)
        return render_chart(lookup, tree.path, files, options, spec.remote)

    def _helm(self, spec: SourceSpec) -> HelmOptions:
        return spec.helm.completed(spec.context, spec.environment)


@dataclass(frozen=True, slots=True)
class KustomizeRenderer:
    """Renders a kustomization with its bases and components, wherever they are in the repository."""

    given: KustomizeEngine | None = None
    """None: the one of this process, loaded with the first kustomization."""
    program: KustomizeProgram | None = None
    """Builds what needs plugins; None: no one does."""

    @property
    def source_type(self) -> SourceType:
        return SourceType.KUSTOMIZE

    @property
    def engine(self) -> KustomizeEngine:
        return self.given or _shared_engine()

    def reads(self, tree: Tree, spec: SourceSpec) -> tuple[Entry, ...]:
        options = self.options(spec)
        try:
            return self.engine.reads(tree, options, spec.remote)
        except SourceError as error:
            if error.problem is not Problem.UNSUPPORTED or not options.flags.plugins:
                raise
            if self.program is None:
                fix = "install kustomize where the controllers run"
                raise SourceError(error.problem, error.message, field=error.field, fix=fix) from None
        # No one knows what a plugin reads.
        return Entry(_BY_PROGRAM, "", str(self.program.path), 0), *with_modes(tree.whole().entries)

    def options(self, spec: SourceSpec) -> KustomizeOptions:
        return spec.kustomize.completed(spec.context, spec.environment)

    def render(self, tree: Tree, spec: SourceSpec, entries: tuple[Entry, ...]) -> Manifests:
        options = self.options(spec)
        if self.program is not None and entries and entries[0].path == _BY_PROGRAM:
            return self.program.build(tree, options.flags, self.engine.edited(tree, options))
        return self.engine.render(tree, options, entries, spec.remote)


@cache
def _shared_engine() -> KustomizeEngine:
    from syncline.sources.kustomize.engine import KustomizeEngine

    return KustomizeEngine()


BUTANE = ".bu"
_BY_PROGRAM = "//kustomize"
"""Stands first among what is read where the program builds; no file is called so."""


DEFAULT_RENDERERS: tuple[Renderer, ...] = (DirectoryRenderer(), KustomizeRenderer(), HelmRenderer())

_BLOCKS = {
    "helm": SourceType.HELM,
    "kustomize": SourceType.KUSTOMIZE,
    "directory": SourceType.DIRECTORY,
    "plugin": SourceType.PLUGIN,
}
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


def parse_source(source: Mapping[str, Any], context: RenderContext = NO_CONTEXT) -> SourceSpec:
    """Parse ``spec.source`` or an entry of ``spec.sources``; raises :class:`SourceError` for unsupported settings."""
    given = [name for name in _BLOCKS if source.get(name)]
    if len(given) > 1:
        names = ",".join(_BLOCKS[name].value for name in sorted(given))
        raise SourceError(Problem.INVALID, f"multiple application sources defined: {names}", field="spec.source")
    directory, kustomize, helm = (_block(source, name) for name in ("directory", "kustomize", "helm"))
    options = DirectoryOptions(
        bool(directory.get("recurse")),
        str(directory.get("include") or ""),
        str(directory.get("exclude") or ""),
        bool(directory.get("disableExtensionFilter")),
    )
    return SourceSpec(
        repo_url=str(source.get("repoURL") or ""),
        path=str(source.get("path") or "."),
        revision=str(source.get("targetRevision") or "HEAD"),
        directory=options,
        explicit=_BLOCKS[given[0]] if given else None,
        kustomize=parse_options(kustomize),
        helm=parse_helm(helm),
        jsonnet=parse_jsonnet(directory.get("jsonnet")),
        plugin=parse_plugin_options(_block(source, "plugin")),
        context=context,
    )


def _block(source: Mapping[str, Any], name: str) -> dict[str, Any]:
    block = source.get(name) or {}
    if not isinstance(block, dict):
        raise SourceError(Problem.INVALID, f"spec.source.{name} is not a mapping", field=f"spec.source.{name}")
    return block


def detect(tree: Tree, spec: SourceSpec) -> SourceType:
    """Return the tool for a folder: that of the given block, or of a kustomization, or of a chart."""
    if spec.explicit is not None:
        return spec.explicit
    names = [entry.path for entry in tree.entries if "/" not in entry.path]
    if any(name in _KUSTOMIZATIONS for name in names):
        return SourceType.KUSTOMIZE
    if any(name.endswith("Chart.yaml") for name in names):
        return SourceType.HELM
    return SourceType.DIRECTORY


def _tool(tree: Tree, spec: SourceSpec, renderers: Sequence[Renderer]) -> SourceType:
    """Return the tool of the given block, or a plugin that claims the folder, or the one detected by files."""
    claimed = (tool for tool in renderers if isinstance(tool, Claiming) and tool.claims(tree, spec))
    if spec.explicit is None and (first := next(claimed, None)) is not None:
        return first.source_type
    found = detect(tree, spec)
    return SourceType.DIRECTORY if found in spec.disabled else found


def render_opened(
    source: Mapping[str, Any],
    tree: Tree,
    sha: str,
    *,
    context: RenderContext = NO_CONTEXT,
    refs: Mapping[str, Tree] | None = None,
    remote: Remote | None = None,
    variant: str = "",
    disabled: frozenset[SourceType] = frozenset(),
    jsonnet: bool = True,
    butane: bool = True,
    ansible: bool = False,
    kustomize: BuildFlags = NO_FLAGS,
    cache: RenderCache | None = None,
    renderers: Sequence[Renderer] = DEFAULT_RENDERERS,
) -> Rendered:
    """Return the objects of an Application's source, including the overrides in its folder.

    ``sha`` is the commit, version or digest of ``tree``; ``disabled``, ``jsonnet``, ``butane``, ``ansible`` and
    ``kustomize`` are settings. Raises :class:`SourceError`.
    """
    try:
        spec = parse_source(with_overrides(source, tree, context.application), context)
    except SourceError as error:
        raise undisclosing(error, (tree,), ()) from None
    directory = replace(spec.directory, jsonnet=jsonnet, butane=butane)
    spec = replace(spec, refs=refs or {}, remote=remote, variant=variant, disabled=disabled, directory=directory)
    spec = replace(spec, kustomize=replace(spec.kustomize, flags=kustomize), ansible=ansible)
    return render_tree(spec, tree, sha, cache=cache, renderers=renderers)


MAX_OVERRIDE = 1_000_000
_FIXED = ("repoURL", "path", "chart", "targetRevision")
"""What an override file cannot change."""


def with_overrides(source: Mapping[str, Any], tree: Tree, application: str = "") -> dict[str, Any]:
    """Return ``source`` merged with ``.argocd-source.yaml``, then ``.argocd-source-<application>.yaml`` of the folder.

    They are JSON merge patches in which null changes nothing (Argo CD ``reposerver/repository`` mergeSourceParameters:
    fields missing afterwards get their old value). Raises :class:`SourceError`.
    """
    names = [".argocd-source.yaml", f".argocd-source-{application}.yaml"]
    found = {entry.path: entry for entry in tree.entries if entry.path in names and entry.is_file}
    merged: Any = dict(source)
    for name in names:
        if name in found:
            if found[name].size > MAX_OVERRIDE:
                message = f"{name} is larger than {MAX_OVERRIDE} bytes"
                raise SourceError(Problem.TOO_LARGE, message, subject=name)
            merged = json_merge_patch(merged, _override(name, tree.read([found[name]])[name]))
    kept = {name: source[name] for name in _FIXED if name in source}
    return {name: value for name, value in merged.items() if name not in _FIXED} | kept


def _override(name: str, content: bytes) -> dict[str, Any]:
    try:
        value = yaml.load(content, file=name)
    except yaml.YamlError as error:
        raise SourceError(Problem.INVALID, str(error), subject=name, position=error.position) from None
    if value is not None and not isinstance(value, dict):
        raise SourceError(Problem.INVALID, f"{name}: an override is a mapping of source fields", subject=name)
    given: dict[str, Any] = _given(value or {}, source_schema())
    wrong = (cause for cause in check_value(given, source_schema()) if cause.reason == "FieldValueTypeInvalid")
    if (first := next(wrong, None)) is not None:
        message = f"{name}: {first.field}: {first.message}"
        raise SourceError(Problem.INVALID, message, subject=name, field=first.field)
    return given


def _given(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return ``value`` without nulls; field names match in any case, as in Go (``forcestring``)."""
    if isinstance(value, list):
        return [_given(one, schema.get("items") or {}) for one in value]
    if not isinstance(value, dict):
        return value
    fields = schema.get("properties") or {}
    names = {name.lower(): name for name in fields}
    named = ((names.get(name.lower(), name), one) for name, one in value.items() if one is not None)
    return {name: _given(one, fields.get(name) or {}) for name, one in named}


def render_tree(
    spec: SourceSpec,
    tree: Tree,
    sha: str,
    *,
    cache: RenderCache | None = None,
    renderers: Sequence[Renderer] = DEFAULT_RENDERERS,
) -> Rendered:
    """Return the objects of ``spec`` in ``tree``. Raises :class:`SourceError`, with the source's secrets masked."""
    try:
        return _rendered(replace(spec, sha=sha), tree, cache, renderers)
    except SourceError as error:
        raise undisclosing(error, _trees(spec, tree), _parameters(spec)) from None


def _trees(spec: SourceSpec, tree: Tree) -> Iterator[Tree]:
    """Yield the source's folder, its repository, external values files, and the repositories of other sources."""
    yield tree
    if tree.path:
        yield tree.whole()
    if tree.path in spec.found:
        yield MemoryTree(spec.found[tree.path].texts)
    yield from spec.refs.values()


def _parameters(spec: SourceSpec) -> Iterator[tuple[str, str]]:
    """Yield the parameters of the Application by name; a text of values has no name."""
    yield from ((name, value) for name, value, _ in spec.helm.parameters)
    yield from ((one.name, one.value) for one in (*spec.jsonnet.ext_vars, *spec.jsonnet.tlas))
    yield from spec.plugin.env
    yield "", spec.plugin.parameters + "\n"
    yield "", spec.helm.values + "\n"


def _rendered(spec: SourceSpec, tree: Tree, cache: RenderCache | None, renderers: Sequence[Renderer]) -> Rendered:
    # Some tools build or run a program to say what they read.
    with _resting(cache, "reads", spec, lambda: tree.whole().id):
        renderer = _renderer(spec, tree, renderers)
        entries = renderer.reads(tree, spec)
    key = read_set_key(renderer.source_type.value + spec.variant, tree.path, renderer.options(spec), entries)
    inside = _stays_inside(tree, renderer.source_type, entries)
    found = cache.get(key) if cache is not None else None
    if found is not None:
        return Rendered(found.objects, spec.sha, renderer.source_type, key, found.warnings, True, inside)
    with _resting(cache, "renders", spec, lambda: key):
        manifests = renderer.render(tree, spec, entries)
    if spec.context.source and renderer.source_type is not SourceType.HELM and not manifests.objects:
        manifests = replace(manifests, warnings=(*manifests.warnings, _WITHOUT_HELM))
    if cache is not None:
        cache.put(key, manifests)
    return Rendered(manifests.objects, spec.sha, renderer.source_type, key, manifests.warnings, False, inside)


_WITHOUT_HELM = f"annotation {SOURCE} counts for a source with a helm block, which names its value files; there is none"


def _stays_inside(tree: Tree, source_type: SourceType, entries: tuple[Entry, ...]) -> bool:
    """Return True if nothing outside its folder can affect its result. Links and submodules may; for plugins it is
    unknown."""
    if not all(entry.is_file for entry in tree.entries):
        return False
    match source_type:
        case SourceType.DIRECTORY:  # named from the folder; from the root with a slash
            return not any(entry.path.startswith("/") for entry in entries)
        case SourceType.HELM | SourceType.KUSTOMIZE:  # named from the root; what is missing, and folders, are no files
            prefix = f"{tree.path}/" if tree.path else ""
            files = {prefix + entry.path for entry in tree.entries}
            others = [entry for entry in entries if entry.path not in files]
            return all(
                entry.path.startswith(prefix) and (not entry.blob or entry.path.endswith("/")) for entry in others
            )
        case _:
            return False


def _resting(
    cache: RenderCache | None, what: str, spec: SourceSpec, content: Callable[[], str]
) -> contextlib.AbstractContextManager[None]:
    """Apply :class:`~syncline.sources.remote.rests.Rests` to each source of an Application separately."""
    if cache is None:
        return contextlib.nullcontext()
    options = hashlib.sha256(repr(replace(spec, sha="", revision="")).encode()).hexdigest()
    return cache.rests.guard((what, spec.context.project, spec.context.application, spec.repo_url, options), content)


def _renderer(spec: SourceSpec, tree: Tree, renderers: Sequence[Renderer]) -> Renderer:
    wanted = spec.context.source if spec.explicit is None else ""
    named = (tool for tool in renderers if isinstance(tool, Named) and tool.source_name == wanted)
    if wanted and (tool := next(named, None)) is not None:
        return tool
    renderers = [tool for tool in renderers if not isinstance(tool, Named)]
    source_type = _tool(tree, spec, renderers)
    renderer = next((tool for tool in renderers if tool.source_type is source_type), None)
    if renderer is not None:
        return renderer
    raise SourceError(
        Problem.UNSUPPORTED,
        f"{tree.path or '.'}: the source asks for the tool {source_type.value}, which is not enabled here",
        subject=spec.repo_url,
        field="spec.source",
        fix="start the controllers with --plugins FOLDER" if source_type is SourceType.PLUGIN else "",
    )
