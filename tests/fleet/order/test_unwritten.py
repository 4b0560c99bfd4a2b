"""Which Applications the controller of their set has not written yet."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.fleet.pull.order.unwritten import unwritten
from syncline.kube.objects import Obj

SOURCE = {"repoURL": "https://git.test/a", "path": "{{path}}", "targetRevision": "v2"}
TEMPLATE: Obj = {
    "metadata": {"name": "web-{{name}}", "labels": {"team": "a"}, "annotations": {"edit": "2"}},
    "spec": {"project": "default", "source": SOURCE, "syncPolicy": {"automated": {"prune": True}}},
}


def app(name: str, *, revision: str = "v2", edit: str = "2", **spec: Any) -> Obj:
    metadata = {"name": name, "labels": {"team": "a", "more": "b"}, "annotations": {"edit": edit, "own": "x"}}
    source = {**SOURCE, "path": name, "targetRevision": revision}
    return {"metadata": metadata, "spec": {"project": "default", "source": source, **spec}}


def of(*apps: Obj, policy: str = "", template: Obj = TEMPLATE, **spec: Any) -> list[str]:
    owner = {"metadata": {"name": "set"}, "spec": {"template": template, **spec}}
    return sorted(unwritten(owner, apps, policy))


@pytest.mark.parametrize(
    ("what", "apps", "left"),
    [
        ("all are written", [app("a"), app("b")], []),
        ("one has the revision of before", [app("a"), app("b", revision="v1")], ["b"]),
        ("one has the annotation of before", [app("a"), app("b", edit="1")], ["b"]),
        ("none is written: its controller is not there, or does not write", [app("a", revision="v1")], []),
        ("there are none", [], []),
        ("a sync policy may be taken away by its controller", [app("a"), app("b", syncPolicy={})], []),
        ("one lacks a part", [app("a"), {"metadata": {"name": "b"}}], ["b"]),
    ],
)
def test_what_a_template_says_in_plain_text_is_in_each_application(what: str, apps: list[Obj], left: list[str]) -> None:
    assert of(*apps) == left, what


@pytest.mark.parametrize(
    "spec",
    [
        {"templatePatch": "{}"},
        {"ignoreApplicationDifferences": [{"jsonPointers": ["/spec/source/targetRevision"]}]},
        {"syncPolicy": {"applicationsSync": "create-only"}},
        {"syncPolicy": {"applicationsSync": "create-delete"}},
        {"policy": "create-only"},
        {"generators": [{"list": {"template": {"spec": {"source": {"targetRevision": "v1"}}}}}]},
        {"generators": [{"matrix": {"generators": [{"git": {"template": {"spec": {"project": "x"}}}}]}}]},
    ],
)
def test_applications_that_may_be_other_than_the_template_hold_nothing_back(spec: Obj) -> None:
    assert of(app("a"), app("b", revision="v1"), **spec) == []


def test_an_empty_template_of_a_generator_is_none() -> None:
    empty = {"metadata": {}, "spec": {"destination": {}, "project": "", "source": {"repoURL": ""}}}
    assert of(app("a"), app("b", revision="v1"), generators=[{"list": {"template": empty}}]) == ["b"]


def test_the_reason_names_the_field_and_no_value() -> None:
    owner = {"metadata": {"name": "set"}, "spec": {"template": TEMPLATE}}
    text = "the controller of ApplicationSet set has not written spec.source.targetRevision of its template yet"
    assert unwritten(owner, [app("a"), app("b", revision="v1")]) == {"b": text}


def test_hostile_templates_end() -> None:
    deep: Any = "x"
    for _ in range(200):
        deep = {"generators": [{"matrix": deep}]}
    assert of(app("a"), app("b", revision="v1"), **deep) == ["b"]
    odd: list[Any] = [{}, {"spec": []}, {"metadata": 1}, {"spec": {"sources": [1]}}]
    assert [of({"metadata": {"name": "b"}}, template=one) for one in odd] == [[]] * 4
