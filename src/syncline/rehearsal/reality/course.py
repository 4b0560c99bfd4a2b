"""The course of an operation: what happened to each object, in order, without times and drawn names. Pure.

A rehearsal, a replay and a live operation have comparable courses: :func:`course_of` makes one of a record,
:func:`first_differences` compares two.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, ObjectRef, annotations_of, dig, owner_references
from syncline.machineconfig.names import POOL
from syncline.rehearsal.answer.timeline import operations_of, wave_of
from syncline.rehearsal.record import Record, Version

LEFT_OUT = frozenset(
    (
        *(
            "Event",
            "Lease",
            "Pod",
            "ReplicaSet",
            "EndpointSlice",
            "Endpoints",
            "ControllerRevision",
            "MachineConfigNode",
        ),
        *("CertificateSigningRequest", "CSINode", "IPAddress", "ServiceCIDR", "PodMetrics", "NodeMetrics", "Hold"),
        *("ControllerConfig", "APIService", "FlowSchema", "PriorityLevelConfiguration", "ComponentStatus"),
    )
)
"""Kinds whose versions follow from others, or that servers keep for themselves."""
CONFIGS = "machineconfiguration.openshift.io/desiredConfig", "machineconfiguration.openshift.io/currentConfig"
UNSPECIFIC = ("status", "metadata", "apiVersion", "kind", "operation")
MADE = ("kube-root-ca.crt",)
_DATED = re.compile(r"-\d{10}$")
SHORT = 12


@dataclass(frozen=True, slots=True)
class Step:
    """Something happened to a subject, ``at_s`` seconds after the begin."""

    at_s: float
    what: str


Course = Mapping[str, tuple[Step, ...]]


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two courses of one subject part: at the step ``number``. ``first``, ``second``: what each does there;
    empty: nothing any more. ``why``: what the controllers of the second said about it."""

    subject: str
    at_s: float
    number: int
    first: str
    second: str
    why: str = ""

    def __str__(self) -> str:
        one, other = (each or "nothing more" for each in (self.first, self.second))
        return f"{self.subject}: {one}, not {other}"


def course_of(record: Record) -> Course:
    """Return the steps of each subject since the record began; subjects to which nothing happened are left out."""
    found: dict[str, list[Step]] = {}
    for ref in sorted(record.by_ref):
        steps = list(_steps(record, ref, record.by_ref[ref]))
        if steps:
            found[_subject(ref)] = steps
    return {subject: tuple(steps) for subject, steps in found.items()}


def _subject(ref: ObjectRef) -> str:
    if ref.group_kind == APPLICATION.group_kind:
        return f"app/{ref.name}"
    if ref.group_kind == POOL:
        return f"pool/{ref.name}"
    return f"{ref.kind.lower()}/{ref.namespace + '/' if ref.namespace else ''}{undated(ref.name)}"


def _steps(record: Record, ref: ObjectRef, versions: Sequence[Version]) -> Iterator[Step]:
    if ref.group_kind == APPLICATION.group_kind:
        yield from _of_application(record, versions)
    elif ref.group_kind == POOL:
        yield from _of_pool(record, versions)
    elif ref.kind == "Node" and not ref.group:
        yield from _changes(record, versions, _node)
    elif ref.kind not in LEFT_OUT and ref.name not in MADE and not owner_references(versions[-1].obj):
        yield from _changes(record, versions, _plain)


def _changes(record: Record, versions: Sequence[Version], said: Callable[[Obj], tuple[str, ...]]) -> Iterator[Step]:
    before: tuple[str, ...] | None = None
    for version in versions:
        now = () if version.gone else said(version.obj)
        if version.at >= record.began and now != before:
            at = record.seconds(version.at)
            if version.gone or before is None:
                yield Step(at, "is deleted" if version.gone else "is created")
            else:
                yield from (Step(at, what) for what in now if what not in before)
        before = None if version.gone else now


def _plain(obj: Obj) -> tuple[str, ...]:
    """Return what people say of an object, as a digest; of Secrets only that they are there."""
    if obj.get("kind") == "Secret":
        return ()
    content = {key: each for key, each in obj.items() if key not in UNSPECIFIC}
    return (f"changes to {_digest(content)}",)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:8]


