"""One HTTP/2 connection: :class:`Http2` gives gRPC calls to :mod:`syncline.web.serving.grpc`, all else to REST.

The ``h2`` package keeps the protocol's state; here are the socket, flow control in both directions, and the bounds:
streams, headers, bodies that are slow or large, streams that are opened and taken back, answers that are not read.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import cast

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

from syncline.web.serving.bounds import Usage

log = logging.getLogger("syncline.web")

WINDOW_BYTES = 1024 * 1024
"""What a client may send on one stream before it waits for us."""
CONNECTION_WINDOW_BYTES = 4 * WINDOW_BYTES
WRITE_BYTES = 256 * 1024
"""Bytes of a stream that are handed to the transport at once, so that streams take turns."""


class StreamClosed(Exception):
    """The client has gone, or took its stream back."""


class Stream:
    """One request and its response."""

    def __init__(self, connection: Http2, number: int, headers: list[tuple[str, str]]) -> None:
        self.number = number
        self.fields = dict(headers)
        cookies = [value for name, value in headers if name == "cookie"]
        if len(cookies) > 1:  # HTTP/2 clients may send each in a field of its own.
            self.fields["cookie"] = "; ".join(cookies)
        self._connection = connection
        self._pieces: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self.ended = False
        self.closed = False
        self.held = 0
        self.room = asyncio.Event()
        """Set while the client may have opened its window."""
        self.task: asyncio.Task[None] | None = None

    @property
    def remote(self) -> str:
        return self._connection.remote

    def feed(self, data: bytes) -> None:
        self.held += len(data)
        self._pieces.append(data)
        self._arrived.set()

    def end(self) -> None:
        self.ended = True
        self._arrived.set()

    def close(self) -> None:
        self.closed = self.ended = True
        self._arrived.set()
        self.room.set()

    async def receive(self, limit_s: float) -> bytes:
        """Return the next bytes of the body, empty at its end. Raises TimeoutError, StreamClosed."""
        while not self._pieces:
            if self.closed:
                raise StreamClosed
            if self.ended:
                return b""
            self._arrived.clear()
            async with asyncio.timeout(limit_s):
                await self._arrived.wait()
        data = self._pieces.popleft()
        self._connection.taken(self, len(data))
        return data

    def release(self) -> None:
        """Count what has arrived no longer: its message was handled."""
        self._connection.freed(self)

    def respond(self, headers: Iterable[tuple[str, str]], *, end: bool = False) -> None:
        """Send headers, or trailers. Raises StreamClosed."""
        self._connection.send_headers(self, list(headers), end=end)

    async def send(self, data: bytes, *, end: bool = False) -> None:
        """Send bytes as the client's windows allow. Raises StreamClosed; resets a stream that is not read."""
        await self._connection.send_data(self, data, end=end)


