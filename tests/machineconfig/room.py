"""A cluster with simulated machines, the machine-config controllers and scripted agents, in virtual time.

The agents know annotations only: they ask for the drain, reboot, ask for the uncordon and say Done, as upstream's
daemon does on the nodes of a pool. Rendered configs are made by the tests, unless the world ``renders``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.controllers import controller_of

from syncline.assembly.machines.role import MachineConfigSettings, machineconfig_role, pool_controllers
from syncline.assembly.machines.simulatedhosts import SimulatedHosts
from syncline.assembly.roles import SimulatedDriver, start
from syncline.base.clock import format_time, parse_time
from syncline.cluster.machines.kubelet.node import node_object
from syncline.cluster.machines.kubelet.power import REBOOT, REBOOT_DONE
from syncline.cluster.machines.machine import MachineSpec
from syncline.control.cache import Snapshot
from syncline.control.controller import Watch
from syncline.control.executor import kube_handlers
from syncline.control.loop import ControlLoop
from syncline.control.plan import Patch, Plan, Requeue
from syncline.control.virtual import LoopActor
from syncline.gitops.application.manifests import SourceReader
from syncline.kube.client import Transport
from syncline.kube.kinds.machineconfiguration import machine_config_crds
from syncline.kube.kinds.openshiftconfig import openshift_config_crds
from syncline.kube.mapper import Mapper
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, annotations_of, dig, name_of, resource_version
from syncline.machineconfig.names import (
    CURRENT,
    DESIRED,
    DESIRED_DRAIN,
    GROUP,
    LAST_DRAIN,
    REASON,
    STATE,
)
from syncline.rehearsal.seams import CrashingTransport
from syncline.rehearsal.world import World

NODE = GVK("", "v1", "Node")
NODES = "/api/v1/nodes"
APIS = f"/apis/{GROUP}/v1"
POOLS = f"{APIS}/machineconfigpools"
RECORDS = f"{APIS}/machineconfignodes"
HOLDS = "/apis/syncline.dev/v1alpha1/holds"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EVENTS = "/api/v1/events"
ROLE = "node-role.kubernetes.io"
ASKED = "test/drain-asked"
GIVES_UP = timedelta(hours=1)


@dataclass(frozen=True)
class ScriptedAgent:
    """``reboots``: an update drains and reboots; otherwise it is done at once. ``first``: the config of birth."""

    reboots: bool = True
    first: str = ""
    name: str = "scripted-agent"
    kind: GroupKind = NODE.group_kind
    watches: tuple[Watch, ...] = ()
    reads: tuple[GroupKind, ...] = ()

    def observe(self, cache: Snapshot, ref: ObjectRef) -> Obj | None:
        return cache.get(ref)

    def plan(self, node: Obj, now: datetime) -> Plan:
        have = annotations_of(node)
        if not have.get(CURRENT):
            born = have.get("test/born-with", "")
            return _write(node, {CURRENT: born, DESIRED: born, STATE: "Done"}) if born else Plan(why="not ours")
        target = have.get(DESIRED, "")
        if have[CURRENT] == target and have.get(STATE) == "Done":
            return Plan(why="done")
        if target in have.get("test/broken", "").split(","):
            return (
                _write(node, {STATE: "Degraded", REASON: "the config is broken"})
                if have.get(STATE) != "Degraded"
                else Plan(why="degraded")
            )
        if have.get(STATE) not in ("Working", "Degraded"):
            return _write(node, {STATE: "Working"})
        if not self.reboots:
            return _write(node, {CURRENT: target, STATE: "Done", REASON: ""})
        return self._with_reboot(node, have, target, now)

    def _with_reboot(self, node: Obj, have: dict[str, str], target: str, now: datetime) -> Plan:
        drain, uncordon = f"drain-{target}", f"uncordon-{target}"
        asked, applied = have.get(DESIRED_DRAIN, ""), have.get(LAST_DRAIN, "")
        if asked not in (drain, uncordon):
            return _write(node, {DESIRED_DRAIN: drain, ASKED: format_time(now)})
        if asked != applied:
            overdue = parse_time(have[ASKED]) + GIVES_UP
            if asked == drain and now >= overdue and have.get(STATE) != "Degraded":
                text = f"failed to drain node: {name_of(node)} after 1 hour. Please see machine-config-controller logs"
                return _write(node, {STATE: "Degraded", REASON: text})
            wait = (overdue - now).total_seconds() if now < overdue else 600.0
            return Plan(outcome=Requeue(wait, "the drain", background=True), why="waits for the drain")
        if asked == uncordon:
            return _write(node, {CURRENT: target, STATE: "Done", REASON: ""})
        if have.get(REBOOT) != target:
            return _write(node, {REBOOT: target})
        return _write(node, {DESIRED_DRAIN: uncordon}) if have.get(REBOOT_DONE) == target else Plan(why="boots")


def _write(node: Obj, notes: dict[str, str]) -> Plan:
    body = {"metadata": {"annotations": notes, "resourceVersion": resource_version(node)}}
    return Plan(((Patch(NODE, "", name_of(node), body, "the agent"),),), why="the agent goes on")


def controller_config(topology: str = "HighlyAvailable") -> Obj:
    """As much of it as its definition asks for."""
    infra = {"apiVersion": "config.openshift.io/v1", "kind": "Infrastructure"}
    infra |= {"metadata": {"name": "cluster"}, "status": {"controlPlaneTopology": topology}}  # type: ignore[dict-item]
    dns = {"apiVersion": "config.openshift.io/v1", "kind": "DNS", "metadata": {"name": "cluster"}}
    texts = ("baseOSContainerImage", "cloudProviderConfig", "clusterDNSIP", "ipFamilies", "releaseImage")
    nothing = ("additionalTrustBundle", "cloudProviderCAData", "network", "proxy")
    data = {"kubeAPIServerServingCAData": "YQ==", "rootCAData": "YQ=="}
    spec: Obj = {"infra": infra, "dns": dns, "images": {}}
    return spec | dict.fromkeys(texts, "x") | dict.fromkeys(nothing) | data


def dying_at_work(inner: Transport, after: int) -> CrashingTransport:
    """Dies after the n-th write that is none of the room's Lease, which is renewed all the time."""
    return CrashingTransport(inner, after, ("/leases",))


