"""Decode request bodies: check them against the request's path and drop unknown fields.

Create, update and patch call it with bytes, or with the object of an in-process caller; they get an object that the
request owns. Refusals are Kubernetes': media types, decoding, versions, kinds, strict field validation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from syncline.base.remember import remember
from syncline.cluster.resources.registry import Resource, package_of
from syncline.cluster.serving import protobuf
from syncline.cluster.validation.workloads.workloads import TEMPLATE_GENERATION
from syncline.cluster.verbs.exchange import Exchange
from syncline.cluster.verbs.options import Validation, go_words, no_integer
from syncline.kube.client import Request
from syncline.kube.errors import ApiError, BadRequest, FieldCause, UnsupportedMedia, invalid
from syncline.kube.objects import GVK, Obj, gvk_of, meta, name_of
from syncline.kube.patching.fields import decode as decode_strictly
from syncline.kube.patching.fields import go_kind, loads, strict_problems
from syncline.kube.schema.custom.embedded import MetadataError
from syncline.kube.schema.model import schema_for
from syncline.kube.schema.store import kinds
from syncline.kube.text.jsontext import canonical_numbers, has_long_numbers, in_pieces, read_json, scrubbed
from syncline.kube.transport.elsewhere import aside, weigh
from syncline.kube.yaml import loading as yaml

LARGE_YAML = 16_384
"""Size from which a YAML body is read beforehand; that takes about twenty milliseconds."""
_JSON_TYPES = frozenset({"", "application/json"})
_YAML = "application/yaml"
_YAML_TYPES = frozenset({_YAML, "application/apply-patch+yaml"})

_encode = msgspec.json.Encoder().encode


_MEDIA = re.compile(r'\s*([^\s;,/]+/[^\s;,]+)\s*(;\s*[^\s;,=]+=("[^"]*"|[^\s;,"]+)\s*)*')


def content_type(request: Request) -> str:
    """Return the media type of the body without parameters; a malformed one (``application/json;;``) unchanged."""
    return _media_type(request.headers.get("content-type", ""))


@remember(64)
def _media_type(given: str) -> str:
    found = _MEDIA.fullmatch(given)
    return found[1].lower() if found is not None else given


class Unreadable(BadRequest):
    """The bytes are not an object. ``why`` is the decoder's message, in Go's words."""

    def __init__(self, why: str, message: str) -> None:
        super().__init__(message)
        self.why = why


def own_copy(value: Any) -> Any:
    """Return a deep copy of a JSON value, which the request may change."""
    return value if value is None else aside(_copied, value)


def _copied(value: Any) -> Any:
    try:
        return in_pieces(_encode(value))
    except UnicodeEncodeError:
        return scrubbed(value)


def decode(request: Request, *, media: str | None = None) -> Any:
    """Return the JSON value of a body, owned by the request. Raises UnsupportedMedia or BadRequest."""
    body = request.body
    kind = content_type(request) if media is None else media
    check_media(kind)
    if not isinstance(body, bytes | bytearray | str):
        return _received(body)
    weigh(len(body))
    return aside(_decoded, body, kind)


def check_media(kind: str, resource: Resource | None = None) -> None:
    """Raise UnsupportedMedia if this resource accepts no body of the media type."""
    custom = resource is not None and resource.custom is not None
    if kind not in _JSON_TYPES | {_YAML} and (kind != protobuf.MEDIA_TYPE or custom):
        raise UnsupportedMedia(
            "the body of the request was in an unknown format - accepted media types include: application/json, "
            "application/yaml, application/vnd.kubernetes.protobuf"
        )


def _received(body: Any) -> Any:
    """Return a copy of an in-process caller's body."""
    if body is None:
        return None
    try:
        raw = _encode(body)
    except UnicodeEncodeError:
        return aside(scrubbed, body)
    weigh(len(raw))
    return aside(in_pieces, raw)


