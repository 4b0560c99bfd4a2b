"""Behaviours of the pull model that no recorded case shows."""

from __future__ import annotations

from typing import Any

from tests.fleet.pulls import run

from syncline.fleet.pull import names
from syncline.fleet.pull.gitops_secrets import CLUSTER_NAME, OURS
from syncline.kube.objects import Obj

ARGO = "openshift-gitops"


def thing(kind: str, name: str, namespace: str = ARGO, **parts: Any) -> Obj:
    metadata = {"name": name, "namespace": namespace, **parts.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **parts}


def gitops(*decided: str, **spec: Any) -> list[Obj]:
    """A GitOpsCluster whose Placement decided for these clusters."""
    server = {"app.kubernetes.io/component": "server", "app.kubernetes.io/part-of": "argocd"}
    placement = {"kind": "Placement", "apiVersion": "cluster.open-cluster-management.io/v1beta1", "name": "pl"}
    decisions = [{"clusterName": one} for one in decided]
    labels = {"cluster.open-cluster-management.io/placement": "pl"}
    return [
        thing("GitOpsCluster", "importer", spec={"argoServer": {}, "placementRef": placement, **spec}),
        thing("Service", "server", metadata={"labels": server}),
        thing("Placement", "pl"),
        thing("PlacementDecision", "pl-1", metadata={"labels": labels}, status={"decisions": decisions}),
    ]


def of(found: Obj, kind: str) -> list[Obj]:
    return [one for one in found["objects"] if one["kind"] == kind]


def test_a_cluster_that_pulls_has_a_secret_without_a_credential() -> None:
    cluster = thing("ManagedCluster", "c1", "", metadata={"labels": {"env": "prod"}})
    found = run("gitops", {"objects": [*gitops("c1", createBlankClusterSecrets=True), cluster]})
    (secret,) = of(found, "Secret")
    assert secret["metadata"]["name"] == "c1-application-manager-cluster-secret"
    assert secret["stringData"] == {"name": "c1", "server": "https://c1-control-plane"}
    assert secret["metadata"]["labels"]["env"] == "prod"


def test_b88_a_secret_goes_only_when_its_cluster_is_gone() -> None:
    labels = {"argocd.argoproj.io/secret-type": "cluster", OURS: "true"}
    left = [thing("Secret", f"{one}-s", metadata={"labels": {**labels, CLUSTER_NAME: one}}) for one in ("c1", "c2")]
    found = run("gitops", {"objects": [*gitops(), *left, thing("ManagedCluster", "c1", "")]})
    assert [one["metadata"]["name"] for one in of(found, "Secret")] == ["c1-s"]


def test_b83_the_work_of_an_application_without_finalizer_goes_too() -> None:
    metadata = {"labels": {names.PULL: "true"}}
    works = [
        thing(
            "ManifestWork",
            one,
            "c1",
            metadata={**metadata, "annotations": {names.HUB_NAMESPACE: ARGO, names.HUB_NAME: one}},
        )
        for one in ("web", "other")
    ]
    found = run("basic-app", {"objects": works, "name": "web", "namespace": ARGO})
    assert [one["metadata"]["name"] for one in of(found, "ManifestWork")] == ["other"]


def test_b85_a_cluster_without_feedback_is_unknown() -> None:
    annotations = {names.HOSTING_SET: f"{ARGO}/set", names.HUB_NAME: "web"}
    metadata = {"labels": {names.SET: "true"}, "annotations": annotations}
    found = run(
        "report", {"objects": [thing("ApplicationSet", "set"), thing("ManifestWork", "web-1", "c1", metadata=metadata)]}
    )
    (report,) = of(found, "MulticlusterApplicationSetReport")
    (entry,) = report["statuses"]["clusterConditions"]
    assert (entry["healthStatus"], entry["syncStatus"]) == ("Unknown", "Unknown")
    assert report["statuses"]["summary"]["notHealthy"] == report["statuses"]["summary"]["notSynced"] == "1"
