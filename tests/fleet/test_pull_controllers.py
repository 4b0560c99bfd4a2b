"""The pull model as controllers of a hub, in virtual time; the agents' part is written by the tests."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet.world import Fleet

from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.fleet.pull import names
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.fleet.pull.names import Variant
from syncline.kube.objects import Obj, dig

APPS = "/apis/argoproj.io/v1alpha1/namespaces/{}/applications"
WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"
ALL_WORKS = "/apis/work.open-cluster-management.io/v1/manifestworks"
SETS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applicationsets"
REPORTS = "/apis/apps.open-cluster-management.io/v1alpha1/namespaces/argocd/multiclusterapplicationsetreports"


def hub(settings: PullSettings | None = None, *clusters: str) -> Fleet:
    chosen = settings or PullSettings()
    fleet = Fleet()
    fleet.start_role(pull_role(chosen, objects=tuple(pull_objects(chosen))))
    for name in clusters or ("c1",):
        fleet.add(name)
        fleet.stop_agent(name)
    fleet.time.settle()
    return fleet


def application(name: str, cluster: str = "c1", **parts: Any) -> Obj:
    metadata = {
        "name": name,
        "namespace": "argocd",
        "labels": {names.PULL: "true"},
        "annotations": {names.CLUSTER: cluster, "argocd.argoproj.io/skip-reconcile": "true"},
        **parts.pop("metadata", {}),
    }
    source = {"repoURL": "https://git.test/a", "path": "a"}
    destination = {"name": cluster, "namespace": "web"}
    spec = {"project": "default", "source": source, "destination": destination}
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": metadata, "spec": spec, **parts}


def works(fleet: Fleet) -> list[Obj]:
    found: list[Obj] = fleet.hub.get(ALL_WORKS)["items"]
    return found


def report(fleet: Fleet, work: Obj, **values: str) -> None:
    """Write what an agent reports of the Application of a work."""
    feedback = [{"name": key, "fieldValue": {"type": "String", "string": value}} for key, value in values.items()]
    entry = {"resourceMeta": {"ordinal": 0}, "conditions": [], "statusFeedback": {"values": feedback}}
    where = f"{WORKS.format(work['metadata']['namespace'])}/{work['metadata']['name']}/status"
    fleet.hub.send("PATCH", where, {"status": {"resourceStatus": {"manifests": [entry]}}})


def test_b77_an_application_for_a_cluster_becomes_a_work_of_its_name_and_uid() -> None:
    fleet = hub()
    app = fleet.hub.send("POST", APPS.format("argocd"), application("web"))
    (work,) = works(fleet)
    assert work["metadata"]["name"] == f"web-{app['metadata']['uid'][:5]}"
    assert work["metadata"]["namespace"] == "c1"


@pytest.mark.parametrize(("label", "annotation"), [("yes", "c1"), ("true", "")])
def test_b78_an_application_that_is_not_for_a_cluster_is_left_alone(label: str, annotation: str) -> None:
    fleet = hub()
    metadata = {"labels": {names.PULL: label}, "annotations": {names.CLUSTER: annotation}}
    fleet.hub.send("POST", APPS.format("argocd"), application("web", metadata={"name": "web", **metadata}))
    assert works(fleet) == []


def _payload(**parts: Any) -> Obj:
    fleet = hub()
    fleet.hub.send("POST", APPS.format("argocd"), application("web", **parts))
    (work,) = works(fleet)
    found: Obj = work["spec"]["workload"]["manifests"][0]
    return found


def test_b79_the_copy_of_a_cluster_is_for_itself_unless_annotations_say_otherwise() -> None:
    own = _payload()["spec"]["destination"]
    assert (own["name"], own["server"]) == ("", "https://kubernetes.default.svc")
    annotations = {names.CLUSTER: "c1", names.DESTINATION_NAME: "in-cluster"}
    named = _payload(metadata={"annotations": annotations})["spec"]["destination"]
    assert (named["name"], named["server"]) == ("in-cluster", "")


def test_b80_what_only_the_hub_uses_stays_there() -> None:
    annotations = {
        names.CLUSTER: "c1",
        names.CLUSTER_NAMESPACE: "gitops",
        "argocd.argoproj.io/skip-reconcile": "true",
        "team": "web",
    }
    kept = {"labels": {names.PULL: "true", "tier": "front"}, "finalizers": ["resources-finalizer.argocd.argoproj.io"]}
    found = _payload(metadata={"annotations": annotations, **kept})["metadata"]
    assert found["namespace"] == "gitops"
    assert found["annotations"] == {"team": "web"}
    assert found["labels"] == {"tier": "front"}
    assert found["finalizers"] == kept["finalizers"]


def test_b81_an_operation_travels_once() -> None:
    fleet = hub()
    app = application("web", operation={"sync": {"revision": "v1"}})
    fleet.hub.send("POST", APPS.format("argocd"), app)
    (work,) = works(fleet)
    assert dig(work["spec"]["workload"]["manifests"][0], "operation", "sync", "revision") == "v1"
    assert "operation" not in fleet.hub.get(f"{APPS.format('argocd')}/web")
    report(fleet, work, operationStateStartedAt="2026-01-01T00:00:00Z", operationStatePhase="Running")
    (work,) = works(fleet)
    assert "operation" not in work["spec"]["workload"]["manifests"][0]


def test_b82_health_returns_by_way_of_progressing_and_not_twice() -> None:
    fleet = hub()
    fleet.hub.send("POST", APPS.format("argocd"), application("web"))
    (work,) = works(fleet)
    report(fleet, work, syncStatus="Synced")
    assert "health" not in (fleet.hub.get(f"{APPS.format('argocd')}/web").get("status") or {})
    report(fleet, work, syncStatus="Synced", healthStatus="Healthy", syncRevision="abc")
    app = fleet.hub.get(f"{APPS.format('argocd')}/web")
    assert app["status"]["health"]["status"] == "Healthy"
    assert app["status"]["sync"] == {"status": "Synced", "revision": "abc"}
    steps = [one.what for one in fleet.journal if one.who == "pulled-status" and "Application" in one.what]
    written = app["metadata"]["resourceVersion"]
    report(fleet, work, syncStatus="Synced", healthStatus="Healthy", syncRevision="abc", other="x")
    assert fleet.hub.get(f"{APPS.format('argocd')}/web")["metadata"]["resourceVersion"] == written
    assert len(steps) == 2


def test_a_steady_application_costs_no_write() -> None:
    fleet = hub()
    fleet.hub.send("POST", APPS.format("argocd"), application("web"))
    (before,) = works(fleet)
    app = fleet.hub.get(f"{APPS.format('argocd')}/web")
    status = {"status": {"health": {"status": "Missing"}}}
    fleet.hub.send("PATCH", f"{APPS.format('argocd')}/web", status)
    fleet.time.advance(3600)
    (after,) = works(fleet)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    assert after["metadata"]["generation"] == 1
    assert app["spec"] == fleet.hub.get(f"{APPS.format('argocd')}/web")["spec"]


def test_a_cluster_does_not_report_for_the_application_of_another_one() -> None:
    fleet = hub(None, "c1", "c2")
    fleet.hub.send("POST", APPS.format("argocd"), application("web"))
    (work,) = works(fleet)
    forged = {**work, "metadata": {**work["metadata"], "namespace": "c2", "uid": "", "resourceVersion": ""}}
    made = fleet.hub.send("POST", WORKS.format("c2"), forged)
    report(fleet, made, syncStatus="OutOfSync", healthStatus="Degraded")
    assert "status" not in fleet.hub.get(f"{APPS.format('argocd')}/web")


def test_b83_the_work_goes_with_its_application() -> None:
    fleet = hub()
    finalizer = ["resources-finalizer.argocd.argoproj.io"]
    for name, finalizers in (("kept", []), ("web", finalizer), ("plain", [])):
        made = application(name)
        made["metadata"]["finalizers"] = finalizers
        fleet.hub.send("POST", APPS.format("argocd"), made)
    for name in ("web", "plain"):
        fleet.hub.send("DELETE", f"{APPS.format('argocd')}/{name}")
        fleet.time.advance(60)
        assert fleet.hub.absent(f"{APPS.format('argocd')}/{name}")
    assert [one["metadata"]["name"].rpartition("-")[0] for one in works(fleet)] == ["kept"]


def in_a_set(fleet: Fleet, *clusters: str) -> None:
    template = {"metadata": {"name": "x"}, "spec": application("x")["spec"]}
    made = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet"}
    spec = {"generators": [], "template": template}
    owner = fleet.hub.send("POST", SETS, {**made, "metadata": {"name": "set", "namespace": "argocd"}, "spec": spec})
    reference = {key: owner[key] for key in ("apiVersion", "kind")}
    reference |= {"name": "set", "uid": owner["metadata"]["uid"], "controller": True}
    for cluster in clusters:
        app = application(f"web-{cluster}", cluster)
        app["metadata"]["ownerReferences"] = [reference]
        fleet.hub.send("POST", APPS.format("argocd"), app)


def test_only_placeholders_of_clusters_go_with_them() -> None:
    fleet = hub()
    secrets = "/api/v1/namespaces/argocd/secrets"
    labels = {"argocd.argoproj.io/secret-type": "cluster"}
    kind = {"apiVersion": "v1", "kind": "Secret"}
    metadata = {"name": "prod-secret", "labels": labels}
    data = {"name": "prod", "server": "https://prod.test", "config": "{}"}
    fleet.hub.send("POST", secrets, {**kind, "metadata": metadata, "stringData": data})
    assert not fleet.hub.absent(f"{secrets}/c1-secret")
    fleet.hub.send("DELETE", "/apis/cluster.open-cluster-management.io/v1/managedclusters/c1")
    fleet.time.advance(60)
    assert fleet.hub.absent(f"{secrets}/c1-secret")
    assert not fleet.hub.absent(f"{secrets}/prod-secret")


def test_b84_the_report_of_a_set_counts_its_clusters_in_strings() -> None:
    fleet = hub(None, "c1", "c2", "c3")
    in_a_set(fleet, "c1", "c2", "c3")
    said = [("Healthy", "Synced"), ("Progressing", "Synced"), ("Degraded", "OutOfSync")]
    for work, (health, sync) in zip(works(fleet), said, strict=True):
        report(fleet, work, healthStatus=health, syncStatus=sync)
    fleet.time.advance(2)  # one write for what comes in a second
    found = fleet.hub.get(f"{REPORTS}/set")["statuses"]
    wanted = {"clusters": "3", "healthy": "1", "notHealthy": "2", "inProgress": "1", "synced": "2", "notSynced": "1"}
    assert found["summary"] == wanted
    assert [one["cluster"] for one in found["clusterConditions"]] == ["c1", "c2", "c3"]


def test_b87_the_report_and_its_works_go_with_the_set() -> None:
    fleet = hub(PullSettings(Variant.BASIC), "c1")
    in_a_set(fleet, "c1")
    fleet.time.advance(2)
    assert not fleet.hub.absent(f"{REPORTS}/set")
    fleet.hub.send("DELETE", f"{SETS}/set")
    fleet.time.advance(60)
    assert fleet.hub.absent(f"{REPORTS}/set")
    assert works(fleet) == []


def test_b87_also_works_go_that_the_report_does_not_name() -> None:
    fleet = hub(PullSettings(Variant.ACM), "c1")
    decided = "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/argocd/placementdecisions"
    kind = {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision"}
    fleet.hub.send("POST", decided, {**kind, "metadata": {"name": "d", "namespace": "argocd"}})
    fleet.hub.send("PATCH", f"{decided}/d/status", {"status": {"decisions": [{"clusterName": "c1", "reason": ""}]}})
    project = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject", "metadata": {"name": "default"}, "spec": {}}
    fleet.hub.send("POST", "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects", project)
    in_a_set(fleet, "c1")
    owners = fleet.hub.get(f"{APPS.format('argocd')}/web-c1")["metadata"]["ownerReferences"]
    for name in ("second", "third"):
        app = application(name)
        app["metadata"]["ownerReferences"] = owners
        fleet.hub.send("POST", APPS.format("argocd"), app)
    fleet.time.advance(2)
    fleet.hub.send("DELETE", f"{APPS.format('argocd')}/third")
    fleet.time.advance(60)
    entries = fleet.hub.get(f"{REPORTS}/set")["statuses"]["clusterConditions"]
    assert (len(entries), len(works(fleet))) == (1, 3), "one entry for each cluster, and the last one counts"
    fleet.hub.send("DELETE", f"{SETS}/set")
    fleet.time.advance(60)
    assert works(fleet) == []
    assert fleet.hub.absent(f"{REPORTS}/set")


def test_the_acm_variant_carries_what_a_placement_of_the_namespace_selects() -> None:
    fleet = hub(PullSettings(Variant.ACM), "c1")
    project = {"apiVersion": "argoproj.io/v1alpha1", "kind": "AppProject"}
    metadata = {"name": "default", "namespace": "argocd"}
    projects = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects"
    fleet.hub.send("POST", projects, {**project, "metadata": metadata, "spec": {}})
    in_a_set(fleet, "c1")
    assert works(fleet) == []
    decided = "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/argocd/placementdecisions"
    kind = {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision"}
    fleet.hub.send("POST", decided, {**kind, "metadata": {"name": "d", "namespace": "argocd"}})
    status = {"status": {"decisions": [{"clusterName": "c1", "reason": ""}]}}
    fleet.hub.send("PATCH", f"{decided}/d/status", status)
    (work,) = works(fleet)
    kinds = [one["kind"] for one in work["spec"]["workload"]["manifests"]]
    assert kinds == ["Namespace", "AppProject", "Application"]
    report(fleet, work, healthStatus="Degraded", syncStatus="OutOfSync")
    app = fleet.hub.get(f"{APPS.format('argocd')}/web-c1")
    assert app["status"]["health"]["status"] == "Degraded"
    assert app["status"]["conditions"][0]["type"] == "AdditionalStatusReport"
