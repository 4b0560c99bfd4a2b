"""What was told of a change before it was made, held against what the nodes then went through, whatever went wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from syncline.machineconfig.impact.report import PoolImpact
from syncline.rehearsal.seams import Step

SERVICES = ("reload", "restart", "daemon-reload")
QUIET = frozenset(
    {"kill", "kill-before", "away", "host-error", "no-reboot"}
    | {"conflict", "busy", "error", "lost-request", "lost-answer", "refusals", "stood-still"}
    | {"lost-watch", "gone", "late", "twice", "stale-list"}
)
"""Faults of our own processes and of their way to the API: they change no order in which nodes are taken."""


@dataclass
class Foretold:
    """``told``: of the pool, before the change; ``breach``: takes the words of one."""

    told: PoolImpact
    breach: Callable[[str], None]
    _done: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _targeted: list[str] = field(default_factory=list)
    _ended: set[str] = field(default_factory=set)
    compared: int = 0

    def remembered(self) -> tuple[object, ...]:
        return sorted((name, sorted(done)) for name, done in self._done.items()), self._targeted, sorted(self._ended)

    def changes(self, step: Step, desired: str) -> None:
        """A change of a machine that is to have the config ``desired``."""
        if desired != self.told.after:
            return
        words = step.text.split()
        if words[0] == "reboot" and words[1].rpartition(".")[0] == desired:
            self._done[step.node].add("reboot")
        elif words[:2] == ["run", "systemctl"] and words[2] in SERVICES:
            self._done[step.node].add(" ".join(words[2:]))

    def node(self, name: str, desired: str, drained: str) -> None:
        """A node as it was just written."""
        if desired != self.told.after:
            return
        if name not in self._targeted:
            self._targeted.append(name)
        if drained == f"drain-{desired}":
            self._done[name].add("drain")

    def gone(self, name: str) -> None:
        """What takes its place is born with its config."""
        self._ended.add(name)

    def finished(self, name: str, config: str, *, cut: bool) -> None:
        """It says Done. ``cut``: it lost its power on the way, and who boots with all that is needed need not
        reboot once more."""
        if config != self.told.after or name in self._ended:
            return
        self._ended.add(name)
        told = next((set(node.steps) - {"none"} for node in self.told.nodes if node.node == name), None)
        if told is None:
            self.breach(f"nothing was to happen to {name}, and it is Done with {config}")
            return
        self.compared += 1
        if cut and told - self._done[name] == {"reboot"}:
            return
        if told != self._done[name]:
            did = ", ".join(sorted(self._done[name])) or "nothing"
            self.breach(f"{name} was to {', '.join(sorted(told)) or 'do nothing'}, and did {did}")

    def at_rest(self, struck: set[str]) -> None:
        """``struck``: kinds of faults."""
        if not struck <= QUIET:
            return
        waves = {node.node: node.wave for node in self.told.nodes}
        order = [waves.get(name, 0) for name in self._targeted]
        if order != sorted(order):
            self.breach(f"{', '.join(self._targeted)} were targeted in this order, foretold were waves {order}")
        if missing := waves.keys() - self._ended:
            self.breach(f"{', '.join(sorted(missing))} did not get {self.told.after}")
