"""Encode objects and lists as responses: JSON or YAML, in full, as a table, or metadata only.

The verbs call it with stored objects. Stored bytes are sent unchanged where possible; objects are decoded only when the
requested form needs it. Stored objects are never mutated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from syncline.cluster.resources.registry import Resource, package_of
from syncline.cluster.resources.tables import table_of
from syncline.cluster.serving.negotiate import Form, Shape, form_of_refusals
from syncline.cluster.storage.store import Stored
from syncline.cluster.verbs.exchange import Exchange
from syncline.kube.client import Response
from syncline.kube.errors import ApiError, BadRequest, NotAcceptable
from syncline.kube.objects import Obj, meta
from syncline.kube.text.jsontext import scrubbed
from syncline.kube.transport.elsewhere import aside
from syncline.kube.yaml import loading as yaml

_encode = msgspec.json.Encoder().encode


class ListResponse(Response):
    """A list that joins its bytes, or collects its objects, only on demand."""

    __slots__ = ("_meta", "_resource", "_stored")

    def __init__(self, resource: Resource, stored: Sequence[Stored], metadata: Obj, revision: int) -> None:
        super().__init__(200, revision=revision)
        self._resource = resource
        self._stored = stored
        self._meta = _list_meta(resource, metadata)

    @property
    def raw(self) -> bytes:
        if self._raw is None:
            resource = self._resource
            head = _encode(
                {"kind": resource.list_kind, "apiVersion": resource.info.api_version, "metadata": self._meta}
            )
            items = b",".join(_items_bytes(resource, self._stored))
            self._raw = b'%b,"items":[%b]}' % (head[:-1], items)
        return self._raw

    @property
    def obj(self) -> Any:
        if self._obj is None:
            self._obj = list_object(self._resource, self._stored, self._meta)
        return self._obj


def _list_meta(resource: Resource, metadata: Obj) -> Obj:
    """Return list metadata; lists of custom resources always carry ``continue``, even when empty."""
    return {"continue": "", **metadata} if resource.custom is not None else metadata


def _items_bytes(resource: Resource, stored: Sequence[Stored]) -> list[bytes]:
    """Encode list items: built-in ones without apiVersion and kind, custom resources with both. Stored bytes in the
    served version are only sliced, because this loop takes most of the time of a LIST."""
    head = resource.head
    start, opening = (0, b"") if resource.custom else (len(head), b"{")
    since = resource.custom.since if resource.custom else 0
    return [
        opening + one.raw[start:]
        if one.revision >= since and one.raw.startswith(head)
        else _encode(_item(resource, one.obj))
        for one in stored
    ]


def _item(resource: Resource, obj: Obj) -> Obj:
    shown = resource.shown(obj)
    if resource.custom:
        return shown
    return {key: value for key, value in shown.items() if key not in ("apiVersion", "kind")}


def list_object(resource: Resource, stored: Iterable[Stored], metadata: Obj) -> Obj:
    return {
        "kind": resource.list_kind,
        "apiVersion": resource.info.api_version,
        "metadata": _list_meta(resource, metadata),
        "items": [_item(resource, one.obj) for one in stored],
    }


def partial(obj: Obj, version: str) -> Obj:
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": dict(meta(obj))}


def list_answer(x: Exchange, stored: Sequence[Stored], metadata: Obj, revision: int) -> Response:
    """Return a list response; ``metadata`` is the list's: resourceVersion, continue, remainingItemCount."""
    accepted = x.accepted
    if x.resource.custom is not None and x.resource.custom.called:
        for one in stored:
            x.resource.shown(one.obj)  # An object that cannot be converted fails the list here, not when it is read.
    if accepted.plain:
        return ListResponse(x.resource, stored, metadata, revision)
    return aside(_shaped_list, x, stored, metadata, revision)


def _shaped_list(x: Exchange, stored: Sequence[Stored], metadata: Obj, revision: int) -> Response:
    accepted = x.accepted
    match accepted.shape:
        case Shape.TABLE:
            shown = [x.resource.shown(one.obj) for one in stored]
            body = table_of(x.resource, shown, metadata, x.now, _include(x), accepted.version)
        case Shape.METADATA_LIST:
            body = {
                "kind": "PartialObjectMetadataList",
                "apiVersion": f"meta.k8s.io/{accepted.version}",
                "metadata": metadata,
                "items": [partial(one.obj, accepted.version) for one in stored],
            }
        case Shape.METADATA:
            kind = _go_type(x.resource, x.resource.list_kind)
            raise NotAcceptable(f"you requested PartialObjectMetadata, but the requested object is a list ({kind})")
        case Shape.OBJECT:
            body = list_object(x.resource, stored, metadata)
    return Response.of(200, body, revision=revision)


