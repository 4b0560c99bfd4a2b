"""A proxy on loopback between a client and a plain HTTP server, with faults: cut, frozen, slow, or answering itself.

Runs in a thread of its own. ``first`` are faults of the first connections, one each, before ``mode`` counts: so a start
under faults needs no timing.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import Future

PASS, CUT, FREEZE, DELAY = "pass", "cut", "freeze", "delay"
DELAY_S = 0.2
HTML = b"<!doctype html><title>Log in</title>"


def _page(status: str, body: bytes, media: str = "text/html", *more: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-type: {media}", f"content-length: {len(body)}", *more, "connection: close"]
    head = "\r\n".join((*lines, "", ""))
    return head.encode() + body


ANSWERS = {
    "login page": _page("200 OK", HTML),
    "500": _page("500 Internal Server Error", b"<h1>500</h1>"),
    "503": _page("503 Service Unavailable", b"no healthy upstream", "text/plain"),
    "404": _page("404 Not Found", b"<h1>404</h1>"),
    "redirect": _page("302 Found", b"", "text/html", "location: http://127.0.0.1:1/login"),
    "busy": _page("429 Too Many Requests", b"slow down", "text/plain", "retry-after: 1"),
    "truncated": _page("200 OK", b'{"kind":"APIVersions","versions":["v1"'),
    "other JSON": _page("200 OK", b'{"status":"ok"}', "application/json"),
}


class FaultProxy:
    """``mode`` is PASS, CUT, FREEZE, DELAY or a name of ``ANSWERS``; :meth:`set` also ends or holds what is open."""

    def __init__(self, port: int, first: tuple[str, ...] = ()) -> None:
        self._target = port
        self._first = list(first)
        self.mode = PASS
        self.refused = 0
        """Connections that met a fault other than a delay."""
        self.passed_bytes = 0
        """Bytes passed on, both ways."""
        self._open: set[asyncio.StreamWriter] = set()
        started: Future[int] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(started)), daemon=True)
        self._thread.start()
        self.port = started.result(60)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def set(self, mode: str) -> None:
        done: Future[None] = Future()

        def change() -> None:
            self.mode = mode
            if mode != FREEZE:
                self._thawed.set()
            else:
                self._thawed.clear()
            if mode not in (PASS, FREEZE, DELAY):
                for writer in self._open:
                    writer.transport.abort()
            done.set_result(None)

        self._loop.call_soon_threadsafe(change)
        done.result(60)

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(60)

    async def _serve(self, started: Future[int]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop, self._thawed = asyncio.Event(), asyncio.Event()
        self._thawed.set()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        started.set_result(server.sockets[0].getsockname()[1])
        await self._stop.wait()
        server.close()
        for writer in self._open:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        fault = self._first.pop(0) if self._first else self.mode
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            if fault in ANSWERS:
                self.refused += 1
                await reader.readuntil(b"\r\n\r\n")
                writer.write(ANSWERS[fault])
                await writer.drain()
            elif fault == CUT:
                self.refused += 1
            else:
                await self._pass_on(reader, writer)
        writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        ends = {writer, back}
        self._open |= ends
        try:
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        finally:
            self._open -= ends
            back.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(2**16):
                self.passed_bytes += len(data)
                await self._thawed.wait()
                if self.mode == DELAY:
                    await asyncio.sleep(DELAY_S)
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()
