"""The way of an Application in the pull model: from an ApplicationSet of the hub to each cluster, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.fleet.test_pull_controllers import APPS, REPORTS, SETS
from tests.fleet.world import Fleet, config_map
from tests.gitops.behaviours.sim import Source

from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.names import Variant
from syncline.kube.objects import Obj

WEB = "/api/v1/namespaces/default/configmaps/web"


def pulled_set(*clusters: str) -> Obj:
    metadata = {
        "name": "web-{{cluster}}",
        "labels": {names.PULL: "true"},
        "annotations": {names.CLUSTER: "{{cluster}}", "argocd.argoproj.io/skip-reconcile": "true"},
    }
    spec = {
        "project": "default",
        "source": {"repoURL": "https://git.test/a", "path": "a"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        "syncPolicy": {"automated": {}},
    }
    generators = [{"list": {"elements": [{"cluster": name} for name in clusters]}}]
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "set"}}
    return {**kind, "spec": {"generators": generators, "template": {"metadata": metadata, "spec": spec}}}


class Rows(Source):
    """A source that ApplicationSets can ask, too; the sets here ask nothing."""

    def rows(self, *_: Any) -> Any:
        raise AssertionError("a list generator asks nothing")

    def moment(self) -> int:
        return 0


def fleet_of(sources: Mapping[str, Source], variant: Variant | None = None) -> Fleet:
    made, settings = Fleet(), PullSettings(variant)
    made.start_role(pull_role(settings, objects=tuple(pull_objects(settings))))
    made.start_gitops(made.hub, Rows())
    for name, source in sources.items():
        member = made.add(name)
        made.start_gitops(member, source)
    made.time.settle()
    return made


@pytest.fixture
def fleet() -> Fleet:
    return fleet_of({name: Source(config_map("web", cluster=name)) for name in ("c1", "c2")})


def test_an_application_travels_is_synced_by_its_cluster_and_reports_home(fleet: Fleet) -> None:
    fleet.hub.send("POST", SETS, pulled_set("c1", "c2"))
    fleet.time.advance(180)
    for name in ("c1", "c2"):
        assert fleet.members[name].get(WEB)["data"] == {"cluster": name}
        app = fleet.hub.get(f"{APPS.format('argocd')}/web-{name}")
        assert (app["status"]["health"]["status"], app["status"]["sync"]["status"]) == ("Healthy", "Synced")
    assert fleet.hub.absent(WEB)
    summary = fleet.hub.get(f"{REPORTS}/set")["statuses"]["summary"]
    assert (summary["clusters"], summary["healthy"], summary["synced"]) == ("2", "2", "2")


def test_b86_what_failed_in_a_cluster_is_whole_on_the_hub_and_cut_in_the_report() -> None:
    long = "x" * 600
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-services"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["services"]}
                ]
            },
            "validations": [{"expression": "false", "message": f"services are made by the network team {long}"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-services"},
        "spec": {"policyName": "no-services", "validationActions": ["Deny"]},
    }
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ui", "namespace": "default"}}
    fleet = fleet_of({"c1": Source(config_map("web"), {**service, "spec": {"ports": [{"port": 80}]}})})
    admission = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    fleet.members["c1"].send("POST", f"{admission}ies", policy)
    fleet.members["c1"].send("POST", f"{admission}ybindings", binding)
    fleet.hub.send("POST", SETS, pulled_set("c1"))
    fleet.time.advance(1200)
    app = fleet.hub.get(f"{APPS.format('argocd')}/web-c1")
    state = app["status"]["operationState"]
    assert state["phase"] == "Failed"
    (row,) = state["syncResult"]["resources"]
    assert (row["kind"], row["name"], row["status"]) == ("Service", "ui", "SyncFailed")
    assert f"services are made by the network team {long}" in row["message"], "the message is whole"
    (entry,) = fleet.hub.get(f"{REPORTS}/set")["statuses"]["clusterConditions"]
    texts = [one["message"] for one in entry["conditions"]]
    assert any("services are made by the network team" in text for text in texts)
    assert all(len(text) <= 515 and (len(text) < 515 or text.endswith("...")) for text in texts)
    listed = fleet.hub.get(f"{REPORTS}/set")["statuses"]["resources"]
    assert {"apiVersion": "v1", "kind": "Service", "name": "ui", "namespace": "default"} in listed


def test_under_the_rules_of_acm_an_application_that_stays_healthy_is_not_written_again() -> None:
    fleet = fleet_of({name: Source(config_map("web", cluster=name)) for name in ("c1", "c2")}, Variant.ACM)
    group = "cluster.open-cluster-management.io"
    binding = {"apiVersion": f"{group}/v1beta2", "kind": "ManagedClusterSetBinding", "metadata": {"name": "global"}}
    bindings = f"/apis/{group}/v1beta2/namespaces/argocd/managedclustersetbindings"
    fleet.hub.send("POST", bindings, {**binding, "spec": {"clusterSet": "global"}})
    placement = {"apiVersion": f"{group}/v1beta1", "kind": "Placement", "metadata": {"name": "p"}, "spec": {}}
    fleet.hub.send("POST", f"/apis/{group}/v1beta1/namespaces/argocd/placements", placement)
    fleet.hub.send("POST", SETS, pulled_set("c1", "c2"))
    fleet.time.advance(120)
    apps = [f"{APPS.format('argocd')}/web-{name}" for name in ("c1", "c2")]
    for app in apps:
        status = fleet.hub.get(app)["status"]
        assert (status["health"]["status"], status["sync"]["status"]) == ("Healthy", "Synced")
        assert [one["type"] for one in status["conditions"]] == ["AdditionalStatusReport"]
    versions = [fleet.hub.get(app)["metadata"]["resourceVersion"] for app in apps]
    fleet.hub.send("PATCH", f"{REPORTS}/set", {"metadata": {"labels": {"seen": "1"}}})
    fleet.time.advance(600)
    assert [fleet.hub.get(app)["metadata"]["resourceVersion"] for app in apps] == versions
