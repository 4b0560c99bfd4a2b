"""Drains at the edges: budgets that count nothing, pods on their way, room that others need, volumes, what is said."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.machineconfig.test_feasible import APART, BLOCKED, CAN, HOST, LONG_AGO, NOW, PINNED, budget, node, pod, stuck

from syncline.kube.objects import Obj, ObjectRef
from syncline.kube.scheduling.volumes import BOUND, Storage
from syncline.machineconfig.drain.feasible import Outlook, Sight, judge
from syncline.machineconfig.drain.proposals import proposals
from syncline.machineconfig.names import DESIRED_DRAIN, LAST_DRAIN

ZONE = "topology.kubernetes.io/zone"
MASTER = "node-role.kubernetes.io/master"
IN_UPDATE = {DESIRED_DRAIN: "drain-r", LAST_DRAIN: "drain-r"}
A_MOMENT_AGO = "2026-09-01T11:58:00Z"


def changed(one: Obj, **status: Any) -> Obj:
    """The pod with fields of its status changed."""
    return one | {"status": one["status"] | status}


def finished(one: Obj) -> Obj:
    return changed(one, phase="Failed", conditions=[{"type": "Ready", "status": "False"}])


def going(one: Obj, since: str = LONG_AGO) -> Obj:
    """Its deletion was asked for at ``since``, with no grace."""
    return one | {"metadata": one["metadata"] | {"deletionTimestamp": since, "deletionGracePeriodSeconds": 0}}


def elsewhere(one: Obj) -> Obj:
    """A pod of somebody else, which the budgets do not cover."""
    return one | {"metadata": one["metadata"] | {"namespace": "y"}}


def ill(one: Obj, at: str, restarts: int = 0) -> Obj:
    conditions = [{"type": "Ready", "status": "False", "lastTransitionTime": at}]
    return changed(one, conditions=conditions, containerStatuses=[{"name": "c", "restartCount": restarts}])


def scheduled(one: Obj, at: str) -> Obj:
    return changed(one, conditions=[{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}])


def wide(name: str, **resources: str) -> Obj:
    """A node with other resources."""
    found = node(name)
    found["status"]["allocatable"] = found["status"]["allocatable"] | resources
    return found


def counted(expected: int, **spec: Any) -> Obj:
    return budget(**spec) | {"status": {"observedGeneration": 1, "expectedPods": expected}}


def uncountable() -> Obj:
    condition = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed"}
    condition["message"] = "jobs.batch does not implement the scale subresource"
    return budget(maxUnavailable=1) | {"status": {"disruptionsAllowed": 0, "conditions": [condition]}}


def claimed(mode: str = "ReadWriteOnce", zone: str = "") -> tuple[dict[str, Any], Storage]:
    """The volumes of a pod, and the claim behind them, bound to a volume (of a zone)."""
    claim: Obj = {"metadata": {"name": "data", "namespace": "x", "uid": "c", "annotations": {BOUND: "yes"}}}
    claim |= {"spec": {"volumeName": "pv", "accessModes": [mode]}, "status": {"phase": "Bound"}}
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if zone else {}
    volume: Obj = {"metadata": {"name": "pv"}, "spec": {"accessModes": [mode]} | affinity}
    used = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
    return used, Storage({("x", "data"): claim}, {"pv": volume})


def made_with_its_pod() -> tuple[dict[str, Any], Storage]:
    claim: Obj = {"metadata": {"name": "p-v", "namespace": "x", "annotations": {BOUND: "yes"}}}
    claim["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "p", "uid": "p", "controller": True}]
    claim |= {"spec": {"volumeName": "pv"}, "status": {"phase": "Bound"}}
    used = {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}
    return used, Storage({("x", "p-v"): claim}, {"pv": {"metadata": {"name": "pv"}, "spec": {}}})


TWO = [node("a"), node("b")]
IN_ZONES = [node("a", **{ZONE: "1"}), node("b", **{ZONE: "2"})]
SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": HOST,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
    ]
}
BARE = [pod("p", owner=""), pod("q", "b", owner="")]
HALF = budget(minAvailable=1)
OF_ZONE_1, IN_ZONE_1 = claimed(zone="1")
ONLY_ONE, TAKEN_ONCE = claimed("ReadWriteOncePod")
EPHEMERAL, WITH_POD = made_with_its_pod()
PORTS = {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]}
TAINTED = node("b") | {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}
GPU = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"example.com/gpu": "1"}}}]}
SIDECAR = {
    "initContainers": [
        {"name": "s", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "3950m"}}}
    ]
}
SET = frozenset({ObjectRef("apps", "DaemonSet", "x", "x-1")})

CASES: dict[str, tuple[Sight, Outlook]] = {
    # -- budgets that count nothing
    "a budget about what controllers want lets no pod go that has none": (
        Sight(TWO, BARE, [counted(0, maxUnavailable=1)]),
        BLOCKED,
    ),
    "a percentage of what controllers want is nothing where pods have none": (
        Sight(TWO, BARE, [budget(minAvailable="10%")]),
        BLOCKED,
    ),
    "a plain number is about pods, whoever made them": (Sight(TWO, BARE, [counted(0, minAvailable=1)]), CAN),
    "a budget whose pods cannot be counted lets nobody go": (
        Sight(TWO, [pod("p"), pod("q")], [uncountable()]),
        BLOCKED,
    ),
    "a budget without a limit lets nobody go": (Sight(TWO, [pod("p"), pod("q")], [budget()]), BLOCKED),
    "numbers of a budget that are older than its spec do not count": (
        Sight(
            TWO,
            [pod("p"), pod("q", "b")],
            [counted(9, maxUnavailable=1) | {"metadata": budget()["metadata"] | {"generation": 2}}],
        ),
        CAN,
    ),
    "who is wanted and not there is missed": (
        Sight([node("a"), node("b", disk="slow")], [pod("p", **PINNED)], [counted(2, maxUnavailable=1)]),
        BLOCKED,
    ),
    "two budgets do not matter to a pod that has finished": (
        Sight(TWO, [finished(pod("p"))], [budget("b", maxUnavailable=0), budget("c", maxUnavailable=0)]),
        CAN,
    ),
    "nor to one that goes already": (
        Sight(TWO, [going(pod("p"))], [budget("b", maxUnavailable=0), budget("c", maxUnavailable=0)]),
        CAN,
    ),
    "two budgets matter to a pod that is not ready, whatever their policy": (
        Sight(
            TWO,
            [pod("p", ready=False)],
            [budget(each, minAvailable=0, unhealthyPodEvictionPolicy="AlwaysAllow") for each in "bc"],
        ),
        BLOCKED,
    ),
    # -- pods on their way
    "a finished pod is not made again, and takes nobody's room": (
        Sight(
            [node("a"), node("b", "1")],
            [finished(pod("f", cpu="1")), pod("p", cpu="1"), pod("q", cpu="1")],
            [HALF],
        ),
        CAN,
    ),
    "nor does it become healthy in another place": (
        Sight(TWO, [finished(pod("f")), pod("p"), pod("q", "b")], [budget(minAvailable=2)]),
        BLOCKED,
    ),
    "a pod of a StatefulSet comes again when it has gone": (
        Sight(TWO, [pod("p", owner="StatefulSet"), going(pod("q", "b", owner="StatefulSet"))], [HALF]),
        CAN,
    ),
    "in the place of a ReplicaSet's pod that goes another one would be there": (
        Sight(TWO, [pod("p"), going(pod("q", "b"))], [HALF]),
        BLOCKED,
    ),
    "but not within seconds": (Sight(TWO, [pod("p"), going(pod("q", "b"), "2026-09-01T11:59:55Z")], [HALF]), CAN),
    "who fell ill a moment ago is expected to recover": (
        Sight(TWO, [pod("p"), ill(pod("q", "b"), A_MOMENT_AGO)], [HALF]),
        CAN,
    ),
    "who found its node a moment ago is just starting, however long it had to wait": (
        Sight(TWO, [pod("p"), scheduled(pod("q", "b"), A_MOMENT_AGO)], [HALF]),
        CAN,
    ),
    "of whom nothing is told yet, too": (
        Sight(TWO, [pod("p"), changed(pod("q", "b", made=A_MOMENT_AGO), conditions=[])], [HALF]),
        CAN,
    ),
    "who has been ill for long is not": (Sight(TWO, [pod("p"), ill(pod("q", "b"), LONG_AGO)], [HALF]), BLOCKED),
    "nor who falls ill again and again": (
        Sight(TWO, [pod("p"), ill(pod("q", "b"), A_MOMENT_AGO, restarts=9)], [HALF]),
        BLOCKED,
    ),
    "a pod behind a scheduling gate helps nobody": (
        Sight(TWO, [pod("p"), pod("q", None, ready=False, schedulingGates=[{"name": "g"}])], [HALF]),
        BLOCKED,
    ),
    "a static pod stays, and its budget with it": (
        Sight(
            TWO,
            [
                {
                    **pod("p", owner="Node"),
                    "metadata": pod("p", owner="Node")["metadata"]
                    | {"annotations": {"kubernetes.io/config.mirror": "h"}},
                }
            ],
            [budget(maxUnavailable=0)],
        ),
        CAN,
    ),
    "a pod of a DaemonSet that is gone has to leave like any other": (
        Sight(TWO, [pod("p", owner="DaemonSet")], [budget(minAvailable=1)]),
        BLOCKED,
    ),
    # -- room
    "two important pods do not take the same room": (
        Sight(
            [node("a", "8"), node("b", "1")],
            [
                *(pod(each, cpu="1", priority=1000) for each in "pqr"),
                elsewhere(pod("low", "b", cpu="1", owner="")),
            ],
            [budget(minAvailable=2)],
        ),
        BLOCKED,
    ),
    "an important pod that never preempts waits like others": (
        Sight(
            [node("a", "8"), node("b", "1")],
            [
                *(pod(each, cpu="1", priority=1000, preemptionPolicy="Never") for each in "pq"),
                elsewhere(pod("low", "b", cpu="1", owner="")),
            ],
            [HALF],
        ),
        BLOCKED,
    ),
    "pods without a budget take room as well": (
        Sight(
            [node("a"), node("b", "1")],
            [pod("p", cpu="1"), pod("q", cpu="1"), elsewhere(pod("other", cpu="1", priority=9))],
            [HALF],
        ),
        BLOCKED,
    ),
    "a node takes no more pods than it says": (
        Sight([node("a"), wide("b", pods="0")], [pod("p"), pod("q")], [HALF]),
        BLOCKED,
    ),
    "extended resources are counted": (
        Sight([wide("a", **{"example.com/gpu": "2"}), node("b")], [pod("p", **GPU), pod("q", **GPU)], [HALF]),
        BLOCKED,
    ),
    "sidecars take room beside the containers": (
        Sight([node("a", "9"), node("b")], [pod("p", **SIDECAR), pod("q", **SIDECAR)], [HALF]),
        BLOCKED,
    ),
    "so does the overhead of a runtime": (
        Sight([node("a", "9"), node("b")], [pod(each, overhead={"cpu": "3950m"}) for each in "pq"], [HALF]),
        BLOCKED,
    ),
    "a taint that evicts keeps pods away, too": (Sight([node("a"), TAINTED], [pod("p"), pod("q")], [HALF]), BLOCKED),
    "unless it is tolerated": (
        Sight([node("a"), TAINTED], [pod(each, tolerations=[{"operator": "Exists"}]) for each in "pq"], [HALF]),
        CAN,
    ),
    "a port of the host is taken once": (
        Sight(
            [node("a"), node("b"), node("c")],
            [pod(each, on, **PORTS) for each, on in ("pa", "qb", "rc")],
            [budget(minAvailable=3)],
        ),
        BLOCKED,
    ),
    "replicas that are kept apart need a node each": (
        Sight(TWO, [pod("p", **APART), pod("q", "b", **APART)], [budget(minAvailable=2)]),
        BLOCKED,
    ),
    "the node that is drained still counts for spreading": (
        Sight(
            [node("a"), node("b")],
            [pod("p", **SPREAD), pod("q", "b", **SPREAD), pod("r", "b", **SPREAD)],
            [budget(minAvailable=2)],
        ),
        CAN,
    ),
    # -- volumes
    "a replacement follows its volume, which no other node reaches": (
        Sight(IN_ZONES, [pod(each, owner="StatefulSet", **OF_ZONE_1) for each in "pq"], [HALF], storage=IN_ZONE_1),
        BLOCKED,
    ),
    "and goes where the zone has another node": (
        Sight(
            [*IN_ZONES, node("c", **{ZONE: "1"})],
            [pod(each, owner="StatefulSet", **OF_ZONE_1) for each in "pq"],
            [HALF],
            storage=IN_ZONE_1,
        ),
        CAN,
    ),
    "a volume for one pod alone is free when that pod has gone": (
        Sight(TWO, [pod("p", owner="StatefulSet", **ONLY_ONE), pod("q")], [HALF], storage=TAKEN_ONCE),
        CAN,
    ),
    "a volume that is made with its pod is made again with the next one": (
        Sight(TWO, [pod("p", **EPHEMERAL), pod("q")], [HALF], storage=WITH_POD),
        CAN,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_drain_can_finish_or_not_at_the_edges(case: str) -> None:
    sight, outlook = CASES[case]
    before = copy.deepcopy(sight)
    verdict = judge(sight, "a", NOW)
    assert verdict.outlook is outlook, verdict.message()
    assert sight == before, "the cluster is not changed by a look"


def ways_out(sight: Sight) -> list[str]:
    return [str(each) for each in proposals(sight, judge(sight, "a", NOW), NOW)]


def message(sight: Sight) -> str:
    return judge(sight, "a", NOW).message().partition(" ← ")[2]


# -- what is said ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sight", "told"),
    [
        (
            Sight(TWO, BARE, [counted(0, maxUnavailable=1)]),
            "eviction of pod x/p is refused by budget b (allows 0: it is about what controllers want, and its pods "
            "have none)",
        ),
        (
            Sight(TWO, [pod("p")], [uncountable()]),
            "eviction of pod x/p is refused by budget b (allows 0: its pods cannot be counted: jobs.batch does not "
            "implement the scale subresource)",
        ),
        (
            Sight(TWO, [pod("p"), stuck(pod("q", "b", ready=False))], [HALF]),
            "eviction of pod x/p is refused by budget b (allows 0: 1 of 2 healthy, 1 needed) ← pod x/q on node b is "
            "not ready (ImagePullBackOff)",
        ),
        (
            Sight(TWO, [pod("p"), pod("q", None, ready=False, schedulingGates=[{"name": "g"}])], [HALF]),
            "eviction of pod x/p is refused by budget b (allows 0: 1 of 2 healthy, 1 needed) ← pod x/q waits for its "
            "scheduling gates (g)",
        ),
        (
            Sight(TWO, [pod("p"), pod("q", None, ready=False, **PINNED)], [HALF]),
            "eviction of pod x/p is refused by budget b (allows 0: 1 of 2 healthy, 1 needed) ← pod x/q Pending ← 0/2 "
            "nodes are available: 1 node(s) didn't match Pod's node affinity/selector (b), 1 node(s) were "
            "unschedulable (a, to be drained)",
        ),
        (
            Sight(
                TWO,
                [pod("p"), elsewhere(pod("p"))],
                [budget(maxUnavailable=0), elsewhere(budget("d", maxUnavailable=0))],
            ),
            "eviction of pod x/p is refused by budget b (allows 0: 1 of 1 healthy, 1 needed); refused by budget d, too",
        ),
    ],
    ids=["no controllers", "not counted", "not ready", "gated", "pending", "two budgets"],
)
def test_a_blocked_drain_names_the_pod_the_budget_and_what_is_missing(sight: Sight, told: str) -> None:
    assert message(sight) == told


# -- ways out --------------------------------------------------------------------------------------------------------


def test_a_budget_that_counts_controllers_is_made_to_count_pods() -> None:
    assert ways_out(Sight(TWO, BARE, [counted(0, maxUnavailable=1)])) == [
        "relax budget x/b (minAvailable 1): kubectl -n x patch pdb b --type=merge -p "
        '\'{"spec":{"maxUnavailable":null,"minAvailable":1}}\''
    ]
    assert ways_out(Sight(TWO, [pod("p"), pod("q")], [uncountable()]))[-1].startswith(
        "relax budget x/b (minAvailable 1)"
    )


def test_a_budget_that_no_number_opens_is_told_to_let_pods_go_that_are_not_ready() -> None:
    ill_for_long = [ill(pod(each), LONG_AGO) for each in "pq"]
    assert ways_out(Sight(TWO, ill_for_long, [HALF])) == [
        "relax budget x/b (unhealthyPodEvictionPolicy AlwaysAllow): kubectl -n x patch pdb b --type=merge -p "
        '\'{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}\''
    ]


def test_of_several_budgets_the_one_that_lets_the_pod_go_is_left() -> None:
    strict, lax = budget("b", maxUnavailable=0), budget("c", maxUnavailable=1)
    (only,) = ways_out(Sight(TWO, [pod("p")], [strict, lax]))
    assert only == "leave one budget for each pod, without x/b: kubectl -n x delete pdb b"


def test_where_none_of_them_does_one_is_left_and_relaxed() -> None:
    (only,) = ways_out(Sight(TWO, [pod("p")], [budget("b", maxUnavailable=0), budget("c", maxUnavailable=0)]))
    assert only == (
        "leave one budget for each pod, without x/c and relax budget x/b (maxUnavailable 1): kubectl -n x delete pdb c "
        '&& kubectl -n x patch pdb b --type=merge -p \'{"spec":{"maxUnavailable":1}}\''
    )


def test_a_new_node_carries_what_every_node_carries() -> None:
    tight = [pod("p", cpu="1"), pod("q", cpu="1")]
    every = elsewhere(pod("agent", cpu="2", owner="DaemonSet"))
    sets = frozenset({ObjectRef("apps", "DaemonSet", "y", "x-1")})
    room = Sight([node("a", "4"), node("b", "1m")], [*tight, every], [HALF], sets)
    assert any(each.startswith("add a further node") for each in ways_out(room))
    full = elsewhere(pod("agent", cpu="3500m", owner="DaemonSet"))
    assert not any(
        each.startswith("add a further node")
        for each in ways_out(Sight([node("a", "4"), node("b", "1m")], [*tight, full], [HALF], sets))
    )


def test_a_new_node_is_no_way_out_where_more_important_pods_wait_for_it() -> None:
    tight = [pod("p", cpu="3"), pod("q", cpu="1")]
    waiting = elsewhere(pod("w", None, ready=False, cpu="4", priority=9))
    here = Sight([node("a", "4"), node("b", "1m")], [*tight, waiting], [budget(minAvailable=2)])
    assert not any(each.startswith("add a further node") for each in ways_out(here))
    assert any("node like a" in each for each in ways_out(Sight([node("a", "4"), node("b", "1m")], tight, [HALF])))


def test_nobody_is_told_to_uncordon_a_node_in_the_middle_of_its_update() -> None:
    master = node("m", cordoned=True, notes=IN_UPDATE, **{MASTER: ""})
    master["spec"]["taints"] = [{"key": MASTER, "effect": "NoSchedule"}]
    found = ways_out(Sight([node("a"), master], [pod("p"), pod("q")], [HALF]))
    masters = next(each for each in found if each.startswith("make the masters schedulable (m)"))
    assert "uncordon" not in masters and f"kubectl taint nodes m {MASTER}-" in masters


def test_of_many_cordoned_nodes_one_is_proposed() -> None:
    closed = [node(f"n{each}", cordoned=True) for each in range(9)]
    found = ways_out(Sight([node("a"), *closed], [pod("p"), pod("q")], [HALF]))
    assert [each for each in found if each.startswith("uncordon")] == ["uncordon node n0: kubectl uncordon n0"]
    assert any(each.startswith("relax budget") for each in found)


def test_replicas_that_go_or_have_finished_are_not_counted() -> None:
    there = [pod("p", **APART), pod("q", "b", **APART), going(pod("r", "b")), finished(pod("s", "b"))]
    found = ways_out(Sight([*TWO, node("c")], there, [budget(minAvailable=2)]))
    assert [each for each in found if each.startswith("run one more")] == [
        "run one more replica of ReplicaSet x/x-1: kubectl -n x scale replicaset x-1 --replicas=3"
    ]


def test_one_more_replica_is_no_way_out_of_a_budget_that_lets_nobody_go() -> None:
    found = ways_out(Sight([*TWO, node("c")], [pod("p"), pod("q", "b")], [budget(maxUnavailable=0)]))
    assert not any(each.startswith("run one more") for each in found)