def _decoded(body: bytes | bytearray | str, kind: str) -> Any:
    if kind == protobuf.MEDIA_TYPE:
        raw = body.encode() if isinstance(body, str) else bytes(body)
        try:
            return protobuf.decode(raw)
        except BadRequest as error:
            raise Unreadable(error.message, error.message) from None
    try:
        if kind in _YAML_TYPES:
            raw = body.encode() if isinstance(body, str) else bytes(body)
            if raw not in _READ:
                return _encodable(yaml.only_value(yaml.load_all(raw, by_lines=False), first=True))
            read = _READ[raw]
            if read.raw is None:
                raise ValueError(read.problem)
            return in_pieces(read.raw)
        return read_json(body if isinstance(body, str) else bytes(body))
    except (msgspec.DecodeError, ValueError) as error:
        raise _unreadable(body, kind, error) from None
    except RecursionError:
        raise _unreadable(body, kind, ValueError("exceeded max depth")) from None


def reads_slowly(request: Request) -> bool:
    """Return whether a body takes long to read: large YAML takes seconds, JSON labelled YAML does not."""
    body = request.body
    if not isinstance(body, bytes) or len(body) < LARGE_YAML or content_type(request) not in _YAML_TYPES:
        return False
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return True
    return False


@dataclass(frozen=True, slots=True)
class _Read:
    """A decoded YAML body: its JSON (None if it is malformed, with ``problem``), and its repeated keys."""

    raw: bytes | None
    problem: str
    repeated: tuple[str, ...]


def repeated_keys(body: bytes) -> tuple[str, ...]:
    """Return ``line 9: key "foo" already set in map`` for each repeated key of a YAML body (go-yaml)."""
    documents = yaml.load_all(body, by_lines=True).documents
    found = [repeated for document in documents for repeated in document.duplicates]
    return tuple(f"line {each.position.line}: key {json.dumps(each.key)} already set in map" for each in found)


def read_apart(body: bytes) -> _Read:
    """Read a YAML body; call it in another process if :func:`reads_slowly`."""
    repeated = repeated_keys(body)
    try:
        return _Read(
            _encode(_encodable(yaml.only_value(yaml.load_all(body, by_lines=False), first=True))), "", repeated
        )
    except RecursionError:
        return _Read(None, "exceeded max depth", repeated)
    except (msgspec.DecodeError, ValueError) as error:
        return _Read(None, _yaml_words(error), repeated)


def remember_read(body: bytes, read: _Read) -> None:
    """Cache a body that was read apart, for the request that follows."""
    _READ[body] = read
    while len(_READ) > READ_KEPT:
        del _READ[next(iter(_READ))]


_READ: dict[bytes, _Read] = {}
READ_KEPT = 8


def _encodable(value: Any) -> Any:
    """Return a YAML value as one that JSON can encode: no lone surrogates, no unbounded numbers."""
    try:
        raw = _encode(value)
    except UnicodeEncodeError:
        return scrubbed(value)
    return read_json(raw) if has_long_numbers(raw) else value


def _unreadable(body: bytes | bytearray | str, kind: str, error: Exception) -> Unreadable:
    raw = body.encode() if isinstance(body, str) else bytes(body)
    if kind not in _YAML_TYPES:
        why = go_words(raw, error)
        return Unreadable(why, f"{_NO_TYPE}{why}")
    why = f"yaml: {_yaml_words(error)}"
    return Unreadable(f"error converting YAML to JSON: {why}", why)


def _yaml_words(error: Exception) -> str:
    """Return go-yaml's message for a decoding error."""
    if not isinstance(error, yaml.YamlError):
        return str(error)
    what, line = error.message.rpartition(", did")[2], error.position.line - 1
    what = f"did{what}" if what != error.message else what
    return f"line {line}: {what}" if line else what


