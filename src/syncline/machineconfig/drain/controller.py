"""The drain controller: binds its planner to the kinds that it watches."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
from syncline.control.plan import Plan, Result
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, is_terminating, labels_of
from syncline.kube.scheduling.filters import Counted
from syncline.machineconfig.drain import observe as observing
from syncline.machineconfig.drain import plan as planning
from syncline.machineconfig.drain.observe import BUDGET, HOLDS, NODE, POD, READS, Observed
from syncline.machineconfig.drain.plan import DrainSettings
from syncline.machineconfig.drain.progress import INSIST, PROGRESS
from syncline.machineconfig.names import DESIRED_DRAIN, LAST_DRAIN, POOL


def _asks(node: Obj) -> tuple[Any, ...]:
    have = annotations_of(node)
    unschedulable = bool(dig(node, "spec", "unschedulable"))
    return tuple(have.get(key) for key in (DESIRED_DRAIN, LAST_DRAIN, PROGRESS, INSIST)), unschedulable


def _places(node: Obj) -> tuple[Any, ...]:
    return dig(node, "spec", "unschedulable"), dig(node, "spec", "taints"), labels_of(node)


def _allows(budget: Obj) -> Any:
    return budget.get("spec"), dig(budget, "status", "disruptionsAllowed")


def _pauses(pool: Obj) -> Any:
    return dig(pool, "spec", "paused")


def drain_controller(settings: DrainSettings | None = None) -> Controller[Observed]:
    """Return the controller that executes the drain requests of nodes."""
    settings = settings or DrainSettings()
    counted = Counted()

    def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        return observing.observe(cache, ref, counted)

    def plan(observed: Observed, now: datetime) -> Plan:
        return planning.plan(observed, now, settings)

    def settle(
        observed: Observed, plan: Plan, results: tuple[Result, ...], now: datetime
    ) -> tuple[Observed, Plan] | None:
        return planning.settle(observed, plan, results, now, settings)

    return Controller(
        name="machine-config-drain",
        kind=NODE,
        watches=(
            Watch(POD, observing.node_of_pod, differ(is_terminating, lambda pod: dig(pod, "status", "phase"))),
            Watch(BUDGET, observing.held_back, differ(_allows)),
            Watch(NODE, observing.held_back, differ(_places)),
            Watch(POOL, observing.not_begun, differ(_pauses)),
            Watch(HOLDS, observing.not_begun),
        ),
        reads=READS,
        indices=observing.indices(),
        predicate=differ(_asks),
        observe=observe,
        plan=plan,
        settle=settle,
    )
