"""``syncline app`` for an Application that a cluster pulls, over HTTP and TLS with an agent that joined: the hub is its
own managed cluster, and the Application lives there in another namespace."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.fleet.queries import QUERIES
from tests.fleet.test_agent_live import MAPS, Story, join, line_of, running
from tests.fleet.test_pull_controllers import APPS, application
from tests.fleet.world import CLUSTERS, config_map, managed_cluster

from syncline.assembly.embedded.live import kubeconfig_text, running_cluster, write_private
from syncline.assembly.fleet.hub import HubSettings
from syncline.assembly.ports import HttpPort
from syncline.assembly.settings import ClusterSettings, RunCommands
from syncline.cli.main import main
from syncline.fleet.pull.names import CLUSTER, CLUSTER_NAMESPACE, PULL
from syncline.hosts.fleet.places import Joining, place_of
from syncline.kube.client import Request
from syncline.kube.objects import Obj, name_of
from syncline.kube.transport.kubeconfig import load_kubeconfig

THERE = f"{APPS.format('onspoke')}/shop"
REPORTS = "/apis/syncline.dev/v1alpha1/namespaces/c1/applicationreports"
SKIP = "argocd.argoproj.io/skip-reconcile"


def _app(name: str, cluster: str) -> Obj:
    annotations = {CLUSTER: cluster, CLUSTER_NAMESPACE: "onspoke", SKIP: "true"}
    made = application(name, cluster, metadata={"name": name, "labels": {PULL: "true"}, "annotations": annotations})
    made["spec"]["source"]["repoURL"] = "https://127.0.0.1:1/shop.git"
    return made


async def carry(story: Story) -> None:
    """An Application comes to the cluster, and its controllers report one ConfigMap."""
    for name in ("argocd", "onspoke", "web"):
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await story.port.send(Request("POST", "/api/v1/namespaces", body=space))
    project = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"}}
    permits = {"destinations": [{"server": "*", "namespace": "*"}], "sourceRepos": ["*"]}
    path = APPS.format("onspoke").replace("applications", "appprojects")
    await story.send("POST", path, {**project, "spec": permits})
    menu = config_map("menu", "web", soup="leek")
    menu["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": "shop:/ConfigMap:web/menu"}
    await story.send("POST", MAPS.replace("default", "web"), menu)
    await story.send("POST", APPS.format("argocd"), _app("shop", "c1"))
    await story.until(lambda: story.hub.send(Request("GET", THERE)).ok, APPS.format("onspoke"))
    tracked = {"argocd.argoproj.io/tracking-id": "shop:/Pod:web/cook"}
    metadata = {"name": "cook", "namespace": "web", "annotations": tracked}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    pods = MAPS.replace("default/configmaps", "web/pods")
    account = f"{MAPS.replace('default/configmaps', 'web/serviceaccounts')}"
    await story.until(lambda: story.hub.send(Request("GET", f"{account}/default")).ok, account)
    await story.send("POST", pods, {**pod, "spec": {"containers": [{"name": "c", "image": "none"}]}})
    await story.until(lambda: story.hub.send(Request("GET", f"{pods}/cook")).obj["status"]["phase"] == "Running", pods)
    row = {"version": "v1", "kind": "ConfigMap", "namespace": "web", "name": "menu", "status": "Synced"}
    cook = {**row, "kind": "Pod", "name": "cook"}
    said = {"resources": [row, cook], "sync": {"status": "Synced"}, "health": {"status": "Healthy"}}
    await story.send("PATCH", THERE, {"status": said})
    await story.until(lambda: story.hub.send(Request("GET", REPORTS)).obj.get("items"), REPORTS)


async def tell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with running_cluster(
        ClusterSettings(data=folder / "data", nodes=1, run_commands=RunCommands.UNSANDBOXED)
    ) as cluster:
        await cluster.start_hub(HubSettings())
        write_private(folder / "kubeconfig", kubeconfig_text(cluster))
        access = load_kubeconfig(folder / "kubeconfig")
        place, joining = place_of(folder, cluster.url, "c1"), Joining(cluster.url, "c1", "a1")
        place.keep_invitation(await line_of(folder, capsys), "c1")
        place.keep_joining(joining)
        port = HttpPort(access)

        async def run(*words: str) -> tuple[int, Any]:
            line = ["app", *words, "--kubeconfig", str(folder / "kubeconfig")]
            code = await asyncio.to_thread(main, line)
            return code, capsys.readouterr()

        try:
            story = Story(cluster.core.transport(), cluster, access, place, joining, port)
            await join(story)
            async with running(story.agent()):
                await carry(story)
                await ask(story, run)
                await refused(story, run)
            await unanswered(story, run)
        finally:
            await port.close()


async def ask(story: Story, run: Any) -> None:
    code, said = await run("resources", "shop")
    listed = [line.split() for line in said.out.splitlines()[1:]]
    assert (code, listed) == (0, [["ConfigMap", "web", "menu", "No"], ["Pod", "web", "cook", "No"]]), said
    code, said = await run("get", "shop", "-o", "json")
    row, _ = json.loads(said.out)["status"]["resources"]
    assert (code, row["name"], row["status"], said.err) == (0, "menu", "Synced", "")
    code, said = await run("get", "shop", "-o", "tree")
    assert "ConfigMap/menu" in said.out
    code, said = await run("manifests", "shop", "--source", "live")
    assert (code, "soup: leek" in said.out) == (0, True)
    code, said = await run("get-resource", "shop", "--kind", "ConfigMap", "--filter-fields", "data.soup")
    assert (code, said.out.split()) == (0, ["data:", "soup:", "leek", "metadata:", "name:", "menu"])
    code, said = await run("logs", "shop", "--kind", "Pod", "--name", "cook")
    assert (code, "simulated: it has no command" in said.out) == (0, True), said
    assert story.hub.send(Request("GET", QUERIES.format("c1"))).obj["items"] == [], "each question is taken back"


async def refused(story: Story, run: Any) -> None:
    code, said = await run("diff", "shop")
    assert (code, "cluster c1: ComparisonError: Failed to load target state" in said.err) == (20, True), said.err
    code, said = await run("logs", "shop", "--container", "other")
    assert (code, "no pods to read" in said.err) == (20, True)
    code, said = await run("logs", "shop", "--follow")
    assert (code, "--follow needs a connection to the cluster" in said.err) == (2, True)
    change = ("--kind", "ConfigMap", "--patch", '{"data": {"soup": "none"}}')
    code, said = await run("patch-resource", "shop", *change)
    assert (code, "cluster c1 pulls the Application; do it there" in said.err) == (20, True)
    await story.send("POST", CLUSTERS, managed_cluster("c9", accepted=False))
    await story.send("POST", APPS.format("argocd"), _app("far", "c9"))
    code, said = await run("resources", "far")
    assert (code, "no agent of Syncline has reported from cluster c9" in said.err) == (20, True)
    code, said = await run("get", "far")
    assert (code, "resources are shown as reported last" in said.err) == (0, True)
    assert {name_of(one) for one in story.hub.send(Request("GET", CLUSTERS)).obj["items"]} == {"c1", "c9"}


async def unanswered(story: Story, run: Any) -> None:
    """The agent has ended: the command waits as long as it may, says for whom, and takes the question back."""
    code, said = await run("resources", "shop", "--timeout", "1")
    assert code == 20 and "no answer within 1 s: the agent of cluster c1 has not answered" in said.err, said
    away = {
        "type": "ManagedClusterConditionAvailable",
        "status": "Unknown",
        "reason": "ManagedClusterLeaseUpdateStopped",
        "message": "Registration agent stopped updating its lease.",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    conditions = [one for one in story.live()["status"]["conditions"] if one["type"] != away["type"]]
    await story.send("PATCH", f"{CLUSTERS}/c1/status", {"status": {"conditions": [*conditions, away]}})
    code, said = await run("resources", "shop", "--timeout", "1")
    since = "cluster c1 has not reported since 2026-01-01T00:00:00Z: Registration agent stopped updating its lease."
    assert code == 20 and f"warning: {since}; waiting for 1 s" in said.err, said
    assert f"has not answered: {since}" in said.err
    code, said = await run("get", "shop", "-o", "tree")
    assert code == 0 and f"resources are shown as reported last: {since}" in said.err
    assert "ConfigMap/menu" in said.out and "Pod/cook" in said.out
    assert story.hub.send(Request("GET", QUERIES.format("c1"))).obj["items"] == []


def test_the_verbs_of_app_ask_the_agent_of_the_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(tell(tmp_path, capsys))
