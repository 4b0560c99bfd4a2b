"""The config server's input, and its choice of a pool's config for a joining machine; pure.

Source: reference machine-config 4.10; Machine Config Operator ``pkg/server/cluster_server.go``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from syncline.control.cache import Snapshot
from syncline.kube.objects import Obj, ObjectRef, dig, name_of
from syncline.machineconfig.names import CONTROLLER_CONFIG, CONTROLLER_CONFIG_NAME, MACHINE_CONFIG, POOL
from syncline.machineconfig.pools.layered import Layering
from syncline.machineconfig.pools.observe import OS_BUILD, OS_CONFIG

_INTERNAL_REGISTRY = re.compile(r"[^/]+\.openshift-image-registry\.svc(\.cluster\.local)?(:[0-9]+)?/")


@dataclass(frozen=True, slots=True)
class World:
    """The input. ``pools`` and ``configs`` by name. ``kubeconfig``: for joining machines, empty if there is none.
    ``bootstrap``: for the first control-plane machines, before the cluster exists."""

    pools: Mapping[str, Obj]
    configs: Mapping[str, Obj]
    controller_config: Obj | None
    kubeconfig: str = field(repr=False)
    os_configs: Sequence[Obj] = ()
    os_builds: Sequence[Obj] = ()
    bootstrap: bool = False


def world_of(cache: Snapshot, kubeconfig: str) -> World:
    """Return the input from the machine-config controllers' cache."""
    return World(
        {name_of(each): each for each in cache.objects(POOL)},
        {name_of(each): each for each in cache.objects(MACHINE_CONFIG)},
        cache.get(ObjectRef(*CONTROLLER_CONFIG, "", CONTROLLER_CONFIG_NAME)),
        kubeconfig,
        cache.objects(OS_CONFIG),
        cache.objects(OS_BUILD),
    )


def address_in_cluster(world: World) -> str:
    """Return the API server's address for machines, by the ControllerConfig, or an empty string."""
    infra = dig(world.controller_config, "spec", "infra", "status", default={}) or {}
    return str(infra.get("apiServerInternalURI") or infra.get("apiServerURL") or "")


def served_config(pool: Obj) -> str:
    """Return the name of the rendered config for a machine that joins ``pool``: the new one once a node has it, so that
    a bad one does not reach new machines first; else the proven one. Empty if there is none."""
    place = "spec" if (dig(pool, "status", "updatedMachineCount", default=0) or 0) > 0 else "status"
    return str(dig(pool, place, "configuration", "name", default="") or "")


def image_for_new_machine(pool: Obj, world: World) -> str:
    """Return the image of image mode that a new machine boots at once; empty if it starts with the pool's base image.
    It must be built from the served config, proven by a node, and outside the cluster's own registry, whose name a new
    machine cannot resolve."""
    config = next((each for each in world.os_configs if _pool_of(each) == name_of(pool)), None)
    if config is None or not dig(pool, "status", "updatedMachineCount", default=0):
        return ""
    rendered = served_config(pool)
    build = next((each for each in world.os_builds if _built_for(each) == (name_of(config), rendered)), None)
    layering = Layering(config, build)
    if not layering.image or not layering.build_is("Succeeded") or _INTERNAL_REGISTRY.match(layering.image):
        return ""
    return layering.image


def _pool_of(os_config: Obj) -> str:
    return str(dig(os_config, "spec", "machineConfigPool", "name", default=""))


def _built_for(build: Obj) -> tuple[str, str]:
    name = dig(build, "spec", "machineOSConfig", "name", default="")
    return str(name), str(dig(build, "spec", "machineConfig", "name", default=""))