def _node(node: Obj) -> tuple[str, ...]:
    wants, has = (annotations_of(node).get(key, "") for key in CONFIGS)
    cordoned = "is cordoned" if dig(node, "spec", "unschedulable") else "takes pods"
    return cordoned, *([f"is to have {wants}"] if wants else []), *([f"has {has}"] if has else [])


def _of_pool(record: Record, versions: Sequence[Version]) -> Iterator[Step]:
    def said(pool: Obj) -> tuple[str, ...]:
        wants = str(dig(pool, "spec", "configuration", "name") or "")
        has = str(dig(pool, "status", "configuration", "name") or "")
        return f"wants {wants}", f"is at {has}", *(["is paused"] if dig(pool, "spec", "paused") else [])

    yield from _changes(record, versions, said)


def _of_application(record: Record, versions: Sequence[Version]) -> Iterator[Step]:
    for operation in operations_of(record, versions):
        state = operation.last
        yield Step(max(record.seconds(operation.began), 0.0), f"a sync of {_revision(state)} begins")
        yield from _results(record, operation.versions)
        if operation.ended is not None:
            yield Step(record.seconds(operation.ended), f"the sync ends {state.get('phase')}")


def _results(record: Record, versions: Sequence[Version]) -> Iterator[Step]:
    """Yield the last result of each object of a sync, by phase and wave as these began. Their order is that of the
    versions: several have one time in virtual time."""
    began: dict[tuple[str, int], float] = {}
    last: dict[tuple[str, int], dict[str, str]] = {}
    for version in versions:
        for one in dig(version.obj, "status", "operationState", "syncResult", "resources", default=[]):
            group = str(one.get("syncPhase") or "Sync"), wave_of(record, one)
            began.setdefault(group, record.seconds(version.at))
            state = str(one.get("hookPhase") if one.get("hookType") else one.get("status") or "")
            last.setdefault(group, {})[f"{one.get('kind')}/{undated(str(one.get('name')))}"] = state
    for group in began:
        for name, state in sorted(last[group].items()):
            yield Step(began[group], f"{group[0]} wave {group[1]}: {name} {state}".rstrip())


def undated(name: str) -> str:
    """Return a name without the time at which a hook was generated."""
    return _DATED.sub("", name)


def _revision(state: Obj) -> str:
    result = state.get("syncResult") or dig(state, "operation", "sync") or {}
    several = result.get("revisions") or [result.get("revision") or ""]
    return ", ".join(str(each)[:SHORT] for each in several)


# -- comparing ---------------------------------------------------------------------------------------------------------


def first_differences(
    first: Course, second: Course, *, by: Record | None = None, cut: bool = False
) -> tuple[Difference, ...]:
    """Return where each subject's courses part, earliest first. ``by``: the record of the second, which says
    why. ``cut``: the first was ended while things went on, so the second may do more."""
    found: list[Difference] = []
    for subject in sorted({*first, *second}):
        ones, others = first.get(subject, ()), second.get(subject, ())
        number = next((n for n, (a, b) in enumerate(zip(ones, others, strict=False)) if a.what != b.what), None)
        if number is None:
            number = min(len(ones), len(others))
            if number == len(ones) and (cut or number == len(others)):
                continue
        one, other = (each[number] if number < len(each) else None for each in (ones, others))
        at = min(step.at_s for step in (one, other) if step is not None)
        said = one.what if one is not None else "", other.what if other is not None else ""
        until = other.at_s if other is not None else None
        found.append(Difference(subject, at, number, *said, why=_why(by, subject, until) if by is not None else ""))
    return tuple(sorted(found, key=lambda each: (each.at_s, each.subject)))


def _why(record: Record, subject: str, until_s: float | None) -> str:
    """Return what the controllers said last about a subject, before the time of the step in question."""
    name = subject.rpartition("/")[2]
    mine = [
        entry
        for entry in record.journal
        if entry.why
        and entry.subject.rpartition("/")[2] == name
        and (until_s is None or record.seconds(entry.when) <= until_s)
    ]
    return f"{mine[-1].who}: {mine[-1].why}" if mine else ""
