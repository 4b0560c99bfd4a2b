"""Generates ``97-ROLE-generated-kubelet`` from Node ``cluster``: cgroup mode of all nodes, latency profile of workers.

Source: reference machine-config 1.2, ``syncNodeConfigHandler``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller, Watch, spec_differs
from syncline.control.plan import Plan, Stalled
from syncline.kube.kinds.machineconfiguration import CONTROLLER_CONFIG, MACHINE_CONFIG, MACHINE_CONFIG_POOL
from syncline.kube.kinds.openshiftconfig import API_SERVER_CONFIG, NODE_CONFIG
from syncline.kube.objects import Obj, ObjectRef, dig, name_of
from syncline.kube.yaml import loading as yaml
from syncline.machineconfig.generating.kubelet import schema
from syncline.machineconfig.generating.kubelet.cgroups import CgroupError, with_cgroup_arguments
from syncline.machineconfig.generating.kubelet.files import KUBELET_CONF, latency_profile
from syncline.machineconfig.generating.making import file_of, made_config, writes
from syncline.machineconfig.generating.templates.bases import kubelet_configuration
from syncline.machineconfig.names import CONTROLLER_CONFIG_NAME
from syncline.machineconfig.render.rendering import Release

_CONTROLLER = ObjectRef(CONTROLLER_CONFIG.group, CONTROLLER_CONFIG.kind, "", CONTROLLER_CONFIG_NAME)
_SERVER = ObjectRef(API_SERVER_CONFIG.group, API_SERVER_CONFIG.kind, "", "cluster")
CLUSTER = ObjectRef(NODE_CONFIG.group, NODE_CONFIG.kind, "", "cluster")
BUILT_IN = ("master", "worker", "arbiter")


@dataclass(frozen=True)
class NodesObserved:
    """The planner's input. ``node``: config.openshift.io Node ``cluster``."""

    node: Obj
    controller_config: Obj
    api_server: Obj | None
    pools: tuple[Obj, ...]
    configs: Mapping[str, Obj]
    release: Release


def plan_nodes(observed: NodesObserved) -> Plan:
    """Return the plan of one reconcile; pure."""
    try:
        wanted = [_config(observed, name_of(pool)) for pool in sorted(observed.pools, key=name_of)]
    except CgroupError as error:
        return Plan(outcome=Stalled(str(error), "set spec.cgroupMode of Node cluster to v2"), why=str(error))
    changes = writes(wanted, observed.configs, "Node cluster asks for it")
    return Plan(steps=(changes,) if changes else (), why=f"{len(wanted)} pools have the settings of Node cluster")


def _config(observed: NodesObserved, role: str) -> Obj:
    kubelet = kubelet_configuration(observed.controller_config, observed.api_server)
    if role == "worker":
        kubelet, error = latency_profile(kubelet, observed.node)
        if error is not None:
            raise CgroupError(error)
    identity = {key: kubelet[key] for key in ("apiVersion", "kind")}
    text = yaml.dump(schema.encode(schema.decode(kubelet)) | identity)
    spec: Obj = {}
    if role in BUILT_IN:
        name = f"97-{role}-generated-kubelet"
        before = dig(observed.configs.get(name), "spec", "kernelArguments", default=[]) or []
        mode = str(dig(observed.node, "spec", "cgroupMode", default="") or "")
        spec["kernelArguments"] = with_cgroup_arguments(mode, before)
    files = [file_of(KUBELET_CONF, text)]
    return made_config(f"97-{role}-generated-kubelet", role, observed.release, files=files, spec=spec)


def _plan(observed: NodesObserved, now: datetime) -> Plan:
    return plan_nodes(observed)


def _of_config(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    return _the_one(obj, cache) if name_of(obj).startswith("97-") else ()


def _the_one(_obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    return (CLUSTER,)


def node_config_controller(release: Release) -> Controller[NodesObserved]:
    """Return the controller of kind Node of config.openshift.io."""

    def observe(cache: Snapshot, ref: ObjectRef) -> NodesObserved | None:
        node, config = cache.get(ref), cache.get(_CONTROLLER)
        if ref != CLUSTER or node is None or config is None:
            return None
        if not all(cache.has_synced(kind.group_kind) for kind in (MACHINE_CONFIG, MACHINE_CONFIG_POOL)):
            return None
        return NodesObserved(
            node=node,
            controller_config=config,
            api_server=cache.get(_SERVER),
            pools=tuple(cache.objects(MACHINE_CONFIG_POOL.group_kind)),
            configs={name_of(one): one for one in cache.objects(MACHINE_CONFIG.group_kind)},
            release=release,
        )

    return Controller(
        name="machine-config-nodes",
        kind=NODE_CONFIG.group_kind,
        watches=(
            Watch(MACHINE_CONFIG.group_kind, _of_config, spec_differs),
            Watch(MACHINE_CONFIG_POOL.group_kind, _the_one, spec_differs),
            Watch(CONTROLLER_CONFIG.group_kind, _the_one, spec_differs),
            Watch(API_SERVER_CONFIG.group_kind, _the_one, spec_differs),
        ),
        observe=observe,
        plan=_plan,
    )
