"""Which pods make room, as tables: one row is one policy sentence."""

from __future__ import annotations

from typing import Any

import pytest

from syncline.kube.objects import Obj
from syncline.kube.scheduling.filters import Cluster, feasible
from syncline.kube.scheduling.preemption import MAX_CANDIDATES, TERMINATING, preempt


def node(name: str, cpu: str = "2") -> Obj:
    return {"metadata": {"name": name}, "spec": {}, "status": {"allocatable": {"cpu": cpu, "pods": "9"}}}


def pod(name: str, priority: int, on: str = "", cpu: str = "1", since: str = "", **labels: str) -> Obj:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    spec: Obj = {"containers": [container], "priority": priority} | ({"nodeName": on} if on else {})
    status = {"startTime": f"2026-01-01T00:00:{since}Z"} if since else {}
    return {"metadata": {"name": name, "namespace": "d", "uid": name, "labels": labels}, "spec": spec, "status": status}


def budget(allowed: int, **labels: str) -> Obj:
    return {
        "metadata": {"name": "b", "namespace": "d"},
        "spec": {"selector": {"matchLabels": labels} if labels else {}},
        "status": {"disruptionsAllowed": allowed},
    }


def found(wanted: Obj, nodes: list[Obj], pods: list[Obj], budgets: list[Obj] | None = None) -> tuple[str, list[str]]:
    cluster = Cluster.of(nodes, pods)
    victims = preempt(wanted, cluster, feasible(wanted, cluster)[1], budgets or []).victims
    return ("", []) if victims is None else (victims.node, [each["metadata"]["name"] for each in victims.pods])


A, B = node("a"), node("b")
CASES: list[tuple[str, Obj, list[Obj], list[Obj], list[Obj], tuple[str, list[str]]]] = [
    ("equals stay", pod("p", 5), [A], [pod("x", 5, "a", "2")], [], ("", [])),
    ("lower ones go", pod("p", 5), [A], [pod("x", 4, "a", "2")], [], ("a", ["x"])),
    ("no more than needed", pod("p", 5), [A], [pod("x", 1, "a"), pod("y", 2, "a")], [], ("a", ["x"])),
    (
        "of equals the youngest",
        pod("p", 5),
        [A],
        [pod("x", 1, "a", since="01"), pod("y", 1, "a", since="02")],
        [],
        ("a", ["y"]),
    ),
    ("a node that is too small anyway", pod("p", 5, cpu="3"), [A], [pod("x", 1, "a")], [], ("", [])),
    ("the least of the highest", pod("p", 9), [A, B], [pod("x", 3, "a", "2"), pod("y", 2, "b", "2")], [], ("b", ["y"])),
    (
        "the smallest sum before the fewest",
        pod("p", 9, cpu="2"),
        [A, B],
        [pod("x", 3, "a"), pod("y", 3, "a"), pod("z", 3, "b", "2")],
        [],
        ("b", ["z"]),
    ),
    (
        "the one that started last",
        pod("p", 9),
        [A, B],
        [pod("x", 1, "a", "2", "01"), pod("y", 1, "b", "2", "30")],
        [],
        ("b", ["y"]),
    ),
    ("by name", pod("p", 9), [B, A], [pod("y", 1, "b", "2"), pod("x", 1, "a", "2")], [], ("a", ["x"])),
    (
        "a budget is kept where another node will do",
        pod("p", 9),
        [A, B],
        [pod("x", 1, "a", "2", app="w"), pod("y", 4, "b", "2")],
        [budget(0, app="w")],
        ("b", ["y"]),
    ),
    (
        "a budget with room is none in the way",
        pod("p", 9),
        [A, B],
        [pod("x", 1, "a", "2", app="w"), pod("y", 4, "b", "2")],
        [budget(1, app="w")],
        ("a", ["x"]),
    ),
    (
        "a budget does not save the last node",
        pod("p", 9),
        [A],
        [pod("x", 1, "a", "2", app="w")],
        [budget(0, app="w")],
        ("a", ["x"]),
    ),
    (
        "on one node the pod without budget goes, though it is more important",
        pod("p", 9),
        [A],
        [pod("x", 1, "a", app="w"), pod("y", 4, "a")],
        [budget(0, app="w")],
        ("a", ["y"]),
    ),
    (
        "an empty selector covers nothing",
        pod("p", 9),
        [A],
        [pod("x", 1, "a", app="w"), pod("y", 4, "a")],
        [budget(0)],
        ("a", ["x"]),
    ),
]


@pytest.mark.parametrize(("policy", "wanted", "nodes", "pods", "budgets", "expected"), CASES, ids=[c[0] for c in CASES])
def test_who_makes_room(
    policy: str, wanted: Obj, nodes: list[Obj], pods: list[Obj], budgets: list[Obj], expected: tuple[str, list[str]]
) -> None:
    assert found(wanted, nodes, pods, budgets) == expected
    assert found(wanted, nodes[::-1], pods[::-1], budgets[::-1]) == expected, (
        "the order of the input counts for nothing"
    )


def test_a_pod_that_never_preempts_looks_at_nothing() -> None:
    wanted = pod("p", 9)
    wanted["spec"]["preemptionPolicy"] = "Never"
    assert found(wanted, [A], [pod("x", 1, "a", "2")]) == ("", [])


def test_a_node_whose_victims_still_go_is_waited_for() -> None:
    going: Any = pod("x", 1, "a", "2")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    wanted = pod("p", 9)
    wanted["status"]["nominatedNodeName"] = "a"
    cluster = Cluster.of([A, B], [going, pod("y", 1, "b", "2")])
    answer = preempt(wanted, cluster, feasible(wanted, cluster)[1], [])
    assert answer.victims is None and answer.ineligible == TERMINATING


def test_why_freeing_a_node_would_not_do_is_told() -> None:
    wanted = pod("p", 9, cpu="2")
    cluster = Cluster.of([A], [pod("x", 1, "a"), pod("y", 9, "a")])
    assert preempt(wanted, cluster, feasible(wanted, cluster)[1], []).reasons == {"a": ("Insufficient cpu",)}


def test_only_so_many_nodes_are_tried() -> None:
    names = [f"n{number:03}" for number in range(MAX_CANDIDATES + 5)]
    pods = [pod(f"x-{name}", 500 - number, name, "2") for number, name in enumerate(names)]
    best = names[MAX_CANDIDATES - 1]
    assert found(pod("p", 900), [node(name) for name in names], pods) == (best, [f"x-{best}"])
