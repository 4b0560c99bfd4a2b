"""Jsonnet files of a directory source: what they import, and the objects they evaluate to.

``sources/rendering/renderer.py`` asks :func:`imported` before a render, so that the cache knows everything that is
read, and :func:`evaluate` for the objects. Imports in Jsonnet are literals, so the files that a program can read are
found without running it; it is run in a render worker that holds exactly these files. Rules: Argo CD ``reposerver``
makeJsonnetVm (reference argocd-app 5.2).
"""

from __future__ import annotations

import importlib.util
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from syncline.sources.errors import Problem, SourceError
from syncline.sources.lookup import Lookup, join
from syncline.sources.rendering.environment import expand
from syncline.sources.rendering.jsonnet_task import candidates
from syncline.sources.tree import Entry
from syncline.sources.workers.pool import shared_workers

FIELD = "spec.source.directory.jsonnet"
MAX_IMPORTS = 2_000
MAX_BYTES = 20_000_000
"""All files of one evaluation together."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the program: text, or Jsonnet if ``code``."""

    name: str
    value: str
    code: bool = False


@dataclass(frozen=True, slots=True)
class JsonnetOptions:
    """``spec.source.directory.jsonnet``; ``libs`` are folders from the repository's root."""

    ext_vars: tuple[Variable, ...] = ()
    tlas: tuple[Variable, ...] = ()
    libs: tuple[str, ...] = ()

    def expanded(self, environment: Mapping[str, str]) -> JsonnetOptions:
        """Replace ``$ARGOCD_APP_…`` in the values."""
        return replace(
            self,
            ext_vars=tuple(replace(one, value=expand(one.value, environment)) for one in self.ext_vars),
            tlas=tuple(replace(one, value=expand(one.value, environment)) for one in self.tlas),
        )


def parse_jsonnet(block: Any) -> JsonnetOptions:
    """Read the block; raises :class:`SourceError`."""
    if block is None:
        return JsonnetOptions()
    if not isinstance(block, dict):
        raise SourceError(Problem.INVALID, f"{FIELD} is not a mapping", field=FIELD)
    libs = tuple(join("", str(lib)) for lib in block.get("libs") or ())
    if None in libs:
        raise SourceError(Problem.REFUSED, f"{FIELD}.libs: a library lies outside the repository", field=FIELD)
    return JsonnetOptions(
        _variables(block.get("extVars")), _variables(block.get("tlas")), tuple(lib for lib in libs if lib is not None)
    )


def _variables(given: Any) -> tuple[Variable, ...]:
    found = [
        Variable(str(one.get("name") or ""), str(one.get("value") or ""), bool(one.get("code")))
        for one in given or ()
        if isinstance(one, dict)
    ]
    return tuple(found)


_IMPORT = re.compile(
    r"""\bimport(?:str|bin)?\b(?:\s|/\*.*?\*/|//[^\n]*\n|\#[^\n]*\n)*"""
    r"""(?:(?P<verbatim>@)?(?P<quote>["'])(?P<name>(?:\\.|(?!(?P=quote)).)*)(?P=quote))""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def imported(lookup: Lookup, folder: str, mains: Sequence[Entry], options: JsonnetOptions) -> tuple[Entry, ...]:
    """Return ``mains`` and everything they import, by path from the root, sorted. Raises :class:`SourceError`."""
    found = {entry.path: entry for entry in mains}
    todo = list(mains)
    while todo:
        check_size(folder, found.values())
        contents = lookup.read(todo)
        fresh: dict[str, Entry] = {}
        for entry in todo:
            for name in _imports(contents[entry.path].decode("utf-8", "replace")):
                target = _resolve(lookup, posixpath.dirname(entry.path), name, _search(folder, options))
                if target is not None and target.path not in found:
                    fresh[target.path] = target
        found |= fresh
        todo = [fresh[path] for path in sorted(fresh)]
    return tuple(found[path] for path in sorted(found))


def check_size(folder: str, entries: Iterable[Entry]) -> None:
    """Raise :class:`SourceError` if the files are too large for one evaluation."""
    sizes = [entry.size for entry in entries]
    if len(sizes) > MAX_IMPORTS or sum(sizes) > MAX_BYTES:
        message = f"{folder or '.'}: Jsonnet imports more than {MAX_IMPORTS} files or {MAX_BYTES} bytes"
        raise SourceError(Problem.TOO_LARGE, message, fix="split the Application")


def _imports(text: str) -> Iterator[str]:
    for match in _IMPORT.finditer(text):
        yield match["name"] if match["verbatim"] else _ESCAPE.sub(r"\1", match["name"])


def _search(folder: str, options: JsonnetOptions) -> list[str]:
    """Return the library folders, last first, in the search order of the reference implementation."""
    return [*reversed(options.libs), folder]


def _resolve(lookup: Lookup, folder: str, name: str, search: list[str]) -> Entry | None:
    for path in candidates(folder, name, search):
        entry = lookup.find(path)
        if entry is not None:
            return entry
    return None


def evaluate(
    lookup: Lookup, folder: str, mains: Sequence[str], entries: Sequence[Entry], options: JsonnetOptions
) -> dict[str, str]:
    """Return the JSON text of each of ``mains`` by path; ``entries`` is the result of :func:`imported`.

    Raises :class:`SourceError` if a program fails or the extra is not installed.
    """
    if importlib.util.find_spec("rjsonnet") is None:
        message = f"{mains[0]}: Jsonnet needs a package that is not installed"
        raise SourceError(Problem.UNSUPPORTED, message, subject=mains[0], fix="pip install rjsonnet")
    payload = {
        "files": lookup.read(list(entries)),
        "mains": list(mains),
        "search": _search(folder, options),
        "ext_vars": {one.name: one.value for one in options.ext_vars if not one.code},
        "ext_codes": {one.name: one.value for one in options.ext_vars if one.code},
        "tla_vars": {one.name: one.value for one in options.tlas if not one.code},
        "tla_codes": {one.name: one.value for one in options.tlas if one.code},
    }
    found = shared_workers().run("jsonnet", payload, label=folder or ".")
    return {path: str(text) for path, text in zip(mains, found, strict=True)}
