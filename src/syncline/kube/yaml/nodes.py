"""Parses YAML text into a tree of nodes, for all YAML dialects: :func:`read_nodes`.

``kube/yaml/loading.py`` uses it for manifests; Butane and kustomize resolve the same nodes by their own rules. Scalars
have their raw text, tag and style, every node its line and column, and aliases stay aliases. Nothing is resolved, and
no file is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import yaml

from syncline.base.report import Position

_Parser: Any = getattr(getattr(yaml, "cyaml", None), "CParser", yaml.Loader)
"""libyaml where it is compiled in; the pure parser gives the same events, only slower."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of one input, far above honest input and far below harm."""

    bytes: int = 64 * 1024 * 1024
    """The size of the text in characters; a bundle of all CRDs of a large operator is about 10 MiB."""

    documents: int = 20_000
    depth: int = 128
    """The nesting of mappings and sequences; the deepest known CRD schemas stay below 80."""

    alias_nodes: int = 200_000
    """The nodes created by following aliases: the limit against alias bombs."""


DEFAULT_BUDGET = Budget()


class YamlError(ValueError):
    """The text is not YAML, or not allowed by the dialect; ``position`` says where."""

    def __init__(self, message: str, position: Position) -> None:
        self.message = message
        self.position = position
        super().__init__(f"{position}: {message}")


@dataclass(slots=True)
class ScalarNode:
    """A scalar with its raw text in ``value``. ``tag`` is the long form (``tag:yaml.org,2002:int``), empty if not
    written.

    ``plain``: the value is unquoted and may be resolved. ``style`` is ``'`` ``"`` ``|`` ``>`` or empty.
    """

    value: str
    tag: str
    plain: bool
    style: str
    line: int
    column: int


@dataclass(slots=True)
class SequenceNode:
    tag: str
    line: int
    column: int
    items: list[Node] = field(default_factory=list)
    flow: bool = False


@dataclass(slots=True)
class MappingNode:
    tag: str
    line: int
    column: int
    pairs: list[tuple[Node, Node]] = field(default_factory=list)
    flow: bool = False


@dataclass(slots=True)
class AliasNode:
    """``*name``. ``target`` may contain this node itself; resolvers must detect that."""

    name: str
    target: Node
    line: int
    column: int


Node: TypeAlias = ScalarNode | SequenceNode | MappingNode | AliasNode


@dataclass(frozen=True, slots=True)
class Chunk:
    """The text of one document and the number of lines before it."""

    text: str
    lines_above: int


_SEPARATOR = re.compile(r"^---[^\S\n]*(?:#[^\n]*)?$", re.MULTILINE)


def split_documents(text: str) -> Iterator[Chunk]:
    """Split at lines that hold ``---`` and at most a comment, as apimachinery's YAMLReader does.

    So a broken document does not hide those after it. Content on the separator line (``--- {a: 1}``) prevents the
    split.
    """
    start, lines = 0, 0
    for match in _SEPARATOR.finditer(text):
        if text[start : match.start()].strip():
            yield Chunk(text[start : match.start()], lines)
        lines += text.count("\n", start, match.end())
        start = match.end()
    if text[start:].strip():
        yield Chunk(text[start:], lines)


def read_nodes(chunk: Chunk, *, file: str = "", budget: Budget = DEFAULT_BUDGET) -> list[Node]:
    """Return the root nodes of all documents in ``chunk``; raises :class:`YamlError`, caused by the parser's error."""
    return _Reader(chunk.text, chunk.lines_above, file, budget).read()


def read_first(source: bytes, *, file: str = "", budget: Budget = DEFAULT_BUDGET) -> Node | None:
    """Return the root of the first document, in any YAML encoding; None if there is none. The rest is not read. Raises
    :class:`YamlError`, caused by the parser's error."""
    roots = _Reader(source, 0, file, budget, first_only=True).read()
    return roots[0] if roots else None


class _Reader:
    """Builds nodes from parser events without recursion, so that only the budget limits the depth."""

    def __init__(
        self, source: str | bytes, lines_above: int, file: str, budget: Budget, *, first_only: bool = False
    ) -> None:
        self._source = source
        self._lines_above = lines_above
        self._first_only = first_only
        self._file = file
        self._budget = budget
        self._roots: list[Node] = []
        self._stack: list[SequenceNode | MappingNode] = []
        self._keys: list[Node | None] = []
        self._anchors: dict[str, Node] = {}

    def read(self) -> list[Node]:
        try:
            parser = _Parser(self._source)
            try:
                while (event := parser.get_event()) is not None:
                    self._take(event)
                    if self._first_only and event.__class__ is yaml.DocumentEndEvent:
                        break
            finally:
                parser.dispose()
        except yaml.MarkedYAMLError as error:
            raise self._marked(error) from error
        except (yaml.YAMLError, UnicodeError) as error:
            raise YamlError(f"the text is not YAML: {_one_line(error)}", Position(self._file)) from error
        return self._roots

    def _take(self, event: Any) -> None:
        kind = event.__class__
        mark = event.start_mark
        line, column = mark.line + 1 + self._lines_above, mark.column + 1
        if kind is yaml.ScalarEvent:
            node = ScalarNode(event.value, event.tag or "", event.implicit[0], event.style or "", line, column)
            self._anchor(event, node)
            self._add(node)
        elif kind is yaml.MappingStartEvent:
            self._open(event, MappingNode(event.tag or "", line, column, flow=bool(event.flow_style)))
        elif kind is yaml.SequenceStartEvent:
            self._open(event, SequenceNode(event.tag or "", line, column, flow=bool(event.flow_style)))
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._stack.pop()
            self._keys.pop()
        elif kind is yaml.AliasEvent:
            self._add(self._alias(event.anchor, line, column))
        elif kind is yaml.DocumentStartEvent:
            self._begin(event.version, line, column)

    def _begin(self, version: tuple[int, int] | None, line: int, column: int) -> None:
        self._anchors = {}
        if version is not None and tuple(version) != (1, 1):
            found = ".".join(str(part) for part in version)
            raise self._error(f"%YAML {found} is not read by Kubernetes; remove the directive", line, column)

    def _alias(self, name: str, line: int, column: int) -> AliasNode:
        target = self._anchors.get(name)
        if target is None:
            raise self._error(f"unknown anchor {name!r} referenced", line, column)
        return AliasNode(name, target, line, column)

    def _anchor(self, event: Any, node: Node) -> None:
        if event.anchor:
            self._anchors[event.anchor] = node

    def _open(self, event: Any, node: SequenceNode | MappingNode) -> None:
        self._anchor(event, node)
        self._add(node)
        self._stack.append(node)
        self._keys.append(None)
        if len(self._stack) > self._budget.depth:
            raise self._error(f"nested deeper than {self._budget.depth} levels", node.line, node.column)

    def _add(self, node: Node) -> None:
        if not self._stack:
            self._roots.append(node)
            return
        parent = self._stack[-1]
        if isinstance(parent, SequenceNode):
            parent.items.append(node)
            return
        key = self._keys[-1]
        if key is None:
            self._keys[-1] = node
        else:
            parent.pairs.append((key, node))
            self._keys[-1] = None

    def _error(self, message: str, line: int, column: int) -> YamlError:
        return YamlError(message, Position(self._file, line, column))

    def _marked(self, error: yaml.MarkedYAMLError) -> YamlError:
        mark = error.problem_mark or error.context_mark
        message = ", ".join(part for part in (error.context, error.problem) if part) or "the text is not YAML"
        if mark is None:
            return YamlError(message, Position(self._file))
        return self._error(message, mark.line + 1 + self._lines_above, mark.column + 1)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
