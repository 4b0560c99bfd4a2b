"""Resources of a pulled Application that also live on the hub, by annotation."""

from __future__ import annotations

import pytest
from tests.fleet.test_pull_controllers import APPS, application
from tests.fleet.test_pull_whole import WEB, Rows
from tests.fleet.world import Fleet, config_map
from tests.gitops.behaviours.sim import Source

from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.fleet.pull.controllers.hubcopies import ALSO
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.kube.objects import Obj

APP, COPY = f"{APPS.format('argocd')}/web", f"{APPS.format('argocd')}/web-on-hub"
PROJECT = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects/default"


@pytest.fixture
def fleet() -> Fleet:
    made, settings = Fleet(), PullSettings()
    made.start_role(pull_role(settings, objects=tuple(pull_objects(settings))))
    made.start_gitops(made.hub, Rows(config_map("web", at="hub")))
    made.start_gitops(made.add("c1"), Source(config_map("web", at="c1")))
    made.time.settle()
    return made


def _app(also: str = "true") -> Obj:
    made = application("web")
    made["metadata"]["annotations"][ALSO] = also
    made["metadata"]["finalizers"] = ["resources-finalizer.argocd.argoproj.io"]
    made["spec"] |= {"syncPolicy": {"automated": {}}, "destination": {"name": "c1", "namespace": "default"}}
    return made


def _conditions(fleet: Fleet, path: str) -> str:
    found = (fleet.hub.get(path).get("status") or {}).get("conditions") or []
    return "; ".join(f"{one['type']}: {one['message']}" for one in found)


def test_with_the_annotation_resources_live_on_the_cluster_and_on_the_hub(fleet: Fleet) -> None:
    fleet.hub.send("POST", APPS.format("argocd"), _app())
    fleet.time.advance(120)
    assert fleet.members["c1"].get(WEB)["data"] == {"at": "c1"}
    assert fleet.hub.get(WEB)["data"] == {"at": "hub"}
    for path in (APP, COPY):
        assert fleet.hub.get(path)["status"]["sync"]["status"] == "Synced"
    version = fleet.hub.get(COPY)["metadata"]["generation"]
    fleet.time.advance(1200)
    assert fleet.hub.get(COPY)["metadata"]["generation"] == version, "nothing undoes the writes of the other"
    fleet.hub.send("PATCH", APP, {"metadata": {"annotations": {ALSO: None}}})
    fleet.time.advance(120)
    assert fleet.hub.absent(COPY) and fleet.hub.absent(WEB), "the finalizer of the Application counts for both"
    assert not fleet.members["c1"].absent(WEB)


def test_the_second_application_goes_with_the_first_and_follows_its_changes(fleet: Fleet) -> None:
    fleet.hub.send("POST", APPS.format("argocd"), _app())
    fleet.time.advance(60)
    fleet.hub.send("PATCH", APP, {"spec": {"source": {"path": "b"}}})
    fleet.time.advance(60)
    assert fleet.hub.get(COPY)["spec"]["source"]["path"] == "b"
    for value in (False, True):
        fleet.hub.send("PATCH", APP, {"spec": {"source": {"helm": {"valuesObject": {"on": value}}}}})
        fleet.time.advance(60)
        assert fleet.hub.get(COPY)["spec"]["source"]["helm"]["valuesObject"] == {"on": value}
    fleet.hub.send("DELETE", APP)
    fleet.time.advance(300)
    assert fleet.hub.absent(APP) and fleet.hub.absent(COPY) and fleet.hub.absent(WEB)


def test_a_tenant_does_not_get_onto_the_hub_by_an_annotation(fleet: Fleet) -> None:
    fleet.hub.send("PATCH", PROJECT, {"spec": {"destinations": [{"name": "c1", "namespace": "*"}]}})
    fleet.hub.send("POST", APPS.format("argocd"), _app())
    fleet.time.advance(300)
    said = _conditions(fleet, COPY)
    assert "InvalidSpecError" in said and "allowed destinations in project 'default'" in said
    assert fleet.hub.absent(WEB)


@pytest.mark.parametrize("value", ["false", "", "yes"])
def test_without_the_value_true_nothing_runs_on_the_hub(value: str, fleet: Fleet) -> None:
    fleet.hub.send("POST", APPS.format("argocd"), _app(value))
    fleet.time.advance(60)
    assert fleet.hub.absent(COPY)


def test_an_application_of_that_name_that_is_not_ours_is_left_alone(fleet: Fleet) -> None:
    other = application("web-on-hub")
    other["metadata"] |= {"labels": {}, "annotations": {"argocd.argoproj.io/skip-reconcile": "true"}}
    before = fleet.hub.send("POST", APPS.format("argocd"), other)
    fleet.hub.send("POST", APPS.format("argocd"), _app())
    fleet.time.advance(60)
    assert fleet.hub.get(COPY)["metadata"]["generation"] == before["metadata"]["generation"]
    assert "HubCopyError: Application argocd/web-on-hub exists" in _conditions(fleet, APP)
    fleet.hub.send("PATCH", APP, {"metadata": {"annotations": {ALSO: None}}})
    fleet.time.advance(60)
    assert not fleet.hub.absent(COPY) and "HubCopyError" not in _conditions(fleet, APP)
