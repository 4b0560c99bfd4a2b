"""An agent over HTTP and TLS with real certificates: it joins with a line, renews its certificate, and leaves.

The hub is its own managed cluster here: one server instead of two.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.world import WORKS, config_map, manifest_work
from tests.live import START_S, reached

from syncline.assembly.embedded.live import LiveCluster, kubeconfig_text, running_cluster, write_private
from syncline.assembly.fleet.hub import HubSettings
from syncline.assembly.ports import HttpPort
from syncline.assembly.settings import KEYS, ClusterSettings
from syncline.base.clock import SystemClock
from syncline.cli.main import main
from syncline.cluster.access.pki import LEAF_LIFETIME, load_or_create_keys
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.registration.leases import ACCEPTED
from syncline.fleet.spoke.registration.certificates import ROTATED, identity
from syncline.fleet.spoke.registration.invitation import Invitation, read_invitation
from syncline.fleet.spoke.registration.proposing import CLUSTER_UID
from syncline.hosts.fleet.agent import Agent, Standing
from syncline.hosts.fleet.joining import JoinError
from syncline.hosts.fleet.leaving import mark
from syncline.hosts.fleet.places import Joining, Place, place_of
from syncline.kube.certificates import approved, identity_of, validity_of
from syncline.kube.client import Request, Transport
from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.transport.kubeconfig import ClusterAccess, load_kubeconfig

CLUSTERS = "/apis/cluster.open-cluster-management.io/v1/managedclusters"
CLAIMS = "/apis/cluster.open-cluster-management.io/v1alpha1/clusterclaims"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MAPS = "/api/v1/namespaces/default/configmaps"
CARRIED = f"{MAPS}/carried"
MERGE = {"content-type": "application/merge-patch+json"}


@dataclass
class Story:
    hub: Transport
    cluster: LiveCluster
    access: ClusterAccess
    place: Place
    joining: Joining
    port: HttpPort
    """An administrator's, over HTTP: the hub's webhooks are called there."""
    said: list[str] = field(default_factory=list)

    def agent(self) -> Agent:
        return Agent(self.place, self.place.joining() or self.joining, self.access, SystemClock(), self.said.append)

    def live(self) -> Obj:
        answer = self.hub.send(Request("GET", f"{CLUSTERS}/c1"))
        return answer.obj if answer.ok else {}

    def status(self, kind: str) -> str | None:
        return (find_condition(dig(self.live(), "status", "conditions") or (), kind) or {}).get("status")

    async def send(self, verb: str, path: str, body: Any = None) -> None:
        headers = MERGE if verb == "PATCH" else {}
        (await self.port.send(Request(verb, path, headers=headers, body=body))).or_raise()

    async def until(self, look: Callable[[], Any], collection: str = CLUSTERS) -> Any:
        return await reached(self.hub, collection, look)

    def requests(self) -> list[Obj]:
        found: list[Obj] = self.hub.send(Request("GET", REQUESTS)).or_raise()["items"]
        return found


async def line_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> Invitation:
    """What ``syncline hub token`` prints on the hub."""
    words = ["hub", "token", "--ttl", "1h", "--kubeconfig", str(folder / "kubeconfig")]
    assert await asyncio.to_thread(main, words) == 0
    return read_invitation(capsys.readouterr().out)


@contextlib.asynccontextmanager
async def running(agent: Agent) -> AsyncIterator[asyncio.Task[None]]:
    stop = asyncio.Event()
    task = asyncio.create_task(agent.run(stop))
    try:
        yield task
    finally:
        stop.set()
        await task


async def join(story: Story) -> None:
    """Both gates: what it waits for is said, and the certificate comes by the hub's own signer."""
    joining = asyncio.create_task(story.agent().join())
    (request,) = await story.until(story.requests, REQUESTS)
    assert name_of(request).startswith("c1-")
    assert story.live()["spec"]["hubAcceptsClient"] is False
    path = f"{REQUESTS}/{name_of(request)}/approval"
    await story.send("PUT", path, approved(request, "Test", "a test"))
    await story.send("PATCH", f"{CLUSTERS}/c1", {"spec": {"hubAcceptsClient": True}})
    await asyncio.wait_for(joining, START_S)
    access = story.place.hub()
    assert access is not None
    assert identity_of(access.certificate_pem) == identity("c1", "a1")
    assert [oct(file.stat().st_mode & 0o777) for file in story.place.folder.iterdir()] == ["0o600"] * 4
    assert any("waiting for the acceptance of cluster c1" in line for line in story.said)


