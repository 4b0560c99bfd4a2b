"""Reads machine configuration manifests from files, folders and standard input, and translates Butane documents."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.kube.objects import Obj, name_of
from syncline.kube.yaml.loading import Budget, YamlError, load_all

STDIN = "-"
BUTANE = (".bu", ".butane")
ENDINGS = (".yaml", ".yml", ".json", *BUTANE)
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
MAX_FILES = 5_000
MAX_BYTES = 64 * 1024 * 1024
"""Limit of one file in bytes; an API server accepts far less at once."""


def read_manifests(place: str) -> list[Obj]:
    """Return all objects of a file, a folder, or standard input. Raises CommandFailed.

    A folder with a kustomization is built. Of any other folder every file is read; other documents and Kustomize's own
    files are skipped.
    """
    if place == STDIN:
        return list(_documents(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input", Path.cwd(), butane=False))
    path = Path(place)
    if not path.exists():
        raise CommandFailed(f"-f {place}: no such file or folder", USAGE)
    if path.is_dir() and any((path / name).is_file() for name in KUSTOMIZATIONS):
        return list(_documents(_built(path), place, path, butane=False))
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix in ENDINGS and p.is_file())
    if len(files) > MAX_FILES:
        raise CommandFailed(
            f"-f {place}: {len(files)} files, at most {MAX_FILES} are read; name a smaller folder", USAGE
        )
    found: list[Obj] = []
    for file in files:
        try:
            with open(file, "rb") as stream:
                data = stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise CommandFailed(f"-f {file}: {error.strerror}", USAGE) from error
        one_of_many = not path.is_file()
        if one_of_many and file.name in KUSTOMIZATIONS:
            continue
        found += _documents(data, str(file), file.parent, butane=file.suffix in BUTANE, one_of_many=one_of_many)
    return found


def _built(folder: Path) -> bytes:
    """Build the folder with Kustomize, without network."""
    from syncline.cli.files.kustomize import DiskFiles
    from syncline.sources.errors import SourceError
    from syncline.sources.kustomize.build import build
    from syncline.sources.kustomize.loader import Source

    try:
        return build(Source(DiskFiles(), label="/"), str(folder.resolve()).lstrip("/")).text.encode()
    except SourceError as error:
        raise CommandFailed(f"-f {folder}: its kustomization cannot be built: {error}", USAGE) from error


def _documents(data: bytes, file: str, folder: Path, *, butane: bool, one_of_many: bool = False) -> Iterator[Obj]:
    if len(data) > MAX_BYTES:
        raise CommandFailed(f"-f {file}: more than {MAX_BYTES} bytes; give the manifests alone", USAGE)
    if butane:
        yield _translated(data, file, folder)
        return
    try:
        loaded = load_all(data, file=file, budget=Budget(bytes=MAX_BYTES))
    except YamlError as error:
        raise CommandFailed(f"-f {error}", USAGE) from error
    if loaded.report.errors:
        raise CommandFailed(f"-f {loaded.report.errors[0]}", USAGE)
    values = [document.value for document in loaded.documents]
    if any(_is_butane(value) for value in values):
        yield _translated(data, file, folder)
        return
    for value in values:
        for one in _items(value):
            if not (one_of_many and _is_no_manifest(one)):
                yield _checked(one, file)


def _is_butane(value: Any) -> bool:
    return isinstance(value, dict) and "variant" in value and "kind" not in value


def _is_no_manifest(value: Any) -> bool:
    """Return whether a document is not a manifest: values of charts, install-config.yaml, Kustomize's own files."""
    return not isinstance(value, dict) or not (value.get("apiVersion") and value.get("kind"))


def _items(value: Any) -> list[Any]:
    if isinstance(value, dict) and str(value.get("kind", "")).endswith("List") and isinstance(value.get("items"), list):
        found: list[Any] = value["items"]
        return found
    return [] if value is None else [value]


def _checked(one: Any, file: str) -> Obj:
    if not isinstance(one, dict) or not all(isinstance(one.get(key), str) for key in ("apiVersion", "kind")):
        raise CommandFailed(f"-f {file}: a document without apiVersion and kind is no manifest", USAGE)
    if not name_of(one):
        raise CommandFailed(f"-f {file}: {one['kind']} without metadata.name", USAGE)
    return one


def _translated(data: bytes, file: str, folder: Path) -> Obj:
    """Return the MachineConfig of a Butane document; its ``local`` files are read below its folder."""
    from syncline.cli.files.butane import DiskFiles
    from syncline.ignition.butane.transpile import Options, transpile

    # Butane would silently use the first one only.
    loaded = load_all(data, file=file, budget=Budget(bytes=MAX_BYTES))
    several = sum(document.value is not None for document in loaded.documents)
    if several > 1:
        raise CommandFailed(
            f"-f {file}: {several} documents; Butane is one document, give each a file of its own", USAGE
        )
    done = transpile(data, Options(files=DiskFiles(str(folder))))
    if done.value is None:
        message = " ".join(f"{done.report}".split())
        raise CommandFailed(f"-f {file}: {done.error}{f': {message}' if message else ''}", USAGE)
    if done.value.get("kind") != "MachineConfig":
        raise CommandFailed(
            f"-f {file}: this Butane variant makes Ignition for a first boot, no MachineConfig; write variant "
            "openshift with metadata.name and a role label",
            USAGE,
        )
    return _checked(done.value, file)
