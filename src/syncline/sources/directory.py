"""Reads plain manifests: a folder of YAML and JSON files becomes a list of objects. :func:`read_manifests`.

Called through ``sources/rendering/renderer.py`` with a tree and the Application's ``directory`` block; each object has
its position. Rules and messages: Argo CD ``reposerver/repository`` (reference argocd-app 5.2). Nothing here reads the
disk; content comes from the tree.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from syncline.base.report import Position
from syncline.kube.objects import Obj
from syncline.kube.text.glob import GlobError, glob_match
from syncline.kube.yaml import loading as yaml
from syncline.sources.errors import Problem, SourceError
from syncline.sources.tree import Entry, Tree

SKIP_MARKER = b"+argocd:skip-file-rendering"
"""A file that holds this text anywhere is no manifest."""

_MANIFEST = re.compile(r".*\.(?:yaml|yml|json|jsonnet)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class DirectoryOptions:
    """``spec.source.directory``. Globs are gobwas without separator, matched against the path below the folder."""

    recurse: bool = False
    include: str = ""
    exclude: str = ""
    every_extension: bool = False
    """Files of any name are manifests (``disableExtensionFilter``)."""
    jsonnet: bool = True
    """Whether programs are evaluated; else they are passed over (``jsonnet.enable`` of ``argocd-cm``)."""
    butane: bool = True
    """Whether Butane documents for OpenShift are translated (``butane.enable`` of ``argocd-cm``): ours."""


@dataclass(frozen=True, slots=True)
class DirectoryLimits:
    """Limits of one render, so that a wrong path causes an error and does not fill the memory."""

    files: int = 10_000
    bytes: int = 10_000_000
    """Argo CD's ``reposerver.max.combined.directory.manifests.size``: 10M."""
    objects: int = 50_000


@dataclass(frozen=True, slots=True)
class SourcedObject:
    """A manifest and its position; the file is the path from the repository's root."""

    obj: Obj
    position: Position


@dataclass(frozen=True, slots=True)
class Manifests:
    """Objects in the order of files and documents, and warnings about the files."""

    objects: tuple[SourcedObject, ...]
    warnings: tuple[str, ...] = ()


def select_files(
    tree: Tree, options: DirectoryOptions, limits: DirectoryLimits = DirectoryLimits()
) -> tuple[Entry, ...]:
    """Return the files that a render reads, in walk order; symlinks are replaced by their targets.

    Raises :class:`SourceError` for links that leave the repository, invalid patterns and too many files.
    """
    chosen: list[Entry] = []
    for entry in sorted(tree.entries, key=lambda found: found.path.split("/")):
        if not _is_wanted(entry, options):
            continue
        target = tree.follow(entry) if entry.is_symlink else entry
        if target is not None and target.is_file:
            chosen.append(target)
    if len(chosen) > limits.files:
        raise SourceError(
            Problem.TOO_LARGE,
            f"{tree.path or '.'}: {len(chosen)} manifest files, at most {limits.files} are read",
            field="spec.source.directory",
            fix="narrow it with include or exclude",
        )
    if sum(entry.size for entry in chosen if not entry.path.endswith(".jsonnet")) > limits.bytes:
        raise SourceError(
            Problem.TOO_LARGE,
            f"{tree.path or '.'}: exceeded max combined manifest file size ({limits.bytes} bytes)",
            field="spec.source.directory",
            fix="narrow it with include or exclude",
        )
    return tuple(chosen)


def select_documents(tree: Tree, options: DirectoryOptions, suffix: str) -> tuple[Entry, ...]:
    """Return the files named ``*SUFFIX`` that the options select, as :func:`select_files` does for manifests, without
    links."""
    if not options.butane:
        return ()
    found = (entry for entry in tree.entries if entry.path.endswith(suffix) and entry.is_file)
    return tuple(sorted(entry for entry in found if _is_chosen(entry, options)))


def _is_wanted(entry: Entry, options: DirectoryOptions) -> bool:
    if not options.every_extension and _MANIFEST.fullmatch(entry.path) is None:
        return False
    if not options.jsonnet and entry.path.endswith(".jsonnet"):
        return False
    return _is_chosen(entry, options)


