"""An ordered roll-out over five clusters whose processes, links and people do what a schedule says.

The canary comes first, then two clusters of which a budget permits one at a time, then two more. Each has proved a
release when it was well for :data:`HEALTHY_S`. :class:`~tests.fleet.deaths.laws.Laws` judges each write.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import Pipe, get_context
from typing import Any, TypeVar

from tests.fleet.deaths.faults import KINDS, Strikes, Struck
from tests.fleet.deaths.laws import BUDGETED, FEW, HEALTHY_S, LAWS, WAVES, Laws
from tests.fleet.rollingout import HUB, SETS, Process, RollOut
from tests.fleet.rollouts import BUDGETS
from tests.fleet.world import CLUSTERS, Cable
from tests.gitops.behaviours.sim import sha

from syncline.base.entropy import Entropy
from syncline.base.journal import Journal
from syncline.control.virtual import LoopActor
from syncline.fleet.pull import names
from syncline.fleet.pull.order.annotations import CLUSTER_WAVE, HEALTHY_FOR
from syncline.fleet.spoke.link import SPOKE
from syncline.kube.client import Request, Transport
from syncline.kube.objects import Obj, dig
from syncline.rehearsal.explore import Explorer
from syncline.rehearsal.guided.accesses import Trace
from syncline.rehearsal.laws import Ledger
from syncline.rehearsal.seams import Step
from syncline.rehearsal.verdict import Verdict

T = TypeVar("T")
ROLLOUT = "/apis/syncline.dev/v1alpha1/namespaces/argocd/fleetrollouts/set"
JSON_PATCH = {"content-type": "application/json-patch+json"}


def template() -> Obj:
    """The template of the set: its Applications ask for an order."""
    annotations = {
        names.CLUSTER: "{{name}}",
        "argocd.argoproj.io/skip-reconcile": "true",
        HEALTHY_FOR: f"{HEALTHY_S}s",
        "edit": "0",
    }
    spec = {
        "project": "default",
        "source": {"repoURL": "https://git.test/a", "path": "a", "targetRevision": sha(0)},
        "destination": {"server": "https://kubernetes.default.svc", "namespace": "default"},
        "syncPolicy": {"automated": {}},
    }
    return {
        "metadata": {"name": "web-{{name}}", "labels": {names.PULL: "true"}, "annotations": annotations},
        "spec": spec,
    }


class OrderedRollOut(RollOut):
    """What the explorer rehearses; see ``rehearsal/explore.py`` for what it asks of a world."""

    def __init__(self, waves: Mapping[str, int] = WAVES) -> None:
        self.waves = waves
        self.cables: dict[str, Cable] = {}
        """Links of the GitOps controllers of clusters to their own API."""
        self.edits = 0
        self.goal = "1"
        super().__init__(*waves, spec={"template": template()})
        self.journal = Journal()
        self.clock = self.fleet.clock
        self.injector = Strikes(self)
        self.ledger = Ledger(LAWS, self.injector.where)
        budget = {"apiVersion": "syncline.dev/v1alpha1", "kind": "FleetDisruptionBudget", "metadata": {"name": "pair"}}
        among = {"matchExpressions": [{"key": "pair", "operator": "Exists"}]}
        self.do("POST", BUDGETS, {**budget, "spec": {"clusterSelector": among, "maxUnavailable": 1}})
        self.go(600)
        assert not self.unfinished(), self.unfinished()
        self.laws = Laws(self)

    def join(self, name: str, **how: Any) -> None:
        labels = {CLUSTER_WAVE: str(self.waves[name])} | ({"pair": ""} if name in BUDGETED else {})
        super().join(name, labels=labels, nodes=1)

    def content(self, name: str, v: str) -> list[Obj]:
        """Objects, and a Job that has to end before they change."""
        container = {"name": "migrate", "image": "shop:1"}
        spec = {"backoffLimit": 0, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
        hook = {"argocd.argoproj.io/hook": "PreSync"}
        metadata = {"name": "migrate", "namespace": "default", "annotations": hook, "labels": {"version": v}}
        job: Obj = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
        return [job, *super().content(name, v)]

    # -- processes ---------------------------------------------------------------------------------------------------

    def _way(self, process: Process) -> Callable[[Transport], Transport]:
        def way(inner: Transport) -> Transport:
            if process.name.startswith("gitops/"):
                before = self.cables.get(process.name)
                inner = self.cables[process.name] = Cable(inner, before.whole if before else True)
            return Struck(inner, process, self)

        return way

    def _begin(self, process: Process) -> None:
        injector = getattr(self, "injector", None)
        away_s = injector.away.pop(process.name, 0.0) if injector is not None else 0.0
        if away_s:
            self.stop(process)
            injector.agenda.after(away_s, lambda: self._begin(process))
            return
        super()._begin(process)
        self.reorder(injector.seed if injector is not None else 0)

    def stop(self, process: Process) -> None:
        if process.name == HUB:
            self.fleet.stop_hub()
        elif process.name.startswith(("agent/", "own/")):
            self.fleet.stop_agent(process.name.partition("/")[2])
        else:
            self._end(process)

    def reorder(self, seed: int) -> None:
        """Let each loop draw among its ready keys, also in processes that begin later; 0: the oldest comes first."""
        injector = getattr(self, "injector", None)
        if injector is not None:
            injector.seed = seed
        for number, actor in enumerate(self.fleet.time.actors):
            if seed and isinstance(actor, LoopActor) and actor.shuffle is None:
                actor.shuffle = Entropy(f"{seed}/{number}")

    # -- what people do ----------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Commit the next version; the set names it."""
        self.goal = str(int(self.goal) + 1)
        self.roll_out(self.goal)

    def edit(self) -> None:
        """Change the template in what the objects of the Application do not depend on."""
        self.edits += 1
        path = "/spec/template/metadata/annotations/edit"
        patch: Any = [{"op": "replace", "path": path, "value": str(self.edits)}]
        self.fleet.hub.admin.send(Request("PATCH", f"{SETS}/set", headers=JSON_PATCH, body=patch)).or_raise()

    def accept(self, cluster: str, accepted: bool) -> None:
        body: Any = {"spec": {"hubAcceptsClient": accepted}}
        merge = {"content-type": "application/merge-patch+json"}
        self.fleet.hub.admin.send(Request("PATCH", f"{CLUSTERS}/{cluster}", headers=merge, body=body)).or_raise()

    def release(self) -> tuple[str, str]:
        """What each cluster is to have: revision and edit."""
        return sha(int(self.goal) - 1), str(self.edits)

    # -- what the explorer asks --------------------------------------------------------------------------------------

    def size(self) -> int:
        return 3

    def unfinished(self) -> str:
        if self.injector_busy():
            return "a fault has not healed"
        answer = self.fleet.hub.admin.send(Request("GET", ROLLOUT))
        phase, message = (dig(answer.obj, "status", key) for key in ("phase", "message")) if answer.ok else ("", "")
        if phase != "Done":
            return f"the roll-out is {phase or 'not there'}: {message}"
        wrong = {name: one for name, one in self.versions().items() if one != self.goal}
        if wrong:
            return f"not {self.goal}: {wrong}"
        (report,) = self.items("/apis/apps.open-cluster-management.io/v1alpha1/multiclusterapplicationsetreports")
        summary = report["statuses"]["summary"]
        well = (summary["clusters"], summary["healthy"], summary["synced"]) == (str(len(self.waves)),) * 3
        return "" if well else f"the report says {summary}"

    def injector_busy(self) -> bool:
        injector = getattr(self, "injector", None)
        return injector is not None and injector.agenda.last is not None

    def at_rest(self) -> None:
        self.laws.at_rest()


