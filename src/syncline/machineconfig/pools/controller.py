"""The pool controller: binds its planner to the kinds that it watches."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from syncline.control.controller import Controller, Watch, differ, spec_differs
from syncline.control.plan import Plan
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, annotations_of, dig, generation, is_terminating, labels_of
from syncline.machineconfig.drain.progress import BLOCKED
from syncline.machineconfig.names import (
    CONTROLLER_CONFIG,
    CURRENT,
    CURRENT_IMAGE,
    DESIRED,
    DESIRED_IMAGE,
    LABELS_APPLIED,
    MACHINE_CONFIG_NODE,
    POOL,
    REASON,
    STATE,
    TOPOLOGY,
)
from syncline.machineconfig.pools import observe as observing
from syncline.machineconfig.pools import plan as planning
from syncline.machineconfig.pools.candidates import CANARIES, ORDER
from syncline.machineconfig.pools.nodestate import not_ready
from syncline.machineconfig.pools.observe import HOLDS, NODE, OS_BUILD, OS_CONFIG, READS, Observed
from syncline.machineconfig.pools.plan import PoolSettings

POOLS = "machine-config-pool"
"""Name of the controller."""

_ANNOTATIONS = (CURRENT, DESIRED, STATE, REASON, CURRENT_IMAGE, DESIRED_IMAGE, TOPOLOGY, LABELS_APPLIED, BLOCKED, ORDER)


def _matters(node: Obj) -> tuple[Any, ...]:
    """Return the parts of a node that its pool reads, without heartbeats."""
    have = annotations_of(node)
    return tuple(have.get(key) for key in _ANNOTATIONS), not_ready(node), labels_of(node), dig(node, "spec", "taints")


def _conditions(obj: Obj) -> Any:
    return dig(obj, "status", "conditions"), dig(obj, "status", "pinnedImageSets")


def _phase(app: Obj) -> Any:
    return dig(app, "status", "operationState", "phase")


def _wanted(pool: Obj) -> tuple[Any, ...]:
    """Return the parts of a pool that count: its spec, and its failures to render or build."""
    kinds = ("RenderDegraded", "ImageBuildDegraded")
    said = [each for each in dig(pool, "status", "conditions", default=[]) if each.get("type") in kinds]
    notes = annotations_of(pool)
    return generation(pool), is_terminating(pool), said, notes.get(CANARIES), notes.get("syncline.dev/held")


def pool_controller(settings: PoolSettings | None = None) -> Controller[Observed]:
    """Return the controller of MachineConfigPools: it updates nodes and writes the status."""
    settings = settings or PoolSettings()

    def plan(observed: Observed, now: datetime) -> Plan:
        return planning.plan(observed, now, settings)

    return Controller(
        name=POOLS,
        kind=POOL,
        watches=(
            Watch(NODE, observing.pools_of_node, differ(_matters)),
            Watch(MACHINE_CONFIG_NODE, observing.pool_of_machine_config_node, differ(_conditions)),
            Watch(HOLDS, observing.held_pools),
            Watch(POOL, observing.master_of_arbiter, differ(_wanted)),
            Watch(POOL, observing.every_pool, differ(lambda pool: dig(pool, "spec", "nodeSelector"))),
            Watch(CONTROLLER_CONFIG, observing.every_pool, spec_differs),
            Watch(APPLICATION.group_kind, observing.every_pool, differ(_phase)),
            Watch(OS_CONFIG, observing.every_pool),
            Watch(OS_BUILD, observing.every_pool),
        ),
        reads=READS,
        indices=observing.indices(),
        predicate=differ(_wanted),
        debounce_s=1.0,
        observe=observing.observe,
        plan=plan,
    )
