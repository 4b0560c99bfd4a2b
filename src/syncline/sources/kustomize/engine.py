"""Runs kustomize builds for the renderer and tracks the files they read: :class:`KustomizeEngine`.

Called by ``sources/rendering/renderer.py`` in worker threads. The files of a kustomization are known only after a
build, so the first call builds and records every path that was read or looked up; later calls compare these paths with
the tree and build again only if one changed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from syncline.base.report import Position
from syncline.sources.directory import Manifests, SourcedObject
from syncline.sources.errors import Problem
from syncline.sources.kustomize.argocd import edit_of
from syncline.sources.kustomize.build import build
from syncline.sources.kustomize.charts import Charts
from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.kustomization import load_kustomization
from syncline.sources.kustomize.loader import (
    DEFAULT_LIMITS,
    Folder,
    Limits,
    RemoteFiles,
    Source,
    TreeFiles,
    is_remote,
    listed,
)
from syncline.sources.kustomize.options import KustomizeOptions
from syncline.sources.tree import Entry, Tree
from syncline.sources.workers.deadline import OutOfTime, within

MAX_TRACES = 8192
"""Folders whose reads are remembered: about as many Applications as one process serves."""

SAME_PATH = 4
"""Traces of one path and options: repositories and branches whose folders have the same names."""

MAX_WAITING = 64
"""Builds that wait to be fetched: one for each thread that renders at the same time."""

FETCHED_MODE = "000001"
"""Mode of an entry that stands for something fetched, or for the names in a folder; the blob is its hash or commit."""
MISSING_MODE = "000000"
"""Mode of an entry that stands for a path where nothing is."""


@dataclass(frozen=True, slots=True)
class _Trace:
    """Path and blob of everything that a build read; the blob is empty for missing files."""

    touched: tuple[tuple[str, str], ...]


class KustomizeEngine:
    """Builds kustomizations. Thread-safe."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._traces: OrderedDict[tuple[str, str, str], tuple[_Trace, ...]] = OrderedDict()
        self._files: tuple[tuple[str, str], TreeFiles] | None = None
        self._last: OrderedDict[int, tuple[_Trace, Manifests]] = OrderedDict()
        self.builds = 0

    def reads(self, tree: Tree, options: KustomizeOptions, remote: RemoteFiles | None = None) -> tuple[Entry, ...]:
        """Return every file that the manifests depend on, sorted; raises :class:`SourceError`."""
        viewer = remote.viewer if remote is not None else ""
        files = self._index(tree, viewer)
        key = (tree.path, repr(options), viewer)
        with self._lock:
            known = self._traces.get(key, ())
        trace = next((one for one in known if _is_fresh(one, files)), None)
        if trace is None:
            trace, manifests = self._build(files, tree.path, options, remote)
            with self._lock:
                self._traces[key] = (trace, *known[: SAME_PATH - 1])
                self._traces.move_to_end(key)
                while len(self._traces) > MAX_TRACES:
                    self._traces.popitem(last=False)
                # The caller what is read renders next, in the same thread.
                self._last[threading.get_ident()] = (trace, manifests)
                while len(self._last) > MAX_WAITING:
                    self._last.popitem(last=False)
        return tuple(
            Entry(path, FETCHED_MODE, blob, 0)
            if is_remote(path) or path.endswith("/")
            else files.entry(path) or Entry(path, MISSING_MODE, "", 0)
            for path, blob in trace.touched
        )

    def render(
        self,
        tree: Tree,
        options: KustomizeOptions,
        entries: tuple[Entry, ...],
        remote: RemoteFiles | None = None,
    ) -> Manifests:
        """Return the manifests; ``entries`` is the result of :meth:`reads`."""
        with self._lock:
            last = self._last.pop(threading.get_ident(), None)
        if last is not None and last[0].touched == tuple((entry.path, entry.blob) for entry in entries):
            return last[1]
        viewer = remote.viewer if remote is not None else ""
        return self._build(self._index(tree, viewer), tree.path, options, remote)[1]

    def edited(self, tree: Tree, options: KustomizeOptions) -> tuple[str, Mapping[str, Any]] | None:
        """Return the kustomization file and its fields changed by ``options``; None if they change nothing."""
        folder = Folder(Source(TreeFiles(tree.whole()), limits=self._limits), tree.path)
        edit = edit_of(options, folder)
        if edit is None:
            return None
        made = edit(load_kustomization(folder))
        return made.file, made.fields

    def _index(self, tree: Tree, viewer: str) -> TreeFiles:
        """Return the files of the repository; those of the last commit are cached per viewer, since many of its folders
        follow."""
        whole = tree.whole()
        key = (whole.id, viewer)
        with self._lock:
            kept = self._files
        if kept is not None and kept[0] == key:
            return kept[1]
        made = TreeFiles(whole)
        with self._lock:
            self._files = (key, made)
        return made

    def _build(
        self, files: TreeFiles, path: str, options: KustomizeOptions, remote: RemoteFiles | None
    ) -> tuple[_Trace, Manifests]:
        flags = options.flags
        charts = Charts(flags, options.kube_version, options.api_versions) if flags.helm else None
        source = Source(files, "", not flags.unrestricted, self._limits, remote=remote, charts=charts)
        edit = edit_of(options, Folder(source, path))
        try:
            built = within(self._limits.cpu_s, lambda: build(source, path, order=flags.order, edit=edit))
        except OutOfTime as error:
            raise BuildError(f"{path or '.'}: the build {error}", problem=Problem.EXHAUSTED) from None
        with self._lock:
            self.builds += 1
        place = Position(path or ".")
        objects = tuple(SourcedObject(obj, place) for obj in built.objects)
        return _Trace(tuple(sorted(source.touched.items()))), Manifests(objects, (*built.warnings, *built.notices))


def _is_fresh(trace: _Trace, files: TreeFiles) -> bool:
    for path, blob in trace.touched:
        if is_remote(path):
            continue  # as upstream: what was fetched for a commit stays with it
        if path.endswith("/"):
            if listed(files.listing(path[:-1])) != blob:
                return False
            continue
        entry = files.entry(path)
        if (entry.blob if entry is not None else "") != blob or (not blob and files.is_folder(path)):
            return False
    return True
