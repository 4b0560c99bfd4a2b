"""Paths of replacements and vars: ``spec.template.spec.containers.[name=web].image``.

Called by ``replace`` and ``variables``. :func:`split_steps` reads a path, :func:`find` follows it to one node,
:func:`match` to all that fit and makes what is missing where asked. Source: kyaml ``PathGetter`` and ``PathMatcher``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.transforming.fieldspec import split_path
from syncline.sources.kustomize.transforming.patterns import searches
from syncline.sources.kustomize.yaml.node import STR, Kind, Node, Style, field, get, is_missing, put, require, scalar
from syncline.sources.kustomize.yaml.reader import parse_one
from syncline.sources.kustomize.yaml.scalars import resolve

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")


def split_steps(path: str) -> list[str]:
    """The steps between dots; what stands in brackets is one step, ``[a.b]`` a name with a dot."""
    parts = list(split_path(path, "."))
    steps: list[str] = []
    while parts:
        part = parts.pop(0)
        if not part.startswith("[") or part.endswith("]"):
            steps.append(part)
            continue
        while parts and not part.endswith("]"):
            part = f"{part}.{parts.pop(0)}"
        steps.append(part if "=" in part else part.strip("[]"))
    return steps


def find(node: Node | None, steps: Sequence[str]) -> Node | None:
    """The one node at the end of ``steps``, None if a step finds nothing; raises :class:`BuildError` for odd steps."""
    for step in (each.strip() for each in steps):
        if step and node is not None:
            node = _step(node, step)
    return node


def _step(node: Node, step: str) -> Node | None:
    if _INTEGER.fullmatch(step):
        index = int(step)
        if index < 0:
            raise BuildError(f"array index {index} cannot be negative")
        items = _elements(node)
        return items[index] if index < len(items) else None
    if step == "-":
        items = _elements(node)
        return items[-1] if items else None
    if step == "*":
        raise BuildError("wildcard is not supported in PathGetter")
    if _is_list_step(step):
        name, value = _name_and_value(step)
        if not name:
            return next((item for item in _elements(node) if item.value == value), None)
        return next((item for item in _elements(node) if _has(item, name, value)), None)
    return get(node, step)


def _has(item: Node, name: str, value: str) -> bool:
    found = field(item, name)
    return found is not None and found.value == value


def match(node: Node, steps: Sequence[str], create: Kind) -> list[Node] | None:
    """All nodes that ``steps`` fit; where ``create`` is not NONE, missing fields and elements are made.

    Raises :class:`BuildError` where the tree has another form than the path.
    """
    if not steps:
        return [node]
    step = steps[0]
    if step.isdecimal() and len(step) < 10:
        return _match_index(node, int(step), steps, create)
    if _is_list_step(step):
        return _match_elements(node, steps, create)
    if step == "*":
        return _collect(_elements(node), steps[1:], create)
    return _match_field(node, steps, create)


def _match_field(node: Node, steps: Sequence[str], create: Kind) -> list[Node] | None:
    found = get(node, steps[0])
    if found is None:
        if create is Kind.NONE:
            return None
        found = put(node, steps[0], Node(_kind_of_next(steps, create)))
    if found.kind is Kind.SCALAR and len(steps) > 1:
        # A path into text that holds YAML or JSON: what is found there belongs to no object.
        inside = parse_one(found.value)
        return None if inside is None else match(inside, steps[1:], create)
    return match(found, steps[1:], create)


def _match_index(node: Node, index: int, steps: Sequence[str], create: Kind) -> list[Node] | None:
    items = _elements(node)
    if len(items) == index and create is not Kind.NONE:
        items.append(Node(_kind_of_next(steps, create)))
    if len(items) <= index:
        raise BuildError(f"index {index} specified but only {len(items)} elements found")
    return match(items[index], steps[1:], create)


def _match_elements(node: Node, steps: Sequence[str], create: Kind) -> list[Node] | None:
    name, pattern = _name_and_value(steps[0])
    found = _fitting(node, name, pattern, steps, create)
    if found or create is Kind.NONE:
        return found
    element = scalar(pattern)
    if name:
        element = Node(Kind.MAP)
        element.keys, element.items = [scalar(name)], [scalar(pattern)]
    require(node, Kind.SEQ)
    node.items.append(element)
    return _fitting(node, name, pattern, steps, create)


def _fitting(node: Node, name: str, pattern: str, steps: Sequence[str], create: Kind) -> list[Node] | None:
    if not name:
        return [item for item in _elements(node) if searches(pattern, _shown(item))] or None
    chosen = []
    for item in _elements(node):
        value = field(item, name)
        if value is not None and searches(pattern, _shown(value)):
            chosen.append(item)
    return _collect(chosen, steps[1:], create)


def _collect(items: Sequence[Node], steps: Sequence[str], create: Kind) -> list[Node] | None:
    found = [node for item in items for node in match(item, steps, create) or ()]
    return found or None


def _elements(node: Node) -> list[Node]:
    if is_missing(node):
        return []
    require(node, Kind.SEQ)
    return node.items


def _is_list_step(step: str) -> bool:
    return step.startswith("[") and step.endswith("]")


def _name_and_value(step: str) -> tuple[str, str]:
    name, separator, value = step[1:-1].partition("=")
    if not separator:
        raise BuildError("list path element must contain fieldName=fieldValue for element to match")
    return name, value


def _kind_of_next(steps: Sequence[str], create: Kind) -> Kind:
    if len(steps) == 1 or not steps[1]:
        return create
    following = steps[1]
    return Kind.SEQ if _is_list_step(following) or following.isdecimal() else Kind.MAP


def _shown(node: Node) -> str:
    """A scalar as it would be printed, quotes included: what patterns are held against."""
    if node.style is Style.SINGLE:
        return f"'{node.value}'"
    forced = node.tag == STR and resolve(node.value)[0] != STR
    if node.style is Style.DOUBLE or (node.style is Style.PLAIN and forced):
        return f'"{node.value}"'
    return node.value.strip()
