"""Renders Helm charts of a repository to objects, without release, cluster or network: :func:`render_chart`.

``sources/rendering/renderer.py`` calls :func:`chart_files` for the files that a render reads, then
:func:`render_chart`. The chart is written to a temporary folder and rendered in a worker by Helm itself: the library if
it is installed, or a ``helm`` program. Rules: Argo CD ``reposerver`` helmTemplate (reference argocd-app 1.3, 5.3).
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import posixpath
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from syncline.kube.objects import annotations_of
from syncline.sources.directory import Manifests, SourcedObject, read_output
from syncline.sources.errors import Problem, SourceError
from syncline.sources.helm.chart_check import SCHEMA
from syncline.sources.helm.dependencies import (
    Remote,
    declared_dependencies,
    fetched_dependencies,
    local_dependencies,
)
from syncline.sources.helm.patterns import Verdict, own_chart, render_own
from syncline.sources.helm.values import FIELD, file_at, has_scheme, merged, parameters_into, read_values, values_paths
from syncline.sources.lookup import Lookup
from syncline.sources.rendering.environment import RenderContext, expand, plain_version
from syncline.sources.tree import Entry
from syncline.sources.workers.pool import shared_workers
from syncline.sources.workers.scratch import write_below

MAX_FILES = 10_000
MAX_BYTES = 100_000_000
"""Helm's own bound for a chart is 100 MiB unpacked."""
MAX_RELEASE_NAME = 53
MAX_OBJECTS = 50_000

_RELEASE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class HelmOptions:
    """``spec.source.helm``. ``values`` is YAML or JSON text; ``parameters`` are (name, value, force text)."""

    release_name: str = ""
    namespace: str = ""
    value_files: tuple[str, ...] = ()
    ignore_missing: bool = False
    values: str = ""
    parameters: tuple[tuple[str, str, bool], ...] = ()
    file_parameters: tuple[tuple[str, str], ...] = ()
    skip_crds: bool = False
    skip_tests: bool = False
    skip_schema: bool = False
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()
    engine: str = ""
    """The task that renders it; another engine may print otherwise."""
    source: str = ""
    """The chart that the Application's annotation names, whose values its source holds."""

    def completed(self, context: RenderContext, environment: Mapping[str, str]) -> HelmOptions:
        """Return the options with the destination's values filled in: equal values render equally."""
        return replace(
            self,
            release_name=self.release_name or context.name,
            namespace=self.namespace or context.namespace,
            value_files=tuple(_path(name, environment) for name in self.value_files),
            parameters=tuple((name, expand(value, environment), force) for name, value, force in self.parameters),
            file_parameters=tuple((name, _path(path, environment)) for name, path in self.file_parameters),
            kube_version=plain_version(self.kube_version) or context.kube_version,
            api_versions=self.api_versions or context.api_versions,
            engine=helm_engine(),
            source=context.source,
        )


def _path(name: str, environment: Mapping[str, str]) -> str:
    """Replace variables in a path; ``$source/…`` of an unknown variable stays: it names another source."""
    first = name.partition("/")[0]
    return name if first.startswith("$") and first[1:].strip("{}") not in environment else expand(name, environment)


def parse_helm(block: Mapping[str, Any]) -> HelmOptions:
    """Parse the block; ``passCredentials`` concerns fetching only. Raises :class:`SourceError`."""
    if (version := block.get("version") or "v3") not in ("v3", "v4"):
        message = f"{FIELD}.version: helm version {version!r} is not supported, only v3 and v4 are"
        raise SourceError(Problem.INVALID, message, field=f"{FIELD}.version", fix="leave the field out")
    inline = block.get("valuesObject")
    return HelmOptions(
        release_name=str(block.get("releaseName") or ""),
        namespace=str(block.get("namespace") or ""),
        value_files=tuple(str(name) for name in block.get("valueFiles") or ()),
        ignore_missing=bool(block.get("ignoreMissingValueFiles")),
        values=json.dumps(inline, sort_keys=True) if inline is not None else str(block.get("values") or ""),
        parameters=tuple(
            (str(one.get("name") or ""), str(one.get("value") or ""), bool(one.get("forceString")))
            for one in block.get("parameters") or ()
        ),
        file_parameters=tuple(
            (str(one.get("name") or ""), str(one.get("path") or "")) for one in block.get("fileParameters") or ()
        ),
        skip_crds=bool(block.get("skipCrds")),
        skip_tests=bool(block.get("skipTests")),
        skip_schema=bool(block.get("skipSchemaValidation")),
        kube_version=str(block.get("kubeVersion") or ""),
        api_versions=tuple(str(version) for version in block.get("apiVersions") or ()),
    )


def helm_engine() -> str:
    """Return the worker task that renders charts on this machine, empty if there is none."""
    if importlib.util.find_spec("helm_python") is not None:
        return "helm"
    return "helm-binary" if shutil.which("helm") else ""


