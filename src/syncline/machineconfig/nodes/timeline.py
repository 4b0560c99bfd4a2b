"""Reconstructs a roll-out: when each node of a pool was targeted, drained, rebooted and done; pure.

:func:`timeline_of` reads the Events of pool controller and node agents, which are the Machine Config Operator's
(reference machine-config 3.6, 4.3), and the nodes with what their agents report of playbooks. Events expire after about
an hour: what they no longer show is left out, not guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import accumulate

from syncline.base.clock import time_or_none
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.machineconfig.ansible.journal import REBOOTING, REPORT, Entry, reported
from syncline.machineconfig.names import CURRENT, DESIRED, FAILED_STATES, REASON
from syncline.machineconfig.pools.nodestate import is_done, mcd_state

_BEGINNINGS = ("AddSigtermProtection", "Drain")
"""Reasons of an agent's Events at the start of an update."""
_TARGETED = ("SetDesiredConfig", "SetDesiredConfigAndOSImage")
"""Reasons of the pool controller's Events, the second in image mode."""
_LATE = timedelta(seconds=30)
"""How much later than the Node its Event may be written: on a busy cluster the agent begins before."""


class Stretch(StrEnum):
    """A temporary state of a node."""

    DRAINS = "drains"
    """Cordoned, drained, its files and OS written."""
    REBOOTS = "reboots"
    """Down, back, its disk checked, uncordoned."""
    IN_PLACE = "in place"
    """Updated without a drain and a reboot."""
    PLAYS = "plays"
    """Its agent runs the playbook of an AnsibleConfig, and checks it once more."""


class Outcome(StrEnum):
    DONE = "done"
    WORKING = "working"
    DEGRADED = "degraded"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Span:
    """A state with its times. ``until`` None: it lasts."""

    stretch: Stretch
    since: datetime
    until: datetime | None


@dataclass(frozen=True, slots=True)
class NodeTimeline:
    """A node's updates. ``targeted`` None: no Event shows it (the node waits, or its Events have expired)."""

    node: str
    outcome: Outcome
    targeted: datetime | None = None
    ended: datetime | None = None
    spans: tuple[Span, ...] = ()
    reason: str = ""

    def took(self, now: datetime) -> timedelta | None:
        return None if self.targeted is None else (self.ended or now) - self.targeted


@dataclass(frozen=True, slots=True)
class Timeline:
    """The roll-out of ``config`` in a pool. ``nodes``: in the order in which they were targeted, then by name."""

    pool: str
    config: str
    now: datetime
    nodes: tuple[NodeTimeline, ...]

    @property
    def began(self) -> datetime | None:
        return min((each.targeted for each in self.nodes if each.targeted is not None), default=None)

    @property
    def ended(self) -> datetime | None:
        """When the last node was done; None while one is not."""
        if any(each.outcome is not Outcome.DONE for each in self.nodes):
            return None
        return max((each.ended for each in self.nodes if each.ended is not None), default=None)

    @property
    def done(self) -> int:
        return sum(each.outcome is Outcome.DONE for each in self.nodes)

    @property
    def most_at_once(self) -> int:
        """The maximum number of nodes that were updated at the same time."""
        steps: list[tuple[datetime, int]] = []
        for each in self.nodes:
            if each.targeted is not None and each.targeted < (each.ended or self.now):
                steps += [(each.targeted, 1), (each.ended or self.now, -1)]
        # At equal times, ends count before beginnings.
        return max(accumulate(change for _, change in sorted(steps)), default=0)


@dataclass(frozen=True, slots=True)
class _Said:
    reason: str
    message: str
    at: datetime


def timeline_of(pool: Obj, nodes: Iterable[Obj], events: Iterable[Obj], now: datetime, config: str = "") -> Timeline:
    """Return the timeline. ``nodes``: the pool's; ``events``: of pool and nodes; ``config``: by default the target."""
    aim = config or str(dig(pool, "spec", "configuration", "name", default=""))
    targeted, report = _sorted_out(pool, events, aim)
    found = [_of_node(node, aim, targeted.get(name_of(node)), report.get(name_of(node), ())) for node in nodes]
    found.sort(key=lambda each: (each.targeted is None, each.targeted or now, each.node))
    return Timeline(name_of(pool), aim, now, tuple(found))


