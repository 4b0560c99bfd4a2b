"""Strategic merge patches as kustomize applies them to nodes.

Called by ``patching``. The target's nodes are changed in place; the patch's nodes may become part of them, so callers
give a copy. Differs from the API server's merge: lists of unknown kinds are replaced, merged lists begin with the
patch's elements, an empty null in the target disappears, and a patched scalar keeps the target's quotes. Source:
kyaml ``yaml/merge2`` and ``yaml/walk``.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.resources.schema import MergeSchema, Shape
from syncline.sources.kustomize.yaml.node import (
    NULL,
    Kind,
    Node,
    Style,
    clear,
    field,
    get,
    is_empty,
    is_missing,
    put,
    require,
    scalar,
    sequence,
    set_value,
)

_DIRECTIVE = "$patch"


class _Directive(StrEnum):
    MERGE = "merge"
    REPLACE = "replace"
    DELETE = "delete"


def merge(patch: Node, target: Node, schema: MergeSchema) -> Node | None:
    """Apply ``patch`` to ``target`` in place; None if the patch deletes it. Raises :class:`BuildError`."""
    return _Merger(schema).walk(target, patch, None)


class _Kept(Node):
    """A null of the target that the patch does not name and that stays."""


class _Merger:
    def __init__(self, schema: MergeSchema) -> None:
        self._schema = schema

    def walk(self, target: Node | None, patch: Node | None, shape: Shape | None) -> Node | None:
        shape = shape or self._shape(target) or self._shape(patch)
        leading = next((node for node in (target, patch) if node is not None and node.tag != NULL), None)
        kind = leading.kind if leading is not None else Kind.NONE
        if kind is not Kind.NONE:
            require(target, kind)
            require(patch, kind)
        if kind is Kind.SCALAR:
            return patch if patch is not None else target
        if kind is Kind.SEQ:
            if shape is None or shape.keys is None:
                return patch if patch is not None else target
            return self._list(target, patch, shape)
        return self._map(target, patch, shape)

    def _shape(self, node: Node | None) -> Shape | None:
        kind, version = field(node, "kind"), field(node, "apiVersion")
        if kind is None or version is None or not kind.value or not version.value:
            return None
        return self._schema.kind(version.value, kind.value)

    def _map(self, target: Node | None, patch: Node | None, shape: Shape | None) -> Node | None:
        result = _choose_map(target, patch)
        if result is None:
            return None
        names = {key.value for key in result.keys} | ({key.value for key in patch.keys} if patch is not None else set())
        for name in sorted(names):
            patched = field(patch, name)
            value = self.walk(field(result, name), patched, shape.field(name) if shape is not None else None)
            style = _key_style(patch, name) if value is patched else Style.PLAIN
            put(result, name, value, key_style=style, keep_null=isinstance(value, _Kept))
        return result

    def _list(self, target: Node | None, patch: Node | None, shape: Shape) -> Node | None:
        result = _choose_list(target, patch)
        if result is None:
            return None
        keys = shape.keys or []
        values = _values_of(patch, keys) + _values_of(result, keys)
        unique = list(dict.fromkeys(value for value in values if value))
        if unique or keys:
            return self._merge_elements(unique, keys, result, patch, shape)
        words = [item.value for source in (patch, result) if source is not None for item in source.items]
        return self._merge_elements([(word,) for word in dict.fromkeys(words)], [""], result, patch, shape)

    def _merge_elements(
        self, values: list[tuple[str, ...]], keys: list[str], target: Node, patch: Node | None, shape: Shape
    ) -> Node | None:
        merged = sequence()
        if len(keys) > 1:
            values = _completed(values)
        used_keys: list[str] = []
        for value in values:
            used_keys, used = _used(values, value, keys)
            own_keys, own = _used([tuple(used)], tuple(used), used_keys)
            pair = [_element(source, own_keys, own) for source in (target, patch)]
            item = self.walk(pair[0], pair[1], shape.elements())
            if item is None or is_missing(item) or (item.kind is Kind.MAP and not item.items):
                _set_element(target, None, used_keys, used)
                continue
            for key, wanted in zip(used_keys, used, strict=False):
                if field(item, key) is None and wanted:
                    _ensure_key(item, key, wanted)
            _set_element(merged, item, used_keys, used)
        result = _append_all(merged, target, used_keys) if values else target
        return None if is_missing(result) else result


def _choose_map(target: Node | None, patch: Node | None) -> Node | None:
    """Return the node to continue with, None to delete it; ``$patch`` is applied and removed."""
    if target is None or target.tag == NULL:
        if patch is not None and patch.kind is Kind.MAP and _map_directive(patch) is _Directive.DELETE:
            return None
        if patch is None and target is not None and target.value:
            return _Kept(Kind.SCALAR, NULL, target.value)
        return patch
    if patch is None:
        return target
    if patch.tag == NULL:
        return None
    directive = _map_directive(patch)
    if directive is _Directive.DELETE:
        return None
    return patch if directive is _Directive.REPLACE else target


def _choose_list(target: Node | None, patch: Node | None) -> Node | None:
    if target is None or target.tag == NULL:
        return patch
    if patch is None:
        return target
    if patch.tag == NULL:
        return None
    directive = _list_directive(patch)
    if directive is _Directive.DELETE:
        return None
    return patch if directive is _Directive.REPLACE else target


def _map_directive(patch: Node) -> _Directive:
    found = field(patch, _DIRECTIVE)
    if found is None:
        return _Directive.MERGE
    directive = _known(found.value)
    clear(patch, _DIRECTIVE)
    return directive


def _list_directive(patch: Node) -> _Directive:
    holder = next((item for item in patch.items if field(item, _DIRECTIVE) is not None), None)
    if holder is None or len(holder.items) > 1:
        return _Directive.MERGE
    value = holder.items[0].value
    directive = _known(value)
    _set_element(patch, None, [_DIRECTIVE], [value])
    return directive


def _known(value: str) -> _Directive:
    try:
        return _Directive(value)
    except ValueError:
        raise BuildError(f"unknown patch strategy '{value}'", fix="use merge, replace or delete") from None


def _key_style(patch: Node | None, name: str) -> Style:
    if patch is not None:
        for key in patch.keys:
            if key.value == name:
                return key.style
    return Style.PLAIN


def _values_of(source: Node | None, keys: Sequence[str]) -> list[tuple[str, ...]]:
    if source is None:
        return []
    return [tuple(_key_value(item, key) for key in keys) for item in source.items]


def _key_value(item: Node, key: str) -> str:
    found = field(item, key)
    return "" if found is None or is_empty(found) else found.value


def _completed(values: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Unify values where one omits what the other has (a port without its protocol)."""
    made = list(values)
    for i in range(len(made)):
        first = made[i]
        for j in range(len(made)):
            joined = _joined(first, made[j])
            if joined is not None:
                made[i] = made[j] = joined
    return made


