"""Work of the API that strangers can make grow: counted calls, in proportion to what was sent and not to its square."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.cluster.admission.hooks import World
from tests.cluster.test_elsewhere import CRDS

from syncline.kube.objects import Obj


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
