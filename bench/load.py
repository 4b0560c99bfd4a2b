"""The load, in a process of its own: ``python -m bench.load`` reads a task as JSON and prints what came of it.

In a path ``{i}`` is the number of the request (``modulo`` begins it again), in a body also ``{now}`` the wall clock.

Tasks: ``requests`` (as many as fit into ``seconds``, or ``count`` of them) over keep-alive TLS connections, and
``fanout`` (watchers, and how long a change takes to reach them).
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientTimeout, TCPConnector

from bench.processes import Server, client_context

CONNECTIONS = 16
RUN_LIMIT_S = 120


@dataclass(frozen=True, slots=True)
class Rate:
    """``cpu_ms``: of the server, per request."""

    count: int
    seconds: float
    median_ms: float
    p99_ms: float
    cpu_ms: float

    @property
    def per_s(self) -> float:
        return self.count / self.seconds


def measure(server: Server, method: str, path: str, **task: Any) -> Rate:
    """Load ``server`` from another process. ``{i}`` in path and body counts the requests."""
    before = server.cpu_s()
    found = _run({"task": "requests", "method": method, "path": path, **_address(server), **task})
    cpu_s = server.cpu_s() - before
    return Rate(found["count"], found["seconds"], found["median_ms"], found["p99_ms"], 1000 * cpu_s / found["count"])


def fanout_ms(server: Server, collection: str, name: str, *, watchers: int, changes: int) -> tuple[float, float]:
    """Milliseconds from sending a change to its event at a watcher: the median over all, and the median of the last."""
    task = {"task": "fanout", "collection": collection, "name": name, "watchers": watchers, "changes": changes}
    found = _run(task | _address(server))
    return found["median_ms"], found["last_ms"]


def _address(server: Server) -> dict[str, Any]:
    return {"url": server.url, "kubeconfig": str(server.kubeconfig)}


def _run(task: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.load"],
        input=json.dumps(task),
        text=True,
        stdout=subprocess.PIPE,
        timeout=RUN_LIMIT_S,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# -- in the other process -----------------------------------------------------------------------------------------


def _session(task: dict[str, Any], connections: int) -> ClientSession:
    context = client_context(Path(task["kubeconfig"]))
    connector = TCPConnector(limit=connections, ssl=context)
    headers = {"Accept-Encoding": "identity"}
    return ClientSession(task["url"], connector=connector, headers=headers, timeout=ClientTimeout(total=RUN_LIMIT_S))


async def _requests(task: dict[str, Any]) -> dict[str, Any]:
    path, method = task["path"], task["method"]
    body = json.dumps(task["body"]) if "body" in task else None
    headers = {"Content-Type": task.get("content", "application/json")} if body else {}
    latencies: list[float] = []
    numbers = iter(range(task.get("start", 0), task.get("start", 0) + task.get("count", 10**9)))
    modulo, pace = task.get("modulo", 10**9), task.get("per_s")
    started = time.perf_counter()
    async with _session(task, CONNECTIONS) as session:
        stop = time.perf_counter() + task.get("seconds", RUN_LIMIT_S)

        async def ask() -> None:
            for number in numbers:
                if pace:
                    await asyncio.sleep(max(0.0, started + number / pace - time.perf_counter()))
                begun = time.perf_counter()
                if begun > stop:
                    return
                shown = str(number % modulo)
                raw = body.replace("{i}", shown).replace("{now}", f"{time.time():.6f}") if body else None
                async with session.request(method, path.replace("{i}", shown), data=raw, headers=headers) as got:
                    text = await got.read()
                    if got.status >= 300:
                        raise SystemExit(f"{method} {path}: {got.status} {text[:300]!r}")
                latencies.append(time.perf_counter() - begun)

        begun = time.perf_counter()
        await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))
        seconds = time.perf_counter() - begun
    latencies.sort()
    return {
        "count": len(latencies),
        "seconds": seconds,
        "median_ms": 1000 * statistics.median(latencies),
        "p99_ms": 1000 * latencies[int(len(latencies) * 0.99)],
    }


async def _fanout(task: dict[str, Any]) -> dict[str, Any]:
    watchers, path = task["watchers"], f"{task['collection']}/{task['name']}"
    sent: dict[str, float] = {}
    seen: dict[str, list[float]] = {}
    arrived = asyncio.Event()
    async with _session(task, watchers + 1) as session:
        async with session.get(task["collection"]) as listed:
            revision = (await listed.json())["metadata"]["resourceVersion"]
        opened = asyncio.Semaphore(0)

        async def watch() -> None:
            query = {"watch": "true", "resourceVersion": revision, "fieldSelector": f"metadata.name={task['name']}"}
            async with session.get(task["collection"], params=query) as stream:
                opened.release()
                async for line in stream.content:
                    stamp = json.loads(line)["object"]["data"]["stamp"]
                    seen[stamp].append(time.perf_counter() - sent[stamp])
                    if len(seen[stamp]) == watchers:
                        arrived.set()

        running = [asyncio.create_task(watch()) for _ in range(watchers)]
        for _ in running:
            await opened.acquire()
        headers = {"Content-Type": "application/merge-patch+json"}
        for number in range(task["changes"]):
            stamp = f"n{number}"
            seen[stamp] = []
            arrived.clear()
            sent[stamp] = time.perf_counter()
            async with session.patch(path, data=json.dumps({"data": {"stamp": stamp}}), headers=headers) as done:
                await done.read()
            await asyncio.wait_for(arrived.wait(), 10)
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    every = [1000 * latency for latencies in seen.values() for latency in latencies]
    last = [1000 * max(latencies) for latencies in seen.values()]
    return {"median_ms": statistics.median(every), "last_ms": statistics.median(last)}


def _loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def main() -> None:
    task = json.load(sys.stdin)
    with asyncio.Runner(loop_factory=_loop) as runner:
        print(json.dumps(runner.run(_fanout(task) if task["task"] == "fanout" else _requests(task))))


if __name__ == "__main__":
    main()
