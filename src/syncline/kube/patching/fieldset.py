"""Sets of field paths, in the form that ``metadata.managedFields[*].fieldsV1`` stores them.

Called by field ownership. A set *is* its FieldsV1 tree: a dict from path element to subtree, where an element is text:
``f:<name>`` (a field), ``k:<json>`` (a list entry by its keys), ``v:<json>`` (an entry of a set), ``i:<n>`` (an index).
An element belongs to the set itself when its subtree is empty or holds ``"."``; otherwise only something below it does.
So a stored set is used without conversion. Sets are values: every function returns a new tree that may share subtrees
with its arguments, and none changes what it was given.

Source of form and order: sigs.k8s.io/structured-merge-diff, ``fieldpath``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from syncline.base.remember import MAX_REMEMBERED_CHARS, remember

FieldSet: TypeAlias = dict[str, Any]
"""A tree of path elements; ``{}`` at the top is the empty set. Read-only unless you made it."""

Path: TypeAlias = tuple[str, ...]

SELF = "."
MAX_DEPTH = 200
"""Deepest path that is read from a request, far above any schema and below Python's own limit."""

_encode = msgspec.json.Encoder().encode

_KINDS = {"f": 0, "k": 1, "v": 2, "i": 3}


def field(name: str) -> str:
    """The element of a struct field or map key."""
    return "f:" + name


def keyed(keys: Mapping[str, Any]) -> str:
    """The element of an entry of a list of type map."""
    return "k:" + _canonical({name: keys[name] for name in sorted(keys)})


@lru_cache(maxsize=256)
def _key_start(name: str) -> str:
    return f"k:{{{_canonical(name)}:"


def keyed_by(name: str, text: str) -> str:
    """As :func:`keyed` for the usual single key: a name or a type. ``name`` is one of a schema."""
    return _keyed_by(name, text) if len(text) <= MAX_REMEMBERED_CHARS else _keyed_by.__wrapped__(name, text)


@lru_cache(maxsize=4096)
def _keyed_by(name: str, text: str) -> str:
    return f"{_key_start(name)}{_encode(text).decode()}}}"


def valued(value: Any) -> str:
    """The element of an entry of a list of type set."""
    return "v:" + _canonical(value)


def _canonical(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def field_set(paths: Iterable[Iterable[str]]) -> FieldSet:
    """A set of plain field paths: ``[("metadata", "name"), ("spec",)]``."""
    result: FieldSet = {}
    for path in paths:
        insert(result, [field(name) for name in path], {})
    return result


def is_member(node: Mapping[str, Any]) -> bool:
    """Whether the element whose subtree this is belongs to the set."""
    return not node or SELF in node


def node_of(member: bool, children: FieldSet) -> FieldSet | None:
    """The subtree of an element, or None where nothing is left of it. ``children`` must not hold ``"."``."""
    if not children:
        return {} if member else None
    return {SELF: {}, **children} if member else children


def insert(target: FieldSet, path: Iterable[str], node: FieldSet) -> None:
    """Add a subtree to a tree under construction; the only function that changes its argument."""
    steps = tuple(path)
    here = target
    for position, element in enumerate(steps):
        if position == len(steps) - 1:
            known = here.get(element)
            here[element] = node if known is None else _union_node(known, node)
            return
        below = here.get(element)
        if below is None:
            below = here[element] = {}
        elif not below:
            below = here[element] = {SELF: {}}
        here = below


def _children(node: FieldSet) -> FieldSet:
    return {element: below for element, below in node.items() if element != SELF} if SELF in node else node


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Members of either; ``one`` itself if ``other`` adds nothing to it."""
    if not one or not other:
        return one or other
    result = one
    for element, theirs in other.items():
        if element == SELF:
            continue
        mine = one.get(element)
        made = theirs if mine is None else _union_node(mine, theirs)
        if made is not mine:
            if result is one:
                result = dict(one)
            result[element] = made
    return result


def _union_node(mine: FieldSet, theirs: FieldSet) -> FieldSet:
    if mine is theirs or (not theirs and is_member(mine)):
        return mine
    if not mine:
        return node_of(True, _children(theirs)) or {}
    made = union(mine, theirs)
    return {SELF: {}, **made} if is_member(theirs) and SELF not in made else made


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Members of ``one`` that are not members of ``other``; what lies below a removed member stays. ``one`` itself if
    there is nothing to take away."""
    result = one
    for element, theirs in other.items():
        mine = one.get(element)
        if mine is None or element == SELF:
            continue
        left = _difference_node(mine, theirs)
        if left is mine:
            continue
        if result is one:
            result = dict(one)
        if left is None:
            del result[element]
        else:
            result[element] = left
    return result


def _difference_node(mine: FieldSet, theirs: FieldSet) -> FieldSet | None:
    left = difference(mine, theirs) if mine and theirs else mine
    if not is_member(mine):
        return left or None
    if is_member(theirs):
        return node_of(False, _children(left))
    return {} if len(left) == 1 and left is not mine else left  # of a leaf only its own mark is left


def recursive_difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """As :func:`difference`, but a member of ``other`` takes everything below it along."""
    if not other:
        return one
    result: FieldSet = {}
    for element, mine in one.items():
        theirs = other.get(element)
        if theirs is None:
            result[element] = mine
        elif not is_member(theirs):
            left = node_of(is_member(mine), recursive_difference(_children(mine), theirs))
            if left is not None:
                result[element] = left
    return result


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """Members of both."""
    result: FieldSet = {}
    for element, mine in one.items():
        theirs = other.get(element)
        if theirs is None or element == SELF:
            continue
        both = is_member(mine) and is_member(theirs)
        left = node_of(both, intersection(_children(mine), _children(theirs)))
        if left is not None:
            result[element] = left
    return result


def members(fields: FieldSet) -> Iterator[Path]:
    """Every member as a path: those of a level first, then what lies below each (the order of conflict messages)."""
    yield from _members(fields, ())


def _members(fields: FieldSet, prefix: Path) -> Iterator[Path]:
    elements = sorted((element for element in fields if element != SELF), key=_order)
    for element in elements:
        if is_member(fields[element]):
            yield (*prefix, element)
    for element in elements:
        if fields[element]:
            yield from _members(fields[element], (*prefix, element))


def leaves(fields: FieldSet) -> FieldSet:
    """The members with no other member below them."""
    result: FieldSet = {}
    for element, below in fields.items():
        if element != SELF:
            result[element] = leaves(_children(below))
    return result


def serialise(fields: FieldSet) -> FieldSet:
    """The FieldsV1 object with elements in Kubernetes' order: ``"."``, fields, keys, values, indices."""
    if not fields:
        return {}
    elements = sorted(fields)
    if elements[0][0] not in ".f" or elements[-1][0] != "f":
        elements.sort(key=_order)
    return {element: serialise(below) if (below := fields[element]) else {} for element in elements}


@remember(8192)
def _order(element: str) -> tuple[int, Any]:
    if element == SELF:
        return (-1, ())
    kind, text = element[0], element[2:]
    if kind == "f":
        return (0, text)
    value = msgspec.json.decode(text)
    if kind == "k":
        return (1, tuple((name, _rank(item)) for name, item in value.items()))
    return (_KINDS[kind], _rank(value))


def _rank(value: Any) -> tuple[int, Any]:
    """Numbers before texts before booleans, as structured-merge-diff compares values."""
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, (int, float)):
        return (0, value)
    return (1, value) if isinstance(value, str) else (3, _canonical(value))


