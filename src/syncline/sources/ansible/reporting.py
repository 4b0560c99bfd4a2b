"""What a play reports, line by line: :func:`read_event`, :class:`PlayReport`.

The callback plugin (``callback-plugins/syncline_report.py``) writes the lines within ``ansible-playbook``; whatever
runs there runs as the same user, so a hostile playbook can write lines of its own. A report therefore is bounded here,
and says what the play claims; what it left on the disk is observed by the caller.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

MAX_LINE = 256 * 1024
"""Bytes; the plugin bounds its texts below that, with escapes."""
MAX_EVENTS = 20_000
"""Of one run; a playbook of 1,000 tasks on one host gives 2,000."""
MAX_TEXT = 24_000


class ReportError(Exception):
    """A line is not of the plugin: the play wrote into its report, or the plugin is of another version."""


class State(StrEnum):
    OK = "ok"
    CHANGED = "changed"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A task began; on timeouts it is the one to name."""

    name: str
    position: str
    module: str


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of one task on one host; of a loop, of all its items."""

    state: State
    name: str
    """With variables filled in, and ``role : `` before it."""
    position: str
    """``file:line``, relative to the playbook's folder where it lies below."""
    module: str
    """As the task names it: ``copy``, ``ansible.builtin.copy``."""
    host: str
    ignored: bool = False
    """It failed, and the task says ``ignore_errors``. A failure that a ``rescue`` handles is not marked;
    :attr:`HostTotals.rescued` counts it."""
    role: str = ""
    delegated: str = ""
    """The host of ``delegate_to``."""
    handler: bool = False
    tags: tuple[str, ...] = ()
    notifies: tuple[str, ...] = ()
    asynchronous: bool = False
    censored: bool = False
    """By ``no_log``: message and diff are empty."""
    message: str = ""
    diff: str = ""
    items: int = 0
    started: float = 0.0
    """Seconds since 1970."""
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        return self.state in (State.FAILED, State.UNREACHABLE) and not self.ignored

    @property
    def where(self) -> str:
        """For messages: ``task "NAME" (FILE:LINE)``."""
        return f'task "{self.name}" ({self.position})'


@dataclass(frozen=True, slots=True)
class HostTotals:
    ok: int = 0
    changed: int = 0
    failures: int = 0
    unreachable: int = 0
    skipped: int = 0
    rescued: int = 0
    ignored: int = 0


@dataclass(frozen=True, slots=True)
class PlayStarted:
    name: str
    position: str


@dataclass(frozen=True, slots=True)
class NoHosts:
    """A play's ``hosts`` matched none of the inventory."""


@dataclass(frozen=True, slots=True)
class Totals:
    hosts: tuple[tuple[str, HostTotals], ...]


Event = TaskStarted | TaskResult | PlayStarted | NoHosts | Totals


@dataclass(frozen=True, slots=True)
class PlayReport:
    """One run of ``ansible-playbook``. ``exit_code`` as its own (0; 2: a task failed; 4: unreachable, or it could not
    be read; others: it could not be read); negative: ended by that signal."""

    results: tuple[TaskResult, ...]
    exit_code: int
    totals: tuple[tuple[str, HostTotals], ...] = ()
    unmatched: tuple[str, ...] = ()
    """Names of plays whose ``hosts`` matched none."""
    ended: str = ""
    """Why we ended it (time, output), one sentence; empty if it ended by itself."""
    running: TaskStarted | None = None
    """The task without a result, where the run ended in the middle."""
    said: str = ""
    """The end of its error output, for runs without results."""

    @property
    def changed(self) -> tuple[TaskResult, ...]:
        return tuple(one for one in self.results if one.state is State.CHANGED)

    @property
    def failed(self) -> tuple[TaskResult, ...]:
        """Failures that were not ignored, in order; some may have been rescued."""
        return tuple(one for one in self.results if one.failed)

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0 and not self.ended

    @property
    def why(self) -> str:
        """One sentence about a run that did not succeed."""
        if self.ended:
            at = f' in task "{self.running.name}" ({self.running.position})' if self.running else ""
            return f"the play was ended{at}: {self.ended}"
        if self.failed:
            last = self.failed[-1]
            said = "its output is hidden by no_log" if last.censored else last.message or "no message"
            return f"{last.where} on {last.host} {_ENDS[last.state]}: {said}"
        at = f' in task "{self.running.name}" ({self.running.position})' if self.running else ""
        return f"ansible-playbook ended with code {self.exit_code}{at}: {self.said or 'no message'}"


_ENDS = {State.FAILED: "failed", State.UNREACHABLE: "could not reach its host"}


def read_event(line: bytes, folder: str) -> Event:
    """Return the event of a line; ``folder``: positions below it become relative. Raises :class:`ReportError`."""
    if len(line) > MAX_LINE:
        raise ReportError(f"a line of the play's report has more than {MAX_LINE} bytes")
    try:
        found = msgspec.json.decode(line)
        kind = found["event"]
        if kind == "result":
            return _result(found, folder)
        if kind == "start":
            return TaskStarted(_text(found, "name"), _position(found, folder), _text(found, "module"))
        if kind == "play":
            return PlayStarted(_text(found, "name"), _position(found, folder))
        if kind == "stats":
            hosts = found["hosts"]
            return Totals(tuple((str(name), _totals(hosts[name])) for name in sorted(hosts)))
        if kind == "nohosts":
            return NoHosts()
    except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ReportError(f"a line of the play's report is unreadable ({type(error).__name__})") from None
    raise ReportError(f"a line of the play's report has the unknown event {str(kind)[:40]!r}")


def _result(found: Mapping[str, Any], folder: str) -> TaskResult:
    censored = bool(found["censored"])
    return TaskResult(
        state=State(found["state"]),
        name=_text(found, "name"),
        position=_position(found, folder),
        module=_text(found, "module"),
        host=_text(found, "host"),
        ignored=bool(found["ignored"]),
        role=_text(found, "role"),
        delegated=_text(found, "delegated"),
        handler=bool(found["handler"]),
        tags=tuple(str(each)[:500] for each in found.get("tags", ())[:100]),
        notifies=tuple(str(each)[:500] for each in found["notifies"][:100]),
        asynchronous=bool(found["asynchronous"]),
        censored=censored,
        message="" if censored else _text(found, "message"),
        diff="" if censored else _text(found, "diff"),
        items=int(found["items"]),
        started=float(found["started"]),
        seconds=float(found["seconds"]),
    )


def _totals(found: Mapping[str, Any]) -> HostTotals:
    return HostTotals(**{name: int(found.get(name, 0)) for name in HostTotals.__slots__})


def _text(found: Mapping[str, Any], name: str) -> str:
    return str(found[name])[:MAX_TEXT]


def _position(found: Mapping[str, Any], folder: str) -> str:
    path, _, line = _text(found, "position").rpartition(":")
    below = posixpath.relpath(path, folder) if folder and path.startswith(f"{folder}/") else path
    return f"{below}:{line}" if path else ""
