"""The role of docs/roles.md, in virtual time and live, with the rights that it names."""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live import reached

from syncline.assembly.embedded.core import build_core
from syncline.assembly.embedded.live import running_cluster
from syncline.assembly.roles import SimulatedDriver, start
from syncline.assembly.settings import ClusterSettings
from syncline.base.clock import VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.storage.store import Store
from syncline.control.virtual import VirtualDriver
from syncline.kube.client import Request, Transport

PAGE = Path(__file__).resolve().parents[2] / "docs/roles.md"
MAPS = "/api/v1/namespaces/shop/configmaps"
SHOP = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"example.com/team": "a"}}}
MERGE = {"content-type": "application/merge-patch+json"}


@pytest.fixture
def example() -> Iterator[Any]:
    code = PAGE.read_text().split("```python\n")[1].split("```")[0]
    assert len(code.splitlines()) < 100
    module = sys.modules["example_role"] = types.ModuleType("example_role")
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    yield module
    del sys.modules["example_role"]


def team_in(transport: Transport) -> str:
    answer = transport.send(Request("GET", f"{MAPS}/team"))
    return str(answer.obj["data"]["name"]) if answer.ok else ""


def test_the_example_runs_in_virtual_time(example: Any) -> None:
    clock = VirtualClock()
    core = build_core(store=Store(), clock=clock, entropy=Entropy(1))
    core.bootstrap(port=6443)
    role, admin = example.teams(), core.transport()
    driver = SimulatedDriver(clock, Journal(), core.transport(role.user), admin=admin, strict=True)
    start(role, driver)
    time = VirtualDriver(clock, [driver.actor])
    admin.send(Request("POST", "/api/v1/namespaces", body=SHOP)).or_raise()
    time.until_idle()
    assert team_in(admin) == "a"
    admin.send(Request("PATCH", f"{MAPS}/team", headers=MERGE, body={"data": {"name": "drift"}})).or_raise()
    time.until_idle()
    assert team_in(admin) == "a"
    assert "refused" not in driver.journal.text()


def test_the_example_runs_on_a_live_cluster(example: Any) -> None:
    async def story() -> str:
        async with running_cluster(ClusterSettings(tls=False, controllers=())) as cluster:
            await cluster.run_role(example.teams())
            admin = cluster.core.transport()
            admin.send(Request("POST", "/api/v1/namespaces", body=SHOP)).or_raise()
            return await reached(admin, MAPS, lambda: team_in(admin))

    assert asyncio.run(story()) == "a"