def parse(fields_v1: Any) -> FieldSet:
    """Read a FieldsV1 object from a request: the very object if it is canonical. Raises ValueError that names what is
    wrong."""
    return _parse(fields_v1, 0)


def _parse(node: Any, depth: int) -> FieldSet:
    if depth > MAX_DEPTH:
        raise ValueError(f"fieldsV1 is nested deeper than {MAX_DEPTH} levels")
    if not isinstance(node, dict):
        raise ValueError(f"fieldsV1 holds {type(node).__name__} where an object is expected")
    result: FieldSet = {}
    canonical = True
    for element, below in node.items():
        child = below if below == {} else _parse(below, depth + 1)
        if len(child) == 1 and SELF in child:
            child = {}
        name = element if element.startswith("f:") else _element(element)
        canonical = canonical and name == element and child is below
        result[name] = child
    return node if canonical else result


@remember(8192)
def _element(text: str) -> str:
    """The canonical form of a path element; raises ValueError for anything else."""
    if text == SELF or text.startswith("f:"):
        return text
    kind, rest = text[:1], text[2:]
    if text[1:2] != ":" or kind not in _KINDS:
        raise ValueError(f"missing colon or unknown type in path element {text!r}; write f:, k:, v: or i:")
    try:
        value = msgspec.json.decode(rest)
    except msgspec.DecodeError as error:
        raise ValueError(f"path element {text!r} does not hold JSON: {error}") from error
    if kind == "k":
        if not isinstance(value, dict):
            raise ValueError(f"path element {text!r} must hold an object of key fields")
        return keyed(value)
    if kind == "i":
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"path element {text!r} must hold an integer")
        return f"i:{value}"
    return valued(value)


def path_text(path: Path) -> str:
    """As messages print a path: ``.spec.ports[port=80,protocol="TCP"].name``."""
    return "".join(_element_text(element) for element in path)


def _element_text(element: str) -> str:
    kind, text = element[0], element[2:]
    if kind == "f":
        return "." + text
    if kind == "k":
        keys = msgspec.json.decode(text)
        return "[" + ",".join(f"{name}={_canonical(value)}" for name, value in keys.items()) + "]"
    return f"[={text}]" if kind == "v" else f"[{text}]"
