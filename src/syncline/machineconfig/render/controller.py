"""Binds rendering to pools."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Watch, differ
from syncline.control.plan import Plan
from syncline.kube.kinds.machineconfiguration import (
    CONTAINER_RUNTIME_CONFIG,
    CONTROLLER_CONFIG,
    KUBELET_CONFIG,
    MACHINE_CONFIG,
    MACHINE_CONFIG_POOL,
    MACHINE_CONFIGURATION,
)
from syncline.kube.objects import Obj, ObjectRef, annotations_of, labels_of, meta, ref_of
from syncline.machineconfig.render.observe import NODE, RenderObserved, RenderSettings, observe_render
from syncline.machineconfig.render.plan import plan_render
from syncline.machineconfig.render.select import may_select

__all__ = ["RenderController"]

_content = differ(lambda obj: obj.get("spec"), labels_of, annotations_of, lambda obj: meta(obj).get("ownerReferences"))


class RenderController:
    """Kind MachineConfigPool. What changes within five seconds of the first change is one render, as upstream."""

    name = "machine-config-render"
    kind = MACHINE_CONFIG_POOL.group_kind
    reads = (NODE,)
    gathers_s = 5.0

    def __init__(self, settings: RenderSettings) -> None:
        self._settings = settings
        others = (CONTROLLER_CONFIG, KUBELET_CONFIG, CONTAINER_RUNTIME_CONFIG, MACHINE_CONFIGURATION)
        self.watches = (
            Watch(MACHINE_CONFIG.group_kind, self._of_config, _content),
            *(Watch(kind.group_kind, self._all) for kind in others),
        )

    def concerns(self, old: Obj | None, new: Obj | None) -> bool:
        """Its spec and its own condition; counts and other conditions change all the time."""
        return _content(old, new)

    def observe(self, cache: Snapshot, ref: ObjectRef) -> RenderObserved | None:
        return observe_render(cache, ref, self._settings)

    def plan(self, seen: RenderObserved, now: datetime) -> Plan:
        return plan_render(seen, now)

    def _of_config(self, obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return [ref_of(pool) for pool in cache.objects(self.kind) if may_select(pool, obj)]

    def _all(self, _obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return [ref_of(pool) for pool in cache.objects(self.kind)]
