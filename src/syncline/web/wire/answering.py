"""Requests and answers of a method, between bytes and JSON values; a failure is a refusal. Pure."""

from __future__ import annotations

from typing import Any

from syncline.kube.protobuf.reading import Malformed
from syncline.kube.protobuf.writing import Encoded, WrongValue
from syncline.web.wire.api import Method, printer, read, writer
from syncline.web.wire.status import Code, RpcError


def message_of(method: Method, raw: bytes) -> Any:
    """Return the request of a method. Raises :class:`RpcError`."""
    try:
        return read(method.request, raw)
    except Malformed as error:
        raise RpcError(Code.INTERNAL, f"grpc: error unmarshalling request: {error}") from None


def message_bytes(method: Method, answer: Any) -> bytes:
    """Return the written form of an answer. Raises :class:`RpcError`."""
    if type(answer) is Encoded:
        return answer.wire
    try:
        return writer().write(method.response, answer)
    except WrongValue as error:
        raise RpcError(Code.INTERNAL, f"{method.path}: the answer's {error}") from None


def json_bytes(method: Method, answer: Any) -> bytes:
    """Return the JSON of an answer, as upstream's gateway prints it."""
    return answer.json if type(answer) is Encoded else printer().json(method.response, answer)
