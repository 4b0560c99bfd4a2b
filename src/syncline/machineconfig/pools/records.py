"""Creates a MachineConfigNode for each node and sets its pool; the owner reference deletes it with the node.

Agent and drain controller write its conditions, the pool controller its desired config; this module only its existence
and ``spec.pool``. Source: Machine Config Operator ``syncMachineConfigNodes``; reference 1.7.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ, spec_differs
from syncline.control.plan import Create, Patch, Plan
from syncline.kube.kinds import machineconfiguration as kinds
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig, labels_of, name_of, ref_of, uid_of
from syncline.machineconfig.names import DESIRED, MACHINE_CONFIG_NODE, NOT_YET_SET, POOL
from syncline.machineconfig.pools.membership import MembershipError, is_windows, pool_of_machine_config_node

NODE = GroupKind("", "Node")


@dataclass(frozen=True, slots=True)
class Observed:
    """The planner's input. ``pool``: the name to record; None if unknown, then the record keeps its pool."""

    node: Obj
    record: Obj | None
    pool: str | None


def plan(observed: Observed) -> Plan:
    name = name_of(observed.node)
    if observed.record is None:
        return Plan(((Create(_record(observed), f"node {name} has none"),),), why=f"MachineConfigNode of {name}")
    body: Obj = {}
    if observed.pool is not None and dig(observed.record, "spec", "pool", "name") != observed.pool:
        body["pool"] = {"name": observed.pool}
    wanted = annotations_of(observed.node).get(DESIRED)
    if wanted and dig(observed.record, "spec", "configVersion", "desired") == NOT_YET_SET:
        body["configVersion"] = {"desired": wanted}  # it was created before its machine joined
    if not body:
        return Plan(why=f"the MachineConfigNode of {name} is there")
    patch = Patch(kinds.MACHINE_CONFIG_NODE, "", name, {"spec": body}, f"node {name} is in pool {observed.pool}")
    return Plan(((patch,),), why=f"the MachineConfigNode of {name} says what its node says")


def _record(observed: Observed) -> Obj:
    owner = {"apiVersion": "v1", "kind": "Node", "name": name_of(observed.node), "uid": uid_of(observed.node)}
    return {
        "apiVersion": kinds.MACHINE_CONFIG_NODE.api_version,
        "kind": kinds.MACHINE_CONFIG_NODE.kind,
        "metadata": {"name": name_of(observed.node), "ownerReferences": [owner]},
        "spec": {
            "node": {"name": name_of(observed.node)},
            "pool": {"name": observed.pool or NOT_YET_SET},
            "configVersion": {"desired": annotations_of(observed.node).get(DESIRED) or NOT_YET_SET},
        },
    }


def _all_nodes(_pool: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return (ref_of(node) for node in cache.objects(NODE))


def _node(record: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return (ObjectRef(*NODE, "", name_of(record)),)


def _observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    node = cache.get(ref)
    ready = cache.has_synced(POOL) and cache.has_synced(MACHINE_CONFIG_NODE)
    if node is None or not ready or is_windows(node):
        return None
    try:
        pool: str | None = pool_of_machine_config_node(node, cache.objects(POOL))
    except MembershipError:
        pool = None  # the status of the node's pools reports it
    return Observed(node, cache.get(ObjectRef(*MACHINE_CONFIG_NODE, "", ref.name)), pool)


def _plan(observed: Observed, now: datetime) -> Plan:
    return plan(observed)


NODE_RECORD_CONTROLLER = Controller(
    name="machine-config-node-record",
    kind=NODE,
    watches=(
        Watch(POOL, _all_nodes, spec_differs),
        Watch(MACHINE_CONFIG_NODE, _node, differ(lambda record: record.get("spec"))),
    ),
    predicate=differ(labels_of, lambda node: annotations_of(node).get(DESIRED)),
    observe=_observe,
    plan=_plan,
)
"""Kind Node."""
