"""ApplicationSets with the controllers of Applications: from directories of a repository to objects on the cluster."""

from __future__ import annotations

from tests.appset.rounds import CONTROL
from tests.appset.sets import FINALIZER
from tests.appset.stage import APPS, Repository, Stage
from tests.appset.world.lives import by_directory, commits, configs, rolled
from tests.gitops.behaviours.sim import MERGE

from syncline.kube.objects import annotations_of, dig


def test_directories_that_come_and_go_bring_and_take_their_objects() -> None:
    one = Stage(Repository("a", "b"))
    one.create(by_directory())
    assert configs(one) == ["a", "b"]
    one.repository.directories = ("a", "c")
    one.driver.advance(400)
    assert configs(one) == ["a", "c"] and list(one.apps()) == ["a", "c"]
    assert dig(one.set(), "status", "resourcesCount") == 2


def test_a_source_that_fails_deletes_nothing_and_is_asked_again() -> None:
    one = Stage(Repository("a", "b"))
    one.create(by_directory())
    one.repository.broken = "no route to host"
    one.driver.advance(400)
    assert list(one.apps()) == ["a", "b"] and "no route to host" in one.condition("ErrorOccurred")["message"]
    one.repository.broken = ""
    one.driver.advance(400)
    assert one.condition("ErrorOccurred")["status"] == "False"


def test_an_empty_answer_waits_for_a_confirmation() -> None:
    one = Stage(Repository(*"abcdef"))
    one.create(by_directory())
    one.repository.directories = ()
    one.driver.advance(400)
    assert len(one.apps()) == 6 and "now spec.generators[0].git makes 0" in one.condition("ErrorOccurred")["message"]
    digest = one.condition("ErrorOccurred")["message"].rpartition(": ")[2]
    one.change({"metadata": {"annotations": {"syncline.dev/confirm-deletions": digest}}})
    one.driver.advance(60)
    assert one.apps() == {} and configs(one) == []


def test_sets_that_ask_the_same_share_one_answer() -> None:
    one = Stage(Repository("a"))
    for number in range(5):
        found = by_directory()
        found["metadata"]["name"] = f"set{number}"
        found["spec"]["template"]["metadata"]["name"] = f"{{{{path.basename}}}}-{number}"
        one.create(found)
    assert one.repository.questions == 1
    one.driver.advance(600)
    assert len(one.apps()) == 5 and one.repository.questions == 4


def test_a_refresh_asks_at_once_and_its_annotation_goes() -> None:
    one = Stage(Repository("a"))
    one.create(by_directory())
    one.repository.directories = ("a", "b")
    one.change({"metadata": {"annotations": {"argocd.argoproj.io/application-set-refresh": "true"}}})
    assert list(one.apps()) == ["a", "b"] and annotations_of(one.set()) == {}


def test_a_quiet_set_writes_nothing() -> None:
    one = Stage(Repository("a", "b"))
    one.create(by_directory())
    before = one.world.core.store.revision, one.repository.questions
    one.driver.advance(1000)
    changed = one.world.core.store.revision - before[0]
    assert one.repository.questions > before[1] + 3
    assert changed == 0 or not [text for text in one.apps() if text not in ("a", "b")]


def test_an_application_keeps_what_its_own_controller_writes() -> None:
    one = Stage(Repository("a"))
    one.create(by_directory())
    one.change({"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}})
    one.driver.advance(30)
    found = one.apps()["a"]
    assert found["metadata"]["labels"] == {"x": "y"} and found["status"]["operationState"]["phase"] == "Succeeded"
    assert "syncline.dev/operation-started" in annotations_of(found)


def test_a_rollout_brings_a_commit_to_one_step_after_the_other() -> None:
    one = Stage(Repository(), enable_progressive_syncs="true")
    one.create(rolled(annotations={"syncline.dev/rollout-evidence": "strict"}))
    one.driver.advance(60)
    assert commits(one) == {"d1": "1", "d2": "1", "p1": "1"}
    assert one.condition("RolloutProgressing")["status"] == "False"
    order: list[str] = []

    def note(event: object) -> None:
        key = event.stored.key  # type: ignore[attr-defined]
        if key.resource.endswith("configmaps") and key.namespace == "default":
            order.append(key.name)

    one.world.core.store.subscribe(note)
    one.repository.commit = 2
    one.driver.advance(600)
    assert commits(one) == {"d1": "2", "d2": "2", "p1": "2"}
    assert sorted(order[:2]) == ["d1", "d2"] and order[2:] == ["p1"]
    assert one.condition("RolloutProgressing")["status"] == "False"


def test_a_set_in_reverse_order_takes_the_last_step_first() -> None:
    one = Stage(Repository(), enable_progressive_syncs="true")
    one.create(rolled(strategy={"deletionOrder": "Reverse"}))
    one.driver.advance(120)
    gone: list[str] = []
    one.world.core.store.subscribe(
        lambda event: (
            gone.append(event.stored.key.name)
            if event.type == "DELETED" and "applications" in event.stored.key.resource
            else None
        )
    )
    assert one.set()["metadata"]["finalizers"] == [FINALIZER]
    one.delete()
    one.driver.advance(120)
    assert gone[0] == "p1" and sorted(gone[1:3]) == ["d1", "d2"]
    assert one.names(APPS) == [] and configs(one) == []


def test_b22_a_cluster_that_comes_changes_or_goes_wakes_sets_with_clusters_at_any_depth() -> None:
    one = Stage(Repository("a"))
    clusters = {"clusters": {"selector": {"matchLabels": {"env": "prod"}}}}
    listed = {"list": {"elements": [{"n": "1"}]}}
    for name, generator in (("flat", clusters), ("deep", {"matrix": {"generators": [listed, clusters]}})):
        found = by_directory()
        found["metadata"]["name"] = name
        found["spec"]["generators"] = [generator]
        found["spec"]["template"]["metadata"]["name"] = f"{name}-{{{{name}}}}"
        found["spec"]["template"]["spec"]["destination"] = {"name": "{{name}}", "namespace": "demo"}
        one.create(found)
    assert one.apps() == {}
    secrets = f"/api/v1/namespaces/{CONTROL}/secrets"
    labels = {"argocd.argoproj.io/secret-type": "cluster", "env": "prod"}
    data = {"name": "east", "server": "https://east.example", "config": "{}"}
    metadata = {"name": "c1", "namespace": CONTROL, "labels": labels}
    one.world.send("POST", secrets, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})
    one.driver.settle()
    assert list(one.apps()) == ["deep-east", "flat-east"]
    one.world.send("PATCH", f"{secrets}/c1", {"metadata": {"labels": {"env": "test"}}}, MERGE)
    one.driver.settle()
    assert all(dig(app, "metadata", "deletionTimestamp") for app in one.apps().values())


def test_what_templates_draw_is_equal_in_worlds_of_one_seed_and_comes_to_rest() -> None:
    def labels() -> object:
        one = Stage(Repository("a"))
        found = by_directory()
        found["spec"]["goTemplate"] = True
        metadata = {"name": "{{ .path.basename }}", "labels": {"drawn": "{{ randAlphaNum 8 }}"}}
        found["spec"]["template"]["metadata"] = metadata
        found["spec"]["template"]["spec"]["source"]["path"] = "{{ .path.path }}"
        one.create(found)
        first = dig(one.apps()["a"], "metadata", "labels", "drawn")
        one.driver.advance(400)
        assert first and dig(one.apps()["a"], "metadata", "labels", "drawn") == first
        return first

    assert labels() == labels()
