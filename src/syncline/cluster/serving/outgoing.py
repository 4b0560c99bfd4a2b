"""Send streams as lines of an HTTP response, or as WebSocket messages if the client requests an upgrade.

``serve`` uses it for watches and logs. A watch over WebSocket sends one text message per event. A log sends binary
messages, or base64 text if the subprotocol says so, after an empty message that confirms the connection. Source:
apiserver ``handlers/watch.go``, ``streaming/pkg/httpstream/wsstream``.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from typing import Protocol

from aiohttp import WSMsgType, web
from multidict import CIMultiDict

LOG_PROTOCOLS = ("binary.k8s.io", "base64.binary.k8s.io")
MESSAGE_BYTES = 4096
"""Size limit of a client message; its content is ignored."""
PIECE_BYTES = 32 * 1024
HEARTBEAT_S = 30.0


class Outgoing(Protocol):
    """A response that streams until it is closed."""

    @property
    def response(self) -> web.StreamResponse:
        """The response that the server returns when the stream ends."""
        ...

    async def begin(self, incoming: web.BaseRequest, gone: Callable[[], None]) -> None:
        """Start the response; ``gone`` is called if the client leaves."""
        ...

    async def send(self, frames: list[bytes]) -> None: ...

    async def end(self) -> None: ...

    def close(self) -> None:
        """Release everything, in any state; safe after an error."""
        ...


def asks_for_socket(headers: Mapping[str, str]) -> bool:
    """Return whether the client requests a WebSocket (``wsstream.IsWebSocketRequest``)."""
    connection = headers.get("Connection", "").lower()
    return headers.get("Upgrade", "").lower() == "websocket" and "upgrade" in connection.replace(" ", "").split(",")


def outgoing(incoming: web.BaseRequest, status: int, headers: CIMultiDict[str]) -> Outgoing:
    events = "json" in headers.get("Content-Type", "json")
    if status != 200 or not asks_for_socket(incoming.headers):
        return Lines(status, headers, events=events)
    return Messages(incoming, events=events)


async def sent_in_full(incoming: web.BaseRequest, content: bytes) -> web.StreamResponse:
    """Send a complete log as WebSocket messages."""
    messages = Messages(incoming, events=False)
    try:
        await messages.begin(incoming, lambda: None)
        await messages.send_all(content)
        await messages.end()
    except ConnectionError:
        pass  # The client left.
    finally:
        messages.close()
    return messages.response


class Lines:
    """A chunked HTTP response: watch events, one per line, or a log as its container wrote it."""

    def __init__(self, status: int, headers: CIMultiDict[str], *, events: bool) -> None:
        self._end = b"\n" if events else b""
        self.response = web.StreamResponse(status=status, headers=headers)
        self.response.enable_chunked_encoding()

    async def begin(self, incoming: web.BaseRequest, gone: Callable[[], None]) -> None:
        await self.response.prepare(incoming)

    async def send(self, frames: list[bytes]) -> None:
        await self.response.write(self._end.join(frames) + self._end)

    async def end(self) -> None:
        await self.response.write_eof()

    def close(self) -> None:
        return


class Messages:
    """A WebSocket with one message per frame. ``events``: frames are watch events; else pieces of a log."""

    def __init__(self, incoming: web.BaseRequest, *, events: bool) -> None:
        spoken = [
            each.strip() for each in incoming.headers.get("Sec-WebSocket-Protocol", "").split(",") if each.strip()
        ]
        known = (spoken[:1] if len(spoken) == 1 else []) if events else list(LOG_PROTOCOLS)
        self._events = events
        self.response = web.WebSocketResponse(protocols=known, max_msg_size=MESSAGE_BYTES, heartbeat=HEARTBEAT_S)
        self._listening: asyncio.Task[None] | None = None

    async def begin(self, incoming: web.BaseRequest, gone: Callable[[], None]) -> None:
        await self.response.prepare(incoming)
        self._listening = asyncio.create_task(self._listen(gone), name="client of a stream")
        if not self._events:
            await self._message(b"")

    async def send(self, frames: list[bytes]) -> None:
        for frame in frames:
            await self._message(frame + b"\n" if self._events else frame)

    async def send_all(self, content: bytes) -> None:
        """Send a complete log, piece by piece."""
        for start in range(0, len(content), PIECE_BYTES):
            await self._message(content[start : start + PIECE_BYTES])

    async def end(self) -> None:
        self.close()
        await self.response.close()

    def close(self) -> None:
        if self._listening is not None:
            self._listening.cancel()

    async def _message(self, content: bytes) -> None:
        if self.response.ws_protocol == LOG_PROTOCOLS[1]:
            await self.response.send_str(base64.b64encode(content).decode())
        elif self._events:
            await self.response.send_str(content.decode())
        else:
            await self.response.send_bytes(content)

    async def _listen(self, gone: Callable[[], None]) -> None:
        """Drop what the client sends; call ``gone`` when it leaves."""
        while (await self.response.receive()).type not in (WSMsgType.CLOSE, WSMsgType.CLOSED, WSMsgType.ERROR):
            pass
        gone()
