"""``helmCharts`` of a kustomization: renders charts to resources, if ``--enable-helm`` is set. :class:`Charts`.

Called by ``build``. A chart comes from the chart folder (``helmGlobals.chartHome``), or from its repository like ``helm
pull`` would fetch it; nothing is written into the tree. The workers of ``sources/helm/rendering.py`` render it. Source:
kustomize ``HelmChartInflationGenerator`` and ``types.HelmChart``.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from syncline.sources.archive import unpack
from syncline.sources.errors import Problem, SourceError
from syncline.sources.helm.rendering import MAX_BYTES, MAX_FILES, helm_engine, is_test
from syncline.sources.helm.values import merged, read_values
from syncline.sources.kustomize.failure import BuildError, about
from syncline.sources.kustomize.flags import BuildFlags
from syncline.sources.kustomize.loader import Folder, Source
from syncline.sources.kustomize.resources.resource import Resource
from syncline.sources.kustomize.yaml.reader import read_resources
from syncline.sources.workers.deadline import sheltered
from syncline.sources.workers.pool import shared_workers
from syncline.sources.workers.scratch import write_below

DEFAULT_HOME = "charts"
RELEASE = "release-name"
"""What ``helm template`` calls a release without a name."""
MERGES = ("merge", "override", "replace")
MAX_LINKS = 20
HOOK = "helm.sh/hook"


@dataclass(frozen=True, slots=True)
class Charts:
    """Renders the charts of one build. ``kube_version`` and ``api_versions`` are the destination's; flags override an
    entry, an entry overrides them."""

    flags: BuildFlags
    kube_version: str = ""
    api_versions: tuple[str, ...] = ()

    def generator(self, settings: dict[str, Any], folder: Folder) -> Callable[[], list[Resource]]:
        """Check an entry now; return the function that renders it later. Raises :class:`BuildError`."""
        if not settings.get("name"):
            raise BuildError("chart name cannot be empty")
        for name in settings.get("additionalValuesFiles") or ():
            with about("could not load additionalValuesFile"):
                folder.load(name)
        how = settings.get("valuesMerge") or "override"
        if how not in MERGES:
            raise BuildError(f"valuesMerge must be one of [{' '.join(MERGES)}]")
        return lambda: self._inflate(settings, folder, how)

    def _inflate(self, settings: dict[str, Any], folder: Folder, how: str) -> list[Resource]:
        if not helm_engine():
            raise BuildError(
                "Helm charts need Helm, which is not installed",
                problem=Problem.UNSUPPORTED,
                fix="`pip install helm-python-sdk` (in a clone `python3 run.py helm`), or put a helm program on PATH",
            )
        name = str(settings["name"])
        files, home = self._files(settings, folder)
        values = _values(settings, folder, how, files, posixpath.join(home, name, "values.yaml"))
        for path in settings.get("additionalValuesFiles") or ():
            values = merged(values, _parsed(folder.load(path), path))
        workers = shared_workers()
        with sheltered(), workers.scratch() as scratch:
            write_below(scratch / "chart", files.items())
            payload = {
                "chart": str(scratch / "chart"),
                "scratch": str(scratch),
                "name": str(settings.get("releaseName") or settings.get("nameTemplate") or RELEASE),
                "namespace": settings.get("namespace") or "default",
                "values": json.dumps(values),
                "kube_version": self.flags.kube_version or settings.get("kubeVersion") or self.kube_version,
                "api_versions": list(self.flags.api_versions or settings.get("apiVersions") or self.api_versions),
                "skip_crds": not settings.get("includeCRDs"),
            }
            try:
                found = workers.run(helm_engine(), payload, label=f"chart {name}")
            except SourceError as error:
                raise BuildError(error.message, problem=error.problem, fix=error.fix) from None
        made = [Resource(node) for _, text in found for node in read_resources(text)]
        made = [one for one in made if not self._is_left_out(one, settings)]
        for resource in made:
            resource.notes.helm_generated = True
        return made

    def _is_left_out(self, resource: Resource, settings: dict[str, Any]) -> bool:
        hooks = resource.annotations().get(HOOK, "")
        return bool(hooks) and bool(settings.get("skipHooks") or (settings.get("skipTests") and is_test(hooks)))

    def _files(self, settings: dict[str, Any], folder: Folder) -> tuple[dict[str, bytes], str]:
        """Return the chart's files by name, and its chart folder."""
        name, version, repository = (str(settings.get(key) or "") for key in ("name", "version", "repo"))
        home = str(settings.get("chartHome") or DEFAULT_HOME)
        if version and repository:
            home = posixpath.join(home, f"{name}-{version}")
        path = posixpath.join(home, name)
        found = folder.find(path)
        if found is not None and found[1]:
            return dict(_below(folder.source, found[0])), home
        if not repository:
            raise BuildError(f"no repo specified for pull, no chart found at '{folder.shown}/{path}'")
        return _pulled(folder.source, name, version or ("*-0" if settings.get("devel") else "*"), repository), home


