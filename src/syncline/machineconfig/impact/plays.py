"""What the AnsibleConfigs of a change ask of nodes: their tasks, and which of them would change something; pure.

Called by ``machineconfig/impact/forecast.py``. A forecast runs nothing: who asks for it may run the playbook in check
mode and hand over what that found, as :class:`Checked`. What a node's own agent has checked already is its report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.text.durations import DurationError
from syncline.machineconfig.ansible.content import ContentError
from syncline.machineconfig.ansible.examining import examine
from syncline.machineconfig.ansible.journal import PLANNED
from syncline.machineconfig.ansible.outcome import Outcome, Task, names_of, task_json
from syncline.machineconfig.ansible.plan import play_of
from syncline.machineconfig.ansible.play import Play
from syncline.machineconfig.ansible.reading import Found
from syncline.machineconfig.ansible.status import reports_of

NAMED = 10
"""Tasks that a sentence names."""
UNCHECKED = "which tasks would change something is not known: --check runs them in check mode in a throwaway root"
OWN = "each node checks for itself before it is disturbed"


@dataclass(frozen=True, slots=True)
class Checked:
    """A run in check mode. ``place``: what it ran on, in a few words; ``passed``: tasks of which check mode says
    nothing; ``unknown``: why there was no run."""

    outcome: Outcome = field(default_factory=Outcome)
    place: str = ""
    passed: tuple[Task, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class PlayImpact:
    """One AnsibleConfig. ``tasks``: all that it can reach; ``checked`` None: no check was asked for; ``nodes``: by
    node, what its own check of the same play would change."""

    name: str
    pool: str
    what: str
    commit: str
    disruption: str
    tasks: tuple[Task, ...] = ()
    checked: Checked | None = None
    nodes: Mapping[str, tuple[Task, ...]] = field(default_factory=dict)

    def clauses(self) -> tuple[str, ...]:
        """Return what it is, then what it would change, or why that is not known."""
        count = f"{len(self.tasks)} task" + ("s" if len(self.tasks) != 1 else "")
        head = f"AnsibleConfig {self.name}: {self.what} of {self.commit[:12]}, {count}, disruption {self.disruption}"
        own = [f"{node} has checked: it would change {_named(tasks)}" for node, tasks in sorted(self.nodes.items())]
        return head, *self._would(), *own[:NAMED], OWN

    def _would(self) -> list[str]:
        if self.checked is None:
            return [] if self.nodes else [UNCHECKED]
        if self.checked.unknown:
            return [f"which tasks would change something is not known: {self.checked.unknown}"]
        found = self.checked.outcome
        lines = [f"in check mode {self.checked.place} it would change {_named(found.changed)}"]
        if self.checked.passed:
            lines.append(f"check mode says nothing of {_named(self.checked.passed)}")
        if found.failed is not None:
            said = f": {found.failed.message}" if found.failed.message else ""
            lines.append(f"the check ended at {found.failed.text}{said}; what follows is not known")
        elif found.error:
            lines.append(f"the check ended early: {found.error}; what follows is not known")
        return lines

    def to_obj(self) -> Obj:
        checked = self.checked
        return {
            "name": self.name,
            "pool": self.pool,
            "playbook": self.what,
            "revision": self.commit,
            "disruption": self.disruption,
            "tasks": [task_json(task) | ({"tags": list(task.tags)} if task.tags else {}) for task in self.tasks],
            "wouldChange": None if checked is None or checked.unknown else _objects(checked.outcome.changed),
            "checkedOn": checked.place if checked is not None else "",
            "unknown": self._would()[0 if checked is None or checked.unknown else 1 :],
            "nodes": {node: _objects(tasks) for node, tasks in sorted(self.nodes.items())},
        }


def play_impact(config: Obj, found: Found, nodes: Sequence[Obj], checked: Checked | None = None) -> PlayImpact | None:
    """Return the impact of an AnsibleConfig at what was read; None if it is refused."""
    play = accepted_play(config, found)
    if play is None:
        return None
    seen = examine(found.files, play.playbook, play.role)
    own = {
        node: entry.tasks
        for node, entry in reports_of(play.name, nodes).items()
        if entry is not None and entry.phase == PLANNED and entry.digest == play.digest
    }
    pool = str(dig(config, "spec", "pool") or "")
    return PlayImpact(name_of(config), pool, play.what, found.commit, play.disruption, seen.tasks, checked, own)


def accepted_play(config: Obj, found: Found) -> Play | None:
    """Return the play of an AnsibleConfig; None if it is refused or was not read."""
    try:
        play, _, refusals = play_of(config, found)
    except (ContentError, DurationError, KeyError):
        return None
    return play if found.commit and not refusals else None


def _named(tasks: tuple[Task, ...]) -> str:
    return names_of(tasks, NAMED) if tasks else "nothing"


def _objects(tasks: tuple[Task, ...]) -> list[Obj]:
    return [task_json(task) for task in tasks]
