"""How long things took on a cluster: :func:`measured` reads a record, real or rehearsed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from statistics import median

from syncline.base.clock import time_or_none
from syncline.kube.objects import GroupKind, Obj, dig, meta
from syncline.machineconfig.impact.pace import sampled
from syncline.rehearsal.given.durations import GUESSES, Duration, Origin
from syncline.rehearsal.given.snapshot import LEAST_SHARE, MOST_SHARE, pulls_of
from syncline.rehearsal.record import Record

POD, EVENT = GroupKind("", "Pod"), GroupKind("", "Event")
PROGRESS = GroupKind("machineconfiguration.openshift.io", "MachineConfigNode")
LEAST_S = 0.1
MAX_S = 86_400.0


def measured(record: Record) -> Mapping[str, Duration]:
    """Return the durations of what the record saw; the others are guessed. The range that is rehearsed is half of the
    fastest to twice the slowest, as few samples say little of the next."""
    found: dict[str, list[float]] = {}
    for name, seconds in _all(record):
        if 0 <= seconds < MAX_S:
            found.setdefault(name, []).append(max(seconds, LEAST_S))
    return {**GUESSES, **{name: _of(name, each) for name, each in found.items()}}


def _of(name: str, seconds: list[float]) -> Duration:
    bounds = min(seconds) * LEAST_SHARE, median(seconds), max(seconds) * MOST_SHARE
    least, usual, most = (round(each, 3) for each in bounds)
    return Duration(name, usual, least, most, Origin.MEASURED)


def _all(record: Record) -> Iterator[tuple[str, float]]:
    events = [versions[-1].obj for _, versions in record.histories(EVENT)]
    yield from (("pull", seconds) for seconds in pulls_of(events))
    for seconds in (sampled(events, record.last(PROGRESS)).by_step.get("reboot") or {}).values():
        down = min(GUESSES["shutdown"].usual_s, seconds / 4)  # what the shutdown leaves is the boot's
        yield from (("shutdown", down), ("boot", seconds - down))
    for _, versions in record.histories(POD):
        last = versions[-1]
        yield from _of_containers(last.obj)
        left = next((each.at for each in versions if meta(each.obj).get("deletionTimestamp")), None)
        if last.gone and left is not None and left >= record.began:
            yield "stop", (last.at - left).total_seconds()


def _of_containers(pod: Obj) -> Iterator[tuple[str, float]]:
    """Yield how long the first container took to start, and those that completed to run."""
    placed = _since(pod, "PodScheduled")
    if dig(pod, "spec", "initContainers"):
        placed = _since(pod, "Initialized")
    for status in dig(pod, "status", "containerStatuses", default=[]):
        ended = dig(status, "state", "terminated", default={})
        began = time_or_none(dig(status, "state", "running", "startedAt") or ended.get("startedAt"))
        until = time_or_none(ended.get("finishedAt"))
        if began is not None and placed is not None and not status.get("restartCount"):
            yield "start", (began - placed).total_seconds()
        if began is not None and until is not None and ended.get("exitCode") == 0:
            yield "run", (until - began).total_seconds()


def _since(pod: Obj, condition: str) -> datetime | None:
    conditions = dig(pod, "status", "conditions", default=[])
    found: Obj = next(
        (each for each in conditions if each.get("type") == condition and each.get("status") == "True"), {}
    )
    return time_or_none(found.get("lastTransitionTime"))
