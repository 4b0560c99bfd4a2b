"""Rules of validation as data: what a table says of a value, in which order and under which path."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.cluster.validation.engine import rules as r
from syncline.kube.objects import Obj

PORTS = r.each("ports", r.need("name", r.label), r.unique("name", blank=True), r.field("port", r.port))

CASES: list[tuple[str, r.Rule, Obj, list[str]]] = [
    ("a field that is not set is not judged", r.field("a", r.choice("x")), {}, []),
    ("a field that is empty is judged when it is set", r.field("a", r.must(bool, "why")), {"a": ""}, ["p.a: why"]),
    ("an empty field may count as missing", r.filled("a", r.must(bool, "why")), {"a": ""}, []),
    ("a needed field that is empty is required, and judged no further", r.need("a", r.label), {"a": ""}, ["p.a: R"]),
    ("a missing number is judged as nothing", r.number("a", r.at_least(1, "low")), {}, ["p.a: low"]),
    (
        "causes come in the order of the rules, not of the fields",
        r.every(r.needs("b"), r.needs("a")),
        {},
        ["p.b: R", "p.a: R"],
    ),
    ("of alternatives only the first that finds something speaks", r.first(r.needs("b"), r.needs("a")), {}, ["p.b: R"]),
    (
        "a second entry of the same name is named, where the rule stands",
        PORTS,
        {"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 0}]},
        ["p.ports[1].name: D", "p.ports[1].port: must be between 1 and 65535, inclusive"],
    ),
    (
        "names that are missing are no duplicates where they may be blank",
        PORTS,
        {"ports": [{}, {}]},
        ["p.ports[0].name: R", "p.ports[1].name: R"],
    ),
    ("entries that are no objects are passed over", PORTS, {"ports": [None, {"name": "a", "port": 1}]}, []),
    (
        "a value that comes twice in a list is a duplicate at its second place",
        r.items("v", r.choice("x", "y"), distinct=True),
        {"v": ["x", "x"]},
        ["p.v[1]: D"],
    ),
    (
        "a relation is judged by what the test finds",
        r.when(r.where(kind="A"), r.needs("a"), otherwise=r.needs("b")),
        {"kind": "B"},
        ["p.b: R"],
    ),
    ("a cause may name another field than the one that is read", r.need("a", shown="b"), {}, ["p.b: R"]),
]


def _said(table: r.Rule, value: Any) -> list[str]:
    shown = {"FieldValueRequired": "R", "FieldValueDuplicate": "D"}
    found = table(value, "p")
    return [f"{one.field}: {shown.get(one.reason, one.message.rpartition(': ')[2])}" for one in found]


@pytest.mark.parametrize(("table", "value", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_table_names_what_is_wrong(table: r.Rule, value: Obj, expected: list[str]) -> None:
    assert _said(table, value) == expected


def test_a_table_keeps_nothing_between_two_objects() -> None:
    value = {"ports": [{"name": "a", "port": 1}]}
    assert _said(PORTS, value) == _said(PORTS, value) == []


def test_the_root_of_an_object_has_no_leading_dot() -> None:
    assert [one.field for one in PORTS({"ports": [{}]}, "")] == ["ports[0].name"]
