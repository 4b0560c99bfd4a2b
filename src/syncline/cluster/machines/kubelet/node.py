"""The kubelet's Node: it registers once per boot, reports capacity and conditions, and sends heartbeats.

A Node with the annotation ``syncline.dev/machine: simulated`` has a simulated machine, created when such a Node first
appears; so creating a Node adds a machine, and a restart of this process finds them again. A machine is deleted with
its Node, even while it is off or boots; a new Node with the same name is another machine. In virtual time, heartbeats
without a change are not written; live, leases are renewed as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias, assert_never

from syncline.base.action import Action
from syncline.base.clock import Clock, format_micro_time, format_time, time_or_none
from syncline.cluster.builtin.pods import condition
from syncline.cluster.machines.kubelet.observe import EPHEMERAL_STORAGE, machine_ip
from syncline.cluster.machines.machine import MachineSpec, MachineState, Power
from syncline.cluster.machines.simulated import Machines
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.plan import Create, Emit, Patch, Plan, Requeue, SetStatus, set_status
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, annotations_of, dig, labels_of, name_of, uid_of
from syncline.kube.schema.extensions import MACHINE, SIMULATED
from syncline.kube.version import GIT_VERSION

__all__ = [
    "MACHINE",
    "NODE_KEEPER",
    "AddMachine",
    "HasNode",
    "NodeHandler",
    "PassTime",
    "Registered",
    "RemoveMachine",
    "node_controller",
    "node_object",
]

NODE_KEEPER = "kubelet-node"
"""Name of the controller."""

NODE = GroupKind("", "Node")
LEASE = GroupKind("coordination.k8s.io", "Lease")
LEASE_GVK = GVK("coordination.k8s.io", "v1", "Lease")
LEASES = "kube-node-lease"
BOOTS = "syncline.dev/boots"
"""Number of boots of a simulated machine; it continues after a restart of this process."""
SPEC = "syncline.dev/machine-"
LEASE_EVERY_S = 10.0
LEASE_SECONDS = 40
CACHE_WAIT_S = 0.1
VERSION = GIT_VERSION
COMPONENT = "kubelet"
OS_IMAGE = "Simulated Linux"


# -- machines and nodes in each other's words ------------------------------------------------------------------------


def node_object(spec: MachineSpec, number: int | None = None) -> Obj:
    """Return the Node of a machine; creating it in the API creates the machine."""
    labels = {
        "beta.kubernetes.io/arch": spec.arch,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": spec.arch,
        "kubernetes.io/hostname": spec.name,
        "kubernetes.io/os": "linux",
    }
    if spec.zone:
        labels["topology.kubernetes.io/zone"] = spec.zone
    annotations = {
        MACHINE: SIMULATED,
        f"{SPEC}cpu": spec.cpu,
        f"{SPEC}memory": spec.memory,
        f"{SPEC}pods": str(spec.pods),
    }
    node: Obj = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": spec.name, "labels": labels | dict(spec.labels), "annotations": annotations},
        "spec": {},
    }
    if spec.taints:
        node["spec"]["taints"] = [dict(taint) for taint in spec.taints]
    if number is not None:
        cidr = f"10.{128 + number // 256}.{number % 256}.0/24"
        node["spec"] |= {"podCIDR": cidr, "podCIDRs": [cidr]}
    return node


def spec_of_node(node: Obj) -> MachineSpec | None:
    """Return the machine that a Node describes; None if it is not simulated."""
    said = annotations_of(node)
    if said.get(MACHINE) != SIMULATED:
        return None
    usual = MachineSpec(name_of(node))
    labels = labels_of(node)
    pods = said.get(f"{SPEC}pods", "")
    return MachineSpec(
        name_of(node),
        cpu=said.get(f"{SPEC}cpu", usual.cpu),
        memory=said.get(f"{SPEC}memory", usual.memory),
        pods=int(pods) if pods.isdigit() else usual.pods,
        arch=labels.get("kubernetes.io/arch", usual.arch),
        zone=labels.get("topology.kubernetes.io/zone", ""),
    )


# -- actions ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddMachine(Action):
    spec: MachineSpec
    boots: int
    node_uid: str
    reason: str

    def describe(self) -> str:
        return f"add machine {self.spec.name}"


@dataclass(frozen=True, slots=True)
class RemoveMachine(Action):
    name: str
    reason: str

    def describe(self) -> str:
        return f"remove machine {self.name}"


@dataclass(frozen=True, slots=True)
class Registered(Action):
    """Record that the machine created its Node in this boot."""

    name: str
    boot_id: str
    reason: str

    def describe(self) -> str:
        return f"note that {self.name} is registered"


@dataclass(frozen=True, slots=True)
class HasNode(Action):
    """Record the Node of the machine."""

    name: str
    node_uid: str
    reason: str

    def describe(self) -> str:
        return f"note the Node of {self.name}"


@dataclass(frozen=True, slots=True)
class PassTime(Action):
    """Complete a stop or boot that is due."""

    name: str
    reason: str

    def describe(self) -> str:
        return f"let time pass on {self.name}"


NodeAction: TypeAlias = AddMachine | RemoveMachine | Registered | HasNode | PassTime


class NodeHandler:
    def __init__(self, machines: Machines, clock: Clock) -> None:
        self._machines = machines
        self._clock = clock

    def handle(self, action: NodeAction) -> Generator[Any, Any, Any]:
        yield from ()
        match action:
            case AddMachine(spec=spec, boots=boots, node_uid=uid):
                self._machines.add(spec, boots=boots).node_uid = uid
            case RemoveMachine(name=name):
                self._machines.remove(name)
            case Registered(name=name, boot_id=boot):
                machine = self._machines.get(name)
                if machine is not None:
                    machine.registered_boot = boot
            case HasNode(name=name, node_uid=uid):
                machine = self._machines.get(name)
                if machine is not None:
                    machine.node_uid = uid
            case PassTime(name=name):
                machine = self._machines.get(name)
                if machine is not None:
                    machine.at(self._clock.now())
            case _ as never:
                assert_never(never)


# -- observe and plan ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """``state`` is None while the Node has no machine yet."""

    name: str
    node: Obj | None
    spec: MachineSpec
    state: MachineState | None = None
    registered: bool = False
    node_uid: str = ""
    """Uid of the machine's known Node."""
    number: int = 0
    lease: Obj | None = None
    complete: bool = True
    """False before all Nodes and leases are listed."""
    disk_full: bool = False


