"""The kubelet's own admission: decide whether a machine accepts a pod that it sees for the first time.

Pods placed by the scheduler are accepted; pods created with a ``nodeName`` are judged here. Pure. Order, reasons and
messages are those of Kubernetes (``pkg/kubelet/lifecycle/predicate.go``, ``pkg/scheduler/eventhandlers.go``
AdmissionCheck): of several reasons, the first is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import time_or_none
from syncline.kube.objects import Obj, dig, generation, labels_of, meta, uid_of
from syncline.kube.scheduling.filters import controller_uid, host_ports, port_taken
from syncline.kube.scheduling.podresources import ROOM, allocatable, requests_of
from syncline.kube.scheduling.terms import matches_node_terms, tolerates_all

OS = "linux"
OS_LABEL = "kubernetes.io/os"
COUNTED = ("cpu", "memory", "ephemeral-storage")
"""Resources in the order in which they are checked; others follow by name."""
REJECTED = "Pod was rejected: "
FREE_REFUSALS, FIRST_WAIT_S, LONGEST_WAIT_S = 3, 1.0, 300.0
"""Pods per controller that are refused at once; each further one waits twice as long as the one before."""
MOST_REMEMBERED = 20_000
"""Cached pods whose requests are known."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """``reason`` and ``message`` of the Event; in the status, a prefix precedes the message."""

    reason: str
    message: str


def refusal_of(pod: Obj, node: Obj, others: Sequence[Asked], room: Mapping[str, object]) -> Refusal | None:
    """Return why ``node`` refuses ``pod`` beside the accepted ``others``, or None. ``room`` is the machine's capacity,
    used until the Node reports it."""
    wanted_os = labels_of(pod).get(OS_LABEL)
    if wanted_os is not None and wanted_os != OS:
        message = f"Failed to admit pod as the `{OS_LABEL}` label doesn't match node label"
        return Refusal("PodOSSelectorNodeLabelDoesNotMatch", message)
    if dig(pod, "spec", "os", "name", default=OS) != OS:
        return Refusal("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return _lacking(pod, node, others, room) or _unfit(pod, node, others)


def _lacking(pod: Obj, node: Obj, others: Sequence[Asked], room: Mapping[str, object]) -> Refusal | None:
    has = allocatable(node) or allocatable({"status": {"capacity": dict(room)}})
    if len(others) + 1 > has.get(ROOM, 0):
        return _out_of(ROOM, 1, len(others), has.get(ROOM, 0))
    wants = {name: amount for name, amount in Asked.by(pod).requests.items() if amount and not _unknown(name, has)}
    if not wants:
        return None
    used: Counter[str] = Counter()
    for other in others:
        used.update(other.requests)
    for name in (*COUNTED, *sorted(set(wants) - set(COUNTED))):
        if wants.get(name, 0) > has.get(name, 0) - used[name]:
            return _out_of(name, wants[name], used[name], has.get(name, 0))
    return None


def _unknown(name: str, has: Mapping[str, int]) -> bool:
    """Return True for an extended resource that the node does not have, which is not judged here."""
    return "/" in name and name not in has


def _out_of(name: str, wants: int, used: int, has: int) -> Refusal:
    what = f"Node didn't have enough resource: {name}, requested: {wants}, used: {used}, capacity: {has}"
    return Refusal(f"OutOf{name}", what)


def _unfit(pod: Obj, node: Obj, others: Sequence[Asked]) -> Refusal | None:
    spec: Obj = pod.get("spec") or {}
    if not matches_node_terms(spec, node):
        return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    ports = Asked.by(pod).ports
    if ports:
        taken = {port for other in others for port in other.ports}
        if any(port_taken(port, taken) for port in ports):
            return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    taints = dig(node, "spec", "taints", default=[])
    if not tolerates_all(spec.get("tolerations") or [], taints, ("NoExecute",)):
        return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
    return None


def _predicate(name: str, why: str) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {why}")


# -- what pods ask for, read once for each -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A pod's requests in the scheduler's units, and its ports."""

    requests: Mapping[str, int]
    ports: tuple[tuple[str, str, int], ...]

    @classmethod
    def by(cls, pod: Obj) -> Asked:
        return cls(requests_of(pod), tuple(host_ports(pod)))


class AskedCache:
    """The requests of a cluster's pods, by uid; a pod's spec changes only with its generation."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, Asked]] = {}

    def of(self, pod: Obj) -> Asked:
        known = self._known.get(uid_of(pod))
        if known is not None and known[0] == generation(pod):
            return known[1]
        if len(self._known) >= MOST_REMEMBERED:
            self._known.clear()
        asked = Asked.by(pod)
        self._known[uid_of(pod)] = generation(pod), asked
        return asked


# -- the answer --------------------------------------------------------------------------------------------------------


def refused_status(pod: Obj, refusal: Refusal, now: str) -> Obj:
    """Return the whole status of a refused pod, of which nothing has run."""
    old: Obj = pod.get("status") or {}
    status: Obj = {key: old[key] for key in ("qosClass", "observedGeneration") if key in old}
    status |= {"phase": "Failed", "reason": refusal.reason, "message": REJECTED + refusal.message}
    return status | {"startTime": old.get("startTime") or now}


def was_refused(pod: Obj) -> bool:
    status: Obj = pod.get("status") or {}
    return status.get("phase") == "Failed" and str(status.get("message", "")).startswith(REJECTED)


def answered_at(pod: Obj, refused: Iterable[Obj]) -> tuple[datetime | None, int]:
    """Return when to refuse a pod (None: at once), and how many of its controller's pods were refused before. The delay
    stops a controller that replaces each refused pod (a ReplicaSet with ``nodeName``) from filling the cluster."""
    owner = controller_uid(pod)
    if not owner:
        return None, 0
    count = sum(controller_uid(each) == owner for each in refused)
    made = time_or_none(meta(pod).get("creationTimestamp"))
    if count < FREE_REFUSALS or made is None:
        return None, count
    wait_s = min(FIRST_WAIT_S * 2.0 ** min(count - FREE_REFUSALS, 10), LONGEST_WAIT_S)
    return made + timedelta(seconds=wait_s), count
