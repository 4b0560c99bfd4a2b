"""The syntax tree of an expression: ``parser`` creates it, ``checker`` adds types, ``cost`` and ``program`` read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


class CelError(Exception):
    """An expression that does not compile; the text is cel-go's, with the position."""


@dataclass(eq=False, slots=True)
class Node:
    """One node. ``kind``: const, ident, select, call, list, map, struct, comp. The meaning of ``value`` depends on it:

    const: the value; ident: the name; select: the field; call: the function; struct: the type; comp: the name of the
    accumulator. ``target`` is the operand of a select or of a member call. ``optional`` marks ``?`` entries.
    """

    kind: str
    at: int
    value: Any = None
    args: list[Node] = field(default_factory=list)
    target: Node | None = None
    test: bool = False
    optional: tuple[int, ...] = ()
    type: Any = None
    overloads: tuple[str, ...] = ()
    parts: dict[str, Any] = field(default_factory=dict)


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and everything below it."""
    yield node
    for below in node.args:
        yield from walk(below)
    if node.target is not None:
        yield from walk(node.target)
    for part in node.parts.values():
        if isinstance(part, Node):
            yield from walk(part)


def dotted(node: Node | None) -> str:
    """Return ``a.b.c`` for plain selects; empty for anything else."""
    if node is None:
        return ""
    if node.kind == "ident":
        return str(node.value)
    if node.kind == "select" and not node.test:
        head = dotted(node.target)
        return f"{head}.{node.value}" if head else ""
    return ""


MAX_SHOWN = 2_000
"""The most characters of a source line in an error."""


def located(text: str, at: int, message: str) -> str:
    """Format an error like cel-go: ``ERROR: <input>:1:6: undefined field 'x'``, the line and a caret."""
    if not text:
        return f"ERROR: <input>:1:0: {message}"  # There is no line to show.
    line = text.count("\n", 0, at) + 1
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", start)
    shown = text[start : end if end >= 0 else len(text)][:MAX_SHOWN]
    return f"ERROR: <input>:{line}:{at - start + 1}: {message}\n | {shown}\n | {'.' * min(at - start, MAX_SHOWN)}^"