@dataclass(frozen=True, slots=True)
class ChartFiles:
    """The files that a render reads, by path from the root: chart, dependencies by name, values, parameters."""

    chart: tuple[Entry, ...]
    local: tuple[tuple[str, str, tuple[Entry, ...]], ...] = ()
    """Name, folder and files of dependencies that lie elsewhere in the repository (``file://``)."""
    values: tuple[Entry, ...] = ()
    parameters: tuple[tuple[str, Entry], ...] = ()
    archives: tuple[Entry, ...] = ()
    """Dependencies from chart repositories, named from the chart; the blob is the digest."""
    texts: Mapping[str, bytes] = field(default_factory=dict, compare=False)
    """Values files by address, as they were a moment ago."""

    @property
    def inside(self) -> list[Entry]:
        """Return the files that are in repositories."""
        found = [*self.chart, *self.values, *(entry for _, entry in self.parameters)]
        found += [entry for _, _, entries in self.local for entry in entries]
        return sorted({entry for entry in found if entry.path not in self.texts})

    @property
    def entries(self) -> tuple[Entry, ...]:
        others = {entry for entry in (*self.values, *(one for _, one in self.parameters)) if entry.path in self.texts}
        return tuple(sorted({*self.inside, *self.archives, *others}))


def chart_files(lookup: Lookup, folder: str, options: HelmOptions, remote: Remote | None = None) -> ChartFiles:
    """Return every file that rendering the chart in ``folder`` depends on; ``remote`` None: fetch nothing.

    Raises :class:`SourceError`.
    """
    bare = options.source and lookup.find(posixpath.join(folder, "Chart.yaml")) is None
    chart = () if bare else tuple(lookup.below(folder))
    texts: dict[str, bytes] = {}
    schemes = remote.schemes if remote is not None else ()
    paths = values_paths(
        folder,
        options.value_files,
        ignore_missing=options.ignore_missing,
        exists=lambda path: has_scheme(path) or lookup.find(path) is not None,
        listing=lookup.paths,
        refs=lookup.refs,
        schemes=schemes,
    )

    def entry_at(path: str) -> Entry | None:
        if remote is None or not has_scheme(path):
            return lookup.find(path)
        if path not in texts:
            texts[path] = remote.text(path)
        return Entry(path, "100644", hashlib.sha256(texts[path]).hexdigest(), len(texts[path]))

    parameters: list[tuple[str, Entry]] = []
    for name, path in options.file_parameters:
        entry = entry_at(file_at(folder, path, f"{FIELD}.fileParameters", lookup.refs, schemes))
        if entry is None:
            message = f"file parameter '{path}' is not in the repository"
            raise SourceError(Problem.INVALID, message, field=f"{FIELD}.fileParameters")
        parameters.append((name, entry))
    declared = declared_dependencies(lookup, folder, chart)
    pin = hashlib.sha256("".join(f"{entry.path} {entry.blob}\n" for entry in chart).encode()).hexdigest()
    fetched = fetched_dependencies(declared, remote, pin)
    found = ChartFiles(
        chart,
        tuple(local_dependencies(lookup, folder, declared)),
        tuple(entry for entry in (entry_at(path) for path in paths) if entry is not None),
        tuple(parameters),
        tuple(Entry(name, "100644", digest, 0) for name, digest in fetched),
        texts,
    )
    size = sum(entry.size for entry in found.entries)
    if len(found.entries) > MAX_FILES or size > MAX_BYTES:
        message = f"{folder or '.'}: a chart may have {MAX_FILES} files and {MAX_BYTES} bytes"
        raise SourceError(Problem.TOO_LARGE, message, field="spec.source.path")
    return found


def render_chart(
    lookup: Lookup, folder: str, files: ChartFiles, options: HelmOptions, remote: Remote | None = None
) -> Manifests:
    """Return the objects of the chart; ``files`` is the result of :func:`chart_files`. Raises :class:`SourceError`."""
    _check_release_name(options.release_name)
    contents = {**lookup.read(files.inside), **files.texts}
    values, warnings = _values(files, contents, options)
    verdict = _who_renders(folder, files, contents, options, remote)
    warnings += [verdict.warning] if verdict.warning else []
    found, refused = _own(folder, verdict, values, options)
    if found is None:
        try:
            found = _by_helm(folder, files, contents, values, options, remote)
        except SourceError:
            if refused is not None:
                raise refused from None
            raise
        if refused is not None:
            warnings.append(f"rendered by Helm, since Syncline alone refuses the values: {refused}")
    objects = found
    if options.skip_tests:
        objects = [one for one in objects if not is_test(str(annotations_of(one.obj).get("helm.sh/hook") or ""))]
    return Manifests(tuple(objects), tuple(warnings))


