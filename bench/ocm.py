"""Open Cluster Management's own programs as peers: its hub controllers and its agents, started against APIs of ours.

The folder of its programs (``--programs FOLDER``) holds ``registration``, ``work``, ``placement`` and ``addon`` as
upstream builds them. Everything listens on the loopback only. A program that ends by itself is started again, as its
Deployment would: an agent does so after it has its credentials.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.processes import START_LIMIT_S, cpu_s_of, free_port, resident_mib_of

HUB_PROGRAMS, AGENT_PROGRAMS = ("registration", "placement", "work", "addon"), ("registration", "work")
HUB_NAMESPACE, AGENT_NAMESPACE = "open-cluster-management-hub", "open-cluster-management-agent"
AGAIN_S = 0.5
"""After which an ended program is started again."""
END_S = 20.0


@dataclass(slots=True)
class Kept:
    """A program that is kept running until :meth:`end`; ``log`` has the output of all its lives."""

    command: Sequence[str]
    log: Path
    environment: dict[str, str]
    lives: int = 0
    ended_cpu_s: float = 0.0
    _process: subprocess.Popen[bytes] | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def begin(self) -> None:
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        with self.log.open("ab") as output:
            while not self._stop.is_set():
                self._process = subprocess.Popen(
                    self.command,
                    stdout=output,
                    stderr=output,
                    stdin=subprocess.DEVNULL,
                    env=self.environment,
                    cwd=self.log.parent,
                )
                self.lives += 1
                _, _, used = os.wait4(self._process.pid, 0)
                self.ended_cpu_s += used.ru_utime + used.ru_stime
                self._process = None
                self._stop.wait(AGAIN_S)

    @property
    def pid(self) -> int | None:
        process = self._process
        return process.pid if process else None

    def cpu_s(self) -> float:
        with contextlib.suppress(FileNotFoundError):
            return self.ended_cpu_s + (cpu_s_of(self.pid) if self.pid else 0.0)
        return self.ended_cpu_s

    def resident_mib(self) -> float:
        with contextlib.suppress(FileNotFoundError):
            return resident_mib_of(self.pid) if self.pid else 0.0
        return 0.0

    def end(self) -> None:
        self._stop.set()
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, 15)
        if self._thread is None:
            return
        self._thread.join(END_S)
        if self._thread.is_alive() and self.pid:
            os.kill(self.pid, 9)
            self._thread.join()


@dataclass(frozen=True, slots=True)
class Programs:
    """What runs, by name."""

    parts: dict[str, Kept]

    def cpu_s(self) -> float:
        return sum(each.cpu_s() for each in self.parts.values())

    def resident_mib(self) -> float:
        return sum(each.resident_mib() for each in self.parts.values())


def check_programs(programs: Path, names: Sequence[str]) -> None:
    if missing := [name for name in names if not (programs / name).exists()]:
        raise SystemExit(f"{programs}: {', '.join(missing)} not found; it must hold {', '.join(names)}")


@contextlib.contextmanager
def kept(commands: dict[str, Sequence[str]], folder: Path, more: Mapping[str, str] | None = None) -> Iterator[Programs]:
    """Run the commands until the block ends, with ``more`` in their environment; each writes to ``folder/NAME.log``."""
    folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"HOME": str(folder), "TMPDIR": str(folder), "GOMAXPROCS": "1", **(more or {})}
    parts = {
        name: Kept(command, folder / f"{name}.log", environment | {"POD_NAME": name})
        for name, command in commands.items()
    }
    try:
        for part in parts.values():
            part.begin()
        yield Programs(parts)
    finally:
        for part in parts.values():
            part.end()


def _controller(programs: Path, program: str, word: str, kubeconfig: Path, namespace: str, *more: str) -> list[str]:
    serving = ("--listen", f"127.0.0.1:{free_port()}", "--disable-leader-election")
    where = ("--kubeconfig", str(kubeconfig), "--namespace", namespace)
    return [str(programs / program), word, *where, *serving, *more]


@contextlib.contextmanager
def ocm_hub(
    programs: Path, folder: Path, kubeconfig: Path, *, features: Sequence[str] = (), more: Sequence[str] = ()
) -> Iterator[Programs]:
    """OCM's hub controllers until the block ends. The API has its definitions and the namespace
    ``open-cluster-management-hub``. ``features``: gates of the work controller; ``more``: flags of the registration
    controller."""
    check_programs(programs, HUB_PROGRAMS)
    gates = [f"--feature-gates={each}=true" for each in features]
    commands: dict[str, Sequence[str]] = {
        "hub-registration": _controller(programs, "registration", "controller", kubeconfig, HUB_NAMESPACE, *more),
        "hub-placement": _controller(programs, "placement", "controller", kubeconfig, HUB_NAMESPACE),
        "hub-work": _controller(programs, "work", "manager", kubeconfig, HUB_NAMESPACE, *gates),
        "hub-addon": _controller(programs, "addon", "manager", kubeconfig, HUB_NAMESPACE),
    }
    with kept(commands, folder) as running:
        yield running


@contextlib.contextmanager
def ocm_webhooks(programs: Path, folder: Path, kubeconfig: Path, certificates: Path) -> Iterator[dict[str, str]]:
    """OCM's admission webhooks of clusters (``registration``) and of works (``work``) until the block ends: their URLs.
    ``certificates`` has ``tls.crt`` and ``tls.key`` of 127.0.0.1. They listen on all addresses: they have no option for
    that."""
    check_programs(programs, ("registration", "work"))
    ports = {name: free_port() for name in ("registration", "work")}
    off = ("--health-probe-port=0", "--metrics-port=0", f"--certdir={certificates}")
    commands: dict[str, Sequence[str]] = {
        f"webhook-{name}": [str(programs / name), "webhook-server", f"--port={port}", *off]
        for name, port in ports.items()
    }
    with kept(commands, folder, {"KUBECONFIG": str(kubeconfig)}):
        for name, port in ports.items():
            wait_until(partial(_listens, port), f"the webhooks of {name}")
        yield {name: f"https://127.0.0.1:{port}" for name, port in ports.items()}


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def ocm_agent(
    programs: Path,
    folder: Path,
    cluster: str,
    bootstrap: Path,
    spoke: Path,
    *,
    sync_s: int = 2,
    more: Sequence[str] = (),
    work: Sequence[str] = (),
) -> Iterator[Programs]:
    """OCM's registration and work agents of ``cluster`` until the block ends: ``bootstrap`` and ``spoke`` are
    kubeconfigs, ``folder/hub`` has the credentials that the hub gave. ``more`` and ``work``: further flags of the
    registration and of the work agent. The spoke has the namespace ``open-cluster-management-agent``."""
    check_programs(programs, AGENT_PROGRAMS)
    credentials = folder / "hub"
    credentials.mkdir(parents=True, exist_ok=True)
    who = ("--spoke-cluster-name", cluster, "--agent-id", f"{cluster}-agent", "--hub-kubeconfig-dir", str(credentials))
    source = ("--workload-source-driver=kube", f"--workload-source-config={credentials / 'kubeconfig'}")
    commands: dict[str, Sequence[str]] = {
        f"{cluster}-registration": _controller(
            *(programs, "registration", "agent", spoke, AGENT_NAMESPACE),
            *(*who, "--bootstrap-kubeconfig", str(bootstrap), *more),
        ),
        f"{cluster}-work": _controller(
            *(programs, "work", "agent", spoke, AGENT_NAMESPACE),
            *(*who, *source, f"--status-sync-interval={sync_s}s", *work),
        ),
    }
    with kept(commands, folder) as running:
        yield running


def wait_until(reached: Callable[[], object], what: str, limit_s: float = START_LIMIT_S) -> None:
    """Wait until ``reached()`` is true."""
    until = time.perf_counter() + limit_s
    while not reached():
        if time.perf_counter() > until:
            raise SystemExit(f"{what}: not reached in {limit_s:g} s")
        time.sleep(0.1)
