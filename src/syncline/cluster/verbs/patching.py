"""patch: the four patch types, and create by apply.

``api`` calls it for objects and their status. The patch is applied to the served version, and the result is handled
like an update. If a JSON, merge or strategic patch changes nothing, the response is the current object.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any, NoReturn

import msgspec

from syncline.cluster.access.rbac import Attributes
from syncline.cluster.resources.registry import Resource
from syncline.cluster.storage.store import Stored
from syncline.cluster.verbs.body import (
    StrictError,
    TypeMismatch,
    Unreadable,
    checked,
    content_type,
    decode,
    keys_given_twice,
    own_copy,
    repeated_fields,
    unconvertible,
)
from syncline.cluster.verbs.create import answer_written
from syncline.cluster.verbs.exchange import Exchange
from syncline.cluster.verbs.options import Validation, WriteOptions, write_options
from syncline.cluster.verbs.write import MODIFIED, change, check_address, insert, wrong_name
from syncline.kube.client import PatchType, Response
from syncline.kube.errors import ApiError, BadRequest, FieldCause, Invalid, UnsupportedMedia, conflict, invalid
from syncline.kube.objects import GVK, Obj, gvk_of, meta
from syncline.kube.patching import managedfields
from syncline.kube.patching.fields import go_kind, strict_problems
from syncline.kube.patching.patches import json_merge_patch, json_patch
from syncline.kube.patching.strategic import strategic_merge_patch
from syncline.kube.schema.fitting import still_fits
from syncline.kube.schema.model import Schema
from syncline.kube.transport.elsewhere import aside, weigh

_CUSTOM = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"


def patch_type(x: Exchange) -> PatchType:
    """Return the patch type of the content type; raise UnsupportedMedia in the words for the kind of resource."""
    try:
        kind = PatchType(content_type(x.request))
    except ValueError:
        kind = PatchType.STRATEGIC
        if x.resource.custom is None:
            raise UnsupportedMedia("415: Unsupported Media Type", details={}) from None
    if kind is PatchType.STRATEGIC and x.resource.custom is not None:
        raise UnsupportedMedia(
            f"the body of the request was in an unknown format - accepted media types include: {_CUSTOM}"
        )
    return kind


def patch(x: Exchange) -> Response:
    kind = patch_type(x)
    options = write_options(x.request.query, x.request.headers, "PatchOptions", apply=kind is PatchType.APPLY)
    current = x.store.get(x.key(x.route.name))
    if current is None and kind is not PatchType.APPLY:
        raise x.missing()
    body = read_patch(x, kind)
    if current is None or kind is PatchType.APPLY:
        return _apply(x, current, body, options)
    weigh(len(current.raw))
    obj = aside(_patched, x, kind, current, body, options)
    check_address(x, obj)
    return answer_written(x, change(x, current, obj, options))


def read_patch(x: Exchange, kind: PatchType) -> Any:
    """Return the decoded patch; errors have the words of its type's decoder."""
    begin = {PatchType.STRATEGIC: "", PatchType.APPLY: "error decoding YAML: "}.get(kind, "error decoding patch: ")
    try:
        body = decode(x.request, media="application/yaml" if kind is PatchType.APPLY else "application/json")
    except Unreadable as error:
        raise BadRequest(f"{begin}{error.why}") from None
    if kind is PatchType.JSON:
        return (
            body or [] if body is None or isinstance(body, list) else _mistyped(body, "[]handlers.jsonPatchOp", begin)
        )
    if body is None and kind is PatchType.MERGE:
        raise BadRequest("Invalid JSON Patch")
    if kind is PatchType.APPLY:
        begin += "error unmarshaling JSON: while decoding JSON: "
    return body or {} if body is None or isinstance(body, dict) else _mistyped(body, "map[string]interface {}", begin)


def _mistyped(body: Any, wanted: str, begin: str) -> NoReturn:
    raise BadRequest(f"{begin}json: cannot unmarshal {go_kind(body)} into Go value of type {wanted}")


