"""Forecasts what a change does to the nodes of a cluster; pure. Entry point: :class:`Forecaster`.

The change is applied to a copy of a snapshot, the controllers that lead to rendered configs run on the copy until idle,
then the roll-out is simulated; the result is an :class:`Impact`. The caller passes the controllers, since ``assembly``
connects the packages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from syncline.control.cache import Snapshot
from syncline.control.controller import Controller
from syncline.control.plan import Patch, Stalled
from syncline.kube.kinds.ansible import ANSIBLE_CONFIG
from syncline.kube.kinds.holds import holds_of, pause_writer
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    gvk_of,
    labels_of,
    name_of,
    owner_references,
    ref_of,
)
from syncline.kube.selectors import SelectorError
from syncline.machineconfig.agent.planning.observe import CLUSTER
from syncline.machineconfig.agent.planning.work import Work
from syncline.machineconfig.ansible.plan import wanted_of
from syncline.machineconfig.ansible.reading import Found, Wanted
from syncline.machineconfig.configs.parsing import ConfigError
from syncline.machineconfig.drain import observe as drain_observing
from syncline.machineconfig.impact.causes import Cause, Sides, action_text, causes_of
from syncline.machineconfig.impact.pace import Pace, Samples, sampled
from syncline.machineconfig.impact.plays import Checked, PlayImpact, play_impact
from syncline.machineconfig.impact.report import Impact, NodeImpact, PoolImpact, Refusal
from syncline.machineconfig.impact.rollout import Rollout, State, Turn, worked_out
from syncline.machineconfig.impact.scratch import Scratch, kinds_of
from syncline.machineconfig.impact.waiting import failing_words, why_it_waits
from syncline.machineconfig.names import CONTROLLER_CONFIG, CURRENT, MACHINE_CONFIG, MACHINE_CONFIG_NODE, POOL
from syncline.machineconfig.pools import observe as pool_observing
from syncline.machineconfig.pools.candidates import LimitError, max_unavailable, update_order
from syncline.machineconfig.pools.membership import MembershipError, members
from syncline.machineconfig.pools.nodestate import target_of
from syncline.machineconfig.pools.observe import HOLDS, LEASES, NODE, OS_BUILD, OS_CONFIG
from syncline.machineconfig.pools.plan import PoolSettings
from syncline.machineconfig.render.controller import DEBOUNCE_S
from syncline.machineconfig.render.fixes import fix_for
from syncline.machineconfig.render.naming import PREFIX
from syncline.machineconfig.render.observe import RenderSettings, observe_render
from syncline.machineconfig.render.plan import Decision, decide
from syncline.machineconfig.render.select import select

EVENTS = GroupKind("", "Event")
SETTLES = timedelta(seconds=DEBOUNCE_S)
"""Time from the change to the rendered config, in which the render collects further changes."""


@dataclass(frozen=True)
class Change:
    """A change. ``applied``: manifests as for ``kubectl apply``; ``put``: complete objects; ``deleted``. ``origins``:
    where an object comes from, in a few words."""

    applied: Sequence[Obj] = ()
    put: Sequence[Obj] = ()
    deleted: Sequence[ObjectRef] = ()
    origins: Mapping[ObjectRef, str] = field(default_factory=dict)
    playbooks: Mapping[Wanted, Found] = field(default_factory=dict)
    """What was read for AnsibleConfigs of the change."""
    checks: Mapping[str, Checked] = field(default_factory=dict)
    """By name of AnsibleConfig, what its playbook found in check mode."""


def kinds_read(controllers: Collection[Controller[Any]]) -> set[GroupKind]:
    """Return all kinds that a forecast reads, except Events."""
    found = kinds_of(controllers) | {POOL, MACHINE_CONFIG, MACHINE_CONFIG_NODE, CONTROLLER_CONFIG, NODE, HOLDS, LEASES}
    found |= {CLUSTER.group_kind, OS_CONFIG, OS_BUILD, drain_observing.POD, *drain_observing.READS}
    return found | {index.kind for index in pool_observing.indices().values()}  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Forecaster:
    """Forecasts on a snapshot. ``controllers`` lead from users' objects to rendered configs, rendering last. ``render``
    and ``pools``: settings of the cluster's controllers."""

    snapshot: Snapshot
    controllers: Sequence[Controller[Any]]
    render: RenderSettings
    pools: PoolSettings = field(default_factory=PoolSettings)

    def forecast(self, change: Change, now: datetime, pool: str = "") -> Impact:
        """Return the impact. ``pool``: report only this pool; the others are simulated, too."""
        # Times in objects have whole seconds.
        report = _Telling(self, change, now.replace(microsecond=0))
        return report.impact(pool)

    def scratch(self) -> Scratch:
        indices = pool_observing.indices() | drain_observing.indices()
        return Scratch(self.snapshot, kinds_read(self.controllers), indices, self.controllers)

    def samples(self) -> Samples:
        return sampled(self.snapshot.objects(EVENTS), self.snapshot.objects(MACHINE_CONFIG_NODE))


