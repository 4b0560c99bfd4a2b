"""What the machine allows: a bare aiohttp handler over the same TLS stack, and SQLite with nothing around it.

``python -m bench.limits PORT FOLDER`` serves the bytes of ``FOLDER/body`` on every path.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import ssl
import sys
import time
from pathlib import Path

from aiohttp import web

from bench.load import _loop
from bench.processes import Running
from syncline.base.clock import SystemClock
from syncline.cluster.access.pki import create_keys, kubeconfig_for


def bare_server(folder: Path, port: int) -> list[str]:
    return [sys.executable, "-m", "bench.limits", str(port), str(folder)]


def answer_with(server: Running, body: bytes) -> None:
    """From now on the bare server answers with these bytes."""
    (server.kubeconfig.parent / "body").write_bytes(body)


async def _serve(port: int, folder: Path) -> None:
    keys = create_keys(SystemClock().now())
    pair = folder / "server.pem"
    pair.write_text(keys.server.certificate_pem + keys.server.key_pem.reveal())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    context.load_verify_locations(cadata=keys.ca_pem)
    context.verify_mode = ssl.CERT_OPTIONAL
    access = kubeconfig_for(server=f"https://127.0.0.1:{port}", ca_pem=keys.ca_pem, client=keys.admin)
    (folder / "kubeconfig").write_text(json.dumps(access))
    bodies: dict[str, bytes] = {}

    async def handle(request: web.BaseRequest) -> web.Response:
        if request.path == "/reload":
            bodies["now"] = (folder / "body").read_bytes()
        return web.Response(body=bodies.get("now", b"{}"), content_type="application/json")

    await asyncio.get_running_loop().create_server(
        web.Server(handle, access_log=None), "127.0.0.1", port, ssl=context, backlog=1024
    )
    await asyncio.Event().wait()


def sqlite_rows_per_s(folder: Path, payload: bytes, *, batch: int, seconds: float) -> float:
    """Rows of ``payload`` per second, ``batch`` in a transaction, synced to disk as the cluster syncs."""
    connection = sqlite3.connect(folder / f"limit-{batch}.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE objects (name TEXT PRIMARY KEY, raw BLOB NOT NULL)")
    begun, rows = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        connection.execute("BEGIN IMMEDIATE")
        names = [(f"object-{rows + i}", payload) for i in range(batch)]
        connection.executemany("INSERT INTO objects VALUES (?, ?)", names)
        connection.execute("COMMIT")
        rows += batch
    spent = time.perf_counter() - begun
    connection.close()
    return rows / spent


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=_loop) as runner:
        runner.run(_serve(int(sys.argv[1]), Path(sys.argv[2])))
