"""The laws that every rehearsal is held to, each with its reason; pure checks of a record. :data:`BUILT_IN` has all.

A law names what engineers are woken for, not what a controller promises: it says nothing of how something is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from syncline.apply.annotations import is_hook
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import GroupKind, Obj, ObjectRef, dig, labels_of, name_of, uid_of
from syncline.machineconfig.drain.proposals import CONTROL_PLANE
from syncline.machineconfig.names import POOL
from syncline.rehearsal.answer.answer import Breach
from syncline.rehearsal.answer.availability import service_levels
from syncline.rehearsal.answer.timeline import operations_of
from syncline.rehearsal.record import Ending, Record, Version

NODE = GroupKind("", "Node")
HOLD_KIND = HOLD.group_kind
TWO = 2


@dataclass(frozen=True, slots=True)
class Finding:
    """What breaks a law, and when."""

    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class RecordLaw:
    """``demand``: what must hold; ``reason``: why it does. ``check`` yields what breaks it, in order of time."""

    name: str
    demand: str
    reason: str
    check: Callable[[Record], Iterable[Finding]]


def breaches_of(record: Record, laws: Iterable[RecordLaw]) -> tuple[Breach, ...]:
    """Return the first breach of each law."""
    found = []
    for law in laws:
        first = min(law.check(record), key=lambda finding: finding.at, default=None)
        if first is not None:
            found.append(Breach(law.name, first.text, max(record.seconds(first.at), 0.0), law.demand))
    return tuple(sorted(found, key=lambda breach: (breach.at_s, breach.law)))


# -- pauses and hooks ------------------------------------------------------------------------------------------------


def _stays_paused(record: Record) -> Iterator[Finding]:
    for _, versions in record.histories(POOL):
        earlier = [version for version in versions if version.at < record.began]
        was = bool(earlier) and dig(earlier[-1].obj, "spec", "paused") is True
        last = versions[-1]
        if not was and not last.gone and dig(last.obj, "spec", "paused") is True:
            since = next(v.at for v in versions if v.at >= record.began and dig(v.obj, "spec", "paused") is True)
            yield Finding(since, f"pool {name_of(last.obj)} is paused and stays so")
    for hold in record.last(HOLD_KIND):
        began = record.by_ref[ObjectRef(*HOLD_KIND, "", name_of(hold))][0].at
        if began >= record.began:
            yield Finding(began, f"Hold {name_of(hold)} is not given back")


def _hook_twice(record: Record) -> Iterator[Finding]:
    """A hook that has succeeded runs again in the same operation."""
    spans = [
        (operation.began, operation.ended or record.ended)
        for _, versions in record.histories(APPLICATION.group_kind)
        for operation in operations_of(record, versions)
    ]
    for ref, versions in record.by_ref.items():
        if not is_hook(versions[-1].obj):
            continue
        made: dict[str, datetime] = {}
        done: dict[str, datetime] = {}
        for version in versions:
            uid = uid_of(version.obj)
            made.setdefault(uid, version.at)
            if _is_complete(version.obj):
                done.setdefault(uid, version.at)
        for (before, first), (uid, again) in pairwise(made.items()):
            succeeded = before in done and done[before] <= again  # one that failed may be tried again
            if succeeded and any(began <= first and again <= ended for began, ended in spans):
                yield Finding(
                    again, f"hook {ref.kind} {ref.namespace}/{ref.name} runs again in the same sync ({uid[:8]})"
                )


def _is_complete(obj: Obj) -> bool:
    conditions = dig(obj, "status", "conditions", default=[])
    return any(c.get("type") in ("Complete", "SuccessCriteriaMet") and c.get("status") == "True" for c in conditions)


# -- availability ----------------------------------------------------------------------------------------------------


def _service_down(record: Record) -> Iterator[Finding]:
    for name, levels in service_levels(record):
        had = 0
        for level in levels:
            if level.number == 0 and had >= TWO and level.at >= record.began:
                yield Finding(level.at, f"Service {name} has no ready pod, and had {had}")
            had = max(had, level.number)


def _masters_down(record: Record) -> Iterator[Finding]:
    changes = sorted(
        (version for _, versions in record.histories(NODE) for version in versions if _is_control_plane(version.obj)),
        key=lambda version: version.at,
    )
    down: set[str] = set()
    for version in changes:
        name = version.ref.name
        (down.add if _is_down(version) else down.discard)(name)
        if len(down) >= TWO and version.at >= record.began:
            yield Finding(version.at, f"control-plane nodes {', '.join(sorted(down))} are down at once")


def _is_control_plane(node: Obj) -> bool:
    return any(label in labels_of(node) for label in CONTROL_PLANE)


def _is_down(version: Version) -> bool:
    conditions = dig(version.obj, "status", "conditions", default=[])
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
    return version.gone or not ready


# -- Git and ends ----------------------------------------------------------------------------------------------------


def _deleted_and_held(record: Record) -> Iterator[Finding]:
    for app in record.last(APPLICATION.group_kind):
        for row in dig(app, "status", "resources", default=[]):
            ref = ObjectRef(*(str(row.get(key) or "") for key in ("group", "kind", "namespace", "name")))
            versions = record.by_ref.get(ref)
            pruned = row.get("requiresPruning") is True or row.get("hook") is True
            if versions and versions[-1].gone and versions[-1].at >= record.began and not pruned:
                text = f"{ref.kind} {ref.name} is deleted, and Git still holds it (Application {name_of(app)})"
                yield Finding(versions[-1].at, text)


def _never_ends(record: Record) -> Iterator[Finding]:
    """An operation runs at the end, and no wait says why."""
    explained = {cause.subject for cause in record.samples[-1].causes} if record.samples else set()
    for app in record.last(APPLICATION.group_kind):
        running = dig(app, "status", "operationState", "phase") == "Running"
        subject = f"Application {app['metadata'].get('namespace')}/{name_of(app)}"
        if running and subject not in explained:
            yield Finding(record.ended, f"the operation of {subject} runs and does not say what it waits for")


def _restless(record: Record) -> Iterator[Finding]:
    if record.ending is not Ending.DONE or record.done is None:
        return
    for ref, versions in record.by_ref.items():
        late = [v for v in versions if v.at > record.done and int(dig(v.obj, "metadata", "generation", default=0) or 0)]
        if ref.kind != "Event" and len({dig(v.obj, "metadata", "generation") for v in late}) > TWO:
            yield Finding(late[0].at, f"{ref.kind} {ref.name} is changed again and again after all is done")


BUILT_IN = (
    RecordLaw(
        "nothing-stays-paused",
        "a pool that was not paused before is not paused afterwards, and no Hold is left",
        "a paused pool takes no update, and no one is reminded of it",
        _stays_paused,
    ),
    RecordLaw(
        "hook-once",
        "no hook runs again in a sync in which it succeeded",
        "hooks migrate data and page people",
        _hook_twice,
    ),
    RecordLaw(
        "service-up",
        "no Service that had two ready pods is without one",
        "two pods are what people run to have no outage",
        _service_down,
    ),
    RecordLaw(
        "one-control-plane",
        "never two control-plane nodes are down at once",
        "of three etcd members two must be up",
        _masters_down,
    ),
    RecordLaw(
        "git-keeps", "nothing is deleted that Git still holds", "Git is what people restore from", _deleted_and_held
    ),
    RecordLaw("says-why", "every operation ends, or says what it waits for", "nothing may wait silently", _never_ends),
    RecordLaw("rests", "what is done stays done", "controllers that undo one another never end", _restless),
)
"""The laws, in the order in which they are listed."""
