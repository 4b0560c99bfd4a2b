"""What is masked of Secrets that are not written as they should be."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.gitops.diff import hide_secret

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
