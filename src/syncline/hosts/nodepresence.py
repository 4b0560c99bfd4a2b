"""Registers a machine without a kubelet: creates its Node, updates its status and renews its Lease.

Runs in the loop of the node agent (``hosts/nodeagent.py``) if ``--register`` is given. A kubelet does all this itself.
The Node is tainted, since nothing here runs pods. Shapes and times: Kubernetes ``pkg/kubelet/nodestatus`` and
``pkg/kubelet/util/nodelease``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from syncline.base.clock import format_micro_time, format_time
from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.plan import Apply, Create, Plan, Requeue, set_status
from syncline.kube.objects import GVK, GroupKind, Obj, ObjectRef, dig, labels_of

NODE = GroupKind("", "Node")
LEASE = GVK("coordination.k8s.io", "v1", "Lease")
LEASES = "kube-node-lease"
LEASE_EVERY_S = 10.0
LEASE_SECONDS = 40
MANAGER = "syncline-node-agent"
NO_KUBELET = "syncline.dev/no-kubelet"
"""Taint of nodes without a kubelet. Pods that tolerate it would stay Pending there."""


_UNMEASURED = ("False", "NotMeasured", "the node agent does not measure it, and pods do not run here")
CONDITIONS = (
    ("MemoryPressure", *_UNMEASURED),
    ("DiskPressure", *_UNMEASURED),
    ("PIDPressure", *_UNMEASURED),
    ("Ready", "True", "NodeAgentReady", "the node agent works; there is no kubelet"),
)
"""All conditions that a kubelet writes; a missing one would become Unknown and stop the node's pool."""


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """Facts about the machine for its Node; empty if unknown."""

    boot_id: str
    machine_id: str = ""
    kernel: str = ""
    os_image: str = ""
    architecture: str = ""
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ObservedPresence:
    """What the controller reads; ``node`` is None while the cluster has none."""

    name: str
    node: Obj | None
    facts: MachineFacts
    labels: Mapping[str, str]


def presence_controller(
    node: str, facts: Callable[[], MachineFacts], labels: Mapping[str, str]
) -> Controller[ObservedPresence]:
    """Return the controller of the Node of this machine; ``facts`` is called at every renewal of the Lease."""

    def observe(cache: Snapshot, ref: ObjectRef) -> ObservedPresence | None:
        if ref.name != node or not cache.has_synced(NODE):
            return None
        return ObservedPresence(ref.name, cache.get(ref), facts(), labels)

    return Controller(
        name="node-presence",
        kind=NODE,
        observe=observe,
        plan=plan_presence,
    )


def plan_presence(observed: ObservedPresence, now: datetime) -> Plan:
    """Return the plan for the Node; pure. Labels are set only at creation: later changes are the cluster's."""
    again = Requeue(LEASE_EVERY_S, "the next sign of life", background=True)
    if observed.node is None:
        return Plan(((Create(_node(observed), "the machine has no Node"),),), Requeue(0.0, "then it tells how it is"))
    status = set_status(observed.node, _status(observed, observed.node, now), "the machine tells how it is")
    lease = Apply(_lease(observed, now), MANAGER, "a sign of life", force=True)
    return Plan((*((step,) for step in status), (lease,)), again, f"{observed.name} is there")


def _node(observed: ObservedPresence) -> Obj:
    usual = {"kubernetes.io/hostname": observed.name, "kubernetes.io/os": "linux"}
    if observed.facts.architecture:
        usual["kubernetes.io/arch"] = observed.facts.architecture
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": observed.name, "labels": usual | dict(observed.labels)},
        "spec": {"taints": [{"key": NO_KUBELET, "effect": "NoSchedule"}]},
    }


def _status(observed: ObservedPresence, node: Obj, now: datetime) -> Obj:
    old: Obj = node.get("status") or {}
    facts = observed.facts
    fields = {
        "architecture": facts.architecture or labels_of(node).get("kubernetes.io/arch", ""),
        "bootID": facts.boot_id,
        "kernelVersion": facts.kernel,
        "machineID": facts.machine_id,
        "operatingSystem": "linux",
        "osImage": facts.os_image,
    }
    info = dict(dig(old, "nodeInfo", default={})) | fields
    addresses = [{"type": "InternalIP", "address": each} for each in facts.addresses]
    addresses.append({"type": "Hostname", "address": observed.name})
    own_types = {each[0] for each in CONDITIONS}
    others = [each for each in old.get("conditions") or () if each.get("type") not in own_types]
    mine = [_condition(old, *each, now) for each in CONDITIONS]
    return {**old, "nodeInfo": info, "addresses": addresses, "conditions": [*others, *mine]}


def _condition(old: Obj, kind: str, status: str, reason: str, message: str, now: datetime) -> Obj:
    """Return the condition, unchanged if it has the same content, since the Lease is the heartbeat."""
    known: Obj = next((each for each in old.get("conditions") or () if each.get("type") == kind), {})
    wanted = {"status": status, "reason": reason, "message": message}
    if known.items() >= wanted.items():
        return known
    stamp = format_time(now)
    since = known.get("lastTransitionTime") if known.get("status") == status else stamp
    return {"type": kind, **wanted, "lastHeartbeatTime": stamp, "lastTransitionTime": since or stamp}


def _lease(observed: ObservedPresence, now: datetime) -> Obj:
    """Return the Lease, owned by the Node so that it is deleted with it."""
    node = observed.node or {}
    owner = {"apiVersion": "v1", "kind": "Node", "name": observed.name, "uid": str(dig(node, "metadata", "uid") or "")}
    return {
        "apiVersion": LEASE.api_version,
        "kind": LEASE.kind,
        "metadata": {"name": observed.name, "namespace": LEASES, "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": observed.name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": format_micro_time(now),
        },
    }
