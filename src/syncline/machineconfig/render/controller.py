"""The render controller: binds rendering to pools."""

from __future__ import annotations

from collections.abc import Iterable

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, differ
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

RENDER = "machine-config-render"
"""Name of the controller."""
DEBOUNCE_S = 5.0
"""Seconds from the first change to the render, as upstream."""

_content = differ(lambda obj: obj.get("spec"), labels_of, annotations_of, lambda obj: meta(obj).get("ownerReferences"))


def _of_config(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return [ref_of(pool) for pool in cache.objects(MACHINE_CONFIG_POOL.group_kind) if may_select(pool, obj)]


def _all(_obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return [ref_of(pool) for pool in cache.objects(MACHINE_CONFIG_POOL.group_kind)]


def render_controller(settings: RenderSettings) -> Controller[RenderObserved]:
    """Return the controller of MachineConfigPool. Changes within five seconds share one render, as upstream."""
    others = (CONTROLLER_CONFIG, KUBELET_CONFIG, CONTAINER_RUNTIME_CONFIG, MACHINE_CONFIGURATION)

    def observe(cache: Snapshot, ref: ObjectRef) -> RenderObserved | None:
        return observe_render(cache, ref, settings)

    return Controller(
        name=RENDER,
        kind=MACHINE_CONFIG_POOL.group_kind,
        watches=(
            Watch(MACHINE_CONFIG.group_kind, _of_config, _content),
            *(Watch(kind.group_kind, _all) for kind in others),
        ),
        reads=(NODE,),
        predicate=_content,
        debounce_s=DEBOUNCE_S,
        observe=observe,
        plan=plan_render,
    )
