"""The files of a repository as a value: :class:`Files`. Cures are edits of it, so it is never changed in place."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from syncline.kube.objects import Obj
from syncline.kube.yaml.loading import Document, YamlError, load_all
from syncline.rehearsal.scenario import ScenarioError

MAX_FILES, MAX_BYTES = 20_000, 64 * 1024 * 1024
"""Limits of a rehearsed repository."""
YAML = (".yaml", ".yml", ".json")
HIDDEN = (".git",)


@dataclass(frozen=True)
class Files:
    """``content``: bytes by path (``charts/web/values.yaml``); ``links``: targets of symbolic links by path, which are
    committed as they are and never followed here."""

    content: Mapping[str, bytes]
    links: Mapping[str, str] = field(default_factory=dict)

    def changed(self, edits: Mapping[str, str]) -> Files:
        """Return a copy with other texts at these paths."""
        return replace(self, content={**self.content, **{path: text.encode() for path, text in edits.items()}})

    def text(self, path: str) -> str:
        return self.content[path].decode("utf-8", "replace")

    def documents(self) -> Iterator[tuple[str, int, Document]]:
        """Yield the objects of plain YAML and JSON files: path, number of the document in it, document. Files that are
        not plain YAML, such as templates of charts, are passed over: their renderer reports them."""
        yield from self._read

    @cached_property
    def _read(self) -> tuple[tuple[str, int, Document], ...]:
        return tuple(self._documents())

    def _documents(self) -> Iterator[tuple[str, int, Document]]:
        for path in sorted(self.content):
            if path.endswith(YAML):
                try:
                    found = load_all(self.content[path], file=path).documents
                except YamlError:
                    continue
                for number, document in enumerate(found):
                    if isinstance(document.value, dict) and document.value.get("kind"):
                        yield path, number, document

    def objects(self) -> Iterator[tuple[str, Obj]]:
        """Yield path and object; Lists are flattened."""
        for path, _, document in self.documents():
            items = document.value.get("items") if str(document.value["kind"]).endswith("List") else None
            yield from ((path, one) for one in (items if isinstance(items, list) else [document.value]))


def read_files(place: Path) -> Files:
    """Return the files of a folder, or one file. Raises ScenarioError (usage)."""
    if place.is_file():
        return Files({place.name: _bounded(place, 0)})
    if not place.is_dir():
        raise ScenarioError(f"{place}: there is no such file or folder", usage=True)
    content: dict[str, bytes] = {}
    links: dict[str, str] = {}
    size = 0
    for folder, folders, names in os.walk(place):
        folders[:] = sorted(name for name in folders if name not in HIDDEN)
        linked = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in sorted([*names, *linked]):
            file = Path(folder) / name
            path = file.relative_to(place).as_posix()
            if file.is_symlink():
                links[path] = str(file.readlink())
            elif file.is_file() and name not in HIDDEN:
                content[path] = _bounded(file, size)
                size += len(content[path])
            if len(content) + len(links) > MAX_FILES:
                raise ScenarioError(f"{place}: found more than {MAX_FILES} files; rehearse a folder of it", usage=True)
    return Files(content, links)


def _bounded(file: Path, before: int) -> bytes:
    if before + file.stat().st_size > MAX_BYTES:
        text = f"{file}: with it there are more than {MAX_BYTES // 2**20} MiB; rehearse a smaller folder"
        raise ScenarioError(text, usage=True)
    return file.read_bytes()
