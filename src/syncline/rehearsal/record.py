"""What happened in a rehearsal: :class:`Record`, the journal and every version of the objects that it saw.

Laws, timelines, waits and cures are pure functions of it. Values of Secrets are not kept, and its size is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Any

from syncline.base.cause import Cause
from syncline.base.clock import Clock
from syncline.base.journal import Entry
from syncline.kube.objects import GroupKind, Obj, ObjectRef, meta, ref_of
from syncline.rehearsal.given.state import WorldState
from syncline.rehearsal.guided.accesses import Turn

MAX_VERSIONS = 200_000
LEFT_OUT = ("Lease",)
"""Kinds whose versions say nothing about a roll-out."""
SECRET = "Secret"


@dataclass(frozen=True, slots=True)
class Version:
    """A state of an object. ``gone``: it was deleted, ``obj`` is its last state."""

    at: datetime
    ref: ObjectRef
    obj: Obj
    gone: bool = False


class Ending(StrEnum):
    """Why a rehearsal ended."""

    DONE = "done"
    STUCK = "stuck"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class Sample:
    """What was waited for at a time: the causes of all Applications, sets and pools that are not done."""

    at: datetime
    causes: tuple[Cause, ...]


@dataclass(frozen=True)
class Record:
    """``began``: when the commit arrived; earlier versions are of the world before it. ``done``: when nothing was
    waited for any more; None: it never was. ``overflow``: versions that were not kept."""

    began: datetime
    ended: datetime
    ending: Ending
    done: datetime | None
    journal: tuple[Entry, ...]
    versions: tuple[Version, ...]
    samples: tuple[Sample, ...]
    overflow: int = 0
    notes: tuple[str, ...] = ()
    """What of the world could not be made, in sentences."""
    steps: int = 0
    """Writes at which faults could strike; 0: undisturbed."""
    turns: tuple[Turn, ...] = ()
    """Who read and wrote what, of a run whose schedule has no faults."""

    @cached_property
    def by_ref(self) -> dict[ObjectRef, tuple[Version, ...]]:
        found: dict[ObjectRef, list[Version]] = {}
        for version in self.versions:
            found.setdefault(version.ref, []).append(version)
        return {ref: tuple(versions) for ref, versions in found.items()}

    def histories(self, kind: GroupKind) -> Iterator[tuple[ObjectRef, tuple[Version, ...]]]:
        """Yield the versions of each object of a kind, by name."""
        for ref in sorted(self.by_ref):
            if ref.group_kind == kind:
                yield ref, self.by_ref[ref]

    def last(self, kind: GroupKind) -> list[Obj]:
        """Return the objects of a kind that are there at the end."""
        return [versions[-1].obj for _, versions in self.histories(kind) if not versions[-1].gone]

    def seconds(self, at: datetime) -> float:
        """Return the seconds since the commit arrived."""
        return (at - self.began).total_seconds()


@dataclass
class Recorder:
    """Keeps versions while a rehearsal runs; :meth:`note` subscribes to a store."""

    clock: Clock
    versions: list[Version] = field(default_factory=list)
    overflow: int = 0
    changes: int = 0
    """Writes that may change what is waited for: all but Events, which only report."""
    changed_at: datetime | None = None
    """When the last one was."""

    def begin(self, state: WorldState) -> None:
        """Keep what was there before."""
        at = state.at - timedelta(microseconds=1)
        kept = [obj for obj in state.objects if obj["kind"] not in LEFT_OUT][:MAX_VERSIONS]
        self.versions += [Version(at, ref_of(obj), obj) for obj in kept]

    def note(self, event: Any) -> None:
        obj: Obj = event.stored.obj
        kind = obj.get("kind")
        if kind in LEFT_OUT:
            return
        if kind != "Event":
            self.changes, self.changed_at = self.changes + 1, self.clock.now()
        if len(self.versions) >= MAX_VERSIONS:
            self.overflow += 1
            return
        self.versions.append(Version(self.clock.now(), ref_of(obj), disclosed(obj), gone=event.type == "DELETED"))


def disclosed(obj: Obj) -> Obj:
    """Return what may be kept and shown of an object: all but the values of a Secret."""
    return {**obj, "metadata": _plain(obj), "data": {}, "stringData": {}} if obj.get("kind") == SECRET else obj


def _plain(secret: Obj) -> Obj:
    """Return the metadata of a Secret without its annotations, which may repeat its values."""
    return {key: value for key, value in meta(secret).items() if key not in ("annotations", "managedFields")}
