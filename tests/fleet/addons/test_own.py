"""An add-on of one's own: the example runs in virtual time against a fleet, and as a program against a served hub."""

from __future__ import annotations

import asyncio
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.addons.hubs import CONFIG_KIND, WIDE, Addons, managed
from tests.fleet.world import CLUSTERS
from tests.live import START_S, reached, served_cluster

from syncline.assembly.fleet.hub import HubSettings
from syncline.assembly.ports import HttpPort
from syncline.assembly.roles import SimulatedDriver, start
from syncline.base.journal import Journal
from syncline.hosts.addon import MOST_MANIFESTS, AddOn, Cluster, addon_role, checked
from syncline.kube.client import Request
from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.transport.kubeconfig import load_kubeconfig

FILE = Path(__file__).resolve().parents[3] / "examples" / "own-addon" / "greeting.py"
GREETING = "/api/v1/namespaces/{}/configmaps/greeting"


class Own(Addons):
    """A fleet with one cluster, beside whose hub an add-on runs."""

    def __init__(self, addon: AddOn) -> None:
        super().__init__("c1", agents=True)
        admin = self.hub.core.transport()
        driver = SimulatedDriver(self.clock, Journal(), admin, admin=admin, strict=True)
        start(addon_role(addon), driver)
        self.time.add(driver.actor)
        self.own = self.members["c1"]

    def text(self, namespace: str = "open-cluster-management-agent-addon") -> str:
        return str(self.own.get(GREETING.format(namespace))["data"]["text"])


def test_the_example_of_thirty_lines_runs_on_a_cluster() -> None:
    fleet = Own(runpy.run_path(str(FILE))["ADDON"])
    fleet.placement("everywhere")
    fleet.settle(20)
    assert fleet.text() == "Hello, c1 in no region"
    fleet.hub.send("PATCH", f"{CLUSTERS}/c1", {"metadata": {"labels": {"region": "eu"}}})
    fleet.settle(20)
    assert fleet.text() == "Hello, c1 in eu"
    fleet.config("d", agentInstallNamespace="here", customizedVariables=[{"name": "GREETING", "value": "Good day"}])
    own = {"configs": [{**CONFIG_KIND, "namespace": "default", "name": "d"}]}
    fleet.hub.send("PATCH", managed("c1", "greeting"), {"spec": own})
    fleet.settle(60)
    assert fleet.text("here") == "Good day, c1 in eu"
    assert fleet.said("c1", "Progressing", "greeting") == ("False", "Completed", "completed with no errors.")
    assert fleet.cluster("c1")["metadata"]["labels"]["feature.open-cluster-management.io/addon-greeting"] == "available"
    fleet.hub.send("DELETE", f"{WIDE}/greeting")
    fleet.settle(60)
    assert fleet.own.absent(GREETING.format("here"))


def test_the_page_shows_the_example_as_it_is() -> None:
    page = (FILE.parents[2] / "docs" / "addons.md").read_text()
    assert f"```python\n{FILE.read_text().rstrip()}\n```" in page


def test_a_function_that_raises_says_so_in_the_status() -> None:
    def manifests(cluster: Cluster) -> list[Obj]:
        raise KeyError(cluster.name)

    fleet = Own(AddOn("a", manifests, placement="default/all"))
    fleet.placement("all")
    fleet.settle()
    text = "failed to get manifest from agent interface: KeyError: 'c1'"
    assert fleet.said("c1", "ManifestApplied") == ("False", "ManifestWorkApplyFailed", text)


def test_an_add_on_that_asks_for_a_role_gets_a_certificate_of_the_hub() -> None:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "open-cluster-management-agent-addon"}}
    fleet = Own(AddOn("with-a-longer-name", lambda _cluster: [space], placement="default/all", hub_role="view"))
    fleet.placement("all")
    fleet.settle(30)
    assert not fleet.own.absent(
        "/api/v1/namespaces/open-cluster-management-agent-addon/secrets/with-a-longer-name-hub-kubeconfig"
    )
    bindings = fleet.hub.get("/apis/rbac.authorization.k8s.io/v1/namespaces/c1/rolebindings")["items"]
    assert "open-cluster-management:with-a-longer-name:clusterrole:agent" in map(name_of, bindings)


MAP: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
WRONG: dict[str, tuple[list[Any], str]] = {
    "no object": (["x"], "manifest 0 needs apiVersion, kind and metadata.name"),
    "no name": ([MAP, {**MAP, "metadata": {}}], "manifest 1 needs"),
    "no JSON": ([{**MAP, "data": {"k": {1}}}], "manifest 0 (ConfigMap m) is not JSON"),
    "too many": ([MAP] * (MOST_MANIFESTS + 1), "more than 1000 manifests"),
}


@pytest.mark.parametrize(("manifests", "problem"), WRONG.values(), ids=WRONG)
def test_manifests_that_cannot_be_carried_are_refused(manifests: list[Any], problem: str) -> None:
    with pytest.raises(ValueError, match="manifest") as found:
        checked(manifests)
    assert problem in str(found.value)


def test_the_example_runs_as_a_program_beside_a_served_hub(tmp_path: Path) -> None:
    with served_cluster(tmp_path, hub=HubSettings()) as served:
        transport = served.cluster.core.transport()
        cluster = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
        made = cluster | {"metadata": {"name": "c1"}, "spec": {"hubAcceptsClient": True}}
        program = subprocess.Popen(
            [sys.executable, str(FILE), "--kubeconfig", str(served.kubeconfig)], stderr=subprocess.PIPE, text=True
        )
        try:

            async def story() -> Obj:
                # Over HTTP: the hub's webhooks are called there.
                port = HttpPort(load_kubeconfig(served.kubeconfig))
                (await port.send(Request("POST", CLUSTERS, body=made))).or_raise()
                await port.close()
                await reached(transport, "/api/v1/namespaces", lambda: _there(transport, "/api/v1/namespaces/c1"))
                await reached(transport, WIDE, lambda: _there(transport, f"{WIDE}/greeting"))
                addon = {"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn"}
                body = addon | {"metadata": {"name": "greeting", "namespace": "c1"}, "spec": {}}
                transport.send(Request("PATCH", f"{WIDE}/greeting", headers=MERGE, body=MANUAL)).or_raise()
                transport.send(Request("POST", managed("c1"), body=body)).or_raise()
                works = "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks"
                return await reached(transport, works, lambda: _there(transport, f"{works}/addon-greeting-deploy-0"))

            work = asyncio.run_coroutine_threadsafe(story(), served.loop).result(START_S)
            texts = [dig(one, "data", "text") for one in work["spec"]["workload"]["manifests"]]
            assert sorted(filter(None, texts)) == ["Hello, c1 in no region"]
        finally:
            program.terminate()
            _, said = program.communicate(timeout=START_S)
        assert program.returncode == 0, said


MERGE = {"content-type": "application/merge-patch+json"}
MANUAL: Obj = {"spec": {"installStrategy": {"type": "Manual", "placements": None}}}


def _there(transport: Any, path: str) -> Obj | None:
    answer = transport.send(Request("GET", path))
    return dict(answer.obj) if answer.ok else None
