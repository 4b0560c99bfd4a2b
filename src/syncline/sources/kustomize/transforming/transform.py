"""The small transformers: names, namespaces, labels, annotations, images, replicas, hashes, added values.

Called by ``plugins``; each function makes a change of a :class:`ResMap` out of settings and field specs. Resources
are changed in place. Source: kustomize ``api/filters`` and ``api/internal/builtins``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from syncline.sources.kustomize.failure import BuildError, about
from syncline.sources.kustomize.resources.hashing import content_hash
from syncline.sources.kustomize.resources.resmap import ResMap, Selector
from syncline.sources.kustomize.resources.resource import Gvk, Resource
from syncline.sources.kustomize.transforming.fieldspec import FieldSpec, Setter, apply_spec, apply_specs, split_path
from syncline.sources.kustomize.transforming.patterns import searches
from syncline.sources.kustomize.yaml.node import (
    INT,
    MAP,
    STR,
    Kind,
    Node,
    get,
    is_empty,
    is_missing,
    lookup,
    lookup_create,
    put,
    require,
    scalar,
    set_value,
)

Transform = Callable[[ResMap], None]
Specs = Sequence[FieldSpec]


def set_labels(values: Mapping[str, str], specs: Specs) -> Transform:
    return lambda resources: _set_texts(resources, values, specs)


def set_annotations(values: Mapping[str, str], specs: Specs) -> Transform:
    return lambda resources: _set_texts(resources, values, specs)


def _set_texts(resources: ResMap, values: Mapping[str, str], specs: Specs) -> None:
    for resource in resources:
        for key in sorted(values):
            apply_specs(resource, specs, _entry(key, values[key]), Kind.MAP, MAP)


def _entry(key: str, value: str) -> Setter:
    """Sets one entry. All places share the node, as upstream's do: what changes one later changes all."""
    shared = scalar(value, STR)

    def put_entry(node: Node) -> None:
        put(node, key, shared)

    return put_entry


_NEVER_RENAMED = (
    Gvk(kind="CustomResourceDefinition"),
    Gvk(group="apiregistration.k8s.io", kind="APIService"),
    Gvk(kind="Namespace"),
)


def set_prefix(prefix: str, specs: Specs) -> Transform:
    return lambda resources: _rename(resources, specs, prefix, "")


def set_suffix(suffix: str, specs: Specs) -> Transform:
    return lambda resources: _rename(resources, specs, "", suffix)


def _rename(resources: ResMap, specs: Specs, prefix: str, suffix: str) -> None:
    def change(node: Node) -> None:
        set_value(node, scalar(f"{prefix}{node.value}{suffix}"))

    for resource in resources:
        gvk = resource.original_id.gvk
        if any(gvk.is_selected(each) for each in _NEVER_RENAMED):
            continue
        for spec in specs:
            if not gvk.is_selected(spec.gvk):
                continue
            if spec.path == "metadata/name" and (prefix or suffix):
                resource.notes.prefixes += (prefix,) if prefix else ()
                resource.notes.suffixes += (suffix,) if suffix else ()
                resource.remember_id()
            apply_spec(resource, spec, change, Kind.SCALAR, STR)


SUBJECT_MODES = ("defaultOnly", "none", "allServiceAccounts")
_NAMESPACE_SPEC = FieldSpec("metadata/namespace", create=True)


def set_namespace(namespace: str, specs: Specs, *, unset_only: bool = False, subjects: str = "") -> Transform:
    """``subjects`` says which service accounts of role bindings move; empty is ``defaultOnly``."""
    if subjects and subjects not in SUBJECT_MODES:
        raise BuildError(
            f'invalid value "{subjects}" for setRoleBindingSubjects: must be one of "defaultOnly", "none" or '
            '"allServiceAccounts"'
        )
    return lambda resources: _move(resources, namespace, specs, unset_only, subjects or "defaultOnly")


def _move(resources: ResMap, namespace: str, specs: Specs, unset_only: bool, subjects: str) -> None:
    if not namespace:
        return
    places = Counter(resource.id.key for resource in resources if not is_empty(resource.node))
    for resource in resources:
        if is_empty(resource.node) or resource.notes.helm_generated:
            continue  # a chart was rendered for its namespace
        before = resource.id.key
        resource.remember_id()
        move_one(resource, namespace, specs, unset_only, subjects)
        after = resource.id.key
        places[before] -= 1
        places[after] += 1
        if places[after] != 1:
            raise BuildError(f"namespace transformation produces ID conflict: {resource.id}")


def move_one(resource: Resource, namespace: str, specs: Specs, unset_only: bool, subjects: str) -> None:
    """Give one object a namespace, with the fields that name it."""
    shared = scalar(namespace, STR)

    def change(node: Node) -> None:
        require(node, Kind.SCALAR)
        if not (unset_only and not is_missing(node) and node.value):
            set_value(node, shared.copy())

    if not resource.id.cluster:
        apply_spec(resource, _NAMESPACE_SPEC, change, Kind.SCALAR)
    is_binding = resource.kind in ("RoleBinding", "ClusterRoleBinding")
    if is_binding:
        _move_subjects(resource, change, subjects)
    for spec in specs:
        if spec.path == "metadata/namespace" or (spec.path == "metadata/name" and resource.api_version != "v1"):
            continue
        if is_binding and spec.path == "subjects/namespace" and spec.gvk.kind in ("RoleBinding", "ClusterRoleBinding"):
            continue
        with about("namespace transformation failed"):
            apply_spec(resource, spec, change, Kind.SCALAR, STR)


