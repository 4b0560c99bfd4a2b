"""Properties of the pool planner: never more down than allowed, idempotent, blind to order, inputs left alone."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from syncline.kube.objects import Obj, annotations_of, name_of
from syncline.kube.patching.patches import json_merge_patch
from syncline.machineconfig.names import CURRENT, DESIRED, STATE
from syncline.machineconfig.pools.candidates import ZONE, NodeWrite, max_unavailable, unavailable
from syncline.machineconfig.pools.membership import members
from syncline.machineconfig.pools.nodestate import ObservedNode
from syncline.machineconfig.pools.rollout import PoolState, World, pool_state

AT = datetime(2026, 9, 1, tzinfo=UTC)
ROLE = "node-role.kubernetes.io/worker"
OLD, NEW, OTHER = "rendered-worker-a", "rendered-worker-b", "rendered-worker-c"
CONFIG: Obj = {"spec": {"infra": {"status": {"controlPlaneTopology": "HighlyAvailable"}}}}

states = st.tuples(
    st.sampled_from([OLD, NEW, OTHER]),
    st.sampled_from([OLD, NEW, OTHER]),
    st.sampled_from(["Done", "Working", "Degraded", "Unreconcilable"]),
    st.booleans(),
    st.sampled_from(["True", "False"]),
    st.sampled_from(["a", "b", None]),
)
limits = st.one_of(st.integers(-1, 6), st.sampled_from(["0%", "30%", "50%", "100%", "junk"]), st.none())


def nodes_of(drawn: Sequence[tuple[str, str, str, bool, str, str | None]]) -> list[Obj]:
    found: list[Obj] = []
    for index, (current, desired, state, cordoned, ready, zone) in enumerate(drawn):
        labels = {ROLE: ""} | ({"topology.kubernetes.io/zone": zone} if zone else {})
        notes = {CURRENT: current, DESIRED: desired, STATE: state}
        metadata = {"name": f"n-{index}", "labels": labels, "annotations": notes}
        metadata["creationTimestamp"] = f"2026-02-01T00:00:{index:02}Z"  # type: ignore[assignment]
        found.append(
            {
                "metadata": metadata,
                "spec": {"unschedulable": True} if cordoned else {},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            }
        )
    return found


def pool_of(limit: object) -> Obj:
    spec: Obj = {"nodeSelector": {"matchLabels": {ROLE: ""}}, "configuration": {"name": NEW}}
    return {"metadata": {"name": "worker"}, "spec": spec | ({} if limit is None else {"maxUnavailable": limit})}


def look(nodes: list[Obj], limit: object) -> PoolState:
    return pool_state(World([pool_of(limit)], nodes, controller_config=CONFIG), "worker", AT)


def written(nodes: list[Obj], writes: Sequence[NodeWrite]) -> list[Obj]:
    found = {name_of(node): node for node in nodes}
    for write in writes:
        patch: Obj = {"metadata": {"annotations": dict(write.annotations), "labels": dict(write.labels)}}
        if write.taints is not None:
            patch["spec"] = {"taints": list(write.taints)}
        found[write.node] = json_merge_patch(found[write.node], patch)
    return list(found.values())


def targeted(observed: PoolState) -> set[str]:
    return {write.node for write in observed.writes if write.annotations.get(DESIRED) == NEW}


@given(st.lists(states, max_size=8), limits)
def test_never_more_nodes_are_down_by_our_hand_than_the_limit(drawn: list[tuple], limit: object) -> None:  # type: ignore[type-arg]
    nodes = nodes_of(drawn)
    observed = look(nodes, limit)
    if limit == "junk":
        assert observed.error and not targeted(observed)
        return
    allowed = max_unavailable(pool_of(limit), len(nodes))
    before = unavailable(nodes)
    after = unavailable(written(nodes, observed.writes))
    assert len(after) <= max(allowed, len(before))
    cordoned = {name_of(node) for node in nodes if node["spec"].get("unschedulable")}
    assert not targeted(observed) & cordoned, "a node that a person keeps is not targeted"


@given(st.lists(states, max_size=8), limits)
def test_what_was_written_is_not_written_again(drawn: list[tuple], limit: object) -> None:  # type: ignore[type-arg]
    nodes = nodes_of(drawn)
    once = written(nodes, look(nodes, limit).writes)
    twice = written(once, look(once, limit).writes)
    assert not look(twice, limit).writes
    assert len(unavailable(twice)) <= max(len(unavailable(once)), len(unavailable(nodes)))


@given(st.lists(states, max_size=7), limits, st.randoms(use_true_random=False))
def test_the_order_of_nodes_makes_no_difference(drawn: list[tuple], limit: object, chance: object) -> None:  # type: ignore[type-arg]
    nodes = nodes_of(drawn)
    usual = look(nodes, limit)
    mixed = list(nodes)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    other = look(mixed, limit)
    assert targeted(other) == targeted(usual)
    assert {k: v for k, v in other.statuses.get("worker", {}).items() if k != "conditions"} == {
        k: v for k, v in usual.statuses.get("worker", {}).items() if k != "conditions"
    }


@given(st.lists(states, max_size=6), limits)
def test_nobody_s_objects_are_changed(drawn: list[tuple], limit: object) -> None:  # type: ignore[type-arg]
    nodes = nodes_of(drawn)
    before = copy.deepcopy(nodes)
    look(nodes, limit)
    assert nodes == before
    assert all(annotations_of(node)[CURRENT] for node in nodes)


@given(st.lists(states, max_size=8), limits)
def test_nodes_that_were_read_once_are_judged_as_others_also_after_pools_changed(
    drawn: list[tuple],  # type: ignore[type-arg]
    limit: object,
) -> None:
    nodes = nodes_of(drawn)
    observed = [ObservedNode(node) for node in nodes]
    assert observed == nodes
    assert look(list(observed), limit) == look(nodes, limit)
    special = {"metadata": {"name": "special"}, "spec": {"nodeSelector": {"matchLabels": {ZONE: "a"}}}}
    for pools in ([pool_of(limit)], [pool_of(limit), special], [special], [pool_of(limit)]):
        for pool in pools:
            assert members(pool, observed, pools) == members(pool, nodes, pools)


def test_033_percentages_are_rounded_down_and_never_below_one() -> None:
    assert max_unavailable(pool_of("20%"), 7) == 1
    assert max_unavailable(pool_of("25%"), 10) == 2
    assert max_unavailable(pool_of("1%"), 5) == 1


def test_039_zones_in_order_oldest_first_then_nodes_without_a_zone() -> None:
    drawn = [(OLD, OLD, "Done", False, "True", zone) for zone in (None, "b", "a", "a", "b", None)]
    nodes, order = nodes_of(drawn), []
    while True:
        chosen = sorted(targeted(look(nodes, 1)))
        if not chosen:
            break
        order += chosen
        done = {"metadata": {"annotations": {CURRENT: NEW, DESIRED: NEW, STATE: "Done"}}}
        nodes = [json_merge_patch(node, done) if name_of(node) in chosen else node for node in nodes]
    assert order == ["n-2", "n-3", "n-1", "n-4", "n-0", "n-5"]