def decode_watching(request: Request, validation: str) -> tuple[Any, list[str]]:
    """As :func:`decode`, with the repeated fields of a JSON body (``duplicate field "data.a"``)."""
    body = request.body
    plain = content_type(request) in _JSON_TYPES and isinstance(body, bytes | bytearray | str)
    if not plain or validation == Validation.IGNORE:
        return decode(request), []
    weigh(len(body))
    try:
        return aside(loads, bytes(body) if isinstance(body, bytearray) else body)
    except ValueError as error:
        raise _unreadable(body, "", error) from None


def repeated_fields(request: Request) -> list[str]:
    """Return the repeated fields of a readable JSON body."""
    text = _text(request)
    return loads(text)[1] if text is not None else []


def _text(request: Request) -> bytes | str | None:
    """Return the body as it was sent; None if an in-process caller sent an object."""
    body = request.body
    return bytes(body) if isinstance(body, bytearray) else body if isinstance(body, bytes | str) else None


def keys_given_twice(request: Request) -> tuple[str, ...]:
    """Return the errors for repeated keys of a YAML body, which may have been read apart."""
    body = request.body
    if not isinstance(body, bytes | bytearray | str):
        return ()
    raw = body.encode() if isinstance(body, str) else bytes(body)
    known = _READ.get(raw)
    return known.repeated if known is not None else repeated_keys(raw)


MAX_STRICT_ERRORS = 100
"""Errors listed in one refusal, the limit that Kubernetes has."""


def read_object(x: Exchange, validation: str) -> Obj:
    """Return the body of a create or update in the resource's version, with field validation applied."""
    sent = _text(x.request) or b""
    obj, duplicates = _typed_object(
        x.resource.info.kind, sent, lambda: decode_watching(x.request, validation), _empty(x.request)
    )
    obj = obj or {}
    if x.resource.custom is None and obj.get("apiVersion") and obj.get("kind"):
        check_kind(x.resource, obj)  # Kubernetes names a wrong kind before a wrong version
    if x.resource.custom is not None and not obj.get("kind"):
        raise _unrecognized(x.resource.info.kind, _without("Kind", sent), sent)
    check_version(x.resource, obj, sent)
    check_kind(x.resource, obj)
    return typed(x, obj, validation, duplicates)


def _empty(request: Request) -> bool:
    return request.body in (b"", "", None)


def _typed_object(
    kind: str, sent: bytes | str, read: Callable[[], tuple[Any, list[str]]], empty: bool
) -> tuple[Obj | None, list[str]]:
    """Return a body whose type is valid or absent: an object, or null."""
    if empty:
        raise _unrecognized(kind, f"{_NO_TYPE}unexpected end of JSON input", b"")
    try:
        obj, duplicates = read()
    except Unreadable as error:
        raise _unrecognized(kind, error.message, sent) from None
    wrong = untyped(obj)
    if wrong:
        raise _unrecognized(kind, wrong, sent)
    return obj, duplicates


_NO_TYPE = "couldn't get version/kind; json parse error: "
_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


def untyped(obj: Any) -> str:
    """Return the decoder's error about the type's form; empty if apiVersion and kind can be read."""
    if obj is None:
        return ""
    if not isinstance(obj, dict):
        return f"{_NO_TYPE}json: cannot unmarshal {go_kind(obj)} into Go value of type {_TYPE_META}"
    for field in ("apiVersion", "kind"):
        value = obj.get(field)
        if value is not None and not isinstance(value, str):
            return f"{_NO_TYPE}json: cannot unmarshal {go_kind(value)} into Go struct field .{field} of type string"
    version = obj.get("apiVersion") or ""
    return f"unexpected GroupVersion string: {version}" if version.count("/") > 1 else ""


