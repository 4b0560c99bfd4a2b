"""Rendered content under an order over clusters: what is not permitted yet reaches no namespace of a cluster."""

from __future__ import annotations

import base64
from typing import Any

from tests.fleet.contents import APP, CHUNKS, CONTENTS, MAPS, PASSWORD, Scene, secret
from tests.fleet.order.worlds import ROLLOUT
from tests.fleet.test_pull_controllers import APPS, SETS
from tests.fleet.world import config_map

from syncline.argo.content.entries import chunk_names, entries_of
from syncline.fleet.pull import names
from syncline.fleet.pull.names import Variant
from syncline.fleet.pull.order.annotations import CLUSTER_WAVE, HEALTHY_FOR
from syncline.fleet.pull.order.release import is_application, manifests_of
from syncline.kube.objects import Obj, dig, name_of

WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"


def content_set(*clusters: str, healthy_for: str = "60s") -> Obj:
    """Return a set whose Applications travel with content, each cluster a wave."""
    metadata = {
        "name": "web-{{cluster}}",
        "labels": {names.PULL: "true"},
        "annotations": {
            names.CLUSTER: "{{cluster}}",
            "argocd.argoproj.io/skip-reconcile": "true",
            "syncline.dev/content": "agent",
            CLUSTER_WAVE: "{{wave}}",
            HEALTHY_FOR: healthy_for,
        },
    }
    spec = {
        "project": "default",
        "source": {"repoURL": "https://git.test/a", "path": "a", "targetRevision": "main"},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        "syncPolicy": {"automated": {"prune": True}},
    }
    rows = [{"cluster": name, "wave": str(wave)} for wave, name in enumerate(clusters)]
    kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "ApplicationSet", "metadata": {"name": "set"}}
    return {
        **kind,
        "spec": {"generators": [{"list": {"elements": rows}}], "template": {"metadata": metadata, "spec": spec}},
    }


def phase(scene: Scene) -> str:
    return str(dig(scene.fleet.hub.get(ROLLOUT), "status", "phase")) if not scene.fleet.hub.absent(ROLLOUT) else ""