def _is_chosen(entry: Entry, options: DirectoryOptions) -> bool:
    if not options.recurse and "/" in entry.path:
        return False
    if options.exclude and _matches("exclude", options.exclude, entry.path):
        return False
    return not options.include or _matches("include", options.include, entry.path)


def _matches(field: str, pattern: str, path: str) -> bool:
    try:
        return glob_match(pattern, path)
    except GlobError as error:
        raise SourceError(Problem.INVALID, str(error), field=f"spec.source.directory.{field}") from None


def read_manifests(
    tree: Tree,
    files: tuple[Entry, ...],
    limits: DirectoryLimits = DirectoryLimits(),
    evaluated: Mapping[str, str] | None = None,
) -> Manifests:
    """Read ``files`` of ``tree``; raises :class:`SourceError` that names file and line of the first invalid one.

    ``evaluated`` is the JSON text of Jsonnet files, by path from the root.
    """
    objects: list[SourcedObject] = []
    warnings: list[str] = []
    broken: list[SourceError] = []
    contents = tree.read(files)
    for entry in files:
        name = f"{tree.path}/{entry.path}" if tree.path else entry.path
        text = (evaluated or {}).get(name)
        if text is not None:
            objects.extend(_jsonnet_objects(name, text))
        else:
            objects.extend(_read_file(name, contents[entry.path], warnings, broken))
        if len(objects) > limits.objects:
            raise SourceError(
                Problem.TOO_LARGE, f"{tree.path or '.'}: more than {limits.objects} objects; split the Application"
            )
    if broken and not objects:
        # Upstream passes over files that are no YAML at all. Where nothing else is left, that would make an empty
        # application of a typing error, and automated pruning would delete everything.
        raise broken[0]
    return Manifests(tuple(objects), (*warnings, *(f"{error}; the file is passed over" for error in broken)))


def _read_file(name: str, content: bytes, warnings: list[str], broken: list[SourceError]) -> Iterator[SourcedObject]:
    text = _utf8(content)
    if SKIP_MARKER in text:
        return
    if name.endswith(".jsonnet"):
        message = f"{name}: a Jsonnet program was not evaluated"
        raise SourceError(Problem.UNSUPPORTED, message, subject=name, fix="exclude the file")
    is_json = name.endswith(".json")
    documents = _json_document(name, text) if is_json else _yaml_documents(name, text, warnings, broken)
    for document in documents:
        yield from _expand(document)


def _jsonnet_objects(name: str, text: str) -> Iterator[SourcedObject]:
    """Yield the objects of a program, which returns one or a list of them."""
    (document,) = yaml.load_all(text, file=name).documents
    values = document.value if isinstance(document.value, list) else [document.value]
    for value in values:
        found = yaml.Document(value, Position(name, 1, 1))
        wrong = _not_a_manifest(found)
        if wrong:
            raise _unreadable(name, wrong, found.position)
        yield from _expand(found)


def read_output(name: str, text: str, limit: int) -> Iterator[SourcedObject]:
    """Yield the objects of a tool's output, with their lines in it. Raises :class:`SourceError` for anything else."""
    loaded = yaml.load_all(text, file=name)
    documents = [document for document in loaded.documents if document.value is not None]
    problems = [(error.position or Position(name), str(error)) for error in loaded.report.errors]
    problems += [(document.position, wrong) for document in documents if (wrong := _not_a_manifest(document))]
    if problems:
        position, message = min(problems)
        raise SourceError(
            Problem.INVALID, f"what {name} renders is no manifest: {message}", subject=name, position=position
        )
    if len(documents) > limit:
        raise SourceError(Problem.TOO_LARGE, f"{name}: more than {limit} objects; split the Application")
    for document in documents:
        yield from _expand(document)


