"""What Applications would do to nodes at a revision, as ``plan`` and ``mc impact --revision`` tell it, and what then
happens."""

from __future__ import annotations

import pytest
from tests.gitops.behaviours.sim import APPS, Source
from tests.machineconfig.rendering import files, machine_config
from tests.machineconfig.room import PoolWorld
from tests.machineconfig.test_syncs_and_pools import APP, sync, world

from syncline.assembly.inspection.preview import PlannedSync, SyncRequest, Verdict, planned_sync
from syncline.assembly.inspection.snapshot import application_indices, snapshot_of_cluster
from syncline.assembly.machines.impact import forecaster
from syncline.assembly.sources.revisions import RevisedChange, revised_change
from syncline.cli.views.plan import describe_plan
from syncline.control.cache import Cache
from syncline.control.executor import run_in_place
from syncline.kube.objects import Obj
from syncline.machineconfig.impact.forecast import Change

MOTD = machine_config("99-motd", files(("/etc/motd", "hello")))
OLD = machine_config("98-old", None, kernelArguments=["quiet"])
FOLDERS = {"ignition": {"version": "3.2.0"}, "storage": {"directories": [{"path": "/var/x"}]}}


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def one(source: Source) -> PoolWorld:
    """A cluster whose Application ``app`` has brought 98-old."""
    found = world(source)
    source.commit(OLD)
    found.make(APPS, "Application", "app", APP)
    sync(found)
    found.driver.until(lambda: found.counts()[1] == 2, limit_s=3600)
    found.driver.advance(120)
    return found


def look(one: PoolWorld) -> Cache:
    return run_in_place(snapshot_of_cluster(application_indices(one.settings)), one.admin).cache


def planned(one: PoolWorld, source: Source, revision: str) -> PlannedSync:
    cache = look(one)
    app = cache.objects(next(kind for kind in cache.kinds() if kind.kind == "Application"))[0]
    return planned_sync(cache, app, source, one.settings, one.clock.now(), SyncRequest(revision))


def revised(one: PoolWorld, source: Source, revision: str, *names: str, prune: bool = False) -> RevisedChange:
    return revised_change(look(one), revision, names, source, one.settings, one.clock.now(), prune=prune)


def test_a_plan_says_in_one_line_for_each_pool_what_its_nodes_go_through(one: PoolWorld, source: Source) -> None:
    plan = planned(one, source, source.commit(OLD, MOTD))
    (pool,) = plan.machines
    assert pool.sentence() in describe_plan(plan)
    assert pool.sentence().startswith("pool worker: 2 nodes drain and reboot, one at a time, worker-0 first, about ")
    assert "because file /etc/motd added (no policy, 99-motd of Application app)" in pool.sentence()
    assert plan.to_obj()["machines"][0]["nodes"][0]["steps"] == ["drain", "reboot"]
    before = one.reboots()
    assert sync(one)["phase"] == "Succeeded"
    one.until_updated(pool.after)
    assert {name: boots - before[name] for name, boots in one.reboots().items()} == dict.fromkeys(before, 1)


def test_a_plan_without_machine_configs_asks_nobody_about_nodes(one: PoolWorld, source: Source) -> None:
    other: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}
    plan = planned(one, source, source.commit(OLD, other))
    assert plan.verdict is Verdict.CHANGES and plan.machines == () and "nodes:" not in describe_plan(plan)


def test_a_plan_whose_config_would_be_refused_is_unsafe(one: PoolWorld, source: Source) -> None:
    plan = planned(one, source, source.commit(OLD, machine_config("99-folders", FOLDERS)))
    assert plan.verdict is Verdict.UNSAFE
    assert "refused, no node is touched: MachineConfig 99-folders: reconciliation failed" in plan.unsafe[0]


def test_a_revision_is_compared_with_the_cluster_and_each_config_names_its_application(
    one: PoolWorld, source: Source
) -> None:
    found = revised(one, source, source.commit(MOTD))
    assert list(found.origins.values()) == ["Application app"] * 2
    assert found.notes == ("MachineConfig 98-old of Application app stays: without --prune it is not deleted",)
    impact = forecaster(look(one)).forecast(found.joined(Change()), one.clock.now())
    assert impact.changed == ("+ 99-motd",) and impact.pools[0].causes[0].origin == "Application app"
    pruned = revised(one, source, source.head, prune=True)
    impact = forecaster(look(one)).forecast(pruned.joined(Change()), one.clock.now())
    assert impact.changed == ("- 98-old", "+ 99-motd")
    assert [str(cause) for cause in impact.pools[0].causes] == ["kernelArguments - quiet", "file /etc/motd added"]


def test_what_cannot_be_asked_is_named(one: PoolWorld, source: Source) -> None:
    assert revised(one, source, "main", "shop").problem == (
        "--app shop: no Application of that name brings objects to this cluster"
    )
    source.fails = "revision nowhere not found"
    assert "Application app could not be asked: ComparisonError" in revised(one, source, "nowhere").problem
    several = APP | {"sources": [APP["source"], APP["source"]]}
    one.make(APPS, "Application", "both", {key: value for key, value in several.items() if key != "source"})
    source.fails = ""
    assert revised(one, source, source.head).notes == (
        "Application both has several sources, and --revision is for one: it was not asked",
    )


def test_an_application_of_a_disabled_cluster_changes_no_machine(one: PoolWorld, source: Source) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argocd-cm"}}
    settings["data"] = {"cluster.inClusterEnabled": "false"}
    one.send("POST", f"/api/v1/namespaces/{one.settings.control_namespace}/configmaps", settings)
    head = source.commit(OLD, MOTD)
    assert revised(one, source, head).problem.endswith("there is no Application in the cluster")
    assert revised(one, source, head, "app").problem == (
        '--app app: error getting cluster by server "https://kubernetes.default.svc": '
        'cluster "https://kubernetes.default.svc" is disabled'
    )