def node_controller(machines: Machines, *, heartbeats: bool) -> Controller[ObservedNode]:
    """Return the controller; ``heartbeats``: renew leases (live)."""
    reads = (LEASE,) if heartbeats else ()

    def observe(cache: Snapshot, ref: ObjectRef) -> ObservedNode | None:
        node = cache.get(ref)
        machine = machines.get(ref.name)
        if machine is None:
            spec = spec_of_node(node) if node is not None else None
            return ObservedNode(ref.name, node, spec) if spec is not None else None
        if machine.cut_off_at is not None:
            return None
        state = machine.state
        lease = cache.get(ObjectRef(LEASE.group, LEASE.kind, LEASES, ref.name)) if heartbeats else None
        registered = machine.registered_boot == state.boot_id
        number = machines.number(ref.name)
        complete = all(cache.has_synced(kind) for kind in (NODE, *reads))
        uid, full = machine.node_uid, machine.disk_full
        return ObservedNode(ref.name, node, machine.spec, state, registered, uid, number, lease, complete, full)

    def plan(observed: ObservedNode, now: datetime) -> Plan:
        return plan_node(observed, now, heartbeats=heartbeats)

    return Controller(
        name=NODE_KEEPER,
        kind=NODE,
        reads=reads,
        observe=observe,
        plan=plan,
    )