def _joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...] | None:
    if any(a and b and a != b for a, b in zip(first, second, strict=True)):
        return None
    if not any(a == b for a, b in zip(first, second, strict=True)):
        return None
    return tuple(a or b for a, b in zip(first, second, strict=True))


def _used(
    values: Sequence[tuple[str, ...]], value: tuple[str, ...], keys: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the keys that any element has, and their values in this one; all keys if no element has any."""
    given = {keys[at] for each in values for at, part in enumerate(each) if part}
    if not given:
        return list(keys), list(value)
    chosen = [key for key in keys if key in given]
    return chosen, [part for at, part in enumerate(value) if part or keys[at] in given]


def _element(source: Node | None, keys: Sequence[str], values: Sequence[str]) -> Node | None:
    """Return the first element whose keys have these values; for lists of scalars, the value itself."""
    if source is None or source.kind is not Kind.SEQ:
        return None
    if not keys or not keys[0]:
        wanted = values[0] if values else ""
        return next((item for item in source.items if item.value == wanted), None)
    for item in source.items:
        if item.kind is Kind.MAP and all(_matches(item, key, value) for key, value in zip(keys, values, strict=False)):
            return item
    return None


def _matches(item: Node, key: str, value: str) -> bool:
    found = field(item, key)
    return found is not None and found.value == value


def _ensure_key(item: Node, key: str, value: str) -> None:
    if key:
        put(item, key, scalar(value))
    else:
        set_value(item, scalar(value))


def _set_element(target: Node, element: Node | None, keys: Sequence[str], values: Sequence[str]) -> None:
    """Replace the elements with the same keys by ``element``, or append it; None removes them (ElementSetter)."""
    keys = list(keys) or [""]
    by_key = bool(keys[0]) and bool(values) and bool(values[0])
    kept: list[Node] = []
    matched = False
    for item in target.items:
        if is_missing(item) or (item.kind is Kind.MAP and not item.items):
            continue
        if item.kind is not Kind.MAP and by_key:
            kept.append(item)
        elif not _has_all(item, keys, values):
            if values:
                kept.append(item)
        else:
            matched = True
            if element is not None:
                kept.append(element)
    target.items = kept
    if element is not None and element.tag != NULL and not matched:
        target.items.append(element)


def _has_all(item: Node, keys: Sequence[str], values: Sequence[str]) -> bool:
    found: Node | None = None
    for at, key in enumerate(keys):
        if at < len(values):
            found = _match_field(item, key, values[at])
        if found is None:
            return False
    return True


def _match_field(item: Node, key: str, value: str) -> Node | None:
    if not key:
        require(item, Kind.SCALAR)
        return item if item.value == value else None
    found = get(item, key)
    return found if found is not None and (not value or found.value == value) else None


def _append_all(made: Node, source: Node, keys: Sequence[str]) -> Node:
    """Append the elements of ``source`` to ``made``, replacing those with the same keys."""
    for item in list(source.items):
        if not keys or not keys[0]:
            _set_element(made, item, [""], [item.value])
            continue
        values: list[str] = []
        for key in keys:
            found = get(item, key)
            if found is None:
                made.items.append(item)
            else:
                values.append(found.value)
        if len(keys) > 1:
            _set_element(made, None, keys, values)
        _set_element(made, item, keys, values)
    return made
