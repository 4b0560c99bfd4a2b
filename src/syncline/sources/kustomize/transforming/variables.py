"""``vars``: ``$(NAME)`` in commands, arguments and other fields becomes the value of a field elsewhere.

Called at the end of every kustomization (:func:`bind`) and of the build (:func:`resolve_vars`). Source and texts:
kustomize ``api/filters/refvar`` and ``ResAccumulator``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from syncline.kube.yaml.resolve import go_shortest
from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.resources.resmap import ResMap
from syncline.sources.kustomize.resources.resource import Gvk, ResId, split_version
from syncline.sources.kustomize.transforming.fieldspec import FieldSpec, apply_spec
from syncline.sources.kustomize.transforming.paths import find, split_steps
from syncline.sources.kustomize.yaml.node import BOOL, FLOAT, INT, STR, Kind, Node, Style, is_missing

Value: TypeAlias = str | int | float | bool
_INDEX = re.compile(r"(.*)\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    target: ResId
    path: str

    @classmethod
    def of(cls, raw: dict[str, object]) -> Variable:
        reference = raw.get("objref")
        given: dict[str, str] = reference if isinstance(reference, dict) else {}
        group, version = given.get("group", ""), given.get("version", "")
        if given.get("apiVersion"):
            found_group, version = split_version(given["apiVersion"])
            group = found_group or group
        source = raw.get("fieldref")
        path = (source.get("fieldPath") if isinstance(source, dict) else "") or "metadata.name"
        gvk = Gvk(group, version, given.get("kind", ""))
        return cls(str(raw.get("name") or ""), ResId(gvk, given.get("name", ""), given.get("namespace", "")), path)

    def __str__(self) -> str:
        return f"{{{self.name} {self.target.gvk} {{{self.path}}}}}"


def add_variables(known: dict[str, Variable], more: Iterable[Variable]) -> None:
    for variable in more:
        if variable.name in known:
            raise BuildError(f"var '{variable.name}' already encountered")
        known[variable.name] = variable


def bind(resources: ResMap, variables: Iterable[Variable]) -> None:
    """Note at each target that it gives a value, while its present name is known."""
    for variable in variables:
        wanted = variable.target

        def is_target(found: ResId, wanted: ResId = wanted) -> bool:
            same = found.name == wanted.name and found.gvk == wanted.gvk
            return same and (not wanted.namespace or found.effective_namespace == wanted.effective_namespace)

        found = resources.by_any_id(is_target)
        if len(found) > 1:
            raise BuildError(f"found {len(found)} resId matches for var {variable} (unable to disambiguate)")
        if found:
            found[0].ref_vars.append(variable.name)


def resolve_vars(resources: ResMap, variables: dict[str, Variable], specs: Iterable[FieldSpec]) -> list[str]:
    """Put all values in; returns the names of unused variables. Raises :class:`BuildError`."""
    values = {name: _value_of(resources, variables[name]) for name in sorted(variables)}
    if not values:
        return []
    used: set[str] = set()

    def replaced(name: str) -> Value:
        value = values.get(name)
        if value is None:
            return f"$({name})"
        used.add(name)
        return value

    for resource in resources:
        for spec in specs:
            apply_spec(resource, spec, lambda node: _change(node, replaced))
    return [name for name in values if name not in used]


def _value_of(resources: ResMap, variable: Variable) -> Value | None:
    for resource in resources:
        if variable.name in resource.ref_vars:
            try:
                found = find(resource.node, _with_indices(split_steps(variable.path)))
            except BuildError:
                found = None
            if found is None:
                raise BuildError(f"field specified in var '{variable}' not found in corresponding resource")
            return _plain(found)
    raise BuildError(f"var '{variable}' cannot be mapped to a field in the set of known resources")


def _with_indices(steps: list[str]) -> list[str]:
    """``ports[0]`` is two steps."""
    made: list[str] = []
    for step in steps:
        match = _INDEX.fullmatch(step)
        made += [part for part in match.groups() if part] if match else [step]
    return made


def _plain(node: Node) -> Value | None:
    """The value of a scalar; None for lists and mappings, which cannot be put into text."""
    if node.kind is not Kind.SCALAR:
        return None
    try:
        if node.tag == INT:
            return int(node.value)
        if node.tag == FLOAT:
            return float(node.value)
    except ValueError:
        raise BuildError(f"the value {node.value} is not a decimal number") from None
    return node.value.lower() == "true" if node.tag == BOOL else node.value


def _change(node: Node, replaced: Callable[[str], Value]) -> None:
    if is_missing(node):
        return
    if node.kind is Kind.SCALAR:
        _change_text(node, replaced)
    elif node.kind is Kind.MAP:
        for key, value in node.pairs():
            if not _is_text(key):
                raise BuildError(f"invalid map key: value='{key.value}', tag='{key.tag}'")
            _change_text(value, replaced)
    else:
        for item in node.items:
            if not _is_text(item):
                raise BuildError("invalid value type expect a string")
            _change_text(item, replaced)


def _is_text(node: Node) -> bool:
    return node.kind is Kind.SCALAR and node.tag in (STR, "")


def _change_text(node: Node, replaced: Callable[[str], Value]) -> None:
    if not _is_text(node):
        return
    value = _expanded(node.value, replaced)
    node.value, node.tag = _printed(value)
    node.style = Style.PLAIN


def _printed(value: Value) -> tuple[str, str]:
    if isinstance(value, bool):
        return ("true" if value else "false"), BOOL
    if isinstance(value, int):
        return str(value), INT
    if isinstance(value, float):
        return go_shortest(value), FLOAT
    return value, STR


def _expanded(text: str, replaced: Callable[[str], Value]) -> Value:
    """``$(NAME)`` by its value, ``$$`` by one dollar; a text that is one variable takes over the value's type."""
    made: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "$" or at + 1 == len(text):
            made.append(text[at])
            at += 1
            continue
        following = text[at + 1]
        end = text.find(")", at + 2) if following == "(" else -1
        if end >= 0:
            value = replaced(text[at + 2 : end])
            if at == 0 and end == len(text) - 1:
                return value
            made.append(_printed(value)[0])
            at = end + 1
        elif following == "$":
            made.append("$")
            at += 2
        else:
            made.append(text[at : at + 2])
            at += 2
    return "".join(made)
