"""``python -m bench patterns FOLDER… [--charts FOLDER] [--drawn N]``: cluster groups of patterns, beside Helm.

Each FOLDER is a checkout of a pattern as it is; nothing is fetched. Its main group, the groups that it manages and its
other groups are rendered with the value files and parameters that the patterns operator gives them, as a source of an
Application is. With ``--charts``, a folder that holds the charts ``clustergroup`` (with its dependency) and ``acm`` as
upstream publishes them, real Helm renders the same, and the objects are compared; pictures of ConsoleLinks are not.
``--drawn`` changes their values at random so many times for each chart, and compares again (``bench/drawn.py``).
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.drawn import compare
from bench.table import Table
from syncline.clustergroup.defaults import layered
from syncline.clustergroup.errors import RenderFailed
from syncline.clustergroup.ordering import rank
from syncline.clustergroup.printing import expanded
from syncline.kube.objects import Obj, dig, name_of
from syncline.sources.errors import SourceError
from syncline.sources.helm.values import parameters_into, read_values
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.rendering.renderer import parse_source, render_tree
from syncline.sources.tree import MemoryTree

PLATFORM, VERSION, CLUSTER = "AWS", "4.18", "hub-one"
ROUNDS = 5
MAX_FILE = 4 * 1024 * 1024
Files = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Group:
    """One cluster group of a pattern: its values as the operator layers them. ``main``: the pattern's own."""

    pattern: str
    name: str
    files: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """``seconds``: the median of the rounds; ``error``: why there are no objects."""

    objects: tuple[Obj, ...] = ()
    seconds: float = 0.0
    error: str = ""


def figures(
    table: Table, *, quick: bool, folders: Sequence[Path], charts: Path | None, drawn: int = 0, seed: int = 1
) -> None:
    given = {name: _read(charts / name) for name in ("clustergroup", "acm")} if charts is not None else {}
    beside = "beside Helm with the real charts" if given else "without Helm: no --charts"
    table.title(f"Cluster groups of {len(folders)} patterns, {beside}")
    layers: list[Obj] = []
    for folder in folders:
        tree = _read(folder, suffixes=(".yaml", ".yml", ".json"))
        for group in _groups(folder.resolve().name, tree):
            layers.append(_values_of(tree, group))
            if not drawn:
                _group(table, tree, group, given, 1 if quick else ROUNDS)
    for name, chart in given.items() if drawn else ():
        counts, different = compare(
            layers, partial(_of_values, {}, "", name), partial(_of_values, chart, "chart", ""), count=drawn, seed=seed
        )
        said = ", ".join(f"{number} {what}" for what, number in sorted(counts.items()))
        table.row(f"drawn values, {name}, seed {seed}", f"{drawn}", said)
        for change in different[:10]:
            table.row("  different", "", change)


def _values_of(tree: Files, group: Group) -> Obj:
    """Return the values of a group as one mapping."""
    values: Obj = layered([_loaded(tree, name) for name in group.files])
    parameters_into(values, [(name, value, False) for name, value in group.parameters], ())
    return values


def _of_values(chart: Files, folder: str, annotation: str, values: Obj) -> list[Obj] | None:
    """Return comparable objects of values; None: they are refused."""
    context = RenderContext("drawn", "default", "vp-gitops", "1.31.0", (), source=annotation)
    files = _joined({}, chart) if chart else {}
    spec = parse_source({"repoURL": "p", "path": folder or ".", "helm": {"values": json.dumps(values)}}, context)
    try:
        found = render_tree(spec, MemoryTree(files).folder(folder) if folder else MemoryTree(files), "local")
    except SourceError:
        return None
    return [_bare(one) for one in sorted(found.manifests, key=rank)]


def _group(table: Table, tree: Files, group: Group, charts: Mapping[str, Files], rounds: int) -> None:
    values = [_loaded(tree, name) for name in group.files]
    manages = any(dig(one, "clusterGroup", "managedClusterGroups") for one in values)
    for chart in ("clustergroup", "acm") if manages else ("clustergroup",):
        ours = _rendered(tree, "", group, chart, rounds)
        theirs = _rendered(_joined(tree, charts[chart]), "chart", group, "", rounds) if charts else None
        said = "refused" if ours.error else f"{len(ours.objects)} objects"
        beside = f"ours {ours.seconds * 1000:.0f} ms"
        if theirs is not None:
            beside += f", Helm {theirs.seconds * 1000:.0f} ms, {_compared(ours, theirs)}"
        table.row(f"{group.pattern}: {group.name}, {chart}", said, beside)
        remote = sorted(_remote(ours.objects))
        if remote:
            table.row("  children of remote charts", str(len(remote)), ", ".join(remote))
        if ours.error:
            table.row("  why", "", ours.error[:200])


def _compared(ours: Outcome, theirs: Outcome) -> str:
    if ours.error or theirs.error:
        return "both refuse" if ours.error and theirs.error else f"DIFFERENT: {(ours.error or theirs.error)[:120]}"
    pairs = [[_bare(one) for one in sorted(found.objects, key=rank)] for found in (ours, theirs)]
    return "equal" if pairs[0] == pairs[1] else "DIFFERENT"


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "" if key == "imageURL" else _bare(one) for key, one in value.items()}
    return [_bare(one) for one in value] if isinstance(value, list) else value


