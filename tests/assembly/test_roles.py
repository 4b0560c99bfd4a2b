"""Roles as values, and who ends what they run."""

from __future__ import annotations

import asyncio
from pathlib import Path

from syncline.assembly.embedded.live import running_cluster
from syncline.assembly.gitops import GitOpsSettings
from syncline.assembly.settings import ClusterSettings


def test_a_cluster_that_ends_leaves_the_controllers_of_another_one_in_the_same_process(tmp_path: Path) -> None:
    settings = ClusterSettings(tls=False, controllers=())

    async def both() -> list[str]:
        async with running_cluster(settings) as stays:
            await stays.start_gitops(GitOpsSettings(tmp_path / "stays"))
            await stays.start_machine_config("argocd")
            mine = asyncio.all_tasks()
            async with running_cluster(settings) as ends:
                await ends.start_gitops(GitOpsSettings(tmp_path / "ends"))
            return [task.get_name() for task in mine if task.done() or task.cancelling()]

    assert asyncio.run(both()) == []
