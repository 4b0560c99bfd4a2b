"""gRPC over HTTP/2: :class:`Grpc` answers one stream, in messages and trailers; all else goes to ``web``.

Called by :mod:`syncline.web.serving.http2` for each stream; the calls themselves are ``web/wire/calls.py``'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from syncline.web.serving.bounds import Bounds
from syncline.web.serving.http2 import Stream, StreamClosed
from syncline.web.wire.answering import message_bytes, message_of
from syncline.web.wire.api import Method, methods
from syncline.web.wire.calls import Calls
from syncline.web.wire.frames import Frames, framed, timeout_of
from syncline.web.wire.http import Asked, Serve
from syncline.web.wire.status import Code, RpcError, grpc_message

CONTENT_TYPE = "application/grpc"
HEADERS = (
    (":status", "200"),
    ("content-type", CONTENT_TYPE),
    ("grpc-accept-encoding", "identity,gzip"),
)
HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "upgrade", "content-length"})


def is_grpc(content_type: str) -> bool:
    """Return whether a content type is gRPC's over HTTP/2 (not gRPC-Web's)."""
    return content_type == CONTENT_TYPE or content_type.startswith((CONTENT_TYPE + "+", CONTENT_TYPE + ";"))


class Grpc:
    """Answers the streams of HTTP/2 connections."""

    def __init__(self, calls: Calls, web: Serve, bounds: Bounds) -> None:
        self._calls = calls
        self._web = web
        self._bounds = bounds

    async def serve(self, stream: Stream) -> None:
        """Answer one stream. Raises StreamClosed."""
        if not is_grpc(stream.fields.get("content-type", "")):
            await self._serve_web(stream)
            return
        answering = _Answering(stream, stream.fields.get("grpc-encoding") == "gzip")
        try:
            async with asyncio.timeout(timeout_of(stream.fields.get("grpc-timeout", ""))):
                await self._call(stream, answering)
        except RpcError as error:
            answering.end(error.code, error.message)
        except TimeoutError:
            answering.end(Code.DEADLINE_EXCEEDED, "context deadline exceeded")
        else:
            answering.end(Code.OK, "")

    async def _call(self, stream: Stream, answering: _Answering) -> None:
        path = stream.fields.get(":path", "")
        if stream.fields.get(":method") != "POST":
            raise RpcError(Code.INTERNAL, "a call is a POST")
        method = methods().get(path)
        requests = self._requests(stream, method)
        async with aclosing(self._calls.run(path, stream.fields, stream.remote, requests)) as answers:
            async for answer in answers:
                assert method is not None
                await answering.put(message_bytes(method, answer))

    async def _requests(self, stream: Stream, method: Method | None) -> AsyncIterator[Any]:
        """Yield the requests of a call as they arrive."""
        frames = Frames(stream.fields.get("grpc-encoding", "identity"))
        assert method is not None
        while True:
            try:
                data = await stream.receive(self._bounds.body_s)
            except TimeoutError:
                raise RpcError(Code.DEADLINE_EXCEEDED, "the request did not arrive in time") from None
            if not data:
                break
            for message in frames.feed(data):
                yield message_of(method, message)
                stream.release()
        if frames.size:
            raise RpcError(Code.INTERNAL, "the call ended within a message")

    async def _serve_web(self, stream: Stream) -> None:
        """Answer a request that is no gRPC as HTTP/1.1 would."""
        body = bytearray()
        while data := await stream.receive(self._bounds.body_s):
            body += data
            if len(body) > self._bounds.body_bytes:
                stream.respond([(":status", "413")], end=True)
                return
        fields = stream.fields
        headers = {name: value for name, value in fields.items() if not name.startswith(":")}
        headers.setdefault("host", fields.get(":authority", ""))
        given = await self._web(
            Asked(fields.get(":method", ""), fields.get(":path", ""), headers, bytes(body), stream.remote)
        )
        stream.respond(
            [(":status", str(given.status)), ("content-type", given.content_type)]
            + [(name.lower(), value) for name, value in given.headers if name.lower() not in HOP_BY_HOP],
        )
        if given.chunks is not None:
            async with aclosing(given.chunks) as chunks:
                async for chunk in chunks:
                    await stream.send(chunk)
        await stream.send(given.body, end=True)


class _Answering:
    """The response of one call."""

    def __init__(self, stream: Stream, packed: bool) -> None:
        self._stream = stream
        self._packed = packed
        self._begun = False

    async def put(self, message: bytes) -> None:
        if not self._begun:
            self._begun = True
            extra = (("grpc-encoding", "gzip"),) if self._packed else ()
            self._stream.respond([*HEADERS, *extra])
        await self._stream.send(framed(message, packed=self._packed))

    def end(self, code: Code, message: str) -> None:
        trailers = [("grpc-status", str(int(code)))]
        if message:
            trailers.append(("grpc-message", grpc_message(message)))
        try:
            self._stream.respond(trailers if self._begun else [*HEADERS, *trailers], end=True)
        except StreamClosed:
            return  # Nothing is left to say to a client that has gone.