def _below(source: Source, place: str) -> Iterator[tuple[str, bytes]]:
    """Yield every file of a folder with its name there; links inside the tree are followed."""
    count = size = 0
    waiting = [("", place, 0)]
    while waiting:
        below, real, links = waiting.pop()
        for name, is_link in source.listing(real):
            target = source.find(posixpath.join(real, name)) if is_link else (posixpath.join(real, name), False)
            if target is None:
                continue
            if target[1]:
                if links >= MAX_LINKS or f"{real}/".startswith(f"{target[0]}/"):
                    raise BuildError(f"the symbolic link {source.shown(f'{real}/{name}')} goes in circles")
                waiting.append((posixpath.join(below, name), target[0], links + 1))
                continue
            content = source.read(target[0])
            count, size = count + 1, size + len(content)
            if count > MAX_FILES or size > MAX_BYTES:
                message = f"{source.shown(place)}: a chart may have {MAX_FILES} files and {MAX_BYTES} bytes"
                raise BuildError(message, problem=Problem.TOO_LARGE)
            yield posixpath.join(below, name), content


def _pulled(source: Source, name: str, version: str, repository: str) -> dict[str, bytes]:
    """Return the files that ``helm pull --untar`` would write."""
    pin = hashlib.sha256(f"{name} {version} {repository}".encode()).hexdigest()
    content = source.fetch_chart(repository.rstrip("/"), name, version, pin)
    try:
        files = unpack(content, name)
    except SourceError as error:
        raise BuildError(error.message, problem=error.problem) from None
    return {path.partition("/")[2]: data for path, data in files.items() if "/" in path}


def _values(
    settings: dict[str, Any], folder: Folder, how: str, files: dict[str, bytes], default: str
) -> dict[str, Any]:
    """Return the values file (by default the chart's own), with inline values over or under it."""
    inline = settings.get("valuesInline") or {}
    named = str(settings.get("valuesFile") or "")
    if inline and how == "replace":
        return dict(inline)
    if named:
        given = _parsed(folder.load(named), named)
    elif "values.yaml" in files:
        given = _parsed(files["values.yaml"], default)
    else:
        raise BuildError(f"evalsymlink failure on '{folder.shown}/{default}' : no such file or directory")
    if not inline:
        return given
    return _over(given, inline) if how == "override" else _over(inline, given)


def _over(base: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Merge ``more`` over ``base``; null removes a key (kyaml ``merge2``)."""
    made = dict(base)
    for key, value in more.items():
        there = made.get(key)
        if value is None:
            made.pop(key, None)
        else:
            made[key] = _over(there, value) if isinstance(there, dict) and isinstance(value, dict) else value
    return made


def _parsed(content: bytes, name: str) -> dict[str, Any]:
    try:
        return read_values(content, name)
    except SourceError as error:
        raise BuildError(error.message, problem=error.problem) from None