def _remote(objects: Sequence[Obj]) -> Iterator[str]:
    """Yield the names of Applications whose chart is in no repository of the pattern."""
    for one in objects:
        if one.get("kind") == "Application":
            sources = [dig(one, "spec", "source") or {}, *(dig(one, "spec", "sources") or ())]
            if any(source.get("chart") for source in sources):
                yield name_of(one)


def _read(folder: Path, suffixes: tuple[str, ...] = ()) -> Files:
    """Return the files of a folder by path, without links and what is too large."""
    found = (one for one in sorted(folder.rglob("*")) if one.is_file() and not one.is_symlink())
    return {
        str(one.relative_to(folder)): one.read_bytes()
        for one in found
        if one.stat().st_size <= MAX_FILE and (not suffixes or one.suffix in suffixes)
    }


def _joined(tree: Files, chart: Files) -> Files:
    """Return a pattern with a chart in its folder ``chart``. A file more leaves the chart to Helm."""
    return {**tree, **{f"chart/{path}": content for path, content in chart.items()}, "chart/templates/_bench.tpl": b""}


def _loaded(tree: Files, name: str) -> Any:
    return read_values(tree[name], name) if name in tree else {}


def _groups(pattern: str, tree: Files) -> list[Group]:
    """Return the main group, those that it manages, then all others with a values file."""
    shared = _loaded(tree, "values-global.yaml")
    main = str(dig(shared, "main", "clusterGroupName") or "hub")
    names = [main]
    managed = dig(_loaded(tree, f"values-{main}.yaml"), "clusterGroup", "managedClusterGroups") or {}
    for one in managed.values() if isinstance(managed, dict) else managed:
        names.append(str((one or {}).get("name") or ""))
    for path in sorted(tree):
        stem = path.removeprefix("values-").removesuffix(".yaml")
        if path == f"values-{stem}.yaml" and dig(_loaded(tree, path), "clusterGroup", "name") == stem:
            names.append(stem)
    found = [name for name in dict.fromkeys(names) if f"values-{name}.yaml" in tree]
    return [_laid(pattern, name, main, tree) for name in found]


def _laid(pattern: str, name: str, main: str, tree: Files) -> Group:
    hub = "apps.hub-one.example.com"
    local = hub if name == main else f"apps.{name}.example.com"
    known = {
        "repoURL": f"https://git.example.com/{pattern}.git",
        "originURL": f"https://git.example.com/{pattern}.git",
        "targetRevision": "main",
        "namespace": "vp-gitops",
        "pattern": pattern,
        "clusterDomain": "hub-one.example.com",
        "localClusterName": CLUSTER,
        "clusterVersion": VERSION,
        "clusterPlatform": PLATFORM,
        "hubClusterDomain": hub,
        "localClusterDomain": local,
        "multiSourceSupport": "true",
        "multiSourceRepoUrl": "https://charts.example.com",
        "multiSourceTargetRevision": "0.9.*",
        "privateRepo": "false",
        "experimentalCapabilities": "",
        "deletePattern": "none",
        "vpArgoNamespace": "vp-gitops",
    }
    parameters = [*((f"global.{key}", value) for key, value in known.items()), ("clusterGroup.name", name)]
    layers = ("global", name, PLATFORM, f"{PLATFORM}-{VERSION}", f"{PLATFORM}-{name}", f"{VERSION}-{name}", CLUSTER)
    files = [f"values-{one}.yaml" for one in layers]
    seen = {"global": dict(known), "clusterGroup": {"name": name}}
    shared = dig(_loaded(tree, f"values-{name}.yaml"), "clusterGroup", "sharedValueFiles") or ()
    for one in shared:
        try:
            files.append(expanded(str(one), seen, "sharedValueFiles", str(one)).removeprefix("$patternref").lstrip("/"))
        except RenderFailed:
            continue  # as the operator, which leaves such a file out
    return Group(pattern, name, tuple(dict.fromkeys(files)), tuple(parameters))


def _rendered(tree: Files, folder: str, group: Group, annotation: str, rounds: int) -> Outcome:
    """Render as a source of an Application. ``annotation``: without a chart; else that in ``folder`` by Helm."""
    context = RenderContext(f"{group.pattern}-{group.name}", "default", "vp-gitops", "1.31.0", (), source=annotation)
    helm = {
        "valueFiles": [f"/{name}" for name in group.files],
        "ignoreMissingValueFiles": True,
        "releaseName": f"{group.pattern}-{group.name}"[:53].rstrip("-"),
        "parameters": [{"name": name, "value": value} for name, value in group.parameters],
    }
    spec = parse_source({"repoURL": "pattern", "path": folder or ".", "helm": helm}, context)
    place = MemoryTree(tree).folder(folder) if folder else MemoryTree(tree)
    took: list[float] = []
    for _ in range(rounds + 1):  # the first one starts a worker
        began = time.perf_counter()
        try:
            found = render_tree(spec, place, "local")
        except SourceError as error:
            return Outcome(error=str(error))
        took.append(time.perf_counter() - began)
    return Outcome(tuple(found.manifests), statistics.median(took[1:]))
