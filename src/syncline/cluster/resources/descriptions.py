"""Serve the OpenAPI documents: JSON or protobuf, complete or by group version, with ETags.

``discovery`` calls it for paths below ``/openapi``. Documents are created from the registry on first request and cached
until it changes; ``kube.schema.openapi`` defines their content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import msgspec

from syncline.cluster.resources.registry import Registry
from syncline.kube.client import Request, Response
from syncline.kube.objects import GVK, Obj
from syncline.kube.schema.openapi.document import openapi_v2, openapi_v3, openapi_v3_index
from syncline.kube.schema.openapi.protobuf import MEDIA_TYPES, document_bytes

_TEXT = {"content-type": "text/plain; charset=utf-8"}
_JSON = "application/json"
_ANY = frozenset({"", "*/*", "application/*", _JSON})
_VARIES = {"vary": "Accept"}
_FOREVER = {"cache-control": "public, immutable"}
"""For a URL that contains the hash of its content."""


def page_not_found() -> Response:
    """Return Kubernetes' outermost 404 for a path that is not served."""
    return Response.encoded(404, b"404 page not found\n", {**_TEXT, "x-content-type-options": "nosniff"})


def with_etag(response: Response, headers: dict[str, str], request: Request) -> Response:
    """Return the response with an ETag, or 304 if the client's ETag matches."""
    if response.status != 200:
        return response
    etag = '"' + hashlib.sha512(response.raw).hexdigest().upper() + '"'
    if etag in request.headers.get("if-none-match", ""):
        return Response.encoded(304, b"", {**headers, "etag": etag})
    return Response.encoded(200, response.raw, {**headers, "etag": etag})


def _accepts(accept: str, offered: tuple[str, ...]) -> str:
    """Return the first accepted media type that is offered or JSON; "" if none is."""
    for clause in accept.split(","):
        media = clause.partition(";")[0].strip().lower()
        if media in offered:
            return offered[0]
        if media in _ANY:
            return _JSON
    return ""


class Descriptions:
    """Serves paths below ``/openapi``."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._kept: dict[tuple[str, str], bytes] = {}
        self._generation = -1

    def answer(self, path: str, request: Request) -> Response:
        parts = path.strip("/").split("/")[1:]
        if request.path.endswith("/"):
            return page_not_found()
        accept = request.headers.get("accept", "")
        match parts:
            case ["v2"]:
                return self._whole(accept, request)
            case ["v3"]:
                return Response.encoded(200, self._index(), _TEXT)
            case ["v3", "api", version]:
                return self._part("", version, accept, request)
            case ["v3", "apis", group, version]:
                return self._part(group, version, accept, request)
        return page_not_found()

    def _made(self, form: str, name: str, make: Callable[[], bytes]) -> bytes:
        """Return bytes, computed once per state of the registry."""
        if self._generation != self._registry.generation:
            self._kept.clear()
            self._generation = self._registry.generation
        raw = self._kept.get((form, name))
        if raw is None:
            raw = self._kept[(form, name)] = make()
        return raw

    def _whole(self, accept: str, request: Request) -> Response:
        media = _accepts(accept, MEDIA_TYPES)
        if not media:
            return Response.encoded(406, b"", _VARIES)
        encode: Callable[[Obj], bytes] = msgspec.json.encode if media == _JSON else document_bytes
        raw = self._made(media, "", lambda: encode(self._swagger()))
        return with_etag(Response.encoded(200, raw), {**_VARIES, "content-type": media}, request)

    def _swagger(self) -> Obj:
        return openapi_v2([resource.info for resource in self._registry.resources()], self._custom_schemas())

    def _index(self) -> bytes:
        groups = {(r.info.group, r.info.version) for r in self._registry.resources()}
        make = openapi_v3_index
        return self._made("index", "", lambda: msgspec.json.encode(make(sorted(groups), self._custom_schemas())))

    def _part(self, group: str, version: str, accept: str, request: Request) -> Response:
        infos = [r.info for r in self._registry.resources() if (r.info.group, r.info.version) == (group, version)]
        if not infos:
            return page_not_found()
        if not _accepts(accept, ()):
            return Response.encoded(406, b"", _VARIES)
        headers = {**_VARIES, "content-type": _JSON}
        asked = request.query.get("hash") if request.query else None
        if asked is not None:
            name = f"apis/{group}/{version}" if group else f"api/{version}"
            current = msgspec.json.decode(self._index())["paths"][name]["serverRelativeURL"]
            if not current.endswith(f"hash={asked}"):
                return Response.encoded(301, b"", {"location": current, **_VARIES})
            headers |= _FOREVER
        raw = self._made(
            "v3",
            f"{group}/{version}",
            lambda: msgspec.json.encode(openapi_v3(group, version, infos, self._custom_schemas())),
        )
        return with_etag(Response.encoded(200, raw), headers, request)

    def _custom_schemas(self) -> dict[GVK, Obj]:
        return {r.gvk: r.custom.root for r in self._registry.resources() if r.custom is not None}
