"""The controller that generates MachineConfigs from ContainerRuntimeConfigs."""

from __future__ import annotations

from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, spec_differs
from syncline.control.plan import Plan
from syncline.kube.kinds.machineconfiguration import (
    CONTAINER_RUNTIME_CONFIG,
    CONTROLLER_CONFIG,
    MACHINE_CONFIG,
    MACHINE_CONFIG_POOL,
)
from syncline.kube.objects import Obj, ObjectRef, name_of
from syncline.machineconfig.generating.naming import RUNTIME
from syncline.machineconfig.generating.observe import every_key, observe_generating
from syncline.machineconfig.generating.plan import Files, GeneratingObserved, Kind, plan_generated
from syncline.machineconfig.generating.runtime.files import (
    dropin_files,
    invalid_runtime_config,
    needs_storage,
    runtime_condition,
    storage_file,
)
from syncline.machineconfig.generating.templates.bases import STORAGE_CONF
from syncline.machineconfig.render.rendering import Release


def _invalid(config: Obj, _pool: Obj | None) -> str | None:
    return invalid_runtime_config(config)


def _files(observed: GeneratingObserved, _pool: Obj) -> Files:
    storage = [storage_file(STORAGE_CONF, observed.config)] if needs_storage(observed.config) else []
    return [(one.path, one.text) for one in (*storage, *dropin_files(observed.config))]


def _conditions(error: str | None) -> list[Obj]:
    return [runtime_condition(error)]


def _no_pool(config: Obj) -> str:
    return f"could not find any MachineConfigPool set for ContainerRuntimeConfig {name_of(config)}"


_KIND = Kind(RUNTIME, _invalid, _files, _conditions, _no_pool)


def _plan(observed: GeneratingObserved, now: datetime) -> Plan:
    return plan_generated(_KIND, observed, now)


def runtime_config_controller(release: Release) -> Controller[GeneratingObserved]:
    """Return the controller of kind ContainerRuntimeConfig."""
    everything = every_key(CONTAINER_RUNTIME_CONFIG.group_kind)

    def observe(cache: Snapshot, ref: ObjectRef) -> GeneratingObserved | None:
        return observe_generating(cache, ref, release)

    return Controller(
        name="machine-config-runtime",
        kind=CONTAINER_RUNTIME_CONFIG.group_kind,
        watches=(
            Watch(
                MACHINE_CONFIG.group_kind,
                every_key(CONTAINER_RUNTIME_CONFIG.group_kind, "-generated-containerruntime"),
                spec_differs,
            ),
            Watch(MACHINE_CONFIG_POOL.group_kind, everything),
            Watch(CONTROLLER_CONFIG.group_kind, everything),
        ),
        observe=observe,
        plan=_plan,
    )
