"""ClusterExtensions and ClusterCatalogs are served, and say that no controller works on them here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.base.clock import format_time
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, spec_differs
from syncline.control.plan import Plan, set_status
from syncline.kube.kinds.clusterextensions import CLUSTER_CATALOG, CLUSTER_EXTENSION
from syncline.kube.objects import GVK, Obj, ObjectRef, generation

MESSAGE: Final = "no controller of this kind runs here: use a Subscription, or a cluster with OLM v1"
REASON: Final = "NoController"


@dataclass(frozen=True, slots=True)
class Looked:
    obj: Obj
    condition: str


def plan(looked: Looked, now: datetime) -> Plan:
    """Say once that nothing will happen."""
    status = looked.obj.get("status") or {}
    before: Obj = next((one for one in status.get("conditions") or () if one.get("type") == looked.condition), {})
    new: Obj = {"type": looked.condition, "status": "False", "reason": REASON, "message": MESSAGE}
    new |= {"observedGeneration": generation(looked.obj)}
    since = before.get("lastTransitionTime") or format_time(now)
    rest = [one for one in status.get("conditions") or () if one.get("type") != looked.condition]
    wanted = {**status, "conditions": [*rest, {**new, "lastTransitionTime": since}]}
    return Plan(why=MESSAGE, status=set_status(looked.obj, wanted, MESSAGE))


def _controller(gvk: GVK, condition: str) -> Controller[Looked]:
    def observe(cache: Snapshot, ref: ObjectRef) -> Looked | None:
        found = cache.get(ref)
        return Looked(found, condition) if found is not None else None

    name = f"no-{gvk.kind.lower()}"
    return Controller(name=name, kind=gvk.group_kind, predicate=spec_differs, observe=observe, plan=plan)


def extension_controllers() -> tuple[Controller[Looked], ...]:
    return _controller(CLUSTER_EXTENSION, "Installed"), _controller(CLUSTER_CATALOG, "Serving")
