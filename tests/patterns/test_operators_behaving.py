"""What installed operators do, from data; and what comes of two that are started together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.patterns.operating import OLM, Operators, bundle, channel, package

from syncline.assembly.operators.folders import FolderCatalogs, FolderError, documents, parse_catalogs, read_behaviours
from syncline.kube.objects import Obj
from syncline.patterns.operators.behaving import BehaviourError, Behaviours, read_behaviour, shipped

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "operators"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
STORAGE = "/api/v1/namespaces/openshift-cnv/configmaps/boot-images-storage"


@pytest.fixture(scope="module")
def catalogue() -> list[Obj]:
    return list(documents(EXAMPLE / "redhat-operators"))


def cluster(catalogue: list[Obj], behaviours: Behaviours | None = None) -> Operators:
    world = Operators(*catalogue, behaviours=behaviours or read_behaviours(EXAMPLE / "behaviours"))
    body = {"metadata": {"name": "standard", "annotations": DEFAULT}, "provisioner": "example.com/disk"}
    world.send("POST", CLASSES, body)
    return world


def subscribe(world: Operators, name: str, namespace: str, **spec: Any) -> None:
    world.namespace(namespace, namespace)
    world.subscribe(namespace, name, **spec)


def test_virtualization_takes_the_default_class_when_it_starts_together_with_data_foundation(
    catalogue: list[Obj],
) -> None:
    world = cluster(catalogue)
    subscribe(world, "odf-operator", "openshift-storage")
    subscribe(world, "kubevirt-hyperconverged", "openshift-cnv", channel="stable")
    world.time.advance(900)
    assert not world.absent(f"{CLASSES}/ocs-storagecluster-ceph-rbd")
    assert world.get(STORAGE)["data"] == {"storageClass": "standard"}, "it looked once, and too early"


def test_virtualization_takes_the_class_of_data_foundation_when_it_starts_after_it(catalogue: list[Obj]) -> None:
    world = cluster(catalogue)
    subscribe(world, "odf-operator", "openshift-storage")
    world.time.until(lambda: not world.absent(f"{CLASSES}/ocs-storagecluster-ceph-rbd"), 900)
    subscribe(world, "kubevirt-hyperconverged", "openshift-cnv", channel="stable")
    world.time.advance(300)
    assert world.get(STORAGE)["data"] == {"storageClass": "ocs-storagecluster-ceph-rbd-virtualization"}


def test_virtualization_waits_for_a_class_when_there_is_none(catalogue: list[Obj]) -> None:
    world = cluster(catalogue)
    world.send("DELETE", f"{CLASSES}/standard")
    subscribe(world, "kubevirt-hyperconverged", "openshift-cnv", channel="stable")
    world.time.advance(600)
    assert world.absent(STORAGE)
    world.send("POST", CLASSES, {"metadata": {"name": "late", "annotations": DEFAULT}, "provisioner": "example.com/d"})
    world.time.advance(60)
    assert world.get(STORAGE)["data"] == {"storageClass": "late"}


def test_each_device_class_of_an_lvm_cluster_gets_its_storage_class(catalogue: list[Obj]) -> None:
    world = cluster(catalogue)
    subscribe(world, "lvms-operator", "openshift-storage")
    world.until("openshift-storage", "lvms-operator.v4.18.0")
    classes = [{"name": "vg1"}, {"name": "vg2"}]
    body = {"apiVersion": "lvm.topolvm.io/v1alpha1", "kind": "LVMCluster", "metadata": {"name": "one"}}
    path = "/apis/lvm.topolvm.io/v1alpha1/namespaces/openshift-storage/lvmclusters"
    world.send("POST", path, {**body, "spec": {"storage": {"deviceClasses": classes}}})
    world.time.advance(200)
    names = [one["metadata"]["name"] for one in world.get(CLASSES)["items"]]
    assert names == ["lvms-vg1", "lvms-vg2", "standard"]
    assert world.get(f"{path}/one")["status"]["state"] == "Ready"


def test_a_variable_of_the_subscription_switches_a_line_off(catalogue: list[Obj]) -> None:
    world = cluster(catalogue)
    world.namespace("gitops")
    env = [{"name": "DISABLE_DEFAULT_ARGOCD_INSTANCE", "value": "true"}]
    world.subscribe("gitops", "openshift-gitops-operator", config={"env": env})
    world.until("gitops", "openshift-gitops-operator.v1.19.0")
    world.time.advance(120)
    assert world.absent("/api/v1/namespaces/openshift-gitops")


def test_an_operator_without_a_file_is_unknown_and_an_event_says_so() -> None:
    world = Operators(package("a"), channel("a", "stable", "a.v1.0.0"), bundle("a", "1.0.0"), behaviours=shipped())
    subscribe(world, "a", "team")
    world.until("team", "a.v1.0.0")
    world.time.advance(5)
    events = world.get("/api/v1/namespaces/team/events")["items"]
    (said,) = [one for one in events if one["reason"] == "OperatorUnknown"]
    assert said["message"] == "what the operator of package a does is unknown here: it makes nothing"


def test_kinds_of_pipelines_come_after_their_operator_when_it_has_installed_them(catalogue: list[Obj]) -> None:
    world = cluster(catalogue)
    world.namespace("pipelines")
    world.subscribe("pipelines", "openshift-pipelines-operator-rh")
    world.until("pipelines", "openshift-pipelines-operator-rh.v1.18.0")
    world.time.advance(60)
    assert world.get("/apis/operator.tekton.dev/v1alpha1/tektonconfigs/config")["spec"]["profile"] == "all"
    assert world.absent("/apis/tekton.dev/v1/tasks")
    world.time.advance(120)
    assert world.get("/apis/tekton.dev/v1/tasks")["items"] == world.get("/apis/tekton.dev/v1beta1/tasks")["items"] == []


def test_a_hub_subscribes_to_its_engine_and_is_up_when_the_engine_is_there(catalogue: list[Obj]) -> None:
    world = cluster(catalogue)
    subscribe(world, "advanced-cluster-management", "hub")
    world.until("hub", "advanced-cluster-management.v2.16.0")
    body = {
        "apiVersion": "operator.open-cluster-management.io/v1",
        "kind": "MultiClusterHub",
        "metadata": {"name": "one"},
    }
    path = "/apis/operator.open-cluster-management.io/v1/namespaces/hub/multiclusterhubs"
    world.send("POST", path, body | {"spec": {}})
    world.time.advance(120)
    engine = "/apis/multicluster.openshift.io/v1/multiclusterengines/multiclusterengine"
    assert world.absent(engine), "its catalogue has another name here"
    wanted = f"{OLM}/multicluster-engine/subscriptions/multicluster-engine"
    world.send("PATCH", wanted, {"spec": {"source": "cat"}})
    world.time.advance(60)
    assert world.get(engine)["spec"] == {"targetNamespace": "multicluster-engine"}
    assert "status" not in world.get(f"{path}/one")
    world.time.advance(500)
    assert world.get(f"{path}/one")["status"] == {"phase": "Running"}
    assert world.get("/apis/policy.open-cluster-management.io/v1/policies")["items"] == []


def _takes(bundle: Obj, mode: str) -> bool:
    (metadata,) = (one["value"] for one in bundle["properties"] if one["type"] == "olm.csv.metadata")
    return any(one["type"] == mode and one["supported"] for one in metadata["installModes"])


def test_each_package_of_the_example_is_installed(catalogue: list[Obj]) -> None:
    world = cluster(catalogue)
    names = sorted(one["name"] for one in catalogue if one["schema"] == "olm.package")
    own = {one["package"] for one in catalogue if one["schema"] == "olm.bundle" and _takes(one, "OwnNamespace")}
    for name in names:
        world.namespace(f"of-{name}", *((f"of-{name}",) if name in own else ()))
        world.subscribe(f"of-{name}", name)
    world.time.advance(60)
    states = {name: world.subscription(f"of-{name}", name)["status"].get("state") for name in names}
    assert set(states.values()) == {"AtLatestKnown"}, states
    phases = {
        one["metadata"]["name"]: one["status"]["phase"]
        for name in names
        for one in world.get(f"{OLM}/of-{name}/clusterserviceversions")["items"]
    }
    assert set(phases.values()) == {"Succeeded"}, phases


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lines: []", "write package: NAME"),
        ("package: a", "needs a source"),
        ("package: a\nsource: x\nlines: [{after: 1s}]", "line 1: a line needs a source"),
        ("package: a\nsource: x\nlines: [{source: x, sleeps: 1}]", "unknown field sleeps"),
        ("package: a\nsource: x\nlines: [{source: x, after: soon}]", "after"),
        ("package: a\nsource: x\nlines: [{source: x, needs: [b]}]", "needs b, which is not one of its looks"),
    ],
)
def test_a_file_of_behaviours_that_cannot_be_read_says_where(text: str, said: str) -> None:
    with pytest.raises(BehaviourError) as refused:
        read_behaviour(text, "file")
    assert said in str(refused.value)


def test_a_folder_is_read_in_the_order_of_names_and_never_out_of_itself(tmp_path: Path) -> None:
    folder = tmp_path / "catalog"
    folder.mkdir()
    (folder / "a.json").write_text('{"schema": "olm.package", "name": "a"}\n{"schema": "x"}')
    assert [one["schema"] for one in documents(folder)] == ["olm.package", "x"]
    (tmp_path / "secret.yaml").write_text("schema: olm.package")
    (folder / "b.yaml").symlink_to(tmp_path / "secret.yaml")
    with pytest.raises(FolderError, match="leads out of"):
        list(documents(folder))


@pytest.mark.parametrize("given", ["a", "=x", "a=", "a=/no/such/folder"])
def test_a_catalogue_option_that_names_no_folder_is_refused(given: str) -> None:
    with pytest.raises(FolderError):
        parse_catalogs((given,))


def test_a_document_without_a_schema_is_no_catalogue(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: Secret\n")
    with pytest.raises(FolderError, match="without schema"):
        FolderCatalogs.read({"a": tmp_path})
