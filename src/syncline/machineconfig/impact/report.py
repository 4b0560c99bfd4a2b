"""The result of a forecast per pool and node, as data and in sentences; pure. Entry point: :class:`Impact`.

``machineconfig/impact/forecast.py`` creates it, ``syncline mc impact`` and ``syncline plan`` print it. ``to_obj``
returns what ``-o json`` prints; scripts depend on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from syncline.kube.objects import Obj
from syncline.machineconfig.impact.causes import ALWAYS, SEVERITY, Cause, severity
from syncline.machineconfig.impact.pace import ASSUMED, Pace
from syncline.machineconfig.impact.plays import PlayImpact
from syncline.machineconfig.impact.rollout import State
from syncline.machineconfig.render.plan import NOT_RENDERED

NAMED = 3
"""Maximum nodes, causes or fixes that a sentence names; the rest is counted."""


class Verdict(StrEnum):
    """The overall result of an impact, worst last."""

    NOTHING = "nothing"
    CHANGES = "changes"
    BLOCKED = "blocked"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A rejection. ``about``: the rejected object, empty for the whole pool's config; ``fix``: what the user can do."""

    about: str
    message: str
    fix: str = ""

    def clauses(self) -> list[str]:
        """Return the error and its fix."""
        message = " ".join(self.message.removeprefix(NOT_RENDERED).split())
        report = message if not self.about else f"{self.about}: {message}"
        return [report, f"fix: {self.fix}"] if self.fix else [report]

    def __str__(self) -> str:
        return "; ".join(self.clauses())

    def to_obj(self) -> Obj:
        return {"object": self.about, "message": self.message, "fix": self.fix}


@dataclass(frozen=True, slots=True)
class NodeImpact:
    """The impact on a node. ``steps``: what happens, in order; empty if it is not updated. ``wave``: from 1; 0: already
    in progress. Times are seconds from now; ``ends_s`` None: the update does not end. ``counted`` False: extrapolated
    at the same pace, not simulated."""

    node: str
    pool: str
    state: State
    steps: tuple[str, ...] = ()
    wave: int = 0
    starts_s: float | None = None
    ends_s: float | None = None
    causes: tuple[Cause, ...] = ()
    reason: str = ""
    fixes: tuple[str, ...] = ()
    counted: bool = True

    @property
    def action(self) -> str:
        """The most severe effect on the node in one word."""
        if self.state is State.REFUSED or not self.steps:
            return self.state.value
        return severity(self.steps, drains="drain" in self.steps)

    def to_obj(self) -> Obj:
        return {
            "name": self.node,
            "action": self.action,
            "state": str(self.state),
            "steps": list(self.steps),
            "wave": self.wave,
            "startsAfterSeconds": _whole(self.starts_s),
            "endsAfterSeconds": _whole(self.ends_s),
            "causes": [str(cause) for cause in self.causes],
            "reason": self.reason,
            "wouldHelp": list(self.fixes),
        }


