"""The scheduler's filters, sentences and scores, as tables."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import syncline.kube.scheduling.filters as scheduling
from syncline.kube.objects import Obj
from syncline.kube.scheduling.filters import NO_NODES, Cluster, Counted, choose, explain
from syncline.kube.scheduling.podresources import requests_of
from syncline.kube.scheduling.terms import tolerates
from syncline.kube.scheduling.volumes import Storage

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "3"}
TAIL = ". no new claims to deallocate, preemption: 0/{n} nodes are available: {why}."


def node(name: str, *, taints: tuple[Obj, ...] = (), cordoned: bool = False, room: Any = ROOM, **labels: str) -> Obj:
    spec: Obj = {"taints": list(taints)} | ({"unschedulable": True} if cordoned else {})
    named = {"kubernetes.io/hostname": name} | labels
    return {"metadata": {"name": name, "labels": named}, "spec": spec, "status": {"allocatable": room}}


def pod(name: str = "p", *, on: str = "", cpu: str = "", labels: Any = None, namespace: str = "d", **spec: Any) -> Obj:
    container: Obj = {"name": "c"} | ({"resources": {"requests": {"cpu": cpu}}} if cpu else {})
    body = {"containers": [container]} | ({"nodeName": on} if on else {}) | spec
    return {"kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": labels or {}}, "spec": body}


def spread(**more: Any) -> list[Obj]:
    selector = {"matchLabels": {"app": "a"}}
    base = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return [base | more]


def near(kind: str, topology: str = "zone", **more: Any) -> Obj:
    term = {"topologyKey": topology, "labelSelector": {"matchLabels": {"app": "a"}}} | more
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def in_zone(*values: str) -> Obj:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": list(values)}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}
HELPLESS = "Preemption is not helpful for scheduling"
NO_VICTIM = "No preemption victims found for incoming pod"
PORT = [{"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}]}]

REFUSALS: list[tuple[str, Obj, list[Obj], list[Obj], str, str]] = [
    ("a cordoned node", pod(), [node("a", cordoned=True)], [], "1 node(s) were unschedulable", f"1 {HELPLESS}"),
    ("a taint", pod(), [node("a", taints=(TAINT,))], [], "1 node(s) had untolerated taint(s)", f"1 {HELPLESS}"),
    (
        "a selector",
        pod(nodeSelector={"disk": "ssd"}),
        [node("a")],
        [],
        "1 node(s) didn't match Pod's node affinity/selector",
        f"1 {HELPLESS}",
    ),
    ("more than the node has", pod(cpu="5"), [node("a")], [], "1 Insufficient cpu", f"1 {HELPLESS}"),
    (
        "more than is left",
        pod(cpu="3"),
        [node("a")],
        [pod("q", on="a", cpu="2")],
        "1 Insufficient cpu",
        f"1 {NO_VICTIM}",
    ),
    (
        "too many pods",
        pod(),
        [node("a")],
        [pod(f"q{i}", on="a") for i in range(3)],
        "1 Too many pods",
        f"1 {NO_VICTIM}",
    ),
    (
        "a taken port",
        pod(containers=PORT),
        [node("a")],
        [pod("q", on="a", containers=PORT)],
        "1 node(s) didn't have free ports for the requested pod ports",
        f"1 {NO_VICTIM}",
    ),
    (
        "neighbours it wants",
        pod(affinity=near("podAffinity")),
        [node("a", zone="z")],
        [],
        "1 node(s) didn't match pod affinity rules",
        f"1 {HELPLESS}",
    ),
    (
        "neighbours it shuns",
        pod(affinity=near("podAntiAffinity")),
        [node("a", zone="z"), node("b", zone="z")],
        [pod("q", on="a", labels={"app": "a"})],
        "2 node(s) didn't match pod anti-affinity rules",
        f"2 {NO_VICTIM}",
    ),
    (
        "neighbours that shun it",
        pod(labels={"app": "a"}),
        [node("a", zone="z")],
        [pod("q", on="a", affinity=near("podAntiAffinity"))],
        "1 node(s) didn't satisfy existing pods anti-affinity rules",
        f"1 {NO_VICTIM}",
    ),
    (
        "a missing topology label",
        pod(topologySpreadConstraints=spread()),
        [node("a")],
        [],
        "1 node(s) didn't match pod topology spread constraints (missing required label)",
        f"1 {HELPLESS}",
    ),
    (
        "different reasons, sorted as texts",
        pod(cpu="3"),
        [node("a", cordoned=True), node("b"), node("c", taints=(TAINT,))],
        [pod("q", on="b", cpu="2")],
        "1 Insufficient cpu, 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable",
        f"1 {NO_VICTIM}, 2 {HELPLESS}",
    ),
]


@pytest.mark.parametrize(("case", "wanted", "nodes", "pods", "reasons", "why"), REFUSALS, ids=[r[0] for r in REFUSALS])
def test_a_refusal_is_told_in_kubernetes_words(
    case: str, wanted: Obj, nodes: list[Obj], pods: list[Obj], reasons: str, why: str
) -> None:
    chosen, refused = choose(wanted, Cluster.of(nodes, pods))
    assert chosen == ""
    total = len(nodes)
    assert explain(wanted, refused) == f"0/{total} nodes are available: {reasons}" + TAIL.format(n=total, why=why)


def test_without_nodes_there_is_a_sentence_of_its_own() -> None:
    assert explain(pod(), choose(pod(), Cluster.of([], []))[1]) == NO_NODES


def test_a_pod_that_never_preempts_says_so() -> None:
    wanted = pod(cpu="9", preemptionPolicy="Never")
    _, refused = choose(wanted, Cluster.of([node("a")], []))
    assert explain(wanted, refused).endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_a_pod_may_be_the_first_of_its_own_company() -> None:
    wanted = pod(labels={"app": "a"}, affinity=near("podAffinity"))
    assert choose(wanted, Cluster.of([node("a", zone="z")], []))[0] == "a"


def test_spreading_goes_to_the_emptier_domain() -> None:
    nodes = [node("a", zone="1"), node("b", zone="2")]
    taken = [pod("q", on="a", labels={"app": "a"})]
    wanted = pod(labels={"app": "a"}, topologySpreadConstraints=spread())
    assert choose(wanted, Cluster.of(nodes, taken))[0] == "b"


def test_domains_that_the_pod_cannot_reach_do_not_count_for_spreading() -> None:
    nodes = [node("a", zone="1"), node("b", zone="2")]
    taken = [pod(f"q{i}", on="a", labels={"app": "a"}) for i in range(2)]
    wanted = pod(labels={"app": "a"}, topologySpreadConstraints=spread(), affinity=in_zone("1"))
    assert choose(wanted, Cluster.of(nodes, taken))[0] == "a"


def test_too_few_domains_count_as_empty_ones() -> None:
    taken = [pod("q", on="a", labels={"app": "a"})]
    wanted = pod(labels={"app": "a"}, topologySpreadConstraints=spread(minDomains=2))
    assert choose(wanted, Cluster.of([node("a", zone="1")], taken))[0] == ""


def test_a_namespace_selector_looks_into_other_namespaces() -> None:
    term = near("podAffinity", namespaceSelector={"matchLabels": {"team": "x"}})
    nodes, taken = [node("a", zone="1"), node("b", zone="2")], [pod("q", on="b", labels={"app": "a"}, namespace="o")]
    cluster = Cluster.of(nodes, taken, {"o": {"team": "x"}, "d": {}})
    assert choose(pod(affinity=term), cluster)[0] == "b"


def test_finished_pods_take_no_room() -> None:
    done = pod("q", on="a", cpu="4") | {"status": {"phase": "Succeeded"}}
    assert choose(pod(cpu="4"), Cluster.of([node("a")], [done]))[0] == "a"


def test_the_emptier_node_is_preferred_and_equal_ones_go_by_name() -> None:
    nodes = [node("b"), node("a")]
    assert choose(pod(), Cluster.of(nodes, []))[0] == "a"
    assert choose(pod(cpu="1"), Cluster.of(nodes, [pod("q", on="a", cpu="2")]))[0] == "b"


def test_a_sidecar_runs_beside_what_starts_after_it() -> None:
    def container(cpu: str, **more: Any) -> Obj:
        return {"resources": {"requests": {"cpu": cpu}}} | more

    initial = [container("1", restartPolicy="Always"), container("3")]
    assert requests_of(pod(initContainers=initial, containers=[container("1")]))["cpu"] == 4000


@pytest.mark.parametrize(
    ("toleration", "bears"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "other"}, False),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_toleration_bears_a_taint(toleration: Obj, bears: bool) -> None:
    assert tolerates([toleration], TAINT) is bears


@given(st.permutations(["a", "b", "c", "d"]), st.lists(st.sampled_from("abcd"), max_size=6))
def test_the_order_of_nodes_and_pods_does_not_matter(names: list[str], where: list[str]) -> None:
    placed = [pod(f"q{i}", on=name, cpu="1") for i, name in enumerate(where)]
    first = choose(pod(cpu="1"), Cluster.of([node(n) for n in sorted(names)], placed))
    second = choose(pod(cpu="1"), Cluster.of([node(n) for n in names], placed[::-1]))
    assert first == second


SOFT = {"whenUnsatisfiable": "ScheduleAnyway"}
APP = {"app": "a"}
CROWD = [pod("q1", on="a", labels=APP), pod("q2", on="b", labels=APP), pod("q3", on="b", labels=APP)]


@pytest.mark.parametrize(
    ("policy", "constraints", "zones", "pods", "expected"),
    [
        ("the emptier zone", spread(**SOFT), {"a": "1", "b": "2"}, CROWD, "a"),
        ("nodes of one zone count together", spread(**SOFT), {"a": "1", "b": "2", "c": "2"}, CROWD[:2], "a"),
        ("a node without the label comes last", spread(**SOFT), {"a": "1", "b": ""}, CROWD[:1], "a"),
        (
            "a smaller skew does not turn the order",
            spread(maxSkew=5, **SOFT),
            {"a": "1", "b": "2"},
            [CROWD[1], CROWD[2]],
            "a",
        ),
        ("soft never refuses", spread(**SOFT), {"b": ""}, CROWD[1:], "b"),
        (
            "of two constraints the one with more domains weighs more",
            [*spread(**SOFT), *spread(topologyKey="kubernetes.io/hostname", **SOFT)],
            {"a": "1", "b": "1", "c": "2", "d": "2"},
            [pod("q1", on="c", labels=APP), pod("q2", on="a", labels=APP), pod("q3", on="b", labels=APP)],
            "d",
        ),
    ],
)
def test_soft_spreading_prefers(
    policy: str, constraints: list[Obj], zones: dict[str, str], pods: list[Obj], expected: str
) -> None:
    room = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    nodes = [node(name, room=room, zone=zone) if zone else node(name, room=room) for name, zone in zones.items()]
    wanted = pod(labels=APP, topologySpreadConstraints=constraints)
    assert choose(wanted, Cluster.of(nodes, pods))[0] == expected
    assert choose(wanted, Cluster.of(nodes[::-1], pods[::-1]))[0] == expected


@pytest.mark.parametrize(
    ("zone", "labels", "sentence"),
    [
        ("1", {"topology.kubernetes.io/zone": "2"}, "1 node(s) had no available volume zone"),
        ("1", {"topology.kubernetes.io/zone": "0__1"}, ""),
        ("", {"topology.kubernetes.io/zone": "2"}, ""),
    ],
)
def test_zone_labels_of_a_volume_say_where_it_is(zone: str, labels: dict[str, str], sentence: str) -> None:
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}, "name": "data", "namespace": "d"}
    claim = {"metadata": bound, "spec": {"volumeName": "v"}, "status": {"phase": "Bound"}}
    volume = {"metadata": {"name": "v", "labels": labels}, "spec": {}}
    wanted = pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    place = node("a")
    place["metadata"]["labels"] |= {"topology.kubernetes.io/zone": zone} if zone else {}
    cluster = Cluster.of([place], [], storage=Storage({("d", "data"): claim}, {"v": volume}))
    name, refused = choose(wanted, cluster)
    if sentence:
        assert explain(wanted, refused).startswith(f"0/1 nodes are available: {sentence}.")
    else:
        assert name == "a"


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, 'persistentvolumeclaim "data" is being deleted'),
        (
            {"spec": {"volumeName": "v"}, "status": {"phase": "Lost"}},
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"',
        ),
        (
            {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "v"}},
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"',
        ),
        ({"spec": {"volumeName": "v"}}, "pod has unbound immediate PersistentVolumeClaims"),
    ],
)
def test_what_is_wrong_with_a_claim_is_said_once_for_all_nodes(claim: Obj, sentence: str) -> None:
    whole = {"metadata": {"name": "data", "namespace": "d"} | claim.get("metadata", {}), "spec": claim.get("spec", {})}
    whole["status"] = claim.get("status", {})
    wanted = pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    cluster = Cluster.of([node("a"), node("b")], [], storage=Storage({("d", "data"): whole}))
    assert explain(wanted, choose(wanted, cluster)[1]) == f"0/2 nodes are available: {sentence}. not found"


def test_what_is_kept_from_look_to_look_never_changes_what_is_counted() -> None:
    """The same nodes and pods, one pod more, one pod changed, a node gone: counted anew or kept, it is the same."""
    counted = Counted()
    nodes = [node("a"), node("b")]
    pods = [pod("p", on="a", cpu="1"), pod("q", on="b")]
    changed = [*pods[:1], pod("q", on="b", labels={"x": "y"})]
    for there, running in (
        (nodes, pods),
        (nodes, pods),
        (nodes, [*pods, pod("r", on="a")]),
        (nodes, changed),
        (nodes[:1], pods),
    ):
        kept = Cluster.of(there, running, counted=counted)
        anew = Cluster.of(there, running)
        assert [(s.name, s.pods, s.used, s.owners) for s in kept.nodes] == [
            (s.name, s.pods, s.used, s.owners) for s in anew.nodes
        ]
        kept.nodes[0].place(pod("guest", cpu="2"))  # what a pass tries must not stay


# -- large clusters ---------------------------------------------------------------------------------------------------


def test_of_many_nodes_as_many_are_looked_at_as_by_kube_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a hundred, half of two hundred, a tenth of five thousand, a twentieth of ten thousand."""
    looks: list[str] = []
    judged = scheduling._Filters.refusal

    def looked(self: Any, state: Any) -> Any:
        looks.append(state.name)
        return judged(self, state)

    monkeypatch.setattr(scheduling._Filters, "refusal", looked)
    found = {}
    for count in (3, 100, 150, 500, 5_000, 10_000):
        looks.clear()
        assert choose(pod(), Cluster.of([node(f"n{at:05}") for at in range(count)], []))[0]
        found[count] = len(looks)
    assert found == {3: 3, 100: 100, 150: 100, 500: 230, 5_000: 500, 10_000: 500}