class _Telling:
    """One forecast: the changed copy, its simulation, and the report."""

    def __init__(self, by: Forecaster, change: Change, now: datetime) -> None:
        self._by, self._change, self._now = by, change, now
        self._samples = by.samples()
        self._known: dict[tuple[str, str, str, bool], tuple[Cause, ...]] = {}
        self._scratch = self._changed(resumed=())
        self._before = {name_of(one): one for one in by.snapshot.objects(MACHINE_CONFIG)}
        self._after = {name_of(one): one for one in self._scratch.cache.objects(MACHINE_CONFIG)}
        self._all = tuple(self._after.values())
        self._decisions = {name_of(pool): self._decision(pool) for pool in self._pools(self._scratch)}

    def impact(self, only: str) -> Impact:
        paused = [name_of(pool) for pool in self._pools(self._scratch) if dig(pool, "spec", "paused") is True]
        simulated = self._simulate(self._scratch)
        resumed = None
        if any(simulated.left(pool) for pool in self._pools(self._scratch) if name_of(pool) in paused):
            resumed = self._simulate(self._changed(resumed=paused))
        found = [
            self._pool(pool, resumed if resumed is not None and name_of(pool) in paused else simulated)
            for pool in self._pools(self._scratch)
        ]
        lines = [one for one in found if self._matters(one) and only in ("", one.name)]
        lines.sort(key=lambda one: (bool(one.paused), _begins(one), one.name))
        plays = _plays(self._change, _ansible(self._change, self._scratch), self._by.snapshot.objects(NODE))
        return Impact(tuple(lines), self._refused(), self._notes(simulated), self._marks(), plays)

    def _matters(self, one: PoolImpact) -> bool:
        return bool(one.nodes or one.refused or one.waits) or one.before != one.after

    def _pools(self, scratch: Scratch) -> list[Obj]:
        return scratch.cache.objects(POOL)

    # -- the copy and its simulation -----------------------------------------------------------------------------------

    def _changed(self, resumed: Collection[str]) -> Scratch:
        scratch, now, change = self._by.scratch(), self._now, self._change
        for obj in change.applied:
            scratch.apply(obj, now)
        for obj in change.put:
            scratch.put(obj, now)
        for ref in change.deleted:
            scratch.delete(ref, now)
        for pool in scratch.cache.objects(POOL):
            if name_of(pool) in resumed:
                body = {"spec": {"paused": False}}
                scratch.handle([Patch(gvk_of(pool), "", name_of(pool), body, "as if it were resumed")], now)
        scratch.settle(now)
        return scratch

    def _simulate(self, scratch: Scratch) -> Rollout:
        paces = {name_of(pool): self._pace(scratch, pool) for pool in scratch.cache.objects(POOL)}
        found = Rollout(scratch, self._now + SETTLES, paces, self._by.pools)
        found.simulate()
        return found

    def _pace(self, scratch: Scratch, pool: Obj) -> Pace:
        return self._samples.pace(name_of(node) for node in _members(scratch, pool))

    def _decision(self, pool: Obj) -> Decision | None:
        observed = observe_render(self._scratch.cache, ref_of(pool), self._by.render)
        return decide(observed) if observed is not None else None

    # -- one pool ------------------------------------------------------------------------------------------------

    def _pool(self, pool: Obj, simulated: Rollout) -> PoolImpact:
        name = name_of(pool)
        live = self._by.snapshot.get(ref_of(pool))
        before, after = target_of(live or {}), target_of(pool)
        nodes = _members(self._scratch, pool)
        refused, waits = self._not_rendered(name)
        behind = self._behind(live, before, {turn.node for turn in simulated.turns if turn.under_way})
        report = self._nodes(pool, simulated, before)
        pace = simulated.paces[name]
        return PoolImpact(
            name,
            before,
            after,
            len(nodes),
            _limit(pool, len(nodes)),
            report,
            _distinct(report),
            refused,
            _paused(pool) if dig(pool, "spec", "paused") is True else "",
            self._held(name),
            behind if before != after else 0,
            waits,
            simulated.errors.get(name, ""),
            pace,
            frozenset(
                step for turn in simulated.turns if turn.pool == name and turn.ended for step in _used(turn, pace)
            ),
        )

    def _not_rendered(self, name: str) -> tuple[tuple[Refusal, ...], str]:
        decision = self._decisions[name]
        if decision is None:
            return (), ""
        if decision.error is not None:
            mine = {name_of(one) for one in _selected(self._scratch.cache.get(ObjectRef(*POOL, "", name)), self._all)}
            touched = [one for one in self._touched() if one in mine]
            culprit = decision.culprit or (touched[0] if len(touched) == 1 else "")
            about = f"MachineConfig {culprit}" if culprit else ""
            return (Refusal(about, decision.error, fix_for(decision.error)),), ""
        return (), decision.waits or ""

    def _behind(self, live: Obj | None, target: str, busy: Collection[str]) -> int:
        """Return how many nodes wait for an update that is due without the change."""
        if live is None:
            return 0
        snapshot = self._by.snapshot
        try:
            nodes = members(live, snapshot.objects(NODE), snapshot.objects(POOL))
        except MembershipError:
            return 0
        waiting = [node for node in nodes if name_of(node) not in busy]
        return sum(annotations_of(node).get(CURRENT, target) != target for node in waiting)

    def _held(self, name: str) -> str:
        living = [hold for hold in holds_of(self._scratch.cache.objects(HOLDS)) if hold.lives(self._now)]
        return "; ".join(hold.sentence() for hold in living if name in hold.pools)

    # -- its nodes -----------------------------------------------------------------------------------------------

    def _nodes(self, pool: Obj, simulated: Rollout, before: str) -> tuple[NodeImpact, ...]:
        turns = [turn for turn in simulated.turns if turn.pool == name_of(pool)]
        lines = [self._node(turn, before) for turn in turns]
        left = sorted(simulated.left(pool), key=update_order)
        if simulated.cut:
            return (*lines, *self._extrapolated(left, turns, before))
        return (*lines, *self._waiting(left, pool, simulated))

    def _node(self, turn: Turn, before: str) -> NodeImpact:
        ends = None if turn.ended is None else (turn.ended - self._now).total_seconds()
        return NodeImpact(
            turn.node,
            turn.pool,
            turn.state,
            _steps(turn),
            turn.wave,
            0.0 if turn.under_way else (turn.began - self._now).total_seconds(),
            ends,
            self._causes(turn, before),
            turn.reason,
            turn.fixes,
        )

    def _causes(self, turn: Turn, before: str) -> tuple[Cause, ...]:
        if turn.work is None:
            return ()
        key = (turn.old, turn.new, turn.pool, turn.under_way)
        if key not in self._known:
            self._known[key] = self._found_causes(turn, turn.work, before)
        return self._known[key]

    def _found_causes(self, turn: Turn, work: Work, before: str) -> tuple[Cause, ...]:
        cache, sides = self._scratch.cache, self._sides(turn.pool)
        one, other = (cache.get(ObjectRef(*MACHINE_CONFIG, "", name)) for name in (turn.old, turn.new))
        assert one is not None and other is not None, "its work was found"
        pending = self._pending(turn.old, before, turn.new)
        if turn.under_way and sides.touched:  # it has begun, so the change does not affect it
            sides, pending = replace(sides, touched=()), {(part.kind, part.name) for part in work.parts}
        try:
            return tuple(causes_of(one, other, work, sides, pending))
        except ConfigError:
            return ()

    def _sides(self, name: str) -> Sides:
        ref = ObjectRef(*POOL, "", name)
        before, after = (
            _selected(snapshot.get(ref), snapshot.objects(MACHINE_CONFIG))
            for snapshot in (self._by.snapshot, self._scratch.cache)
        )
        return Sides(before, after, self._touched(), self._origins())

    def _pending(self, current: str, before: str, new: str) -> set[tuple[str, str]]:
        """Return parts that a node behind its pool would get anyway, and that the change does not affect."""
        if current == before or before == new:
            return set()
        anyway, changed = (_parts(self._scratch, one, other) for one, other in ((current, before), (before, new)))
        return anyway - changed

    def _waiting(self, left: Sequence[Obj], pool: Obj, simulated: Rollout) -> list[NodeImpact]:
        """Return nodes that are not updated."""
        name, waits = name_of(pool), simulated.waits(pool)
        limit = _limit(pool, len(_members(simulated.scratch, pool)))
        reasons = [why_it_waits(node, waits, limit) for node in left]
        if self._not_rendered(name)[0]:
            reasons = ["its pool cannot be rendered"] * len(left)
        return [
            NodeImpact(name_of(node), name, State.WAITS, reason=why) for node, why in zip(left, reasons, strict=True)
        ]

    def _extrapolated(self, left: Sequence[Obj], turns: Sequence[Turn], before: str) -> list[NodeImpact]:
        """Extrapolate the rest of a pool too large to simulate: in order, at the average pace so far."""
        done = [turn for turn in turns if turn.ended is not None and turn.wave]
        if not done:
            return []
        waves = max(turn.wave for turn in done)
        together = max(round(len(done) / waves), 1)
        end = max(turn.ended for turn in done if turn.ended is not None)
        gap = (end - min(turn.began for turn in done)) / waves
        lines = []
        for index, node in enumerate(left):
            later = index // together
            starts = (end - self._now) + gap * later
            like = self._node(done[-1], before)
            lines.append(
                NodeImpact(
                    name_of(node),
                    like.pool,
                    State.DONE,
                    like.steps,
                    waves + 1 + later,
                    starts.total_seconds(),
                    (starts + gap).total_seconds(),
                    like.causes,
                    counted=False,
                )
            )
        return lines

    # -- the change itself ---------------------------------------------------------------------------------------

    def _touched(self) -> list[str]:
        names = sorted(name for name in self._before.keys() | self._after.keys() if not name.startswith(PREFIX))
        return [name for name in names if _content(self._before.get(name)) != _content(self._after.get(name))]

    def _marks(self) -> tuple[str, ...]:
        return tuple(f"{_mark(self._before.get(name), self._after.get(name))} {name}" for name in self._touched())

    def _origins(self) -> dict[str, str]:
        """Return origins by name of MachineConfig; a generated one has the origin of its source object."""
        origins = self._change.origins
        found = {ref.name: text for ref, text in origins.items() if ref.group_kind == MACHINE_CONFIG}
        makers = {(ref.kind, ref.name): text for ref, text in origins.items()}
        for name, config in (self._before | self._after).items():
            for owner in owner_references(config):
                text = makers.get((str(owner.get("kind")), str(owner.get("name"))))
                if text:
                    found[name] = text
        return found

    def _refused(self) -> tuple[Refusal, ...]:
        """Return what the API rejects, and KubeletConfigs and ContainerRuntimeConfigs that generate nothing."""
        report = self._scratch.refused.items()
        found = [Refusal(f"{ref.kind} {ref.name}", text, "correct the field") for ref, text in report]
        for (_, ref), plan in sorted(self._scratch.plans.items(), key=lambda item: item[0][1]):
            if isinstance(plan.outcome, Stalled):
                fix = fix_for(plan.outcome.reason) or plan.outcome.fix
                found.append(Refusal(f"{ref.kind} {ref.name}", plan.outcome.reason.rstrip(), fix))
        return (*found, *_playbooks_refused(_ansible(self._change, self._scratch)))

    def _notes(self, simulated: Rollout) -> tuple[str, ...]:
        notes = [text for obj in (*self._change.applied, *self._change.put) if (text := self._unselected(obj))]
        notes += [f"{text}; it may fail again" for text in self._failing(simulated)]
        notes += [f"{text} is dropped" for text in self._scratch.unknown]
        if simulated.cut:
            notes.append("the pools are large: later nodes are estimated at the pace of the first ones")
        return tuple(notes)

    def _failing(self, simulated: Rollout) -> list[str]:
        """Return nodes that are updated and whose last update failed."""
        done = {turn.node for turn in simulated.turns if turn.state is State.DONE}
        nodes = [node for node in self._by.snapshot.objects(NODE) if name_of(node) in done]
        return [text for node in nodes if (text := failing_words(node))]

    def _unselected(self, obj: Obj) -> str:
        if gvk_of(obj).group_kind != MACHINE_CONFIG or ref_of(obj) in self._scratch.refused:
            return ""
        pools = self._pools(self._scratch)
        if any(name_of(obj) in {name_of(one) for one in _selected(pool, [obj])} for pool in pools):
            return ""
        return f"MachineConfig {name_of(obj)} is in no pool: no machineConfigSelector matches its labels"


