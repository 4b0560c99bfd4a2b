"""Edits of manifests keep what people wrote around them."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.kube.yaml.loading import load_all
from syncline.rehearsal.cures.editing import REMOVED, Edit, diff_of, edited

TEXT = """\
# first
kind: A
metadata: {name: a}   # in flow style
spec:
  paused: true
  replicas: 2  # two
---
kind: B
items:
- name: x
  count: "1"
- name: y
"""


@pytest.mark.parametrize(
    ("document", "path", "value", "minus", "plus"),
    [
        (0, ("spec", "replicas"), 3, ["  replicas: 2  # two"], ["  replicas: 3  # two"]),
        (0, ("spec", "paused"), REMOVED, ["  paused: true"], []),
        (0, ("metadata", "annotations", "a/b"), "-1", ["metadata: {name: a}   # in flow style"], None),
        (1, ("items", 0, "count"), 2, ['  count: "1"'], ["  count: 2"]),
        (1, ("items", 1, "count"), 2, [], ["  count: 2"]),
    ],
)
def test_only_the_lines_of_the_value_change(
    document: int, path: tuple[str | int, ...], value: Any, minus: list[str], plus: list[str] | None
) -> None:
    after = edited(TEXT, Edit("f", document, path, value))
    lines = diff_of("f", TEXT, after).splitlines()[2:]
    assert [line[1:] for line in lines if line.startswith("-")] == minus
    assert plus is None or [line[1:] for line in lines if line.startswith("+")] == plus


def test_where_the_text_is_not_known_the_document_is_rewritten_and_the_others_stay() -> None:
    after = edited(TEXT, Edit("f", 0, ("metadata", "name"), REMOVED))
    first, second = (document.value for document in load_all(after.encode()).documents)
    assert first == {"kind": "A", "metadata": {}, "spec": {"paused": True, "replicas": 2}}
    assert after.endswith(TEXT.partition("---\n")[2]) and second["kind"] == "B"
