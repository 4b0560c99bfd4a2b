"""Decode Kubernetes protobuf bodies to JSON values, as kubectl's generator commands and typed clients send them.

:func:`decode` takes the bytes of one enveloped object and returns the object as Go's JSON encoder would write it, so
that later code treats it like a JSON body. It never writes protobuf (responses are JSON), and its errors never contain
values of the body. Rules: the envelope of apimachinery ``runtime/serializer/protobuf``; ``protobuf.json.xz`` marks
which empty values are written, from Kubernetes' Go types as ``tools/build_protobuf.py`` found them.
"""

from __future__ import annotations

from syncline.kube.errors import BadRequest
from syncline.kube.objects import GVK, Obj
from syncline.kube.protobuf.fields import META, kubernetes_messages
from syncline.kube.protobuf.reading import Malformed, Reader, joined
from syncline.kube.schema import store

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

MAX_SIZE_BYTES = 3 * 1024 * 1024
"""Size limit of a body; Kubernetes' limit for any request body (``MaxRequestBodyBytes``)."""

_MAGIC = b"k8s\x00"
_TYPE_META, _RAW, _ENCODING = 1, 2, 3
"""Field numbers of the envelope (``runtime.Unknown``)."""

NO_ENVELOPE = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"


def decode(body: bytes) -> Obj:
    """Return the object of an enveloped body, with the envelope's ``kind`` and ``apiVersion``; raise BadRequest."""
    if len(body) > MAX_SIZE_BYTES:
        raise BadRequest(f"the protobuf body has {len(body)} bytes, of at most {MAX_SIZE_BYTES}")
    if not body.startswith(_MAGIC):
        raise BadRequest(NO_ENVELOPE)
    reader = Reader(kubernetes_messages())
    try:
        gvk, raw = _opened(reader, memoryview(body)[len(_MAGIC) :])
    except Malformed as error:
        raise BadRequest(f"the envelope of the protobuf body cannot be read: {error}") from None
    try:
        value = reader.message(_message_of(gvk), raw, 0)
    except Malformed as error:
        raise BadRequest(f"the protobuf body of a {gvk.kind} ({_api_version(gvk)}) cannot be read: {error}") from None
    return {"kind": gvk.kind, "apiVersion": _api_version(gvk), **value}


def _opened(reader: Reader, data: memoryview) -> tuple[GVK, memoryview]:
    """Return the kind that an envelope names, and the object's bytes."""
    envelope = reader.found(data)
    if reader.last_text(envelope, _ENCODING):
        raise Malformed("its content is encoded (contentEncoding); send it plain")
    type_meta = reader.found(joined(envelope.get(_TYPE_META, [])))
    api_version, kind = reader.last_text(type_meta, 1), reader.last_text(type_meta, 2)
    if not kind or not api_version:
        raise Malformed("it names no apiVersion and kind (typeMeta)")
    group, _, version = api_version.rpartition("/")
    return GVK(group, version, kind), joined(envelope.get(_RAW, []))


def _api_version(gvk: GVK) -> str:
    return f"{gvk.group}/{gvk.version}" if gvk.group else gvk.version


def _message_of(gvk: GVK) -> str:
    """Return the message type of a kind; clients send ``DeleteOptions`` under any group."""
    name = store.kinds().get(gvk, "") if gvk.kind != "DeleteOptions" else f"{META}.DeleteOptions"
    if name not in kubernetes_messages():
        raise BadRequest(
            f'no kind "{gvk.kind}" is registered for version "{_api_version(gvk)}" as protobuf; custom resources '
            "and their like are sent as application/json"
        )
    return name
