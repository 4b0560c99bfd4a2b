"""Observe one pod for the kubelet: the pod, its machine, its containers, and the objects it refers to.

The plan needs nothing else. Containers of an earlier boot have ended with it; records lost in a restart of this process
are recovered from the pod's status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from syncline.base.clock import parse_time
from syncline.cluster.builtin.pods import is_finished
from syncline.cluster.machines.containers import Container, ContainerTable, Order, Sandbox
from syncline.cluster.machines.kubelet.admit import Asked, AskedCache, was_refused
from syncline.cluster.machines.kubelet.references import (
    CONTAINERS,
    REFERENCES,
    Missing,
    missing_of,
    referred,
    refers_to,
)
from syncline.cluster.machines.machine import MachineState, Power
from syncline.cluster.machines.scripted.images import CONFIG_MAP, ImageCache, known_images
from syncline.cluster.machines.scripted.stages import Timing, stage_of
from syncline.cluster.machines.simulated import Machines
from syncline.control.cache import IndexFn, OfKind, Snapshot
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, name_of, namespace_of, uid_of

POD = GroupKind("", "Pod")
NODE = GroupKind("", "Node")
SERVICE = GroupKind("", "Service")
PODS_ON_NODE = "kubelet/pods"
NOTHING_MISSING = Missing()
MASTER_SERVICE = ObjectRef("", "Service", "default", "kubernetes")
EndsWithUs = Callable[[Obj, Obj, ImageCache], bool]
"""Returns whether a container is a process that ends with this process."""
EPHEMERAL_STORAGE = "100Gi"
"""Capacity of every simulated machine."""
LOST_PROCESS_EXIT_CODE = 137
LOST_MESSAGE = "The container could not be located when the pod was terminated"
LOST_EXIT_CODE = 255
"""Exit code of a container that a reboot ended, as in the kubelet."""


@dataclass(frozen=True, slots=True)
class MachineView:
    """The pod's machine. ``up``: its kubelet runs; ``room`` is its capacity, as quantities by resource."""

    name: str
    ip: str
    boot_id: str
    up: bool
    room: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Input of admission for a new pod: the Node, the requests of the pods on it, and the refused pods."""

    node: Obj
    others: tuple[Asked, ...] = ()
    refused: tuple[Obj, ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """``leftovers`` are uids of earlier pods of this name with known containers; ``pod`` is None if only these are
    left. ``complete`` is False before all ConfigMaps and Secrets are listed. ``arrival`` is None for an accepted pod.
    """

    ref: ObjectRef
    pod: Obj | None
    leftovers: tuple[str, ...] = ()
    machine: MachineView | None = None
    sandbox: Sandbox | None = None
    containers: tuple[Container, ...] = ()
    missing: Missing = NOTHING_MISSING
    objects: tuple[Obj, ...] = ()
    complete: bool = True
    arrival: Arrival | None = None


def indices() -> dict[str, IndexFn]:
    """Index pods by node, and by the ConfigMaps and Secrets they refer to."""
    return {PODS_ON_NODE: OfKind(POD, _on_node, of_spec=True), REFERENCES: OfKind(POD, refers_to, of_spec=True)}


def _on_node(obj: Obj) -> Iterable[str]:
    node = dig(obj, "spec", "nodeName") if obj.get("kind") == POD.kind else None
    return (str(node),) if node else ()


def pods_referring(obj: Obj, cache: Snapshot) -> Iterable[ObjectRef]:
    """Return the pods that wait for, or use, a ConfigMap or Secret."""
    value = f"{obj.get('kind')}/{namespace_of(obj)}/{name_of(obj)}"
    return (ObjectRef("", POD.kind, namespace_of(pod), name_of(pod)) for pod in cache.indexed(REFERENCES, value))


def machine_ip(number: int) -> str:
    """Return a node address in the documentation range of virtual machines: 192.168.64.10 and up."""
    value = number + 10
    return f"192.168.{64 + value // 250}.{value % 250 + 1}"


def observe(
    cache: Snapshot,
    ref: ObjectRef,
    machines: Machines,
    table: ContainerTable,
    ends_with_us: EndsWithUs,
    asked: AskedCache | None = None,
) -> Observed | None:
    """Return None for a pod that is on no simulated machine and has nothing left to clean up."""
    pod = cache.get(ref)
    uid = uid_of(pod) if pod is not None else ""
    leftovers = tuple(each for each in table.uids(ref.namespace, ref.name) if each != uid)
    machine = machines.get(str(dig(pod, "spec", "nodeName", default=""))) if pod is not None else None
    if pod is None or machine is None:
        return Observed(ref, None, leftovers) if leftovers else None
    state = machine.state
    room = {"cpu": machine.spec.cpu, "memory": machine.spec.memory, "ephemeral-storage": EPHEMERAL_STORAGE}
    room["pods"] = str(machine.spec.pods)
    ip = machine_ip(machines.number(machine.name))
    view = MachineView(machine.name, ip, state.boot_id, state.power is Power.ON and machine.cut_off_at is None, room)
    records = tuple(_after_boot(each, state) for each in _records(pod, table, state, ends_with_us, cache))
    return Observed(
        ref,
        pod,
        leftovers,
        view,
        table.sandbox(uid),
        records,
        missing_of(pod, cache),
        (*referred(pod, cache), *_image_data(cache), *_services(pod, records, cache)),
        arrival=_arrival(pod, machine.name, cache, table, asked or AskedCache()),
    )


def _image_data(cache: Snapshot) -> tuple[Obj, ...]:
    found = cache.get(ObjectRef("", "ConfigMap", *CONFIG_MAP))
    return (found,) if found is not None else ()


def _services(pod: Obj, records: tuple[Container, ...], cache: Snapshot) -> tuple[Obj, ...]:
    """Return the Services for variables of the pod's next container; none while all containers run."""
    running = {each.name for each in records if each.ends_at is None}
    if all(str(each["name"]) in running for each in dig(pod, "spec", "containers", default=[])):
        return ()
    linked = dig(pod, "spec", "enableServiceLinks", default=True) is not False
    master = cache.get(MASTER_SERVICE)
    here = cache.objects(SERVICE, namespace_of(pod)) if linked else []
    return (*([master] if master is not None else []), *(each for each in here if each is not master))


