"""Carry a command in a container over a WebSocket: Kubernetes' channel protocol, versions 1, 4 and 5.

``serve`` calls :func:`converse` with the session that the API opened. The first byte of each binary message is its
channel: 0 input, 1 output, 2 errors, 3 the final Status, 4 the terminal size, 255 (version 5) closes a channel. Source:
apimachinery ``remotecommand``, client-go ``websocket.go``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiohttp import WSMsgType, web

from syncline.cluster.verbs.subresources.connections import OLDEST, PROTOCOLS
from syncline.kube.client import Session
from syncline.kube.objects import Obj

STDIN, STDOUT, STATUS, RESIZE, CLOSE = 0, 1, 3, 4, 255
MESSAGE_BYTES = 1024 * 1024
"""Size limit of a client message."""
WAITING_MESSAGES = 64
"""Output messages buffered for a slow client; when they are full, the command blocks."""
HEARTBEAT_S = 30.0
LOOK_S = 1.0
"""How often blocked output checks whether the client is still connected."""


async def converse(incoming: web.BaseRequest, session: Session) -> web.StreamResponse:
    """Carry both directions until the command ends or the client leaves, then end both."""
    socket = web.WebSocketResponse(protocols=PROTOCOLS, max_msg_size=MESSAGE_BYTES, heartbeat=HEARTBEAT_S)
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[tuple[int, bytes] | int] = asyncio.Queue(WAITING_MESSAGES)

    over = threading.Event()

    def put(item: tuple[int, bytes] | int) -> None:
        """Queue output from a thread of the session; block until there is room or the connection ends."""
        if over.is_set() or loop.is_closed():
            return
        placed = asyncio.run_coroutine_threadsafe(waiting.put(item), loop)
        while not (over.is_set() or placed.done()):
            with contextlib.suppress(TimeoutError):
                placed.result(LOOK_S)
        placed.cancel()

    writer = ThreadPoolExecutor(1, "exec input")
    listening: asyncio.Task[None] | None = None
    try:
        await socket.prepare(incoming)
        await socket.send_bytes(bytes([STDOUT]))  # confirms to the client that the connection is open
        session.start(lambda stream, data: put((stream, data)), put)
        listening = asyncio.create_task(_listen(socket, session, writer))
        while True:
            item = await waiting.get()
            if isinstance(item, int):
                said = status_of_exit(item)
                text = said.get("message", "") if socket.ws_protocol == OLDEST else json.dumps(said)
                if text:
                    await socket.send_bytes(bytes([STATUS]) + text.encode())
                break
            await socket.send_bytes(bytes([item[0]]) + item[1])
        await socket.close()
    except ConnectionError:
        pass  # The client left.
    finally:
        over.set()
        session.close()
        if listening is not None:
            listening.cancel()
        writer.shutdown(wait=False, cancel_futures=True)
    return socket


async def _listen(socket: web.WebSocketResponse, session: Session, writer: ThreadPoolExecutor) -> None:
    """Pass the client's messages to the session, in order; end the command when the connection ends."""
    loop = asyncio.get_running_loop()
    async for message in socket:
        data = message.data if message.type is WSMsgType.BINARY else b""
        if not data:
            continue
        channel, content = data[0], data[1:]
        if channel == STDIN:
            await loop.run_in_executor(writer, session.write, content)
        elif channel == CLOSE and content[:1] == bytes([STDIN]):
            await loop.run_in_executor(writer, session.close_input)
        elif channel == RESIZE:
            _resize(session, content)
    session.close()


def _resize(session: Session, content: bytes) -> None:
    """Resize the terminal; ignore a malformed size."""
    try:
        size: Any = json.loads(content)
        session.resize(int(size["Width"]), int(size["Height"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return


def status_of_exit(code: int) -> Obj:
    """Return the final Status, in the words of a kubelet."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
