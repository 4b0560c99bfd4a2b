"""``syncline explain`` of pools, nodes and machine configs: down to the pod that finds no node, and what would help."""

from __future__ import annotations

import pytest
from tests.machineconfig.room import APIS, NODES, POOLS, PoolWorld
from tests.machineconfig.test_drains import BUDGETS, INSIST, SPACE, okd
from tests.machineconfig.test_pools import world

from syncline.assembly.inspection.snapshot import application_indices, snapshot_of_cluster
from syncline.cli.views.cause import describe_cause
from syncline.control.executor import run_in_place
from syncline.explain.graph import cause_to_obj, explain_object
from syncline.explain.view import Found, View
from syncline.kube.objects import ObjectRef
from syncline.machineconfig.names import GROUP

B = "rendered-worker-b"
NODE = ("", "Node", "")
POOL = (GROUP, "MachineConfigPool", "")


def found(one: PoolWorld, kind: tuple[str, str, str], name: str) -> Found:
    look = run_in_place(snapshot_of_cluster(application_indices(one.settings)), one.admin)
    obj = look.cache.get(ObjectRef(*kind, name))
    assert obj is not None
    return explain_object(View(look.cache, one.clock.now()), obj)


def lines(one: PoolWorld, kind: tuple[str, str, str], name: str) -> list[str]:
    return describe_cause(found(one, kind, name).cause, one.clock.now()).splitlines()


def test_the_chain_of_a_degraded_pool_goes_down_to_the_pod_that_finds_no_node() -> None:
    one = okd()
    one.merge(f"{POOLS}/worker", {"metadata": {"annotations": {INSIST: "insist"}}})
    one.target(B)
    one.driver.advance(4200)
    told = lines(one, POOL, "worker")
    assert told[0].startswith("MachineConfigPool worker Degraded for "), told
    assert "0 of 1 nodes are at rendered-worker-b" in told[0]
    assert told[1] == (
        "  Node okd-worker-01 draining for 69m: 1 pod has to leave it; failed to drain node: okd-worker-01 after 1 hour"
    )
    assert told[2].startswith(f"    Pod {SPACE}/router-default-") and told[2].endswith(
        "eviction refused: by budget router-default (allows 0: 1 of 2 healthy, 1 needed)"
    )
    assert told[3].startswith(f"      Pod {SPACE}/router-default-")
    assert told[3].endswith(
        "Pending: 0/4 nodes are available: 1 node(s) were unschedulable (okd-worker-01, being drained), "
        "3 node(s) had untolerated taint(s) (master-0, master-1, master-2)"
    )
    assert told[4].startswith("next: add a worker node like okd-worker-01: syncline node add NAME --label"), told
    assert told[5].startswith("  or: make the masters schedulable") and told[6].startswith("  or: relax budget")
    assert len(told) == 7
    assert found(one, POOL, "worker").blocked
    assert lines(one, NODE, "okd-worker-01")[0].startswith("Node okd-worker-01 draining for")
    evidence = cause_to_obj(found(one, NODE, "okd-worker-01").cause)["evidence"]
    assert [each["value"] for each in evidence if each["name"] == "would help"]


def test_a_drain_that_is_not_begun_says_why_and_what_would_help() -> None:
    one = okd()
    one.target(B)
    one.driver.advance(300)
    told = lines(one, NODE, "okd-worker-01")
    assert told[0].startswith("Node okd-worker-01 drain not begun for")
    assert "eviction refused: by budget router-default" in told[1]
    assert f"replacement of {SPACE}/router-default-" in told[2] and "would be Pending" in told[2]
    assert told[3].startswith("next: add a worker node")


def test_a_drain_that_waits_for_a_hold_names_it() -> None:
    one = okd()
    one.target(B)
    one.driver.advance(300)
    one.hold("mine")
    one.driver.advance(30)
    told = lines(one, NODE, "okd-worker-01")[0]
    assert told.startswith("Node okd-worker-01 drain not begun for ")
    assert ": pool worker is held by Hold mine of ann until " in told


