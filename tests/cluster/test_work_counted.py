"""Work of the API that strangers can make grow: counted calls, in proportion to what was sent and not to its square."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.cluster.admission.hooks import World
from tests.cluster.test_elsewhere import CRDS

from syncline.cluster.access.users import ADMIN
from syncline.kube.client import Request
from syncline.kube.objects import Obj
from syncline.kube.selectors import parse_field_selector, parse_label_selector


def calls(function: Callable[[], Any]) -> int:
    """Functions called meanwhile, those of C too."""
    count = 0

    def counted(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def definition(number: int, columns: list[Obj] | None = None) -> Obj:
    version: Obj = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    if columns is not None:
        version["additionalPrinterColumns"] = columns
    name = f"d{number}"
    names = {"plural": f"{name}s", "singular": name, "kind": name.title(), "listKind": f"{name.title()}List"}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    return {"metadata": {"name": f"{name}s.example.com"}, "spec": spec}


def test_a_definition_costs_the_same_for_each_that_is_there_already() -> None:
    world, took = World(), []
    for number in range(81):
        took.append(calls(partial(world.made, CRDS, definition(number))))
    assert took[80] < 5 * took[20]


def listed(world: World, path: str, accept: str = "", **query: str) -> Any:
    answer = world.api.handle(Request("GET", path, query, {"accept": accept} if accept else {}), ADMIN)
    assert answer.status == 200
    return answer.obj


def test_cells_of_a_table_are_empty_where_columns_search_too_much() -> None:
    world = World()
    columns = [{"name": f"c{number}", "type": "string", "jsonPath": ".spec..x"} for number in range(20)]
    world.made(CRDS, definition(1, [*columns, {"name": "plain", "type": "string", "jsonPath": ".spec.y"}]))
    items: Obj = {"y": "seen", "items": [{"x": str(number)} for number in range(2_000)]}
    path = "/apis/example.com/v1/namespaces/demo/d1s"
    for number in range(20):
        world.made(
            path,
            {"apiVersion": "example.com/v1", "kind": "D1", "metadata": {"name": f"o{number}"}, "spec": items},
        )
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    took = calls(lambda: listed(world, path, accept))
    rows = listed(world, path, accept)["rows"]
    assert rows[0]["cells"][1] == "0", "the first object has what it takes"
    assert rows[-1]["cells"][1] is None
    assert rows[-1]["cells"][-1] == "seen", "what is plain is always shown"
    assert took < 1_000_000


SELECTORS: dict[str, Callable[[str], Callable[[], bool]]] = {
    "labels of many keys": lambda text: partial(parse_label_selector(text).matches, {"a": "b"}),
    "many values of a key": lambda text: partial(parse_label_selector(text.replace("k", "a!=")).matches, {"a": "b"}),
    "a field": lambda text: partial(parse_field_selector(text.replace("k", "f!=")).matches, str),
}


@pytest.mark.parametrize("case", SELECTORS)
def test_a_selector_costs_what_objects_have_and_not_what_it_names(case: str) -> None:
    took = []
    for terms in (250, 1_000):
        joined = ",".join(f"k{number}" if "keys" not in case else f"k{number}!=v" for number in range(terms))
        matches = SELECTORS[case](joined)
        assert matches()
        took.append(calls(lambda: [matches() for _ in range(50)]))  # noqa: B023 - called at once
    assert took[1] < 2 * took[0]
