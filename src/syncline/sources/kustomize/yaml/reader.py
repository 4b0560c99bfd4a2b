"""YAML text to the nodes of one or more resources.

Called for every resource, patch and plugin configuration. Text comes in, nodes leave with anchors and merge keys
expanded, Lists opened, and empty documents dropped (kyaml ``kio.ByteReader`` and kustomize's resource factory).
"""

from __future__ import annotations

import re

from syncline.kube.yaml import nodes as yaml_nodes
from syncline.kube.yaml.nodes import AliasNode, MappingNode, ScalarNode, SequenceNode, YamlError
from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.yaml.node import MAP, MERGE, NULL, SEQ, STR, Kind, Node, Style, clear, field, is_empty
from syncline.sources.kustomize.yaml.scalars import resolve
from syncline.sources.kustomize.yaml.values import from_json, to_json

MAX_ALIAS_NODES = 200_000
"""Nodes that come into being by following aliases in one text: the bound of an alias bomb."""

MAX_ALIAS_DEPTH = 16
"""Aliases inside what aliases stand for."""

AFTER_FIRST = "expected <document start>"
"""Said where the first document ends and no other begins; kustomize reads no further than the first."""

_SEPARATOR = re.compile(r"\n---.*\n")
_CORE = "tag:yaml.org,2002:"


def read_resources(text: str) -> list[Node]:
    """The objects of a file, each with a kind and (unless it is a list) a name; raises :class:`BuildError`."""
    waiting = [node for node in read_documents(text) if _is_object(node)]
    found: list[Node] = []
    while waiting:
        node = waiting.pop(0)
        items = field(node, "items") if _kind(node).endswith("List") else None
        if items is None:
            found.append(node)
        elif items.kind is Kind.SEQ:
            for item in items.items:
                waiting += [inner for inner in _from_item(item) if _is_object(inner)]
        elif items.tag != NULL:
            raise BuildError(f"expected array in {_kind(node)}/items, but found {items.kind}")
    return found


def _from_item(item: Node) -> list[Node]:
    node = from_json(to_json(item))
    return _unwrapped([node])


def read_documents(text: str) -> list[Node]:
    """The documents of ``text`` that are not empty; a single List is replaced by its items."""
    documents: list[Node] = []
    chunks = _split(text.replace("\r\n", "\n"))
    for chunk in chunks:
        node = _first_document(chunk)
        if node is not None and node.tag != NULL:
            documents.append(node)
    return _unwrapped(documents) if len(chunks) == 1 else documents


def parse_one(text: str) -> Node | None:
    """The first document of ``text``, None if there is nothing in it."""
    return _first_document(yaml_nodes.Chunk(text, 0))


def _unwrapped(documents: list[Node]) -> list[Node]:
    if len(documents) != 1 or _kind(documents[0]) not in ("List", "ResourceList"):
        return documents
    items = field(documents[0], "items")
    if items is None and field(documents[0], "functionConfig") is None:
        return documents
    return list(items.items) if items is not None else []


def _split(text: str) -> list[yaml_nodes.Chunk]:
    chunks: list[yaml_nodes.Chunk] = []
    start = lines = 0
    for match in _SEPARATOR.finditer(text):
        rest = match.group()[4:].strip()
        if rest and not rest.startswith("#"):
            raise BuildError(f"invalid document separator: {match.group().strip()}")
        part = text[start : match.start()] + "\n"
        chunks.append(yaml_nodes.Chunk(part, lines))
        lines += text.count("\n", start, match.end())
        start = match.end()
    chunks.append(yaml_nodes.Chunk(text[start:], lines))
    return chunks


def _first_document(chunk: yaml_nodes.Chunk) -> Node | None:
    try:
        roots = yaml_nodes.read_nodes(chunk)
    except YamlError as error:
        line = error.position.line - chunk.lines_above
        if AFTER_FIRST in error.message and line > 1:
            lines = chunk.text.split("\n")[: line - 1]
            return _first_document(yaml_nodes.Chunk("\n".join(lines), chunk.lines_above))
        raise BuildError(f"MalformedYAMLError: yaml: line {line}: {error.message}") from None
    return _Expander().node(roots[0]) if roots else None


