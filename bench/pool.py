"""``python -m bench pool [--quick]``: a pool of five thousand simulated machines is brought to a new config.

Nothing is left out: the render controller makes the config, the pool controller targets, each node is cordoned and
drained, the agent writes files on the simulated disk, the machine reboots, and all phases are told. In virtual time,
on one core. First with machines alone, then with pods on them that budgets protect: whether a drain can end is played
before each cordon, pods are evicted, made anew, placed and started elsewhere.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bench.day import NoSources, budget, template, workload
from bench.processes import resident_mib_of
from bench.table import Table
from syncline.assembly.machines.role import MachineConfigSettings, machineconfig_role
from syncline.assembly.machines.simulatedhosts import SimulatedHosts
from syncline.assembly.roles import SimulatedDriver, start
from syncline.base.interpreter import tune_interpreter
from syncline.cluster.machines.kubelet.node import node_object
from syncline.cluster.machines.machine import MachineSpec
from syncline.control.loop import Observer
from syncline.control.plan import Evict, Result
from syncline.control.workqueue import Key
from syncline.kube.kinds.machineconfiguration import machine_config_crds
from syncline.kube.kinds.openshiftconfig import openshift_config_crds
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig
from syncline.machineconfig.names import GROUP, POOL
from syncline.machineconfig.pools.controller import POOLS
from syncline.rehearsal.world import World

__all__ = ["Pods", "PoolOfMachines", "controller_config", "figures", "rolled"]

APIS = f"/apis/{GROUP}/v1"
ROLE = f"{GROUP}/role"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ZONES = ("a", "b", "c")
WAIT_S = 40 * 86_400


def controller_config() -> Obj:
    infra = {"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure", "metadata": {"name": "cluster"}}
    dns = {"apiVersion": "config.openshift.io/v1", "kind": "DNS", "metadata": {"name": "cluster"}}
    texts = ("baseOSContainerImage", "cloudProviderConfig", "clusterDNSIP", "ipFamilies", "releaseImage")
    nothing = ("additionalTrustBundle", "cloudProviderCAData", "network", "proxy")
    spec: Obj = {"infra": infra | {"status": {"controlPlaneTopology": "HighlyAvailable"}}, "dns": dns, "images": {}}
    spec |= dict.fromkeys(texts, "x") | dict.fromkeys(nothing)
    spec |= {"kubeAPIServerServingCAData": "YQ==", "rootCAData": "YQ=="}
    return _object("ControllerConfig", "machine-config-controller", spec)


def _object(kind: str, name: str, spec: Obj, labels: dict[str, str] | None = None) -> Obj:
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def _pool(name: str, limit: Any) -> Obj:
    selectors = {
        "machineConfigSelector": {"matchLabels": {ROLE: name}},
        "nodeSelector": {"matchLabels": {f"node-role.kubernetes.io/{name}": ""}},
    }
    return _object("MachineConfigPool", name, selectors | {"maxUnavailable": limit})


def _config(name: str, path: str, text: str) -> Obj:
    entry = {"path": path, "mode": 0o644, "overwrite": True, "contents": {"source": f"data:,{text}"}}
    config = {"ignition": {"version": "3.4.0"}, "storage": {"files": [entry]}}
    return _object("MachineConfig", name, {"config": config}, {ROLE: "worker"})


@dataclass(frozen=True, slots=True)
class Pods:
    """What runs on the machines: Deployments with a budget each, of which ``down`` replicas may be missing, and
    DaemonSets. ``a_space``: Deployments of a namespace."""

    deployments: int
    replicas: int
    daemon_sets: int = 1
    down: str | int = "10%"
    a_space: int = 10

    def __str__(self) -> str:
        daemons = f", {self.daemon_sets} DaemonSets" if self.daemon_sets else ""
        return f"{self.deployments * self.replicas:,} pods, {self.deployments:,} budgets{daemons}"


class PoolOfMachines:
    """``nodes`` workers, ``limit`` of them at a time; made when all have their first config."""

    def __init__(self, nodes: int, limit: Any = "10%", seed: int = 1) -> None:
        world = self.world = World(NoSources(), nodes=0, seed=seed)  # type: ignore[arg-type]
        hosts = SimulatedHosts(world.machines.room.machines, world.clock)
        for crd in (*machine_config_crds(), *openshift_config_crds()):
            world.send("POST", CRDS, crd)
        world.driver.advance(5)
        world.send("POST", f"{APIS}/controllerconfigs", controller_config())
        settings = MachineConfigSettings(world.settings.control_namespace)
        driver = SimulatedDriver(world.clock, world.journal, world.admin, strict=True)
        start(machineconfig_role(settings, hosts=hosts), driver)
        world.driver.add(driver.actor)
        self.loop = driver.actor.loop
        for name in ("master", "worker"):
            world.send("POST", f"{APIS}/machineconfigpools", _pool(name, limit))
        world.driver.until(lambda: self.target != "", limit_s=300)
        self._count = nodes
        labels = {"node-role.kubernetes.io/worker": ""}
        for index in range(nodes):
            spec = MachineSpec(f"worker-{index:04}", zone=ZONES[index % 3], labels=labels)
            world.send("POST", "/api/v1/nodes", node_object(spec))
        first = self.target
        world.driver.until(lambda: self._status("machineCount") == nodes and self.at(first), limit_s=WAIT_S)

    def run(self, pods: Pods) -> None:
        """Returns when all of them are ready."""
        send = self.world.send
        for number in range(pods.deployments):
            space = f"team-{number // pods.a_space}"
            if number % pods.a_space == 0:
                send(
                    "POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}}
                )
            name = f"app-{number}"
            apps = f"/apis/apps/v1/namespaces/{space}"
            send("POST", f"{apps}/deployments", workload("Deployment", name, template(name), replicas=pods.replicas))
            send("POST", f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets", budget(name, pods.down))
        for number in range(pods.daemon_sets):
            path = "/apis/apps/v1/namespaces/kube-system/daemonsets"
            send("POST", path, workload("DaemonSet", f"agent-{number}", template(f"agent-{number}")))
        self._pods = pods
        self.world.driver.until(self.all_ready, limit_s=WAIT_S)

    def all_ready(self) -> bool:
        """As the Deployments and DaemonSets themselves say."""
        found = self.world.cluster_actor.loop.cache
        ready = sum(
            int(dig(one, "status", key, default=0))
            for kind, key in (("Deployment", "readyReplicas"), ("DaemonSet", "numberReady"))
            for one in found.objects(GroupKind("apps", kind))
        )
        return ready == self._pods.deployments * self._pods.replicas + self._pods.daemon_sets * self._count

    @property
    def pool(self) -> Obj:
        found: Obj = self.world.send("GET", f"{APIS}/machineconfigpools/worker")
        return found

    @property
    def target(self) -> str:
        return str(dig(self._cached(), "spec", "configuration", "name", default="") or "")

    def _cached(self) -> Obj | None:
        return self.loop.cache.get(ObjectRef(*POOL, "", "worker"))

    def _status(self, key: str) -> Any:
        return dig(self._cached(), "status", key)

    def at(self, config: str) -> bool:
        """All machines have it, as the pool's status says."""
        return self._status("updatedMachineCount") == self._count and (
            dig(self._cached(), "status", "configuration", "name") == config
        )

    def roll(self, text: str) -> timedelta:
        """A new file for all; returns how long it took in virtual time."""
        before, began = self.target, self.world.clock.now()
        path = f"{APIS}/machineconfigs"
        self.world.send("POST", path, _config(f"99-{text}", f"/etc/{text}", text))
        self.world.driver.until(lambda: self.target != before, limit_s=300)
        self.world.driver.until(lambda: self.at(self.target), limit_s=WAIT_S)
        return self.world.clock.now() - began

    def pass_ms(self, runs: int) -> float:
        """The least processor time of a look by the pool controller after one node has changed."""
        controller = self.loop.controllers[POOLS]
        ref, cache = ObjectRef(*POOL, "", "worker"), self.loop.cache
        best = float("inf")
        for run in range(runs):
            node = cache.get(ObjectRef("", "Node", "", f"worker-{run % self._count:04}"))
            assert node is not None
            cache.put(GroupKind("", "Node"), dict(node))
            begun = time.process_time()
            controller.plan(controller.observe(cache, ref), self.world.clock.now())
            best = min(best, time.process_time() - begun)
        return best * 1000


