"""Kinds that are served and that nothing works on here: their objects say so in a condition of upstream's.

OLM v1's ClusterExtension and ClusterCatalog; MultiClusterHub, and Hive's kinds. For the embedded cluster alone: another
one may have the operators that do work on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.base.clock import format_time
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, spec_differs
from syncline.control.plan import Plan, set_status
from syncline.kube.kinds.clusterextensions import CLUSTER_CATALOG, CLUSTER_EXTENSION
from syncline.kube.kinds.hive import (
    CLUSTER_CLAIM,
    CLUSTER_DEPLOYMENT,
    CLUSTER_POOL,
    MACHINE_POOL,
    MULTI_CLUSTER_HUB,
)
from syncline.kube.objects import GVK, Obj, ObjectRef, generation, is_terminating

REASON: Final = "NoController"


@dataclass(frozen=True, slots=True)
class Idle:
    """``condition``: upstream's type that says whether something came of an object, False here; ``at``: the field of
    the time in addition to the transition's; ``instead``: what to do."""

    gvk: GVK
    condition: str
    instead: str
    at: str = ""


_OLM: Final = "use a Subscription, or a cluster with OLM v1"
_HIVE: Final = "no cluster is made; install Hive on a hub of its own, and join the cluster"
_HUB: Final = "a hub is made by `syncline up --hub`, or the roles hub, pull and policies"
_PROBED: Final = "lastProbeTime"
EXTENSIONS: Final = (Idle(CLUSTER_EXTENSION, "Installed", _OLM), Idle(CLUSTER_CATALOG, "Serving", _OLM))
HUB_KINDS: Final = (
    Idle(MULTI_CLUSTER_HUB, "Complete", _HUB, "lastUpdateTime"),
    Idle(CLUSTER_DEPLOYMENT, "Provisioned", _HIVE, _PROBED),
    Idle(CLUSTER_POOL, "CapacityAvailable", _HIVE, _PROBED),
    Idle(CLUSTER_CLAIM, "ClusterRunning", _HIVE, _PROBED),
    Idle(MACHINE_POOL, "MachineSetsGenerated", _HIVE, _PROBED),
)


@dataclass(frozen=True, slots=True)
class Looked:
    obj: Obj
    idle: Idle


def plan(looked: Looked, now: datetime) -> Plan:
    """Say once that nothing will happen."""
    obj, idle = looked.obj, looked.idle
    status = obj.get("status") or {}
    before: Obj = next((one for one in status.get("conditions") or () if one.get("type") == idle.condition), {})
    message = f"no controller of this kind runs here: {idle.instead}"
    new: Obj = {"type": idle.condition, "status": "False", "reason": REASON, "message": message}
    if not idle.at:
        new["observedGeneration"] = generation(obj)
    if new.items() <= before.items():
        return Plan(why=message)
    at = format_time(now)
    new["lastTransitionTime"] = at if before.get("status") != "False" else before.get("lastTransitionTime", at)
    new |= {idle.at: at} if idle.at else {}
    rest = [one for one in status.get("conditions") or () if one.get("type") != idle.condition]
    return Plan(why=message, status=set_status(obj, {**status, "conditions": [*rest, new]}, message))


def _controller(idle: Idle) -> Controller[Looked]:
    def observe(cache: Snapshot, ref: ObjectRef) -> Looked | None:
        found = cache.get(ref)
        return Looked(found, idle) if found is not None and not is_terminating(found) else None

    name = f"no-{idle.gvk.kind.lower()}"
    return Controller(name=name, kind=idle.gvk.group_kind, predicate=spec_differs, observe=observe, plan=plan)


def idle_controllers(kinds: Iterable[Idle]) -> tuple[Controller[Looked], ...]:
    return tuple(map(_controller, kinds))
