"""Strategic merge patches: lists with keys, order, unions, and the directives."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.kube.errors import ApiError
from syncline.kube.objects import GVK
from syncline.kube.patching.strategic import strategic_merge_patch
from syncline.kube.patching.threeway import three_way_json_merge, three_way_strategic
from syncline.kube.schema.model import Schema, schema_for

POD = schema_for(GVK("", "v1", "Pod"))
DEPLOYMENT = schema_for(GVK("apps", "v1", "Deployment"))


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": spec}


def containers(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "image": f"{name}:1"} for name in names]


def names(doc: dict[str, Any], field: str = "containers") -> list[str]:
    return [item["name"] for item in doc["spec"][field]]


def test_an_element_is_found_by_its_key_and_merged_in_place() -> None:
    made = strategic_merge_patch(
        pod(containers=containers("web", "side")), pod(containers=[{"name": "side", "image": "side:2"}]), POD
    )
    assert made["spec"]["containers"] == [{"name": "web", "image": "web:1"}, {"name": "side", "image": "side:2"}]


def test_new_elements_stand_before_those_the_patch_does_not_name() -> None:
    made = strategic_merge_patch(pod(containers=containers("web", "side")), pod(containers=containers("new")), POD)
    assert names(made) == ["new", "web", "side"]


def test_the_stated_order_wins_and_others_keep_their_place() -> None:
    patch = pod(**{"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]})
    made = strategic_merge_patch(pod(containers=containers("a", "b", "c")), patch, POD)
    assert names(made) == ["b", "c", "a"]


def test_a_patch_element_that_the_order_does_not_name_is_refused() -> None:
    patch = pod(**{"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]})
    with pytest.raises(ApiError, match="doesn't match"):
        strategic_merge_patch(pod(containers=containers("a", "b")), patch, POD)


def test_elements_are_deleted_and_lists_are_replaced_on_demand() -> None:
    doc = pod(containers=containers("a", "b"))
    gone = strategic_merge_patch(doc, pod(containers=[{"$patch": "delete", "name": "a"}]), POD)
    assert names(gone) == ["b"]
    other = strategic_merge_patch(doc, pod(containers=[{"$patch": "replace"}, {"name": "x"}]), POD)
    assert other["spec"]["containers"] == [{"name": "x"}]


def test_maps_are_replaced_and_emptied_on_demand() -> None:
    doc = pod(nodeSelector={"a": "1"}, securityContext={"runAsUser": 1})
    patch = pod(nodeSelector={"$patch": "replace", "b": "2"}, securityContext={"$patch": "delete"})
    assert strategic_merge_patch(doc, patch, POD) == pod(nodeSelector={"b": "2"}, securityContext={})


def test_a_list_without_merge_strategy_is_replaced() -> None:
    doc = pod(tolerations=[{"key": "a"}, {"key": "b"}])
    assert strategic_merge_patch(doc, pod(tolerations=[{"key": "c"}]), POD) == pod(tolerations=[{"key": "c"}])


def test_scalars_are_united_and_deleted_by_value() -> None:
    doc = {"metadata": {"finalizers": ["a", "b"]}}
    united = strategic_merge_patch(doc, {"metadata": {"finalizers": ["c", "a"]}}, POD)
    assert united["metadata"]["finalizers"] == ["c", "a", "b"]
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "x"]}}
    assert strategic_merge_patch(doc, patch, POD) == {"metadata": {"finalizers": ["b"]}}


def test_retained_keys_clear_the_other_members_of_a_union() -> None:
    doc = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic_merge_patch(doc, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_where_nothing_stood_a_patch_leaves_no_directives_behind() -> None:
    patch = pod(
        volumes=[{"name": "a", "$retainKeys": ["name"]}, {"name": "gone", "$patch": "delete"}],
        nodeSelector={"a": None, "b": "1"},
    )
    assert strategic_merge_patch({}, patch, POD) == pod(volumes=[{"name": "a"}], nodeSelector={"b": "1"})


@pytest.mark.parametrize(
    ("patch", "status"),
    [
        (pod(containers=[{"image": "x"}]), 500),
        (pod(containers=[{"name": "a", "$patch": "shred"}]), 500),
        (pod(containers=[{"name": "a", "$patch": "merge"}]), 500),
        (pod(nodeSelector={"$patch": "shred"}), 500),
        (pod(containers=[["a"]]), 422),
        (pod(**{"$setElementOrder/containers": "a"}), 500),
        ({"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}}, 400),
        (pod(volumes=[{"name": "v", "$retainKeys": "name"}]), 400),
        (pod(volumes=[{"name": "v", "$retainKeys": ["name"], "emptyDir": {}}]), 400),
    ],
)
def test_a_malformed_patch_is_refused_with_the_servers_code(patch: dict[str, Any], status: int) -> None:
    doc = pod(containers=containers("a"), nodeSelector={"a": "1"}, volumes=[{"name": "v"}])
    doc["metadata"] = {"finalizers": ["a"]}
    with pytest.raises(ApiError) as refusal:
        strategic_merge_patch(doc, patch, POD)
    assert refusal.value.code == status


def test_without_a_schema_lists_are_replaced() -> None:
    assert strategic_merge_patch({"l": [{"name": "a"}]}, {"l": [{"name": "b"}]}, None) == {"l": [{"name": "b"}]}


def test_inputs_are_not_changed_and_untouched_parts_are_shared() -> None:
    doc = pod(containers=containers("a", "b"), nodeSelector={"x": "y"})
    patch = pod(containers=[{"name": "b", "image": "b:2"}])
    before = copy.deepcopy((doc, patch))
    made = strategic_merge_patch(doc, patch, POD)
    assert (doc, patch) == before
    assert made["spec"]["nodeSelector"] is doc["spec"]["nodeSelector"]
    assert made["spec"]["containers"][0] is doc["spec"]["containers"][0]


NAMES = st.lists(st.sampled_from(["a", "b", "c", "d", "e"]), unique=True, min_size=1, max_size=5)
IMAGES = st.sampled_from(["x:1", "x:2"])


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    env = [{"name": name, "value": draw(IMAGES)} for name in draw(NAMES)]
    listed = [{"name": name, "image": draw(IMAGES), "env": env} for name in draw(NAMES)]
    volumes = [{"name": name, **draw(st.sampled_from(UNION))} for name in draw(NAMES)]
    return {
        "metadata": {"name": "p", "finalizers": draw(NAMES), "labels": draw(st.dictionaries(IMAGES, IMAGES))},
        "spec": {"containers": listed, "volumes": volumes, "tolerations": [{"key": k} for k in draw(NAMES)]},
    }


UNION: list[dict[str, Any]] = [{"emptyDir": {}}, {"configMap": {"name": "c"}}, {"secret": {"secretName": "s"}}]


@given(pods(), pods(), pods())
def test_a_three_way_patch_brings_what_is_wanted_and_removes_what_was_ours(
    original: dict[str, Any], modified: dict[str, Any], current: dict[str, Any]
) -> None:
    made = strategic_merge_patch(current, three_way_strategic(original, modified, current, POD), POD)
    wanted = {item["name"]: item["image"] for item in modified["spec"]["containers"]}
    assert {n: i for n, i in ((c["name"], c["image"]) for c in made["spec"]["containers"]) if n in wanted} == wanted
    gone = {item["name"] for item in original["spec"]["containers"]} - set(wanted)
    theirs = {item["name"] for item in current["spec"]["containers"]} - gone - set(wanted)
    assert set(names(made)) == set(wanted) | theirs
    assert [n for n in names(made) if n in wanted] == names(modified)
    assert made["spec"]["tolerations"] == modified["spec"]["tolerations"]


@given(pods(), pods())
def test_applying_the_same_again_makes_an_empty_patch(original: dict[str, Any], current: dict[str, Any]) -> None:
    patched = strategic_merge_patch(current, three_way_strategic(original, original, current, POD), POD)
    again = three_way_strategic(original, original, patched, POD)
    assert strategic_merge_patch(patched, again, POD) == patched


SENT: list[dict[str, Any]] = json.loads((Path(__file__).parent / "client_side_apply.json").read_text())
"""What ``kubectl apply`` 1.32 sent for made-up Deployments: last applied, wanted and live object, and the patch."""


@pytest.mark.parametrize("case", SENT, ids=map(str, range(len(SENT))))
def test_a_three_way_patch_is_the_one_that_kubectl_sends(case: dict[str, Any]) -> None:
    made = three_way_strategic(case["original"], case["modified"], case["current"], DEPLOYMENT)
    assert made == case["patch"]


def test_fields_of_others_stay_and_ours_that_were_dropped_go() -> None:
    original = {"metadata": {"labels": {"mine": "1", "old": "1"}}}
    modified = {"metadata": {"labels": {"mine": "2"}}}
    current = {"metadata": {"labels": {"mine": "1", "old": "1", "theirs": "1"}, "uid": "u"}}
    wanted = {"metadata": {"labels": {"mine": "2", "old": None}}}
    assert three_way_strategic(original, modified, current, POD) == wanted
    assert three_way_json_merge(original, modified, current) == wanted


def test_a_removed_container_is_deleted_by_its_key_and_the_order_is_stated() -> None:
    original, modified = pod(containers=containers("a", "b")), pod(containers=containers("a"))
    assert three_way_strategic(original, modified, original, POD) == pod(
        **{"$setElementOrder/containers": [{"name": "a"}], "containers": [{"$patch": "delete", "name": "b"}]}
    )


def test_a_union_names_the_keys_that_stay() -> None:
    old = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    new = {"spec": {"strategy": {"type": "Recreate"}}}
    assert three_way_strategic(old, new, old, DEPLOYMENT) == {
        "spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": None, "type": "Recreate"}}
    }


def test_a_custom_resource_replaces_its_lists_and_keeps_foreign_fields() -> None:
    original = {"spec": {"hosts": ["a"], "old": {"x": 1}}}
    modified = {"spec": {"hosts": ["b"], "empty": {}}}
    current = {"spec": {"hosts": ["a", "c"], "old": {"x": 1}, "theirs": True}}
    assert three_way_json_merge(original, modified, current) == {"spec": {"hosts": ["b"], "empty": {}, "old": None}}
    assert three_way_json_merge(modified, modified, {"spec": {**modified["spec"], "theirs": 1}}) == {}


def test_a_schema_without_merge_key_cannot_merge_lists_of_maps() -> None:
    schema = Schema({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-patch-strategy": "merge"}}})
    with pytest.raises(ApiError, match="without merge key"):
        strategic_merge_patch({"l": [{"a": 1}]}, {"l": [{"a": 2}]}, schema)
    with pytest.raises(ApiError, match="expected a"):
        strategic_merge_patch({"l": [1]}, {"$setElementOrder/l": 1}, schema)


KEYS = st.sampled_from(
    [
        "containers",
        "env",
        "finalizers",
        "metadata",
        "name",
        "ports",
        "spec",
        "volumes",
        "$patch",
        "$retainKeys",
        "$setElementOrder/containers",
        "$setElementOrder/finalizers",
        "$deleteFromPrimitiveList/finalizers",
    ]
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "b", "delete", "replace", "merge", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
ODD_OBJECTS = st.dictionaries(KEYS, ODD, max_size=4)


@given(ODD_OBJECTS, ODD_OBJECTS)
def test_any_patch_is_applied_or_refused_and_changes_no_input(doc: dict[str, Any], patch: dict[str, Any]) -> None:
    before = copy.deepcopy((doc, patch))
    for schema in (POD, None):
        try:
            strategic_merge_patch(doc, patch, schema)
        except ApiError as refusal:
            assert refusal.code in (400, 422, 500)
    assert (doc, patch) == before


@given(ODD_OBJECTS, ODD_OBJECTS, ODD_OBJECTS)
def test_any_three_states_make_a_patch_or_are_refused(
    original: dict[str, Any], modified: dict[str, Any], current: dict[str, Any]
) -> None:
    before = copy.deepcopy((original, modified, current))
    three_way_json_merge(original, modified, current)
    try:
        three_way_strategic(original, modified, current, POD)
    except ApiError as refusal:
        assert refusal.code in (400, 422, 500)
    assert (original, modified, current) == before


def test_long_lists_are_merged_and_compared_in_proportion_to_their_length() -> None:
    """In pairs these would be hundreds of millions of comparisons: many minutes."""
    count = 20_000

    def with_env(value: str, first: int) -> dict[str, Any]:
        env = [{"name": f"e{number}", "value": value} for number in range(first, first + count)]
        return pod(containers=[{"name": "c", "env": env}])

    old = with_env("v", 0)
    patch = three_way_strategic(old, with_env("w", 10), old, POD)
    env = strategic_merge_patch(old, patch, POD)["spec"]["containers"][0]["env"]
    assert {one["name"]: one["value"] for one in env} == {f"e{number}": "w" for number in range(10, count + 10)}
    finalizers = [f"f{number}" for number in range(count)]
    gone = {"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers[1:]}}
    assert strategic_merge_patch({"metadata": {"finalizers": finalizers}}, gone, POD) == {
        "metadata": {"finalizers": ["f0"]}
    }


def test_keys_of_different_types_are_different_elements() -> None:
    ports = [{"containerPort": 1, "name": "one"}, {"containerPort": True}, {"containerPort": [1]}]
    doc = pod(containers=[{"name": "c", "ports": ports}])
    change = pod(containers=[{"name": "c", "ports": [{"containerPort": 1, "name": "two"}]}])
    made = strategic_merge_patch(doc, change, POD)["spec"]["containers"][0]["ports"]
    assert [one.get("name") for one in made] == ["two", None, None]
