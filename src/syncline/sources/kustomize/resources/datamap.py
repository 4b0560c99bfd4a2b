"""Writes generated values into ``data`` and ``binaryData`` nodes (kyaml ``datamap``): :func:`fill_data`.

Called by the generators and when a generated object is merged into another. Values never appear in errors.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

from syncline.sources.kustomize.yaml.node import STR, Kind, Node, Style, lookup_create, put

SECRET_LINE = 70
"""Characters of base64 on one line; longer values become a block."""


def encode_base64(content: bytes) -> str:
    """Return base64; if it is longer than a line, every line ends with a line break."""
    made = base64.b64encode(content).decode()
    if len(made) // SECRET_LINE + 1 == 1:
        return made
    return "".join(made[start : start + SECRET_LINE] + "\n" for start in range(0, len(made), SECRET_LINE))


def fill_data(node: Node, values: Mapping[str, bytes]) -> None:
    """Write text to ``data`` and values that are no UTF-8 to ``binaryData``."""
    for key in sorted(values):
        try:
            name, value = "data", values[key].decode("utf-8")
        except UnicodeDecodeError:
            name, value = "binaryData", encode_base64(values[key])
        put(lookup_create(node, [name], Kind.MAP), key, _value(value))


def fill_binary_data(node: Node, values: Mapping[str, str]) -> None:
    """Write values that are already base64."""
    for key in sorted(values):
        put(lookup_create(node, ["binaryData"], Kind.MAP), key, _value(values[key]))


def fill_secret(node: Node, values: Mapping[str, bytes]) -> None:
    data = lookup_create(node, ["data"], Kind.MAP)
    for key in sorted(values):
        put(data, key, _value(encode_base64(values[key])))


def _value(value: str) -> Node:
    return Node(Kind.SCALAR, STR, value, Style.LITERAL if "\n" in value else Style.PLAIN)
