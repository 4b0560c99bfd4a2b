"""A record of a live operation, as lines of JSON: :class:`Tape` makes them, :func:`recording_of` reads them. Pure.

Each line stands alone, so a file that ends in the middle of one is a record up to there. A line is one of: ``first``
(an object that was there), ``began`` (all was seen), ``at`` (a version of an object: ``type``, ``by``,
``object``), ``journal`` (what our controllers did), ``ended``. ``docs/reality.md`` documents them for people.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from syncline.base.clock import format_micro_time, time_or_none
from syncline.base.journal import Entry
from syncline.kube.objects import Obj, meta, name_of, ref_of
from syncline.rehearsal.given.state import WorldState
from syncline.rehearsal.reality.redacting import Redaction
from syncline.rehearsal.record import Ending, Record, Version
from syncline.rehearsal.scenario import ScenarioError

KIND, VERSION = "OperationRecord", "syncline.dev/v1alpha1"
MAX_BYTES = 256 * 1024 * 1024
"""Of a record, unpacked; it ends when it is full."""
MAX_LINES = 500_000
LEFT_OUT = frozenset(("Lease",))
GONE = "DELETED"


@dataclass(frozen=True, slots=True)
class Seen:
    """A version of an object, and who wrote it, as far as its managedFields tell."""

    version: Version
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recording:
    """``first``: all objects at ``began``; ``why``: the reason for which it ended."""

    name: str
    began: datetime
    ended: datetime
    why: str
    first: tuple[Obj, ...]
    seen: tuple[Seen, ...]
    journal: tuple[Entry, ...]
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> WorldState:
        """The cluster when it began."""
        return WorldState(self.began, self.first)

    @property
    def last(self) -> WorldState:
        """The cluster when it ended."""
        objects = {ref_of(obj): obj for obj in self.first}
        for each in self.seen:
            if each.version.gone:
                objects.pop(each.version.ref, None)
            else:
                kept = meta(objects.get(each.version.ref, {})).get("managedFields")
                fields = {"managedFields": kept} if kept else {}
                objects[each.version.ref] = {**each.version.obj, "metadata": {**fields, **meta(each.version.obj)}}
        return WorldState(self.ended, tuple(objects.values()))

    def record(self) -> Record:
        """Return it as the record of a rehearsal, for timelines and laws."""
        at = self.began - timedelta(microseconds=1)
        before = tuple(Version(at, ref_of(obj), obj) for obj in self.first)
        versions = (*before, *(each.version for each in self.seen))
        return Record(self.began, self.ended, Ending.LIMIT, None, self.journal, versions, ())


# -- writing -----------------------------------------------------------------------------------------------------------


@dataclass
class Tape:
    """Makes lines and hands them to ``write``. ``full``: nothing more is written."""

    write: Callable[[str], None]
    redaction: Redaction
    size: int = 0
    lines: int = 0
    begun: bool = False
    full: bool = False
    _early: list[Entry] = field(default_factory=list)

    def head(self, server: str) -> None:
        self._put({"apiVersion": VERSION, "kind": KIND, "server": server})

    def begin(self, at: datetime, unreadable: Mapping[str, str]) -> None:
        """From now on, changes are what happens; until now they were how the state became known."""
        self.begun = True
        self._put({"began": format_micro_time(at), "unreadable": dict(sorted(unreadable.items()))})

    def change(self, at: datetime, old: Obj | None, new: Obj | None) -> None:
        """Keep what a watch brought: ``old`` None: it is new to the watch; ``new`` None: it was deleted."""
        obj = new if new is not None else old
        assert obj is not None, "a change has an object"
        if obj.get("kind") in LEFT_OUT:
            return
        kept = self.redaction.of(obj)
        if not self.begun:
            self._put({"first": kept} if new is not None else {"first": kept, "gone": True})
            return
        kind = GONE if new is None else "MODIFIED" if old is not None else "ADDED"
        line: dict[str, Any] = {"at": format_micro_time(at), "type": kind, "object": _lean(kept)}
        self._put(line | ({"by": list(by)} if (by := writers(old or {}, obj)) and new is not None else {}))

    def entry(self, entry: Entry) -> None:
        """Keep an entry of our controllers' journal."""
        if self.begun:
            self._put({"journal": json.loads(self.redaction.entry(entry).line())})

    def end(self, at: datetime, why: str) -> None:
        """Close the record; a full one too."""
        masked = sorted(self.redaction.masked)
        self.write(json.dumps({"ended": format_micro_time(at), "why": why, "masked": masked[:1000]}) + "\n")
        self.full = True

    def _put(self, value: Mapping[str, Any]) -> None:
        line = json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"
        self.size, self.lines = self.size + len(line.encode()), self.lines + 1
        if self.full or self.size > MAX_BYTES or self.lines > MAX_LINES:
            self.full = True
            return
        self.write(line)


