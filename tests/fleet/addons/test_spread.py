"""The manifests of an add-on are spread over works by their size, and stay where they are."""

from __future__ import annotations

import pytest

from syncline.fleet.hub.addons.works import LIMIT, plural_of, spread
from syncline.kube.objects import Obj, name_of


def manifest(name: str, size: int = 0) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "x" * size}}


def work(number: int, *manifests: Obj) -> Obj:
    return {"metadata": {"name": f"addon-a-deploy-{number}"}, "spec": {"workload": {"manifests": list(manifests)}}}


HALF, THIRD = LIMIT // 2 + 1, LIMIT // 3

CASES: dict[str, tuple[list[Obj], list[Obj], dict[int, list[str]]]] = {
    "small manifests share a work": ([manifest("a"), manifest("b")], [], {0: ["a", "b"]}),
    "what does not fit begins a further work, the largest first": (
        [manifest("a", THIRD), manifest("b", HALF), manifest("c", HALF)],
        [],
        {0: ["b"], 1: ["c", "a"]},
    ),
    "a manifest stays in its work": (
        [manifest("a"), manifest("b")],
        [work(0, manifest("b")), work(1, manifest("a"))],
        {0: ["b"], 1: ["a"]},
    ),
    "a new one goes where most room is": (
        [manifest("a", HALF), manifest("b"), manifest("c")],
        [work(0, manifest("a")), work(1, manifest("b"))],
        {0: ["a"], 1: ["b", "c"]},
    ),
    "a work whose manifests all went is left empty": (
        [manifest("a")],
        [work(0, manifest("a")), work(1, manifest("b"))],
        {0: ["a"], 1: []},
    ),
    "a name that is taken is passed over": (
        [manifest("a", LIMIT), manifest("b")],
        [work(1, manifest("b"))],
        {1: ["b"], 2: ["a"]},
    ),
}


@pytest.mark.parametrize(("manifests", "works", "expected"), CASES.values(), ids=CASES)
def test_manifests_are_spread(manifests: list[Obj], works: list[Obj], expected: dict[int, list[str]]) -> None:
    found = spread("a", manifests, works)
    assert found.keys() == {f"addon-a-deploy-{number}" for number in expected}
    assert {int(name.rsplit("-", 1)[1]): [name_of(one) for one in ones] for name, ones in found.items()} == expected


@pytest.mark.parametrize(
    ("kind", "resource"),
    [("Ingress", "ingresses"), ("NetworkPolicy", "networkpolicies"), ("Endpoints", "endpoints"), ("Pod", "pods")],
)
def test_a_resource_is_guessed_from_its_kind(kind: str, resource: str) -> None:
    assert plural_of(kind) == resource