def _who_renders(
    folder: str,
    files: ChartFiles,
    contents: Mapping[str, bytes],
    options: HelmOptions,
    remote: Remote | None,
) -> Verdict:
    prefix = f"{folder}/" if folder else ""
    chart = {entry.path.removeprefix(prefix): contents[entry.path] for entry in files.chart}
    local = {
        name: {one.path.removeprefix(f"{place}/"): contents[one.path] for one in found}
        for name, place, found in files.local
    }
    packed = [partial(remote.archive, one.blob) for one in files.archives] if remote is not None else []
    return own_chart(options.source, chart, local, packed)


def _own(
    folder: str, verdict: Verdict, values: dict[str, Any], options: HelmOptions
) -> tuple[list[SourcedObject] | None, SourceError | None]:
    """Return the objects that we render, or why we refuse what Helm may accept; neither: it is not ours."""
    if verdict.chart is None:
        return None, None
    release = (options.release_name, options.namespace or "default", verdict.picture)
    try:
        return render_own(verdict.chart, folder, values, release, options.skip_schema, MAX_OBJECTS), None
    except SourceError as error:
        if error.problem is not Problem.INVALID or not verdict.by_helm or not options.engine:
            raise
        return None, error


def _by_helm(
    folder: str,
    files: ChartFiles,
    contents: Mapping[str, bytes],
    values: dict[str, Any],
    options: HelmOptions,
    remote: Remote | None,
) -> list[SourcedObject]:
    if not options.engine:
        raise SourceError(
            Problem.UNSUPPORTED,
            f"{folder or '.'}: Helm charts need Helm, which is not installed",
            field="spec.source.path",
            fix="`pip install helm-python-sdk` (in a clone `python3 run.py helm`), or put a helm program on PATH",
        )
    workers = shared_workers()
    with workers.scratch() as scratch:
        _write_chart(scratch / "chart", folder, files, contents, options)
        if remote is not None:
            _write_archives(scratch / "chart", files.archives, remote)
        payload = {
            "chart": str(scratch / "chart"),
            "scratch": str(scratch),
            "name": options.release_name,
            "namespace": options.namespace or "default",
            "values": json.dumps(values),
            "kube_version": options.kube_version,
            "api_versions": list(options.api_versions),
            "skip_crds": options.skip_crds,
            "skip_schema": options.skip_schema,
        }
        found = workers.run(options.engine, payload, label=folder or ".")
    return [one for name, text in found for one in read_output(_place(folder, name), text, MAX_OBJECTS)]


def _check_release_name(name: str) -> None:
    if len(name) > MAX_RELEASE_NAME or not _RELEASE_NAME.fullmatch(name):
        raise SourceError(
            Problem.INVALID,
            f"release name {name!r} is invalid: lower case letters, digits, '-' and '.', at most {MAX_RELEASE_NAME}",
            field=f"{FIELD}.releaseName",
            fix="set spec.source.helm.releaseName",
        )


def _values(files: ChartFiles, contents: Mapping[str, bytes], options: HelmOptions) -> tuple[dict[str, Any], list[str]]:
    values: dict[str, Any] = {}
    for entry in files.values:
        values = merged(values, read_values(contents[entry.path], entry.path))
    if options.values:
        values = merged(values, read_values(options.values, f"{FIELD}.values"))
    parameters = [(name, contents[entry.path].decode("utf-8", "replace")) for name, entry in files.parameters]
    warnings = parameters_into(values, options.parameters, parameters)
    return values, warnings


def _write_chart(
    target: Path, folder: str, files: ChartFiles, contents: Mapping[str, bytes], options: HelmOptions
) -> None:
    places = [("", folder, files.chart), *((f"charts/{name}", place, found) for name, place, found in files.local)]
    found: dict[str, bytes] = {}
    for below, place, entries in places:
        prefix = f"{place}/" if place else ""
        for entry in entries:
            name = posixpath.join(below, entry.path.removeprefix(prefix))
            if not (options.skip_schema and posixpath.basename(name) == SCHEMA):
                found[name] = contents[entry.path]
    write_below(target, found.items())


def _write_archives(target: Path, archives: Sequence[Entry], remote: Remote) -> None:
    """Write packed charts into ``charts/``."""
    write_below(target, ((entry.path, remote.archive(entry.blob)) for entry in archives))


def _place(folder: str, name: str) -> str:
    """Return the template's path from the root; Helm's begins with the chart's name."""
    inner = name.partition("/")[2]
    return posixpath.join(folder, inner) if inner else folder or "."


_TESTS = {"test", "test-success", "test-failure"}


def is_test(hooks: str) -> bool:
    """Return True if a value of ``helm.sh/hook`` includes a test hook."""
    return bool(_TESTS & {hook.strip() for hook in hooks.split(",")})
