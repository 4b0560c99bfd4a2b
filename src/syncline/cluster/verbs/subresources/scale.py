"""scale: the replica count of an object, read and written as ``autoscaling/v1`` Scale.

``api`` calls it for get, update and patch. Built-in kinds have the count in ``spec.replicas``; a custom resource's
definition names the path.
"""

from __future__ import annotations

from typing import Any

from syncline.cluster.serving.answers import fresh_answer
from syncline.cluster.storage.store import Stored
from syncline.cluster.verbs import admitting
from syncline.cluster.verbs.body import own_copy, read_typed, unconvertible
from syncline.cluster.verbs.exchange import Exchange
from syncline.cluster.verbs.options import WriteOptions, write_options
from syncline.cluster.verbs.patching import check_applied_kind, patch_type, patched_value, read_patch, unpatchable
from syncline.cluster.verbs.read import check_revision
from syncline.cluster.verbs.scaleowners import parent_entries, scale_entries
from syncline.cluster.verbs.write import change, check_address, editable
from syncline.kube.client import PatchType, Response
from syncline.kube.errors import BadRequest, FieldCause, InternalError, invalid
from syncline.kube.objects import GVK, Obj, dig, gvk_of, meta
from syncline.kube.patching import managedfields
from syncline.kube.patching.fields import decode_errors
from syncline.kube.schema.model import schema_for
from syncline.kube.selectors import SelectorError, label_selector_from, selector_from_labels

_BUILTIN = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def _paths(x: Exchange) -> Obj:
    return x.resource.custom.scale if x.resource.custom and x.resource.custom.scale else _BUILTIN


def _steps(path: Any) -> tuple[str, ...]:
    return tuple(str(path).strip(".").split("."))


def _scale_of(x: Exchange, obj: Obj) -> Obj:
    paths, metadata = _paths(x), meta(obj)
    named = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = dig(obj, *_steps(paths["specReplicasPath"]))
    scale: Obj = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in named if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": {"replicas": dig(obj, *_steps(paths["statusReplicasPath"]), default=0)},
    }
    selector = _selector(x, obj)
    if selector:
        scale["status"]["selector"] = selector
    return scale


def _selector(x: Exchange, obj: Obj) -> str:
    custom = x.resource.custom
    if custom is not None:
        path = (custom.scale or {}).get("labelSelectorPath")
        return str(dig(obj, *_steps(path), default="")) if path else ""
    selector = dig(obj, "spec", "selector", default={})
    try:
        if x.resource.storage == "/replicationcontrollers":
            return str(selector_from_labels(selector))
        return str(label_selector_from(selector))
    except SelectorError:
        return ""


def _is_unset(x: Exchange, obj: Obj) -> bool:
    """Return whether a custom resource has no count yet; it can be written, but not read."""
    return x.resource.custom is not None and dig(obj, *_steps(_paths(x)["specReplicasPath"])) is None


def read(x: Exchange) -> Response:
    check_revision(x)
    current = x.current()
    shown = x.resource.shown(current.obj)
    if _is_unset(x, shown):
        why = f'the spec replicas field "{_paths(x)["specReplicasPath"]}" does not exist'
        raise InternalError(f"Internal error occurred: {why}", details={"causes": [{"message": why}]})
    return fresh_answer(x, 200, _scale_of(x, shown), current.revision)


def update(x: Exchange) -> Response:
    options = write_options(x.request.query, x.request.headers, "UpdateOptions")
    scale = read_typed(x, SCALE, options.validation)
    check_address(x, scale)
    return _write(x, x.current(), scale, options)


SCALE = GVK("autoscaling", "v1", "Scale")


def _check_patched(scale: Any) -> None:
    """Raise Invalid if the result of a patch is not a Scale."""
    if not isinstance(scale, dict):
        raise unpatchable("the patched value is not an object")
    if gvk_of(scale) != SCALE:
        raise unpatchable(unconvertible(SCALE, scale))
    schema = schema_for(SCALE)
    assert schema is not None, "Scale is a built-in kind"
    errors = decode_errors(scale, schema)
    if errors:
        raise unpatchable(errors[0])


