"""Who works in a served cluster: built-in controllers, scheduler, machines.

``assembly/live.py`` imports this module when the server answers already: it is half of what there is to load, and
nobody who asks the API waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from syncline.assembly.core import ClusterCore
from syncline.assembly.install import ensure_objects
from syncline.assembly.machines.virtual import LiveMachines, live_machines
from syncline.assembly.roles import CONTROLLER_MANAGER, cluster_loop
from syncline.assembly.settings import ClusterSettings
from syncline.base.journal import Journal
from syncline.cluster.access.pki import ClusterKeys
from syncline.cluster.builtin import BuiltinSettings
from syncline.cluster.builtin.storage.provisioner import standard_class
from syncline.cluster.serving.webhooks import Caller
from syncline.control.executor import run_in_place
from syncline.control.manager import DirectPort, LiveManager

__all__ = ["Working", "working"]


@dataclass(frozen=True, slots=True)
class Working:
    """What runs. ``group``: where others may add their tasks; ``endpoints`` is closed before they end."""

    journal: Journal
    machines: LiveMachines
    group: asyncio.TaskGroup
    endpoints: contextlib.AsyncExitStack


@contextlib.asynccontextmanager
async def working(
    core: ClusterCore,
    settings: ClusterSettings,
    url: str,
    keys: ClusterKeys,
    ports: list[DirectPort],
    caller: Caller,
) -> AsyncIterator[Working]:
    """Start, yield, stop. Raises DiskError for machines whose data is damaged."""
    machines = live_machines(settings, core.clock)
    core.api.backend.logs = machines.logs or core.api.backend.logs
    if settings.simulated_storage:
        run_in_place(ensure_objects([standard_class()]), core.transport(judged=False))
    journal = Journal(limit=10_000)
    loop = cluster_loop(
        core.clock,
        journal,
        BuiltinSettings(keys.ca_pem if settings.tls else "", machines.heartbeats, keys.authority, tokens=core.tokens),
        only=settings.controllers,
        extra=machines.controllers,
        handlers=machines.handlers,
    )
    port = DirectPort(core.transport(CONTROLLER_MANAGER, waits=True), caller.settle)
    ports.append(port)
    manager = LiveManager(loop, port, core.clock)
    machines.attach(manager, core, url, keys.ca_pem)
    async with contextlib.AsyncExitStack() as endpoints, asyncio.TaskGroup() as group:
        running = group.create_task(manager.run(), name="cluster controllers")
        try:
            yield Working(journal, machines, group, endpoints)
        finally:
            machines.stop()
            running.cancel()
            for task in _others():
                task.cancel()


def _others() -> list[asyncio.Task[object]]:
    """Tasks of this cluster that outlive their manager: those it named."""
    mine = asyncio.current_task()
    names = ("gitops", "machine-config")
    return [t for t in asyncio.all_tasks() if t is not mine and t.get_name().startswith(names)]