class NoSource:
    """No repository is read here."""


class PoolWorld(World):
    """``nodes``: name → labels' roles."""

    def __init__(
        self,
        roles: dict[str, tuple[str, ...]],
        *,
        seed: int = 1,
        shuffle: bool = False,
        reboots: bool = True,
        renders: bool = False,
        reader: SourceReader | None = None,
        machines: bool = False,
    ) -> None:
        """``machines``: the real agent works on the simulated machines; otherwise a script plays it."""
        super().__init__(reader or NoSource(), nodes=0, seed=seed, shuffle=shuffle)  # type: ignore[arg-type]
        self._renders = renders
        self.hosts = SimulatedHosts(self.machines.room.machines, self.clock) if machines else None
        self._unfollow: Callable[[], None] = lambda: None
        for crd in (*machine_config_crds(), *(openshift_config_crds() if renders else ())):
            self.send("POST", CRDS, crd)
        self.driver.advance(5)
        self.make(f"{APIS}/controllerconfigs", "ControllerConfig", "machine-config-controller", controller_config())
        self._agents = ScriptedAgent(reboots=reboots)
        if not machines:
            self.start_agents()
        self.start_room()
        for name, mine in roles.items():
            self.add_node(name, *mine)

    # -- who runs ------------------------------------------------------------------------------------------------

    def start_agents(self) -> None:
        mapper = Mapper()
        handlers = dict(kube_handlers(mapper, self.clock, "agents"))
        loop = ControlLoop(
            [controller_of(self._agents)],
            mapper=mapper,
            handlers=handlers,
            clock=self.clock,
            journal=self.journal,
            strict=True,
        )
        self.agents_actor = LoopActor(loop, self.admin, self.clock, self.order)
        self.driver.add(self.agents_actor)

    def start_room(self, wrap: Callable[[Transport], Transport] | None = None) -> None:
        """New machine-config controllers over the same cluster, as after a restart."""
        settings = MachineConfigSettings(self.settings.control_namespace)
        only = None if self._renders else pool_controllers(settings)
        self._unfollow()
        home: Transport = self.admin
        if hasattr(self, "room_actor"):
            self.driver.actors.remove(self.room_actor)
        driver = SimulatedDriver(self.clock, self.journal, wrap(home) if wrap else home, self.order, strict=True)
        self._unfollow = start(machineconfig_role(settings, only=only, hosts=self.hosts), driver)
        self.room_actor = driver.actor
        self.driver.add(self.room_actor)

    # -- objects -------------------------------------------------------------------------------------------------

    def make(self, path: str, kind: str, name: str, spec: Obj, **metadata: Any) -> Obj:
        api = path.split("/")[2:4] if path.startswith("/apis/") else ["v1"]
        body = {"apiVersion": "/".join(api), "kind": kind, "metadata": {"name": name} | metadata, "spec": spec}
        found: Obj = self.send("POST", path, body)
        return found

    def get(self, path: str) -> Obj:
        found: Obj = self.send("GET", path)
        return found

    def merge(self, path: str, body: Obj) -> Obj:
        found: Obj = self.send("PATCH", path, body, "application/merge-patch+json")
        return found

    def add_node(
        self, name: str, *roles: str, born: str = "rendered-worker-a", cpu: str = "8", notes: Obj | None = None
    ) -> None:

        labels = {f"{ROLE}/{role}": "" for role in roles}
        node = node_object(MachineSpec(name, labels=labels, cpu=cpu))
        node["metadata"].setdefault("annotations", {}).update({"test/born-with": born} | (notes or {}))
        self.send("POST", NODES, node)

    def pool(self, name: str = "worker", target: str = "", **spec: Any) -> None:
        """The target is the node's config of birth unless another one is given."""
        target = target or f"rendered-{name}-a"
        body = {
            "machineConfigSelector": {"matchLabels": {f"{GROUP}/role": "worker"}},
            "nodeSelector": {"matchLabels": {f"{ROLE}/{name}": ""}},
            "configuration": {"name": target},
        }
        self.make(POOLS, "MachineConfigPool", name, body | spec)

    def target(self, config: str, pool: str = "worker") -> None:
        """As the render controller does it."""
        self.merge(f"{POOLS}/{pool}", {"spec": {"configuration": {"name": config}}})

    def hold(self, name: str = "mine", minutes: float = 60, pool: str = "worker") -> None:
        until = format_time(self.clock.now() + timedelta(minutes=minutes))
        spec = {"pools": [pool], "owner": "ann", "reason": "a look at the disks", "expiresAt": until}
        self.make(HOLDS, "Hold", name, spec)

    # -- what is to be seen --------------------------------------------------------------------------------------

    def nodes(self) -> dict[str, Obj]:
        return {name_of(node): node for node in self.get(NODES)["items"]}

    def condition(self, kind: str, pool: str = "worker") -> Obj:
        found = dig(self.get(f"{POOLS}/{pool}"), "status", "conditions", default=[])
        return next((each for each in found if each["type"] == kind), {})

    def counts(self, pool: str = "worker") -> tuple[int, int, int, int]:
        """machines, updated, ready, unavailable."""
        status = self.get(f"{POOLS}/{pool}").get("status") or {}
        keys = ("machineCount", "updatedMachineCount", "readyMachineCount", "unavailableMachineCount")
        return tuple(status.get(key) or 0 for key in keys)  # type: ignore[return-value]

    def events(self, reason: str) -> list[str]:
        return [each["message"] for each in self.get(EVENTS)["items"] if each["reason"] == reason]

    def updated(self, config: str, pool: str = "worker") -> bool:
        name = dig(self.get(f"{POOLS}/{pool}"), "status", "configuration", "name")
        return bool(name == config and self.condition("Updated", pool).get("status") == "True")

    def until_updated(self, config: str, pool: str = "worker", limit_s: float = 7200) -> float:
        return self.driver.until(lambda: self.updated(config, pool), limit_s=limit_s)

    def at_rest(self) -> None:
        """Machines have booted, agents have said what they are at, pools have counted."""
        self.driver.advance(90)

    def reboots(self) -> dict[str, int]:
        return {name: int(annotations_of(node).get("syncline.dev/boots", "0")) for name, node in self.nodes().items()}
