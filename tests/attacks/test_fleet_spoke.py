"""A hostile hub against an agent: works whose rules are made to cost much. Each is bounded, and other works go on."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet.agents import Place
from tests.fleet.world import Fleet, config_map

from syncline.fleet.conditions import find_condition
from syncline.kube.objects import Obj, dig

MANY = {f"k{number}": "a" * 20 for number in range(1_500)}
TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"


def _rules(*expressions: str) -> Obj:
    rules = [{"type": "CEL", "condition": f"C{n}", "celExpressions": [one]} for n, one in enumerate(expressions)]
    return {"conditionRules": rules}


def _feedback(path: str) -> Obj:
    return {"feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "n", "path": path}]}]}


def _ignored(**fields: Any) -> Obj:
    ignored = [{"condition": "OnSpokePresent", **fields}]
    return {"updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"ignoreFields": ignored}}}


@pytest.fixture(scope="module")
def place() -> Place:
    return Place(Fleet("c1"))


def _conditions(place: Place, name: str, data: dict[str, str], config: Obj) -> list[Obj]:
    which = {"group": "", "resource": "configmaps", "namespace": "default", "name": name}
    place.work(name, config_map(name, **data), manifestConfigs=[{"resourceIdentifier": which, **config}])
    place.settle(5)
    found: list[Obj] = dig(place.get(name), "status", "resourceStatus", "manifests", 0, "conditions")
    return found


DOUBLED = f"{TEN}.map(x, {TEN}.map(y, {TEN}.map(z, {TEN}.map(w, object.data.a + object.data.a)))).size() > 0"
BOUNDED = {
    "loops": (MANY, ["object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != '')))"]),
    "texts": ({"a": "x" * 1_000}, [DOUBLED]),
    "patterns": ({"a": "a" * 200_000}, ["object.data.a.matches('(a?){500}a{500}')"]),
    "rules": (MANY, ["object.data.all(a, object.data.exists(b, b == a))"] * 40),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_a_rule_that_costs_too_much_is_an_error_of_its_condition(place: Place, name: str) -> None:
    data, expressions = BOUNDED[name]
    found = _conditions(place, name, data, _rules(*expressions))
    texts = {one["message"] for one in found if one["type"].startswith("C")}
    assert texts <= {"operation cancelled: actual cost limit exceeded", "CEL evaluation budget exceeded"}
    assert (find_condition(found, "Applied") or {})["status"] == "True", "the manifest itself is applied"


PATHS = ["..[*]" * 40, ".data" + "[*]" * 800, ".metadata" + "..[*]" * 6, '.data[?(@=~"(a+)+$")]', ".x" * 2_000]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_walks_everything_ends(place: Place, path: str) -> None:
    found = _conditions(place, f"path-{PATHS.index(path)}", MANY, _feedback(path))
    assert (find_condition(found, "StatusFeedbackSynced") or {})["status"] in ("False", "True")
    assert (find_condition(found, "Available") or {})["status"] == "True"


def test_fields_to_ignore_are_bounded_too(place: Place) -> None:
    for number, fields in enumerate(({"jsonPaths": ["..[*]" * 30]}, {"jsonPointers": ["/data" + "/x" * 2_000]})):
        found = _conditions(place, f"ignored-{number}", MANY, _ignored(**fields))
        assert (find_condition(found, "Applied") or {})["status"] == "True"


def test_other_works_of_the_agent_go_on(place: Place) -> None:
    place.work("honest", config_map("honest", a="1"))
    place.settle(5)
    assert place.condition("honest", "Applied") == ("True", "AppliedManifestWorkComplete")
