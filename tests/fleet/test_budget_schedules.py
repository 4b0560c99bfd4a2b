"""Drawn worlds: roll-outs of several sets within budgets, on two replicas of the hub whose caches lag and that die
between any two requests. Never beyond a budget; all clusters have their works in the end."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.fleet.rollouts import BUDGETS, CLUSTER_API, REPLICA_SETS, WORK_API, Hub, hub_with, template

from syncline.base.clock import VirtualClock, format_time
from syncline.control.cache import Cache
from syncline.control.controller import Controller
from syncline.control.executor import execute, kube_handlers
from syncline.fleet.hub.budgets.controller import budget_controller
from syncline.fleet.hub.budgets.model import Budget, Member
from syncline.fleet.hub.budgets.observe import BUDGETS as BUDGET_KIND
from syncline.fleet.hub.budgets.observe import CLUSTERS
from syncline.fleet.hub.placement.model import GROUP_INDEX_LABEL, GROUP_NAME_LABEL, PLACEMENT_LABEL
from syncline.fleet.hub.replicasets.controller import replica_set_controller
from syncline.fleet.hub.replicasets.observe import DECISIONS, PLACEMENTS, SETS, WORKS
from syncline.fleet.hub.replicasets.works import SET_LABEL
from syncline.fleet.hub.rollout.states import is_settled
from syncline.kube.client import Request, Response
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    dig,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    ref_of,
    uid_of,
)

KINDS = (WORKS, SETS, PLACEMENTS, DECISIONS, BUDGET_KIND, CLUSTERS)
LISTS = {
    WORKS: f"{WORK_API}/v1/manifestworks",
    SETS: REPLICA_SETS,
    PLACEMENTS: f"{CLUSTER_API}/v1beta1/placements",
    DECISIONS: f"{CLUSTER_API}/v1beta1/placementdecisions",
    BUDGET_KIND: BUDGETS,
    CLUSTERS: f"{CLUSTER_API}/v1/managedclusters",
}
FIGURES: Counter[str] = Counter()
SCHEDULES, STEPS = 20, 400
LAG_S = 40
"""A cache is never further behind; places are not given back unseen before they are a minute old."""


@dataclass
class Replica:
    """One process of the hub: its cache, and the reconcile that it is in."""

    world: World
    cache: Cache
    controllers: dict[GroupKind, Controller[Any]]
    run: Generator[Any, Any, Any] | None = None
    key: ObjectRef | None = None
    answer: Any = None
    seen: dict[GroupKind, datetime] = field(default_factory=dict)

    @classmethod
    def new(cls, world: World) -> Replica:
        mapper = world.hub.role.loop.mapper
        made = {SETS: replica_set_controller(), BUDGET_KIND: budget_controller()}
        cache = Cache(mapper)
        for one in made.values():
            for name, values in one.indices.items():
                cache.add_index(name, values)
        return cls(world, cache, made)

    def look(self, kind: GroupKind) -> None:
        """Bring the cache of one kind up to date."""
        found = {ref_of(one): one for one in self.world.listed(kind)}
        for one in self.cache.objects(kind):
            if ref_of(one) not in found:
                self.cache.drop(kind, namespace_of(one), name_of(one))
        for one in found.values():
            self.cache.put(kind, one)
        self.cache.mark_synced(kind)
        self.seen[kind] = self.world.hub.clock.now()

    def begin(self, ref: ObjectRef) -> None:
        controller = self.controllers[ref.group_kind]
        found = self.cache.get(ref)
        if found is not None and is_terminating(found):
            self.look(WORKS)  # a loop waits for its own writes; a set that ends has no second chance
        observed = controller.observe(self.cache, ref)
        if observed is None:
            return
        plan = controller.plan(observed, self.world.hub.clock.now())
        handlers = kube_handlers(self.cache.mapper, self.world.hub.clock, "hub")
        self.key, self.run, self.answer = ref, execute(plan, lambda _cluster: handlers), None
        FIGURES["reconciles"] += 1

    def step(self) -> None:
        """Send the next request of the reconcile."""
        assert self.run is not None
        try:
            request = self.run.send(self.answer)
        except StopIteration as end:
            FIGURES["conflicts"] += sum(getattr(one.error, "code", 0) == 409 for one in end.value)
            self.run = self.key = None
            return
        self.answer = self.world.carry(request)


@dataclass
class World:
    """The hub's API with sets, clusters and budgets as a seed draws them."""

    hub: Hub
    chance: random.Random
    replicas: list[Replica] = field(default_factory=list)
    owner: dict[ObjectRef, int] = field(default_factory=dict)
    """The replica that works on a set; all work on budgets."""

    def listed(self, kind: GroupKind) -> list[Obj]:
        version = self.hub.role.loop.mapper.preferred(kind)
        assert version is not None
        head = {"apiVersion": version.api_version, "kind": kind.kind}
        return [{**head, **one} for one in self.hub.get(LISTS[kind])["items"]]

    def carry(self, request: Request) -> Response:
        answer = self.hub.admin.send(request)
        FIGURES["requests"] += 1
        if answer.ok and request.method in ("POST", "PATCH"):
            self.check(request)
        return answer

    def check(self, request: Request) -> None:
        """Nothing is disturbed without a place, and no budget has more places than it permits."""
        budgets = [Budget.of(one) for one in self.listed(BUDGET_KIND)]
        members = [Member.of(one) for one in self.listed(CLUSTERS)]
        sets = {f"{namespace_of(one)}.{name_of(one)}": uid_of(one) for one in self.listed(SETS)}
        twins = [one for one, times in Counter(map(self.whose, self.listed(WORKS))).items() if times > 1]
        assert not twins, f"{request.describe()}: {twins} exist twice"
        disturbed = {
            (namespace_of(one), sets.get(labels_of(one).get(SET_LABEL, ""), ""))
            for one in self.listed(WORKS)
            if not is_terminating(one) and not is_settled(one)
        }
        for budget in budgets:
            selected = {one.name for one in members if budget.selects(one)}
            places = {(place.cluster, place.holder.uid) for place in budget.places}
            missing = {one for one in disturbed if one[0] in selected and one[1]} - places
            assert not missing, f"{request.describe()}: {missing} are disturbed without a place in {budget.name}"
            held, permitted = {cluster for cluster, _ in places}, budget.permitted(len(budget.counted(members)))
            assert len(held) <= permitted, f"{request.describe()}: {held} have places, {budget.name} has {permitted}"
            FIGURES["most places at once"] = max(FIGURES["most places at once"], len(held))
        FIGURES["checks"] += 1

    @staticmethod
    def whose(work: Obj) -> tuple[str, str]:
        return labels_of(work)[SET_LABEL], namespace_of(work)

    # -- what happens ------------------------------------------------------------------------------------------------

    def happen(self) -> None:
        """Let one drawn thing happen."""
        weights = {
            self.go_on: 60,
            self.look: 16,
            self.report: 10,
            self.wait: 4,
            self.kill: 1,
            self.hand_over: 5,
            self.change_template: 2,
            self.move_cluster: 1,
            self.delete_set: 0.3,
            self.flip: 1,
        }
        what = self.chance.choices(list(weights), list(weights.values()))[0]
        FIGURES[what.__name__] += 1
        what()

    def go_on(self) -> None:
        at = self.chance.randrange(len(self.replicas))
        replica = self.replicas[at]
        if replica.run is not None:
            replica.step()
            return
        sets = [ref for ref, owner in self.owner.items() if owner == at]
        keys = sets * 3 + [ref_of(one) for one in replica.cache.objects(BUDGET_KIND)]
        if keys:
            replica.begin(self.chance.choice(keys))

    def look(self) -> None:
        self.chance.choice(self.replicas).look(self.chance.choice(KINDS))

    def report(self, outcome: str = "") -> None:
        """Let the agent of one cluster say how a work fares."""
        works = [one for one in self.listed(WORKS) if not is_terminating(one) and not is_settled(one)]
        if works:
            self.say(
                self.chance.choice(works), outcome or self.chance.choice("srf" if self.chance.random() < 0.3 else "ss")
            )

    def say(self, work: Obj, outcome: str) -> None:
        said = {"Applied": "True", "Available": "True", "Progressing": "False" if outcome == "s" else "True"}
        said |= {"Degraded": "True" if outcome == "f" else "False"}
        now = format_time(self.hub.clock.now())
        common = {"reason": "R", "message": "", "lastTransitionTime": now}
        about = {"observedGeneration": dig(work, "metadata", "generation")}
        conditions = [{"type": kind, "status": status, **common, **about} for kind, status in said.items()]
        path = f"{WORK_API}/v1/namespaces/{namespace_of(work)}/manifestworks/{name_of(work)}/status"
        self.hub.send("PATCH", path, {"status": {"conditions": conditions}})

    def wait(self) -> None:
        self.pass_time(self.chance.randrange(1, 15))

    def pass_time(self, seconds: int) -> None:
        clock: VirtualClock = self.hub.clock
        clock.advance(seconds)
        for replica in self.replicas:
            for kind, when in list(replica.seen.items()):
                if (clock.now() - when).total_seconds() > LAG_S:
                    replica.look(kind)

    def kill(self) -> None:
        at = self.chance.randrange(len(self.replicas))
        self.replicas[at] = Replica.new(self)

    def hand_over(self) -> None:
        ref = self.chance.choice(list(self.owner))
        if self.replicas[self.owner[ref]].key != ref:
            self.owner[ref] = self.chance.randrange(len(self.replicas))

    def change_template(self) -> None:
        ref = self.chance.choice(list(self.owner))
        spec = {"manifestWorkTemplate": template(str(self.chance.randrange(1000)))}
        path, merge = f"{REPLICA_SETS}/{ref.name}", {"content-type": "application/merge-patch+json"}
        self.hub.admin.send(Request("PATCH", path, headers=merge, body={"spec": spec}))

    def move_cluster(self) -> None:
        """Let a cluster leave the Placement, or come back."""
        clusters = set(self.selected())
        clusters ^= {self.chance.choice(self.hub.clusters)}
        self.select(clusters or {self.hub.clusters[0]})

    def delete_set(self) -> None:
        if len(self.owner) > 1:
            ref = self.chance.choice(list(self.owner))
            self.hub.admin.send(Request("DELETE", f"{REPLICA_SETS}/{ref.name}"))

    def flip(self) -> None:
        self.hub.available(self.chance.choice(self.hub.clusters), self.chance.choice(["True", "True", "Unknown"]))

    def selected(self) -> list[str]:
        (one,) = self.listed(DECISIONS)
        return [each["clusterName"] for each in dig(one, "status", "decisions") or ()]

    def select(self, clusters: Iterable[str]) -> None:
        decided = [{"clusterName": name, "reason": ""} for name in sorted(clusters)]
        base = f"{CLUSTER_API}/v1beta1/namespaces/default"
        self.hub.send("PATCH", f"{base}/placementdecisions/pl-decision-1/status", {"status": {"decisions": decided}})
        count = {"numberOfSelectedClusters": len(decided), "decisionGroups": [], "conditions": []}
        self.hub.send("PATCH", f"{base}/placements/pl/status", {"status": count})

    def can_end(self) -> bool:
        """Return whether every budget permits a cluster: a percentage of few may be none."""
        members = [Member.of(one) for one in self.listed(CLUSTERS)]
        budgets = [Budget.of(one) for one in self.listed(BUDGET_KIND)]
        return all(one.permitted(len(one.counted(members))) for one in budgets)

    # -- the end -----------------------------------------------------------------------------------------------------

    def calm(self) -> None:
        """Let nothing go wrong any more until nothing is left to do."""
        for cluster in self.hub.clusters:
            self.hub.available(cluster)
        for _ in range(200):
            for replica in self.replicas:
                while replica.run is not None:
                    replica.step()
                for kind in KINDS:
                    replica.look(kind)
            for ref, at in self.owner.items():
                self.whole(self.replicas[at], ref)
            for one in self.listed(BUDGET_KIND):
                self.whole(self.replicas[0], ref_of(one))
            for work in self.listed(WORKS):
                if not is_settled(work):
                    self.say(work, "s")
            self.pass_time(20)
            if self.is_done():
                return
        raise AssertionError(f"not done: {self.state()}")

    def whole(self, replica: Replica, ref: ObjectRef) -> None:
        """Run a reconcile as a loop would: with what was just written in the cache."""
        for kind in KINDS:
            replica.look(kind)
        replica.begin(ref)
        while replica.run is not None:
            replica.step()

    def is_done(self) -> bool:
        works = self.listed(WORKS)
        have: dict[str, set[str]] = {}
        for one in works:
            have.setdefault(labels_of(one)[SET_LABEL], set()).add(namespace_of(one))
        wanted = set(self.selected())
        places = [place for one in self.listed(BUDGET_KIND) for place in Budget.of(one).places]
        sets = {f"default.{name_of(one)}" for one in self.listed(SETS)}
        return have == dict.fromkeys(sets, wanted) and not places and all(map(is_settled, works))

    def state(self) -> object:
        works = [(namespace_of(one), name_of(one), is_settled(one)) for one in self.listed(WORKS)]
        places = [[str(place) for place in Budget.of(one).places] for one in self.listed(BUDGET_KIND)]
        return works, self.selected(), places


