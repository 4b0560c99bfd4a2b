"""Formats a running sync: phases, waves, results of objects, and waits.

It gets the Application's successive states, and the plan if there is one; it sends no requests. On a terminal the plan
is a tree that redraws itself; in a pipe each change is one plain line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from syncline.assembly.inspection.preview import PlannedSync, Verb
from syncline.cli.frame.terminal import one_cell, undecorated
from syncline.kube.objects import Obj, ObjectRef, dig

MARKS = {"waiting": "·", "running": "…", "done": "✔", "failed": "✘", "skipped": "-"}
STYLES = {"waiting": "dim", "running": "yellow", "done": "green", "failed": "red", "skipped": "dim"}
DONE = ("Succeeded", "Failed", "Error")


@dataclass(frozen=True, slots=True)
class Row:
    """One object in one phase of the operation."""

    phase: str
    kind: str
    name: str
    state: str
    """One of :data:`MARKS`."""
    says: str


class Waves:
    """The wave of each object by the plan; names that were still to be generated match by prefix."""

    def __init__(self, plan: PlannedSync | None = None) -> None:
        self._exact: dict[tuple[str, str, str], int] = {}
        self._prefixes: list[tuple[str, str, str, int]] = []
        for group in plan.groups if plan is not None else ():
            for change in group.changes:
                name = change.ref.name
                if name.endswith("…"):
                    self._prefixes.append((group.phase, change.ref.kind, name[:-1], group.wave))
                else:
                    self._exact[group.phase, change.ref.kind, name] = group.wave

    def of(self, phase: str, kind: str, name: str) -> int | None:
        found = self._exact.get((phase, kind, name))
        if found is not None:
            return found
        return next(
            (w for p, k, prefix, w in self._prefixes if (p, k) == (phase, kind) and name.startswith(prefix)), None
        )


def rows_of(app: Obj) -> list[Row]:
    """Return the result rows of the operation, in the order in which they were recorded."""
    return [_row(entry) for entry in dig(app, "status", "operationState", "syncResult", "resources", default=[])]


def _row(entry: Obj) -> Row:
    status, phase = str(entry.get("status") or ""), str(entry.get("hookPhase") or "")
    hook = bool(entry.get("hookType"))
    if status == "SyncFailed" or phase in ("Failed", "Error"):
        state = "failed"
    elif status == "PruneSkipped":
        state = "skipped"
    elif status == "Pruned" or phase == "Succeeded" or (status == "Synced" and not hook and phase != "Running"):
        state = "done"
    else:
        state = "running"
    namespace = entry.get("namespace")
    name = str(entry.get("name") or "")
    message = str(entry.get("message") or "")
    return Row(
        str(entry.get("syncPhase") or "Sync"),
        str(entry.get("kind") or ""),
        name,
        state,
        message or (f"in namespace {namespace}" if namespace else ""),
    )


def _waiting(app: Obj) -> str:
    state = dig(app, "status", "operationState", default={})
    return str(state.get("message") or "") if state.get("phase") not in DONE else ""


class LineProgress:
    """One line per change; safe for pipes and logs."""

    def __init__(self, plan: PlannedSync | None = None, write: Callable[[str], None] = print) -> None:
        self._write = write
        self._waves = Waves(plan)
        self._observed: dict[tuple[str, str, str], tuple[str, str]] = {}
        self._said = ""
        self._line("TIME", "PHASE", "WAVE", "OBJECT", "", "MESSAGE")

    def _line(self, time: str, phase: str, wave: str, what: str, mark: str, says: str) -> None:
        self._write(one_cell(f"{time:<9} {phase:<9} {wave:>4}  {mark:<1} {what:<40} {says}".rstrip()))

    def update(self, app: Obj, now: datetime) -> None:
        clock = now.astimezone().strftime("%H:%M:%S")
        for row in rows_of(app):
            key, state = (row.phase, row.kind, row.name), (row.state, row.says)
            if self._observed.get(key) != state:
                self._observed[key] = state
                wave = self._waves.of(*key)
                shown = "" if wave is None else str(wave)
                self._line(clock, row.phase, shown, f"{row.kind} {row.name}", MARKS[row.state], row.says)
        self._say(app, clock)

    def _say(self, app: Obj, clock: str) -> None:
        state = dig(app, "status", "operationState", default={})
        text = f"{state.get('phase')}: {state.get('message')}" if state.get("message") else ""
        if text and text != self._said:
            self._said = text
            self._line(clock, "", "", text, "", "")

    def close(self) -> None:
        """Do nothing: there is no terminal state to restore."""


class TreeProgress:
    """The plan as a tree of phases and waves, redrawn in place."""

    def __init__(self, plan: PlannedSync | None = None) -> None:
        from rich.console import Console
        from rich.live import Live

        self._plan = plan
        self._waves = Waves(plan)
        self._since: tuple[str, datetime] | None = None
        self._live = Live(console=Console(file=undecorated()), refresh_per_second=8, transient=False)
        self._live.start()

    def update(self, app: Obj, now: datetime) -> None:
        self._live.update(self._tree(app, now), refresh=True)

    def close(self) -> None:
        self._live.stop()

    def _tree(self, app: Obj, now: datetime) -> Any:
        from rich.text import Text
        from rich.tree import Tree

        state = dig(app, "status", "operationState", default={})
        name = one_cell(str(dig(app, "metadata", "name", default="")))
        rest = one_cell(f"  {state.get('phase') or 'requested'}{self._wait(app, now)}")
        top = Tree(Text.assemble((name, "bold"), rest))
        for (phase, wave), lines in self._groups(app).items():
            title = phase if wave is None else f"{phase}, wave {wave}"
            branch = top.add(Text(one_cell(title), "bold"))
            for mark, text in lines:
                branch.add(Text(one_cell(f"{MARKS[mark]} {text}"), STYLES[mark]))
        return top

    def _wait(self, app: Obj, now: datetime) -> str:
        waiting = _waiting(app)
        if not waiting:
            self._since = None
            return f"  {dig(app, 'status', 'operationState', 'message', default='')}"
        if self._since is None or self._since[0] != waiting:
            self._since = (waiting, now)
        return f"  {waiting} ({int((now - self._since[1]).total_seconds())}s)"

    def _groups(self, app: Obj) -> dict[tuple[str, int | None], list[tuple[str, str]]]:
        """Return planned objects as waiting, replaced by their results; unchanged ones are only counted."""
        ran = {(row.phase, row.kind, row.name): row for row in rows_of(app)}
        groups: dict[tuple[str, int | None], list[tuple[str, str]]] = {
            (group.phase, group.wave): [] for group in (self._plan.groups if self._plan is not None else ())
        }
        for key, row in ran.items():
            lines = groups.setdefault((row.phase, self._waves.of(*key)), [])
            lines.append((row.state, f"{row.kind} {row.name}  {row.says}"))
        for group in self._plan.groups if self._plan is not None else ():
            for change in group.changes:
                key = (group.phase, change.ref.kind, change.ref.name)
                if (
                    key not in ran
                    and change.verb not in (Verb.DELETE_HOOK, Verb.UNCHANGED)
                    and not _unnamed(change.ref)
                ):
                    groups[group.phase, group.wave].append(("waiting", f"{change.ref.kind} {change.ref.name}"))
        return {key: lines for key, lines in groups.items() if lines}


def _unnamed(ref: ObjectRef) -> bool:
    """Return whether the name is still to be generated; the object is shown once it has one."""
    return ref.name.endswith("…")


Progress = LineProgress | TreeProgress


def progress_for(plan: PlannedSync | None = None, terminal: bool | None = None) -> Progress:
    """Return a tree for a terminal, lines for a pipe."""
    return TreeProgress(plan) if (sys.stdout.isatty() if terminal is None else terminal) else LineProgress(plan)
