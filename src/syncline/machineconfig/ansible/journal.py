"""The journal of plays on a node's disk: what was applied, what is begun, what was found; pure.

A run that began is in the journal until it ended well, whatever becomes of the agent, the machine or the config that
asked for it; so nothing is half applied and forgotten. Entry points: :func:`read_journal`, :func:`plays_due`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from syncline.base.clock import format_time, parse_time, time_or_none
from syncline.machineconfig.ansible.outcome import MAX_TASKS, Outcome, Task, task_json, task_of
from syncline.machineconfig.ansible.play import REBOOT, Play

JOURNAL = "/var/lib/syncline/ansible/journal.json"
REPORT = "syncline.dev/ansible"
"""Annotation of a Node: what its agent reports of plays, as JSON by name of AnsibleConfig."""
MAX_PARTS = 5
"""Parts of a run, between its reboots, that are kept."""
MAX_REPORT = 16_000
"""Characters of the annotation; then the tasks are left out."""

WAITING, PLANNED, RUNNING, REBOOTING = "Waiting", "Planned", "Running", "Rebooting"
APPLIED, FAILED, NOT_IDEMPOTENT, DRIFTED = "Applied", "Failed", "NotIdempotent", "Drifted"
IN_TROUBLE = (FAILED, NOT_IDEMPOTENT, DRIFTED)
OPEN = (RUNNING, REBOOTING, FAILED, NOT_IDEMPOTENT)
"""Phases after which the play must run again."""


@dataclass(frozen=True)
class Entry:
    """The state of one play. ``applied``: digest that ran to its end, empty if none; ``digest``: that of ``phase``.
    ``at``: when the phase began; ``checked``: the last check for drift. ``boot``: the boot in which it ran, where a
    reboot must follow. ``reboots``: places of reboot tasks that are done; ``tasks``: what changed, or would."""

    phase: str
    digest: str
    at: datetime | None = None
    applied: str = ""
    checked: datetime | None = None
    boot: str = ""
    reboots: tuple[str, ...] = ()
    changed: int = 0
    tasks: tuple[Task, ...] = ()
    failed: Task | None = None
    error: str = ""
    until: datetime | None = None
    """When a run that is under way without an agent ends."""
    plan: str = ""
    """The digest whose check was made before the node was disturbed."""
    began: datetime | None = None
    """When the last run began, which later checks leave alone; ``ended`` None: it is under way."""
    ended: datetime | None = None
    parts: tuple[tuple[datetime, datetime], ...] = ()
    """The parts of this run that ended in a reboot, the last ones."""
    wants: str = ""
    """The boot in which an attempt that did not end well changed something that needs a reboot after the run."""
    unsure: str = ""
    """The boot in which an attempt began that has not said what it changed: it is under way, or its agent died."""

    @property
    def open(self) -> bool:
        return self.phase in OPEN

    def with_outcome(self, phase: str, outcome: Outcome, at: datetime) -> Entry:
        tasks = tuple(task.bounded() for task in outcome.changed[:MAX_TASKS])
        failed = outcome.failed.bounded() if outcome.failed is not None else None
        return replace(
            self,
            phase=phase,
            at=at,
            until=None,
            changed=len(outcome.changed),
            tasks=tasks,
            failed=failed,
            error=outcome.error,
        )


@dataclass(frozen=True)
class Journal:
    """All plays of a node by name. ``damage``: why the file cannot be read; then every play runs again."""

    entries: Mapping[str, Entry] = field(default_factory=dict)
    damage: str = ""

    def put(self, name: str, entry: Entry) -> Journal:
        return Journal({**self.entries, name: entry})

    def applied(self, play: Play) -> bool:
        """Return whether this very play ran to its end, and nothing else of its name began since."""
        entry = self.entries.get(play.name)
        return entry is not None and entry.applied == play.digest and not entry.open

    def owes_boot(self, play: Play, boot_id: str) -> bool:
        """Return whether the play was applied in this boot, and the machine must reboot after it."""
        entry = self.entries.get(play.name)
        return entry is not None and entry.applied == play.digest and bool(boot_id) and entry.boot == boot_id

    def under_way(self, now: datetime) -> datetime | None:
        """Return when the runs that are under way end; None: there are none."""
        found = [one.until for one in self.entries.values() if one.phase == RUNNING and one.until is not None]
        return max((until for until in found if until > now), default=None)

    def pruned(self, names: Iterable[str]) -> Journal:
        """Return the journal without plays that are not asked for any more, unless a run of theirs is open."""
        kept = set(names)
        return Journal({name: one for name, one in self.entries.items() if name in kept or one.open})


EMPTY = Journal()


def plays_due(plays: Iterable[Play], journal: Journal) -> tuple[Play, ...]:
    """Return the plays that must run: another content than was applied, or a run that did not end."""
    return tuple(play for play in plays if not journal.applied(play))


def check_due(plays: Iterable[Play], journal: Journal, now: datetime) -> tuple[tuple[Play, ...], float | None]:
    """Return the plays whose check for drift is due, and the seconds to the next one; None: there is none."""
    due: list[Play] = []
    left: list[float] = []
    for play in plays:
        entry = journal.entries.get(play.name)
        if not play.check_s or entry is None or not journal.applied(play):
            continue
        last = entry.checked or entry.at
        rest = (last + timedelta(seconds=play.check_s) - now).total_seconds() if last is not None else 0.0
        rest = rest if rest <= play.check_s else 0.0  # a time further ahead comes from a wrong clock
        (due.append(play) if rest <= 0 else left.append(rest))
    return tuple(due), min(left, default=None)


def boot_of(play: Play, boot_id: str) -> str:
    """Return the boot to note with a play that ran: empty if no reboot has to follow."""
    return boot_id if play.disruption == REBOOT else ""


# -- as a file ---------------------------------------------------------------------------------------------------------


def read_journal(content: bytes | None) -> Journal:
    """Return the journal; one that is damaged knows nothing, so every play runs again."""
    if not content:
        return EMPTY
    try:
        found: Any = json.loads(content)
        return Journal({str(name): _entry(one) for name, one in found["plays"].items()})
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return Journal(damage=f"{JOURNAL} is damaged ({type(error).__name__}): every play runs again")


def journal_file(journal: Journal) -> bytes:
    plays = {name: entry_json(one) for name, one in sorted(journal.entries.items())}
    return json.dumps({"plays": plays}, sort_keys=True, separators=(",", ":")).encode()


def _entry(found: Mapping[str, Any]) -> Entry:
    failed = found.get("failed")
    return Entry(
        str(found["phase"]),
        str(found["digest"]),
        time_or_none(found.get("at")),
        str(found.get("applied") or ""),
        time_or_none(found.get("checkedAt")),
        str(found.get("boot") or ""),
        tuple(map(str, found.get("reboots") or ())),
        int(found.get("changed") or 0),
        tuple(map(task_of, found.get("tasks") or ())),
        task_of(failed) if isinstance(failed, dict) else None,
        str(found.get("error") or ""),
        time_or_none(found.get("until")),
        str(found.get("plan") or ""),
        time_or_none(found.get("began")),
        time_or_none(found.get("ended")),
        tuple((parse_time(since), parse_time(until)) for since, until in found.get("parts") or ()),
        str(found.get("wants") or ""),
        str(found.get("unsure") or ""),
    )


def entry_json(entry: Entry) -> dict[str, Any]:
    """Return an entry for the file and for the node's report, without empty fields."""
    found = {
        "phase": entry.phase,
        "digest": entry.digest,
        "at": format_time(entry.at) if entry.at is not None else "",
        "applied": entry.applied,
        "checkedAt": format_time(entry.checked) if entry.checked is not None else "",
        "boot": entry.boot,
        "reboots": list(entry.reboots),
        "changed": entry.changed,
        "tasks": [task_json(task) for task in entry.tasks],
        "failed": task_json(entry.failed) if entry.failed is not None else None,
        "error": entry.error,
        "until": format_time(entry.until) if entry.until is not None else "",
        "plan": entry.plan,
        "began": format_time(entry.began) if entry.began is not None else "",
        "ended": format_time(entry.ended) if entry.ended is not None else "",
        "parts": [[format_time(since), format_time(until)] for since, until in entry.parts],
        "wants": entry.wants,
        "unsure": entry.unsure,
    }
    return {key: value for key, value in found.items() if value}


_PRIVATE = ("boot", "reboots", "plan", "checkedAt", "wants", "unsure")


def report_text(journal: Journal) -> str:
    """Return the annotation :data:`REPORT`; empty without plays. Times of checks are left out: a check that finds
    nothing writes nothing."""
    if not journal.entries:
        return ""
    plays = {name: entry_json(one) for name, one in sorted(journal.entries.items())}
    for one in plays.values():
        for key in _PRIVATE:
            one.pop(key, None)
    text = json.dumps(plays, sort_keys=True, separators=(",", ":"))
    if len(text) > MAX_REPORT:
        for one in plays.values():
            one.pop("tasks", None)
        text = json.dumps(plays, sort_keys=True, separators=(",", ":"))
    return text[:MAX_REPORT] if len(text) <= MAX_REPORT else "{}"


def reported(text: str) -> dict[str, Entry]:
    """Return what a node reports; empty if it cannot be read."""
    if not text or len(text) > 2 * MAX_REPORT:
        return {}
    return dict(read_journal(b'{"plays":' + text.encode() + b"}").entries)
