"""``syncline placement``: what it prints, word for word (``golden/fleet/``), of what the hub's controllers wrote in
virtual time; and plans of files without a hub."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.cli.commanding import Shell
from tests.cli.fleethub import VirtualHub, bound_set, by_labels, cluster, golden, placement, virtual_hub

from syncline.assembly.inspection.fleet import PlacementReport, offline_fleet, placement_changes, placement_report
from syncline.cli.fleet.placement import READ
from syncline.cli.views.fleet.placement import describe_change, describe_report, placement_rows, report_obj
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER, PLACEMENT
from syncline.kube.objects import Obj, ObjectRef

UNREACHABLE = {"key": "cluster.open-cluster-management.io/unreachable", "operator": "Exists"}
REPLICA_SET: Obj = {
    "apiVersion": "work.open-cluster-management.io/v1alpha1",
    "kind": "ManifestWorkReplicaSet",
    "metadata": {"name": "shop", "namespace": "default"},
    "spec": {
        "placementRefs": [{"name": "web"}],
        "manifestWorkTemplate": {
            "workload": {"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}]}
        },
    },
}


def web(count: int = 2) -> Obj:
    return placement("web", numberOfClusters=count, predicates=[by_labels(env="prod")], tolerations=[UNREACHABLE])


@pytest.fixture(scope="module")
def hub() -> VirtualHub:
    made = virtual_hub()
    made.apply(
        *bound_set(),
        *(cluster(name, env="prod") for name in ("eu-1", "eu-2", "us-1")),
        cluster("lab", env="dev"),
        cluster("edge", env="prod", taints=[{"key": "maintenance", "effect": "NoSelect"}]),
        web(),
        placement("none", namespace="default", clusterSets=["missing"]),
        placement("wrong", prioritizerPolicy={"configurations": [{"scoreCoordinate": {"builtIn": "Spread"}}]}),
        REPLICA_SET,
    )
    made.time.advance(5)
    return made


def report(hub: VirtualHub, name: str = "web") -> PlacementReport:
    found = placement_report(hub.cache(READ), ObjectRef(*PLACEMENT.group_kind, "default", name), hub.clock.now())
    assert found is not None
    return found


def test_a_list_says_which_placements_are_satisfied_and_why_not(hub: VirtualHub) -> None:
    golden("placement-list", placement_rows(hub.cache(READ).objects(PLACEMENT.group_kind), hub.clock.now(), wide=True))


def test_an_explanation_shows_each_cluster_with_filters_scores_rank_and_reason(hub: VirtualHub) -> None:
    found = report(hub)
    golden("placement-explain", describe_report(found))
    rows = {one["name"]: one for one in report_obj(found)["clusters"]}
    assert rows["edge"]["filters"] == {"ClusterSets": "pass", "Predicate": "pass", "TaintToleration": "fail"}
    assert (rows["us-1"]["rank"], rows["us-1"]["score"], rows["us-1"]["by"]) == (3, 100, "Score")


def test_an_explanation_of_what_cannot_be_scheduled_names_the_error(hub: VirtualHub) -> None:
    golden("placement-explain-wrong", describe_report(report(hub, "wrong")))
    golden("placement-explain-unbound", describe_report(report(hub, "none"), only=["eu-1"]))


def test_a_plan_names_who_comes_and_who_goes_and_what_follows_them(hub: VirtualHub) -> None:
    changes = placement_changes(hub.cache(READ), [cluster("eu-1", env="dev"), web(3)], hub.clock.now())
    golden("placement-plan", "\n\n".join(map(describe_change, changes)))


def test_a_plan_of_a_cluster_shows_the_placements_that_change(hub: VirtualHub) -> None:
    changed = placement_changes(hub.cache(READ), [cluster("eu-2", env="dev")], hub.clock.now())
    assert [one.report.placement["metadata"]["name"] for one in changed] == ["web"]
    assert [one.cluster for one in changed[0].comes] == ["us-1"] and [one.cluster for one in changed[0].goes] == [
        "eu-2"
    ]
    assert placement_changes(hub.cache(READ), [cluster("eu-2", env="prod", more="x")], hub.clock.now()) == []


def test_a_plan_keeps_what_a_file_does_not_say(hub: VirtualHub) -> None:
    """A file with labels alone neither removes taints nor leaves the set."""
    relabelled = cluster("edge", env="prod", zone="a")
    del relabelled["spec"]
    cache = hub.cache(READ)
    placement_changes(cache, [relabelled], hub.clock.now())
    live = cache.get(ObjectRef(*MANAGED_CLUSTER.group_kind, "", "edge"))
    assert live is not None and "maintenance" in [one["key"] for one in live["spec"]["taints"]]


def test_b47_a_frozen_placement_says_what_would_come_and_changes_nothing(hub: VirtualHub) -> None:
    note = {"cluster.open-cluster-management.io/experimental-scheduling-disable": "true"}
    frozen = web(3) | {"metadata": {"name": "web", "namespace": "default", "annotations": note}}
    cache = hub.cache(READ)
    (change,) = placement_changes(cache, [frozen], hub.clock.now())
    assert change.report.frozen and not change.changes and len(change.report.selected) == 3
    assert "frozen: an annotation keeps the decisions" in describe_change(change)


def test_decisions_that_the_hub_has_not_written_are_named() -> None:
    offline = offline_fleet([*bound_set(), cluster("eu-1", env="prod"), placement("web")]).cache
    found = placement_report(offline, ObjectRef(*PLACEMENT.group_kind, "default", "web"), virtual_hub().clock.now())
    assert found is not None and "name none and not yet eu-1: the hub has not written them" in describe_report(found)


# -- without a hub ---------------------------------------------------------------------------------------------------


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "there-is-none"))
    return Shell(capsys, [])


def written(folder: Path, name: str, *objects: Obj) -> str:
    path = folder / name
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return str(path)


def test_files_are_planned_without_a_hub(shell: Shell, tmp_path: Path) -> None:
    there = written(tmp_path, "hub.yaml", *bound_set(), cluster("eu-1", env="prod"), cluster("lab", env="dev"))
    wanted = written(tmp_path, "web.yaml", web(), REPLICA_SET)
    said = shell("placement", "plan", "-f", wanted, "--against", there, code=2)
    assert "  + eu-1  score 100\n" in said and "Plan: 1 to come\n" in said
    assert "ManifestWorkReplicaSet default/shop sends a work to eu-1" in said
    (found,) = json.loads(
        shell("placement", "plan", "-f", wanted, "-f", there, "--against", "empty", "-o", "json", code=2)
    )
    assert [one["name"] for one in found["comes"]] == ["eu-1"]
    assert shell("placement", "plan", "-f", there, "--against", there) == "Plan: no Placement changes\n"


def test_a_plan_of_a_wrong_placement_is_blocked(shell: Shell, tmp_path: Path) -> None:
    policy = {"configurations": [{"scoreCoordinate": {"builtIn": "Spread"}}]}
    wrong = written(tmp_path, "wrong.yaml", placement("wrong", prioritizerPolicy=policy), *bound_set(), cluster("eu-1"))
    said = shell("placement", "plan", "-f", wrong, "--against", "empty", code=3)
    assert "Plan: blocked: misconfigured: incorrect builtin prioritizer: Spread" in said


def test_a_plan_refuses_what_the_hub_would_refuse(shell: Shell, tmp_path: Path) -> None:
    wrong = written(tmp_path, "wrong.yaml", placement("wrong", numberOfClusters="many"))
    said = shell("placement", "plan", "-f", wrong, "--against", "empty", code=4)
    assert 'Placement wrong is invalid: spec.numberOfClusters: Invalid value: "string"' in said
