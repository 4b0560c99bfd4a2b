"""``replacements``: values are taken from one place and put into others.

Called by ``plugins`` with the settings of all entries. Resources are changed in place. Source and texts: kustomize
``api/filters/replacement``.
"""

from __future__ import annotations

import json
from typing import Any

from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.resources.resmap import ResMap, Selector
from syncline.sources.kustomize.resources.resource import Gvk, ResId, Resource
from syncline.sources.kustomize.transforming.paths import find, match, split_steps
from syncline.sources.kustomize.yaml.node import Kind, Node, is_empty, scalar
from syncline.sources.kustomize.yaml.nodetext import node_text
from syncline.sources.kustomize.yaml.reader import parse_one
from syncline.sources.kustomize.yaml.values import to_json
from syncline.sources.kustomize.yaml.writer import json_text

_DEFAULT_PATH = "metadata.name"


def apply_replacements(resources: ResMap, replacements: list[dict[str, Any]]) -> None:
    """Apply all entries in order; raises :class:`BuildError`."""
    for entry in replacements:
        given = entry.get("source") is not None or entry.get("sourceValue") is not None
        if not given or entry.get("targets") is None:
            raise BuildError("replacements must specify a source and at least one target")
        value = _source_value(resources, entry)
        for target in entry["targets"]:
            _apply(resources, value, target)


def _source_value(resources: ResMap, entry: dict[str, Any]) -> Node:
    source = entry.get("source")
    if entry.get("sourceValue") is not None:
        if source is not None:
            raise BuildError("value and resource selectors are mutually exclusive")
        return scalar(entry["sourceValue"])
    if source is None:
        raise BuildError("replacements must specify a source and at least one target")
    wanted = _id(source)
    holder = _one(resources, wanted, source)
    path = source.get("fieldPath") or _DEFAULT_PATH
    try:
        found = find(holder.node, split_steps(path))
    except BuildError as error:
        raise BuildError(f"error looking up replacement source: {error.message}") from None
    if found is None or is_empty(found):
        raise BuildError(f"fieldPath `{path}` is missing for replacement source {wanted}")
    return _part_of(found, source.get("options") or {})


def _id(raw: dict[str, Any]) -> ResId:
    gvk = Gvk(raw.get("group") or "", raw.get("version") or "", raw.get("kind") or "")
    return ResId(gvk, raw.get("name") or "", raw.get("namespace") or "")


def _ids(resource: Resource) -> list[ResId]:
    here = resource.id
    return [ResId(here.gvk, here.name, here.namespace), *resource.former_ids]


def _one(resources: ResMap, wanted: ResId, source: dict[str, Any]) -> Resource:
    found = [each for each in resources if any(one.is_selected_by(wanted) for one in _ids(each))]
    shown = str(wanted) + (f":{source['fieldPath']}" if source.get("fieldPath") else "")
    if len(found) > 1:
        raise BuildError(f"multiple matches for selector {shown}")
    if not found:
        raise BuildError(f"nothing selected by {shown}")
    return found[0]


def _part_of(found: Node, options: dict[str, Any]) -> Node:
    delimiter, index = options.get("delimiter") or "", options.get("index") or 0
    if not delimiter:
        return found
    if found.kind is not Kind.SCALAR:
        raise BuildError("delimiter option can only be used with scalar nodes")
    parts = found.value.split(delimiter)
    if not 0 <= index < len(parts):
        # The value may be a Secret's, so it is not shown.
        raise BuildError(f"options.index {index} is out of bounds for value of {len(parts)} parts")
    part = found.copy()
    part.value = parts[index]
    return part


def _apply(resources: ResMap, value: Node, target: dict[str, Any]) -> None:
    if target.get("select") is None:
        raise BuildError("target must specify resources to select")
    select = Selector(target["select"])
    rejects = [Selector(raw) for raw in target.get("reject") or ()]
    paths = target.get("fieldPaths") or [_DEFAULT_PATH]
    for resource in resources:
        if _is_target(resource, select, rejects):
            for path in paths:
                _put(resource.node, value, path, target.get("options") or {})


def _is_target(resource: Resource, select: Selector, rejects: list[Selector]) -> bool:
    if not select.metadata(resource):
        return False
    ids = _ids(resource)
    for reject in rejects:
        by_metadata = reject.raw.get("labelSelector") or reject.raw.get("annotationSelector")
        if by_metadata and reject.metadata(resource):
            return False
        by_id = any(reject.raw.get(part) for part in ("group", "version", "kind", "name", "namespace"))
        if by_id and any(reject.id(one) for one in ids):
            return False
    return any(select.id(one) for one in ids)


def _put(node: Node, value: Node, path: str, options: dict[str, Any]) -> None:
    create = value.kind if options.get("create") else Kind.NONE
    steps = split_steps(path)
    if _put_inside_text(node, value, steps, create):
        return
    words = "find or create" if options.get("create") else "find"
    missing = f'unable to {words} field "{path}" in replacement target'
    try:
        found = match(node, steps, create)
    except BuildError as error:
        raise BuildError(f"{missing}: {error.message}") from None
    if not found:
        raise BuildError(missing)
    for each in found:
        _set(each, value.copy(), options)


def _set(target: Node, value: Node, options: dict[str, Any]) -> None:
    delimiter = options.get("delimiter") or ""
    if delimiter:
        if target.kind is not Kind.SCALAR:
            raise BuildError("delimiter option can only be used with scalar nodes")
        parts, index = target.value.split(delimiter), options.get("index") or 0
        if index < 0:
            parts.insert(0, value.value)
        elif index >= len(parts):
            parts.append(value.value)
        else:
            parts[index] = value.value
        value.value = delimiter.join(parts)
    if target.kind is Kind.SCALAR:
        target.value = value.value
    else:
        target.become(value)


def _put_inside_text(node: Node, value: Node, steps: list[str], create: Kind) -> bool:
    """Change a field of YAML or JSON that is the text of a field; False where the path has no such place."""
    for count in range(1, len(steps)):
        try:
            holder = find(node, steps[:count])
        except BuildError:
            continue
        if holder is None or holder.kind is not Kind.SCALAR:
            continue
        try:
            inside = parse_one(holder.value)
            found = match(inside, steps[count:], create) if inside is not None else None
        except BuildError:
            return False
        if not found or inside is None:
            return False
        for each in found:
            if each.kind is Kind.SCALAR:
                each.value = value.value
            else:
                each.become(value.copy())
        holder.value = _printed(inside, holder.value)
        return True
    return False


def _printed(inside: Node, before: str) -> str:
    """Compact or indented JSON as it was, else YAML."""
    if before.strip()[:1] not in ("{", "["):
        return node_text(inside).strip()
    value = to_json(inside)
    if "\n" in before and "  " in before:
        made = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False)
        return made.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return json_text(value)
