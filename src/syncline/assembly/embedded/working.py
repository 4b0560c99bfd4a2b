"""Runs the controllers of a served cluster: built-in controllers, scheduler, machines.

``assembly/embedded/live.py`` imports this module after the server has started: it is half of the code to load, and API
requests do not wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from syncline.assembly.builtin import cluster_role
from syncline.assembly.embedded.core import ClusterCore
from syncline.assembly.machines.virtual import LiveMachines, live_machines
from syncline.assembly.roles import LiveDriver, start
from syncline.assembly.settings import ClusterSettings
from syncline.base.journal import Journal
from syncline.cluster.access.pki import ClusterKeys
from syncline.cluster.access.users import UserInfo
from syncline.cluster.builtin import BuiltinSettings
from syncline.cluster.builtin.storage.provisioner import standard_class
from syncline.cluster.serving.webhooks import Caller
from syncline.control.manager import DirectPort


@dataclass(frozen=True, slots=True)
class Working:
    """The running tasks. ``endpoints`` is closed after its tasks have ended."""

    journal: Journal
    machines: LiveMachines
    endpoints: contextlib.AsyncExitStack
    driver: Callable[[UserInfo], LiveDriver]
    """Returns an in-process driver for a user."""
    begin: Callable[[Coroutine[Any, Any, None], str], None]
    """Starts a named task, cancelled with the cluster."""
    caller: Caller
    """Makes the calls of the API server to webhooks."""


@contextlib.asynccontextmanager
async def working(
    core: ClusterCore,
    settings: ClusterSettings,
    url: str,
    keys: ClusterKeys,
    ports: list[DirectPort],
    caller: Caller,
) -> AsyncIterator[Working]:
    """Start, yield, stop. Raises DiskError for machines with damaged data."""
    machines = live_machines(settings, core.clock)
    core.api.backend.logs = machines.logs or core.api.backend.logs
    journal = Journal(limit=10_000)

    def driver(user: UserInfo) -> LiveDriver:
        port = DirectPort(core.transport(user, waits=True), caller.settle)
        ports.append(port)
        return LiveDriver(core.clock, journal, port, admin=core.transport(judged=False), host=core.registry.host)

    ca_pem = keys.ca_pem if settings.tls else ""
    role = cluster_role(
        BuiltinSettings(ca_pem, machines.room.heartbeat, keys.authority, tokens=core.tokens),
        machines.room,
        only=settings.controllers,
        objects=[standard_class()] if settings.simulated_storage else [],
        follow=partial(machines.attach, core=core, url=url, ca_pem=keys.ca_pem),
    )
    own = driver(role.user)
    stop = start(role, own)
    tasks: list[asyncio.Task[None]] = []
    async with contextlib.AsyncExitStack() as endpoints, asyncio.TaskGroup() as group:

        def begin(work: Coroutine[Any, Any, None], name: str) -> None:
            tasks.append(group.create_task(work, name=name))

        begin(own.run(), "cluster controllers")
        try:
            yield Working(journal, machines, endpoints, driver, begin, caller)
        finally:
            stop()
            for task in tasks:
                task.cancel()
