"""Starts the GitOps controllers of an ``ArgoCD`` object on the embedded cluster, as tasks of the process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from syncline.assembly.embedded.working import Working
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.patterns.instances import Begin
from syncline.assembly.ports import HttpPort
from syncline.assembly.running import running_gitops
from syncline.assembly.sources.hydrating import HydratingReader
from syncline.cluster.access.users import service_account_user
from syncline.patterns.argocd.instances import Instance

log = logging.getLogger("syncline.assembly")


def beginning(settings: GitOpsSettings, working: Working, reader: HydratingReader) -> Begin:
    """Return what starts an instance: with the settings of the process but for its namespace, and no endpoints."""

    def begin(instance: Instance) -> Callable[[], None]:
        application = replace(settings.application, control_namespace=instance.namespace)
        mine = replace(settings, application=application, webhook_listen=None, metrics_listen=None)
        user = service_account_user(instance.namespace, instance.account)
        stopping = asyncio.Event()

        async def run() -> None:
            async with running_gitops(mine, working.driver, HttpPort, reader=reader, user=user) as (driver, _):
                running = asyncio.create_task(driver.run(), name=f"gitops of {instance}")
                waiting = asyncio.create_task(stopping.wait(), name=f"end of {instance}")
                try:
                    await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
                    if running.done():
                        running.result()
                finally:
                    for task in (running, waiting):
                        task.cancel()
                    await asyncio.gather(running, waiting, return_exceptions=True)
            log.info("the GitOps controllers of %s have stopped", instance)

        working.begin(run(), f"instance {instance}")
        return stopping.set

    return begin