async def rotate(story: Story) -> None:
    """A certificate near its end is replaced while the agent runs, with its own rights, and is used at once."""
    access = story.place.hub()
    assert access is not None
    keys = load_or_create_keys(Path(str(story.cluster.settings.data)) / KEYS, story.cluster.core.clock.now())
    who, old = identity("c1", "a1"), story.cluster.core.clock.now() - LEAF_LIFETIME * 0.9
    pair = keys.authority.issue(who.user, now=old, organizations=who.groups)
    story.place.keep_hub(access, pair.certificate_pem, pair.key_pem, "c1")
    async with running(story.agent()):
        await story.until(lambda: story.status(ROTATED) == "True")
        new = story.place.hub()
        assert new is not None
        assert validity_of(new.certificate_pem).ends > validity_of(pair.certificate_pem).ends
        renewal = next(one for one in story.requests() if dig(one, "spec", "username") == who.user)
        assert renewal["status"]["conditions"][0]["reason"] == "AutoApprovedByHubCSRApprovingController"
        body = {"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "ClusterClaim"}
        await story.send("POST", CLAIMS, {**body, "metadata": {"name": "zone"}, "spec": {"value": "a"}})
        claim = {"name": "zone", "value": "a"}
        await story.until(lambda: claim in (dig(story.live(), "status", "clusterClaims") or ()))


async def deny_and_leave(story: Story) -> None:
    """A denied agent goes quiet; one that leaves waits until the hub let go, then deletes its credentials."""
    agent = story.agent()
    agent.hub_url = story.cluster.url.replace("127.0.0.1", "localhost")
    async with running(agent) as task:
        await asyncio.wait_for(agent.joined.wait(), START_S)
        moved, joining = story.place.hub(), story.place.joining()
        assert moved is not None
        assert joining is not None
        assert (moved.server, joining.hub) == (agent.hub_url, story.cluster.url), "the hub moved, and is the same"
        await story.send("PATCH", f"{CLUSTERS}/c1", {"spec": {"hubAcceptsClient": False}})
        mark(story.place)  # it also looks more often
        async with asyncio.timeout(START_S):
            while agent.standing is not Standing.DENIED:
                await asyncio.wait({task}, timeout=0.1)
        assert any("the hub denies the cluster" in line for line in story.said)
        await story.send("PATCH", f"{CLUSTERS}/c1", {"spec": {"hubAcceptsClient": True}})
        await story.until(lambda: dig(story.live(), "spec", "hubAcceptsClient") and story.status(ACCEPTED) == "True")
        await story.send("POST", WORKS.format("c1"), manifest_work("c1", "w", config_map("carried")))
        await story.until(lambda: story.hub.send(Request("GET", CARRIED)).ok, MAPS)
        await story.send("DELETE", f"{CLUSTERS}/c1")
        await asyncio.wait_for(task, START_S)
    assert story.hub.send(Request("GET", CARRIED)).status == 404
    assert not story.live()
    assert not story.place.folder.exists()
    assert "has left the hub" in story.said[-1]


async def refused_name(story: Story, folder: Path) -> None:
    """The same name from another cluster."""
    await story.send("PATCH", f"{CLUSTERS}/c1", {"metadata": {"annotations": {CLUSTER_UID: "other"}}})
    access, bootstrap = story.access, story.place.bootstrap()
    assert bootstrap is not None
    assert bootstrap.token is not None
    place = place_of(folder, story.cluster.url, "c1")
    place.keep_invitation(Invitation(access.server, bootstrap.token, access.ca_pem), "c1")
    agent = Agent(place, Joining(access.server, "c1", "b2"), access, SystemClock(), story.said.append)
    with pytest.raises(JoinError, match="the hub has a cluster c1 already, and it is another one"):
        await agent.join()


async def tell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running_cluster(ClusterSettings(data=folder / "data")) as cluster:
        await cluster.start_hub(HubSettings())
        write_private(folder / "kubeconfig", kubeconfig_text(cluster))
        access = load_kubeconfig(folder / "kubeconfig")
        place = place_of(folder, cluster.url, "c1")
        joining = Joining(cluster.url, "c1", "a1")
        place.keep_invitation(await line_of(folder, capsys), "c1")
        place.keep_joining(joining)
        port = HttpPort(access)
        try:
            story = Story(cluster.core.transport(), cluster, access, place, joining, port)
            await join(story)
            await rotate(story)
            await refused_name(story, folder / "elsewhere")
            await deny_and_leave(story)
        finally:
            await port.close()


def test_b1_to_b9_an_agent_joins_renews_and_leaves_over_tls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(tell(tmp_path, capsys))
