"""What a run of Ansible on a node came to, as data: :class:`Outcome`, of :class:`Task`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

MAX_TASKS = 20
"""Changed tasks that are named in a report."""
MAX_MESSAGE = 500
CENSORED = "the output has been hidden: no_log is set"


@dataclass(frozen=True, slots=True)
class Task:
    """One task. ``place``: ``FILE:LINE`` below the content; ``message``: what it said, never of ``no_log``."""

    task: str
    place: str = ""
    host: str = ""
    message: str = ""
    tags: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return f"task {self.task!r}" + (f" ({self.place})" if self.place else "")

    def bounded(self) -> Task:
        return Task(
            self.task[:MAX_MESSAGE], self.place[:MAX_MESSAGE], self.host[:MAX_MESSAGE], self.message[:MAX_MESSAGE]
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a run or a check. ``failed``: the task that ended it; ``error``: why there was no complete run
    (time, memory, syntax, program); ``reboot``: the task for which the machine must reboot before it goes on;
    ``until``: it is still under way, and ends then; ``seconds`` it took; ``may_reboot``: a task whose change needs a
    reboot after the run was reached, whether it changed something or not."""

    changed: tuple[Task, ...] = ()
    failed: Task | None = None
    error: str = ""
    reboot: Task | None = None
    until: datetime | None = None
    seconds: float = 0.0
    may_reboot: bool = False

    @property
    def ok(self) -> bool:
        return self.failed is None and not self.error and self.reboot is None and self.until is None


def names_of(tasks: tuple[Task, ...], most: int = 3) -> str:
    """Return the first names for a sentence."""
    shown = ", ".join(task.text for task in tasks[:most])
    return shown + (f" and {len(tasks) - most} more" if len(tasks) > most else "")


def failure_text(name: str, node: str, outcome: Outcome) -> str:
    """Return one sentence: what failed, where, why, and what was done before."""
    before = f"; before it, {len(outcome.changed)} tasks changed the node: {names_of(outcome.changed)}"
    done = before if outcome.changed else "; nothing was changed before it"
    if outcome.failed is None:
        return f"AnsibleConfig {name}: {outcome.error}{done}"
    task = outcome.failed
    said = f": {task.message}" if task.message else ""
    return f"AnsibleConfig {name}: {task.text} failed on {task.host or node}{said}{done}"


def task_json(task: Task) -> dict[str, Any]:
    """Return a task for journals and statuses, without empty fields."""
    found = asdict(task.bounded())
    del found["tags"]
    return {key: value for key, value in found.items() if value}


def task_of(found: Mapping[str, Any]) -> Task:
    task, place, host, message = (str(found.get(key) or "") for key in ("task", "place", "host", "message"))
    return Task(task, place, host, message)
