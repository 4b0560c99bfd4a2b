"""Who looks again when nodes fail: those whose pods' fate it decides, and nobody else."""

from __future__ import annotations

from datetime import UTC, datetime

from syncline.cluster.builtin.node_lifecycle.controller import node_lifecycle_controller
from syncline.cluster.builtin.node_lifecycle.observe import NODE
from syncline.cluster.builtin.node_lifecycle.taints import Disruption, Failing, disruption_of
from syncline.control.cache import Cache
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ObjectRef

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Nodes:
    def __init__(self, **zones: int) -> None:
        self.controller = node_lifecycle_controller(lambda _: NOW)
        self.cache = Cache(Mapper(), self.controller.indices)
        self.zones = {f"{zone}{at}": zone for zone, count in zones.items() for at in range(count)}
        for name in self.zones:
            self.cache.put(NODE, self._node(name, "True"))

    def _node(self, name: str, ready: str) -> Obj:
        metadata = {"name": name, "labels": {"topology.kubernetes.io/zone": self.zones[name]}}
        conditions = [{"type": "Ready", "status": ready}]
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"conditions": conditions}}

    def turn(self, ready: str, *names: str) -> set[str]:
        """All at once, as a watch tells them; who has to look for the sake of others."""
        changes = [(self.cache.put(NODE, self._node(name, ready)), name) for name in names]
        watch = next(each for each in self.controller.watches if each.kind == NODE)
        woken: set[str] = set()
        for old, name in changes:
            for obj in (old, self.cache.get(ObjectRef("", "Node", "", name))):
                assert obj is not None
                woken |= {ref.name for ref in watch.keys(obj, self.cache)}
        return woken

    def disruption(self, name: str) -> Disruption:
        observed = self.controller.observe(self.cache, ObjectRef("", "Node", "", name))
        assert observed is not None
        return observed.disruption


def test_nodes_that_fail_one_by_one_in_large_zones_wake_nobody_else() -> None:
    nodes = Nodes(a=60, b=60)
    nodes.turn("False", "a0")
    nodes.turn("False", "b0")  # the first of a zone asks everybody: nothing is known of it
    for at in range(1, 50):
        assert nodes.turn("False", f"a{at}") == set()
    assert nodes.disruption("a3") is Disruption.NONE, "a zone of more than 50 nodes is never partly disrupted"


def test_a_zone_that_begins_and_ceases_to_fail_as_a_whole_wakes_its_failing_nodes() -> None:
    nodes = Nodes(a=5, b=5)
    nodes.turn("False", "b0")
    assert nodes.turn("False", "a0", "a1", "a2") >= {"a0", "a1", "a2"}
    assert nodes.disruption("a0") is Disruption.PARTIAL and nodes.disruption("b0") is Disruption.NONE
    assert nodes.turn("False", "a3") == set(), "it is as it was"
    assert nodes.turn("True", "a2", "a3") >= {"a0", "a1"}
    assert nodes.disruption("a0") is Disruption.NONE


def test_when_the_last_node_anywhere_fails_and_when_one_comes_back_all_zones_look() -> None:
    nodes = Nodes(a=2, b=2)
    assert nodes.turn("False", "a0", "a1", "b0", "b1") == {"a0", "a1", "b0", "b1"}
    assert nodes.disruption("a0") is Disruption.TOTAL
    assert nodes.turn("True", "b1") == {"a0", "a1", "b0"}
    assert nodes.turn("False", "b1") == {"a0", "a1", "b0", "b1"}


def test_a_zone_fails_partly_with_more_than_two_nodes_and_more_than_half_of_fifty_at_most() -> None:
    """Kubernetes ``ComputeZoneState``, with the controller's defaults."""
    for nodes, failing, wanted in ((4, 2, "NONE"), (5, 3, "PARTIAL"), (6, 3, "NONE"), (50, 50, "PARTIAL")):
        assert disruption_of(Failing(nodes, failing, 9)) is Disruption[wanted]
    assert disruption_of(Failing(51, 51, 9)) is Disruption.NONE
    assert disruption_of(Failing(3, 3, 0)) is Disruption.TOTAL
