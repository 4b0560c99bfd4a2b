"""What a render reads: the pool, every MachineConfig, and what those are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from syncline.control.cache import Snapshot
from syncline.kube.kinds.machineconfiguration import (
    CONTAINER_RUNTIME_CONFIG,
    CONTROLLER_CONFIG,
    KUBELET_CONFIG,
    MACHINE_CONFIG,
    MACHINE_CONFIG_POOL,
    MACHINE_CONFIGURATION,
)
from syncline.kube.objects import GroupKind, Obj, ObjectRef, annotations_of, dig, name_of
from syncline.machineconfig.names import CONTROLLER_CONFIG_NAME, CURRENT, DESIRED, FIRST_PIVOT
from syncline.machineconfig.render.rendering import Release

__all__ = ["NODE", "RenderObserved", "RenderSettings", "observe_render"]

NODE = GroupKind("", "Node")
KNOBS = ObjectRef(MACHINE_CONFIGURATION.group, MACHINE_CONFIGURATION.kind, "", "cluster")


@dataclass(frozen=True, slots=True)
class RenderSettings:
    """``release``: what this controller is; it only renders what was made by the same. ``kept``: rendered
    MachineConfigs that a pool keeps although nothing refers to them, newest first; older ones are deleted, since the
    same content makes the same object again. None: all are kept, as upstream."""

    release: Release
    kept: int | None = 20


@dataclass(frozen=True)
class RenderObserved:
    """``waived``: sections of storage that may differ. ``stream``: the pool's OS images, if they are not the
    ControllerConfig's. ``stream_classes``: image to stream, as far as anybody looked into images. ``in_use``: names
    of rendered MachineConfigs that a pool or a node refers to."""

    pool: Obj
    configs: tuple[Obj, ...]
    controller_config: Obj | None
    kubelet_configs: tuple[Obj, ...]
    runtime_configs: tuple[Obj, ...]
    settings: RenderSettings
    waived: tuple[str, ...] = ()
    stream: Obj | None = None
    stream_classes: Mapping[str, str] = field(default_factory=dict)
    in_use: frozenset[str] = frozenset()

    def config(self, name: str) -> Obj | None:
        """The MachineConfig of this name."""
        return next((one for one in self.configs if name_of(one) == name), None)


def observe_render(cache: Snapshot, ref: ObjectRef, settings: RenderSettings) -> RenderObserved | None:
    """None if the pool is gone, or while a kind that is needed has not been listed."""
    pool = cache.get(ref)
    needed = (MACHINE_CONFIG, CONTROLLER_CONFIG, KUBELET_CONFIG, CONTAINER_RUNTIME_CONFIG)
    if pool is None or not all(cache.has_synced(kind.group_kind) for kind in needed):
        return None
    config = ObjectRef(CONTROLLER_CONFIG.group, CONTROLLER_CONFIG.kind, "", CONTROLLER_CONFIG_NAME)
    return RenderObserved(
        pool=pool,
        configs=tuple(cache.objects(MACHINE_CONFIG.group_kind)),
        controller_config=cache.get(config),
        kubelet_configs=tuple(cache.objects(KUBELET_CONFIG.group_kind)),
        runtime_configs=tuple(cache.objects(CONTAINER_RUNTIME_CONFIG.group_kind)),
        settings=settings,
        waived=tuple(dig(cache.get(KNOBS), "spec", "irreconcilableValidationOverrides", "storage", default=())),
        in_use=_in_use(cache),
    )


def _in_use(cache: Snapshot) -> frozenset[str]:
    names: set[str] = set()
    for pool in cache.objects(MACHINE_CONFIG_POOL.group_kind):
        names |= {str(dig(pool, part, "configuration", "name", default="")) for part in ("spec", "status")}
    for node in cache.objects(NODE):
        names |= {annotations_of(node).get(key, "") for key in (CURRENT, DESIRED, FIRST_PIVOT)}
    return frozenset(names)
