"""scale: the replica count of an object, read and written as ``autoscaling/v1`` Scale.

Called by ``api`` for get, update and patch. Built-in kinds keep it in ``spec.replicas``; a custom resource says where.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from syncline.cluster.answers import fresh_answer
from syncline.cluster.store import Stored
from syncline.cluster.verbs.body import decode, fitted, own_copy
from syncline.cluster.verbs.exchange import Exchange
from syncline.cluster.verbs.options import WriteOptions, write_options
from syncline.cluster.verbs.patching import apply_to, patch_type, patched_value
from syncline.cluster.verbs.write import change, check_address, editable
from syncline.kube.client import PatchType, Response
from syncline.kube.errors import BadRequest, FieldCause, invalid
from syncline.kube.objects import GVK, Obj, dig, meta
from syncline.kube.selectors import SelectorError, label_selector_from, selector_from_labels

__all__ = ["read", "update", "patch"]

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


def read(x: Exchange) -> Response:
    current = x.current()
    return fresh_answer(x, 200, _scale_of(x, x.resource.shown(current.obj)), current.revision)


def update(x: Exchange) -> Response:
    options = write_options(x.request.query, x.request.headers, "UpdateOptions")
    scale = decode(x.request)
    _check_scale_kind(scale)
    check_address(x, scale)
    return _write(x, x.current(), scale, options)


SCALE = GVK("autoscaling", "v1", "Scale")


def _check_scale_kind(scale: Any) -> None:
    if not isinstance(scale, dict):
        raise BadRequest("the body of the request is not an object")
    fitted(scale, SCALE)
    kind = (scale.get("apiVersion", "autoscaling/v1"), scale.get("kind", "Scale"))
    if kind != ("autoscaling/v1", "Scale"):
        raise BadRequest(f"{kind[1]} in version {kind[0]!r} cannot be handled as a Scale")


def patch(x: Exchange) -> Response:
    kind = patch_type(x)
    options = write_options(x.request.query, x.request.headers, "PatchOptions", apply=kind is PatchType.APPLY)
    media = "application/yaml" if kind is PatchType.APPLY else "application/json"
    body = decode(x.request, media=media)
    current = x.current()
    if kind is PatchType.APPLY:
        return _apply(x, current, body, options)
    before = _scale_of(x, x.resource.shown(current.obj))
    scale = own_copy(patched_value(kind, before, body, x.resource))
    _check_scale_kind(scale)
    check_address(x, scale)
    return _write(x, current, scale, options)


def _apply(x: Exchange, current: Stored, body: Any, options: WriteOptions) -> Response:
    """The replica count is applied to the object itself: its owner is who applies the scale."""
    _check_scale_kind(body)
    check_address(x, body)
    replicas = dig(body, "spec", "replicas", default=0)
    _check_replicas(x, replicas)
    applied: Obj = {
        "apiVersion": x.resource.info.api_version,
        "kind": x.resource.info.kind,
        "metadata": {"name": x.route.name, "namespace": x.route.namespace},
    }
    _set(applied, _steps(_paths(x)["specReplicasPath"]), replicas)
    result = apply_to(x, x.resource.shown(current.obj), applied, options)
    written = change(x, current, own_copy(result.obj), options, owned=True, unconditional=True)
    return fresh_answer(x, 200, _scale_of(x, written.obj), written.revision)


def _write(x: Exchange, current: Stored, scale: Obj, options: WriteOptions) -> Response:
    replicas = dig(scale, "spec", "replicas", default=0)
    _check_replicas(x, replicas)
    obj = editable(x, current)
    _set(obj, _steps(_paths(x)["specReplicasPath"]), replicas)
    obj["metadata"]["resourceVersion"] = meta(scale).get("resourceVersion") or ""
    written = change(x, current, obj, replace(options), unconditional=True)
    return fresh_answer(x, 200, _scale_of(x, written.obj), written.revision)


def _check_replicas(x: Exchange, replicas: Any) -> None:
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise BadRequest("Scale: spec.replicas must be an integer")
    if replicas < 0:
        if x.resource.custom is not None:
            info = x.resource.info
            what = f"Invalid value: {replicas}: should be a non-negative integer"
            cause = FieldCause("FieldValueInvalid", what, str(_paths(x)["specReplicasPath"]))
            raise invalid(info.kind, x.route.name, [cause], info.group)
        what = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid("Scale", x.route.name, [FieldCause("FieldValueInvalid", what, "spec.replicas")], "autoscaling")


def _set(obj: Obj, path: tuple[str, ...], value: Any) -> None:
    here = obj
    for step in path[:-1]:
        here = here.setdefault(step, {})
    here[path[-1]] = value
