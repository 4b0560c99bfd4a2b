"""Starts what is measured as processes of their own, waits until they answer, reads their time and memory."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_LIMIT_S = 30.0
LOOK_EVERY_S = 0.005
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True, slots=True)
class Running:
    """``ready_s``: from the process' start to its first 200."""

    pid: int
    port: int
    ready_s: float
    kubeconfig: Path

    def cpu_s(self) -> float:
        """User and system time so far, with ended children."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(field) for field in fields[11:13]) / TICKS_PER_S

    def resident_mib(self) -> float:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * PAGE_BYTES / 2**20


@contextlib.contextmanager
def running(command: list[str], folder: Path, port: int, probe: str = "/readyz") -> Iterator[Running]:
    """Run ``command`` until the block ends. It writes its kubeconfig to ``folder/kubeconfig`` and serves TLS."""
    begun = time.perf_counter()
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        _await_answer(process, port, probe, begun, folder)
        yield Running(process.pid, port, time.perf_counter() - begun, folder / "kubeconfig")
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_answer(process: subprocess.Popen[bytes], port: int, probe: str, begun: float, folder: Path) -> None:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the certificate is not known before the process has made it
    while time.perf_counter() - begun < START_LIMIT_S:
        if process.poll() is not None:
            raise SystemExit(f"{process.args}: ended with {process.returncode}:\n{(folder / 'output').read_text()}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            link = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=5)
            link.request("GET", probe)
            if link.getresponse().status == 200:
                return
        time.sleep(LOOK_EVERY_S)
    raise SystemExit(f"{process.args}: no answer in {START_LIMIT_S} s")


def syncline(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "import sys; from syncline.cli.main import main; sys.exit(main())", *arguments]


def apiserver(folder: Path, port: int, *more: str) -> list[str]:
    kubeconfig = str(folder / "kubeconfig")
    return syncline("apiserver", "--listen", f"127.0.0.1:{port}", "--kubeconfig-out", kubeconfig, *more)


# -- talking to it ------------------------------------------------------------------------------------------------


def client_context(kubeconfig: Path) -> ssl.SSLContext:
    """TLS as the administrator of a kubeconfig."""
    access = json.loads(kubeconfig.read_text())
    cluster, user = access["clusters"][0]["cluster"], access["users"][0]["user"]
    context = ssl.create_default_context(cadata=_decoded(cluster["certificate-authority-data"]))
    pair = kubeconfig.with_name("admin.pem")
    with os.fdopen(os.open(pair, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(_decoded(user["client-certificate-data"]) + _decoded(user["client-key-data"]))
    context.load_cert_chain(pair)
    return context


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()


class Blocking:
    """One connection, one request after the other: for preparing and polling."""

    def __init__(self, server: Running) -> None:
        context = client_context(server.kubeconfig)
        self._link = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=60)

    def send(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        """The decoded answer; a refusal ends the run."""
        raw = None if body is None else json.dumps(body)
        self._link.request(method, path, raw, {"Content-Type": content})
        answer = self._link.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {text[:400]!r}")
        return json.loads(text)
