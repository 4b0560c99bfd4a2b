"""Positions in a Butane document, unknown keys, and findings before they are reported: :class:`Locator`.

All stages of a translation collect :class:`Finding`; ``ignition/butane/transpile.py`` maps their paths back to the
document and gets line and column from a :class:`Locator`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from syncline.ignition.butane.schema import Struct, snake
from syncline.ignition.report import Entry, Path, Severity, path_text
from syncline.kube.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

Places: TypeAlias = dict[Path, Path]
"""For paths of the result, the paths of the document that they were made from."""


class Key(str):
    """The last step of a path to a key itself, not to its value."""

    __slots__ = ()


class Finding(NamedTuple):
    """One problem. ``result``: ``path`` is one of the generated document, to be mapped back."""

    severity: Severity
    message: str
    path: Path
    result: bool = False

    @property
    def fatal(self) -> bool:
        return self.severity is Severity.ERROR

    def entry(self, locator: Locator) -> Entry:
        """Return the entry of a report, with the position of the deepest existing part of the path."""
        return Entry(self.severity, self.message, self.path, *locator.place(self.path))


def error(path: Path, message: str, *, result: bool = False) -> Finding:
    return Finding(Severity.ERROR, message, path, result)


def warning(path: Path, message: str, *, result: bool = False) -> Finding:
    return Finding(Severity.WARNING, message, path, result)


def in_document(finding: Finding, places: Places) -> Finding:
    """Map a finding about the result to the document; unrecorded paths are converted to snake case."""
    if not finding.result:
        return finding
    known = places.get(finding.path)
    if known is None:
        known = tuple(snake(step) if isinstance(step, str) else step for step in finding.path)
    return finding._replace(path=known, result=False)


class Locator:
    """Finds the position of a path in a document. It caches the keys of mappings, since reports have many paths."""

    def __init__(self, root: Node | None) -> None:
        self._root = root
        self._keys: dict[int, dict[str, tuple[Node, Node]]] = {}

    def place(self, path: Path) -> tuple[int, int] | tuple[None, None]:
        """Return line and column from 1, for a missing part those of its nearest ancestor. Aliases are not followed."""
        if self._root is None:
            return None, None
        node = self._root
        for step in path:
            inner = self._child(node, step)
            if inner is None:
                break
            node = inner
        return node.line, node.column

    def _child(self, node: Node, step: str | int) -> Node | None:
        if isinstance(node, SequenceNode) and isinstance(step, int):
            return node.items[step] if step < len(node.items) else None
        if not isinstance(node, MappingNode) or not isinstance(step, str):
            return None
        keys = self._keys.get(id(node))
        if keys is None:
            keys = self._keys[id(node)] = {_text(key): (key, value) for key, value in node.pairs}
        found = keys.get(step)
        return found and found[0 if isinstance(step, Key) else 1]


def _text(key: Node) -> str:
    """Return the text of a key in the context tree: the name of an alias, empty for a mapping."""
    if isinstance(key, ScalarNode):
        return key.value
    return getattr(key, "name", "")


def unused_keys(root: Node | None, struct: Struct, value: dict[str, Any]) -> Iterator[Finding]:
    """Yield keys that the version does not have, and objects written as another type, parents first."""
    if root is not None:
        yield from _unused(root, struct, value, ())


def _unused(node: Node, struct: Struct, value: dict[str, Any], path: Path) -> Iterator[Finding]:
    if not isinstance(node, MappingNode):
        yield warning(
            path,
            f"context tree does not match content tree at {path_text(path)}. Line and column reporting may be "
            "inconsistent. Unused keys may not be reported",
        )
        return
    written = {_text(key): inner for key, inner in node.pairs}
    for key in written:
        if key not in struct.by_key:
            yield warning((*path, Key(key)), f"unused key {key}")
    for field in struct.fields:
        inner = written.get(field.key)
        if inner is None or field.struct is None:
            continue
        if field.kind == "struct":
            if not field.nullable or field.key in value:
                yield from _unused(inner, field.struct, value.get(field.key, {}), (*path, field.key))
        elif isinstance(inner, SequenceNode):
            items = value.get(field.key, ())
            for index, item in enumerate(items):
                if index < len(inner.items):
                    yield from _unused(inner.items[index], field.struct, item, (*path, field.key, index))
