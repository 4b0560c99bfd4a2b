"""``python -m bench hostile [--quick]``: the API's latency beside a page of hostile expressions.

Expressions run on the loop that serves the API, so each takes what its budget of steps allows and no more: printed is
what a step and a whole budget come to. Beside it stands what a read waits while others send YAML that is read slowly.
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import threading
import time
from pathlib import Path

from bench.processes import Blocking, Running, apiserver, free_port, running
from bench.table import Table
from syncline.gitops.sync.conditions import MAX_CONDITION_STEPS
from syncline.kube.cel.program import MAX_STEPS, compile_program
from syncline.kube.cel.types import DYN
from syncline.kube.cel.values import EvaluationError

__all__ = ["figures"]

LARGE = {"s": "x" * 300_000, "list": list(range(20_000)), "words": [f"t{number}" for number in range(20_000)]}
MANY = "lists.range(10000).all(x, {})"
PAGE = {
    "a text searched": "!object.s.contains('xy')",
    "a text matched": "!object.s.matches('(x+x+)+y')",
    "all matches of a text": "object.s.findAll('x').size() > 0",
    "patterns compiled": "!'a'.matches('(a{1,30}){1,30}' + string(x))",
    "a list sorted": "object.words.sort().size() > 0",
    "an entry looked for": "!(-1 in object.list)",
    "loops in loops": "object.list.all(y, true)",
    "zones looked for": "timestamp('2020-01-01T00:00:00Z').getHours('A/' + string(x)) > 0 || true",
}
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
READ = "/api/v1/namespaces/default"


def _spent(text: str, limit: int) -> tuple[int, float]:
    program, steps = compile_program(text, {"object": DYN}), [0]
    begun = time.perf_counter()
    with contextlib.suppress(EvaluationError):
        program.evaluate({"object": LARGE}, lambda count: steps.__setitem__(0, count), limit=limit)
    return steps[0], time.perf_counter() - begun


def _p99_ms(client: Blocking, seconds: float) -> float:
    end, taken = time.perf_counter() + seconds, []
    while time.perf_counter() < end:
        begun = time.perf_counter()
        client.send("GET", READ)
        taken.append((time.perf_counter() - begun) * 1e3)
    return statistics.quantiles(taken, n=100)[98]


def figures(table: Table, *, quick: bool) -> None:
    table.title("Hostile expressions: what their budgets come to")
    for name, inner in PAGE.items():
        steps, whole = _spent(MANY.format(inner), MAX_STEPS)
        _, one = _spent(MANY.format(inner), MAX_CONDITION_STEPS)
        beside = f"{whole * 1e9 / max(steps, 1):,.0f} ns a step; as a condition {one * 1e3:.1f} ms"
        table.row(name, f"{whole * 1e3:.0f} ms", beside)
    seconds = 2.0 if quick else 5.0
    with tempfile.TemporaryDirectory() as folder:
        place, port = Path(folder), free_port()
        with running(apiserver(place, port), place, port) as server:
            client = Blocking(server)
            quiet = _p99_ms(client, seconds)
            table.row("a read, 99th percentile, undisturbed", f"{quiet:.1f} ms")
            stop = threading.Event()
            other = threading.Thread(target=_post_yaml, args=(server, stop))
            other.start()
            busy = _p99_ms(client, seconds)
            stop.set()
            other.join()
            table.row("a read beside YAML bodies of a megabyte", f"{busy:.1f} ms", f"{busy / quiet:.1f} times")


def _post_yaml(server: Running, stop: threading.Event) -> None:
    """Bodies that take seconds to read; the object is refused for its size or taken, both is well."""
    client, text = Blocking(server), "- a\n" * 250_000
    while not stop.is_set():
        with contextlib.suppress(SystemExit):
            client.send("POST", CONFIGMAPS, text.encode(), "application/yaml")
