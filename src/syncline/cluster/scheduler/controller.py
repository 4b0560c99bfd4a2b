"""Define the scheduler's controller for pods and nodes."""

from __future__ import annotations

from datetime import datetime

from syncline.cluster.scheduler import observe as observing
from syncline.cluster.scheduler import plan as planning
from syncline.cluster.scheduler.observe import BUDGET, NAMESPACE, NODE, POD, STORAGE, Observed
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Plan, Result
from syncline.kube.objects import ObjectRef
from syncline.kube.scheduling.filters import Counted


def _settle(observed: Observed, plan: Plan, results: tuple[Result, ...], now: datetime) -> tuple[Observed, Plan] | None:
    return planning.settle(observed, results, now)


def scheduler_controller() -> Controller[Observed]:
    """Return the controller that finds nodes for pods of ``default-scheduler``."""
    counted = Counted()

    def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
        return observing.observe(cache, ref, counted)

    return Controller(
        name="scheduler",
        kind=NODE,
        watches=(
            Watch(POD, observing.concerned_by_pod),
            Watch(NODE, observing.concerned_by_node),
            *(Watch(kind, observing.concerned_by_storage) for kind in STORAGE),
        ),
        reads=(NAMESPACE, BUDGET),
        indices=observing.indices(),
        observe=observe,
        plan=planning.plan,
        settle=_settle,
    )
