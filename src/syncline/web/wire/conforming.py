"""Requests by their types: REST takes any JSON, a service that stores single fields wants them as they are defined."""

from __future__ import annotations

from syncline.kube.objects import Obj
from syncline.kube.protobuf.writing import WrongValue
from syncline.web.wire.api import Method, read, writer
from syncline.web.wire.status import Code, RpcError


def conformed(method: Method, request: Obj) -> Obj:
    """Return a request with its defined fields alone, empty ones left out. Raises :class:`RpcError`."""
    try:
        return read(method.request, writer().write(method.request, request))
    except WrongValue as error:
        raise RpcError(Code.INVALID_ARGUMENT, f"{method.request}: {error}") from None
