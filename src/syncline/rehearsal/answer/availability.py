"""Who was unavailable when: Services without enough ready pods, budgets below what they want. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from syncline.kube.objects import GroupKind, Obj, dig, labels_of
from syncline.rehearsal.answer.answer import Outage
from syncline.rehearsal.record import Record, Version

SLICE = GroupKind("discovery.k8s.io", "EndpointSlice")
BUDGET = GroupKind("policy", "PodDisruptionBudget")
WORKLOADS = (GroupKind("apps", "Deployment"), GroupKind("apps", "StatefulSet"))
SERVICE_NAME = "kubernetes.io/service-name"


@dataclass(frozen=True, slots=True)
class Level:
    """A number that holds from ``at`` on."""

    at: datetime
    number: int


def outages_of(record: Record) -> tuple[Outage, ...]:
    """Return each time in which a Service or a workload that had ready pods had none, and a budget had fewer than it
    wants."""
    found = [
        outage
        for subject, levels in (*_named("Service", service_levels(record)), *workload_levels(record))
        for outage in _below(record, subject, levels, 1)
    ]
    return (*found, *(outage for ref, each in record.histories(BUDGET) for outage in _of_budget(record, each)))


def _named(kind: str, found: Iterator[tuple[str, list[Level]]]) -> Iterator[tuple[str, list[Level]]]:
    return ((f"{kind} {name}", levels) for name, levels in found)


def workload_levels(record: Record) -> Iterator[tuple[str, list[Level]]]:
    """Yield for each Deployment and StatefulSet how many ready pods it had; one that goes is no outage."""
    for kind in WORKLOADS:
        for ref, versions in record.histories(kind):
            levels: list[Level] = []
            for version in versions:
                ready = int(dig(version.obj, "status", "readyReplicas", default=0) or 0)
                if not version.gone and (not levels or levels[-1].number != ready):
                    levels.append(Level(version.at, ready))
            yield f"{ref.kind} {ref.namespace}/{ref.name}", levels


def service_levels(record: Record) -> Iterator[tuple[str, list[Level]]]:
    """Yield for each Service (``NAMESPACE/NAME``) how many ready endpoints it had, in order of time."""
    services: dict[str, list[Version]] = {}
    for ref, versions in record.histories(SLICE):
        service = labels_of(versions[-1].obj).get(SERVICE_NAME)
        if service:
            services.setdefault(f"{ref.namespace}/{service}", []).extend(versions)
    for name in sorted(services):
        ready: dict[str, int] = {}
        levels: list[Level] = []
        for version in sorted(services[name], key=lambda each: each.at):
            ready[version.ref.name] = 0 if version.gone else _ready(version.obj)
            if not levels or levels[-1].number != sum(ready.values()):
                levels.append(Level(version.at, sum(ready.values())))
        yield name, levels


def _ready(found: Obj) -> int:
    ends = found.get("endpoints") or ()
    return sum(dig(one, "conditions", "ready") is not False for one in ends if one.get("addresses"))


def _below(record: Record, subject: str, levels: Sequence[Level], wanted: int) -> Iterator[Outage]:
    """Yield the times since the commit in which a level is below ``wanted``, after it was not."""
    had, since = 0, None
    for level in levels:
        if level.number >= wanted:
            if since is not None and level.at > since:
                yield Outage(subject, record.seconds(since), record.seconds(level.at), had, 0)
            had, since = max(had, level.number), None
        elif had and since is None and level.at >= record.began:
            since = level.at
    if since is not None:
        yield Outage(subject, record.seconds(since), None, had, 0)


def _of_budget(record: Record, versions: Sequence[Version]) -> Iterator[Outage]:
    subject = f"budget {versions[0].ref.namespace}/{versions[0].ref.name}"
    since, wanted, least = None, 0, 0
    for version in versions:
        healthy = int(dig(version.obj, "status", "currentHealthy", default=0) or 0)
        desired = int(dig(version.obj, "status", "desiredHealthy", default=0) or 0)
        low = healthy < desired and not version.gone
        if low and since is None and version.at >= record.began:
            since, wanted, least = version.at, desired, healthy
        elif low:
            least = min(least, healthy)
        elif since is not None:
            if version.at > since:
                yield Outage(subject, record.seconds(since), record.seconds(version.at), wanted, least)
            since = None
    if since is not None:
        yield Outage(subject, record.seconds(since), None, wanted, least)