@lru_cache(2)
def at_rest(small: bool = False) -> OrderedRollOut:
    """The world before the roll-out; only forked processes may change it."""
    made = OrderedRollOut(FEW if small else WAVES)
    gc.collect()
    gc.freeze()  # else each fork copies what it only counts
    return made


@dataclass(frozen=True)
class Story:
    """Version 2 is rolled out, to all clusters or to a few. Each run must be in a forked process."""

    small: bool = False

    def world(self) -> OrderedRollOut:
        return at_rest(self.small)

    def begin(self, world: OrderedRollOut) -> None:
        world.ledger.watching = world.injector.steps.counting = True
        world.try_to(world.commit)


ROLL_OUT, SMALL = "roll-out", "roll-out-to-three"
EXPLORER: Explorer[OrderedRollOut] = Explorer({ROLL_OUT: Story(), SMALL: Story(small=True)}, KINDS)


def traced(world: OrderedRollOut) -> Trace:
    """Follow who reads and writes what from now on; an agent is one process with two ways."""
    fleet = world.fleet
    trace = Trace({"hub": fleet.hub.core.store, **{name: one.core.store for name, one in fleet.members.items()}})
    world.injector.at_step = lambda step: trace.begins(replace(step, who=step.who.replace("own/", "agent/")))
    for name, process in world.processes.items():
        if process.actor is not None:
            trace.follow(name, process.actor.loop, {"": name.partition("/")[2] or "hub"})
    for name, member in fleet.members.items():
        assert member.agent is not None, "it runs"
        trace.follow(f"agent/{name}", member.agent.loop, {"": "hub", SPOKE: name})
    return trace


@lru_cache(2)
def calm_facts(small: bool = False) -> str:
    """The facts at the end of the undisturbed run, with which each other end is compared."""

    def undisturbed() -> str:
        world = Story(small).world()
        Story(small).begin(world)
        while world.unfinished():
            world.go(60)
        world.go(600)
        return world.laws.facts()

    found = at_rest(small).laws.calm = apart(undisturbed)
    return found


def branched(kinds: Iterable[str], chosen: Callable[[Step, str], bool]) -> list[Verdict]:
    """As the explorer's; the undisturbed run comes last, and leaves the world here as it is."""
    found: list[Verdict] = []
    return apart(lambda: [EXPLORER.branched(ROLL_OUT, kinds, chosen, found.append), *found])


def apart(act: Callable[[], T]) -> T:
    """Return what an act in a forked process returns."""
    reading, writing = Pipe(duplex=False)
    child = get_context("fork").Process(target=lambda: writing.send(act()))
    child.start()
    writing.close()
    try:
        found: T = reading.recv()
    except EOFError:
        raise AssertionError("the forked process failed: its error is on stderr") from None
    finally:
        child.join()
    return found
