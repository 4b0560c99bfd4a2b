"""What other people's programs cost the API: a fork loop and a loop of many sessions in pods, beside one that asks.

Each figure is given as a multiple of the undisturbed one, measured just before in the same process.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.processes import Blocking, Running, apiserver, free_port, running
from bench.table import Table

PODS = "/api/v1/namespaces/default/pods"
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
FORK_LOOP = "exec perl -e 'fork while 1'"
"""Goes on at the limit, where shells give up."""
BOMBS = {
    "a fork loop": FORK_LOOP,
    "400 busy processes": "for i in $(seq 400); do (while :; do :; done) & done; wait",
    "sessions without end": "while :; do setsid sh -c 'while :; do :; done' & done",
}
STARTS = 5
LONGEST_S = 120.0
_numbers = itertools.count()


def figures(table: Table, *, quick: bool) -> None:
    seconds = 2.0 if quick else 10.0
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        folder, port = Path(place), free_port()
        with running(apiserver(folder, port, "--nodes", "1", "--run-commands"), folder, port) as server:
            table.title("Beside hostile pods: p99 of GET, and until a stranger's Pod runs")
            _until(server, ACCOUNT, lambda found: True)
            quiet = _measured(server, seconds)
            table.row("undisturbed", f"{quiet[0]:.1f} ms", f"Pod {quiet[1]:.2f} s")
            for name, script in BOMBS.items():
                bomb = _pod(server, script)
                _until(server, f"{PODS}/{bomb}", _has_begun)
                p99, start = _measured(server, seconds)
                beside = f"Pod {start:.2f} s ({start / quiet[1]:.1f} ×)"
                table.row(f"beside {name}", f"{p99:.1f} ms ({p99 / quiet[0]:.1f} ×)", beside)
                Blocking(server).send("DELETE", f"{PODS}/{bomb}?gracePeriodSeconds=0")


def _measured(server: Running, seconds: float) -> tuple[float, float]:
    """99th of the latency in ms, and the median of seconds until a Pod runs."""
    link, took = Blocking(server), []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        begun = time.perf_counter()
        link.send("GET", ACCOUNT)
        took.append(time.perf_counter() - begun)
    starts = []
    for _ in range(STARTS):
        begun = time.perf_counter()
        _until(server, f"{PODS}/{_pod(server, 'sleep 30')}", _has_begun)
        starts.append(time.perf_counter() - begun)
    return sorted(took)[int(len(took) * 0.99)] * 1000, sorted(starts)[STARTS // 2]


def _pod(server: Running, script: str) -> str:
    name = f"p{next(_numbers)}"
    container = {"name": "c", "image": "none", "command": ["sh", "-c", script]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    Blocking(server).send("POST", PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    return name


def _has_begun(pod: Any) -> bool:
    states = [each["state"] for each in pod.get("status", {}).get("containerStatuses", ())]
    return any("running" in state or "terminated" in state for state in states)


def _until(server: Running, path: str, found: Any) -> None:
    link, late = Blocking(server), time.perf_counter() + LONGEST_S
    while time.perf_counter() < late:
        try:
            if found(link.send("GET", path)):
                return
        except SystemExit:  # not there yet
            link = Blocking(server)
        time.sleep(0.01)
    raise SystemExit(f"{path}: not so after {LONGEST_S:g} s")
