"""The bars of a timeline: syncs with their waves and hooks, pools with their nodes. Entry point: :func:`bars_of`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from syncline.apply.annotations import wave
from syncline.base.clock import time_or_none
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, name_of
from syncline.machineconfig.names import POOL
from syncline.machineconfig.nodes.timeline import NodeTimeline, Outcome, Stretch, timeline_of
from syncline.machineconfig.pools.membership import MembershipError, members
from syncline.rehearsal.answer.answer import Bar, Doing
from syncline.rehearsal.record import Record, Version

EVENT, NODE = GroupKind("", "Event"), GroupKind("", "Node")
RUNNING = ("Running", "Terminating")
SHORT_S = 1.0
"""An Application that is healthy so soon after its sync has no bar of its own for it."""
STRETCHES = {
    Stretch.DRAINS: Doing.DRAINS,
    Stretch.REBOOTS: Doing.REBOOTS,
    Stretch.IN_PLACE: Doing.IN_PLACE,
    Stretch.PLAYS: Doing.PLAYS,
}


def bars_of(record: Record) -> tuple[Bar, ...]:
    """Return all bars: each Application's, then each pool's, in order of time."""
    found = [
        bar for _, versions in record.histories(APPLICATION.group_kind) for bar in _of_application(record, versions)
    ]
    return (*found, *(bar for _, versions in record.histories(POOL) for bar in _of_pool(record, versions)))


# -- Applications ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Operation:
    began: datetime
    versions: tuple[Version, ...]

    @property
    def last(self) -> Obj:
        found: Obj = self.versions[-1].obj["status"]["operationState"]
        return found

    @property
    def ended(self) -> datetime | None:
        return time_or_none(self.last.get("finishedAt"))


def operations_of(record: Record, versions: Sequence[Version]) -> list[_Operation]:
    """Return the operations of an Application since the commit, oldest first, the one that ran when it arrived too.

    ``startedAt`` has whole seconds: of two operations of one second the second begins where the first has ended.
    """
    found: list[tuple[datetime, list[Version]]] = []
    before = next((v for v in reversed(versions) if v.at < record.began), None)
    running, was = _started(before, RUNNING), before is not None and _runs(before)
    for version in versions:
        began = _started(version)
        since = began is not None and (began >= record.began.replace(microsecond=0) or began == running)
        if began is None or not since or version.gone:
            continue
        if not found or found[-1][0] != began or (_runs(version) and not was):
            found.append((began, []))
        found[-1][1].append(version)
        was = _runs(version)
    return [_Operation(began, tuple(each)) for began, each in found]


def _started(version: Version | None, phases: tuple[str, ...] = ()) -> datetime | None:
    """Return when the operation of a version began, if it is in one of the phases; without phases in any."""
    state = dig(version.obj, "status", "operationState", default={}) if version is not None else {}
    return time_or_none(state.get("startedAt")) if not phases or state.get("phase") in phases else None


def _runs(version: Version) -> bool:
    return dig(version.obj, "status", "operationState", "phase") in RUNNING


def _of_application(record: Record, versions: Sequence[Version]) -> Iterator[Bar]:
    row = f"app/{versions[-1].ref.name}"
    operations = operations_of(record, versions)
    for operation in operations:
        ended = operation.ended
        yield _bar(record, row, Doing.SYNC, operation.began, ended, str(operation.last.get("phase") or ""))
        yield from _waves(record, row, operation)
        yield from _hooks(record, row, operation)
    if operations and operations[-1].last.get("phase") == "Succeeded" and operations[-1].ended is not None:
        yield from _settling(record, row, versions, operations[-1].ended)


def _settling(record: Record, row: str, versions: Sequence[Version], synced: datetime) -> Iterator[Bar]:
    """Yield the time from the end of the last sync until the Application is healthy to stay."""
    last = _health(versions[-1])
    since = synced
    for before, version in pairwise(versions):
        if version.at > synced and _health(before) != "Healthy" == _health(version):
            since = version.at
    if last in ("", "Suspended") or versions[-1].gone:
        return
    ended = since if last == "Healthy" else None
    if ended is None or (ended - synced).total_seconds() >= SHORT_S:
        yield _bar(record, row, Doing.SETTLES, synced, ended, last)


def _health(version: Version) -> str:
    return str(dig(version.obj, "status", "health", "status") or "")


def _waves(record: Record, row: str, operation: _Operation) -> Iterator[Bar]:
    """Yield a bar for each phase and wave: from its first result to the first of the next one."""
    began: dict[tuple[str, int], datetime] = {}
    for version in operation.versions:
        for one in dig(version.obj, "status", "operationState", "syncResult", "resources", default=[]):
            group = str(one.get("syncPhase") or "Sync"), wave_of(record, one)
            began.setdefault(group, version.at)
    groups = list(began.items())
    ends = [at for _, at in groups[1:]]
    for (phase, number), at in groups:
        ended = ends.pop(0) if ends else operation.ended
        yield _bar(record, f"{row} {phase} wave {number}", Doing.WAVE, at, ended and max(ended, at), "")


def wave_of(record: Record, one: dict[str, Any]) -> int:
    """Return the wave of a result of a sync."""
    ref = _ref(one)
    versions = record.by_ref.get(ref) or record.by_ref.get(ref._replace(namespace=""))  # results of objects without one
    return wave(versions[-1].obj) if versions else 0


def _ref(one: dict[str, Any]) -> ObjectRef:
    return ObjectRef(*(str(one.get(key) or "") for key in ("group", "kind", "namespace", "name")))


def _hooks(record: Record, row: str, operation: _Operation) -> Iterator[Bar]:
    began: dict[ObjectRef, datetime] = {}
    ended: dict[ObjectRef, tuple[datetime, str]] = {}
    for version in operation.versions:
        for one in dig(version.obj, "status", "operationState", "syncResult", "resources", default=[]):
            if not one.get("hookType"):
                continue
            ref, phase = _ref(one), str(one.get("hookPhase") or "")
            began.setdefault(ref, version.at)
            if phase in ("Succeeded", "Failed", "Error"):
                ended.setdefault(ref, (version.at, phase))
    for ref, at in began.items():
        until, phase = ended.get(ref, (operation.ended, "Running"))
        yield _bar(record, f"{row} hook {ref.kind}/{ref.name}", Doing.HOOK, at, until, phase)


def _bar(record: Record, row: str, doing: Doing, began: datetime, ended: datetime | None, state: str) -> Bar:
    ends = None if ended is None else max(record.seconds(ended), 0.0)
    return Bar(row, doing, max(record.seconds(began), 0.0), ends, state)


# -- pools -----------------------------------------------------------------------------------------------------------


def _of_pool(record: Record, versions: Sequence[Version]) -> Iterator[Bar]:
    pool = versions[-1].obj
    first = dig(_before(record, versions), "spec", "configuration", "name")
    if dig(pool, "spec", "configuration", "name") == first:
        return
    began = next(
        v.at for v in versions if v.at >= record.began and dig(v.obj, "spec", "configuration", "name") != first
    )
    updated = [v.at for v in versions if v.at > began and _is_updated(v.obj)]
    ended = updated[0] if updated and _is_updated(pool) else None
    row = f"pool/{name_of(pool)}"
    yield _bar(record, row, Doing.POOL, began, ended, "Updated" if ended else "Updating")
    events = [each[-1].obj for _, each in record.histories(EVENT)]
    try:
        mine = members(pool, record.last(NODE), record.last(POOL))
    except MembershipError:
        return
    for node in timeline_of(pool, mine, events, record.ended).nodes:
        yield from _of_node(record, node, began)


def _before(record: Record, versions: Sequence[Version]) -> Obj:
    earlier = [version.obj for version in versions if version.at < record.began]
    return earlier[-1] if earlier else {}


def _is_updated(pool: Obj) -> bool:
    found = dig(pool, "status", "conditions", default=[])
    aim, at = dig(pool, "spec", "configuration", "name"), dig(pool, "status", "configuration", "name")
    return aim == at and any(c.get("type") == "Updated" and c.get("status") == "True" for c in found)


def _of_node(record: Record, node: NodeTimeline, began: datetime) -> Iterator[Bar]:
    row = f"node/{node.node}"
    if not node.spans:
        done = node.outcome is Outcome.DONE
        if not done:
            yield _bar(record, row, Doing.WAITS, began, None, str(node.outcome))
        return
    targeted = node.targeted or began
    if targeted > began:
        yield _bar(record, row, Doing.WAITS, began, targeted, "for its turn")
    for span in node.spans:
        if span.until is None and span.stretch is Stretch.DRAINS and not _is_cordoned(record, node.node):
            yield _bar(record, row, Doing.WAITS, span.since, None, "its drain cannot finish")
        else:
            yield _bar(record, row, STRETCHES[span.stretch], span.since, span.until, str(node.outcome))


def _is_cordoned(record: Record, name: str) -> bool:
    return dig(record.by_ref[ObjectRef(*NODE, "", name)][-1].obj, "spec", "unschedulable") is True
