"""The runtime of simulated containers, which follow stages in simulated time.

It runs all containers that are neither processes nor scripts. Start and end are known at once; the kubelet requeues for
them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from syncline.cluster.machines.containers import Container, ContainerTable, Order
from syncline.cluster.machines.scripted.images import known_images
from syncline.cluster.machines.scripted.stages import Timing, stage_of
from syncline.kube.objects import dig, uid_of

KILLED, TERMINATED = 137, 143
"""Exit codes of a container ended by SIGKILL and by SIGTERM."""


class Images:
    """Images on each boot disk: a pulled one stays there."""

    def __init__(self) -> None:
        self._known: set[tuple[str, str]] = set()

    def pull(self, node: str, image: str, policy: str) -> bool:
        """Return True if the image must be pulled; it is present afterwards."""
        place = (node, image)
        needed = policy == "Always" or (policy != "Never" and place not in self._known)
        self._known.add(place)
        return needed


def planned(order: Order, now: datetime, timing: Timing, *, pull: bool, pulls: int = 0) -> Container:
    """Return the record of an attempt, with its whole course. ``pulls``: earlier tries to pull its image."""
    stage = stage_of(order.pod, order.container, order.attempt, timing, pulls, known_images(order.objects))
    uid, name = uid_of(order.pod), str(order.container["name"])
    if stage.pull_error and order.attempt == 0:
        return Container(uid, name, order.attempt, order.boot_id, now, pull_error=stage.pull_error, pulls=pulls + 1)
    pulled_s = stage.pull_s if pull else 0.0
    started = now + timedelta(seconds=pulled_s + stage.start_s)
    ends = None if stage.run_s is None else started + timedelta(seconds=stage.run_s)
    return Container(
        uid,
        name,
        order.attempt,
        order.boot_id,
        now,
        started_at=started,
        ends_at=ends,
        exit_code=stage.exit_code,
        pulled_s=pulled_s,
        reason=stage.reason,
        message=stage.message,
        course=stage.course,
        stop_s=stage.stop_s,
    )


class StagedRuntime:
    """Implements :class:`~syncline.cluster.machines.containers.Runtime`."""

    tell: Callable[[Order, Container], None] | None = None
    """Called with each new attempt."""

    def __init__(self, table: ContainerTable, timing: Timing, images: Images | None = None) -> None:
        self._table = table
        self._timing = timing
        self._images = images or Images()

    def start(self, order: Order, now: datetime) -> Generator[Any, Any, Container]:
        yield from ()
        known = self._table.find(uid_of(order.pod), str(order.container["name"]), order.attempt)
        if known is not None and not known.pull_error:
            return known
        image = str(order.container.get("image", ""))
        policy = str(dig(order.container, "imagePullPolicy", default="IfNotPresent"))
        pull = self._images.pull(order.node, image, policy)
        pulls = known.pulls if known is not None else 0
        record = self._table.put(planned(order, now, self._timing, pull=pull or pulls > 0, pulls=pulls))
        if self.tell is not None and not record.pull_error:
            self.tell(order, record)
        return record

    def go_on(self, container: Container, now: datetime) -> Generator[Any, Any, Container]:
        yield from ()
        return container

    def refresh(self, order: Order, container: Container, now: datetime) -> Generator[Any, Any, Container]:
        """Do nothing: it has no files."""
        yield from ()
        return container

    def stop(self, container: Container, grace_s: float, now: datetime) -> Generator[Any, Any, Container]:
        """Stop a container after its stage's stop time, or kill it at the end of the grace period."""
        yield from ()
        if container.stopping or (container.ends_at is not None and container.ends_at <= now):
            return container
        if container.started_at is None or container.started_at > now:
            return self._table.stopped(container, now, KILLED)
        in_time = container.stop_s <= grace_s
        at = now + timedelta(seconds=min(container.stop_s, grace_s))
        if container.ends_at is not None and container.ends_at <= at:
            # It ends before it would have stopped; record the request, or it is repeated forever.
            return self._table.put(replace(container, stopping=True))
        return self._table.stopped(container, at, TERMINATED if in_time else KILLED)

    def forget(self, pod_uid: str) -> None:
        """Do nothing: only records exist."""