def _ansible(change: Change, scratch: Scratch) -> list[Obj]:
    """Return the AnsibleConfigs of the change, as they are after it."""
    asked = [ref_of(obj) for obj in (*change.applied, *change.put)]
    found = [scratch.cache.get(ref) for ref in asked if ref.group_kind == ANSIBLE_CONFIG.group_kind]
    return [one for one in found if one is not None]


def _playbooks_refused(configs: Iterable[Obj]) -> Iterator[Refusal]:
    for config in configs:
        for one in dig(config, "status", "conditions", default=()):
            if one["type"] == "Ready" and one["reason"] in ("Refused", "Unreadable"):
                yield Refusal(f"AnsibleConfig {name_of(config)}", one["message"])


def _plays(change: Change, configs: Iterable[Obj], nodes: Sequence[Obj]) -> tuple[PlayImpact, ...]:
    pairs = [(config, change.playbooks.get(wanted_of(config))) for config in configs]
    checks = change.checks
    found = [play_impact(one, read, nodes, checks.get(name_of(one))) for one, read in pairs if read is not None]
    return tuple(one for one in found if one is not None)


def _members(scratch: Scratch, pool: Obj) -> tuple[Obj, ...]:
    try:
        return members(pool, scratch.cache.objects(NODE), scratch.cache.objects(POOL))
    except MembershipError:
        return ()