def _move_subjects(resource: Resource, change: Setter, mode: str) -> None:
    found = lookup(resource.node, ["subjects"])
    if mode == "none" or found is None or is_missing(found):
        return
    require(found, Kind.SEQ)
    name, wanted = ("name", "default") if mode == "defaultOnly" else ("kind", "ServiceAccount")
    for subject in found.items:
        value = get(subject, name)
        if value is not None and value.tag != "!!null" and value.value == wanted:
            change(lookup_create(subject, ["namespace"], Kind.SCALAR))


_IMAGE_TAIL = r"(:[a-zA-Z0-9_.{}-]*)?(@sha256:[a-zA-Z0-9_.{}-]*)?$"
_CONTAINER_LISTS = ("containers", "initContainers")


def set_image(image: Mapping[str, str], specs: Specs) -> Transform:
    """An entry of ``images``: in every list of containers, and where ``specs`` say."""

    def change(node: Node) -> None:
        require(node, Kind.SCALAR)
        if searches(f"^{image.get('name', '')}{_IMAGE_TAIL}", node.value):
            set_value(node, scalar(_new_image(node.value, image)))

    def transform(resources: ResMap) -> None:
        for resource in resources:
            if resource.kind != "CustomResourceDefinition":
                _containers(resource.node, change)
        for resource in resources:
            if resource.kind != "CustomResourceDefinition":
                apply_specs(resource, specs, change)

    return transform


def _containers(node: Node, change: Setter) -> None:
    if node.kind is Kind.SEQ:
        for item in node.items:
            _containers(item, change)
        return
    if node.kind is not Kind.MAP:
        return
    for key, value in node.pairs():
        _containers(value, change)
        if key.value in _CONTAINER_LISTS and value.kind is Kind.SEQ:
            for item in value.items:
                found = get(item, "image")
                if found is not None:
                    change(found)


def _new_image(text: str, image: Mapping[str, str]) -> str:
    name, tag, digest = split_image(text)
    name = image.get("newName") or name
    new_tag, new_digest = image.get("newTag") or "", image.get("digest") or ""
    if new_tag or new_digest:
        tag, digest = new_tag, new_digest
    elif image.get("tagSuffix"):
        tag, digest = tag + image["tagSuffix"], ""
    return name + (f":{tag}" if tag else "") + (f"@{digest}" if digest else "")


def split_image(text: str) -> tuple[str, str, str]:
    """Name, tag and digest; a colon before the first slash belongs to the registry."""
    start = max(text.find("/"), 0)
    at, colon = text.find("@", start), text.find(":", start)
    if at >= 0 and (at < colon or colon < 0):
        return text[:at], "", text[at + 1 :]
    if colon < 0:
        return text, "", ""
    if at >= 0:
        return text[:colon], text[colon + 1 : at], text[at + 1 :]
    return text[:colon], text[colon + 1 :], ""


def set_replicas(name: str, count: int, specs: Specs) -> Transform:
    """An entry of ``replicas``; raises :class:`BuildError` where nothing of that name can be scaled."""

    def change(node: Node) -> None:
        set_value(node, scalar(str(count), INT))

    def transform(resources: ResMap) -> None:
        found = False
        for spec in specs:
            chosen = resources.by_any_id(
                lambda here, spec=spec: here.name == name and here.gvk.is_selected(spec.gvk)  # type: ignore[misc]
            )
            found = found or bool(chosen)
            for resource in chosen:
                apply_spec(resource, spec, change, Kind.SCALAR, INT)
        if not found:
            kinds = " ".join(str(spec.gvk) for spec in specs)
            raise BuildError(f"resource with name {name} does not match a config with the following GVK [{kinds}]")

    return transform


def add_hashes(resources: ResMap) -> None:
    """Put the hash of its content behind the name of each generated object that wants it."""
    for resource in resources:
        if resource.notes.needs_hash:
            made = content_hash(resource)
            resource.remember_id()
            resource.set_name(f"{resource.name}-{made}")


def add_values(value: str, targets: Sequence[dict[str, Any]]) -> Transform:
    """``ValueAddTransformer``: put ``value`` at a path, or into one part of a path that stands there."""
    if not targets:
        raise BuildError("must specify at least one target")
    for target in targets:
        if not target.get("fieldPath"):
            raise BuildError("fieldPath cannot be empty")
        if target.get("filePathPosition", 0) < 0:
            raise BuildError(f"value of FilePathPosition ({target['filePathPosition']}) cannot be negative")

    def transform(resources: ResMap) -> None:
        for target in targets:
            selector = target.get("selector")
            chosen = list(resources) if selector is None else resources.select(Selector(selector))
            for resource in chosen:
                if target["fieldPath"] == "metadata/namespace":
                    move_one(resource, value, (), False, "defaultOnly")
                else:
                    _add_value(resource.node, target["fieldPath"], value, target.get("filePathPosition", 0))

    return transform


def _add_value(node: Node, path: str, value: str, position: int) -> None:
    found = lookup_create(node, [step.strip() for step in split_path(path) if step.strip()], Kind.SCALAR)
    require(found, Kind.SCALAR)
    set_value(found, scalar(_with_part(found.value, position - 1, value) if position > 0 else value))


def _with_part(path: str, position: int, part: str) -> str:
    """``path`` with ``part`` put in before its part number ``position``."""
    if not part or position < 0:
        return path
    rooted = path.startswith("/")
    parts = [each for each in re.split("/+", path) if each]
    parts.insert(min(position, len(parts)), part)
    return ("/" if rooted else "") + "/".join(parts)