class Moved(Observer):
    """Evictions that drains ask for from now on."""

    def __init__(self, pool: PoolOfMachines) -> None:
        self.evicted = self.refused = 0
        pool.loop.observers.append(self)

    def acted(self, key: Key, result: Result, began: datetime, ended: datetime) -> None:
        if isinstance(result.action, Evict):
            self.evicted += result.ok
            self.refused += not result.ok


def rolled(table: Table, nodes: int, limit: Any, pods: Pods | None = None) -> None:
    """One roll-out over so many machines."""
    table.title(f"{nodes:,} machines, maxUnavailable {limit}" + (f", {pods}" if pods is not None else ""))
    begun = time.process_time()
    pool = PoolOfMachines(nodes, limit)
    table.row("all join", f"{time.process_time() - begun:.1f} s CPU")
    if pods is not None:
        begun, writes = time.process_time(), pool.world.core.store.revision
        pool.run(pods)
        cpu, writes = time.process_time() - begun, pool.world.core.store.revision - writes
        table.row("all pods are ready", f"{cpu:.1f} s CPU", f"{writes / cpu:,.0f} writes/s")
    store, driver = pool.world.core.store, pool.world.driver
    begun, writes, passes = time.process_time(), store.revision, driver.steps
    moved = Moved(pool)
    took = pool.roll("motd")
    cpu, writes, passes = time.process_time() - begun, store.revision - writes, driver.steps - passes
    table.row("all are updated", f"{cpu:.1f} s CPU", f"{took} of virtual time")
    each = f"{writes / nodes:.1f} writes, {passes / nodes:.1f} passes"
    table.row("  a node", f"{cpu / nodes * 1000:.1f} ms", each)
    if pods is not None:
        table.row("  pods evicted", f"{moved.evicted:,}", f"{moved.refused:,} evictions refused by budgets")
    table.row("  passes per second", f"{passes / cpu:,.0f}/s", f"{writes / cpu:,.0f} writes/s")
    table.row("a look at the pool when one node changed", f"{pool.pass_ms(20):.1f} ms")
    table.row("resident", f"{resident_mib_of(os.getpid()):.0f} MiB")


def figures(table: Table, *, quick: bool) -> None:
    """Small pools first, so that what grows faster than the pool is seen."""
    tune_interpreter()  # as the server does
    for nodes, limit in ((200, "10%"),) if quick else ((500, "10%"), (500, 1), (5_000, "10%")):
        rolled(table, nodes, limit)
    for nodes in (100,) if quick else (100, 200, 400, 800):
        rolled(table, nodes, "10%", Pods(nodes // 10, 40))
