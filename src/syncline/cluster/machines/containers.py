"""Records of sandboxes and containers on the machines, as a container runtime has them.

The kubelet reads these records when it observes a pod and changes them only by actions. Records have exact instants;
the API's timestamps are whole seconds, so durations are never computed from those. A record may describe the future: a
staged container's end is known at its start.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from syncline.cluster.machines.probes import HEALTHY, Course
from syncline.kube.objects import Obj

MAX_ATTEMPTS_KEPT = 2
"""Records per container: the last attempt and the previous one, as in the kubelet."""


class ContainerState(StrEnum):
    CREATED = "created"
    RUNNING = "running"
    EXITED = "exited"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A pod's network, and the boot of its machine."""

    pod_uid: str
    namespace: str
    name: str
    boot_id: str
    ip: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Container:
    """One attempt to run a container.

    ``started_at`` and ``ends_at`` may lie in the future; None means unknown. ``pull_error`` is why its image is
    unavailable, ``pulls`` the number of tries; such a container does not start. ``wakes_at`` is when its runtime
    continues with it. ``course`` has the results of its probes, ``reported`` the number of their failures with Events.
    ``runtime`` names its runtime; ``recovered``: known only from the pod's status. ``shown``: the state of ConfigMaps,
    Secrets and the pod in its volumes, if these are real.
    """

    pod_uid: str
    name: str
    attempt: int
    boot_id: str
    created_at: datetime
    started_at: datetime | None = None
    ends_at: datetime | None = None
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    pull_error: str = ""
    pulls: int = 0
    pulled_s: float = 0.0
    wakes_at: datetime | None = None
    course: Course = HEALTHY
    reported: int = 0
    stop_s: float = 1.0
    stopping: bool = False
    runtime: str = "staged"
    recovered: bool = False
    shown: str = ""

    def state(self, now: datetime) -> ContainerState:
        if self.ends_at is not None and self.ends_at <= now:
            return ContainerState.EXITED
        if self.started_at is None or self.started_at > now:
            return ContainerState.CREATED
        return ContainerState.RUNNING


@dataclass(frozen=True, slots=True)
class Order:
    """What a runtime needs to run a container: the pod, the objects it refers to, its machine."""

    pod: Obj
    container: Obj
    attempt: int
    boot_id: str
    node: str
    host_ip: str
    pod_ip: str
    last_exit_code: int = 0
    objects: tuple[Obj, ...] = ()
    """ConfigMaps and Secrets that the pod refers to."""
    room: Mapping[str, str] = field(default_factory=dict)
    """The machine's capacity, as quantities by resource."""


Steps = Generator[Any, Any, Container]
"""Yields requests and work, returns the current record."""


class Runtime(Protocol):
    """Runs containers. All methods are idempotent: an attempt is never started twice."""

    def start(self, order: Order, now: datetime) -> Steps: ...

    def go_on(self, container: Container, now: datetime) -> Steps:
        """Continue with a container; called at ``wakes_at``."""
        ...

    def stop(self, container: Container, grace_s: float, now: datetime) -> Steps:
        """Stop a container, and kill it after ``grace_s`` seconds."""
        ...

    def refresh(self, order: Order, container: Container, now: datetime) -> Steps:
        """Update its volumes after changes; only if they are real files."""
        ...

    def forget(self, pod_uid: str) -> None:
        """Clean up after a deleted pod: end its processes and release its resources."""
        ...


@dataclass(slots=True)
class ContainerTable:
    """The records of all machines."""

    _sandboxes: dict[str, Sandbox] = field(default_factory=dict)
    _containers: dict[str, dict[str, tuple[Container, ...]]] = field(default_factory=dict)
    _addresses: dict[str, str] = field(default_factory=dict)
    _uids: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)

    def sandbox(self, pod_uid: str) -> Sandbox | None:
        return self._sandboxes.get(pod_uid)

    def containers(self, pod_uid: str) -> tuple[Container, ...]:
        """Return the retained attempts of all containers of a pod, by name and attempt."""
        known = self._containers.get(pod_uid, {})
        return tuple(record for name in sorted(known) for record in known[name])

    def find(self, pod_uid: str, name: str, attempt: int) -> Container | None:
        attempts = self._containers.get(pod_uid, {}).get(name, ())
        return next((each for each in attempts if each.attempt == attempt), None)

    def put(self, record: Container) -> Container:
        known = self._containers.setdefault(record.pod_uid, {})
        others = [each for each in known.get(record.name, ()) if each.attempt != record.attempt]
        kept = sorted([*others, record], key=lambda each: each.attempt)[-MAX_ATTEMPTS_KEPT:]
        known[record.name] = tuple(kept)
        return record

    def uids(self, namespace: str, name: str) -> tuple[str, ...]:
        """Return the uids of pods with this name that are not forgotten yet."""
        return self._uids.get((namespace, name), ())

    def put_sandbox(self, sandbox: Sandbox) -> Sandbox:
        """Replace a pod's sandbox; the containers of the old one ended with it."""
        self._free_address(sandbox.pod_uid)
        self._sandboxes[sandbox.pod_uid] = sandbox
        place = (sandbox.namespace, sandbox.name)
        self._uids[place] = tuple(dict.fromkeys((*self._uids.get(place, ()), sandbox.pod_uid)))
        if sandbox.ip:
            self._addresses[sandbox.ip] = sandbox.pod_uid
        return sandbox

    def holder(self, ip: str) -> str:
        """Return the uid of the pod that has an address, or ""."""
        return self._addresses.get(ip, "")

    def forget(self, pod_uid: str) -> None:
        self._containers.pop(pod_uid, None)
        self._free_address(pod_uid)
        sandbox = self._sandboxes.pop(pod_uid, None)
        if sandbox is None:
            return
        place = (sandbox.namespace, sandbox.name)
        left = tuple(uid for uid in self._uids.get(place, ()) if uid != pod_uid)
        if left:
            self._uids[place] = left
        else:
            self._uids.pop(place, None)

    def _free_address(self, pod_uid: str) -> None:
        sandbox = self._sandboxes.get(pod_uid)
        if sandbox is not None and self._addresses.get(sandbox.ip) == pod_uid:
            del self._addresses[sandbox.ip]

    def stopped(
        self, record: Container, at: datetime, exit_code: int, reason: str = "", message: str = ""
    ) -> Container:
        """Record that an attempt ends at an instant."""
        ended = replace(
            record,
            started_at=record.started_at if record.started_at and record.started_at < at else at,
            ends_at=at,
            exit_code=exit_code,
            reason=reason,
            message=message,
            wakes_at=None,
            stopping=True,
        )
        return self.put(ended)
