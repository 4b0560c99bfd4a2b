"""Which drains can finish: a table of policy sentences, and what is proposed where they cannot. No cluster, no time."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from syncline.control.cache import Cache
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GroupKind, Obj, ObjectRef, name_of
from syncline.kube.scheduling.filters import Counted
from syncline.kube.schema.extensions import MACHINE, SIMULATED
from syncline.machineconfig.drain import observe as observing
from syncline.machineconfig.drain.feasible import Outlook, Sight, Trial, _Simulation, judge
from syncline.machineconfig.drain.observe import BUDGET, DAEMON_SET, NODE, POD, observe
from syncline.machineconfig.drain.proposals import proposals
from syncline.machineconfig.names import DESIRED_DRAIN, LAST_DRAIN, POOL

NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)
LONG_AGO, JUST_NOW = "2026-08-01T00:00:00Z", "2026-09-01T11:59:00Z"
HOST = "kubernetes.io/hostname"
CAN, BLOCKED, WAITS = Outlook.CAN, Outlook.BLOCKED, Outlook.WAITS


def node(
    name: str, cpu: str = "4", *, cordoned: bool = False, notes: dict[str, str] | None = None, **labels: str
) -> Obj:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    spec: Obj = {"unschedulable": True} if cordoned else {}
    metadata: Obj = {
        "name": name,
        "labels": {HOST: name} | labels,
        "annotations": {MACHINE: SIMULATED, **(notes or {})},
    }
    return {"metadata": metadata, "spec": spec, "status": {"allocatable": room, "capacity": room}}


def pod(
    name: str, on: str | None = "a", *, ready: bool = True, made: str = LONG_AGO, owner: str = "ReplicaSet", **more: Any
) -> Obj:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": more.pop("cpu", "100m")}}}
    metadata: Obj = {"name": name, "namespace": "x", "labels": {"app": "x"}, "creationTimestamp": made}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": owner, "name": "x-1", "uid": "u", "controller": True}
        ]
    spec = {"containers": [container]} | ({"nodeName": on} if on else {}) | more
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Running" if on else "Pending", "conditions": conditions},
    }


def budget(name: str = "b", **spec: Any) -> Obj:
    selector = {"selector": {"matchLabels": {"app": "x"}}}
    return {"metadata": {"name": name, "namespace": "x", "generation": 1}, "spec": selector | spec}


def stuck(one: Obj) -> Obj:
    found = copy.deepcopy(one)
    found["status"]["containerStatuses"] = [{"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]
    return found


APART = {
    "affinity": {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": HOST}
            ]
        }
    }
}
PINNED = {"nodeSelector": {"disk": "fast"}}

CASES: dict[str, tuple[Sight, Outlook]] = {
    "a node without budgets can be drained, wherever its pods go": (
        Sight([node("a")], [pod("p", **PINNED)], []),
        CAN,
    ),
    "replicas go one by one where their replacements find room": (
        Sight([node("a"), node("b")], [pod("p"), pod("q")], [budget(minAvailable=1)]),
        CAN,
    ),
    "the last healthy replica stays where its predecessor finds no node": (
        Sight([node("a", disk="fast"), node("b")], [pod("p", **PINNED), pod("q", **PINNED)], [budget(minAvailable=1)]),
        BLOCKED,
    ),
    "a replacement that finds no room counts as missing": (
        Sight([node("a", "8"), node("b", "1")], [pod("p", cpu="2"), pod("q", cpu="2")], [budget(minAvailable=1)]),
        BLOCKED,
    ),
    "a budget that allows nothing blocks": (
        Sight([node("a"), node("b")], [pod("p"), pod("q")], [budget(maxUnavailable=0)]),
        BLOCKED,
    ),
    "minAvailable of all replicas blocks": (
        Sight([node("a"), node("b")], [pod("p"), pod("q", "b")], [budget(minAvailable="100%")]),
        BLOCKED,
    ),
    "a budget of somebody else's pods does not count": (
        Sight([node("a")], [pod("p")], [budget(maxUnavailable=0, selector={"matchLabels": {"app": "y"}})]),
        CAN,
    ),
    "a drain may leave a replacement without a node if the budget allows it": (
        Sight([node("a"), node("b")], [pod("p", **APART), pod("q", "b", **APART)], [budget(minAvailable=1)]),
        CAN,
    ),
    "a pod that is not ready may go while the others suffice": (
        Sight([node("a"), node("b")], [pod("p", ready=False), pod("q", "b")], [budget(minAvailable=1)]),
        CAN,
    ),
    "a pod that is not ready blocks where the others do not suffice": (
        Sight([node("a"), node("b")], [pod("p", ready=False), pod("q", "b", ready=False)], [budget(minAvailable=1)]),
        BLOCKED,
    ),
    "a pod that is not ready may always go where the budget says so": (
        Sight(
            [node("a"), node("b")],
            [pod("p", ready=False)],
            [budget(minAvailable=1, unhealthyPodEvictionPolicy="AlwaysAllow")],
        ),
        CAN,
    ),
    "replicas that are just starting will make the budget allow": (
        Sight([node("a"), node("b")], [pod("p"), pod("q", "b", ready=False, made=JUST_NOW)], [budget(minAvailable=1)]),
        CAN,
    ),
    "replicas that cannot start will not": (
        Sight(
            [node("a"), node("b", disk="slow")],
            [pod("p", **PINNED), stuck(pod("q", "b", ready=False, made=JUST_NOW))],
            [budget(minAvailable=1)],
        ),
        BLOCKED,
    ),
    "a replica that waits for the scheduler and fits is as good as started": (
        Sight([node("a"), node("b")], [pod("p", **APART), pod("q", None, **APART)], [budget(minAvailable=1)]),
        CAN,
    ),
    "two budgets for one pod make every eviction fail": (
        Sight([node("a"), node("b")], [pod("p")], [budget("b", maxUnavailable=1), budget("c", maxUnavailable=1)]),
        BLOCKED,
    ),
    "a bare pod goes without replacement, as far as the budget allows": (
        Sight([node("a"), node("b")], [pod("p", owner=""), pod("q", "b", owner="")], [budget(minAvailable=1)]),
        CAN,
    ),
    "pods of a DaemonSet stay and block nothing": (
        Sight(
            [node("a")],
            [pod("p", owner="DaemonSet")],
            [budget(maxUnavailable=0)],
            frozenset({ObjectRef("apps", "DaemonSet", "x", "x-1")}),
        ),
        CAN,
    ),
    "what only another node's return makes possible waits for it": (
        Sight(
            [node("a"), node("b", cordoned=True, notes={DESIRED_DRAIN: "drain-r", LAST_DRAIN: "drain-r"})],
            [pod("p"), pod("q")],
            [budget(minAvailable=1)],
        ),
        WAITS,
    ),
    "a node that a person cordoned is not expected back": (
        Sight([node("a"), node("b", cordoned=True)], [pod("p"), pod("q")], [budget(minAvailable=1)]),
        BLOCKED,
    ),
    "an important pod takes the room of an unimportant one": (
        Sight(
            [node("a", "8"), node("b", "1")],
            [
                pod("p", cpu="1", priority=1000),
                pod("q", cpu="1", priority=1000),
                {**pod("low", "b", cpu="1", owner=""), "metadata": {"name": "low", "namespace": "y"}},
            ],
            [budget(minAvailable=1)],
        ),
        CAN,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_drain_can_finish_or_not(case: str) -> None:
    sight, outlook = CASES[case]
    before = copy.deepcopy(sight)
    verdict = judge(sight, "a", NOW)
    assert verdict.outlook is outlook, verdict.message()
    assert bool(verdict.message()) is (outlook is not CAN)
    assert sight == before, "the cluster is not changed by a look"


@pytest.mark.parametrize("case", CASES)
def test_every_proposal_has_been_tried_and_says_what_to_type(case: str) -> None:
    sight, outlook = CASES[case]
    found = proposals(sight, judge(sight, "a", NOW), NOW)
    helpless = case.startswith(("replicas that cannot", "a pod that is not"))
    assert bool(found) is (outlook is BLOCKED) or helpless
    assert all(each.command for each in found)


def test_a_node_of_no_simulated_machine_is_not_proposed_as_a_command_of_ours() -> None:
    sight, _ = CASES["a replacement that finds no room counts as missing"]
    real = [one | {"metadata": one["metadata"] | {"annotations": {}}} for one in sight.nodes]
    sight = replace(sight, nodes=tuple(real))
    (another, *_) = proposals(sight, judge(sight, "a", NOW), NOW)
    assert str(another) == "add a further node like a"


def test_what_is_proposed_depends_on_what_is_missing() -> None:
    room = CASES["a replacement that finds no room counts as missing"][0]
    texts = [each.text for each in proposals(room, judge(room, "a", NOW), NOW)]
    assert texts[0] == "add a further node like a"
    person = CASES["a node that a person cordoned is not expected back"][0]
    texts = [each.text for each in proposals(person, judge(person, "a", NOW), NOW)]
    assert "uncordon node b" in texts
    nothing = CASES["a budget that allows nothing blocks"][0]
    texts = [each.text for each in proposals(nothing, judge(nothing, "a", NOW), NOW)]
    assert texts == ["relax budget x/b (maxUnavailable 1)"], "no further than it has to be"
    several = CASES["two budgets for one pod make every eviction fail"][0]
    (only,) = proposals(several, judge(several, "a", NOW), NOW)
    assert str(only) == "leave one budget for each pod, without x/c: kubectl -n x delete pdb c"


class Counting(Cache):
    """Notes of which kinds it was asked for everything."""

    def __init__(self, indices: Any) -> None:
        super().__init__(Mapper(), indices)
        self.read_all: list[str] = []

    def objects(self, kind: GroupKind, namespace: str = "") -> list[Obj]:
        self.read_all += [] if namespace else [kind.kind]
        return super().objects(kind, namespace)


def cached(sight: Sight, counted: Counted) -> tuple[Sight, Counting]:
    """The same cluster in a cache, as the drain controller has it."""
    cache = Counting(observing.indices())
    drained = next(iter(sight.nodes))
    for kind, objs in ((NODE, sight.nodes), (POD, sight.pods), (BUDGET, sight.budgets)):
        for obj in objs:
            cache.put(kind, obj)
        cache.mark_synced(kind)
    for ref in sight.daemon_sets:
        metadata = {"name": ref.name, "namespace": ref.namespace}
        cache.put(DAEMON_SET, {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata})
    for kind in (DAEMON_SET, POOL):
        cache.mark_synced(kind)
    asking = {DESIRED_DRAIN: "drain-x", LAST_DRAIN: "uncordon-w"}
    cache.put(NODE, drained | {"metadata": drained["metadata"] | {"annotations": asking}})
    observed = observe(cache, ObjectRef("", "Node", "", name_of(drained)), counted)
    cache.put(NODE, drained)
    assert observed is not None and observed.forecast is not None
    cache.read_all.clear()
    return observed.forecast(), cache


@pytest.mark.parametrize("case", CASES)
def test_a_cluster_that_is_asked_for_what_matters_gives_the_verdict_of_one_that_is_read_whole(case: str) -> None:
    sight = CASES[case][0]
    counted = Counted()
    for _ in range(2):
        found, _cache = cached(sight, counted)
        assert judge(found, "a", NOW) == judge(sight, "a", NOW)
        assert proposals(found, judge(found, "a", NOW), NOW) == proposals(sight, judge(sight, "a", NOW), NOW)


def test_pods_of_other_nodes_and_budgets_are_not_read_where_everybody_may_go() -> None:
    found, cache = cached(Sight([node("a"), node("b")], [pod("p"), pod("q", "b")], [budget(minAvailable=1)]), Counted())
    assert judge(found, "a", NOW).outlook is CAN
    assert "Pod" not in cache.read_all and "Node" not in cache.read_all


@given(st.permutations(range(4)), st.permutations(range(3)))
def test_the_order_in_which_pods_and_nodes_are_seen_makes_no_difference(pods: list[int], nodes: list[int]) -> None:
    mine = [pod("p"), pod("q"), pod("r", "b"), pod("s", None)]
    places = [node("a"), node("b"), node("c", cordoned=True)]
    limits = [budget(minAvailable=3)]
    usual = judge(Sight(places, mine, limits), "a", NOW)
    shuffled = Sight([places[i] for i in nodes], [mine[i] for i in pods], limits)
    assert judge(shuffled, "a", NOW) == usual
    assert usual.outlook is CAN


@given(st.integers(0, 4), st.integers(0, 4), st.integers(1, 3))
def test_a_verdict_names_at_least_one_pod_if_and_only_if_it_blocks(replicas: int, needed: int, nodes: int) -> None:
    places = [node(chr(ord("a") + i)) for i in range(nodes)]
    sight = Sight(places, [pod(f"p-{i}") for i in range(replicas)], [budget(minAvailable=needed)])
    verdict = judge(sight, "a", NOW)
    assert bool(verdict.blocked) is (verdict.outlook is BLOCKED)
    assert all(name_of(places[0]) == "a" and each.budget == "b" for each in verdict.blocked)
    if nodes > 1 and needed < replicas:
        assert verdict.outlook is CAN
    if replicas and needed >= replicas:
        assert verdict.outlook is BLOCKED


PLACED = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]),
        st.booleans(),
        st.sampled_from(["Running", "Pending", "Failed"]),
        st.sampled_from([LONG_AGO, JUST_NOW]),
    ),
    max_size=6,
)
LIMITS = st.lists(st.one_of(st.integers(0, 4), st.sampled_from(["50%", "100%"])), max_size=2)


@given(PLACED, LIMITS, st.booleans())
def test_whom_budgets_let_go_at_once_would_also_go_one_by_one(
    drawn: list[tuple[str | None, bool, str, str]], limits: list[int | str], roomy: bool
) -> None:
    pods = []
    for index, (on, ready, phase, made) in enumerate(drawn):
        one = pod(f"p{index}", on, ready=ready, made=made, cpu="1")
        one["status"]["phase"] = phase if on else "Pending"
        pods.append(one)
    budgets = [budget(f"b{at}", maxUnavailable=limit) for at, limit in enumerate(limits)]
    sight = Sight([node("a"), node("b", "8" if roomy else "1")], pods, budgets)
    leaving = [each for each in pods if each["spec"].get("nodeName") == "a"]
    if _Simulation(sight, "a", NOW, Trial(), leaving, budgets)._all_may_go_now():
        assert _Simulation(sight, "a", NOW, Trial(), leaving, budgets)._in_rounds() == ()