def _patched(x: Exchange, kind: PatchType, current: Stored, body: Any, options: WriteOptions) -> Obj:
    """Return the patched object, owned by the request, with its fields checked."""
    live = x.resource.shown(current.obj)
    problems = _problems(x, kind, body) if options.validation != Validation.IGNORE else []
    patched = patched_value(kind, live, body, x.resource)
    converting = kind is PatchType.STRATEGIC
    readable = isinstance(patched, dict) and isinstance(patched.get("metadata"), dict)
    if readable and x.resource.custom is None and not problems:
        return _rechecked(x, _owned(x, patched, live), live, options.validation, converting=converting)
    if readable and x.resource.custom is not None and live is current.obj:
        return _checked_result(x, _sharing(patched, live), options.validation, problems, known=live)
    return _checked_result(x, own_copy(patched), options.validation, problems, converting=converting)


def _sharing(patched: Obj, live: Obj) -> Obj:
    """Return a patched custom resource that shares with the stored one what the patch leaves alone. Nothing below the
    object and its metadata is written in place."""
    before = meta(live)
    metadata = {
        name: part if part is before.get(name) and name in _SHARED_METADATA else own_copy(part)
        for name, part in patched["metadata"].items()
    }
    return {name: metadata if name == "metadata" else _adopted(part, live.get(name)) for name, part in patched.items()}


def _problems(x: Exchange, kind: PatchType, body: Any) -> list[str]:
    """Return the patch's own repeated fields, and unknown fields of JSON patch operations. They are refused or warned
    about before those of the object."""
    if kind is not PatchType.JSON:
        return repeated_fields(x.request)
    text = x.request.body
    if isinstance(text, bytes | bytearray | str):
        raw = bytes(text) if isinstance(text, bytearray) else text
        return [f"json patch {problem}" for problem in strict_problems(raw, _OPERATIONS)]
    steps = body if isinstance(body, list) else []
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, step in enumerate(steps)
        if isinstance(step, dict)
        for name in step
        if name not in _OPERATION["properties"]
    ]


def _owned(x: Exchange, patched: Obj, live: Obj) -> Obj:
    """Copy a patched object, but share with the stored object what this endpoint does not write: the status, or at
    ``/status`` all else but metadata, and of the status what stays as it was. Shared parts are known to be unchanged.
    Other endpoints share nothing that they write: strategies change a spec in place.
    """
    sub = x.route.subresource
    made: Obj = {}
    for key, value in patched.items():
        if key == "metadata":
            before = meta(live)
            made[key] = {
                name: part if part is before.get(name) and name in _SHARED_METADATA else own_copy(part)
                for name, part in value.items()
            }
        elif value is live.get(key) and (sub == "status") is (key != "status") and sub in ("", "status"):
            made[key] = value
        elif sub == "status":
            made[key] = _adopted(value, live.get(key))
        else:
            made[key] = own_copy(value)
    return made


def _adopted(value: Any, live: Any) -> Any:
    """Return a copy of a status, with the stored object's own parts where nothing differs: it is sent with whole lists,
    of which one entry changed."""
    if not isinstance(value, (dict, list)) or value is live:
        return value
    if value == live and _encode(value) == _encode(live):  # the same text: neither 1 for true nor another order
        return live
    if isinstance(value, dict):
        before = live if isinstance(live, dict) else {}
        pairs = ((part, before.get(name)) for name, part in value.items())
        return dict(zip(value, _adopted_each(pairs), strict=True))
    known = live[: len(value)] if isinstance(live, list) else []
    return _adopted_each(zip_longest(value, known))


def _adopted_each(pairs: Iterable[tuple[Any, Any]]) -> list[Any]:
    """Return each first value as :func:`_adopted` does; those that the stored object has as such cost no call."""
    return [part if part is was or not isinstance(part, (dict, list)) else _adopted(part, was) for part, was in pairs]


_encode = msgspec.json.Encoder().encode

_SHARED_METADATA = ("managedFields", "labels", "annotations", "ownerReferences")
"""Parts of metadata that writes replace and never mutate."""


