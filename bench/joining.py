"""``python -m bench joining [--quick]``: hundreds of machines ask the config server for their config at one moment.

A config like a rendered worker's of OpenShift, over HTTP, server and machines in one process: what is counted is both.
Beside it stands making the config anew for each, which is what a server without memory would do.
"""

from __future__ import annotations

import asyncio
import time

import aiohttp

from bench.ignition import node
from bench.pool import controller_config
from bench.table import Table
from syncline.assembly.endpoints.configserver import config_server
from syncline.control.cache import Cache
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj
from syncline.machineconfig.names import CONTROLLER_CONFIG, GROUP, MACHINE_CONFIG, POOL
from syncline.machineconfig.server.answering import Request, served
from syncline.machineconfig.server.world import world_of

__all__ = ["figures"]

IGNITION = "application/vnd.coreos.ignition+json;version=3.4.0, */*;q=0.1"
NAME = "rendered-worker-0"


def _cache() -> Cache:
    cache = Cache(Mapper())
    known: Obj = {"uid": "1", "resourceVersion": "1"}
    config = {"apiVersion": f"{GROUP}/v1", "kind": "MachineConfig", "metadata": {"name": NAME} | known}
    cache.put(MACHINE_CONFIG, config | {"spec": {"config": node("3.5.0")}})
    controller = controller_config()
    cache.put(CONTROLLER_CONFIG, controller | {"metadata": controller["metadata"] | known})
    cache.put(POOL, {"metadata": {"name": "worker"}, "status": {"configuration": {"name": NAME}}})
    return cache


async def _join(machines: int) -> tuple[list[float], int]:
    """When each had its config, in seconds after all had asked; and its size."""
    async with (
        config_server("127.0.0.1", 0, _cache(), lambda _: "kubeconfig", None) as port,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        begun, sizes = time.perf_counter(), [0]

        async def one() -> float:
            headers = {"Accept": IGNITION}
            async with session.get(f"http://127.0.0.1:{port}/config/worker", headers=headers) as answer:
                assert answer.status == 200, answer.status
                sizes[0] = len(await answer.read())
            return time.perf_counter() - begun

        return sorted(await asyncio.gather(*(one() for _ in range(machines)))), sizes[0]


def figures(table: Table, *, quick: bool) -> None:
    machines = 50 if quick else 250
    table.title(f"{machines} machines join at one moment")
    begun = time.process_time()
    took, size = asyncio.run(_join(machines))
    cpu = time.process_time() - begun
    table.row("the config of each", f"{size / 1024:,.0f} KiB")
    table.row("all have it", f"{took[-1]:.2f} s", f"the first {took[0]:.2f} s; {machines / took[-1]:,.0f}/s")
    table.row("  processor time, server and machines", f"{cpu / machines * 1000:.1f} ms each", f"{cpu:.2f} s")
    world, runs = world_of(_cache(), "kubeconfig"), 5 if quick else 20
    begun = time.process_time()
    for _ in range(runs):
        served(Request("GET", "/config/worker", IGNITION), world)
    anew = (time.process_time() - begun) / runs
    table.row("a config made anew for each", f"{anew * 1000:.1f} ms each", f"{anew * machines:.2f} s")