def _is_object(node: Node) -> bool:
    """False for nothing at all; raises :class:`BuildError` for what has no kind or no name."""
    if is_empty(node):
        return False
    metadata = field(node, "metadata")
    kind, version = _kind(node), _text(field(node, "apiVersion"))
    name = _text(field(metadata, "name"))
    if not (kind or version or not is_empty(metadata)):
        raise BuildError("missing Resource metadata")
    shown = f"{{{{{version} {kind}}} {{{{{name} {_text(field(metadata, 'namespace'))}}} map[] map[]}}}}"
    if not kind:
        raise BuildError(f"missing kind in object {shown}")
    if not kind.endswith("List") and not name:
        raise BuildError(f"missing metadata.name in object {shown}")
    return True


def _kind(node: Node) -> str:
    return _text(field(node, "kind"))


def _text(node: Node | None) -> str:
    return node.value if node is not None and node.tag != NULL else ""


class _Expander:
    """Turns parsed nodes into ours: every alias becomes a copy, merge keys become fields."""

    def __init__(self) -> None:
        self._inside: list[yaml_nodes.Node] = []
        self._aliased = 0

    def node(self, parsed: yaml_nodes.Node) -> Node:
        if self._inside:
            self._aliased += 1
            if self._aliased > MAX_ALIAS_NODES:
                raise BuildError("MalformedYAMLError: document contains excessive aliasing")
        if isinstance(parsed, ScalarNode):
            return _scalar(parsed)
        if isinstance(parsed, AliasNode):
            return self._alias(parsed)
        if isinstance(parsed, SequenceNode):
            made = Node(Kind.SEQ, _short(parsed.tag) or SEQ)
            made.items = [self.node(item) for item in parsed.items]
            return made
        return self._mapping(parsed)

    def _alias(self, parsed: AliasNode) -> Node:
        if any(parsed.target is outer for outer in self._inside):
            raise BuildError(f"MalformedYAMLError: anchor '{parsed.name}' value contains itself")
        if len(self._inside) >= MAX_ALIAS_DEPTH:
            raise BuildError(f"MalformedYAMLError: anchors are nested deeper than {MAX_ALIAS_DEPTH} levels")
        self._inside.append(parsed.target)
        try:
            return self.node(parsed.target)
        finally:
            self._inside.pop()

    def _mapping(self, parsed: MappingNode) -> Node:
        made = Node(Kind.MAP, _short(parsed.tag) or MAP)
        for key, value in parsed.pairs:
            made.keys.append(self.node(key))
            made.items.append(self.node(value))
        merges = [item for key, item in made.pairs() if key.tag == MERGE]
        if not merges:
            return made
        if len(merges) > 1:
            raise BuildError("duplicate merge key")
        clear(made, "<<")
        for source in _sources(merges[0]):
            for name, item in source.pairs():
                if field(made, name.value) is None:
                    made.keys.append(name.copy())
                    made.items.append(item.copy())
        return made


def _sources(value: Node) -> list[Node]:
    """The mappings behind a merge key, the one that wins first."""
    if value.kind is Kind.MAP:
        return [value]
    if value.kind is Kind.SEQ:
        if any(item.kind is Kind.SEQ for item in value.items):
            raise BuildError("invalid map merge: received a nested sequence")
        return [source for item in value.items for source in _sources(item)]
    raise BuildError("map merge requires map or sequence of maps as the value")


def _scalar(parsed: ScalarNode) -> Node:
    style = Style(parsed.style) if parsed.style in tuple(Style) else Style.PLAIN
    if parsed.tag and parsed.tag != "!":
        return Node(Kind.SCALAR, _short(parsed.tag), parsed.value, style, tagged=True)
    tag = resolve(parsed.value)[0] if parsed.plain and not parsed.tag else STR
    return Node(Kind.SCALAR, tag, parsed.value, style)


def _short(tag: str) -> str:
    return f"!!{tag[len(_CORE) :]}" if tag.startswith(_CORE) else tag