def objects_of(name: str, values: Sequence[Any], limit: int) -> Iterator[SourcedObject]:
    """Yield objects that ``name`` gave as values. Raises :class:`SourceError` for what is no object."""
    if len(values) > limit:
        raise SourceError(Problem.TOO_LARGE, f"{name}: more than {limit} objects; split the Application")
    for value in values:
        document = yaml.Document(value, Position(name))
        if value is not None and (wrong := _not_a_manifest(document)):
            raise SourceError(Problem.INVALID, f"what {name} renders is no manifest: {wrong}", subject=name)
        if value is not None:
            yield from _expand(document)


def _utf8(content: bytes) -> bytes:
    """Convert text with a UTF-16 byte order mark, as upstream does."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace").encode()
    return content


def _json_document(name: str, content: bytes) -> list[yaml.Document]:
    text = content.decode("utf-8-sig", "replace")
    try:
        _, end = json.JSONDecoder().raw_decode(text, len(text) - len(text.lstrip()))
    except (json.JSONDecodeError, RecursionError) as error:
        at = Position(name, getattr(error, "lineno", 1), getattr(error, "colno", 1))
        raise _unreadable(name, f"{at}: {getattr(error, 'msg', 'nested too deep')}", at) from None
    if text[end:].strip():
        message = f"Found multiple objects in {name}. Only single objects are allowed in JSON files."
        raise SourceError(Problem.INVALID, message, subject=name)
    loaded = yaml.load_all(text, file=name)
    wrong = [str(problem) for problem in loaded.report.errors] or [_not_a_manifest(d) for d in loaded.documents]
    for message in filter(None, wrong):
        raise _unreadable(name, message, Position(name, 1, 1))
    return list(loaded.documents)


def _yaml_documents(name: str, content: bytes, warnings: list[str], broken: list[SourceError]) -> list[yaml.Document]:
    """Return all manifests of the file. A file with errors and nothing that looks like a manifest (Helm values) has
    none; one that is no YAML is noted in ``broken``."""
    loaded = yaml.load_all(content, file=name)
    manifests = [document for document in loaded.documents if document.value is not None]
    problems: list[tuple[Position, str]] = [(d.position or Position(name), str(d)) for d in loaded.report.errors]
    problems += [(document.position, wrong) for document in manifests if (wrong := _not_a_manifest(document))]
    if problems:
        if any(_has_kind(document) for document in manifests) or _looks_like_manifest(content):
            position, message = min(problems)
            raise _unreadable(name, message, position)
        broken += [_unreadable(name, str(d), d.position or Position(name)) for d in loaded.report.errors[:1]]
        return []
    warnings.extend(str(problem) for problem in loaded.report.warnings)
    return manifests


def _has_kind(document: yaml.Document) -> bool:
    return isinstance(document.value, dict) and bool(document.value.get("kind"))


def _looks_like_manifest(content: bytes) -> bool:
    return all(word in content for word in (b"apiVersion:", b"kind:", b"metadata:"))


def _not_a_manifest(document: yaml.Document) -> str:
    """Return why the document is no Kubernetes object; empty if it is one (apimachinery's unstructured decoder)."""
    value = document.value
    if not isinstance(value, dict):
        return f"{document.position}: a manifest is a mapping, found {_kind_of(value)}"
    for field in ("kind", "apiVersion"):
        found = value.get(field)
        if not isinstance(found, str) or not found:
            missing = "is missing" if found in (None, "") else f"is {_kind_of(found)}, not text"
            return f"{document.position}: Object '{field[0].upper()}{field[1:]}' {missing}"
    return ""


def _kind_of(value: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "text", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _expand(document: yaml.Document) -> Iterator[SourcedObject]:
    """Yield the ``items`` of a list object; none for a List without items."""
    value: Obj = document.value
    items = value.get("items")
    if items is None and "items" in value and value["kind"].endswith("List"):
        return
    if not isinstance(items, list):
        yield SourcedObject(value, document.position)
        return
    for index, item in enumerate(items):
        position = document.position_of(("items", index)) or document.position
        wrong = _not_a_manifest(yaml.Document(item, position))
        if wrong:
            raise _unreadable(position.file, wrong, position)
        yield SourcedObject(item, position)


def _unreadable(name: str, message: str, position: Position) -> SourceError:
    return SourceError(Problem.INVALID, f'Failed to unmarshal "{name}": {message}', subject=name, position=position)