def _selected(pool: Obj | None, configs: Sequence[Obj]) -> tuple[Obj, ...]:
    try:
        return select(pool, configs).configs if pool is not None else ()
    except SelectorError:
        return ()


def _limit(pool: Obj, nodes: int) -> int:
    try:
        return max_unavailable(pool, nodes)
    except LimitError:
        return 0


def _paused(pool: Obj) -> str:
    writer, since = pause_writer(pool)
    return f"{writer or 'an unknown client'}{f' since {since}' if since else ''} (spec.paused)"


def _steps(turn: Turn) -> tuple[str, ...]:
    if turn.work is None:
        return ()
    # A policy's Drain is no separate step: the node is drained before any write, or not at all.
    actions = [action_text(action) for action in turn.work.actions if action.type not in ("None", "Drain")]
    found = (*(("drain",) if turn.drains else ()), *dict.fromkeys(actions))
    return found or ("none",)


def _used(turn: Turn, pace: Pace) -> list[str]:
    assert turn.work is not None, "asked for by the caller"
    return pace.used(turn.work, drained=turn.drains)


def _distinct(nodes: Sequence[NodeImpact]) -> tuple[Cause, ...]:
    return tuple(dict.fromkeys(cause for node in nodes for cause in node.causes))


def _parts(scratch: Scratch, old: str, new: str) -> set[tuple[str, str]]:
    work = worked_out(scratch.cache, old, new)
    return {(one.kind, one.name) for one in work.parts} if isinstance(work, Work) else set()


def _begins(one: PoolImpact) -> float:
    return min((node.starts_s for node in one.nodes if node.starts_s is not None), default=float("inf"))


def _content(config: Obj | None) -> object:
    return None if config is None else (config.get("spec"), labels_of(config))


def _mark(before: Obj | None, after: Obj | None) -> str:
    return "+" if before is None else "-" if after is None else "~"