def drawn(seed: int) -> World:
    chance = random.Random(seed)
    names = [f"c{number}" for number in range(chance.randrange(3, 9))]
    hub = hub_with(clusters=names)
    base = f"{CLUSTER_API}/v1beta1/namespaces/default"
    labels = {PLACEMENT_LABEL: "pl", GROUP_INDEX_LABEL: "0", GROUP_NAME_LABEL: ""}
    version = {"apiVersion": "cluster.open-cluster-management.io/v1beta1"}
    metadata = {"name": "pl-decision-1", "labels": labels}
    hub.send("POST", f"{base}/placementdecisions", {**version, "kind": "PlacementDecision", "metadata": metadata})
    hub.placement()
    world = World(hub, chance)
    world.select(names)
    for name in names:
        if chance.random() < 0.5:
            hub.send("PATCH", f"{CLUSTER_API}/v1/managedclusters/{name}", {"metadata": {"labels": {"edge": "yes"}}})
    edge = {"matchLabels": {"edge": "yes"}}
    for name, selector in (("a", {}), ("b", edge))[: chance.randrange(1, 3)]:
        hub.budget(name, most=chance.choice([1, 1, 2, 3, "50%", "34%", "100%"]), selector=selector)
    for number in range(chance.randrange(1, 4)):
        kind = chance.choice(["All", "Progressive", "ProgressivePerGroup"])
        given: dict[str, Any] = {"type": kind}
        if kind != "All":
            given |= {"maxFailures": chance.choice([0, 1, "100%"]), "progressDeadline": chance.choice(["None", "30s"])}
        if kind == "Progressive":
            given |= {"maxConcurrency": chance.randrange(0, 4)}
        hub.roll_out(f"set{number}", content=template(rules=True), **given)
        world.owner[ObjectRef(*SETS, "default", f"set{number}")] = chance.randrange(2)
    world.replicas = [Replica.new(world), Replica.new(world)]
    return world


def test_no_schedule_goes_beyond_a_budget_and_all_end(figure: Callable[[str, str], None]) -> None:
    for seed in range(SCHEDULES):
        world = drawn(seed)
        try:
            for _ in range(STEPS):
                world.happen()
            if world.can_end():
                world.calm()
                FIGURES["ended"] += 1
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    text = ", ".join(f"{FIGURES[what]} {what}" for what in ("requests", "conflicts", "kill", "hand_over", "ended"))
    figure("budgets", f"disruption budgets: {SCHEDULES} schedules never beyond one; {text}")
