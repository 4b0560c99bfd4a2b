"""``python -m bench hostile [--quick]``: the API's latency beside a page of hostile expressions.

Each expression takes what its budget of steps allows and no more: printed is what a step and a whole budget come to.
Beside it stands what a read waits while others send what takes its whole budget: bodies in YAML, objects that policies
judge, and objects that rules of their definition judge.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
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
TEN = "[0,1,2,3,4,5,6,7,8,9]"
LOOPS = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, a + b + c + d < 99))))"
HOSTILE = [
    f"{TEN}.all(x, {TEN}.all(y, {PAGE[name].replace('string(x)', 'string(y)')}))"
    for name in ("a text searched", "a text matched", "all matches of a text", "zones looked for")
]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
READ = "/api/v1/namespaces/default"
ELSEWHERE = multiprocessing.get_context("spawn")
"""Processes, since threads of one Python process would hold up the one that measures."""
SETTLES_S = 1.0


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
            _configure(client)
            for name, send in BESIDE.items():
                others = [ELSEWHERE.Process(target=_sending, args=(send, server), daemon=True) for _ in range(2)]
                for other in others:
                    other.start()
                threading.Event().wait(SETTLES_S)
                busy = _p99_ms(client, seconds)
                for other in others:
                    other.kill()
                    other.join()
                table.row(f"a read beside {name}", f"{busy:.1f} ms", f"{busy / quiet:.1f} times")


def _configure(client: Blocking) -> None:
    """A policy with a page of expressions, and a definition with a page of rules."""
    rules = [{"rule": f"{LOOPS} || self.s == '{number}'"} for number in range(30)]
    spec = {"type": "object", "properties": {"s": {"type": "string", "maxLength": 10}}}
    schema = {"type": "object", "properties": {"spec": {**spec, "x-kubernetes-validations": rules}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"}
    crd = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    client.send("POST", CRDS, {"metadata": {"name": "boxes.example.com"}, "spec": crd})
    maps = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
    policy = {
        "matchConstraints": {"resourceRules": [maps]},
        "validations": [{"expression": text.replace("object.", "object.data.")} for text in HOSTILE],
    }
    client.send("POST", f"{POLICIES}", {"metadata": {"name": "page"}, "spec": policy})
    bound = {"policyName": "page", "validationActions": ["Deny"]}
    client.send("POST", f"{POLICIES.removesuffix('ies')}ybindings", {"metadata": {"name": "page"}, "spec": bound})


def _sending(send: Callable[[Blocking], None], server: Running) -> None:
    """Until killed; refusals are expected. Its niceness stands for a machine of its own."""
    os.nice(19)
    client = Blocking(server)
    while True:
        with contextlib.suppress(SystemExit):
            send(client)


def _yaml(client: Blocking) -> None:
    client.send("POST", CONFIGMAPS, ("- a\n" * 250_000).encode(), "application/yaml")


def _judged(client: Blocking) -> None:
    client.send("POST", CONFIGMAPS, {"metadata": {"generateName": "m-"}, "data": {"s": LARGE["s"]}})


def _ruled(client: Blocking) -> None:
    body = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"generateName": "b-"}, "spec": {"s": "x"}}
    client.send("POST", "/apis/example.com/v1/namespaces/default/boxes", body)


BESIDE = {
    "YAML bodies of a megabyte": _yaml,
    "objects that hostile policies judge": _judged,
    "objects that hostile rules judge": _ruled,
}
