"""Nodes to YAML in their own order and style, for YAML that is kept as text inside a field.

Called by ``replace``. Comments are lost: nodes do not carry them.
"""

from __future__ import annotations

import io
from typing import Any

import yaml

from syncline.sources.kustomize.yaml.node import STR, Kind, Node, Style
from syncline.sources.kustomize.yaml.scalars import resolve

_Emitter: Any = getattr(getattr(yaml, "cyaml", None), "CEmitter", yaml.Dumper)


def node_text(node: Node) -> str:
    """YAML in block style, ending in a line break."""
    stream = io.StringIO()
    emitter = _Emitter(stream, width=-1, allow_unicode=True)
    try:
        emitter.emit(yaml.StreamStartEvent())
        emitter.emit(yaml.DocumentStartEvent(explicit=False))
        _emit(emitter, node)
        emitter.emit(yaml.DocumentEndEvent(explicit=False))
        emitter.emit(yaml.StreamEndEvent())
    finally:
        emitter.dispose()
    return stream.getvalue().removesuffix("...\n")


def _emit(emitter: Any, node: Node) -> None:
    if node.kind is Kind.MAP:
        emitter.emit(yaml.MappingStartEvent(None, None, True, flow_style=False))
        for key, value in node.pairs():
            _emit(emitter, key)
            _emit(emitter, value)
        emitter.emit(yaml.MappingEndEvent())
    elif node.kind is Kind.SEQ:
        emitter.emit(yaml.SequenceStartEvent(None, None, True, flow_style=False))
        for item in node.items:
            _emit(emitter, item)
        emitter.emit(yaml.SequenceEndEvent())
    else:
        emitter.emit(yaml.ScalarEvent(None, None, (True, True), node.value, style=_style(node)))


def _style(node: Node) -> str | None:
    if node.style is not Style.PLAIN:
        return node.style.value
    if "\n" in node.value:
        return "|"
    return '"' if node.tag == STR and resolve(node.value)[0] != STR else None