def until(scene: Scene, seconds: int, *wanted: str) -> None:
    for _ in range(seconds // 5):
        if phase(scene) in wanted:
            return
        scene.fleet.time.advance(5)
    raise AssertionError(f"not {wanted} after {seconds} s: {scene.fleet.hub.get(ROLLOUT).get('status')}")


def in_order(**options: Any) -> Scene:
    scene = Scene(config_map("a", text="one"), secret(), clusters=("c1", "c2"), ordered=True, **options)
    scene.fleet.hub.send("POST", SETS, content_set("c1", "c2"))
    until(scene, 1200, "Done")
    return scene


def rolled_out(scene: Scene, text: str) -> None:
    """Commit, and wait until each cluster has proved it."""
    commit(scene, text)
    scene.fleet.time.advance(10)
    assert phase(scene) == "Progressing"
    until(scene, 600, "Done")
    assert {runs(scene, name) for name in ("c1", "c2")} == {text}


def commit(scene: Scene, text: str) -> str:
    made = scene.source.commit(config_map("a", text=text), secret(password=f"password-{text}"))
    for name in ("c1", "c2"):
        refreshed = {"metadata": {"annotations": {"argocd.argoproj.io/refresh": "normal"}}}
        scene.fleet.hub.send("PATCH", f"{APPS.format('argocd')}/web-{name}", refreshed)
    scene.fleet.time.advance(2)
    return made


def runs(scene: Scene, cluster: str) -> str:
    return str(scene.spoke(f"{MAPS}/a", cluster)["data"]["text"])


def revisions(scene: Scene, cluster: str) -> list[str]:
    """Return the commits of which a cluster's namespace has content, the current one first."""
    return [one["revisions"][0] for each in scene.listed(CONTENTS, cluster) for one in entries_of(each)]


def roll_back(scene: Scene) -> None:
    release = scene.fleet.hub.get(ROLLOUT)["status"]["release"]
    scene.fleet.hub.send("PATCH", ROLLOUT, {"spec": {"rollBack": {"from": release, "reason": "slow"}}})


def test_content_of_a_later_wave_is_made_when_its_release_is_permitted_and_goes_back_with_it() -> None:
    """Three commits while the first wave proves nothing: the second cluster's namespace never has one of them."""
    scene = in_order()
    first = scene.source.head
    for number in range(3):
        last = commit(scene, f"new-{number}")
        scene.fleet.time.advance(20)
        assert (runs(scene, "c1"), revisions(scene, "c1")[0]) == (f"new-{number}", last)
        assert runs(scene, "c2") == "one"
        assert revisions(scene, "c2") == [first], "nothing of the release is there before its permit"
        (content,) = scene.listed(CONTENTS, "c2")
        named = {name for one in entries_of(content) for name in chunk_names(one)}
        assert {name_of(one) for one in scene.listed(CHUNKS, "c2")} == named
    until(scene, 600, "Done")
    assert (runs(scene, "c2"), revisions(scene, "c2")[0]) == ("new-2", last)
    assert scene.spoke(f"{APPS.format('argocd')}/web-c2", "c2")["status"]["sync"]["revision"] == last
    assert first in revisions(scene, "c2"), "its grace is not over"
    roll_back(scene)
    until(scene, 300, "RolledBack")
    _is_back(scene, first)


def _is_back(scene: Scene, first: str) -> None:
    scene.fleet.time.advance(60)
    for name in ("c1", "c2"):
        assert (runs(scene, name), revisions(scene, name)[0]) == ("one", first)
        found = scene.spoke("/api/v1/namespaces/default/secrets/db", name)["data"]["password"]
        assert base64.b64decode(found).decode() == PASSWORD


def test_a_roll_back_whose_content_is_gone_is_rendered_again_and_is_not_over_before() -> None:
    scene = in_order()
    first = scene.source.head
    rolled_out(scene, "two")
    for name in ("c1", "c2"):
        (content,) = scene.listed(CONTENTS, name)
        only = {"content": {"entries": entries_of(content)[:1]}}  # as when the grace is over
        scene.fleet.hub.send("PATCH", f"{CONTENTS.format(name)}/{name_of(content)}", only)
    assert first not in revisions(scene, "c2")
    scene.source.lost = frozenset({first})
    scene.restart_pull()  # what it has rendered is forgotten
    roll_back(scene)
    scene.fleet.time.advance(300)
    assert phase(scene) == "RollingBack", "the clusters still have the bad release"
    assert (runs(scene, "c1"), runs(scene, "c2")) == ("two", "two")
    for one in scene.fleet.hub.get(ROLLOUT)["status"]["clusters"]:
        assert one["state"] == "Permitted", "one that lacks content keeps none of the others at the bad release"
        assert one["why"] == f"the hub cannot render it: commit {first} is not in the repository"
    scene.source.lost = frozenset()
    until(scene, 300, "RolledBack")
    _is_back(scene, first)


def test_sources_whose_content_cannot_be_made_are_not_proved_by_the_content_before() -> None:
    """The commit is the same, the folder is another one: the revision alone does not tell."""
    scene = in_order()
    scene.source.fails = "no such folder"
    scene.fleet.hub.send("PATCH", f"{SETS}/set", {"spec": {"template": {"spec": {"source": {"path": "b"}}}}})
    scene.fleet.time.advance(400)
    assert phase(scene) != "Done"
    status = scene.fleet.hub.get(ROLLOUT)["status"]
    whys = {one["cluster"]: one.get("why", "") for one in status["clusters"]}
    assert "no such folder" in whys["c1"], status
    assert "wave 0 comes first" in whys["c2"]
    scene.source.fails = ""
    until(scene, 900, "Done")
    for name in ("c1", "c2"):
        (app,) = filter(is_application, manifests_of(scene.listed(WORKS, name)[0]))
        assert app["spec"]["source"]["path"] == "b"


def test_under_the_rules_of_acm_content_travels_with_namespace_and_project() -> None:
    scene = Scene(config_map("a", text="one"), secret(), variant=Variant.ACM)
    group = "cluster.open-cluster-management.io"
    scene.send()
    assert "no PlacementDecision in namespace argocd selects cluster c1" in scene.conditions()["ContentError"]
    assert scene.source.asked == [] and scene.listed(CONTENTS) == [] and scene.listed(WORKS) == []
    binding = {"apiVersion": f"{group}/v1beta2", "kind": "ManagedClusterSetBinding", "metadata": {"name": "global"}}
    bindings = f"/apis/{group}/v1beta2/namespaces/argocd/managedclustersetbindings"
    scene.fleet.hub.send("POST", bindings, {**binding, "spec": {"clusterSet": "global"}})
    placement = {"apiVersion": f"{group}/v1beta1", "kind": "Placement", "metadata": {"name": "p"}, "spec": {}}
    scene.fleet.hub.send("POST", f"/apis/{group}/v1beta1/namespaces/argocd/placements", placement)
    scene.fleet.time.advance(120)
    assert scene.maps() == ["a"] and "ContentError" not in scene.conditions()
    (work,) = scene.listed(WORKS)
    kinds = [one["kind"] for one in manifests_of(work)]
    assert kinds == ["Namespace", "AppProject", "Application"]
    assert scene.here()["status"]["sync"]["revision"] == scene.source.head
    scene.fleet.hub.send("DELETE", APP)
    scene.fleet.time.advance(1500)
    assert scene.listed(CONTENTS) == [] and scene.listed(CHUNKS) == [] and scene.there(CHUNKS) == []
