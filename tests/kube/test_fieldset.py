"""Sets of fields as sets: the laws that ownership relies on, and the stored form."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.kube.patching import fieldset
from syncline.kube.patching.fieldset import FieldSet

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"', "v:10", "v:9", "i:0"])
PATHS = st.lists(st.lists(ELEMENTS, min_size=1, max_size=4), max_size=8)


def made(paths: list[list[str]]) -> FieldSet:
    result: FieldSet = {}
    for path in paths:
        fieldset.insert(result, path, {})
    return result


def listed(fields: FieldSet) -> set[tuple[str, ...]]:
    return set(fieldset.members(fields))


@given(PATHS)
def test_a_set_holds_the_paths_that_were_put_in(paths: list[list[str]]) -> None:
    assert listed(made(paths)) == {tuple(path) for path in paths}


@given(PATHS, PATHS)
def test_union_difference_and_intersection_are_those_of_the_members(one: list[list[str]], two: list[list[str]]) -> None:
    a, b = made(one), made(two)
    before = json.dumps([a, b])
    assert listed(fieldset.union(a, b)) == listed(a) | listed(b)
    assert listed(fieldset.difference(a, b)) == listed(a) - listed(b)
    assert listed(fieldset.intersection(a, b)) == listed(a) & listed(b)
    assert json.dumps([a, b]) == before


@given(PATHS, PATHS)
def test_recursive_difference_takes_what_lies_below_along(one: list[list[str]], two: list[list[str]]) -> None:
    gone = {tuple(path) for path in two}
    left = {path for path in listed(made(one)) if not any(path[: len(other)] == other for other in gone)}
    assert listed(fieldset.recursive_difference(made(one), made(two))) == left


@given(PATHS)
def test_the_stored_form_is_read_back_as_the_same_set(paths: list[list[str]]) -> None:
    fields = made(paths)
    assert fieldset.parse(fieldset.serialise(fields)) == fieldset.serialise(fields)
    assert listed(fieldset.parse(fields)) == listed(fields)


def test_elements_are_stored_as_self_fields_keys_values_indices() -> None:
    fields = made([["f:a", "i:0"], ["f:a"], ["f:a", 'v:"z"'], ["f:a", "v:9"], ["f:a", 'k:{"n":2}'], ["f:a", "f:q"]])
    assert list(fieldset.serialise(fields)["f:a"]) == [".", "f:q", 'k:{"n":2}', "v:9", 'v:"z"', "i:0"]


def test_number_keys_are_ordered_as_numbers() -> None:
    fields = made([['k:{"port":80}'], ['k:{"port":9}']])
    assert list(fieldset.serialise(fields)) == ['k:{"port":9}', 'k:{"port":80}']


def test_a_path_prints_as_messages_write_it() -> None:
    path = ("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}', 'v:"x"', "i:3", "f:name")
    assert fieldset.path_text(path) == '.spec.ports[port=80,protocol="TCP"][="x"][3].name'


def test_key_elements_are_read_whatever_their_spelling() -> None:
    assert fieldset.parse({'k:{ "b": 1, "a": "x" }': {".": {}}}) == {'k:{"a":"x","b":1}': {}}


@pytest.mark.parametrize("bad", [{"a": {}}, {"q:1": {}}, {"k:1": {}}, {"v:{": {}}, {"i:x": {}}, {"f:a": 1}, []])
def test_what_is_no_fields_object_is_refused(bad: Any) -> None:
    with pytest.raises(ValueError, match=r"path element|fieldsV1"):
        fieldset.parse(bad)


def test_nesting_beyond_the_bound_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(fieldset.MAX_DEPTH + 2):
        deep = {"f:a": deep}
    with pytest.raises(ValueError, match="deeper"):
        fieldset.parse(deep)