def _lean(obj: Obj) -> Obj:
    return {**obj, "metadata": {key: each for key, each in meta(obj).items() if key != "managedFields"}}


def writers(old: Obj, new: Obj) -> tuple[str, ...]:
    """Return the managers whose entries of managedFields are new or of another time, or have more fields than before:
    an entry that only lost fields lost them to another writer."""
    known = {_owner(each): each for each in meta(old).get("managedFields") or []}
    found: set[str] = set()
    for each in meta(new).get("managedFields") or []:
        before = known.get(_owner(each), {})
        if each.get("time") != before.get("time") or len(json.dumps(each)) > len(json.dumps(before)):
            found.add(str(each.get("manager") or ""))
    return tuple(sorted(found - {""}))


def _owner(entry: Obj) -> tuple[str, ...]:
    return tuple(str(entry.get(key) or "") for key in ("manager", "operation", "subresource", "apiVersion"))


# -- reading -----------------------------------------------------------------------------------------------------------


def recording_of(lines: Iterable[bytes], name: str) -> Recording:
    """Return the record of a file's lines. Raises ScenarioError (usage) with file and line if it is none. What comes
    after an unreadable line, such as one that was cut off, does not count."""
    reading = _Reading(name)
    for number, line in enumerate(lines, 1):
        if number > MAX_LINES + 1:
            said = f"{name}: has more than {MAX_LINES} lines; allowed: what `syncline record` writes"
            raise ScenarioError(said, usage=True)
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            reading.why = "its last line is cut off"
            break
        if number == 1 and (not isinstance(value, dict) or value.get("kind") != KIND):
            break
        if isinstance(value, dict):
            reading.take(value)
    return reading.result()


@dataclass
class _Reading:
    name: str
    began: datetime | None = None
    ended: datetime | None = None
    why: str = "it was still going on"
    headed: bool = False
    first: dict[Any, Obj] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    journal: list[Entry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def take(self, value: dict[str, Any]) -> None:
        obj = value.get("object", value.get("first"))
        if value.get("kind") == KIND:
            self.headed = value.get("apiVersion") == VERSION
        elif obj is not None:
            if isinstance(obj, dict) and obj.get("apiVersion") and obj.get("kind") and name_of(obj):
                self._object(value, obj)
        elif isinstance(value.get("journal"), dict):
            self._entry(value["journal"])
        elif "began" in value:
            self.began = self.ended = time_or_none(value["began"])
            self.notes += [f"{kind} could not be read: {why}" for kind, why in (value.get("unreadable") or {}).items()]
        elif "ended" in value:
            self.ended, self.why = time_or_none(value["ended"]) or self.ended, str(value.get("why") or "")
            masked = [str(each) for each in value.get("masked") or ()]
            if masked:
                some = ", ".join(masked[:5]) + (f" and {len(masked) - 5} more" if len(masked) > 5 else "")
                self.notes.append(f"credentials in texts are masked, so these may differ from Git: {some}")

    def _object(self, value: dict[str, Any], obj: Obj) -> None:
        ref, at = ref_of(obj), time_or_none(value.get("at"))
        if "first" in value:
            if value.get("gone"):
                self.first.pop(ref, None)
            else:
                self.first[ref] = obj
        elif at is not None:
            self.ended = max(at, self.ended or at)
            by = tuple(str(each) for each in value.get("by") or ())
            self.seen.append(Seen(Version(at, ref, obj, gone=value.get("type") == GONE), by))

    def _entry(self, value: dict[str, Any]) -> None:
        at = time_or_none(value.get("when"))
        if at is not None:
            self.ended = max(at, self.ended or at)
            self.journal.append(Entry(at, *(str(value.get(key) or "") for key in ("who", "subject", "what", "why"))))

    def result(self) -> Recording:
        if not self.headed:
            said = f"{self.name}: is no record; allowed: what `syncline record` writes ({VERSION})"
            raise ScenarioError(said, usage=True)
        if self.began is None or self.ended is None:
            said = f"{self.name}: it ends before the cluster was read once; record longer, or ask for fewer kinds"
            raise ScenarioError(said, usage=True)
        first, seen, journal = tuple(self.first.values()), tuple(self.seen), tuple(self.journal)
        return Recording(self.name, self.began, self.ended, self.why, first, seen, journal, tuple(self.notes))
