"""Count the usage of a namespace against its ResourceQuotas.

Admission grants and records usage at once; this controller corrects it when objects change or are deleted, and applies
new limits. Both count by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from syncline.cluster.admission.usage import amounts, in_scope, total, usage_of
from syncline.control.cache import Snapshot
from syncline.control.controller import METADATA, Controller, Watch
from syncline.control.plan import Plan, set_status
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, is_terminating, name_of, namespace_of, ref_of

QUOTA = GroupKind("", "ResourceQuota")
EVENT = "Event"


@dataclass(frozen=True, slots=True)
class Observed:
    """``content``: every object of the namespace with its storage name (``apps/deployments``, ``/pods``)."""

    quota: Obj
    content: tuple[tuple[str, Obj], ...]


def observe(cache: Snapshot, ref: ObjectRef) -> Observed | None:
    """Return None if the quota is deleted or terminating."""
    quota = cache.get(ref)
    if quota is None or is_terminating(quota):
        return None
    content: list[tuple[str, Obj]] = []
    for info in cache.mapper.all():
        if info.namespaced and info.kind != EVENT:
            storage = f"{info.group}/{info.plural}"
            content += [(storage, obj) for obj in cache.objects(info.group_kind, ref.namespace)]
    return Observed(quota, tuple(content))


def plan(observed: Observed, now: datetime) -> Plan:
    """Write one status: the limits of the spec, and the usage of exactly the limited resources."""
    hard = dig(observed.quota, "spec", "hard", default={})
    counted = (usage_of(storage, obj) for storage, obj in observed.content if in_scope(observed.quota, storage, obj))
    used = total({name: value for name, value in usage.items() if name in hard} for usage in counted)
    status: Obj = {"hard": dict(hard), "used": {name: str(used.get(name, "0")) for name in sorted(hard)}}
    old = observed.quota.get("status") or {}
    if amounts(old.get("used")) == amounts(status["used"]) and old.get("hard") == status["hard"]:
        return Plan(why="the counts are right")
    return Plan(
        status=set_status(observed.quota, status, "the counts changed"), why=f"{name_of(observed.quota)} is recounted"
    )


def _quotas_nearby(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    if not namespace_of(obj) or obj.get("kind") == EVENT:
        return ()
    return (ref_of(quota) for quota in cache.objects(QUOTA, namespace_of(obj)))


RESOURCE_QUOTA_CONTROLLER = Controller(
    name="resource-quota",
    kind=QUOTA,
    watches=(Watch(None, _quotas_nearby, reads=METADATA),),
    observe=observe,
    plan=plan,
)
"""Maintains one status per quota."""