def plan_node(observed: ObservedNode, now: datetime, *, heartbeats: bool) -> Plan:
    """Plan one machine's Node. Pure."""
    state = observed.state
    if state is None:
        boots = annotations_of(observed.node or {}).get(BOOTS, "")
        uid = uid_of(observed.node or {})
        add = AddMachine(observed.spec, int(boots) if boots.isdigit() else 1, uid, "its Node stands for a machine")
        return Plan(((add,),), Requeue(0.0, "then it registers"))
    if not observed.complete:
        return Plan((), Requeue(CACHE_WAIT_S, "Nodes are not listed yet"))
    if _is_gone(observed):
        remove = RemoveMachine(observed.name, "its Node was deleted")
        return Plan(((remove,),), why="a machine goes with its Node")
    if state.changes_at is not None and state.changes_at <= now:
        return Plan(((PassTime(observed.name, "a stop or boot has ended"),),), Requeue(0.0, "then it tells"))
    if observed.node is None:
        return _register(observed, state)
    steps: list[tuple[Any, ...]] = []
    if not observed.node_uid:
        steps.append((HasNode(observed.name, uid_of(observed.node), "the machine goes with it"),))
    if state.power is Power.ON and not observed.registered:
        report = _boots(observed, state)
        steps.append((*report, Registered(observed.name, state.boot_id, "its Node exists")))
        if report:  # later Events refer to the Node in this state
            return Plan(tuple(steps), Requeue(0.0, "then it tells how it is"), "tell that the machine has booted")
    steps += [
        step
        for step in (_status(observed, observed.node, state, now), _renewal(observed, state, now, heartbeats))
        if step
    ]
    return Plan(tuple(steps), _next_look(state, now, heartbeats=heartbeats), "tell how the machine is")


def _is_gone(observed: ObservedNode) -> bool:
    """Return whether the machine's Node, or the one created in this boot, was deleted."""
    if observed.node is None:
        return bool(observed.node_uid) or observed.registered
    return observed.node_uid not in ("", uid_of(observed.node))


def _register(observed: ObservedNode, state: MachineState) -> Plan:
    if state.power is not Power.ON:
        return Plan(why="the machine is down")
    made = Registered(observed.name, state.boot_id, "once per boot")
    node = node_object(observed.spec, observed.number)
    node["metadata"]["annotations"][BOOTS] = str(state.boots)
    return Plan(((Create(node, "the machine has no Node"),), (made,)), why="register")


def _boots(observed: ObservedNode, state: MachineState) -> tuple[Patch, ...]:
    """Record the boot, unless the Node has it already, since a restarted process continues from the Node's count."""
    body: Obj = {"metadata": {"annotations": {BOOTS: str(state.boots)}}}
    if not dig(observed.node, "spec", "podCIDR"):
        body["spec"] = {
            key: node_object(observed.spec, observed.number)["spec"][key] for key in ("podCIDR", "podCIDRs")
        }
    usual = node_object(observed.spec)["metadata"]["labels"]
    lacking = {key: value for key, value in usual.items() if key not in labels_of(observed.node or {})}
    if lacking:
        body["metadata"]["labels"] = lacking
    said = annotations_of(observed.node or {}).get(BOOTS) == str(state.boots)
    if said and body.keys() == {"metadata"} and not lacking:
        return ()
    return (Patch(GVK("", "v1", "Node"), "", observed.name, body, "the machine has booted"),)


def _next_look(state: MachineState, now: datetime, *, heartbeats: bool) -> Requeue:
    if state.changes_at is not None:
        return Requeue((state.changes_at - now).total_seconds(), "a stop or boot under way")
    every = LEASE_EVERY_S if heartbeats else 3600.0
    return Requeue(every, "the next sign of life", background=True)


# -- what a kubelet writes -------------------------------------------------------------------------------------------


