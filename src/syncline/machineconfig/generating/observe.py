"""Reads the input of the controllers of KubeletConfigs and ContainerRuntimeConfigs."""

from __future__ import annotations

from collections.abc import Iterable

from syncline.control.cache import Snapshot
from syncline.control.controller import MapToKeys
from syncline.kube.kinds.machineconfiguration import CONTROLLER_CONFIG, MACHINE_CONFIG, MACHINE_CONFIG_POOL
from syncline.kube.kinds.openshiftconfig import API_SERVER_CONFIG, NODE_CONFIG
from syncline.kube.objects import GroupKind, Obj, ObjectRef, name_of, ref_of
from syncline.machineconfig.generating.plan import GeneratingObserved
from syncline.machineconfig.names import CONTROLLER_CONFIG_NAME
from syncline.machineconfig.render.rendering import Release

_CONTROLLER = ObjectRef(CONTROLLER_CONFIG.group, CONTROLLER_CONFIG.kind, "", CONTROLLER_CONFIG_NAME)
_NODE = ObjectRef(NODE_CONFIG.group, NODE_CONFIG.kind, "", "cluster")
_SERVER = ObjectRef(API_SERVER_CONFIG.group, API_SERVER_CONFIG.kind, "", "cluster")


def observe_generating(cache: Snapshot, ref: ObjectRef, release: Release) -> GeneratingObserved | None:
    """Return the input; None if the object is gone, or until pools and MachineConfigs are listed."""
    found = cache.get(ref)
    needed = (MACHINE_CONFIG, MACHINE_CONFIG_POOL, CONTROLLER_CONFIG)
    if found is None or not all(cache.has_synced(kind.group_kind) for kind in needed):
        return None
    return GeneratingObserved(
        config=found,
        siblings=tuple(sorted(cache.objects(GroupKind(ref.group, ref.kind)), key=name_of)),
        pools=tuple(cache.objects(MACHINE_CONFIG_POOL.group_kind)),
        configs={name_of(one): one for one in cache.objects(MACHINE_CONFIG.group_kind)},
        controller_config=cache.get(_CONTROLLER),
        release=release,
        node_config=cache.get(_NODE),
        api_server=cache.get(_SERVER),
    )


def every_key(kind: GroupKind, part: str = "") -> MapToKeys:
    """Return a map of a change to all objects of ``kind``; ``part``: only for MachineConfigs with it in their name."""

    def keys(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
        return [ref_of(one) for one in cache.objects(kind)] if part in name_of(obj) else []

    return keys
