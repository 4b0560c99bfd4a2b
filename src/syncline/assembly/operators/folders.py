"""Catalogues in folders: the files that an administrator names for CatalogSources, read once.

The administrator alone names a folder (``syncline up --catalog NAME=FOLDER``), never an object or a repository.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from syncline.kube.objects import Obj, dig, name_of, namespace_of
from syncline.kube.yaml.loading import load_all
from syncline.patterns.operators.behaving import Behaviour, Behaviours, read_behaviour, shipped
from syncline.patterns.operators.catalogs.model import Catalog
from syncline.patterns.operators.catalogs.reading import CatalogError, read_catalog
from syncline.patterns.operators.controllers.looking import GLOBAL_NAMESPACE

MOST_FILES: Final = 5_000
MOST_BYTES: Final = 256_000_000
MOST_PATHS: Final = 50_000
SUFFIXES: Final = (".yaml", ".yml", ".json")


class FolderError(ValueError):
    """A folder cannot be a catalogue; one sentence with the file and the fix."""


def parse_catalogs(given: tuple[str, ...]) -> dict[str, Path]:
    """Read ``NAME=FOLDER`` texts; NAME is a CatalogSource, as ``name`` or ``namespace/name``, or an image. Raises
    :class:`FolderError`."""
    found: dict[str, Path] = {}
    for text in given:
        name, separator, folder = text.partition("=")
        if not separator or not name or not folder:
            raise FolderError(f"{text!r}: write NAME=FOLDER, for example redhat-operators=./catalog")
        path = Path(folder)
        if not path.is_dir():
            raise FolderError(f"{folder}: no such folder; name one with file-based catalogues")
        if name in found:
            raise FolderError(f"{name} is named twice; one folder is one catalogue")
        found[name] = path
    return found


def documents(folder: Path) -> Iterator[Obj]:
    """Yield the documents of all files below a folder, in the order of their names. Raises :class:`FolderError`."""
    root, files, size = folder.resolve(), 0, 0
    found = list(islice(folder.rglob("*"), MOST_PATHS + 1))
    if len(found) > MOST_PATHS:
        raise FolderError(f"{folder}: more than {MOST_PATHS} paths; name a smaller catalogue")
    for path in sorted(found):
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        if not path.resolve().is_relative_to(root):
            raise FolderError(f"{path} leads out of {folder}; take the link away")
        files, size = files + 1, size + path.stat().st_size
        if files > MOST_FILES or size > MOST_BYTES:
            raise FolderError(f"{folder}: more than {MOST_FILES} files or {MOST_BYTES} bytes; name a smaller catalogue")
        yield from _read(path)


def _read(path: Path) -> Iterator[Obj]:
    try:
        text = path.read_text(encoding="utf-8")
        values = list(_json(text)) if path.suffix == ".json" else load_all(text, file=str(path)).values
    except (OSError, ValueError, RecursionError) as error:
        raise FolderError(f"{path}: {error}") from error
    for value in values:
        if not isinstance(value, dict) or not isinstance(value.get("schema"), str):
            raise FolderError(f"{path}: a document without schema; file-based catalogues have olm.package and others")
        yield value


def _json(text: str) -> Iterator[Any]:
    """Read JSON values that follow one another, as ``opm render`` writes them."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        value, at = decoder.raw_decode(text, at)
        yield value


@dataclass(frozen=True, slots=True)
class FolderCatalogs:
    """The catalogues of an administrator; an :data:`~syncline.patterns.operators.controllers.looking.Offers`."""

    catalogs: Mapping[str, Catalog] = field(default_factory=dict)

    @classmethod
    def read(cls, folders: Mapping[str, Path]) -> FolderCatalogs:
        """Read all folders. Raises :class:`FolderError`."""
        made: dict[str, Catalog] = {}
        for name, folder in folders.items():
            try:
                made[name] = read_catalog(list(documents(folder)))
            except CatalogError as error:
                raise FolderError(f"{folder}: {error}") from error
        return cls(made)

    def __call__(self, source: Obj) -> Catalog | str:
        name, namespace = name_of(source), namespace_of(source)
        asked = [f"{namespace}/{name}", *((name,) if namespace == GLOBAL_NAMESPACE else ())]
        if image := str(dig(source, "spec", "image", default="") or ""):
            asked.append(image)
        found = next((self.catalogs[one] for one in asked if one in self.catalogs), None)
        if found is None:
            known = ", ".join(sorted(self.catalogs)) or "none"
            return f"no folder is named for {namespace}/{name}; start with --catalog {name}=FOLDER (named: {known})"
        return found


def read_behaviours(folder: Path | None) -> Behaviours:
    """Return what installed operators do: the files of a folder before those that come along. Raises
    :class:`FolderError`."""
    if folder is None:
        return shipped()
    made: dict[str, Behaviour] = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            one = read_behaviour(path.read_text(encoding="utf-8"), str(path))
        except (OSError, ValueError) as error:
            raise FolderError(str(error)) from error
        made[one.package] = one
    return shipped().with_(Behaviours(made))