def _rechecked(x: Exchange, obj: Obj, live: Obj, validation: str, *, converting: bool = False) -> Obj:
    """As :func:`_checked_result`, but skip parts shared with the stored object, which were checked before."""
    if obj.get("apiVersion"):
        obj.setdefault("kind", x.resource.info.kind)
    schema = x.resource.schema
    same_kind = obj.get("kind") == x.resource.info.kind and obj.get("apiVersion") == x.resource.info.api_version
    counted = x.resource.storage == "apps/daemonsets"  # Its checks also read an annotation.
    if schema is not None and same_kind and not counted and still_fits(obj, live, schema):
        return obj
    fresh = {key: value for key, value in obj.items() if value is not live.get(key)}
    fresh |= {key: obj[key] for key in ("apiVersion", "kind") if key in obj}
    before = meta(live)
    kept = {name: part for name, part in obj["metadata"].items() if part is before.get(name)}
    fresh["metadata"] = {name: part for name, part in obj["metadata"].items() if name not in kept}
    made = _checked_result(x, fresh, validation, converting=converting)
    if made is fresh:
        return obj
    metadata = {name: made["metadata"].get(name, kept.get(name)) for name in obj["metadata"]}
    metadata = {name: part for name, part in metadata.items() if name in made["metadata"] or name in kept}
    return {
        key: metadata if key == "metadata" else made.get(key, value)
        for key, value in obj.items()
        if key in made or key not in fresh
    }


_OPERATION: Obj = {
    "type": "object",
    "properties": {"op": {"type": "string"}, "path": {"type": "string"}, "from": {"type": "string"}, "value": {}},
}
_OPERATIONS = Schema({"type": "array", "items": _OPERATION})


def patched_value(kind: PatchType, live: Obj, body: Any, resource: Resource) -> Any:
    """Apply a patch to ``live`` and return the result; ``live`` is not mutated."""
    if kind is PatchType.JSON:
        return json_patch(live, body)
    if kind is PatchType.MERGE:
        return json_merge_patch(live, body)
    return strategic_merge_patch(live, body, resource.schema)


def _checked_result(
    x: Exchange,
    obj: Any,
    validation: str,
    problems: list[str] | None = None,
    *,
    converting: bool = False,
    known: Obj | None = None,
) -> Obj:
    if not isinstance(obj, dict):
        raise unpatchable("the patched value is not an object")
    info = x.resource.info
    if x.resource.custom is None:
        if not obj.get("apiVersion"):
            # Without a version it is decoded as an internal type, which lacks these fields.
            unknown = [f'unknown field "{name}"' for name in sorted(obj) if name not in ("apiVersion", "kind")]
            if validation == Validation.STRICT:
                raise unpatchable(str(StrictError(unknown)))
            for problem in unknown if validation == Validation.WARN else ():
                x.warn(problem)
            raise wrong_name(x.route.name, "")
        obj.setdefault("kind", info.kind)
    if obj.get("kind") != info.kind or obj.get("apiVersion") != info.api_version:
        if x.resource.custom is None:
            raise unpatchable(unconvertible(x.resource.gvk, obj))
        gvk = gvk_of(obj)
        if obj.get("apiVersion") == info.api_version and gvk.kind:
            cause = FieldCause("FieldValueInvalid", f'Invalid value: "{gvk.kind}": must be {info.kind}', "kind")
            raise invalid(gvk.kind, x.route.name, [cause], info.group)
        raise BadRequest(f"the patched object is {gvk}, but this address serves {info.gvk}")
    try:
        return checked(x, obj, validation, problems or [], converting=converting, known=known)
    except (StrictError, TypeMismatch) as error:
        if converting and str(error).startswith("strconv."):  # The conversion fails, not the decoding.
            raise ApiError(str(error), reason="") from None
        raise unpatchable(str(error)) from None


def unpatchable(why: str) -> Invalid:
    """Return Invalid. Kubernetes' API server shows the patched object here; ours omits it, as it may hold secrets."""
    message = f'Invalid value: "{{}}": {why}'
    cause = FieldCause("FieldValueInvalid", message, "patch")
    return Invalid(f' "" is invalid: patch: {message}', details={}, causes=[cause])


