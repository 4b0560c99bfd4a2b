"""What a reconcile may create, update and delete (behaviours 1-19 and 60)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.appset.rounds import Table
from tests.appset.sets import FINALIZER, app, app_spec, appset, condition, names, parameters, rows, table, writes

from syncline.kube.objects import Obj, ObjectRef, annotations_of, finalizers, labels_of, owner_references

BROKEN: Obj = {"list": {"elements": [{"n": 1}]}}
"""Without Go templates a number is an error."""


def found(one: Table, name: str, namespace: str = "argocd") -> Obj:
    return one.get(ObjectRef("argoproj.io", "Application", namespace, name))


def test_b1_one_failing_generator_of_two_stops_all_writes() -> None:
    one = table(appset(rows("a", "b"), BROKEN), app("a", spec={"project": "old"}), app("gone"))
    assert writes(one) == []
    assert condition(one, "ErrorOccurred")["status"] == "True"
    assert condition(one, "ParametersGenerated")["status"] == "False"
    assert condition(one, "ResourcesUpToDate")["status"] == "False"


def test_b2_a_list_that_shrinks_to_nothing_deletes_all() -> None:
    one = table(appset(rows()), app("a"), app("b"), app("c"))
    assert writes(one) == ["delete a", "delete b", "delete c"]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("sync", ["create new", "delete gone", "patch old"]),
        ("create-only", ["create new"]),
        ("create-update", ["create new", "patch old"]),
        ("create-delete", ["create new", "delete gone"]),
    ],
)
@pytest.mark.parametrize("source", ["the set", "the controller"])
def test_b3_b4_a_policy_says_what_may_be_written(policy: str, expected: list[str], source: str) -> None:
    own = {"syncPolicy": {"applicationsSync": policy}} if source == "the set" else {}
    settings = parameters() if own else parameters(policy=policy)
    apps = (app("old", spec={"project": "before"}), app("gone"))
    assert writes(table(appset(rows("old", "new"), **own), *apps, settings)) == expected


@pytest.mark.parametrize(
    ("settings", "honoured"),
    [
        ({}, True),
        ({"policy": "sync"}, False),
        ({"policy": "sync", "enable_policy_override": "true"}, True),
        ({"enable_policy_override": "false"}, False),
    ],
)
def test_b5_the_policy_of_a_set_counts_unless_the_controller_has_one(settings: dict[str, str], honoured: bool) -> None:
    one = appset(rows("a"), syncPolicy={"applicationsSync": "create-only"})
    made = writes(table(one, app("a", spec={"project": "old"}), app("gone"), parameters(**settings)))
    assert made == ([] if honoured else ["delete gone", "patch a"])


def test_b6_an_unowned_application_is_adopted_even_when_only_creating() -> None:
    one = table(
        appset(rows("a"), syncPolicy={"applicationsSync": "create-only"}), app("a", owner="", spec={"project": "old"})
    )
    assert writes(one) == ["patch a"]
    assert found(one, "a")["spec"]["project"] == "default"
    assert owner_references(found(one, "a"))[0]["uid"] == "uid-set"


def test_b7_an_application_of_another_set_is_never_taken_over() -> None:
    one = table(appset(rows("a", "b")), app("a", owner="other", spec={"project": "theirs"}), app("gone"))
    assert writes(one) == ["create b"]
    assert found(one, "a")["spec"]["project"] == "theirs"
    assert "already owned by another ApplicationSet controller other" in condition(one, "ErrorOccurred")["message"]


def test_b8_two_rows_of_one_name_write_neither_and_delete_neither() -> None:
    one = table(appset(rows("a", "b"), rows("a")), app("a", spec={"project": "old"}))
    assert writes(one) == ["create b"]
    assert condition(one, "ErrorOccurred")["message"].endswith("contains applications with duplicate name: a")


def test_b9_one_missing_project_of_three_stops_only_its_application() -> None:
    generators = (rows("a", "c"), {**rows("b"), "list": {**rows("b")["list"], "template": {"spec": {"project": "no"}}}})
    one = table(appset(*generators))
    assert writes(one) == ["create a", "create c"]
    assert condition(one, "ErrorOccurred")["message"] == "application references project no which does not exist"


def test_b10_the_namespace_is_that_of_the_set() -> None:
    one = table(appset(rows("a"), template={"namespace": "other"}))
    assert writes(one) == ["create a"]
    assert found(one, "a")["metadata"]["namespace"] == "argocd"


def test_b11_extra_labels_go_unless_they_are_preserved() -> None:
    extra = app("a", labels={"mine": "1", "theirs": "2"}, annotations={"x": "1", "y": "2"})
    kept = {"preservedFields": {"labels": ["mine"], "annotations": ["y"]}}
    one = table(appset(rows("a"), **kept), extra)
    assert writes(one) == ["patch a"]
    assert labels_of(found(one, "a")) == {"mine": "1"} and annotations_of(found(one, "a")) == {"y": "2"}


def test_b12_annotations_of_other_controllers_survive() -> None:
    marks = {"notified.notifications.argoproj.io": "{}", "argocd.argoproj.io/refresh": "hard"}
    one = table(appset(rows("a")), app("a", annotations=marks, spec={"project": "old"}))
    assert writes(one) == ["patch a"] and annotations_of(found(one, "a")) == marks


def test_b12_annotations_of_our_own_controllers_survive_but_for_the_mark_of_a_deletion() -> None:
    marks = {"syncline.dev/operation-started": "1", "syncline.dev/deletion-confirmed": "x", "other.dev/a": "2"}
    one = table(
        appset(rows("a"), template={"annotations": {"syncline.dev/wait-for": "b"}}), app("a", annotations=marks)
    )
    assert writes(one) == ["patch a"]
    kept = {"syncline.dev/operation-started": "1", "syncline.dev/wait-for": "b"}
    assert annotations_of(found(one, "a")) == kept and writes(one) == []


def _written(manager: str, *annotations: str, **more: Any) -> Any:
    fields = {"f:annotations": {f"f:{one}": {} for one in annotations}, **more}
    return {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": fields}}


def test_an_annotation_of_ours_goes_with_the_template_that_gave_it_and_stays_where_a_person_wrote_it() -> None:
    marks = {"syncline.dev/depends-on": "b", "syncline.dev/cluster-wave": "1", "syncline.dev/operation-started": "1"}
    live = app("a", annotations=marks)
    live["metadata"]["managedFields"] = [
        _written("argocd-controller", *marks, **{"f:ownerReferences": {}}),
        _written("kubectl-annotate", "syncline.dev/cluster-wave"),
    ]
    one = table(appset(rows("a")), live)
    assert writes(one) == ["patch a"]
    assert annotations_of(found(one, "a")) == {key: marks[key] for key in list(marks)[1:]}


def test_b13_an_ignored_field_stays_and_other_drift_is_mended() -> None:
    one = table(
        appset(
            rows("a"), ignoreApplicationDifferences=[{"jsonPointers": ["/spec/syncPolicy"]}], app={"syncPolicy": {}}
        ),
        app("a", spec={"syncPolicy": {"automated": {"enabled": False}}, "project": "old"}),
    )
    assert writes(one) == ["patch a"]
    assert found(one, "a")["spec"] == app_spec(syncPolicy={"automated": {"enabled": False}})


def test_b14_a_change_in_a_list_rewrites_the_whole_list() -> None:
    sources = [{"repoURL": "r1", "targetRevision": "v1"}, {"repoURL": "r2", "path": "new"}]
    live = [{"repoURL": "r1", "targetRevision": "mine"}, {"repoURL": "r2", "path": "old"}]
    rule = {"jsonPointers": ["/spec/sources/0/targetRevision"]}
    one = table(
        appset(rows("a"), app={"sources": sources}, ignoreApplicationDifferences=[rule]),
        app("a", spec={"sources": live}),
    )
    assert writes(one) == ["patch a"]
    assert found(one, "a")["spec"]["sources"] == [{"repoURL": "r1"}, {"repoURL": "r2", "path": "new"}]


def test_b15_without_a_change_nothing_is_written_and_said() -> None:
    one = table(appset(rows("a")))
    one.reconcile()
    before = one.of("ApplicationSet")
    again = one.reconcile()
    assert (again.writes, again.events) == ([], []) and one.of("ApplicationSet") == before


@pytest.mark.parametrize(
    ("template", "policy", "expected"),
    [
        ({}, {}, [FINALIZER]),
        ({}, {"preserveResourcesOnDeletion": True}, []),
        ({"finalizers": ["other/x"]}, {}, ["other/x"]),
    ],
)
def test_b16_applications_delete_their_objects_unless_told_otherwise(
    template: Obj, policy: Obj, expected: list[str]
) -> None:
    one = table(appset(rows("a"), template=template, syncPolicy=policy))
    one.reconcile()
    assert finalizers(found(one, "a")) == expected


def test_b17_a_deleted_set_without_finalizer_leaves_its_applications_to_garbage_collection() -> None:
    going = appset(rows("a"), deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["other/x"])
    one = table(going, app("a"))
    assert writes(one) == [] and len(owner_references(found(one, "a"))) == 1


@pytest.mark.parametrize("policy", ["create-only", "create-update"])
def test_b18_a_deleted_set_that_may_not_delete_lets_its_applications_live_on(policy: str) -> None:
    going = appset(rows("a"), deletionTimestamp="2026-01-01T00:00:00Z", finalizers=[FINALIZER])
    going["spec"]["syncPolicy"] = {"applicationsSync": policy}
    one = table(going, app("a"))
    assert writes(one) == ["update a"]
    assert owner_references(found(one, "a")) == [] and one.of("ApplicationSet") == []


@pytest.mark.parametrize(
    ("finalizer", "verbs"), [(FINALIZER, ["delete a", "patch a"]), (f"{FINALIZER}/background", ["delete a"])]
)
def test_b19_the_objects_of_a_cluster_that_is_gone_are_left(finalizer: str, verbs: list[str]) -> None:
    dead = app("a", finalizers=[finalizer], spec={"destination": {"name": "ghost"}})
    assert writes(table(appset(rows()), dead)) == verbs


def test_b19_the_objects_of_a_cluster_that_two_secrets_declare_are_deleted() -> None:
    def secret(name: str) -> Obj:
        labels = {"argocd.argoproj.io/secret-type": "cluster"}
        data = {"name": "b25l", "server": "aHR0cHM6Ly9vbmUuZXhhbXBsZQ=="}
        metadata = {"name": name, "namespace": "argocd", "labels": labels}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}

    there = app("a", spec={"destination": {"server": "https://one.example"}})
    assert writes(table(appset(rows()), there, secret("x"), secret("y"))) == ["delete a"]


def test_b60_the_status_lists_some_applications_and_counts_all() -> None:
    one = table(appset(rows(*"abcdef")), parameters(status_max_resources_count="4"))
    one.reconcile()
    status = one.of("ApplicationSet")[0]["status"]
    assert [row["name"] for row in status["resources"]] == ["a", "b", "c", "d"] and status["resourcesCount"] == 6


def test_the_refresh_annotation_asks_again_and_goes() -> None:
    one = table(
        appset(
            {"git": {"repoURL": "r", "revision": "HEAD", "directories": [{"path": "*"}]}}, template={"name": "{{path}}"}
        ),
        tree={"a/x": ""},
    )
    assert writes(one) == ["create a"]
    one.world.given["tree"]["b/x"] = ""
    assert writes(one) == []
    asked = one.of("ApplicationSet")[0]
    refresh = {"argocd.argoproj.io/application-set-refresh": "true"}
    one.put({**asked, "metadata": {**asked["metadata"], "annotations": refresh}})
    assert writes(one) == ["create b"] and annotations_of(one.of("ApplicationSet")[0]) == {}


def test_a_set_works_in_enabled_namespaces_only_and_in_its_own() -> None:
    tenant = appset(rows("a", "x"), namespace="team-a", template={"namespace": "argocd"})
    foreign = app("x", owner="")
    assert writes(table(tenant, foreign), namespace="team-a") == []
    one = table(tenant, foreign, parameters(namespaces="team-*"))
    assert writes(one, namespace="team-a") == ["create a", "create x"]
    assert {app["metadata"]["namespace"] for app in one.of("Application")} == {"team-a", "argocd"}
    assert owner_references(found(one, "x")) == []


def test_a_dry_run_writes_no_application_and_no_status() -> None:
    one = table(appset(rows("a")), app("gone"), parameters(dryrun="true"))
    one.reconcile()
    assert names(one) == ["gone"] and one.of("ApplicationSet")[0].get("status") is None


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("policy", "creat-only", "must be sync, create-only, create-update, create-delete"),
        ("requeue_after", "3 minutes", "must be a duration such as 3m"),
        ("status_max_resources_count", "-1", "must be a whole number of at least 0"),
        ("dryrun", "maybe", "must be true or false"),
    ],
)
def test_an_invalid_setting_stops_all_writes_and_is_named(key: str, value: str, said: str) -> None:
    one = table(appset(rows("a")), app("gone"), parameters(**{key: value}))
    assert writes(one) == []
    assert said in condition(one, "ErrorOccurred")["message"] and value in condition(one, "ErrorOccurred")["message"]