def read_typed(x: Exchange, gvk: GVK, validation: str = Validation.IGNORE) -> Obj:
    """Return the body of a request about an object: an eviction, a review, a scale."""
    sent = _text(x.request) or b""
    check_media(content_type(x.request))
    obj, _ = _typed_object(gvk.kind, sent, lambda: (decode(x.request), []), _empty(x.request))
    obj = obj or {}
    kind = obj.get("kind") or gvk.kind
    if kind != gvk.kind or (obj.get("apiVersion") and gvk_of(obj).group != gvk.group):
        named = {"apiVersion": gvk.api_version, **obj, "kind": kind}
        why = f'{kind} in version "{gvk_of(named).version}" cannot be handled as a {gvk.kind}'
        raise BadRequest(f"{why}: {unconvertible(gvk, named)}")
    warn = x.warn if validation == Validation.WARN else None
    return fitted(obj, gvk, strict=validation == Validation.STRICT, warn=warn)


def fitted(
    obj: Any,
    gvk: GVK,
    *,
    strict: bool = False,
    warn: Callable[[str], None] | None = None,
    unhandled: Callable[[str], BadRequest] | None = None,
) -> Obj:
    """Return ``obj`` without unknown fields, each reported to ``warn``. Raises BadRequest if a value does not fit its
    type or, with ``strict``, if a field is unknown. ``unhandled`` words the refusal."""
    schema = schema_for(gvk)
    assert schema is not None, f"{gvk} has a schema of its own"
    found = aside(decode_strictly, obj, schema)
    if found.errors:
        raise unhandled(found.errors[0]) if unhandled else _unhandled(gvk, found.errors[0])
    if strict and found.unknown:
        raise _unhandled(gvk, str(StrictError(list(found.unknown))))
    if warn is not None:
        for problem in found.unknown:
            warn(problem)
    return found.obj


def check_version(resource: Resource, obj: Obj, body: bytes | str = b"") -> None:
    given, info = obj.get("apiVersion"), resource.info
    expected = info.api_version
    if given is None and resource.custom is None:
        obj["apiVersion"] = expected
    elif given != expected:
        if resource.custom and not given:
            raise _unrecognized(info.kind, _without("apiVersion", body), body)
        if not resource.custom and given and not _in_scheme(gvk_of(obj)):
            raise _unhandled(resource.gvk, unregistered({"kind": info.kind, **obj}))
        raise BadRequest(f"the API version in the data ({given}) does not match the expected API version ({expected})")


def check_kind(resource: Resource, obj: Obj) -> None:
    given, info = obj.get("kind"), resource.info
    if given == info.kind:
        return
    if not given:
        obj["kind"] = info.kind
        return
    if resource.custom:
        cause = FieldCause("FieldValueInvalid", f'Invalid value: "{given}": must be {info.kind}', "kind")
        raise invalid(str(given), name_of(obj), [cause], info.group)
    raise BadRequest(
        f'{given} in version "{info.version}" cannot be handled as a {info.kind}: {unconvertible(resource.gvk, obj)}'
    )


def unconvertible(wanted: GVK, obj: Obj) -> str:
    """Return Kubernetes' error for a body of another kind: it decodes the stated kind first, then converts."""
    gvk = gvk_of(obj)
    schema = schema_for(gvk) if gvk in kinds() else None  # kinds that callers invent are not cached
    if gvk == LIST:
        items = obj.get("items")
        if items is not None and not isinstance(items, list):
            where = "Go struct field List.items of type []runtime.RawExtension"
            return f"json: cannot unmarshal {go_kind(items)} into {where}"
    elif schema is None:
        return unregistered(obj)
    elif errors := decode_strictly(obj, schema).errors:
        return errors[0]
    return f"converting ({gvk.version}.{gvk.kind}) to ({package_of(wanted.group)}.{wanted.kind}): unknown conversion"


LIST = GVK("", "v1", "List")


def _in_scheme(gvk: GVK) -> bool:
    """Return whether Kubernetes' scheme has the kind in any version, including old ones that are not served."""
    return gvk in _OLD_KINDS or any(known.group_kind == gvk.group_kind for known in kinds())


