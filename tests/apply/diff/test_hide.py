"""What is masked of Secrets that are not written as they should be."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.apply.diff import hide_secret
from syncline.apply.last_applied import LAST_APPLIED

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque"}


@pytest.mark.parametrize(
    "fields",
    [
        {"data": "canary"},
        {"data": ["canary"]},
        {"data": {"a": ["canary"]}},
        {"stringData": "canary"},
        {"stringData": ["canary"]},
        {"stringData": {"a": {"b": "canary"}}},
        {"stringDatum": {"a": "canary"}},
        {"data": {"a": "Yg=="}, "stringData": "canary"},
    ],
)
def test_values_in_fields_of_the_wrong_type_or_name_are_masked(fields: dict[str, Any]) -> None:
    both = hide_secret(SECRET | fields, SECRET | fields)
    assert "canary" not in repr(both)
    assert all(one is not None and one["metadata"] == SECRET["metadata"] and one["type"] == "Opaque" for one in both)


def test_a_note_that_is_no_object_or_is_to_be_hidden_is_masked_whole() -> None:
    for note in ("", "{}", "null", '{"data":{"a":"YQ=="}}'):
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {LAST_APPLIED: note}}}
        _, live = hide_secret(None, secret)
        assert live is not None and live["metadata"]["annotations"] == {LAST_APPLIED: "++++++++"}
    secret["metadata"]["annotations"] = {LAST_APPLIED: '{"kind":"Secret","type":"Opaque"}'}  # type: ignore[index]
    _, live = hide_secret(None, secret, [LAST_APPLIED])
    assert live is not None and live["metadata"]["annotations"] == {LAST_APPLIED: "++++++++"}


def test_values_of_other_types_differ_and_null_is_an_empty_text() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}
    target, live = hide_secret(secret | {"data": {"a": 1, "b": None}}, secret | {"data": {"a": True, "b": ""}})
    assert target is not None and live is not None
    assert target["data"]["a"] != live["data"]["a"]
    assert target["data"]["b"] == live["data"]["b"]
