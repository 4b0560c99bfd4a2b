"""The files of ``examples/fleet``: the hub takes each of them, and a plan of them says what its README says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.commanding import Shell
from tests.cli.fleethub import cluster
from tests.fleet.hub.hubs import GROUP
from tests.fleet.test_pull_controllers import SETS
from tests.fleet.test_pull_whole import fleet_of
from tests.fleet.world import Fleet, managed_cluster

from syncline.cli.access.manifests import read_manifests
from syncline.control.executor import run_in_place
from syncline.fleet.pull.order.annotations import CLUSTER_WAVE
from syncline.kube import client
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.mapper import Mapper, discover
from syncline.kube.objects import Obj, gvk_of

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "fleet"
FILES = sorted(FOLDER.glob("*.yaml"))


def objects(*names: str) -> list[Obj]:
    return [one for name in names for one in read_manifests(str(FOLDER / name))]


def test_the_hub_takes_every_object_of_the_files() -> None:
    fleet = Fleet()
    for name in ("cluster1", "cluster2"):
        fleet.hub.send("POST", f"{GROUP}/v1/managedclusters", managed_cluster(name))
    fleet.time.advance(5)
    mapper = Mapper(run_in_place(discover(), fleet.hub.admin))
    seen = set()
    for obj in objects("placement.yaml", "budget.yaml", "shop.yaml", "refused.yaml"):
        info = mapper.find(gvk_of(obj))
        assert info is not None, f"{obj['kind']} is served by a hub"
        fleet.hub.admin.send(client.create(info, obj, field_validation="Strict")).or_raise()
        fleet.time.settle()
        seen.add(obj["kind"])
    assert {path.name for path in FILES} == {"placement.yaml", "budget.yaml", "shop.yaml", "refused.yaml"}
    assert {"Placement", "ManifestWorkReplicaSet", "FleetDisruptionBudget", MANIFEST_WORK.kind} <= seen


def test_the_plan_of_the_readme_names_both_clusters(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    import yaml

    there = tmp_path / "hub.yaml"
    globally = {
        "apiVersion": "cluster.open-cluster-management.io/v1beta2",
        "kind": "ManagedClusterSet",
        "metadata": {"name": "global"},
        "spec": {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}},
    }
    clusters = [cluster(name, env="prod") for name in ("cluster1", "cluster2")]
    there.write_text(yaml.safe_dump_all([globally, *clusters]), encoding="utf-8")
    files = ("-f", str(FOLDER / "placement.yaml"), "-f", str(FOLDER / "shop.yaml"))
    said = Shell(capsys, [])("placement", "plan", *files, "--against", str(there), code=2)
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for line in said.splitlines():
        assert line.strip() in readme, "the README shows what is printed"
    assert "ManifestWorkReplicaSet fleet/shop sends a work to cluster1, cluster2" in said


def test_the_hub_takes_the_set_of_the_pull_model_and_puts_it_in_order() -> None:
    fleet = fleet_of({})
    for name, wave in (("aws-1", "0"), ("aws-2", "1")):
        fleet.hub.send("POST", f"{GROUP}/v1/managedclusters", managed_cluster(name, labels={CLUSTER_WAVE: wave}))
    (appset,) = read_manifests(str(FOLDER.parent / "pull" / "set.yaml"))
    fleet.hub.send("POST", f"{SETS}?fieldValidation=Strict", appset)
    fleet.time.advance(20)
    found = fleet.hub.get("/apis/syncline.dev/v1alpha1/namespaces/argocd/fleetrollouts/shop")
    assert [one["wave"] for one in found["status"]["waves"]] == [0, 1]
