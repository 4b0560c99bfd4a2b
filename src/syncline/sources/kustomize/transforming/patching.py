"""``patches``, ``patchesStrategicMerge`` and ``patchesJson6902``: finding the targets and applying the patches.

Called by ``plugins`` with the settings of one entry; the resources of the build are changed in place. Source and
texts: kustomize ``PatchTransformer``, ``PatchStrategicMergeTransformer``, ``PatchJson6902Transformer``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from syncline.kube.errors import ApiError
from syncline.kube.patching.patches import json_patch
from syncline.sources.kustomize.failure import BuildError, quoted
from syncline.sources.kustomize.kustomization import read_yaml
from syncline.sources.kustomize.loader import Folder
from syncline.sources.kustomize.resources.merge import merge
from syncline.sources.kustomize.resources.origins import ORIGIN
from syncline.sources.kustomize.resources.resmap import ResMap, Selector, take_metadata
from syncline.sources.kustomize.resources.resource import BUILD_ANNOTATIONS, Resource
from syncline.sources.kustomize.resources.schema import MergeSchema
from syncline.sources.kustomize.yaml.node import Kind, Node, is_empty
from syncline.sources.kustomize.yaml.reader import read_resources
from syncline.sources.kustomize.yaml.values import from_json, through_float
from syncline.sources.kustomize.yaml.writer import write_one

Transform = Callable[[ResMap], None]
SchemaInUse = Callable[[], MergeSchema]
"""Asked when a patch is applied: a component that comes later may still choose another schema."""


def patch_transformer(settings: dict[str, Any], folder: Folder, schema: SchemaInUse) -> Transform:
    """An entry of ``patches``: strategic merge or JSON patch, distinguished by what can be read."""
    patch, path = (settings.get("patch") or "").strip(), settings.get("path") or ""
    if not patch and not path:
        raise BuildError(f"must specify one of patch and path in\n{quoted(write_one(settings))}")
    if patch and path:
        raise BuildError(f"patch and path can't be set at the same time\n{quoted(write_one(settings))}")
    source = f"[patch: {quoted(json.dumps(patch))}]" if patch else f"[path: {json.dumps(path)}]"
    content = patch
    if path:
        try:
            content = folder.text(path)
        except BuildError as error:
            raise BuildError(f"failed to get the patch file from path({path}): {error.message}") from None
    merges, operations = _tell_apart(content, source)
    target = Selector(settings["target"]) if settings.get("target") is not None else None
    if merges is None:
        return lambda resources: _patch_json(resources, operations, target, source)
    options = settings.get("options") or {}
    for each in merges:
        each.notes.allow_name_change = bool(options.get("allowNameChange"))
        each.notes.allow_kind_change = bool(options.get("allowKindChange"))
        if each.notes.allow_name_change or each.notes.allow_kind_change:
            # Upstream notes it in an annotation, which makes texts of all of them, nulls included.
            each.set_annotations(each.annotations())
    return lambda resources: _patch_merge(resources, merges, target, source, schema)


def _tell_apart(content: str, source: str) -> tuple[list[Resource] | None, Any]:
    merges: list[Resource] | None = None
    operations: list[Any] | None = None
    with suppress(BuildError):
        merges = [Resource(node) for node in read_resources(content)]
    try:
        operations = read_operations(content)
    except BuildError:
        if merges is None:
            raise BuildError(f"unable to parse SM or JSON patch from {source}") from None
    if merges and operations:
        raise BuildError(f"illegally qualifies as both an SM and JSON patch: {source}")
    return merges, operations


def read_operations(content: str) -> list[Any]:
    """A JSON patch in JSON (where it begins with a bracket) or in YAML."""
    if not content:
        raise BuildError("empty json patch operations")
    if content.startswith("["):
        try:
            operations = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise BuildError(f"decoding {quoted(content)}: {error}") from None
    else:
        operations = read_yaml(content.encode())
    if operations is None:
        return []
    if not isinstance(operations, list) or not all(isinstance(step, dict) for step in operations):
        raise BuildError(
            f"decoding {quoted(json.dumps(operations))}: json: cannot unmarshal into Go value of type jsonpatch.Patch"
        )
    return operations


def _patch_merge(
    resources: ResMap, patches: list[Resource], target: Selector | None, source: str, schema: SchemaInUse
) -> None:
    if target is None:
        for patch in patches:
            try:
                found = resources.one(patch.original_id)
            except BuildError as error:
                raise BuildError(
                    f'no resource matches strategic merge patch "{patch.original_id}": {error.message}'
                ) from None
            apply_merge(found, patch.copy(), schema)
        return
    if len(patches) > 1:
        raise BuildError(
            "Multiple Strategic-Merge Patches in one `patches` entry is not allowed to set `patches.target` field: "
            f"{source}"
        )
    if patches:
        merge_into(resources, resources.select(target), patches[0], schema)


def merge_into(resources: ResMap, selected: list[Resource], patch: Resource, schema: SchemaInUse) -> None:
    """Apply ``patch`` to each selected resource, as if it had that one's version; what it deletes goes."""
    for resource in selected:
        twin = patch.copy()
        take_metadata(twin, patch)
        twin.set_gvk(resource.gvk)
        twin.set_kind(patch.kind)
        apply_merge(resource, twin, schema)
    kept = [resource for resource in resources if not is_empty(resource.node)]
    resources.resources = []
    resources.extend(kept)