def _go_type(resource: Resource, kind: str) -> str:
    """Return the Go type that Kubernetes names for this kind."""
    if resource.custom is not None:
        return "*unstructured.UnstructuredList" if kind == resource.list_kind else "*unstructured.Unstructured"
    return f"*{package_of(resource.info.group)}.{kind}"


_INCLUDED = ("", "None", "Metadata", "Object")


def _include(x: Exchange) -> str:
    include = x.request.query.get("includeObject", "") if x.request.query else ""
    if include not in _INCLUDED:
        what = f"includeObject: Invalid value: {include!r}".replace("'", '"')
        raise BadRequest(
            f"Unable to convert to Table as requested: {what}: must be 'Metadata', 'Object', 'None', or empty"
        )
    return include


def object_answer(x: Exchange, status: int, stored: Stored) -> Response:
    """Return a stored object in the requested form."""
    accepted = x.accepted
    if accepted.plain and x.resource.shown_as_stored(stored):
        return Response(status, stored._decoded, stored.raw, revision=stored.revision)
    return fresh_answer(x, status, aside(x.resource.shown_of, stored), stored.revision)


def fresh_answer(x: Exchange, status: int, obj: Obj, revision: int = 0) -> Response:
    """Return an object that is not stored in this form: dry runs, deleted objects, other versions."""
    accepted = x.accepted
    if accepted.plain:
        return aside(_encoded_here, Response.of(status, obj, revision=revision))
    return aside(_shaped_answer, x, status, obj, revision)


def _encoded_here(answer: Response) -> Response:
    answer.raw  # noqa: B018 - where the request is large, it is encoded beside the loop
    return answer


def _shaped_answer(x: Exchange, status: int, obj: Obj, revision: int) -> Response:
    return Response.of(status, shaped(x, obj), revision=revision)


def shaped(x: Exchange, obj: Obj, *, headed: bool = True) -> Obj:
    """Return an object of the served version in the requested shape. Watch events use it too; only their first table is
    ``headed``."""
    accepted = x.accepted
    match accepted.shape:
        case Shape.TABLE:
            metadata = {"resourceVersion": meta(obj).get("resourceVersion", "")}
            return table_of(x.resource, [obj], metadata, x.now, _include(x), accepted.version, headed=headed)
        case Shape.METADATA:
            return partial(obj, accepted.version)
        case Shape.METADATA_LIST:
            if x.resource.custom is not None:
                raise ApiError("content is not a list", reason="")
            scale = obj.get("kind") == "Scale"
            kind = "*autoscaling.Scale" if scale else _go_type(x.resource, x.resource.info.kind)
            what = "you requested PartialObjectMetadataList, but the requested object is not a list"
            raise NotAcceptable(f"{what} ({kind})")
        case Shape.OBJECT:
            return obj


def encode(body: Any) -> bytes:
    return _encode(body)


def in_yaml(answer: Response) -> Response:
    """Convert a JSON response to YAML; return any other response unchanged."""
    if answer.headers.get("content-type", "application/json") != "application/json" or answer.stream or answer.session:
        return answer
    headers = {**answer.headers, "content-type": "application/yaml"}
    made = Response.encoded(answer.status, yaml.dump(answer.obj).encode(), headers, answer.revision)
    made.annotations = answer.annotations
    return made


def success(status: int = 200, details: Obj | None = None, *, code: bool = False) -> Response:
    """Return a ``Status`` of success; deletions add ``details``, action subresources the ``code``."""
    body: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        body["details"] = details
    if code:
        body["code"] = status
    return Response.of(status, body)


def refusal(error: ApiError, accept: str = "") -> Response:
    headers = {"retry-after": str(error.details["retryAfterSeconds"])} if "retryAfterSeconds" in error.details else {}
    made = _encoded_here(Response.of(error.code, scrubbed(error.to_status()), headers))
    return in_yaml(made) if accept and form_of_refusals(accept) is Form.YAML else made