def _sorted_out(pool: Obj, events: Iterable[Obj], config: str) -> tuple[dict[str, datetime], dict[str, list[_Said]]]:
    """Return when each node was last targeted, and what each node reported, oldest first."""
    targeted: dict[str, datetime] = {}
    fields: dict[str, list[_Said]] = {}
    for event in events:
        about = event.get("involvedObject") or {}
        at = time_or_none(event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp"))
        message, reason = str(event.get("message") or ""), str(event.get("reason") or "")
        if at is None:
            continue
        if about.get("kind") == "Node":
            fields.setdefault(str(about.get("name")), []).append(_Said(reason, message, at))
        elif about.get("name") == name_of(pool) and reason in _TARGETED and _names(message, config):
            # The Event has only a count if several nodes were targeted at once.
            node = message.removeprefix("Targeted node ").split(" ", 1)[0] if message.startswith("Targeted ") else ""
            targeted[node] = max(at, targeted.get(node, at))
    for said in fields.values():
        said.sort(key=lambda each: each.at)
    return targeted, fields


def _names(message: str, config: str) -> bool:
    return bool(config) and config in message.split()


def _of_node(node: Obj, config: str, targeted: datetime | None, report: Sequence[_Said]) -> NodeTimeline:
    have = annotations_of(node)
    asked = have.get(DESIRED) == config
    base = NodeTimeline(name_of(node), Outcome.WORKING if asked else Outcome.WAITING, targeted)
    if mcd_state(node) in FAILED_STATES:
        base = replace(base, outcome=Outcome.DEGRADED, reason=have.get(REASON, ""))
    elif have.get(CURRENT) == config and is_done(node):
        base = replace(base, outcome=Outcome.DONE)
    begun = _taken_up(report, config, asked)
    if targeted is None:
        targeted = begun
    elif begun is not None and targeted - _LATE <= begun:
        targeted = min(targeted, begun)
    if targeted is None:
        return base
    since = [each for each in report if each.at >= targeted]
    ended = _last(since, "NodeDone", config)
    if ended is not None and not asked:  # it has another target since
        base = replace(base, outcome=Outcome.DONE)
    ended = ended if base.outcome is Outcome.DONE else None
    spans = _with_plays(_spans(since, config, targeted, ended), _plays_of(node, targeted, ended))
    if base.outcome is Outcome.DONE and not _has_ended(spans):
        return replace(base, targeted=None)  # clocks differ or were corrected, or the Event of the end has expired
    return replace(base, targeted=targeted, ended=ended, spans=spans)


def _has_ended(spans: Sequence[Span]) -> bool:
    return all(span.until is not None and span.since <= span.until for span in spans)


def _taken_up(report: Sequence[_Said], config: str, asked: bool) -> datetime | None:
    """Return when the agent began, for nodes targeted together: their Event has only a count."""
    end = _last(report, "Reboot", config) or _last(report, "NodeDone", config)
    if end is None and not asked:
        return None
    others = [each.at for each in report if each.reason == "NodeDone" and not _names(each.message, config)]
    after = max((at for at in others if end is None or at <= end), default=None)
    begun = [
        each.at
        for each in report
        if each.reason in _BEGINNINGS and (end is None or each.at <= end) and (after is None or each.at > after)
    ]
    return max(begun, default=end)


def _spans(report: Sequence[_Said], config: str, targeted: datetime, ended: datetime | None) -> tuple[Span, ...]:
    reboot = _last(report, "Reboot", config)
    drains = [each.at for each in report if each.reason == "Drain" and "skipping" not in each.message]
    if reboot is None and not drains:
        return (Span(Stretch.IN_PLACE, targeted, ended),)
    if reboot is None:
        return (Span(Stretch.DRAINS, targeted, ended),)
    return (Span(Stretch.DRAINS, targeted, reboot), Span(Stretch.REBOOTS, reboot, ended))


def _plays_of(node: Obj, targeted: datetime, ended: datetime | None) -> list[Span]:
    """Return the last run of each AnsibleConfig, if it belongs to this update, with the reboots between its parts."""
    found: list[Span] = []
    for entry in reported(annotations_of(node).get(REPORT, "")).values():
        began, until = entry.began, entry.ended
        found += _parts_of(entry, targeted)
        if began is None or began < targeted or (ended is not None and (until is None or until > ended)):
            continue
        if until is None or began <= until:
            found.append(Span(Stretch.PLAYS, began, until))
    return sorted(found, key=lambda each: each.since)


def _parts_of(entry: Entry, targeted: datetime) -> Iterator[Span]:
    """Return the parts of a run that ended in a reboot, and these reboots."""
    begins = [*(since for since, _ in entry.parts), entry.began]
    for (since, until), after in zip(entry.parts, begins[1:], strict=True):
        if targeted <= since <= until and after is not None and until <= after:
            yield Span(Stretch.PLAYS, since, until)
            yield Span(Stretch.REBOOTS, until, after)
    if entry.phase == REBOOTING and entry.ended is not None and entry.ended >= targeted:
        yield Span(Stretch.REBOOTS, entry.ended, None)


def _with_plays(spans: tuple[Span, ...], plays: Iterable[Span]) -> tuple[Span, ...]:
    """Return the spans with the runs cut out of those in which they fall."""
    for play in plays:
        spans = (*(part for span in spans for part in _cut(span, play)), play)
    return tuple(sorted(spans, key=lambda each: (each.since, each.until is None, each.until or each.since)))


def _cut(span: Span, play: Span) -> Iterator[Span]:
    before = play.until is not None and play.until <= span.since
    after = span.until is not None and span.until <= play.since
    if before or after:
        yield span
        return
    if span.since < play.since:
        yield replace(span, until=play.since)
    if play.until is not None and (span.until is None or play.until < span.until):
        yield replace(span, since=play.until)


def _last(report: Sequence[_Said], reason: str, config: str) -> datetime | None:
    return max((each.at for each in report if each.reason == reason and _names(each.message, config)), default=None)
