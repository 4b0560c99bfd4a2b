"""Report in each FlowSchema's status whether its priority level exists.

In Kubernetes the API server does so (``apf_controller.go`` ``presyncFlowSchemaStatus``); ``kubectl get flowschemas``
shows it as MISSINGPL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.base.clock import format_time
from syncline.cluster.builtin.conditions import find
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch
from syncline.control.plan import Apply, Plan
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, name_of, ref_of, uid_of

GROUP = "flowcontrol.apiserver.k8s.io"
FLOW_SCHEMA = GroupKind(GROUP, "FlowSchema")
LEVEL = GroupKind(GROUP, "PriorityLevelConfiguration")
DANGLING = "Dangling"
MANAGER = "api-priority-and-fairness-config-consumer-v1"
"""Field manager of Kubernetes' consumer, as users see it in managedFields."""


@dataclass(frozen=True, slots=True)
class Observed:
    """A FlowSchema, and whether its priority level exists."""

    schema: Obj
    found: bool


def plan(observed: Observed, now: datetime) -> Plan:
    level = dig(observed.schema, "spec", "priorityLevelConfiguration", "name", default="")
    ending = "and it exists" if observed.found else "but there is no such object"
    condition = {
        "type": DANGLING,
        "status": "False" if observed.found else "True",
        "lastTransitionTime": format_time(now),
        "reason": "Found" if observed.found else "NotFound",
        "message": f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" {ending}',
    }
    before = find(dig(observed.schema, "status", "conditions", default=[]), DANGLING)
    if before is not None and all(before.get(key) == condition[key] for key in ("status", "reason", "message")):
        return Plan(why="the status says so")
    body: Obj = {
        "apiVersion": f"{GROUP}/v1",
        "kind": FLOW_SCHEMA.kind,
        "metadata": {"name": name_of(observed.schema), "uid": uid_of(observed.schema)},
        "status": {"conditions": [condition]},
    }
    write = Apply(body, MANAGER, "its priority level came or went", force=True, subresource="status")
    return Plan(((write,),), why=condition["message"])


def _naming(level: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    for schema in cache.objects(FLOW_SCHEMA):
        if dig(schema, "spec", "priorityLevelConfiguration", "name") == name_of(level):
            yield ref_of(schema)


def _observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    schema = cache.get(ref)
    if schema is None:
        return None
    level = dig(schema, "spec", "priorityLevelConfiguration", "name", default="")
    return Observed(schema, cache.get(ObjectRef(GROUP, LEVEL.kind, "", level)) is not None)


FLOW_SCHEMA_CONTROLLER = Controller(
    name="flow-schema-status",
    kind=FLOW_SCHEMA,
    watches=(Watch(LEVEL, _naming),),
    observe=_observe,
    plan=plan,
)
"""Maintains the condition; its key is a FlowSchema."""
