"""Where a request of HTTP goes: :class:`Front` gives it to gRPC-Web, to REST, or to a page of its own.

Pure but for the calls. The root path (``--rootpath``) may stand before every path, as a proxy leaves it there.
"""

from __future__ import annotations

from collections.abc import Mapping

from syncline.web.wire import grpcweb, rest
from syncline.web.wire.calls import Calls
from syncline.web.wire.http import Asked, Given, Serve
from syncline.web.wire.status import Code, RpcError

SAFE_HEADERS = (
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "sameorigin"),
    ("content-security-policy", "frame-ancestors 'self';"),
)
CHANGING = frozenset({"POST", "PUT", "PATCH", "DELETE"})


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
        if asked.verb in CHANGING and asked.body and not _is_json(asked):
            return rest.refused(RpcError(Code.INVALID_ARGUMENT, "Content-Type must be application/json"))
        return await rest.serve(self._calls, path, query, asked)


def _is_json(asked: Asked) -> bool:
    """Return whether a body says that it is JSON; a foreign page cannot send such a one without asking first."""
    return asked.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
