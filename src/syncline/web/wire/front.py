"""Where a request of HTTP goes: :class:`Front` gives it to gRPC-Web, to REST, or to a page of its own.

Pure but for the calls. The root path (``--rootpath``) may stand before every path, as a proxy leaves it there.
"""

from __future__ import annotations

from collections.abc import Mapping

from syncline.web.wire import grpcweb, rest
from syncline.web.wire.calls import Calls
from syncline.web.wire.http import Asked, Given, Serve

SAFE_HEADERS = (
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "sameorigin"),
    ("content-security-policy", "frame-ancestors 'self';"),
)
READING = frozenset({"GET", "HEAD"})


class Front:
    """Answers requests; ``pages`` are further paths, such as ``/healthz``."""

    def __init__(self, calls: Calls, pages: Mapping[str, Serve], root: str = "") -> None:
        self._calls = calls
        self._pages = pages
        self._root = f"/{root.strip('/')}" if root.strip("/") else ""

    async def serve(self, asked: Asked) -> Given:
        """Answer one request; refusals are responses."""
        given = await self._answer(asked)
        names = {name.lower() for name, _ in given.headers}
        extra = tuple(header for header in SAFE_HEADERS if header[0] not in names)
        return Given(given.status, given.content_type, given.body, given.chunks, given.headers + extra)

    async def _answer(self, asked: Asked) -> Given:
        path, _, query = asked.target.partition("?")
        if self._root and (path == self._root or path.startswith(self._root + "/")):
            path = path[len(self._root) :] or "/"
        if grpcweb.is_grpc_web(asked):
            if asked.verb != "POST":
                return Given(405, "text/plain", b"a call is a POST\n")
            return await grpcweb.serve(self._calls, path, asked)
        page = self._pages.get(path)
        if page is not None:
            return await page(asked)
        if not path.startswith("/api/"):
            return Given(404, "text/plain; charset=utf-8", b"404 page not found\n")
        if asked.verb not in READING and not _is_json(asked):
            return Given(415, "text/plain; charset=utf-8", b"Invalid content type\n")
        return await rest.serve(self._calls, path, query, asked)


def _is_json(asked: Asked) -> bool:
    """Return whether a request says that it is JSON, with a body or without: a foreign page cannot send such a one
    without asking first, and so cannot use the cookie of its visitor (upstream: ``enforceContentTypes``)."""
    return asked.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
