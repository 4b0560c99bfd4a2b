"""Finds errors of literals before evaluation: times, durations, patterns, mixed lists, formats. :func:`literal_faults`.

Called by ``checker`` for a well-typed expression. Source: cel-go ``cel/validator.go``.
"""

from __future__ import annotations

import re
from typing import Any

from syncline.kube.cel.functions import FUNCTIONS
from syncline.kube.cel.nodes import CelError, Node, located, walk
from syncline.kube.cel.types import shown
from syncline.kube.cel.values import EvaluationError
from syncline.kube.text.re2 import compile_pattern

_CONVERSIONS = frozenset({"int", "uint", "double", "bool", "bytes", "string"})
_CLAUSE = re.compile(r"%(?:\.\d+)?(.)", re.DOTALL)
_ALLOWED = {
    "d": ({"int", "uint", "double"}, "decimal clause can only be used on integers"),
    "f": ({"int", "uint", "double"}, "fixed-point clause can only be used on doubles"),
    "e": ({"int", "uint", "double"}, "scientific clause can only be used on doubles"),
    "b": ({"int", "uint", "bool"}, "only integers and bools can be formatted as binary"),
    "o": ({"int", "uint"}, "octal clause can only be used on integers"),
    "x": ({"int", "uint", "string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex"),
}


def literal_faults(text: str, root: Node) -> list[str]:
    """Return the errors as cel-go lists them. Raises :class:`CelError` for a conversion that can never succeed."""
    found: list[str] = []
    formatted = {id(node.args[0]) for node in walk(root) if node.value == "format" and node.args}
    for node in walk(root):
        if node.kind == "call":
            found += [located(text, at, why) for at, why in _call_faults(node)]
        elif node.kind in ("list", "map") and id(node) not in formatted:
            found += [located(text, at, why) for at, why in _mixed(node)]
    if not found:
        _fold(root)
    return found


def _text_argument(node: Node, index: int = 0) -> Any:
    arg = node.args[index] if len(node.args) > index else None
    return arg.value if arg is not None and arg.kind == "const" and isinstance(arg.value, str) else None


def _call_faults(node: Node) -> list[tuple[int, str]]:
    if node.value in ("duration", "timestamp"):
        literal = _text_argument(node)
        try:
            return [] if literal is None else (FUNCTIONS[node.value](literal) and [])
        except EvaluationError:
            return [(node.args[0].at, f"invalid {node.value} argument")]
    if node.value == "matches":
        index = 0 if node.target is not None else 1
        literal = _text_argument(node, index)
        try:
            compile_pattern(literal or "")
        except re.error:
            return [(node.args[index].at, "invalid matches argument")]
    if node.value == "format" and node.target is not None and node.target.kind == "const":
        return _format_faults(node, str(node.target.value))
    return []


def _format_faults(node: Node, template: str) -> list[tuple[int, str]]:
    """Check the clauses of a literal template against literal arguments."""
    if not node.args or node.args[0].kind != "list":
        return []
    given, at = node.args[0].args, 0
    for verb in _CLAUSE.findall(template):
        if verb == "%":
            continue
        if at >= len(given):
            return [(node.at, f"index {at} out of range")]
        arg, at = given[at], at + 1
        if verb == "s":
            continue
        if verb.lower() not in _ALLOWED:
            why = f'could not parse formatting clause: unrecognized formatting clause "{verb}"'
            return [(node.at, f"error during formatting: {why}")]
        allowed, why = _ALLOWED[verb.lower()]
        kind = (arg.type or ("dyn",))[0]
        if kind not in allowed and kind != "dyn":
            return [(arg.at, f"error during formatting: {why}, was given {shown(arg.type)}")]
    return []


def _mixed(node: Node) -> list[tuple[int, str]]:
    """Report lists and maps with values of different types."""
    groups = [node.args] if node.kind == "list" else [node.args[::2], node.args[1::2]]
    for group in groups:
        first: Any = None
        for arg in group:
            kind = arg.type
            if kind is None or kind[0] in ("dyn", "optional_type"):
                continue
            if first is None:
                first = kind
            elif not _like(first, kind):
                return [(arg.at, f"expected type '{shown(first)}' but found '{shown(kind)}'")]
    return []


def _like(one: Any, other: Any) -> bool:
    if "dyn" in (one[0], other[0]):
        return True
    if one[0] != other[0] or len(one) != len(other) or one[0] == "object":
        return bool(one == other)
    return all(map(_like, one[1:], other[1:]))


def _fold(root: Node) -> None:
    """Perform conversions of literals, which fail when a program is instantiated."""
    for node in walk(root):
        if node.kind == "call" and node.value in _CONVERSIONS and _text_argument(node) is not None:
            try:
                FUNCTIONS[node.value](_text_argument(node))
            except EvaluationError as error:
                raise FoldingError(str(error)) from None


class FoldingError(CelError):
    """Not a compilation error: Kubernetes reports it in other words."""
