"""``syncline up --machine-config``: the controllers of machine configuration in a served cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.live import START_S, reached, served_cluster

from syncline.kube.client import Request

MCO = "/apis/machineconfiguration.openshift.io/v1"


def test_pools_are_made_rendered_and_left_in_peace_when_the_cluster_stops(tmp_path: Path) -> None:
    with served_cluster(tmp_path) as served:
        transport = served.cluster.core.transport(judged=False)

        def rendered() -> set[str]:
            pools = transport.send(Request("GET", f"{MCO}/machineconfigpools")).or_raise()["items"]
            targets = {pool["spec"].get("configuration", {}).get("name", "") for pool in pools}
            return targets if len(targets) == 2 and "" not in targets else set()

        async def story() -> set[str]:
            await served.cluster.start_machine_config("argocd")
            return await reached(transport, f"{MCO}/machineconfigpools", rendered)

        targets = asyncio.run_coroutine_threadsafe(story(), served.loop).result(2 * START_S)
        assert {name.rsplit("-", 1)[0] for name in targets} == {"rendered-master", "rendered-worker"}
        bases = transport.send(Request("GET", f"{MCO}/machineconfigs/00-worker")).or_raise()
        assert bases["metadata"]["labels"] == {"machineconfiguration.openshift.io/role": "worker"}
