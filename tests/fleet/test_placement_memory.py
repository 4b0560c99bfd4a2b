"""What the placement controller remembers between reconciles changes its cost, never its result."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest

from syncline.fleet.hub.placement.memory import Memory
from syncline.fleet.hub.placement.model import Cluster, Hub
from syncline.fleet.hub.placement.scheduling import schedule
from syncline.fleet.hub.sets import CLUSTER_SET_LABEL
from syncline.kube.objects import Obj

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCORED = 'managedCluster.scores("res").exists(s, s.value > 10)'


def selector(**labels: str) -> Obj:
    return {"labelSelector": {"matchLabels": labels}}


PLACEMENTS = [
    {},
    {"clusterSets": ["a"]},
    {"clusterSets": ["a", "wide"], "predicates": [{"requiredClusterSelector": selector(env="x")}]},
    {"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions": [SCORED]}}}]},
]


def cluster(chance: random.Random, name: str) -> Obj:
    labels = {CLUSTER_SET_LABEL: chance.choice("ab"), "env": chance.choice("xy"), "tier": chance.choice("12")}
    metadata = {"name": name, "labels": labels}
    if chance.random() < 0.1:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {"metadata": metadata}


def cluster_set(name: str, selector: Obj | None = None) -> Obj:
    kind = {"selectorType": "LabelSelector", "labelSelector": selector} if selector is not None else {}
    return {"metadata": {"name": name}, "spec": {"clusterSelector": kind}}


def score(chance: random.Random) -> Obj:
    return {"status": {"scores": [{"name": "n", "value": chance.choice([0, 50])}]}}


@pytest.mark.parametrize("seed", range(8))
def test_a_placement_is_scheduled_as_if_nothing_were_remembered(seed: int) -> None:
    chance = random.Random(seed)
    memory = Memory()
    objects = {f"c{number}": cluster(chance, f"c{number}") for number in range(12)}
    sets = {"a": cluster_set("a"), "b": cluster_set("b"), "wide": cluster_set("wide", {"matchLabels": {"tier": "1"}})}
    scores = {(name, "res"): score(chance) for name in objects}
    views = {name: Cluster.of(one) for name, one in objects.items()}
    for _ in range(25):
        name = f"c{chance.randrange(15)}"
        match chance.choice(["come", "come", "go", "set", "score"]):
            case "come":
                views = dict(sorted({**views, name: Cluster.of(cluster(chance, name))}.items()))
            case "go":
                views = {key: one for key, one in views.items() if key != name}
            case "set":
                sets = {**sets, "wide": cluster_set("wide", {"matchLabels": {"tier": chance.choice("12")}})}
            case "score":
                scores = {**scores, (name, "res"): score(chance)}
        bindings = tuple({"metadata": {"name": one}} for one in sets)
        hub = Hub(views, sets, bindings, scores=scores)
        for number, spec in enumerate(PLACEMENTS):
            placement = {"kind": "Placement", "metadata": {"name": f"p{number}", "namespace": "ns"}, "spec": spec}
            with_memory, without = schedule(placement, hub, NOW, memory), schedule(placement, hub, NOW)
            assert with_memory == without
