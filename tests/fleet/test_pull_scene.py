"""The scene of the pull model, unchanged: an ApplicationSet by Placement, a GitOpsCluster, three clusters that pull.

An administrator adds what the scene leaves to one: the ConfigMap of its generator, the Placements, and a binding.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fleet.test_pull_whole import Rows
from tests.fleet.world import Fleet
from tests.gitops.behaviours.sim import Source
from tests.scenes.scenes import scene

from syncline.assembly.fleet.pull import pull_objects, pull_role
from syncline.fleet.pull.controllers.parts import PullSettings
from syncline.gitops.application.observing.observe import AppSettings
from syncline.kube.objects import Obj, name_of
from syncline.kube.yaml.loading import load_all

NAMESPACE = "openshift-gitops"
APPS = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applications"
SET = "guestbook-allclusters-app-set"
REPORT = (
    f"/apis/apps.open-cluster-management.io/v1alpha1/namespaces/{NAMESPACE}/multiclusterapplicationsetreports/{SET}"
)
DEPLOYMENT = "/apis/apps/v1/namespaces/guestbook/deployments/guestbook-ui"
CLUSTERS = ("aws-1", "aws-2", "gcp-1")
GROUP = "cluster.open-cluster-management.io"


def _objects(path: Path) -> list[Obj]:
    return [one.value for one in load_all(path.read_text(), file=path.name).documents if one.value is not None]


def _administrators() -> list[tuple[str, Obj]]:
    """Return what an administrator makes on the hub before, each with the path of its collection."""
    bindings = f"/apis/{GROUP}/v1beta2/namespaces/{NAMESPACE}/managedclustersetbindings"
    placements = f"/apis/{GROUP}/v1beta1/namespaces/{NAMESPACE}/placements"
    kind = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Placement"}
    binding = {"apiVersion": f"{GROUP}/v1beta2", "kind": "ManagedClusterSetBinding", "metadata": {"name": "global"}}
    data = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "placementdecisions",
        "statusListKey": "decisions",
        "matchKey": "clusterName",
    }
    service = {"app.kubernetes.io/component": "server", "app.kubernetes.io/part-of": "argocd"}
    return [
        (bindings, {**binding, "spec": {"clusterSet": "global"}}),
        (placements, {**kind, "metadata": {"name": "aws-app-placement"}, "spec": {}}),
        (placements, {**kind, "metadata": {"name": "bgdk-app-placement"}, "spec": {}}),
        (
            f"/api/v1/namespaces/{NAMESPACE}/configmaps",
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ocm-placement-generator"}, "data": data},
        ),
        (
            f"/api/v1/namespaces/{NAMESPACE}/services",
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "argocd-server", "labels": service},
                "spec": {"ports": [{"port": 443}]},
            },
        ),
    ]


def guestbook() -> list[Obj]:
    folder = scene("argocd-example-apps") / "guestbook"
    return [one for path in sorted(folder.iterdir()) for one in _objects(path)]


def hub_of_the_scene() -> Fleet:
    """Return a fleet without clusters whose hub has the GitOps controllers and the pull model."""
    settings, made = PullSettings(argo_namespace=NAMESPACE), Fleet()
    made.start_role(pull_role(settings, objects=tuple(pull_objects(settings))))
    made.start_gitops(made.hub, Rows(), AppSettings(NAMESPACE))
    return made


def play(made: Fleet, seconds: float) -> Fleet:
    """Bring the administrator's objects and the scene to the hub."""
    for path, obj in _administrators():
        made.hub.send("POST", path, obj)
    for file, path in (("gitopscluster.yaml", "apps.open-cluster-management.io/v1beta1"), ("applicationset.yaml", "")):
        for obj in _objects(scene("pull-model") / file):
            plural = f"{obj['kind'].lower()}s"
            made.hub.send("POST", f"/apis/{path or obj['apiVersion']}/namespaces/{NAMESPACE}/{plural}", obj)
    made.time.advance(seconds)
    return made


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    made, manifests = hub_of_the_scene(), guestbook()
    for name in CLUSTERS:
        made.start_gitops(made.add(name), Source(*manifests), AppSettings(NAMESPACE))
    return play(made, 300)


def test_each_cluster_runs_the_guestbook_that_it_pulled(fleet: Fleet) -> None:
    for name in CLUSTERS:
        assert fleet.members[name].get(DEPLOYMENT)["spec"]["replicas"] == 1
    assert fleet.hub.absent(DEPLOYMENT), "nothing runs on the hub"


def test_the_hub_has_one_application_and_one_work_for_each_cluster(fleet: Fleet) -> None:
    apps = fleet.hub.get(APPS)["items"]
    assert [name_of(one) for one in apps] == [f"{name}-guestbook-app" for name in CLUSTERS]
    for app, cluster in zip(apps, CLUSTERS, strict=True):
        works = fleet.hub.get(f"/apis/work.open-cluster-management.io/v1/namespaces/{cluster}/manifestworks")["items"]
        assert [name_of(one) for one in works] == [f"{name_of(app)}-{app['metadata']['uid'][:5]}"]
        kinds = [one["kind"] for one in works[0]["spec"]["workload"]["manifests"]]
        assert kinds == ["Namespace", "Application"], "the project default of this namespace is in each cluster already"


def test_status_returns_and_the_report_has_every_cluster(fleet: Fleet) -> None:
    for app in fleet.hub.get(APPS)["items"]:
        assert app["status"]["sync"]["status"] == "Synced", app["metadata"]["name"]
    found = fleet.hub.get(REPORT)["statuses"]
    assert [one["cluster"] for one in found["clusterConditions"]] == list(CLUSTERS)
    assert (found["summary"]["clusters"], found["summary"]["synced"]) == ("3", "3")
    assert [(one["kind"], one["name"]) for one in found["resources"]] == [
        ("Deployment", "guestbook-ui"),
        ("Service", "guestbook-ui"),
    ]


def test_the_gitopscluster_adds_the_clusters_to_argo_cd(fleet: Fleet) -> None:
    path = f"/apis/apps.open-cluster-management.io/v1beta1/namespaces/{NAMESPACE}/gitopsclusters/argo-acm-importer"
    status = fleet.hub.get(path)["status"]
    assert status["phase"] == "successful"
    assert status["message"] == f"Added managed clusters [{' '.join(CLUSTERS)}] to gitops namespace {NAMESPACE}"
