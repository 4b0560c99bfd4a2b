"""Reads and writes YAML and JSON text as Kubernetes does: :func:`load_all`, :func:`load`, :func:`dump`.

Sources, the CLI and the scenes use it for manifests. Results are JSON values with positions, or diagnostics; only
:func:`load` raises for bad input. Other dialects start from :func:`parse_nodes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from syncline.base.report import Position, Report
from syncline.kube.yaml.emit import emit_all, emit_typed, emit_unfolded
from syncline.kube.yaml.nodes import (
    DEFAULT_BUDGET,
    AliasNode,
    Budget,
    Chunk,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    YamlError,
    read_nodes,
    split_documents,
)
from syncline.kube.yaml.resolve import Duplicate, Resolver, go_number, key_text, resolve_plain

__all__ = ["DEFAULT_BUDGET", "Budget", "Document", "Duplicate", "YamlError", "dump", "load", "load_all", "only_value"]


@dataclass(slots=True)
class Document:
    """One document: its JSON value, its position, and its duplicate keys (the last one won)."""

    value: Any
    position: Position
    duplicates: tuple[Duplicate, ...] = ()
    _chunk: Chunk = field(default_factory=lambda: Chunk("", 0), repr=False)
    _node: Node | None = field(default=None, repr=False)

    def position_of(self, path: tuple[str | int, ...]) -> Position | None:
        """Return the position of the value at ``path``: of a mapping's entry its key, of a list's item the item."""
        node = self._node or next(iter(read_nodes(self._chunk, file=self.position.file)), None)
        if node is None:
            return None
        self._node = node
        at = node
        for step in path:
            found = _step(node, step)
            if found is None:
                return None
            at, node = found
        return Position(self.position.file, at.line, at.column)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The readable documents in order, and all problems of the text."""

    documents: tuple[Document, ...]
    report: Report

    @property
    def values(self) -> list[Any]:
        return [document.value for document in self.documents]


def load_all(text: str | bytes, *, file: str = "", budget: Budget = DEFAULT_BUDGET, by_lines: bool = True) -> Loaded:
    """Read every document of ``text``. Empty documents are left out; a broken one is an error in the report.

    ``by_lines``: read manifests like kubectl and Argo CD. A file without a final line break is read as if it had one,
    so a block scalar there keeps its line break (apimachinery's LineReader). Otherwise the text is read as it is, as
    Helm reads values and Kustomize its own file.

    Duplicate keys are warnings, except in JSON text, which takes the fast path. Kubernetes reads one document between
    two ``---`` lines; a further one, begun by content on the separator line or after ``...``, is dropped with a
    warning.
    """
    report = Report()
    try:
        plain = _decode(text, file, budget)
    except YamlError as error:
        report.error(error.message, position=error.position)
        return Loaded((), report)
    from_json = _load_json(plain, file, budget)
    if from_json is not None:
        return Loaded((from_json,), report)
    if by_lines and not plain.endswith("\n"):
        plain += "\n"
    documents: list[Document] = []
    chunks = split_documents(plain)
    for chunk in islice(chunks, budget.documents):
        try:
            documents.extend(_load_chunk(chunk, file, budget, report))
        except YamlError as error:
            report.error(error.message, position=error.position)
    if next(chunks, None) is not None:
        report.error(f"more than {budget.documents} documents; split the file", position=Position(file))
    return Loaded(tuple(documents), report)


def load(text: str | bytes, *, file: str = "") -> Any:
    """Return the value of the only document of a text, None for an empty text; raises :class:`YamlError` for anything
    else."""
    return only_value(load_all(text, file=file, by_lines=False), file)


def only_value(loaded: Loaded, file: str = "", *, first: bool = False) -> Any:
    """Return the value of the only document (``first``: more may follow); raises as :func:`load`."""
    for problem in loaded.report.errors:
        raise YamlError(problem.message, problem.position or Position(file))
    if len(loaded.documents) > 1 and not first:
        raise YamlError("one document is wanted, here a second one begins", loaded.documents[1].position)
    return loaded.documents[0].value if loaded.documents else None


def dump(value: Any) -> str:
    """Return what ``kubectl -o yaml`` prints: block style, sorted keys, a final line break."""
    return emit_all([value])


def dump_typed(value: Any) -> str:
    """Like :func:`dump`, but as Go writes a typed object; names of rendered machine configs are digests of this."""
    return emit_typed(value)


def dump_unfolded(value: Any) -> str:
    """Like :func:`dump`, but as go-yaml v3: long text stays on its line, lists in maps are indented."""
    return emit_unfolded(value)


def _decode(text: str | bytes, file: str, budget: Budget) -> str:
    if len(text) > budget.bytes:
        raise YamlError(f"the text has {len(text)} bytes, at most {budget.bytes} are read", Position(file))
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise YamlError("the text is not UTF-8", Position(file, line)) from None


def _load_chunk(chunk: Chunk, file: str, budget: Budget, report: Report) -> Iterator[Document]:
    roots = read_nodes(chunk, file=file, budget=budget)
    for extra in roots[1:]:
        report.warning(
            "this document is not read by Kubernetes, which reads one document between two --- lines",
            position=Position(file, extra.line, extra.column),
            fix="put --- on a line of its own before it",
        )
    if not roots or _is_empty(roots[0]):
        return
    resolver = Resolver(file, budget)
    value = resolver.value(roots[0])
    for repeated in resolver.duplicates:
        report.warning(
            f"key {repeated.key!r} is repeated, first in line {repeated.first.line}; the last one counts",
            repeated.path,
            repeated.position,
            "remove one of them",
        )
    at = Position(file, roots[0].line, roots[0].column)
    yield Document(value, at, tuple(resolver.duplicates), chunk, roots[0])


def _is_empty(node: Node) -> bool:
    return isinstance(node, ScalarNode) and node.plain and node.value == "" and not node.tag


def _load_json(text: str, file: str, budget: Budget) -> Document | None:
    """Parse JSON on the fast path; None if the YAML parser must read the text, for instance to word an error."""
    stripped = text.lstrip(" \t\r\n")
    if stripped[:1] not in ("{", "["):
        return None
    try:
        value = _json_numbers(msgspec.json.decode(stripped), budget.depth)
    except (msgspec.DecodeError, RecursionError, UnicodeError, ValueError, OverflowError):
        return None
    above = text[: len(text) - len(stripped)]
    column = len(above) - (above.rfind("\n") + 1) + 1
    return Document(value, Position(file, above.count("\n") + 1, column), (), Chunk(text, 0))


def _json_numbers(value: Any, depth: int) -> Any:
    if isinstance(value, dict):
        if depth == 0:
            raise ValueError("too deep")
        return {key: _json_numbers(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        if depth == 0:
            raise ValueError("too deep")
        return [_json_numbers(item, depth - 1) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return go_number(value)
    return value


def _step(node: Node, step: str | int) -> tuple[Node, Node] | None:
    """Return the node to report and the node to continue from."""
    while isinstance(node, AliasNode):
        node = node.target
    if isinstance(node, SequenceNode) and isinstance(step, int):
        return (node.items[step], node.items[step]) if -len(node.items) <= step < len(node.items) else None
    if isinstance(node, MappingNode):
        for key, value in reversed(node.pairs):
            if isinstance(key, ScalarNode) and _key_of(key) == step:
                return key, value
    return None


def _key_of(node: ScalarNode) -> str | None:
    return key_text(resolve_plain(node.value)) if node.plain and not node.tag else node.value
