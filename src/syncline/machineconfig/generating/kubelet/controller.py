"""The controller that generates MachineConfigs from KubeletConfigs."""

from __future__ import annotations

from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, spec_differs
from syncline.control.plan import Plan
from syncline.kube.kinds.machineconfiguration import (
    CONTROLLER_CONFIG,
    KUBELET_CONFIG,
    MACHINE_CONFIG,
    MACHINE_CONFIG_POOL,
)
from syncline.kube.kinds.openshiftconfig import API_SERVER_CONFIG, NODE_CONFIG
from syncline.kube.objects import Obj, ObjectRef, name_of
from syncline.machineconfig.generating.kubelet.files import (
    accepted_conditions,
    invalid_kubelet_config,
    kubelet_files,
    latency_profile,
)
from syncline.machineconfig.generating.naming import KUBELET
from syncline.machineconfig.generating.observe import every_key, observe_generating
from syncline.machineconfig.generating.plan import Files, GeneratingObserved, Kind, plan_generated
from syncline.machineconfig.generating.templates.bases import kubelet_configuration
from syncline.machineconfig.render.rendering import Release


def _files(observed: GeneratingObserved, pool: Obj) -> Files:
    assert observed.controller_config is not None, "waiting comes first"
    original = kubelet_configuration(observed.controller_config, observed.api_server)
    if name_of(pool) == "worker":
        original, _ = latency_profile(original, observed.node_config)
    return [(one.path, one.text) for one in kubelet_files(observed.config, original)]


def _no_pool(_config: Obj) -> str:
    return "could not find any MachineConfigPool set for KubeletConfig"


_KIND = Kind(KUBELET, invalid_kubelet_config, _files, accepted_conditions, _no_pool)


def _plan(observed: GeneratingObserved, now: datetime) -> Plan:
    return plan_generated(_KIND, observed, now)


def kubelet_config_controller(release: Release) -> Controller[GeneratingObserved]:
    """Return the controller of kind KubeletConfig."""
    everything = every_key(KUBELET_CONFIG.group_kind)
    kinds = (MACHINE_CONFIG_POOL, CONTROLLER_CONFIG, NODE_CONFIG, API_SERVER_CONFIG)

    def observe(cache: Snapshot, ref: ObjectRef) -> GeneratingObserved | None:
        return observe_generating(cache, ref, release)

    return Controller(
        name="machine-config-kubelet",
        kind=KUBELET_CONFIG.group_kind,
        watches=(
            Watch(MACHINE_CONFIG.group_kind, every_key(KUBELET_CONFIG.group_kind, "-generated-kubelet"), spec_differs),
            *(Watch(kind.group_kind, everything) for kind in kinds),
        ),
        observe=observe,
        plan=_plan,
    )
