"""Starts what is measured as processes of their own, waits until they answer, reads their time and memory."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from syncline.kube.transport.kubeconfig import load_kubeconfig

START_LIMIT_S = 300.0
FIRST_PORT, PORTS = 12_000, 18_000
"""Below what Linux gives to who asks for any port (from 32768), and below the NodePorts of a real cluster."""
_given = itertools.count()
LOOK_EVERY_S = 0.005
IDLE_S = 5.0
"""After which a connection is opened again."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def free_port() -> int:
    """A port where nobody listens, of those that the system gives nobody by itself: so it stays free until its server
    is up, and between two lives of one. Processes begin at different places and go round."""
    for _ in range(PORTS):
        port = FIRST_PORT + (os.getpid() * 64 + next(_given)) % PORTS
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise SystemExit(f"all ports from {FIRST_PORT} to {FIRST_PORT + PORTS - 1} are taken")


class Server(Protocol):
    """What can be loaded and looked at: one of ours, or a peer."""

    @property
    def url(self) -> str: ...

    @property
    def kubeconfig(self) -> Path: ...

    def cpu_s(self) -> float: ...

    def resident_mib(self) -> float: ...


def cpu_s_of(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:13]) / TICKS_PER_S


def cpu_s_with_ended(pid: int) -> float:
    """With that of the children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return cpu_s_of(pid) + sum(int(each) for each in fields[13:15]) / TICKS_PER_S


def resident_mib_of(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * PAGE_BYTES / 2**20


@dataclass(frozen=True, slots=True)
class Running:
    """``ready_s``: from the process' start to its first 200."""

    pid: int
    port: int
    ready_s: float
    kubeconfig: Path

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def cpu_s(self) -> float:
        return cpu_s_of(self.pid)

    def resident_mib(self) -> float:
        return resident_mib_of(self.pid)


@contextlib.contextmanager
def running(command: list[str], folder: Path, port: int, probe: str = "/readyz") -> Iterator[Running]:
    """Run ``command`` until the block ends. It writes its kubeconfig to ``folder/kubeconfig`` and serves TLS."""
    begun = time.perf_counter()
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        _await_answer(process, port, probe, begun, folder)
        ready_s = time.perf_counter() - begun
        while not (folder / "kubeconfig").exists() and time.perf_counter() - begun < START_LIMIT_S:
            time.sleep(LOOK_EVERY_S)  # it answers a moment before it has written how to get in
        yield Running(process.pid, port, ready_s, folder / "kubeconfig")
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def running_plain(command: list[str], log: Path, answers: Callable[[], bool], **options: Any) -> Iterator[int]:
    """Run ``command``, which answers as ``answers`` finds out, until the block ends; the id of its process."""
    begun = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, **options)
    try:
        while not answers():
            if process.poll() is not None or time.perf_counter() - begun > START_LIMIT_S:
                raise SystemExit(f"{process.args!r}: does not answer:\n{log.read_text()[-2000:]}")
            time.sleep(LOOK_EVERY_S * 10)
        yield process.pid
    finally:
        process.terminate()
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
            raise SystemExit(f"{process.args!r}: ended with {process.returncode}:\n{(folder / 'output').read_text()}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            link = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=5)
            link.request("GET", probe)
            if link.getresponse().status == 200:
                return
        time.sleep(LOOK_EVERY_S)
    raise SystemExit(f"{process.args!r}: no answer in {START_LIMIT_S} s")


def syncline(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "import sys; from syncline.cli.main import main; sys.exit(main())", *arguments]


def apiserver(folder: Path, port: int, *more: str) -> list[str]:
    kubeconfig = str(folder / "kubeconfig")
    return syncline("apiserver", "--listen", f"127.0.0.1:{port}", "--kubeconfig-out", kubeconfig, *more)


# -- talking to it ------------------------------------------------------------------------------------------------


def client_context(kubeconfig: Path) -> ssl.SSLContext:
    """TLS as the administrator of a kubeconfig."""
    access = load_kubeconfig(str(kubeconfig))
    if not access.ca_pem or not access.certificate_pem or access.key_pem is None:
        raise SystemExit(f"{kubeconfig}: the load needs a client certificate and the cluster's authority")
    context = ssl.create_default_context(cadata=access.ca_pem)
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as pair:  # made so that only we can read it
        pair.write(access.certificate_pem.rstrip() + "\n" + access.key_pem.reveal())
        pair.flush()
        context.load_cert_chain(pair.name)
    return context


class Blocking:
    """One connection, one request after the other: for preparing and polling."""

    def __init__(self, server: Server) -> None:
        context = client_context(server.kubeconfig)
        self._link = http.client.HTTPSConnection(urlsplit(server.url).netloc, context=context, timeout=60)
        self._used = time.perf_counter()

    def send(self, method: str, path: str, body: Any = None, content: str = "application/json") -> Any:
        """The decoded answer; a refusal ends the run."""
        return json.loads(self.text(path, method, body, content))

    def find(self, path: str) -> Any:
        """The decoded object, or None where there is none."""
        self._link.request("GET", path)
        answer = self._link.getresponse()
        text = answer.read()
        return json.loads(text) if answer.status < 300 else None

    def text(self, path: str, method: str = "GET", body: Any = None, content: str = "application/json") -> str:
        raw = body if body is None or isinstance(body, bytes) else json.dumps(body)
        if time.perf_counter() - self._used > IDLE_S:
            self._link.close()  # the server may have done so, and a write is not repeated
        self._used = time.perf_counter()
        self._link.request(method, path, raw, {"Content-Type": content})
        answer = self._link.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {text[:400]!r}")
        return text.decode()