@dataclass(frozen=True, slots=True)
class PoolImpact:
    """The impact on a pool. ``before``, ``after``: target configs. ``machines``: how many it has; ``nodes``: those
    affected or waiting, in order. ``paused``: by whom; ``nodes`` are then those after a resume. ``held``: by which
    Hold, until when. ``pending``: how many nodes have an update due without the change. ``waits``: why it is not
    rendered yet; ``error``: why the roll-out is stopped."""

    name: str
    before: str
    after: str
    machines: int
    limit: int = 1
    nodes: tuple[NodeImpact, ...] = ()
    causes: tuple[Cause, ...] = ()
    refused: tuple[Refusal, ...] = ()
    paused: str = ""
    held: str = ""
    pending: int = 0
    waits: str = ""
    error: str = ""
    pace: Pace = ASSUMED
    used: frozenset[str] = frozenset()
    """Steps on whose durations the times are based."""

    @property
    def action(self) -> str:
        """The most severe effect on one of its nodes in one word."""
        if self.refused:
            return "refused"
        found = [node.action for node in self.nodes if node.action in SEVERITY]
        return max(found, key=SEVERITY.index) if found else "refused" if self._with(State.REFUSED) else "-"

    def _with(self, *states: State) -> list[NodeImpact]:
        return [node for node in self.nodes if node.state in states]

    @property
    def verdict(self) -> Verdict:
        if self.refused or self._with(State.REFUSED):
            return Verdict.REFUSED
        if self.waits or self.error or (self.paused and self.nodes) or self._with(State.BLOCKED, State.WAITS):
            return Verdict.BLOCKED
        return Verdict.CHANGES if self.nodes else Verdict.NOTHING

    @property
    def ends_s(self) -> float | None:
        """When the last node is done, in seconds; None if not all of them will be."""
        ends = [node.ends_s for node in self.nodes]
        return None if any(end is None for end in ends) else max((end or 0.0 for end in ends), default=0.0)

    def to_obj(self) -> Obj:
        return {
            "name": self.name,
            "verdict": str(self.verdict),
            "action": self.action,
            "from": self.before,
            "to": self.after,
            "machines": self.machines,
            "maxUnavailable": self.limit,
            "paused": self.paused,
            "held": self.held,
            "pendingBefore": self.pending,
            "waits": self.waits,
            "error": self.error,
            "refused": [each.to_obj() for each in self.refused],
            "causes": [cause.to_obj() for cause in self.causes],
            "nodes": [node.to_obj() for node in self.nodes],
            "endsAfterSeconds": _whole(self.ends_s) if self.nodes else 0,
            "lengths": {
                name: {"seconds": _whole(length.seconds), "measuredUpdates": length.updates}
                for name, length in self.pace.lengths().items()
            },
            "summary": self.sentence(),
        }

    # -- in words ------------------------------------------------------------------------------------------------

    def sentence(self) -> str:
        """Return all that a reviewer of the change must know, on one line."""
        head, *rest = self.clauses()
        return f"{head}{': ' if self.refused or self.waits else '; '}{'; '.join(rest)}" if rest else head

    def clauses(self) -> tuple[str, ...]:
        """Return the conclusion, then reasons, blocked nodes, fixes and notes."""
        start = f"pool {self.name}"
        if self.refused:
            return f"{start}: refused, no node is touched", *(text for each in self.refused for text in each.clauses())
        if self.waits:
            return f"{start}: nothing happens yet", self.waits
        if not self.nodes:
            return (f"{start}: nothing changes on its {_count(self.machines, 'node')}",)
        going = self._going()
        rest = (*self._because(), *self._stuck(), *self._left_out(), *self._pending())
        if self.paused:
            head = f"{start} is paused by {self.paused}: nothing happens until it is resumed; then {going}"
            return head, *rest
        return f"{start}: {f'held by {self.held}; then ' if self.held else ''}{going}", *rest

    def _going(self) -> str:
        """Return how many nodes go through which steps, how many at a time, and how long it takes."""
        going, kept = self._with(State.DONE), self._with(State.BLOCKED, State.REFUSED)
        if not going:
            verbs = next((_verbs(node.steps, one=False) for node in kept if node.steps), "change")
            return f"{_some([node.node for node in kept]) if kept else 'its nodes'} should {verbs} and cannot"
        together = max(Counter(node.wave for node in going if node.wave).values(), default=1)
        names = list(dict.fromkeys(node.node for node in going))
        pace = "" if len(names) == 1 else ", one at a time" if together == 1 else f", {together} at a time"
        kinds: dict[tuple[str, ...], dict[str, None]] = {}
        for node in going:
            kinds.setdefault(node.steps, {})[node.node] = None
        lines = [f"{_who(list(nodes))} {_verbs(steps, one=len(nodes) == 1)}" for steps, nodes in kinds.items()]
        first = min(going, key=lambda node: node.starts_s or 0.0).node
        begins = f", {first} first" if len(names) > 1 else ""
        begun = min(node.starts_s or 0.0 for node in going) if self.held else 0.0
        return f"{joined(lines)}{pace}{begins}, {about(max(node.ends_s or 0.0 for node in going) - begun)}"

    def _because(self) -> list[str]:
        if not self.causes:
            return []
        worst = max((severity(cause.actions, drains=False) for cause in self.causes), key=SEVERITY.index)
        mine = [cause for cause in self.causes if severity(cause.actions, drains=False) == worst]
        named = [f"{cause} ({', '.join(_grounds(cause))})" for cause in mine[:NAMED]]
        more = len(self.causes) - len(named)
        return [f"because {joined([*named, f'{more} more'] if more else named)}"]

    def _stuck(self) -> list[str]:
        """Return the blocked nodes, grouped by their fixes."""
        alike: dict[object, list[NodeImpact]] = {}
        for node in self._with(State.REFUSED, State.BLOCKED):
            alike.setdefault(node.fixes or node.reason.replace(node.node, ""), []).append(node)
        found = []
        for first, *others in list(alike.values())[:NAMED]:
            found.append(first.reason if first.node in first.reason else f"node {first.node}: {first.reason}")
            found += [f"the same holds for {_some([node.node for node in others])}"] if others else []
            found += [f"would help: {fix}" for fix in first.fixes[:NAMED]]
        more = sum(len(nodes) for nodes in list(alike.values())[NAMED:])
        found += [f"and for other reasons {_count(more, 'node')}"] if more else []
        return [*found, self.error] if self.error else found

    def _left_out(self) -> list[str]:
        by_reason: dict[str, list[str]] = {}
        for node in self._with(State.WAITS):
            by_reason.setdefault(node.reason, []).append(node.node)
        lines = [(_some(names), "waits" if len(names) == 1 else "wait", why) for why, names in by_reason.items()]
        return [f"{who} {verb}: {why}" for who, verb, why in lines]

    def _pending(self) -> list[str]:
        if not self.pending:
            return []
        verb = "has" if self.pending == 1 else "have"
        return [f"{_count(self.pending, 'node')} {verb} an update to come already, and both are one"]