_OLD_KINDS = frozenset(
    GVK("extensions", "v1beta1", kind) for kind in ("DaemonSet", "Deployment", "Ingress", "NetworkPolicy", "ReplicaSet")
)
"""Kinds of a removed API group."""


def unregistered(obj: Obj) -> str:
    """Return the scheme's error for an unknown kind."""
    kind, version = obj.get("kind"), obj.get("apiVersion")
    return f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/api/legacyscheme/scheme.go:30"'


SHOWN_BYTES = 30
"""Bytes shown of a body whose type cannot be read."""


def _unrecognized(kind: str, why: str, body: bytes | str) -> BadRequest:
    """Return the error for a body without a readable type. It shows the body only to its sender."""
    raw = body.encode() if isinstance(body, str) else body
    begun = raw[:SHOWN_BYTES]
    shown = begun.decode(errors="replace") if raw.startswith(b"{") else begun.hex()
    shown = f"{shown} ..." if len(raw) > SHOWN_BYTES else shown or "<empty>"
    return BadRequest(f"the object provided is unrecognized (must be of type {kind}): {why} ({shown})")


def _without(field: str, body: bytes | str) -> str:
    return f"Object '{field}' is missing in '{body if isinstance(body, str) else body.decode(errors='replace')}'"


class StrictError(Exception):
    """Unknown or repeated fields with fieldValidation=Strict."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("strict decoding error: " + ", ".join(problems))


def typed(x: Exchange, obj: Obj, validation: str, duplicates: list[str] | None = None) -> Obj:
    """Refuse type errors; refuse, warn about or ignore unknown fields; return the object without them."""
    info = x.resource.info
    try:
        document = _text(x.request) if duplicates else None
        return aside(checked, x, obj, validation, duplicates or [], document=document)
    except StrictError as error:
        raise _unhandled(info.gvk, str(error)) from None
    except _TypeMismatch as error:
        raise _unhandled(info.gvk, str(error)) from None


def _unhandled(gvk: GVK, why: str) -> ApiError:
    return BadRequest(f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {gvk.kind}: {why}')


class _TypeMismatch(Exception):
    """A value that does not fit its Go type."""


TypeMismatch = _TypeMismatch


def checked(
    x: Exchange,
    obj: Obj,
    validation: str,
    duplicates: list[str],
    *,
    converting: bool = False,
    document: bytes | str | None = None,
    known: Obj | None = None,
) -> Obj:
    """As :func:`typed`, but raise :class:`StrictError` or :class:`TypeMismatch` for the caller to word. ``document``: a
    body with repeated fields; for a built-in kind, problems are reported in its order. ``known``: the stored object of
    a custom resource; what is the same Python object in it is not looked at."""
    resource = x.resource
    custom = resource.custom
    if custom is not None:
        try:
            obj, unknown = custom.pruned(canonical_numbers(obj, known), known)
        except MetadataError as error:
            raise _TypeMismatch(str(error)) from None
        except OverflowError:
            raise _TypeMismatch("json: cannot unmarshal number into Go value of type float64") from None
    else:
        schema = resource.schema
        if schema is None:
            return obj
        found = decode_strictly(obj, schema, converting=converting)
        if found.errors:
            raise _TypeMismatch(found.errors[0])
        obj, unknown = found.obj, list(found.unknown)
        given = meta(obj).get("annotations") or {}
        counted = given.get(TEMPLATE_GENERATION) if resource.storage == "apps/daemonsets" else None
        if counted is not None and (wrong := no_integer(counted)):
            raise _TypeMismatch(wrong)
    problems = duplicates + unknown
    if document is not None and custom is None:
        problems = strict_problems(document, resource.schema)
    if problems and validation == Validation.STRICT:
        raise StrictError(problems[:MAX_STRICT_ERRORS])
    if validation == Validation.WARN:
        for problem in problems:
            x.warn(problem)
    return obj
