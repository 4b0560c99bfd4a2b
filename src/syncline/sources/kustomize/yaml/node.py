"""The tree that kustomize edits: mappings, sequences and scalars whose text is resolved last.

Made by ``reader`` from YAML and by ``values`` from JSON, changed in place by the transformers of one build, turned
into JSON by ``values``. A node knows its short tag (``!!str``), its raw text and whether it was quoted; what a scalar
means follows from these three (go-yaml v3). Nodes belong to one build; nothing here is shared between builds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum

from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.yaml.scalars import is_old_non_string

STR, INT, FLOAT, BOOL, NULL = "!!str", "!!int", "!!float", "!!bool", "!!null"
MAP, SEQ, MERGE = "!!map", "!!seq", "!!merge"


class Kind(StrEnum):
    """The kind of a node, in the words of kustomize's messages. NONE is a node without content."""

    NONE = "none"
    MAP = "MappingNode"
    SEQ = "SequenceNode"
    SCALAR = "ScalarNode"


class Style(StrEnum):
    """The style of a scalar. All but PLAIN make it text."""

    PLAIN = ""
    SINGLE = "'"
    DOUBLE = '"'
    LITERAL = "|"
    FOLDED = ">"


class Node:
    """``items`` are the values of a mapping (``keys`` beside them) or the elements of a sequence."""

    __slots__ = ("items", "keys", "kind", "style", "tag", "tagged", "value")

    def __init__(
        self, kind: Kind, tag: str = "", value: str = "", style: Style = Style.PLAIN, *, tagged: bool = False
    ) -> None:
        self.kind = kind
        self.tag = tag
        self.value = value
        self.style = style
        self.tagged = tagged
        self.keys: list[Node] = []
        self.items: list[Node] = []

    def copy(self) -> Node:
        """A deep copy."""
        twin = Node(self.kind, self.tag, self.value, self.style, tagged=self.tagged)
        twin.keys = [key.copy() for key in self.keys]
        twin.items = [item.copy() for item in self.items]
        return twin

    def become(self, other: Node) -> None:
        """Take over the content of ``other``, keeping the place in the tree."""
        self.kind, self.tag, self.value, self.style = other.kind, other.tag, other.value, other.style
        self.tagged, self.keys, self.items = other.tagged, other.keys, other.items

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        return zip(self.keys, self.items, strict=True)

    def __repr__(self) -> str:
        inside = self.value if self.kind is Kind.SCALAR else f"{len(self.items)} items"
        return f"Node({self.kind}, {self.tag} {inside!r})"


class WrongKind(BuildError):
    """A step of a path met a node of another kind; ``found`` is what it met."""

    def __init__(self, expected: Kind, found: Kind) -> None:
        super().__init__(f"wrong node kind: expected {expected} but got {found}")
        self.found = found


def scalar(value: str, tag: str = "", style: Style = Style.PLAIN) -> Node:
    return Node(Kind.SCALAR, tag, value, style)


def text(value: str) -> Node:
    """A string whatever it looks like; several lines become a block."""
    return Node(Kind.SCALAR, STR, value, Style.LITERAL if "\n" in value else Style.PLAIN)


def mapping() -> Node:
    return Node(Kind.MAP)


def sequence() -> Node:
    return Node(Kind.SEQ)


def is_missing(node: Node | None) -> bool:
    """Absent or null."""
    return node is None or node.tag == NULL


def is_empty(node: Node | None) -> bool:
    """Absent, null or a collection without content."""
    if node is None or node.tag == NULL:
        return True
    return node.kind is Kind.NONE or (node.kind is not Kind.SCALAR and not node.items)


def require(node: Node | None, kind: Kind) -> None:
    """Raise :class:`WrongKind` unless ``node`` is missing or of ``kind``."""
    if node is not None and node.tag != NULL and node.kind is not kind:
        raise WrongKind(kind, node.kind)


def field(node: Node | None, name: str) -> Node | None:
    """The value of a field of a mapping, None if it is absent or this is no mapping."""
    if node is not None and node.kind is Kind.MAP:
        for key, value in zip(node.keys, node.items, strict=True):
            if key.value == name:
                return value
    return None


def get(node: Node | None, name: str) -> Node | None:
    """As :func:`field`, but raises :class:`WrongKind` where something else than a mapping stands."""
    if node is None or node.tag == NULL:
        return None
    require(node, Kind.MAP)
    return field(node, name)


def clear(node: Node, name: str, *, only_empty: bool = False) -> None:
    """Remove the first field of that name; ``only_empty``: the first that holds nothing."""
    require(node, Kind.MAP)
    for index, key in enumerate(node.keys):
        if key.value == name and not (only_empty and node.items[index].items):
            del node.keys[index], node.items[index]
            return


def set_value(node: Node, value: Node) -> None:
    """Let a scalar have another value, in the style it has."""
    _quote_if_old_non_string(value)
    require(node, Kind.SCALAR)
    if is_missing(value):
        return
    value.style = node.style
    node.become(value)


def put(node: Node, name: str, value: Node | None, *, key_style: Style = Style.PLAIN, keep_null: bool = False) -> Node:
    """Set a field; a null clears it unless it is to be kept. The style of a field that is there stays."""
    if value is not None:
        _quote_if_old_non_string(value)
    if value is None or (value.tag == NULL and not keep_null):
        clear(node, name)
        return node
    there = get(node, name)
    if there is not None:
        value.style = there.style
        there.become(value)
        return there
    node.keys.append(scalar(name, "", key_style))
    node.items.append(value)
    return value


def _quote_if_old_non_string(value: Node) -> None:
    """Text that YAML 1.1 would read as something else is quoted (kyaml ``FieldSetter``)."""
    is_text = value.kind is Kind.SCALAR and value.tag in (STR, "")
    if is_text and value.style is Style.PLAIN and is_old_non_string(value.value):
        value.style = Style.DOUBLE


def lookup(node: Node | None, path: Sequence[str]) -> Node | None:
    """Follow plain field names; raises :class:`WrongKind` on the way through something that is no mapping."""
    for name in path:
        node = get(node, name)
        if node is None:
            return None
    return node


def lookup_create(node: Node, path: Sequence[str], kind: Kind) -> Node:
    """As :func:`lookup`, making mappings on the way and a node of ``kind`` at the end."""
    for index, name in enumerate(path):
        there = get(node, name)
        if there is None:
            there = put(node, name, Node(kind if index == len(path) - 1 else Kind.MAP))
        node = there
    return node
