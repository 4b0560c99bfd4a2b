"""A server that fails some writes."""

from __future__ import annotations

from syncline.kube.client import Request, Response, Transport
from syncline.kube.errors import InternalError

__all__ = ["Refusing"]


class Refusing:
    """Answers the next ``times`` writes to a path that ends with ``ending`` with a server error."""

    def __init__(self, inner: Transport, ending: str, times: int) -> None:
        self._inner, self._ending, self.left = inner, ending, times

    def send(self, request: Request) -> Response:
        if request.method != "GET" and self.left and request.path.endswith(self._ending):
            self.left -= 1
            return Response.refused(InternalError("the disk of the API is full (injected)"))
        return self._inner.send(request)