@pytest.mark.parametrize(
    ("budget", "step"),
    [
        ({"maxUnavailable": 0}, "relax budget openshift-ingress/router-default (maxUnavailable 1)"),
        ({"minAvailable": "100%"}, "relax budget openshift-ingress/router-default (minAvailable 1)"),
    ],
)
def test_only_what_works_is_proposed(budget: dict[str, object], step: str) -> None:
    """A further node does not help where the budget allows nothing at all."""
    one = okd(budget=budget)
    one.add_node("okd-worker-02", "worker")
    one.driver.advance(60)
    one.target(B)
    one.driver.advance(120)
    said = one.condition("DrainBlocked")["message"]
    assert step in said and "add a worker" not in said and "make the masters" not in said


def test_one_more_replica_is_proposed_where_it_helps() -> None:
    one = okd(replicas=1)
    one.add_node("okd-worker-02", "worker")
    one.driver.advance(60)
    one.target(B)
    one.driver.advance(120)
    said = one.condition("DrainBlocked")["message"]
    command = f"kubectl -n {SPACE} scale deployment router-default --replicas=2"
    assert f"run one more replica of Deployment {SPACE}/router-default: {command}" in said
    assert one.get(f"{BUDGETS}/router-default")["status"]["disruptionsAllowed"] == 0


def test_a_pool_without_a_free_place_names_who_takes_it() -> None:
    one = world()
    one.merge(f"{NODES}/worker-1", {"spec": {"unschedulable": True}})
    one.target(B)
    one.driver.advance(60)
    told = lines(one, POOL, "worker")
    assert told[0].startswith("MachineConfigPool worker Updating")
    assert any("maxUnavailable 1 is used up by worker-1: node worker-1 is reporting Unschedulable" in t for t in told)
    assert told[-1] == "next: kubectl uncordon worker-1"


def test_a_pool_under_way_is_not_blocked_and_one_at_rest_says_so() -> None:
    one = world()
    assert lines(one, POOL, "worker")[0].startswith("MachineConfigPool worker Updated")
    one.target(B)
    one.driver.advance(20)
    assert not found(one, POOL, "worker").blocked
    assert lines(one, POOL, "worker")[0].startswith("MachineConfigPool worker Updating")


def test_a_paused_pool_names_who_paused_it() -> None:
    one = world()
    one.merge(f"{POOLS}/worker", {"spec": {"paused": True}})
    one.target(B)
    one.driver.advance(20)
    told = lines(one, POOL, "worker")
    assert "Paused" in told[0] and "spec.paused is set" in told[0]
    assert told[-1] == "next: syncline pool resume worker --spec"


def test_a_limit_that_is_none_stalls_the_pool() -> None:
    one = world(maxUnavailable="3x")
    assert "Stalled" in lines(one, POOL, "worker")[0]


def test_a_broken_node_says_its_reason() -> None:
    one = world()
    for name in ("worker-0", "worker-1", "worker-2"):
        one.merge(f"{NODES}/{name}", {"metadata": {"annotations": {"test/broken": B}}})
    one.target(B)
    one.driver.advance(60)
    told = lines(one, POOL, "worker")
    assert told[0].startswith("MachineConfigPool worker Degraded")
    assert any("Degraded: the config is broken" in each for each in told)


def test_a_machine_config_that_no_pool_selects_says_how_to_label_it() -> None:
    one = world()
    one.make(f"{APIS}/machineconfigs", "MachineConfig", "99-lost", {})
    told = lines(one, (GROUP, "MachineConfig", ""), "99-lost")
    assert told[0].endswith("Unused for 0s: no pool selects it")
    assert told[-1].startswith("next: label it: kubectl label machineconfig 99-lost")


def test_a_machine_config_on_its_way_leads_to_its_pool() -> None:
    one = okd()
    labels = {"machineconfiguration.openshift.io/role": "worker"}
    one.make(f"{APIS}/machineconfigs", "MachineConfig", "99-x", {}, labels=labels)
    source = [{"name": "99-x"}]
    one.merge(f"{POOLS}/worker", {"spec": {"configuration": {"name": B, "source": source}}})
    one.driver.advance(300)
    told = lines(one, (GROUP, "MachineConfig", ""), "99-x")
    assert "on its way" in told[0] and any("drain not begun" in each for each in told)
    assert told[-3].startswith("next: add a worker node")


def test_nodes_without_an_agent_are_said_to_be_silent() -> None:
    one = PoolWorld({})
    one.pool()
    one.add_node("worker-0", "worker", born="")
    one.driver.advance(60)
    told = lines(one, POOL, "worker")
    assert any("no agent has reported from worker-0 yet" in each for each in told), told
    assert told[-1] == "next: is a node agent running on worker-0?"
