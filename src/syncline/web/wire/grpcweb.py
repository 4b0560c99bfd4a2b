"""gRPC-Web: the calls of programs that cannot speak HTTP/2, ``argocd --grpc-web`` among them.

:func:`serve` answers one HTTP request, binary or as base64 text. The trailers come as a last frame; a call that fails
before its first answer has them among the headers, since ``argocd`` looks for them there.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from syncline.web.wire.ahead import END, FIRST_S, Ahead
from syncline.web.wire.answering import message_bytes, message_of
from syncline.web.wire.api import methods
from syncline.web.wire.calls import Calls
from syncline.web.wire.frames import TRAILERS, Frames, framed, timeout_of
from syncline.web.wire.http import Asked, Given
from syncline.web.wire.status import Code, RpcError, grpc_message

CONTENT_TYPE = "application/grpc-web"
TEXT = "application/grpc-web-text"


def is_grpc_web(asked: Asked) -> bool:
    """Return whether a request is a call of gRPC-Web."""
    return asked.headers.get("content-type", "").startswith(CONTENT_TYPE)


async def serve(calls: Calls, path: str, asked: Asked) -> Given:
    """Answer one call; ``path`` names its method."""
    text = asked.headers.get("content-type", "").startswith(TEXT)
    content_type = f"{TEXT if text else CONTENT_TYPE}+proto"
    try:
        limit = timeout_of(asked.headers.get("grpc-timeout", ""))
        deadline = None if limit is None else asyncio.get_running_loop().time() + limit
        ahead = Ahead(calls.run(path, asked.headers, asked.remote, _requests(path, asked, text=text)))
        first = [await _next(ahead, deadline, FIRST_S)]
    except TimeoutError:
        first = []
    except RpcError as error:
        headers = (("grpc-status", str(int(error.code))), ("grpc-message", grpc_message(error.message)))
        return Given(200, content_type, headers=headers)
    return Given(200, content_type, chunks=_chunks(path, first, ahead, deadline, text=text))


async def _next(ahead: Ahead, deadline: float | None, limit_s: float | None = None) -> Any:
    """Return the next answer. Raises TimeoutError after ``limit_s``, RpcError after the call's deadline."""
    left = None if deadline is None else deadline - asyncio.get_running_loop().time()
    try:
        return await ahead.next(left if limit_s is None or (left is not None and left < limit_s) else limit_s)
    except TimeoutError:
        if left is not None and (limit_s is None or left < limit_s):
            await ahead.aclose()
            raise RpcError(Code.DEADLINE_EXCEEDED, "context deadline exceeded") from None
        raise


async def _chunks(
    path: str, first: list[Any], ahead: Ahead, deadline: float | None, *, text: bool
) -> AsyncGenerator[bytes]:
    """Yield the frames of the answers, and the frame of the trailers."""
    code, message = Code.OK, ""
    async with aclosing(ahead):
        try:
            answer = first[0] if first else await _next(ahead, deadline)
            while answer is not END:
                yield _shown(framed(message_bytes(methods()[path], answer)), text=text)
                answer = await _next(ahead, deadline)
        except RpcError as error:
            code, message = error.code, error.message
    trailers = f"grpc-status:{int(code)}\r\ngrpc-message:{grpc_message(message)}\r\n"
    yield _shown(framed(trailers.encode(), flag=TRAILERS), text=text)


def _shown(frame: bytes, *, text: bool) -> bytes:
    return base64.b64encode(frame) if text else frame


async def _requests(path: str, asked: Asked, *, text: bool) -> AsyncGenerator[Any]:
    try:
        body = base64.b64decode(asked.body, validate=True) if text else asked.body
    except binascii.Error:
        raise RpcError(Code.INTERNAL, "the body is not base64, which grpc-web-text announces") from None
    frames = Frames(asked.headers.get("grpc-encoding", "identity"))
    for message in frames.feed(body):
        yield message_of(methods()[path], message)
    if frames.size:
        raise RpcError(Code.INTERNAL, "the call ended within a message")