def test_a_pod_finds_the_only_place_among_many_and_hears_of_every_node_where_there_is_none() -> None:
    nodes = [node(f"n{at:03}", cordoned=at != 77) for at in range(300)]
    assert choose(pod(), Cluster.of(nodes, []))[0] == "n077"
    full = Cluster.of(nodes, [pod(f"p{at}", on="n077") for at in range(3)])
    name, refused = choose(pod(), full)
    assert (name, len(refused)) == ("", 300)


def test_a_node_that_was_nominated_or_pinned_is_found_among_many() -> None:
    nodes = Cluster.of([node(f"n{at:03}") for at in range(300)], [])
    for name in ("n000", "n123", "n299"):
        assert choose(pod() | {"status": {"nominatedNodeName": name}}, nodes)[0] == name
        field = [{"key": "metadata.name", "operator": "In", "values": [name]}]
        terms = {"nodeSelectorTerms": [{"matchFields": field}]}
        pinned = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        assert choose(pod(affinity=pinned), nodes)[0] == name


def test_pods_of_one_controller_do_not_crowd_where_only_a_part_of_the_nodes_is_looked_at() -> None:
    cluster = Cluster.of([node(f"n{at:03}") for at in range(300)], [])
    states = {state.name: state for state in cluster.nodes}
    for at in range(200):
        one = pod(f"p{at}", cpu="1")
        states[choose(one, cluster)[0]].place(one)
    assert max(len(state.pods) for state in cluster.nodes) <= 2
