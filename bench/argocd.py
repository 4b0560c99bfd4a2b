"""Argo CD's own ApplicationSet controller as a peer: its programs, started against an API of ours.

The folder of its programs (``--argocd FOLDER``) holds ``argocd-applicationset-controller`` and ``argocd-repo-server``
as upstream builds them, a ``redis-server``, and ``argocd`` if
repositories want credentials. Everything listens on the loopback only.
"""

from __future__ import annotations

import contextlib
import os
import socket
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.processes import cpu_s_with_ended, free_port, running_plain

PROGRAMS = ("argocd-applicationset-controller", "argocd-repo-server", "redis-server")


@dataclass(frozen=True, slots=True)
class Peer:
    """``parts``: its processes by name; ``webhook``: the URL at which it takes pushes."""

    parts: dict[str, int]
    webhook: str

    def cpu_s(self) -> float:
        """Of all its processes and the ones that these have ended."""
        return sum(cpu_s_with_ended(pid) for pid in self.parts.values())


@contextlib.contextmanager
def argocd(
    programs: Path, folder: Path, kubeconfig: Path, flags: Sequence[str] = (), *, looks_every_s: int = 180
) -> Iterator[Peer]:
    """Run them until the block ends. ``flags`` are more of the controller's; the repo-server looks at a remote again
    after ``looks_every_s``."""
    if missing := [name for name in PROGRAMS if not (programs / name).exists()]:
        raise SystemExit(f"{programs}: {', '.join(missing)} not found; it must hold {', '.join(PROGRAMS)}")
    folder.mkdir(parents=True, exist_ok=True)
    environment = _environment(programs, folder, kubeconfig)
    with contextlib.ExitStack() as closing:

        def start(name: str, port: int, ready: str, *words: str) -> int:
            command = [str(programs / name), *words]
            answers = (lambda: _listens(port)) if not ready else (lambda: serves(f"http://127.0.0.1:{port}{ready}"))
            options = {"env": environment, "cwd": folder}
            return closing.enter_context(running_plain(command, folder / f"{name}.log", answers, **options))

        redis, repo, repo_metrics = free_port(), free_port(), free_port()
        webhook, metrics, probe = free_port(), free_port(), free_port()
        parts = {
            "redis": start("redis-server", redis, "", "--port", str(redis), "--bind", "127.0.0.1", "--save", ""),
            "repo-server": start(
                *("argocd-repo-server", repo_metrics, "/metrics", "--address", "127.0.0.1"),
                *("--port", str(repo), "--redis", f"127.0.0.1:{redis}", "--loglevel", "warn"),
                *("--metrics-address", "127.0.0.1", "--metrics-port", str(repo_metrics)),
                *("--revision-cache-expiration", f"{looks_every_s}s"),
            ),
            "controller": start(
                *("argocd-applicationset-controller", metrics, "/metrics", "--namespace", "argocd"),
                *("--argocd-repo-server", f"127.0.0.1:{repo}", "--loglevel", "info"),
                *("--metrics-addr", f"127.0.0.1:{metrics}", "--probe-addr", f"127.0.0.1:{probe}"),
                *("--webhook-addr", f"127.0.0.1:{webhook}", *flags),
            ),
        }
        yield Peer(parts, f"http://127.0.0.1:{webhook}/api/webhook")


def _environment(programs: Path, folder: Path, kubeconfig: Path) -> dict[str, str]:
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    places = {name: str(folder / name) for name in ("TLS", "SSH", "GPG")}
    return os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "KUBECONFIG": str(kubeconfig),
        "TMPDIR": str(temporary),
        "HOME": str(folder),
        "ARGOCD_ASK_PASS_SOCK": str(folder / "ask-pass.sock"),
        "ARGOCD_GPG_ENABLED": "false",
        **{f"ARGOCD_{name}_DATA_PATH": place for name, place in places.items()},
    }


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def serves(url: str) -> bool:
    with contextlib.suppress(OSError), urllib.request.urlopen(url) as answer:
        return bool(answer.status == 200)
    return False