def patch(x: Exchange) -> Response:
    kind = patch_type(x)
    options = write_options(x.request.query, x.request.headers, "PatchOptions", apply=kind is PatchType.APPLY)
    current = x.current()
    body = read_patch(x, kind)
    if kind is PatchType.APPLY:
        return _apply(x, current, body, options)
    shown = x.resource.shown(current.obj)
    before = _scale_of(x, shown)
    scale = own_copy(patched_value(kind, before, body, x.resource))
    _check_patched(scale)
    if _is_unset(x, shown) and dig(scale, "spec", "replicas") is None:
        raise BadRequest(f'the spec replicas field "{_paths(x)["specReplicasPath"]}" cannot be empty')
    check_address(x, scale)
    return _write(x, current, scale, options)


def _apply(x: Exchange, current: Stored, body: Any, options: WriteOptions) -> Response:
    """Apply a Scale and transfer the ownership of the count to the object."""
    check_applied_kind(SCALE, body)
    before = _owned_scale(x, current)
    result = managedfields.apply(
        before,
        body,
        options.manager,
        schema=schema_for(SCALE),
        api_version=SCALE.api_version,
        now=x.now,
        force=options.force,
        subresource=x.route.subresource,
    )
    check_address(x, own_copy(body))
    version = meta(body).get("resourceVersion") or ""
    return _store(x, current, result.obj, version, meta(result.obj).get("managedFields"), options)


def _write(x: Exchange, current: Stored, scale: Obj, options: WriteOptions) -> Response:
    spec = scale.get("spec") or {}
    plain = {**scale, "spec": spec if spec.get("replicas") else {}}  # A count of zero is omitted.
    entries = managedfields.track_update(
        _owned_scale(x, current),
        plain,
        options.manager,
        schema=schema_for(SCALE),
        api_version=SCALE.api_version,
        now=x.now,
        subresource=x.route.subresource,
    )
    return _store(x, current, scale, meta(scale).get("resourceVersion") or "", entries, options)


def _owned_scale(x: Exchange, current: Stored) -> Obj:
    """Return the current scale with the owners of its count."""
    obj = x.resource.shown(current.obj)
    entries = scale_entries(meta(obj).get("managedFields"), _steps(_paths(x)["specReplicasPath"]))
    return managedfields.with_managed_fields(_scale_of(x, obj), entries)


def _store(
    x: Exchange, current: Stored, scale: Obj, version: str, entries: list[Obj] | None, options: WriteOptions
) -> Response:
    judged = None
    if admitting.concerned(x):
        scale, judged = _reshaped(x, current, scale, entries, options)
    replicas = dig(scale, "spec", "replicas", default=0)
    _check_replicas(x, replicas)
    obj, path = editable(x, current), _steps(_paths(x)["specReplicasPath"])
    _set(obj, path, replicas)
    obj["metadata"]["resourceVersion"] = version
    owners = parent_entries(obj["metadata"].get("managedFields"), entries, path, x.resource.info.api_version)
    obj["metadata"]["managedFields"] = owners
    written = change(x, current, obj, options, owned=True, judged=judged)
    return fresh_answer(x, 200, _scale_of(x, written.obj), written.revision)


def _reshaped(
    x: Exchange, current: Stored, scale: Obj, entries: list[Obj] | None, options: WriteOptions
) -> tuple[Obj, tuple[Obj, Obj]]:
    """Return the mutated Scale, and the new and old Scale for validating admission."""
    new, old = own_copy(scale), _owned_scale(x, current)
    new["metadata"] = {**old["metadata"], **meta(new)}
    new.setdefault("status", old["status"])
    subject = admitting.subject_of(x, "UPDATE", x.route.name, dry_run=options.dry_run)
    admitting.reshaped(
        *(x, subject, new, old),
        lambda made: managedfields.with_managed_fields(made, entries),
        lambda _made: None,
    )
    return new, (new, old)


def _check_replicas(x: Exchange, replicas: Any) -> None:
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise BadRequest("Scale: spec.replicas must be an integer")
    if replicas < 0 and x.resource.custom is None:  # A custom resource's own validation refuses it.
        what = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("Scale", x.route.name, [FieldCause("FieldValueInvalid", what, "spec.replicas")], "autoscaling")


def _set(obj: Obj, path: tuple[str, ...], value: Any) -> None:
    here = obj
    for step in path[:-1]:
        here = here.setdefault(step, {})
    here[path[-1]] = value