@dataclass(frozen=True, slots=True)
class Impact:
    """The impact of a change. ``pools`` in the order in which they begin. ``refused``: rejected objects; ``notes``:
    limits of the forecast."""

    pools: tuple[PoolImpact, ...] = ()
    refused: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    changed: tuple[str, ...] = field(default=())
    """MachineConfigs that are created, changed or deleted, each with a mark: ``+ 99-nosmt``."""
    plays: tuple[PlayImpact, ...] = ()
    """The AnsibleConfigs of the change that are accepted."""

    @property
    def verdict(self) -> Verdict:
        found = [pool.verdict for pool in self.pools] + [Verdict.REFUSED] * bool(self.refused)
        return max(found, key=list(Verdict).index, default=Verdict.NOTHING)

    def to_obj(self) -> Obj:
        return {
            "verdict": str(self.verdict),
            "machineConfigs": list(self.changed),
            "pools": [pool.to_obj() for pool in self.pools],
            "ansible": [play.to_obj() for play in self.plays],
            "refused": [each.to_obj() for each in self.refused],
            "notes": list(self.notes),
        }


def _grounds(cause: Cause) -> list[str]:
    source = f"{cause.config} of {cause.origin}" if cause.origin and cause.config else cause.config
    return [text for text in ("" if cause.why == ALWAYS else cause.why, source) if text] or [cause.why]


def _verbs(steps: tuple[str, ...], *, one: bool) -> str:
    """Return ``drain and reboot``, or in the third person for one node."""
    done = [step for step in steps if step != "none"]
    if not done:
        return f"{'takes' if one else 'take'} it over without drain, service or reboot"
    words = [step.split(" ", 1) for step in done]
    return joined([" ".join([f"{verb}s" if one else verb, *rest]) for verb, *rest in words])


def joined(texts: Collection[str]) -> str:
    """Return ``a``, ``a and b``, ``a, b and c``."""
    found = list(texts)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}" if found else ""


def _who(names: list[str]) -> str:
    return names[0] if len(names) == 1 else _count(len(names), "node")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    label = "node" if len(names) == 1 else "nodes"
    return f"{label} {joined(names) if not more else ', '.join(names[:NAMED])}{more}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def about(seconds: float) -> str:
    """Return a duration in words: ``about 18 min``."""
    if seconds < 90:
        return f"about {round(seconds)} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"about {minutes} min"
    hours, rest = divmod(minutes, 60)
    if hours < 48:
        return f"about {hours} h {rest} min" if rest else f"about {hours} h"
    return f"about {hours // 24} d {hours % 24} h"


def _whole(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds)
