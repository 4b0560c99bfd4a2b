"""``python -m bench large [--quick]``: how long requests for large objects hold the loop that serves the API.

CPU, in process, without sockets: a *turn* is what the loop does for a request without a pause, *beside* is what threads
do for it meanwhile. On a loop that others use as well a turn is what these wait for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec

from bench.table import Table
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.interpreter import tune_interpreter
from syncline.cluster.access.authz import Authorizer
from syncline.cluster.access.users import ADMIN
from syncline.cluster.api import Api
from syncline.cluster.resources.registry import Registry
from syncline.cluster.storage.store import Store
from syncline.kube.client import Request
from syncline.kube.transport.outbound import Aside, Outcome

__all__ = ["figures"]

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MAPS = "/api/v1/namespaces/default/configmaps"
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
MINE, THEIRS = {"fieldManager": "mine"}, {"fieldManager": "theirs", "force": "true"}
Case = tuple[str, str, str, Any, str, dict[str, str]]


def _deployment(size: int, name: str, value: str) -> dict[str, Any]:
    env = [{"name": f"VARIABLE_{number}", "value": f"{value}-{number}"} for number in range(size)]
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i", "env": env}]}}
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def _map(size: int, name: str) -> dict[str, Any]:
    data = {f"key-{number}": f"value {number}" for number in range(size)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def _cases(size: int) -> Iterator[Case]:
    made = f"{DEPLOYMENTS}/made"
    yield "create", "POST", DEPLOYMENTS, _deployment(size, "made", "a"), "", {}
    yield "replace", "PUT", made, _deployment(size, "made", "b"), "", {}
    yield "strategic merge patch", "PATCH", made, _deployment(size, "made", "c"), STRATEGIC, {}
    yield "a label by merge patch", "PATCH", made, {"metadata": {"labels": {"a": "b"}}}, MERGE, {}
    applied = f"{DEPLOYMENTS}/applied"
    yield "apply, new", "PATCH", applied, _deployment(size, "applied", "a"), APPLY, MINE
    yield "apply, nothing changes", "PATCH", applied, _deployment(size, "applied", "a"), APPLY, MINE
    yield "apply, all changes", "PATCH", applied, _deployment(size, "applied", "b"), APPLY, MINE
    yield "apply, all taken from another", "PATCH", applied, _deployment(size, "applied", "c"), APPLY, THEIRS
    yield "apply, all in conflict", "PATCH", applied, _deployment(size, "applied", "d"), APPLY, MINE
    yield "create a ConfigMap of as many keys", "POST", MAPS, _map(size, "made"), "", {}
    yield "apply a ConfigMap of as many keys", "PATCH", f"{MAPS}/applied", _map(size, "applied"), APPLY, MINE


def figures(table: Table, *, quick: bool) -> None:
    tune_interpreter()
    size = 5_000 if quick else 15_000
    table.title(f"Large objects: a Deployment with {size:,} variables, CPU")
    store, clock = Store(), VirtualClock()
    api = Api(store, Registry(store), Authorizer(store), clock, Entropy(1))
    space = {"metadata": {"name": "default"}}
    api.handle(Request("POST", "/api/v1/namespaces", {}, {}, space), ADMIN)
    for name, method, path, body, content, query in _cases(size):
        request = Request(method, path, query, {"content-type": content}, msgspec.json.encode(body))
        turns, beside = _spent(api, request)
        table.row(name, f"longest turn {max(turns) * 1e3:.1f} ms", f"{sum(beside) * 1e3:.0f} ms beside the loop")


def _spent(api: Api, request: Request) -> tuple[list[float], list[float]]:
    """The CPU of each turn, and of each part beside the loop."""
    turns: list[float] = []
    beside: list[float] = []
    begun = time.process_time()
    answer = api.begin(request, ADMIN)
    while (pending := answer.pending) is not None:
        turns.append(time.process_time() - begun)
        for part in pending.calls:
            assert isinstance(part, Aside)
            begun = time.process_time()
            part.run()
            beside.append(time.process_time() - begun)
        begun = time.process_time()
        answer = pending.resume([Outcome()])
    assert answer.raw
    turns.append(time.process_time() - begun)
    return turns, beside