class Http2(asyncio.Protocol):
    """The protocol of one connection; ``serve`` answers a stream and never raises but for cancellation."""

    def __init__(self, usage: Usage, serve: Callable[[Stream], Awaitable[None]]) -> None:
        self._usage = usage
        self._bounds = usage.bounds
        self._serve = serve
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._streams: dict[int, Stream] = {}
        self._writable = asyncio.Event()
        self._writable.set()
        self._resets: deque[float] = deque()
        self._idle: asyncio.TimerHandle | None = None
        self.remote = ""
        self._conn = h2.connection.H2Connection(
            h2.config.H2Configuration(client_side=False, header_encoding="utf-8", logger=None)
        )

    # -- the transport -----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport = cast(asyncio.Transport, transport)  # uvloop's are of classes of their own
        peer = transport.get_extra_info("peername")
        self.remote = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        self._conn.local_settings = h2.settings.Settings(
            client=False,
            initial_values={
                h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: self._bounds.streams,
                h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: self._bounds.header_bytes,
                h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
                h2.settings.SettingCodes.ENABLE_PUSH: 0,
            },
        )
        self._conn.initiate_connection()
        self._conn.increment_flow_control_window(CONNECTION_WINDOW_BYTES - 65_535)
        self._flush()
        self._rest()

    def data_received(self, data: bytes) -> None:
        try:
            events = self._conn.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            log.debug("%s: %s", self.remote, error)
            self._flush()
            self._abandon()
            return
        for event in events:
            self._take(event)
            if self._transport is None:
                return
        self._flush()
        if self._transport is not None and self._transport.get_write_buffer_size() > self._bounds.unsent_bytes:
            self._abandon()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._writable.set()
        if self._idle is not None:
            self._idle.cancel()
        for stream in list(self._streams.values()):
            self._forget(stream, cancel=True)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # -- what arrives ------------------------------------------------------------------------------------------------

    def _take(self, event: h2.events.Event) -> None:
        if isinstance(event, h2.events.RequestReceived):
            self._begin(event)
        elif isinstance(event, h2.events.DataReceived):
            self._data(event)
        elif isinstance(event, h2.events.StreamEnded):
            stream = self._streams.get(event.stream_id)
            if stream is not None:
                stream.end()
        elif isinstance(event, h2.events.StreamReset):
            self._taken_back(event.stream_id)
        elif isinstance(event, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            self._opened(getattr(event, "stream_id", 0))
        elif isinstance(event, h2.events.ConnectionTerminated):
            self._abandon(counted=False)

    def _begin(self, event: h2.events.RequestReceived) -> None:
        headers = [(str(name), str(value)) for name, value in event.headers]
        stream = Stream(self, event.stream_id, headers)
        self._streams[event.stream_id] = stream
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        stream.task = self._loop.create_task(self._run(stream))

    async def _run(self, stream: Stream) -> None:
        try:
            await self._serve(stream)
        except StreamClosed:
            pass
        finally:
            if stream.number in self._streams:
                self._streams.pop(stream.number)
                self._finish(stream)

    def _finish(self, stream: Stream) -> None:
        """End a stream whose handler returned. A client that still sends is asked to stop."""
        self.freed(stream)
        closed = stream.closed
        stream.close()
        if self._transport is None or closed:
            return
        state = self._conn.streams.get(stream.number)
        if not stream.ended or (state is not None and not state.closed):
            self._reset(stream.number, h2.errors.ErrorCodes.NO_ERROR)
        if not self._streams:
            self._rest()

    def _data(self, event: h2.events.DataReceived) -> None:
        stream = self._streams.get(event.stream_id)
        size = event.flow_controlled_length or 0
        if stream is None:
            self._conn.acknowledge_received_data(size, event.stream_id)
            return
        padding = size - len(event.data)
        if padding:
            self._conn.acknowledge_received_data(padding, event.stream_id)
        if event.data:
            stream.feed(event.data)
            if not self._usage.hold(len(event.data)):
                self._reset(stream.number, h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
                self._forget(stream, cancel=True)

    def taken(self, stream: Stream, size: int) -> None:
        """Let the client send as much again as its handler took."""
        if self._transport is None:
            return
        try:
            self._conn.acknowledge_received_data(size, stream.number)
        except (h2.exceptions.ProtocolError, KeyError):
            return  # The stream has ended meanwhile.
        self._flush()

    def freed(self, stream: Stream) -> None:
        """Count the bytes of a stream no longer."""
        self._usage.free(stream.held)
        stream.held = 0

    def _taken_back(self, number: int) -> None:
        stream = self._streams.get(number)
        now = self._loop.time()
        self._resets.append(now)
        while self._resets and now - self._resets[0] > self._bounds.resets_s:
            self._resets.popleft()
        if stream is not None:
            self._forget(stream, cancel=True)
        if len(self._resets) > self._bounds.resets:
            self._conn.close_connection(h2.errors.ErrorCodes.ENHANCE_YOUR_CALM)
            self._flush()
            self._abandon()

    def _opened(self, number: int) -> None:
        if number:
            stream = self._streams.get(number)
            if stream is not None:
                stream.room.set()
            return
        for stream in self._streams.values():
            stream.room.set()

    def _forget(self, stream: Stream, *, cancel: bool) -> None:
        if self._streams.pop(stream.number, None) is None:
            return
        self.freed(stream)
        stream.close()
        if cancel and stream.task is not None:
            stream.task.cancel()
        if not self._streams and self._transport is not None:
            self._rest()

    # -- what leaves -------------------------------------------------------------------------------------------------

    def send_headers(self, stream: Stream, headers: list[tuple[str, str]], *, end: bool) -> None:
        self._check(stream)
        self._conn.send_headers(stream.number, headers, end_stream=end)
        self._flush()

    async def send_data(self, stream: Stream, data: bytes, *, end: bool) -> None:
        view, at = memoryview(data), 0
        unsent = 0
        while at < len(view) or end:
            self._check(stream)
            window = min(self._conn.local_flow_control_window(stream.number), self._conn.max_outbound_frame_size)
            if window <= 0 and at < len(view):
                self._flush()
                unsent = 0
                await self._wait(stream, stream.room)
                continue
            piece = view[at : at + max(window, 0)]
            at += len(piece)
            last = end and at == len(view)
            self._conn.send_data(stream.number, bytes(piece), end_stream=last)
            unsent += len(piece)
            if last:
                break
            if unsent >= WRITE_BYTES:
                self._flush()
                unsent = 0
                await self._wait(stream, self._writable)
        self._flush()
        if not self._writable.is_set():
            await self._wait(stream, self._writable)

    async def _wait(self, stream: Stream, event: asyncio.Event) -> None:
        """Wait until the client reads; a stream that is not read for long is taken from it. Raises StreamClosed."""
        if event is stream.room:
            stream.room.clear()
        try:
            async with asyncio.timeout(self._bounds.stalled_s):
                await event.wait()
        except TimeoutError:
            self._usage.cut_off += 1
            if event is self._writable:
                self._abandon(counted=False)
            else:
                self._reset(stream.number, h2.errors.ErrorCodes.CANCEL)
                stream.closed = True
            raise StreamClosed from None

    def _check(self, stream: Stream) -> None:
        if stream.closed or self._transport is None or self._transport.is_closing():
            raise StreamClosed

    def _reset(self, number: int, code: h2.errors.ErrorCodes) -> None:
        try:
            self._conn.reset_stream(number, code)
        except h2.exceptions.ProtocolError:
            return  # It is closed already.
        self._flush()

    def _flush(self) -> None:
        data = self._conn.data_to_send()
        if data and self._transport is not None:
            self._transport.write(data)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _rest(self) -> None:
        """Close the connection if no request comes for long."""
        if self._idle is None:
            self._idle = self._loop.call_later(self._bounds.idle_s, self.leave)

    def leave(self) -> None:
        """Ask the client to go: no new streams; close if none is open."""
        if self._transport is None:
            return
        self._conn.close_connection()
        self._flush()
        if not self._streams:
            self._transport.close()

    def _abandon(self, *, counted: bool = True) -> None:
        """Close the connection at once, and end what runs for it."""
        self._usage.cut_off += counted
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close() if transport.get_write_buffer_size() < self._bounds.unsent_bytes else transport.abort()
        self._writable.set()
        for stream in list(self._streams.values()):
            self._forget(stream, cancel=True)