def order_of(observed: Observed, container: Obj, attempt: int) -> Order:
    """Return a runtime's input for one attempt of a container."""
    assert observed.pod is not None and observed.machine is not None, "containers are started on a machine"
    return Order(
        observed.pod,
        container,
        attempt,
        observed.machine.boot_id,
        observed.machine.name,
        observed.machine.ip,
        observed.sandbox.ip if observed.sandbox is not None and observed.sandbox.ip else observed.machine.ip,
        objects=observed.objects,
        room=observed.machine.room,
    )


def _arrival(pod: Obj, machine: str, cache: Snapshot, table: ContainerTable, asked: AskedCache) -> Arrival | None:
    if _taken(pod, table) or is_finished(pod):
        return None
    node = cache.get(ObjectRef("", NODE.kind, "", machine))
    if node is None:
        return None  # the machine is just being registered or removed
    here = [each for each in cache.indexed(PODS_ON_NODE, machine) if uid_of(each) != uid_of(pod)]
    others = (asked.of(each) for each in here if not is_finished(each) and _taken(each, table))
    return Arrival(node, tuple(others), tuple(each for each in here if was_refused(each)))


def _taken(pod: Obj, table: ContainerTable) -> bool:
    """Return whether the kubelet accepted the pod: it has a start time or a sandbox."""
    return bool(dig(pod, "status", "startTime")) or table.sandbox(uid_of(pod)) is not None


def _records(
    pod: Obj, table: ContainerTable, state: MachineState, ends_with_us: EndsWithUs, cache: Snapshot
) -> list[Container]:
    known = table.containers(uid_of(pod))
    named = {each.name for each in known}
    return [*known, *_recovered(pod, state.boot_id, ends_with_us, cache, named)]


def _recovered(pod: Obj, boot_id: str, ends_with_us: EndsWithUs, cache: Snapshot, known: Set[str]) -> list[Container]:
    """Return records derived from the status, the only source after a restart of this process, for containers that are
    not ``known`` by name."""
    found = []
    for part in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for status in dig(pod, "status", part, default=[]):
            if str(status.get("name")) in known:
                continue
            record = _from_status(pod, boot_id, status, ends_with_us, known_images(_image_data(cache)))
            if record is not None:
                found.append(record)
    return found


def _from_status(pod: Obj, boot_id: str, status: Obj, ends_with_us: EndsWithUs, images: ImageCache) -> Container | None:
    """Return a record from a status: a staged container continues with its stage, from the status's whole second; a
    process of ours ended with this process."""
    running = dig(status, "state", "running")
    ended = dig(status, "state", "terminated") or dig(status, "lastState", "terminated")
    attempt = int(status.get("restartCount") or 0)
    uid, name = uid_of(pod), str(status.get("name"))
    if running:
        started = parse_time(running["startedAt"])
        spec = _container(pod, name)
        if ends_with_us(pod, spec, images):
            lost = Container(uid, name, attempt, boot_id, started, started, started, LOST_PROCESS_EXIT_CODE)
            return replace(lost, reason="ContainerStatusUnknown", message=LOST_MESSAGE, recovered=True)
        stage = stage_of(pod, spec, attempt, Timing(), images=images)
        return Container(
            uid,
            name,
            attempt,
            boot_id,
            started,
            started_at=started,
            ends_at=None if stage.run_s is None else started + timedelta(seconds=stage.run_s),
            exit_code=stage.exit_code,
            reason=stage.reason,
            message=stage.message,
            course=stage.course,
            reported=len(stage.course.failures),
            stop_s=stage.stop_s,
            recovered=True,
        )
    if not ended or not ended.get("finishedAt"):
        return None
    began = parse_time(ended.get("startedAt") or ended["finishedAt"])
    return Container(
        uid,
        name,
        attempt,
        boot_id,
        began,
        started_at=began,
        ends_at=parse_time(ended["finishedAt"]),
        exit_code=int(ended.get("exitCode") or 0),
        reason=str(ended.get("reason") or ""),
        message=str(ended.get("message") or ""),
        recovered=True,
    )


def _container(pod: Obj, name: str) -> Obj:
    spec = pod.get("spec") or {}
    both = [each for part in CONTAINERS for each in spec.get(part) or ()]
    return next((each for each in both if each.get("name") == name), {"name": name})


def _after_boot(record: Container, state: MachineState) -> Container:
    """End a container of an earlier boot at the end of that boot."""
    stopped: datetime | None = state.stopped_at or state.booted_at
    if record.boot_id == state.boot_id or stopped is None:
        return record
    if record.ends_at is not None and record.ends_at <= stopped:
        return record
    began = min(record.started_at or stopped, stopped)
    return replace(record, started_at=began, ends_at=stopped, exit_code=LOST_EXIT_CODE, reason="Unknown", wakes_at=None)