# --- apply ---------------------------------------------------------------------------------------------------------


def _apply(x: Exchange, current: Stored | None, body: Any, options: WriteOptions) -> Response:
    _check_applied(x, body, current)
    if current is None:
        if x.route.subresource:
            raise x.missing()
        return _create_by_apply(x, body, options)
    weigh(len(current.raw))
    result = aside(apply_to, x, aside(x.resource.shown_of, current), body, options)
    check_address(x, {**body, "metadata": {**meta(body), "name": meta(body).get("name") or x.route.name}})
    if not result.changed:
        return answer_written(x, change(x, current, own_copy(result.obj), options, owned=True))
    obj = _after_apply(x, own_copy(result.obj), body)
    check_address(x, obj)
    return answer_written(x, change(x, current, obj, options, owned=True))


def check_applied_kind(wanted: GVK, body: Obj) -> None:
    given = gvk_of(body)
    if given != wanted:
        raise BadRequest(f"invalid object type: {given.group}/{given.version}, Kind={given.kind}")


def _check_applied(x: Exchange, body: Obj, current: Stored | None) -> None:
    check_applied_kind(x.resource.gvk, body)
    if "managedFields" in meta(body):
        raise BadRequest("metadata.managedFields must be nil")
    version = meta(body).get("resourceVersion")
    if version and current is not None and version != str(current.revision):
        info = x.resource.info
        raise conflict(info.plural, x.route.name, MODIFIED, info.group)


def apply_to(x: Exchange, live: Obj | None, body: Obj, options: WriteOptions) -> managedfields.ApplyResult:
    result = managedfields.apply(
        live,
        body,
        options.manager,
        schema=x.resource.schema,
        api_version=x.resource.info.api_version,
        now=x.now,
        force=options.force,
        subresource=x.route.subresource,
        reset=x.resource.reset_fields(x.route.subresource),
    )
    repeated = keys_given_twice(x.request) if options.validation != Validation.IGNORE else ()
    if repeated and options.validation == Validation.STRICT:
        lines = "".join(f"\n  {problem}" for problem in repeated)
        why = f"error converting YAML to JSON: yaml: unmarshal errors:{lines}"
        raise BadRequest(f"error strict decoding YAML: {why}")
    for problem in repeated:
        x.warn(problem)
    return result


def _after_apply(x: Exchange, obj: Obj, body: Obj) -> Obj:
    """Return the result of an apply in its kind's types; unknown fields were refused before."""
    if x.resource.custom is not None:
        return aside(_checked_result, x, obj, Validation.IGNORE)
    try:
        return aside(checked, x, obj, Validation.IGNORE, [], converting=True)
    except TypeMismatch as error:
        gvk = x.resource.gvk
        kind = f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"
        named = f"{meta(body).get('namespace') or ''}/{meta(body).get('name') or ''}; {kind}"
        why = f"unable to convert unstructured object to {kind}: {error}"
        text = f"failed to convert new object ({named}) to proper version: {why}"
        raise ApiError(text, code=500, reason="") from None


def _create_by_apply(x: Exchange, body: Obj, options: WriteOptions) -> Response:
    """Create an object by apply; the user needs the verb create in addition to patch."""
    info = x.resource.info
    asked = Attributes("create", info.group, info.plural, "", x.route.namespace, x.route.name)
    x.backend.authorizer.require(x.user, asked)
    result = aside(apply_to, x, None, body, options)
    obj = _after_apply(x, own_copy(result.obj), body)
    check_address(x, obj)
    uid = obj["metadata"].get("uid")
    if uid:
        info = x.resource.info
        cause = FieldCause("FieldValueInvalid", f'Invalid value: "{uid}": field is immutable', "metadata.uid")
        raise invalid(info.kind, x.route.name, [cause, cause], info.group)
    obj["metadata"].pop("resourceVersion", None)
    return answer_written(x, insert(x, obj, options, owned=True))
