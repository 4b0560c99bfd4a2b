"""Edits of YAML texts that keep everything else as it is written: :func:`edited`. Pure.

An edit is made where the value stands, if the style of the text is one that is known here, and what comes out is read
again and compared; otherwise our own emitter rewrites the document.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from syncline.kube.objects import copied
from syncline.kube.yaml.loading import YamlError, dump, load_all
from syncline.kube.yaml.nodes import AliasNode, MappingNode, Node, ScalarNode, SequenceNode, read_nodes, split_documents


class Removed(Enum):
    """The value of an edit that takes a key away; the same one in each process."""

    REMOVED = "removed"


REMOVED: Final = Removed.REMOVED
Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Edit:
    """A new value at ``path`` of a document of a file; ``document`` counts those that are not empty, from 0."""

    file: str
    document: int
    path: Path
    value: Any


def edited(text: str, edit: Edit) -> str:
    """Return the text with the edit. Raises ValueError if the document or the place for it is not there."""
    documents = load_all(text.encode()).documents
    if edit.document >= len(documents):
        raise ValueError(f"{edit.file}: has no document {edit.document}")
    wanted = _with(documents[edit.document].value, edit.path, edit.value)
    others = [document.value for document in documents]
    others[edit.document] = wanted
    in_place = _in_place(text, edit)
    if in_place is not None and _values(in_place) == others:
        return in_place
    return _rewritten(text, edit.document, wanted)


def diff_of(file: str, before: str, after: str) -> str:
    """Return a unified diff, as ``git diff`` prints it."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{file}", f"b/{file}", n=2
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _values(text: str) -> list[Any]:
    try:
        return [document.value for document in load_all(text.encode()).documents]
    except YamlError:
        return []


def _with(value: Any, path: Path, new: Any) -> Any:
    """Return a copy of the value with ``new`` at the path; missing mappings on the way are made."""
    found = copied(value)
    at = found
    for step in path[:-1]:
        if isinstance(at, dict) and at.get(str(step)) is None:
            at[str(step)] = {}
        at = at[step]
    if new is REMOVED:
        at.pop(path[-1], None)
    else:
        at[path[-1]] = new
    return found


# -- in place ----------------------------------------------------------------------------------------------------------


def _in_place(text: str, edit: Edit) -> str | None:
    chunks = [chunk for chunk in split_documents(text) if _values(chunk.text)]
    if edit.document >= len(chunks):
        return None
    chunk = chunks[edit.document]
    root = next(iter(read_nodes(chunk)), None)
    lines = text.splitlines(keepends=True)
    parent, left = _deepest(root, edit.path[:-1])
    if not isinstance(parent, MappingNode):
        return None
    key, value = str(edit.path[-1]), edit.value
    if left:  # mappings that are missing on the way
        for step in reversed([*left[1:], key]):
            value = {str(step): value}
        key = str(left[0])
    there = next((pair for pair in parent.pairs if isinstance(pair[0], ScalarNode) and pair[0].value == key), None)
    if there is None:
        return None if value is REMOVED else _added(lines, parent, key, value)
    return _removed(lines, parent, there) if value is REMOVED else _replaced(lines, there[1], value)


def _deepest(node: Node | None, path: Path) -> tuple[Node | None, Path]:
    """Return the node at the path, or the last mapping on the way and the steps that are missing."""
    for place, step in enumerate(path):
        below: Node | None = None
        if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.items):
            below = node.items[step]
        elif isinstance(node, MappingNode):
            below = next((v for k, v in node.pairs if isinstance(k, ScalarNode) and k.value == step), None)
            if below is None:
                return node, path[place:]
        if below is None or isinstance(below, AliasNode):
            return None, ()
        node = below
    return node, ()


def _replaced(lines: list[str], node: Node, value: Any) -> str | None:
    if not isinstance(node, ScalarNode) or node.style in ("|", ">"):
        return None
    line = lines[node.line - 1]
    begin = node.column - 1
    if node.style:
        end = line.find(node.style, begin + 1) + 1
    else:
        end = begin + len(node.value)
    if end <= begin:
        return None
    changed = line[:begin] + _atom(value) + line[end:]
    return "".join([*lines[: node.line - 1], changed, *lines[node.line :]])


def _added(lines: list[str], parent: MappingNode, key: str, value: Any) -> str | None:
    if not parent.pairs:
        return None
    first = parent.pairs[0][0]
    line = lines[first.line - 1]
    if parent.flow:
        changed = f"{line[: first.column - 1]}{_atom(key)}: {json.dumps(value)}, {line[first.column - 1 :]}"
        return "".join([*lines[: first.line - 1], changed, *lines[first.line :]])
    last = parent.pairs[-1][0]
    indent = " " * (last.column - 1)
    fresh = [f"{indent}{part}\n" for part in dump({key: value}).splitlines()]
    place = last.line - 1 if last is not first else None
    if place is None:  # a single key: its line may begin with a dash, so the new ones follow its value
        place = _end_of(lines, first.line, first.column)
    return "".join([*lines[:place], *fresh, *lines[place:]])


def _end_of(lines: Sequence[str], line: int, column: int) -> int:
    """Return the index of the first line behind the value of a block key: one that is not indented further."""
    at = line
    while at < len(lines) and (not lines[at].strip() or len(lines[at]) - len(lines[at].lstrip()) >= column):
        at += 1
    return at


def _removed(lines: list[str], parent: MappingNode, pair: tuple[Node, Node]) -> str | None:
    key, value = pair
    alone = not lines[key.line - 1][: key.column - 1].strip()
    if parent.flow or not isinstance(value, ScalarNode) or key.line != value.line or not alone:
        return None
    return "".join([*lines[: key.line - 1], *lines[key.line :]])


def _atom(value: Any) -> str:
    if isinstance(value, str):
        return dump(value).removesuffix("\n").removesuffix("...").strip()
    return json.dumps(value)


def _rewritten(text: str, number: int, value: Any) -> str:
    parts, found = [], -1
    for chunk in split_documents(text):
        if _values(chunk.text):
            found += 1
        parts.append(dump(value) if found == number and _values(chunk.text) else chunk.text.removeprefix("\n"))
    return "---\n".join(part if part.endswith("\n") else f"{part}\n" for part in parts)
