"""One loop over several clusters, in virtual time and over HTTP: keys, watches and writes say where."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from tests.live import reached

from syncline.assembly.destinations import LiveWay, Remote, RoutedPort, RoutedTransport
from syncline.assembly.embedded.core import build_core
from syncline.assembly.embedded.live import LiveCluster, kubeconfig_text, running_cluster
from syncline.assembly.ports import HttpPort
from syncline.assembly.roles import LiveDriver, Role, SimulatedDriver, start
from syncline.assembly.settings import ClusterSettings
from syncline.base.clock import SystemClock, VirtualClock
from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.cluster.storage.store import Store
from syncline.control.cache import Snapshot
from syncline.control.controller import EVERY, Controller
from syncline.control.executor import kube_handlers
from syncline.control.plan import Patch, Plan
from syncline.control.virtual import VirtualDriver, WatchActor
from syncline.gitops.destinations import Declared
from syncline.kube.client import Request, Transport
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, dig, labels_of
from syncline.kube.transport.kubeconfig import ClusterAccess, load_kubeconfig

FAR = "https://far.example"
SPACES = "/api/v1/namespaces"
NOBODY = UserInfo("nobody", ("system:authenticated",))


def _observe(cache: Snapshot, ref: ObjectRef) -> Obj | None:
    found = cache.get(ref)
    return found if found is not None and "team" in labels_of(found) else None


def _plan(namespace: Obj, _now: datetime) -> Plan:
    if "seen" in labels_of(namespace):
        return Plan(why="marked")
    body = {"metadata": {"labels": {"seen": "yes"}}}
    return Plan(((Patch(GVK("", "v1", "Namespace"), "", namespace["metadata"]["name"], body, "it is seen"),),))


def _role(mappers: Callable[[str], Mapper]) -> Role:
    """Marks Namespaces with a team, in every cluster."""
    marking = Controller(name="mark", kind=GroupKind("", "Namespace"), cluster=EVERY, observe=_observe, plan=_plan)
    clock = VirtualClock()
    return Role(
        name="marks",
        controllers=(marking,),
        user=ADMIN,
        manager="marks",
        elsewhere=lambda name: kube_handlers(mappers(name), clock, "marks"),
    )


def _space(name: str) -> Request:
    metadata = {"name": name, "labels": {"team": "a"}}
    return Request("POST", SPACES, body={"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


def _marked(transport: Transport, name: str) -> bool:
    return dig(transport.send(Request("GET", f"{SPACES}/{name}")).obj, "metadata", "labels", "seen") == "yes"


class Simulated:
    """Two clusters and one loop; ``far`` is who asks the second one."""

    def __init__(self, far: UserInfo = ADMIN) -> None:
        clock = VirtualClock()
        cores = [build_core(store=Store(), clock=clock, entropy=Entropy(seed)) for seed in (1, 2)]
        for core in cores:
            core.bootstrap(port=6443)
        self.home, self.far = (core.transport() for core in cores)
        self.there: dict[str, Transport] = {FAR: cores[1].transport(far)}
        driver = SimulatedDriver(clock, Journal(), RoutedTransport(self.home, self.there), strict=True)
        start(_role(lambda name: driver.loop.joined[name].mapper), driver)
        self.loop, self.journal = driver.loop, driver.journal
        self.time = VirtualDriver(clock, [driver.actor])
        self.time.settle()
        self.time.add(WatchActor(self.loop.join(FAR), self.there[FAR], clock))

    def make(self) -> None:
        for transport in (self.home, self.far):
            transport.send(_space("web")).or_raise()
        self.time.advance(60)


def test_one_loop_writes_in_each_cluster_what_it_observes_there() -> None:
    both = Simulated()
    both.make()
    assert _marked(both.home, "web") and _marked(both.far, "web")
    assert {entry.subject for entry in both.journal} == {"/Namespace//web", f"/Namespace//web on {FAR}"}


def test_a_cluster_that_refuses_stops_nothing_at_home() -> None:
    both = Simulated(NOBODY)
    both.make()
    assert (_marked(both.home, "web"), _marked(both.far, "web")) == (True, False)
    assert "forbidden" in both.loop.joined[FAR].cache.unread(ObjectRef("", "Namespace", "", ""))
    assert not both.loop.cache.unread(ObjectRef("", "Namespace", "", ""))


def test_a_write_to_a_cluster_that_was_lost_is_refused_there_alone() -> None:
    both = Simulated()
    del both.there[FAR]
    both.make()
    assert (_marked(both.home, "web"), _marked(both.far, "web")) == (True, False)
    assert any("is not connected" in entry.what for entry in both.journal)
    both.loop.leave(FAR)
    both.home.send(_space("later")).or_raise()
    both.time.until_idle()
    assert _marked(both.home, "later")


def test_one_loop_works_on_two_clusters_over_http_while_a_third_does_not_answer(tmp_path: Path) -> None:
    settings = ClusterSettings(controllers=())

    def access(cluster: LiveCluster, name: str) -> ClusterAccess:
        path = tmp_path / name
        path.write_text(kubeconfig_text(cluster))
        return load_kubeconfig(path)

    async def story() -> list[bool]:
        async with running_cluster(settings) as home, running_cluster(settings) as far:
            port = HttpPort(access(home, "home"))
            driver = LiveDriver(SystemClock(), Journal(), port)
            way = LiveWay(driver, HttpPort)
            driver.port = RoutedPort(port, way)
            start(_role(lambda name: driver.loop.joined[name].mapper), driver)
            there = access(far, "far")
            gone = ClusterAccess("http://127.0.0.1:9")
            stops = []
            for each in (gone, there):
                remote = Remote(Declared(each.server, "", ""), driver.loop.join(each.server), {})
                stops.append(way.watch(each, remote, driver.manager.stir))
            running = asyncio.create_task(driver.run())
            clusters = [each.core.transport() for each in (home, far)]
            try:
                for transport in clusters:
                    transport.send(_space("web")).or_raise()
                for transport in clusters:
                    await reached(transport, SPACES, partial(_marked, transport, "web"))
                return [running.done(), *(name in driver.loop.joined for name in (gone.server, there.server))]
            finally:
                for stop in stops:
                    stop()
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                await way.close()
                with contextlib.suppress(OSError):
                    await port.close()

    assert asyncio.run(story()) == [False, True, True]
