"""Snapshots of clusters and readers of repositories, for commands that need more than one object."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from syncline.assembly.inspection.pulled import PulledCache, pulled
from syncline.assembly.inspection.snapshot import application_indices, snapshot_of_cluster
from syncline.assembly.inspection.sourced import reader_for, rules_in
from syncline.assembly.sources.reading import FolderReader, GitSourceReader
from syncline.cli.access.connection import Connection
from syncline.cli.access.folder import DiskTree, repository_root
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.control.cache import Cache
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.errors import ApiError
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import Obj, ObjectRef, dig, name_of
from syncline.kube.yaml.loading import Budget, load_all

if TYPE_CHECKING:
    from syncline.rehearsal.exported import Exported

ENDINGS = (".yaml", ".yml", ".json")
MAX_EXPORT = 256 * 1024 * 1024
"""Limit of one file of an export in bytes."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@contextlib.contextmanager
def looking(link: Connection, control_namespace: str, *, tell: bool = True) -> Iterator[PulledCache]:
    """Yield a lazy cache of the cluster. At the end, unreadable objects are reported on stderr (unless ``tell`` is
    False) with the rights to request, as the result lacks them."""
    indices = application_indices(AppSettings(control_namespace=control_namespace))
    cache = None
    failed = True
    try:
        cache = pulled(link, indices)
        yield cache
        failed = False
    except ApiError as error:
        raise link.failed(error) from error
    finally:
        for text in cache.sentences(aside=failed) if tell and cache is not None else ():
            click.echo(f"warning: {text}", err=True)


def include(cache: Cache, app: Obj, control_namespace: str) -> None:
    """Read this Application's tracked objects too. An unreadable project counts as one without limits: the controller,
    which can read it, enforces it anyway."""
    if not isinstance(cache, PulledCache):
        return
    cache.followed.append(app)
    name = str(dig(app, "spec", "project") or "default")
    ref = ObjectRef(APP_PROJECT.group, APP_PROJECT.kind, control_namespace, name)
    if cache.unread(ref):
        cache.note(f"project {name} may not be read, so its rules are not checked here")
        cache.put(APP_PROJECT.group_kind, _without_limits(ref))


def _without_limits(ref: ObjectRef) -> Obj:
    anything = {"group": "*", "kind": "*"}
    spec = {
        "sourceRepos": ["*"],
        "sourceNamespaces": ["*"],
        "destinations": [{"server": "*", "namespace": "*"}],
        "clusterResourceWhitelist": [anything],
        "namespaceResourceWhitelist": [anything],
    }
    metadata = {"name": ref.name, "namespace": ref.namespace}
    return {"apiVersion": APP_PROJECT.api_version, "kind": APP_PROJECT.kind, "metadata": metadata, "spec": spec}


def look_at(link: Connection, control_namespace: str) -> Cache:
    """Return everything that may be listed, for commands about the whole cluster."""
    snapshot = link.run(snapshot_of_cluster(application_indices(AppSettings(control_namespace=control_namespace))))
    for problem in snapshot.unreadable:
        click.echo(f"warning: not seen: {problem}", err=True)
    return snapshot.cache


@contextlib.contextmanager
def source_reader(link: Connection | None, cache: Cache, control_namespace: str) -> Iterator[GitSourceReader]:
    """Yield a reader of repositories with all readable credentials; local paths only if the cluster runs on this
    machine. ``link`` None: the only cluster is the one in ``cache``."""
    with reader_for(cache, control_namespace, allow_local=link is None or is_local(link)) as reader:
        yield reader


def local_reader(folder: Path, root: Path | None, cache: Cache, control_namespace: str) -> FolderReader:
    """Return a reader of a local folder; ``root`` of its repository, None to find it. Raises CommandFailed."""
    folder, root = folder.resolve(), root.resolve() if root else repository_root(folder)
    if not folder.is_relative_to(root):
        raise CommandFailed(f"--local {folder} does not lie in --local-repo-root {root}", USAGE)
    path = folder.relative_to(root).as_posix()
    return FolderReader(DiskTree(root, "" if path == "." else path), path, rules_in(cache, control_namespace))


def exported(against: str) -> list[Obj]:
    """Return the objects in a file or in every YAML and JSON file below a folder; none for ``empty``."""
    if against == "empty":
        return []
    place = Path(against)
    if not place.exists():
        raise CommandFailed(f"--against {against}: no such file or folder; write `empty` for an empty cluster", USAGE)
    files = [place] if place.is_file() else sorted(p for p in place.rglob("*") if p.suffix in ENDINGS and p.is_file())
    return [obj for file in files for obj in _objects_in(file)]


def _objects_in(file: Path) -> Iterator[Obj]:
    loaded = load_all(file.read_bytes(), file=str(file), budget=Budget(bytes=MAX_EXPORT))
    if loaded.report.errors:
        raise CommandFailed(f"--against: {loaded.report.errors[0]}")
    for document in loaded.documents:
        value = document.value
        items = value.get("items") if isinstance(value, dict) and str(value.get("kind")).endswith("List") else [value]
        for one in items or ():
            if not isinstance(one, dict) or not all((one.get("apiVersion"), one.get("kind"), name_of(one))):
                raise CommandFailed(f"--against: {file}: an object without apiVersion, kind or metadata.name")
            yield one


def look_offline(against: str, control_namespace: str) -> Cache:
    """Return an exported cluster as a snapshot; objects that do not fit are reported on stderr."""
    return stand_offline(against, control_namespace).snapshot.cache


def stand_offline(against: str, control_namespace: str) -> Exported:
    """As :func:`look_offline`, with an empty cluster for dry runs."""
    from syncline.rehearsal.exported import exported_cluster

    settings = AppSettings(control_namespace=control_namespace)
    found = exported_cluster(exported(against), settings, application_indices(settings))
    for problem in found.snapshot.unreadable:
        click.echo(f"warning: left out: {problem}", err=True)
    return found


def is_local(link: Connection) -> bool:
    """Return whether the cluster runs on this machine, and so may read its disk."""
    return (urlsplit(link.server).hostname or "") in LOOPBACK
