"""JSON patches and merge patches follow their RFCs and the API server's refusals."""

from __future__ import annotations

import copy
import json
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.kube.errors import BadRequest, Invalid, TooLarge
from syncline.kube.patching.patches import MAX_DEPTH, create_merge_patch, json_merge_patch, json_patch, same_json

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "a", "x/y", "~"]))
KEYS = st.sampled_from(["a", "b", "x/y", "m~n", "0"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)


def test_each_operation_does_its_part() -> None:
    doc = {"a": {"b": 1}, "l": [1, 2]}
    made = json_patch(
        doc,
        [
            {"op": "test", "path": "/a/b", "value": 1},
            {"op": "add", "path": "/l/-", "value": 3},
            {"op": "add", "path": "/l/0", "value": 0},
            {"op": "copy", "from": "/a", "path": "/c"},
            {"op": "move", "from": "/a/b", "path": "/d"},
            {"op": "replace", "path": "/c/b", "value": 5},
            {"op": "remove", "path": "/l/1"},
        ],
    )
    assert made == {"a": {}, "l": [0, 2, 3], "c": {"b": 5}, "d": 1}


def test_a_document_that_is_patched_is_not_changed_and_shares_what_was_not_touched() -> None:
    doc = {"touched": {"x": 1}, "other": {"y": [1]}}
    before = copy.deepcopy(doc)
    made = json_patch(doc, [{"op": "add", "path": "/touched/z", "value": 2}])
    assert doc == before
    assert made["other"] is doc["other"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/missing/x", "value": 1},
        {"op": "add", "path": "/l/9", "value": 1},
        {"op": "add", "path": "/l/x", "value": 1},
        {"op": "add", "path": "", "value": {}},
        {"op": "remove", "path": "/nope"},
        {"op": "remove", "path": "/l/2"},
        {"op": "replace", "path": "/l/9", "value": 1},
        {"op": "replace", "path": "", "value": "text"},
        {"op": "test", "path": "/a", "value": "other"},
        {"op": "test", "path": "/flag", "value": 1},
        {"op": "move", "from": "/nope", "path": "/x"},
        {"op": "copy", "path": "/x"},
        {"op": "shuffle", "path": "/a"},
        {"op": "add", "path": "/a/b", "value": 1},
    ],
)
def test_an_operation_that_does_not_apply_is_refused_in_the_servers_words(operation: dict[str, Any]) -> None:
    doc = {"a": "text", "l": [1, 2], "flag": True}
    with pytest.raises(Invalid) as refusal:
        json_patch(doc, [{"op": "add", "path": "/new", "value": 1}, operation])
    assert refusal.value.to_status()["message"] == "the server rejected our request due to an error in our request"
    assert doc == {"a": "text", "l": [1, 2], "flag": True}


def test_negative_indices_count_from_the_end() -> None:
    doc = {"l": [1, 2, 3]}
    assert json_patch(doc, [{"op": "remove", "path": "/l/-1"}]) == {"l": [1, 2]}
    assert json_patch(doc, [{"op": "replace", "path": "/l/-3", "value": 0}]) == {"l": [0, 2, 3]}
    assert json_patch(doc, [{"op": "add", "path": "/l/-1", "value": 4}]) == {"l": [1, 2, 3, 4]}


def test_testing_a_missing_field_for_null_succeeds() -> None:
    assert json_patch({"a": 1}, [{"op": "test", "path": "/b", "value": None}]) == {"a": 1}


def test_a_patch_that_is_no_list_of_operations_is_a_bad_request() -> None:
    for patch in ({"op": "remove", "path": "/a"}, [1], "text", None):
        with pytest.raises(BadRequest):
            json_patch({"a": 1}, patch)


def test_too_many_operations_are_too_large() -> None:
    with pytest.raises(TooLarge, match="maximum operations in a JSON patch is 10000, got 10001"):
        json_patch({}, [{"op": "test", "path": "", "value": {}}] * 10_001)


@given(OBJECTS, OBJECTS)
def test_a_patch_made_by_another_program_is_applied_as_it_meant(old: dict[str, Any], new: dict[str, Any]) -> None:
    operations = jsonpatch.make_patch(old, new).patch
    before = copy.deepcopy(old)
    if any(step["path"] == "" for step in operations):
        return
    assert json_patch(old, operations) == jsonpatch.apply_patch(old, operations)
    assert same_json(old, before)


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_turns_the_old_object_into_the_new_one(old: dict[str, Any], new: dict[str, Any]) -> None:
    old, new = without_nulls(old), without_nulls(new)
    patch = create_merge_patch(old, new)
    assert same_json(json_merge_patch(old, patch), new)
    assert (patch == {}) == same_json(old, new)


def without_nulls(value: Any) -> Any:
    """A merge patch cannot set a field to null, so the property holds for objects without nulls in maps."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("doc", "patch", "wanted"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ],
)
def test_merge_patches_follow_rfc_7396(doc: Any, patch: Any, wanted: Any) -> None:
    assert json_merge_patch(doc, patch) == wanted


def test_a_patch_that_is_nested_too_deeply_is_refused_before_it_is_followed() -> None:
    deep: dict[str, Any] = {}
    for _ in range(MAX_DEPTH + 1):
        deep = {"a": deep}
    with pytest.raises(BadRequest, match="nested deeper"):
        json_merge_patch({}, deep)


def test_true_is_not_one_and_one_is_not_one_point_zero() -> None:
    assert not same_json({"a": [True]}, {"a": [1]})
    assert not same_json(1, 1.0)
    assert same_json(json.loads('{"a": [1, {"b": null}]}'), {"a": [1, {"b": None}]})


def test_a_merge_patch_removes_nulls_in_objects_of_a_list_as_api_servers_do() -> None:
    patch = {"spec": {"pairs": [{"name": "a", "value": None}, None, [{"b": None}]]}}
    assert json_merge_patch({"spec": {"pairs": [1]}}, patch) == {"spec": {"pairs": [{"name": "a"}, None, [{}]]}}