def apply_merge(resource: Resource, patch: Resource, schema: SchemaInUse) -> None:
    """A strategic merge that keeps kind, name and namespace unless the patch may change them."""
    name, namespace, kind = resource.name, resource.namespace, resource.kind
    if patch.notes.allow_name_change or patch.notes.allow_kind_change:
        resource.remember_id()
    if merge(patch.node, resource.node, schema()) is None:
        resource.node = Node(Kind.NONE)
        return
    if is_empty(resource.node):
        return
    if not patch.notes.allow_kind_change:
        resource.set_kind(kind)
    if not patch.notes.allow_name_change:
        resource.set_name(name)
    resource.set_namespace(namespace)


def _patch_json(resources: ResMap, operations: list[Any], target: Selector | None, source: str) -> None:
    if not operations:
        return
    if target is None:
        raise BuildError(f"must specify a target for JSON patch {source}")
    for resource in resources.select(target):
        resource.remember_id()
        apply_operations(resource, operations)


def apply_operations(resource: Resource, operations: list[Any]) -> None:
    """Apply a JSON patch; numbers pass through 64-bit floats on the way, annotations become text."""
    document = resource.value()
    notes = resource.build_annotations()
    if resource.origin is not None:
        notes[ORIGIN] = "noted"
    if notes:
        metadata = document.setdefault("metadata", {})
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **notes}
    try:
        patched = json_patch(document, operations)
    except ApiError as error:
        raise BuildError(str(error.__cause__ or error)) from None
    if not isinstance(patched, dict):
        raise BuildError("json: cannot unmarshal into Go value of type map[string]interface {}")
    resource.node = from_json(through_float(patched))
    if ORIGIN in notes and ORIGIN not in resource.annotations():
        resource.origin, resource.transformations = None, []
    resource.set_annotations(
        {name: value for name, value in resource.annotations().items() if name not in BUILD_ANNOTATIONS}
    )


def strategic_transformer(settings: dict[str, Any], folder: Folder, schema: SchemaInUse) -> Transform:
    """``patchesStrategicMerge``: each path is a patch itself or the name of a file."""
    paths, inline = settings.get("paths") or [], settings.get("patches") or ""
    if not paths and not inline:
        raise BuildError("empty file path and empty patch content")
    patches: list[Resource] = []
    for path in paths:
        patches += _inline_or_file(path, folder)
    if inline:
        patches += [Resource(node) for node in read_resources(inline)]
    if not patches:
        raise BuildError(f"patch appears to be empty; files={paths}, Patch={inline}")

    def transform(resources: ResMap) -> None:
        for patch in patches:
            merge_into(resources, [resources.one(patch.original_id)], patch, schema)

    return transform


def _inline_or_file(path: str, folder: Folder) -> list[Resource]:
    with suppress(BuildError):
        return [Resource(node) for node in read_resources(path)]
    content = folder.text(path)
    try:
        return [Resource(node) for node in read_resources(content)]
    except BuildError as error:
        raise in_file(error, path) from None


def in_file(error: BuildError, path: str) -> BuildError:
    """An error about YAML syntax names its file."""
    return BuildError(f"{error.message} in File: {path}") if error.malformed else error


def json_patch_transformer(settings: dict[str, Any], folder: Folder) -> Transform:
    """An entry of ``patchesJson6902``."""
    target, path, inline = settings.get("target"), settings.get("path") or "", settings.get("jsonOp") or ""
    if target is None or not target.get("name"):
        raise BuildError("must specify the target name")
    if not path and not inline:
        raise BuildError("empty file path and empty jsonOp")
    if path and inline:
        raise BuildError("must specify a file path or jsonOp, not both")
    if path:
        inline = folder.text(path)
        if not inline:
            raise BuildError(f"patch file '{path}' empty seems to be empty")
    operations = read_operations(inline)
    if not operations:
        raise BuildError(f"patch appears to be empty; file={path}, JsonOp={inline}")
    selector = Selector(target)

    def transform(resources: ResMap) -> None:
        for resource in resources.select(selector):
            apply_operations(resource, operations)

    return transform
