"""What lists of argocd's API cost the server: Applications of 40 objects, as protobuf, JSON and a page's fields."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from bench.table import Table
from syncline.control.manager import DirectPort
from syncline.web.access import Caller, OpenAccess
from syncline.web.services.application.finding import Finder
from syncline.web.services.application.reading import Reading
from syncline.web.state import APPLICATIONS, State
from syncline.web.wire.answering import json_bytes, message_bytes
from syncline.web.wire.api import methods, printer
from syncline.web.wire.calls import Call
from syncline.web.wire.projecting import chosen, project

LIST = "/application.ApplicationService/List"
OBJECTS = 40
PAGE = "fields=items.metadata.name,items.metadata.namespace,items.spec,items.status.sync.status,items.status.health"
SPEC = {
    "project": "default",
    "source": {"repoURL": "https://git.example.com/x.git", "path": "app", "targetRevision": "main"},
    "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
}


def application(number: int) -> dict[str, Any]:
    names = [
        {"group": "apps", "kind": "Deployment", "namespace": "default", "name": f"o-{at}"} for at in range(OBJECTS)
    ]
    state = {"version": "v1", "status": "Synced", "health": {"status": "Healthy"}}
    done = {"version": "v1", "status": "Synced", "message": "configured", "hookPhase": "Running", "syncPhase": "Sync"}
    operation = {
        "phase": "Succeeded",
        "startedAt": "2026-01-01T00:00:00Z",
        "operation": {"sync": {"revision": "a" * 40}},
        "syncResult": {"revision": "a" * 40, "source": SPEC["source"], "resources": [one | done for one in names]},
    }
    metadata = {"name": f"app-{number:05}", "namespace": "argocd", "resourceVersion": str(number + 1)}
    status = {
        "sync": {"status": "Synced", "revision": "a" * 40},
        "health": {"status": "Healthy"},
        "resources": [one | state for one in names],
        "operationState": operation,
    }
    return {"metadata": metadata, "spec": SPEC, "status": status}


def figures(table: Table, *, quick: bool) -> None:
    count = 200 if quick else 2_000
    state = State(DirectPort(None))  # type: ignore[arg-type]
    for number in range(count):
        state.cache.put(APPLICATIONS, application(number))
    handler, method = Reading(Finder(state, OpenAccess())).handlers()[LIST], methods()[LIST]

    def answer() -> Any:
        return asyncio.run(_answer(handler, Call(method, Caller("admin"), {}, "")))

    table.title(f"argocd's API: a list of {count:,} Applications with {OBJECTS} objects each, CPU of the server")
    choice = chosen(PAGE)
    assert choice is not None
    forms: dict[str, Callable[[], Any]] = {
        "protobuf": lambda: message_bytes(method, answer()),
        "JSON": lambda: json_bytes(method, answer()),
        "JSON, the fields of a page": lambda: project(printer().print(method.response, answer()), choice),
    }
    for name, make in forms.items():
        first, again = _cpu_ms(make), min(_cpu_ms(make) for _ in range(5))
        table.row(name, f"{again:.0f} ms", f"the first time {first:.0f} ms")


async def _answer(handler: Any, call: Call) -> Any:
    return await handler(call, {})


def _cpu_ms(make: Callable[[], Any]) -> float:
    began = time.process_time()
    make()
    return (time.process_time() - began) * 1000