def _status(observed: ObservedNode, node: Obj, state: MachineState, now: datetime) -> tuple[SetStatus | Emit, ...]:
    """Update the status of a running machine; one that is off or boots cannot report."""
    if state.power in (Power.OFF, Power.BOOTING):
        return ()
    room = {"cpu": observed.spec.cpu, "memory": observed.spec.memory, "pods": str(observed.spec.pods)}
    new = dict(node.get("status") or {})
    new["capacity"] = dict(new.get("capacity") or {}) | room | {"ephemeral-storage": EPHEMERAL_STORAGE}
    new["allocatable"] = dict(new.get("allocatable") or {}) | room | {"ephemeral-storage": EPHEMERAL_STORAGE}
    addresses = (("InternalIP", machine_ip(observed.number)), ("Hostname", observed.name))
    new["addresses"] = [{"type": kind, "address": address} for kind, address in addresses]
    new["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 10250}}
    new["nodeInfo"] = _node_info(observed, state)
    new["conditions"] = _conditions(node, state, now, full=observed.disk_full)
    events = _state_events(node, new, state)
    return (*set_status(node, new, "the machine tells how it is"), *events)


def _node_info(observed: ObservedNode, state: MachineState) -> Obj:
    plain = state.boot_id.replace("-", "")
    return {
        "architecture": observed.spec.arch,
        "bootID": state.boot_id,
        "containerRuntimeVersion": "containerd://2.1.0",
        "kernelVersion": "6.12.0",
        "kubeProxyVersion": "",
        "kubeletVersion": VERSION,
        "machineID": plain[:8] + observed.name.encode().hex()[:24].rjust(24, "0"),
        "operatingSystem": "linux",
        "osImage": state.os_image or OS_IMAGE,
        "systemUUID": observed.name,
    }


_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)
_FULL = ("DiskPressure", "True", "KubeletHasDiskPressure", "kubelet has disk pressure")
_READY = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
_STOPPING = ("Ready", "False", "KubeletNotReady", "node is shutting down")


def _conditions(node: Obj, state: MachineState, now: datetime, *, full: bool) -> list[Obj]:
    healthy = (_FULL if full and each[0] == _FULL[0] else each for each in _HEALTHY)
    wanted = (*healthy, _READY if state.power is Power.ON else _STOPPING)
    mine = {each[0] for each in wanted}
    others = [each for each in dig(node, "status", "conditions", default=[]) if each.get("type") not in mine]
    return [*others, *(_condition(condition(node, each[0]), each, now) for each in wanted)]


def _condition(old: Obj | None, wanted: tuple[str, str, str, str], now: datetime) -> Obj:
    """Return a condition; an unchanged one keeps its heartbeat time."""
    kind, status, reason, message = wanted
    if old is not None and (old.get("status"), old.get("reason"), old.get("message")) == (status, reason, message):
        return old
    since = old["lastTransitionTime"] if old is not None and old.get("status") == status else format_time(now)
    return {
        "type": kind,
        "status": status,
        "lastHeartbeatTime": format_time(now),
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }


def _state_events(node: Obj, new: Obj, state: MachineState) -> tuple[Emit, ...]:
    old_ready, old_boot = condition(node, "Ready"), dig(node, "status", "nodeInfo", "bootID", default="")
    found: list[Emit] = []
    name = name_of(node)
    if old_boot and old_boot != state.boot_id:
        found.append(
            Emit(node, "Rebooted", f"Node {name} has been rebooted, boot id: {state.boot_id}", COMPONENT, True)
        )
    was = old_ready.get("status") if old_ready else ""
    now_ready = new["conditions"][-1]["status"]
    if was != now_ready:
        what = "NodeReady" if now_ready == "True" else "NodeNotReady"
        found.append(Emit(node, what, f"Node {name} status is now: {what}", COMPONENT))
    return tuple(found)


def _renewal(observed: ObservedNode, state: MachineState, now: datetime, heartbeats: bool) -> tuple[Any, ...]:
    """Renew the lease in ``kube-node-lease`` every ten seconds."""
    if not heartbeats or state.power is not Power.ON:
        return ()
    stamp = format_micro_time(now)
    if observed.lease is None:
        spec = {"holderIdentity": observed.name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": stamp}
        lease = {
            "apiVersion": LEASE_GVK.api_version,
            "kind": LEASE.kind,
            "metadata": {"name": observed.name, "namespace": LEASES},
            "spec": spec,
        }
        return (Create(lease, "a sign of life"),)
    renewed = time_or_none(dig(observed.lease, "spec", "renewTime"))
    if renewed is not None and renewed + timedelta(seconds=LEASE_EVERY_S * 0.9) > now:
        return ()
    return (Patch(LEASE_GVK, LEASES, observed.name, {"spec": {"renewTime": stamp}}, "a sign of life"),)
