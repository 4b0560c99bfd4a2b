"""Watchers, in a process of their own: ``python -m bench.watchers`` reads a task as JSON and prints a line of JSON when
all watch, and another when its input ends.

Bytes are counted, not decoded: of each read only the last event's stamp is looked at, so that the load does not measure
itself. A stamp is the wall clock of who wrote it, on the same machine.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.load import _loop
from bench.processes import client_context

OPENING = 32
"""Handshakes at once."""
_STAMP = re.compile(rb'"stamp":"([0-9.]+)"')


class Watcher(asyncio.Protocol):
    """One watch over its own TLS connection, as bytes."""

    def __init__(self, request: bytes) -> None:
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.events = 0
        self.latencies: list[float] = []
        self.lost = False
        self._request = request
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        if not self.opened.done():
            self._head += data
            if b"\r\n\r\n" not in self._head:
                return
            status, data = self._head[9:12], self._head.partition(b"\r\n\r\n")[2]
            if status != b"200":
                self.opened.set_exception(SystemExit(f"a watch was refused: {self._head[:300]!r}"))
                return
            self.opened.set_result(None)
        self.events += data.count(b'"type":"MODIFIED"') + data.count(b'"type":"ADDED"')
        stamps = _STAMP.findall(data)
        if stamps:
            self.latencies.append(time.time() - float(stamps[-1]))

    def connection_lost(self, _error: Exception | None) -> None:
        self.lost = True


async def _watch(task: dict[str, Any]) -> None:
    place = urlsplit(task["url"])
    context = client_context(Path(task["kubeconfig"]))
    line = f"GET {task['path']} HTTP/1.1\r\nHost: {place.netloc}\r\nAccept: application/json\r\n\r\n"
    gate = asyncio.Semaphore(OPENING)
    loop = asyncio.get_running_loop()

    async def start() -> Watcher:
        async with gate:
            _, made = await loop.create_connection(
                lambda: Watcher(line.encode()), place.hostname, place.port, ssl=context, server_hostname=place.hostname
            )
            await made.opened
            return made

    begun = time.perf_counter()
    watchers = await asyncio.gather(*(start() for _ in range(task["watchers"])))
    print(json.dumps({"opened_s": time.perf_counter() - begun}), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    every = sorted(latency for one in watchers for latency in one.latencies)
    found = {
        "events": sum(one.events for one in watchers),
        "fewest": min(one.events for one in watchers),
        "most": max(one.events for one in watchers),
        "lost": sum(one.lost for one in watchers),
        "median_ms": 1000 * every[len(every) // 2] if every else 0.0,
        "p99_ms": 1000 * every[int(len(every) * 0.99)] if every else 0.0,
    }
    print(json.dumps(found), flush=True)


def main() -> None:
    task = json.loads(sys.stdin.readline())
    with asyncio.Runner(loop_factory=_loop) as runner:
        runner.run(_watch(task))


if __name__ == "__main__":
    main()
