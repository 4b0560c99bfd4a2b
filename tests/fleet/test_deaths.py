"""Processes of a fleet die after any of their writes, hubs go away and come back, clusters are cut off: never beyond a
budget, nothing deleted by absence, and the end is the same.

``SYNCLINE_CRASH_POINTS`` says at how many writes of each process a life ends; a large number: after each.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.fleet.rollouts import BUDGETS, CLUSTERS, PLACEMENTS, REPLICA_SETS, WORK_API
from tests.fleet.world import Fleet

from syncline.fleet.hub.replicasets.works import SET_LABEL
from syncline.kube.client import Request, Response, Transport
from syncline.kube.objects import Obj, dig, labels_of, name_of, namespace_of
from syncline.rehearsal.seams import Killed

POINTS = int(os.environ.get("SYNCLINE_CRASH_POINTS", "1"))
NAMES = ("c1", "c2")
MAP = "/api/v1/namespaces/default/configmaps/x"
INVENTORY = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks"
SPARED = ("/leases", "/events", "selfsubject")
STEP_S = 5.0
PROCESSES = ("the hub", "an agent, at the hub", "an agent, at its cluster")
Figure = Callable[[str, str], None]


@dataclass(slots=True)
class Writes:
    """Counts the writes of a process, and ends it right after the one numbered ``last``."""

    last: int = 0
    count: int = 0
    log: list[str] = field(default_factory=list)

    def wrap(self, inner: Transport) -> Transport:
        return _Dying(inner, self)


@dataclass(slots=True)
class _Dying:
    inner: Transport
    writes: Writes

    def send(self, request: Request) -> Response:
        answer = self.inner.send(request)
        if request.method != "GET" and not any(part in request.path for part in SPARED):
            self.writes.count += 1
            self.writes.log.append(request.describe())
            if self.writes.count == self.writes.last:
                raise Killed(f"after {request.describe()}")
        return answer


def _same(inner: Transport) -> Transport:
    return inner


class Run:
    """A fleet of two clusters, one set whose roll-outs take a while, and a budget of one cluster."""

    def __init__(self, dying: str = "", last: int = 0) -> None:
        self.dying = dying
        self.writes = {process: Writes(last if process == dying else 0) for process in PROCESSES}
        self.within = 1
        """Clusters that may be disturbed at once."""
        self.keeps = True
        """Whether nothing may be deleted on a cluster now."""
        self.fleet = Fleet()
        self.fleet.start_hub(self.writes[PROCESSES[0]].wrap)
        for name in NAMES:
            self.try_to(lambda name=name: self.fleet.add(name))  # type: ignore[misc]
            self.try_to(self.fleet.time.settle)  # an agent that begins has the rights of its cluster
            self._start(name)
        self.go(30)
        for path, body in _objects():
            self.try_to(lambda path=path, body=body: self.fleet.hub.send("POST", path, body))  # type: ignore[misc]
        self.go(30)

    def _start(self, name: str) -> None:
        hub, own = (self.writes[process].wrap if name == "c1" else _same for process in PROCESSES[1:])
        self.fleet.start_agent(name, wrap_hub=hub, wrap_own=lambda inner: _Watched(own(inner), self, name))

    # -- time --------------------------------------------------------------------------------------------------------

    def go(self, seconds: float) -> None:
        """Let time pass. What was rolled out is ready a step later; who dies begins again with an empty memory."""
        for _ in range(int(seconds / STEP_S)):
            self.try_to(lambda: self.fleet.time.advance(STEP_S))
            for name, v, ready in self.maps():
                if v != ready:
                    self.try_to(lambda name=name, v=v: self._set_ready(name, v))  # type: ignore[misc]

    def try_to(self, act: Callable[[], Any]) -> None:
        try:
            act()
        except Killed:
            if self.dying == PROCESSES[0]:
                self.fleet.start_hub(self.writes[PROCESSES[0]].wrap)
            else:
                self._start("c1")

    def _set_ready(self, name: str, v: str) -> None:
        self.fleet.members[name].send("PATCH", MAP, {"data": {"ready": v}})

    # -- what is seen ------------------------------------------------------------------------------------------------

    def maps(self) -> list[tuple[str, str, str]]:
        """The version of what was rolled out on each cluster, and the one that is ready there."""
        found = []
        for name in NAMES:
            answer = self.fleet.members[name].admin.send(Request("GET", MAP))
            if answer.ok:
                data = answer.obj["data"]
                found.append((name, str(data["v"]), str(data.get("ready", ""))))
        return found

    def check(self) -> None:
        """No more clusters are disturbed than the budget permits."""
        disturbed = [name for name, v, ready in self.maps() if v != ready]
        assert len(disturbed) <= self.within, f"{disturbed} are disturbed at once"

    def facts(self) -> Any:
        """What must not depend on deaths."""
        hub = self.fleet.hub
        works = sorted(
            (namespace_of(one), labels_of(one).get(SET_LABEL), _conditions(one))
            for one in hub.get(f"{WORK_API}/v1/manifestworks")["items"]
        )
        clusters = [(name_of(one), _conditions(one)) for one in hub.get(CLUSTERS)["items"]]
        sets = [(dig(one, "status", "summary"), _conditions(one)) for one in hub.get(REPLICA_SETS)["items"]]
        places = [dig(one, "status", "places") or [] for one in hub.get(BUDGETS)["items"]]
        inventory = [(name, len(self.fleet.members[name].get(INVENTORY)["items"])) for name in NAMES]
        return works, clusters, sets, places, inventory, self.maps()


@dataclass(slots=True)
class _Watched:
    """The way of an agent to its cluster: the laws are checked at each of its writes."""

    inner: Transport
    run: Run
    name: str

    def send(self, request: Request) -> Response:
        if request.method == "DELETE":
            assert not self.run.keeps, f"{request.describe()} on {self.name}, where nothing is to be deleted"
        answer = self.inner.send(request)
        if request.method != "GET" and "configmaps" in request.path:
            self.run.check()
        return answer


def _conditions(obj: Obj) -> list[tuple[str, str, str]]:
    listed = dig(obj, "status", "conditions") or ()
    return sorted((one["type"], one["status"], one["reason"]) for one in listed)


# -- the story ---------------------------------------------------------------------------------------------------------

HEAD = {"cluster": "cluster.open-cluster-management.io", "work": "work.open-cluster-management.io"}
READY = "!has(object.data.ready) || object.data.ready != object.data.v"


def _template(v: str) -> Obj:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}
    rules = [{"type": "CEL", "condition": "Progressing", "celExpressions": [READY]}]
    config = {
        "resourceIdentifier": {"group": "", "resource": "configmaps", "name": "x", "namespace": "default"},
        "updateStrategy": {"type": "ServerSideApply"},
        "conditionRules": rules,
    }
    return {"workload": {"manifests": [{**manifest, "data": {"v": v}}]}, "manifestConfigs": [config]}


def _objects() -> list[tuple[str, Obj]]:
    spaced = {"name": "pl", "namespace": "default"}
    binding = {"apiVersion": f"{HEAD['cluster']}/v1beta2", "kind": "ManagedClusterSetBinding"}
    placement = {"apiVersion": f"{HEAD['cluster']}/v1beta1", "kind": "Placement", "metadata": spaced}
    tolerations = [{"key": f"{HEAD['cluster']}/{one}", "operator": "Exists"} for one in ("unreachable", "unavailable")]
    budget = {"apiVersion": "syncline.dev/v1alpha1", "kind": "FleetDisruptionBudget", "metadata": {"name": "b"}}
    strategy = {"type": "Progressive", "progressive": {"maxConcurrency": 3}}
    made = {"apiVersion": f"{HEAD['work']}/v1alpha1", "kind": "ManifestWorkReplicaSet"}
    spec = {"manifestWorkTemplate": _template("1"), "placementRefs": [{"name": "pl", "rolloutStrategy": strategy}]}
    bindings = f"/apis/{HEAD['cluster']}/v1beta2/namespaces/default/managedclustersetbindings"
    return [
        (bindings, {**binding, "metadata": {**spaced, "name": "global"}, "spec": {"clusterSet": "global"}}),
        (BUDGETS, {**budget, "spec": {"clusterSelector": {}, "maxUnavailable": 1}}),
        (PLACEMENTS, {**placement, "spec": {"tolerations": tolerations}}),
        (REPLICA_SETS, {**made, "metadata": {"name": "web", "namespace": "default"}, "spec": spec}),
    ]


def change(run: Run, v: str) -> None:
    spec = {"manifestWorkTemplate": _template(v)}
    run.try_to(lambda: run.fleet.hub.send("PATCH", f"{REPLICA_SETS}/web", {"spec": spec}))


def rolled(run: Run) -> None:
    """The first roll-out, another one."""
    run.go(300)
    change(run, "2")
    run.go(400)


def lost(run: Run) -> None:
    """A cluster is cut off during a roll-out until it is unreachable, and comes back."""
    run.go(300)
    run.fleet.members["c2"].hub_cable.cut()
    change(run, "2")
    run.go(600)
    run.fleet.members["c2"].hub_cable.mend()
    run.go(700)


def left(run: Run) -> None:
    """The set is deleted, and a cluster leaves."""
    run.go(300)
    run.keeps = False
    run.try_to(lambda: run.fleet.hub.send("DELETE", f"{REPLICA_SETS}/web"))
    run.go(120)
    run.try_to(lambda: run.fleet.hub.send("DELETE", f"{CLUSTERS}/c1"))
    run.go(120)


STORIES = {"roll-out": rolled, "lost and returned": lost, "leave": left}


@pytest.mark.parametrize("name", STORIES)
def test_each_process_may_die_after_each_write_and_the_fleet_ends_the_same(name: str, figure: Figure) -> None:
    calm = Run()
    STORIES[name](calm)
    expected, schedules = calm.facts(), 0
    for process, counted in calm.writes.items():
        for last in range(max(1, counted.count // (POINTS + 1)), counted.count + 1, max(1, counted.count // POINTS)):
            run = Run(process, last)
            STORIES[name](run)
            log = run.writes[process].log
            assert run.facts() == expected, f"{process} died after its write {last}: {log[last - 1]}"
            schedules += 1
    counts = ", ".join(f"{process} {counted.count}" for process, counted in calm.writes.items())
    figure(f"deaths in a fleet, {name}", f"{schedules} schedules end the same (writes: {counts})")


def test_a_hub_restored_from_an_older_backup_brings_its_own_state_and_deletes_nothing() -> None:
    """Agents go on with their certificates, list again, and follow what the hub says now."""
    run = Run()
    run.go(60)
    backup = run.fleet.backup_hub()
    change(run, "2")
    run.go(600)  # longer than the hub waits for a renewal, so the restored leases are old
    assert [(v, ready) for _, v, ready in run.maps()] == [("2", "2")] * 2
    run.within = len(NAMES)  # the works of all clusters go back at once
    run.fleet.restore_hub(backup)
    run.go(400)
    assert [(v, ready) for _, v, ready in run.maps()] == [("1", "1")] * 2
    run.within = 1
    change(run, "3")
    run.go(400)
    assert [(v, ready) for _, v, ready in run.maps()] == [("3", "3")] * 2


def test_a_hub_that_is_away_deletes_nothing_and_is_followed_when_it_is_back() -> None:
    run = Run()
    run.go(300)
    cables = [run.fleet.members[name].hub_cable for name in NAMES]
    for cable in cables:
        cable.cut()
    change(run, "2")
    run.fleet.time.advance(1_200)
    assert [v for _, v, _ in run.maps()] == ["1"] * 2
    for cable in cables:
        cable.mend()
    run.go(900)
    assert [(v, ready) for _, v, ready in run.maps()] == [("2", "2")] * 2
