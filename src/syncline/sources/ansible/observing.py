"""What was observed of one captured run, from the lines of the throwaway root: :func:`observe_run`; pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from syncline.sources.ansible.reporting import (
    MAX_EVENTS,
    NoHosts,
    PlayReport,
    PlayStarted,
    ReportError,
    TaskResult,
    TaskStarted,
    Totals,
    read_event,
)
from syncline.sources.errors import Problem, SourceError

MAX_RECORDS = 10_000
LOCAL = re.compile(r"^/var/usrlocal(?=/|$)")


@dataclass(frozen=True, slots=True)
class Form:
    """What a path is, without its content."""

    kind: str
    """``file``, ``dir``, ``link``, ``other`` (a device, pipe or socket), or ``""``: it did not exist."""
    mode: int = 0
    user: int = 0
    group: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A path that differs after the play; ``form.kind`` is ``gone`` if it was removed."""

    path: str
    form: Form
    was: Form
    target: str = ""
    """Of a link; of one that was removed, its former one."""
    content: bytes | None = field(default=None, repr=False)
    """None: not a file, or larger than what is captured."""
    size: int = 0
    xattrs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """What a task did to the running system (``captured-root/recorder.py``)."""

    kind: str
    fields: tuple[tuple[str, Any], ...]
    task: TaskResult | None

    def get(self, name: str) -> str:
        return str(dict(self.fields).get(name, ""))

    def has(self, name: str) -> bool:
        return bool(dict(self.fields).get(name))


@dataclass(frozen=True, slots=True)
class Run:
    """One run: its report, what differs, which task touched which path, what was recorded, the accounts before."""

    report: PlayReport
    entries: tuple[Entry, ...]
    touched: Mapping[str, TaskResult]
    """The last task that touched a path."""
    records: tuple[Record, ...]
    kept: Mapping[str, str] = field(repr=False, default_factory=dict)
    """Content of account files before the play."""


def observe_run(lines: Iterable[bytes], folder: str, ended: str, said: str) -> Run:
    """Read the lines of a run. ``ended``: why we ended it. Raises :class:`SourceError` if they are not readable."""
    reading = _Reading(folder)
    for line in lines:
        try:
            reading.take(msgspec.json.decode(line))
        except (msgspec.DecodeError, ReportError, KeyError, TypeError, ValueError, binascii.Error) as error:
            raise SourceError(Problem.INVALID, f"the report of the play is unreadable ({error})") from None
    return reading.run(ended, said)


class _Reading:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._results: list[TaskResult] = []
        self._entries: list[Entry] = []
        self._touched: dict[str, TaskResult] = {}
        self._records: list[Record] = []
        self._kept: dict[str, str] = {}
        self._totals: tuple[Any, ...] = ()
        self._play, self._unmatched = "", list[str]()
        self._running: TaskStarted | None = None
        self._code, self._over = -9, ""

    def take(self, line: Mapping[str, Any]) -> None:
        kind = line["event"]
        if kind == "report":
            self._report(str(line["line"]))
        elif kind == "touched":
            if self._results:
                self._touched.update({LOCAL.sub("/usr/local", str(path)): self._results[-1] for path in line["paths"]})
        elif kind == "recorded" and len(self._records) < MAX_RECORDS:
            found = msgspec.json.decode(line["line"], type=dict[str, Any])
            fields = tuple(sorted((str(key), value) for key, value in found.items() if key != "kind"))
            self._records.append(Record(str(found["kind"]), fields, self._results[-1] if self._results else None))
        elif kind == "entry":
            self._entries.append(_entry(line))
        elif kind == "kept":
            self._kept[str(line["path"])] = str(line["text"])
        elif kind == "end":
            self._code, self._over = int(line["code"]), str(line["over"])

    def _report(self, line: str) -> None:
        event = read_event(line.encode(), self._folder)
        match event:
            case TaskStarted():
                self._running = event
            case TaskResult():
                self._running = None
                if len(self._results) >= MAX_EVENTS:
                    raise ReportError(f"more than {MAX_EVENTS} results")
                self._results.append(event)
            case PlayStarted():
                self._play = event.name
            case NoHosts():
                self._unmatched.append(self._play)
            case Totals():
                self._totals = event.hosts

    def run(self, ended: str, said: str) -> Run:
        ended = ended or (f"it used too much {self._over}".replace("cpu:", "processor time:") if self._over else "")
        running = self._running if self._code else None
        unmatched = tuple(self._unmatched)
        report = PlayReport(tuple(self._results), self._code, self._totals, unmatched, ended, running, said)
        return Run(report, tuple(self._entries), self._touched, tuple(self._records), self._kept)


def _entry(line: Mapping[str, Any]) -> Entry:
    content = line.get("content")
    return Entry(
        path=LOCAL.sub("/usr/local", str(line["path"])),
        form=_form(line),
        was=_form(line["was"]) if line["was"] else Form(""),
        target=str(line.get("target", "")),
        content=base64.b64decode(content) if content is not None else None,
        size=int(line.get("size", 0)),
        xattrs=tuple(str(each) for each in line.get("xattrs", ())),
    )


def _form(line: Mapping[str, Any]) -> Form:
    return Form(str(line["kind"]), int(line.get("mode", 0)), int(line.get("uid", 0)), int(line.get("gid", 0)))
