"""Objects that claim to be an Application's, and Applications that reach for another's: marks are no rights."""

from __future__ import annotations

from typing import Any

import pytest
from tests.gitops.behaviours.sim import APPS, MAPS, PROJECTS, Simulation, annotated, config

from syncline.argo.tracking import (
    INSTANCE_LABEL,
    Tracking,
    TrackingError,
    TrackingMethod,
    instance_name,
    parse_instance,
    truncate_label,
)
from syncline.kube.objects import Obj

SERVER = "https://kubernetes.default.svc"
CASCADE = "resources-finalizer.argocd.argoproj.io"
OTHER = "/api/v1/namespaces/other/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
NAMESPACES = "/api/v1/namespaces"
PROJECT: Obj = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "AppProject",
    "metadata": {"name": "tenant"},
    "spec": {"sourceRepos": ["*"], "destinations": [{"server": SERVER, "namespace": "default"}]},
}
VICTIMS: dict[str, tuple[str, Obj, str]] = {
    "in another namespace": (OTHER, config("victim"), "app:/ConfigMap:other/victim"),
    "in no namespace": (
        ROLES,
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "victim"}},
        "app:rbac.authorization.k8s.io/ClusterRole:/victim",
    ),
    "a namespace": (
        NAMESPACES,
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "victim"}},
        "app:/Namespace:/victim",
    ),
    "of a kind that the project denies": (
        "/api/v1/namespaces/default/services",
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "victim"}, "spec": {"ports": [{"port": 80}]}},
        "app:/Service:default/victim",
    ),
}


def tenant(*objects: Obj, **spec: Any) -> Simulation:
    """A play whose Application belongs to a project of one namespace, with a cascade."""
    sim = Simulation(*objects, nodes=0)
    denied = {"namespaceResourceBlacklist": [{"group": "", "kind": "Service"}]}
    sim.world.send("POST", PROJECTS, PROJECT | {"spec": {**PROJECT["spec"], **denied}})
    sim.world.send("POST", NAMESPACES, {"metadata": {"name": "other"}})
    sim.patch(f"{APPS}/app", {"metadata": {"finalizers": [CASCADE]}, "spec": {"project": "tenant", **spec}})
    sim.driver.settle()
    return sim


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("way", ["cascade", "prune"])
def test_nobody_has_an_object_deleted_by_a_mark_on_it(way: str, victim: str) -> None:
    """Who may annotate it, but not delete it, names an Application of theirs and deletes that."""
    path, obj, mark = VICTIMS[victim]
    sim = tenant(config("own"))
    sim.world.send("POST", path, annotated(obj, tracking_id=mark))
    assert sim.sync({"prune": True})["phase"] == "Succeeded"
    if way == "prune":
        sim.source.commit()
        sim.refresh()
        sim.sync({"prune": True})
    else:
        sim.world.send("DELETE", f"{APPS}/app")
        sim.driver.advance(120)
        assert sim.get(f"{APPS}/app") is None
    assert sim.get(f"{MAPS}/own") is None, "its own objects go"
    found = sim.get(f"{path}/victim")
    assert found is not None and not found["metadata"].get("deletionTimestamp")


@pytest.mark.parametrize("mark", ["other:/ConfigMap:default/taken", "team_app:/ConfigMap:default/taken", "app:x", "::"])
def test_a_mark_of_another_application_is_told_and_never_pruned(mark: str) -> None:
    sim = tenant(config("own"))
    sim.world.send("POST", MAPS, annotated(config("taken"), tracking_id=mark))
    sim.sync({"prune": True})
    sim.world.send("DELETE", f"{APPS}/app")
    sim.driver.advance(120)
    assert sim.maps() == ["taken"]


def test_an_object_of_another_application_is_taken_over_only_with_a_warning() -> None:
    sim = tenant(config("shared", value="mine"))
    sim.world.send("POST", MAPS, annotated(config("shared"), tracking_id="other:/ConfigMap:default/shared"))
    sim.refresh()
    assert "is part of applications argocd/app and other" in sim.conditions()["SharedResourceWarning"]


def test_a_manifest_that_brings_marks_gets_those_of_its_own_application() -> None:
    spoofed = annotated(config("a"), tracking_id="other:/ConfigMap:default/b", installation_id="elsewhere")
    sim = tenant(spoofed)
    sim.sync()
    annotations = sim.world.send("GET", f"{MAPS}/a")["metadata"]["annotations"]
    assert annotations["argocd.argoproj.io/tracking-id"] == "app:/ConfigMap:default/a"
    assert "argocd.argoproj.io/installation-id" not in annotations


@pytest.mark.parametrize(
    "text", ["", ":", "a", "a:b", "a:b:c", "a:b/c:d", "a:/b:c", "a:b/c:d/e/f", "a:b/c/d:e/f", "/" * 300, ":" * 300]
)
def test_a_mark_that_is_none_names_nobody(text: str) -> None:
    with pytest.raises(TrackingError):
        parse_instance(text)
    assert Tracking().app_name(annotated(config("a"), tracking_id=text)) == ""


@pytest.mark.parametrize("name", ["a" * 253, "ns_a", "a:b", "a" * 300 + "é"])
def test_names_of_applications_that_would_be_another_ones_are_told_apart(name: str) -> None:
    plain: Obj = {"metadata": {"name": name, "namespace": "argocd"}}
    other: Obj = {"metadata": {"name": name.partition("_")[2] or name, "namespace": "ns"}}
    assert instance_name(other, "argocd").startswith("ns_"), "and no name of an object has a _"
    stamped = Tracking().stamp(config("x"), instance_name(plain, "argocd"), "default")
    if ":" not in name:
        assert Tracking().app_name(stamped) == name
    both = Tracking(TrackingMethod.ANNOTATION_AND_LABEL).stamp(config("x"), name, "default")
    assert len(both["metadata"]["labels"][INSTANCE_LABEL].encode()) <= 63
    assert truncate_label("a" * 62 + "--") == "a" * 62
