"""Behaviours 1 to 32 of the cluster group reference: baseline, namespaces, subscriptions, sequence jobs, objects."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from tests.clustergroup.groups import made, names, namespaces, of, one, subscribed
from tests.gitops.behaviours.sim import JOBS, Simulation, config, rows

from syncline.clustergroup.errors import RenderFailed
from syncline.clustergroup.render import render, values_of
from syncline.kube.objects import Obj

WAVE = "argocd.argoproj.io/sync-wave"
WAVE_5 = {WAVE: "5"}
WAITED_FOR = {"resourceType": "crd", "resourceName": "things"}
BASELINE = {
    "Namespace": 2,
    "ServiceAccount": 2,
    "ConfigMap": 3,
    "ClusterRole": 2,
    "ClusterRoleBinding": 4,
    "Role": 1,
    "RoleBinding": 1,
    "ArgoCD": 1,
    "ConsoleLink": 1,
}


@pytest.mark.parametrize(("given", "missing"), [({}, None), ({"enabled": "plumbing"}, "imperative")])
def test_b01_defaults_give_the_baseline_and_nothing_else(given: Obj, missing: str | None) -> None:
    found = render(values_of([given]))
    counts = {kind: len(of(found, kind)) for kind in {n["kind"] for n in found}}
    assert counts == {**BASELINE, "Namespace": 1 if missing else 2}
    assert ("imperative" in names(found, "Namespace")) is not bool(missing)
    assert len(found) == (16 if missing else 17)


def test_b02_a_single_argo_cd_takes_the_groups_own_away() -> None:
    found = made({"singleArgoCD": True, "vpArgoNamespace": "vp-gitops"}, namespaces=["a"])
    assert not of(found, "ArgoCD") and not of(found, "ConsoleLink")
    managed = {n["metadata"]["name"]: n["metadata"]["labels"] for n in of(found, "Namespace")}
    assert {name: labels["argocd.argoproj.io/managed-by"] for name, labels in managed.items()} == {
        "a": "vp-gitops",
        "imperative": "vp-gitops",
    }
    assert [n for n in names(found, "ClusterRoleBinding") if "cluster-admin" in n] == [
        "vp-gitops-cluster-admin-rolebinding"
    ]
    assert {n["metadata"]["namespace"] for n in of(found, "ConfigMap", "trusted-ca-bundle")} == {
        "imperative",
        "vp-gitops",
    }


def test_b03_the_clusters_argo_cd_is_bound_in_its_namespace() -> None:
    found = one(made({"vpArgoNamespace": "vp-gitops"}), "ClusterRoleBinding", "vp-gitops-cluster-admin-rolebinding")
    assert [(n["name"], n["namespace"]) for n in found["subjects"]] == [
        ("vp-gitops-argocd-application-controller", "vp-gitops"),
        ("vp-gitops-argocd-server", "vp-gitops"),
    ]


def test_b04_labels_follow_managed_by_and_null_is_empty() -> None:
    spaces, _ = namespaces(["a", {"b": {"labels": {"x": None}}}])
    assert list(spaces["b"]["metadata"]["labels"].items()) == [
        ("argocd.argoproj.io/managed-by", "shop-hub"),
        ("x", ""),
    ]


def test_b05_a_map_with_null_values_gives_namespaces_and_groups() -> None:
    spaces, groups = namespaces({"a": None, "b": None})
    assert (list(spaces), list(groups)) == (["a", "b"], ["a", "b"])


def test_b06_a_null_in_a_list_item_fails_and_in_a_map_does_not() -> None:
    with pytest.raises(RenderFailed, match="cannot read disabled: nil pointer"):
        namespaces([{"foo": None}])
    assert list(namespaces({"foo": None})[0]) == ["foo"]


@pytest.mark.parametrize("given", [{"a": {"disabled": True}}, [{"a": {"disabled": True}}]], ids=["map", "list"])
def test_b07_a_disabled_namespace_has_neither_object(given: Any) -> None:
    assert namespaces(given) == ({}, {})


@pytest.mark.parametrize("given", [{"a": {"operatorGroup": False}}, [{"a": {"operatorGroup": False}}]])
def test_b08_without_an_operator_group_only_the_namespace_is_there(given: Any) -> None:
    spaces, groups = namespaces(given)
    assert (list(spaces), groups) == (["a"], {})


@pytest.mark.parametrize(
    ("given", "spec"),
    [
        ({"targetNamespaces": []}, None),
        ({"targetNamespaces": ["x"]}, {"targetNamespaces": ["x"]}),
        ({}, {"targetNamespaces": ["a"]}),
    ],
    ids=["all namespaces", "another one", "its own"],
)
def test_b09_target_namespaces_are_those_given(given: Obj, spec: Obj | None) -> None:
    _, groups = namespaces([{"a": given}])
    assert groups["a"].get("spec") == spec


@pytest.mark.parametrize(("given", "groups"), [(["a"], []), ({"a": None}, ["a"])], ids=["a text in a list", "map"])
def test_b10_excludes_count_for_texts_of_a_list_alone(given: Any, groups: list[str]) -> None:
    spaces, found = namespaces(given, operatorgroupExcludes=["a"])
    assert (list(spaces), list(found)) == (["a"], groups)


@pytest.mark.parametrize(("form", "copied"), [(list, {"annotations": {"x": "1"}}), (dict, {})])
def test_b11_annotations_reach_the_operator_group_in_the_list_form(form: type, copied: Obj) -> None:
    item = {"a": {"annotations": {"x": 1}}}
    _, groups = namespaces([item] if form is list else item)
    metadata = groups["a"]["metadata"]
    assert {key: metadata[key] for key in ("annotations",) if key in metadata} == copied


def test_b12_a_bare_subscription_has_the_usual_source() -> None:
    (found,) = subscribed()
    assert found["metadata"] == {"name": "op", "namespace": "openshift-operators"}
    assert found["spec"] == {
        "name": "op",
        "source": "redhat-operators",
        "sourceNamespace": "openshift-marketplace",
        "installPlanApproval": "Automatic",
        "startingCSV": None,
    }


@pytest.mark.parametrize(
    ("use", "csv", "starting"),
    [
        (True, {}, {"startingCSV": None}),
        (False, {}, {}),
        (True, {"csv": "op.v1"}, {"startingCSV": "op.v1"}),
        (False, {"csv": "op.v1"}, {"startingCSV": "op.v1"}),
    ],
)
def test_b13_a_starting_version_is_null_without_one(use: bool, csv: Obj, starting: Obj) -> None:
    (found,) = subscribed({"options": {"useCSV": use}}, **csv)
    assert {key: found["spec"][key] for key in ("startingCSV",) if key in found["spec"]} == starting


def test_b14_ones_own_approval_wins() -> None:
    shared = {"options": {"installPlanApproval": "Manual"}}
    assert subscribed(shared)[0]["spec"]["installPlanApproval"] == "Manual"
    assert subscribed(shared, installPlanApproval="Automatic")[0]["spec"]["installPlanApproval"] == "Automatic"


def test_b15_a_wave_is_an_annotation_in_quotes() -> None:
    assert subscribed(annotations={WAVE: 5})[0]["metadata"]["annotations"] == WAVE_5


def test_b16_the_config_is_passed_on() -> None:
    given = {"env": [{"name": "A", "value": "1"}], "nodeSelector": {"x": "y"}}
    assert subscribed(config=given)[0]["spec"]["config"] == given


def test_b17_each_namespace_has_a_subscription_of_the_same_name() -> None:
    found = [n["metadata"] for n in subscribed(namespaces=["a", "b"])]
    assert found == [{"name": "op", "namespace": "a"}, {"name": "op", "namespace": "b"}]


def test_b18_a_nameless_subscription_is_skipped() -> None:
    assert of(made(subscriptions={"a": {"channel": "stable"}}), "Subscription") == []


def test_b19_channels_or_a_version_make_a_cluster_extension() -> None:
    (found,) = subscribed(channels=["x"], version=1.2)
    assert (found["kind"], found["apiVersion"]) == ("ClusterExtension", "olm.operatorframework.io/v1")
    assert found["spec"]["source"] == {
        "sourceType": "Catalog",
        "catalog": {
            "packageName": "op",
            "channels": ["x"],
            "version": "1.2",
            "upgradeConstraintPolicy": "CatalogProvided",
        },
    }


def test_b20_namespaces_win_over_channels() -> None:
    assert [n["kind"] for n in subscribed(namespaces=["a"], channels=["x"])] == ["Subscription"]


def test_b21_the_job_of_a_disabled_subscription_stays() -> None:
    found = subscribed(disabled=True, annotations=WAVE_5, sequenceJob=WAITED_FOR)
    assert [n["kind"] for n in found] == ["Job"]


def _job(annotations: Obj = WAVE_5, **given: Any) -> Obj:
    return one(subscribed(annotations=annotations, sequenceJob={**WAITED_FOR, **given}), "Job")


def _script(job: Obj) -> str:
    shell, option, text = job["spec"]["template"]["spec"]["containers"][0]["command"]
    assert (shell, option) == ("/bin/bash", "-c")
    return str(text)


def test_b22_a_job_has_the_wave_of_its_subscription_and_no_namespace() -> None:
    assert _job()["metadata"] == {
        "name": "op-sequencejob",
        "annotations": {"argocd.argoproj.io/hook": "Sync", WAVE: "5"},
    }


def test_b23_a_job_may_have_another_wave_and_hook() -> None:
    assert _job(syncWave="7", hookType="PreSync")["metadata"]["annotations"] == {
        "argocd.argoproj.io/hook": "PreSync",
        WAVE: "7",
    }


@pytest.mark.parametrize(
    ("given", "line"),
    [({"resourceNamespace": "ns1"}, "  oc get crd things -n ns1 && break\n"), ({}, "  oc get crd things && break\n")],
)
def test_b24_a_job_looks_in_a_namespace_if_there_is_one(given: Obj, line: str) -> None:
    assert line in _script(_job(**given))


def test_b25_a_command_of_ones_own_replaces_the_loop() -> None:
    assert _job(command=["a", "b"])["spec"]["template"]["spec"]["containers"][0]["command"] == ["a", "b"]


def test_b26_a_disabled_job_is_not_there() -> None:
    found = subscribed(annotations=WAVE_5, sequenceJob={**WAITED_FOR, "disabled": True})
    assert [n["kind"] for n in found] == ["Subscription"]


def test_b27_a_job_needs_the_annotations_of_its_subscription() -> None:
    with pytest.raises(RenderFailed, match="subscription op has a sequenceJob and no annotations; give it argocd"):
        subscribed(sequenceJob={**WAITED_FOR, "syncWave": "5"})


def test_b28_two_namespaces_have_one_job() -> None:
    found = subscribed(namespaces=["a", "b"], annotations=WAVE_5, sequenceJob=WAITED_FOR)
    assert [n["kind"] for n in found] == ["Job", "Subscription", "Subscription"]


@pytest.mark.parametrize("polls", [1, 3])
def test_b29_a_job_ends_with_the_poll_that_finds_its_target(polls: int) -> None:
    """The shell runs as it is; ``oc`` finds the target at the given poll, ``sleep`` says for how long it would."""
    around = f'n=0; oc() {{ n=$((n+1)); echo "oc $*"; [ $n -ge {polls} ]; }}; sleep() {{ echo "sleep $1"; }};\n'
    ran = subprocess.run(["/bin/bash", "-c", around + _script(_job())], capture_output=True, text=True, timeout=60)
    waits = ["oc get crd things", "crd things not found, waiting...", "sleep 5"]
    assert ran.returncode == 0
    assert ran.stdout.split("\n") == [*waits * (polls - 1), waits[0], "crd things found, exiting...", ""]


def test_b29_the_next_wave_begins_when_the_job_has_ended() -> None:
    job = _job()
    pod = job["spec"]["template"]
    pod["metadata"] = {"annotations": {"syncline.dev/run-seconds": "20"}}
    sim = Simulation(config("before", sync_wave="5"), job, config("after", sync_wave="6"))
    sim.begin()
    sim.driver.advance(10)
    assert (sim.maps(), sim.names(JOBS)) == (["before"], ["op-sequencejob"])
    state = sim.finish()
    assert (state["phase"], sim.maps()) == ("Succeeded", ["after", "before"])
    assert rows(state)["Job/op-sequencejob"]["hookPhase"] == "Succeeded"


def _given(**objects: Any) -> list[Obj]:
    return [n for n in made(extraObjects=objects) if n["kind"] == "Thing"]


def test_b30_extra_objects_come_in_the_order_of_their_keys_as_they_are() -> None:
    thing = {"apiVersion": "x/v1", "kind": "Thing", "metadata": {"name": "z"}, "spec": {"a": [1, None, {"b": "c"}]}}
    first = {**thing, "metadata": {"name": "a"}}
    assert _given(z={**thing, "disabled": False}, a=first) == [first, thing]


def test_b31_braces_in_extra_objects_survive() -> None:
    (found,) = _given(a={"apiVersion": "x/v1", "kind": "Thing", "metadata": {"name": "a"}, "text": "{{ .Values.x }}"})
    assert found["text"] == "{{ .Values.x }}"


def test_b32_a_disabled_extra_object_is_not_there() -> None:
    assert _given(a={"apiVersion": "x/v1", "kind": "Thing", "metadata": {"name": "a"}, "disabled": True}) == []
