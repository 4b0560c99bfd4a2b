"""Nodes to JSON values and back, by the detours that kustomize makes.

``to_json`` prints a node as go-yaml v3 does and reads it again, without the text in between: a tag that the value has
anyhow is dropped, text that looks like something else gets quotes, a tag that does not fit is an error. Called for
the output, for JSON patches and for hashes.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Any

from syncline.kube.yaml.resolve import go_shortest
from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.yaml.node import BOOL, FLOAT, INT, MAP, NULL, SEQ, STR, Kind, Node, Style
from syncline.sources.kustomize.yaml.scalars import Plain, resolve


def to_json(node: Node) -> Any:
    """The JSON value of ``node``; raises :class:`BuildError` for repeated keys, other keys than text, infinities."""
    if node.kind is Kind.SCALAR:
        return _finite(scalar_value(node))
    if node.kind is Kind.MAP:
        return _object(node)
    if node.kind is Kind.SEQ:
        return [to_json(item) for item in node.items]
    return None


def _object(node: Node) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, item in node.pairs():
        name = scalar_value(key) if key.kind is Kind.SCALAR else None
        if not isinstance(name, str):
            raise BuildError(
                f"json: unsupported type: map[interface {{}}]interface {{}}: the key {key.value} is no text"
            )
        if name in made:
            raise BuildError(f'yaml: unmarshal errors:\n  mapping key "{name}" already defined')
        made[name] = to_json(item)
    return made


def _finite(value: Plain) -> Plain:
    if isinstance(value, float) and not math.isfinite(value):
        shown = "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
        raise BuildError(f"json: unsupported value: {shown}")
    return value


def scalar_value(node: Node) -> Plain:
    """Return the value of a scalar after it was printed and parsed again."""
    if node.style is Style.FOLDED and not node.tagged and node.tag in ("", STR):
        return refolded(node.value)
    natural, value = resolve(node.value)
    if not node.tagged:
        if node.tag in ("", natural):
            return value if node.style is Style.PLAIN and "\n" not in node.value else node.value
        if node.tag == STR:
            return node.value
    return _tagged(node, natural, value)


def refolded(text: str) -> str:
    """What is read again of a folded text that was printed.

    go-yaml v3 puts a second break where a line is followed by a break, meaning to look whether the next line is
    indented; it reads the beginning of the whole text instead. So an indented line gets an empty line before it, unless
    the text begins with a blank.
    """
    if "\n" not in text or _UNFOLDABLE.search(text):
        return text
    doubles = text.lstrip("\n")[:1] not in ("", " ", "\t")

    def read_again(found: re.Match[str]) -> str:
        line, breaks, following = found.group(1), found.group(2), found.group(3)
        before, after = line[0] in " \t", following in (" ", "\t")
        printed = len(breaks) + (doubles and not before)
        if before or after:
            return line + "\n" * printed
        return line + ("\n" * (printed - 1) or " ")

    body = text.rstrip("\n")
    ending = text[len(body) :]
    if len(ending) > 1 and doubles and body.rpartition("\n")[2][:1] not in (" ", "\t"):
        ending += "\n"
    return _LINE.sub(read_again, body) + ending


_LINE = re.compile(r"([^\n]+)(\n+)(?=(.))")
_UNFOLDABLE = re.compile(r" \n|[ \t]\Z|\A\n*\Z")
"""Blanks before a break or at the end: such texts are printed in quotes."""


def _tagged(node: Node, natural: str, value: Plain) -> Plain:
    if node.tag == "!!binary":
        return _binary(node.value)
    if node.tag == STR or not node.tag.startswith("!!"):
        return node.value
    if node.tag == natural:
        return value
    if node.tag == FLOAT and natural == INT and isinstance(value, int):
        return float(value)
    if node.tag in (INT, FLOAT, BOOL, NULL, "!!timestamp"):
        raise BuildError(f"yaml: cannot decode {natural} `{node.value}` as a {node.tag}")
    return node.value


def _binary(text: str) -> str:
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise BuildError("yaml: !!binary value contains invalid base64 data") from None
    return data.decode("utf-8", "replace")


def from_json(value: Any) -> Node:
    """A node that means ``value``."""
    if isinstance(value, dict):
        made = Node(Kind.MAP, MAP)
        for key in sorted(value):
            made.keys.append(_text(key))
            made.items.append(from_json(value[key]))
        return made
    if isinstance(value, list):
        made = Node(Kind.SEQ, SEQ)
        made.items = [from_json(item) for item in value]
        return made
    if isinstance(value, str):
        return _text(value)
    if value is None:
        return Node(Kind.SCALAR, NULL, "null")
    if isinstance(value, bool):
        return Node(Kind.SCALAR, BOOL, "true" if value else "false")
    shown = str(value) if isinstance(value, int) else go_shortest(value)
    return Node(Kind.SCALAR, resolve(shown)[0], shown)


def _text(value: str) -> Node:
    if "\n" in value:
        return Node(Kind.SCALAR, STR, value, Style.LITERAL)
    quoted = resolve(value)[0] != STR
    return Node(Kind.SCALAR, STR, value, Style.DOUBLE if quoted else Style.PLAIN)


def through_float(value: Any) -> Any:
    """Numbers as Go's JSON decoder gives them to an untyped value: all are 64-bit floats."""
    if isinstance(value, dict):
        return {key: through_float(item) for key, item in value.items()}
    if isinstance(value, list):
        return [through_float(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value
