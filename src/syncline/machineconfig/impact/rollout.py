"""Simulates a roll-out on a copy of the cluster: when each node is updated, and which cannot be; pure.

The pool controller's and the drain controller's own plans decide, and ``machineconfig/agent/planning/work.py`` says
what a node does. Time advances from event to event: a node is drained, a node is back, a Hold expires. Only the
durations of steps are estimated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import heappop, heappush

from syncline.base.clock import time_or_none
from syncline.control.cache import Snapshot
from syncline.control.plan import Patch, Plan, Requeue
from syncline.kube.objects import GVK, Obj, ObjectRef, annotations_of, dig, name_of, ref_of
from syncline.machineconfig.agent.planning.due import Due
from syncline.machineconfig.agent.planning.notes import POST_ACTION, REBOOTING
from syncline.machineconfig.agent.planning.observe import CLUSTER, policies_in_force, waived_sections
from syncline.machineconfig.agent.planning.work import Irreconcilable, Work, work_of
from syncline.machineconfig.configs.parsing import ConfigError
from syncline.machineconfig.drain import observe as drain_observing
from syncline.machineconfig.drain import plan as drain_planning
from syncline.machineconfig.drain.feasible import Outlook, judge
from syncline.machineconfig.drain.progress import BLOCKED, PROGRESS, BlockedNote, Progress, insists
from syncline.machineconfig.drain.registries import RegistriesError
from syncline.machineconfig.impact.pace import Pace
from syncline.machineconfig.impact.scratch import Scratch
from syncline.machineconfig.names import (
    CURRENT,
    CURRENT_IMAGE,
    DESIRED,
    DESIRED_DRAIN,
    DESIRED_IMAGE,
    DONE,
    FAILED_STATES,
    LAST_DRAIN,
    MACHINE_CONFIG,
    MACHINE_CONFIG_NODE,
    POOL,
    REASON,
    STATE,
    TOPOLOGY,
)
from syncline.machineconfig.policies.model import effective_policies
from syncline.machineconfig.pools import observe as pool_observing
from syncline.machineconfig.pools import plan as pool_planning
from syncline.machineconfig.pools.membership import MembershipError, members
from syncline.machineconfig.pools.nodestate import ObservedNode, is_candidate, is_done, is_failing, target_of
from syncline.machineconfig.pools.observe import NODE
from syncline.machineconfig.pools.plan import PoolSettings
from syncline.machineconfig.pools.waits import Wait

_NODE = GVK("", "v1", "Node")
SINGLE_REPLICA = "SingleReplica"
MAX_LOOKS = 1_500_000
"""Maximum node evaluations of one simulation (some ten seconds); the rest is extrapolated at the same pace."""
MAX_IDLE_LOOKS = 500
"""Maximum reconciles in a row without progress: a pool may wait for what never comes, like an operation's end."""
MAX_ROUNDS = 8
"""Maximum reconciles of a pool at one point of time; each but the last has written something."""
MAX_HORIZON = timedelta(days=400)


class State(StrEnum):
    """The result of a node's update."""

    DONE = "done"
    REFUSED = "refused"
    BLOCKED = "blocked"
    WAITS = "waits"


@dataclass(slots=True)
class Turn:
    """One update of one node. ``began``: when it was targeted; ``wave`` counts within its pool. Images are those of
    image mode. ``reason``: of a refusal or a blocked drain; ``fixes`` for it. ``under_way``: it had begun before the
    change."""

    node: str
    pool: str
    old: str
    new: str
    began: datetime
    wave: int
    old_image: str = ""
    new_image: str = ""
    work: Work | None = None
    drains: bool = False
    ended: datetime | None = None
    state: State = State.WAITS
    reason: str = ""
    fixes: tuple[str, ...] = ()
    under_way: bool = False


@dataclass
class Rollout:
    """One simulation; :meth:`simulate` fills ``turns`` in the order in which they began. ``errors``: by pool, why it is
    stopped. ``paces`` by name of pool."""

    scratch: Scratch
    began: datetime
    paces: Mapping[str, Pace]
    settings: PoolSettings = field(default_factory=PoolSettings)
    turns: list[Turn] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """Whether the simulation ended early, because the pool has too many nodes."""
    _events: list[tuple[datetime, int, str, str]] = field(default_factory=list)
    _open: dict[str, Turn] = field(default_factory=dict)
    _homes: dict[str, str] = field(default_factory=dict)
    _waves: dict[str, int] = field(default_factory=dict)
    _works: dict[tuple[str, str, str, str], Work | str] = field(default_factory=dict)
    _now: datetime = field(init=False)
    _count: int = 0
    _looks: int = 0
    _idle: int = 0

    def __post_init__(self) -> None:
        self._now = self.began

    def simulate(self) -> None:
        for pool in self.scratch.cache.objects(POOL):
            for node in self._members(pool):
                self._homes[name_of(node)] = name_of(pool)
                if not annotations_of(node).get(CURRENT):
                    self._joins(node, pool)
                elif _moves(node) and not is_done(node) and not is_failing(node):
                    self._begin(node, name_of(pool), 0, self.began, under_way=True)
        for pool in self.scratch.cache.objects(POOL):
            self._schedule(self.began, "pool", name_of(pool))
        while self._events and not self.cut:
            now = self._now = self._events[0][0]
            woken: dict[str, None] = {}
            while self._events and self._events[0][0] == now:
                _, _, what, name = heappop(self._events)
                for pool_name in self._happens(what, name, now):
                    woken[pool_name] = None
            if now > self.began + MAX_HORIZON:
                return
            for name in woken:
                self._look(name, now)

    def _joins(self, node: Obj, pool: Obj) -> None:
        """Give a machine without config the target of its pool."""
        target = target_of(pool)
        self._annotate(name_of(node), {CURRENT: target, DESIRED: target, STATE: DONE}, self.began)

    def _schedule(self, when: datetime, what: str, name: str) -> None:
        self._count += 1
        heappush(self._events, (when, self._count, what, name))

    def _happens(self, what: str, name: str, now: datetime) -> Iterable[str]:
        """Process an event, and return the names of the pools to reconcile."""
        if what == "pool":
            return (name,)
        turn = self._open[name]
        self._idle = 0
        if what == "drained":
            self._drained(turn, now)
            return ()
        self._end(turn, now)
        for other in [each for each in self._open.values() if each.state is not State.DONE and each.ended is None]:
            if other.drains and not dig(self._node(other.node), "spec", "unschedulable"):
                self._drain(other, now)  # a node is back: blocked drains are checked again
        node = self._node(name)
        return [ref.name for ref in pool_observing.pools_of_node(node, self.scratch.cache)]

    # -- pools ---------------------------------------------------------------------------------------------------

    def _look(self, name: str, now: datetime) -> None:
        """Reconcile a pool until it has nothing more to do now."""
        ref = ObjectRef(*POOL, "", name)
        for _ in range(MAX_ROUNDS):
            observed = pool_observing.observe(self.scratch.cache, ref)
            if observed is None:
                return
            self._looks += len(observed.world.nodes)
            self._idle += 1
            if self._looks > MAX_LOOKS or self._idle > MAX_IDLE_LOOKS:
                self.cut = self._looks > MAX_LOOKS
                return
            plan = pool_planning.plan(observed, now, self.settings)
            self.scratch.handle(plan.actions, now)
            self._begin_targeted(plan, name, now)
            if any(isinstance(action, Patch) for step in plan.steps for action in step):
                continue  # its own write wakes it again
            if isinstance(plan.outcome, Requeue):
                self._schedule(now + timedelta(seconds=plan.outcome.after_s), "pool", name)
            break
        error = getattr(plan.outcome, "error", "")
        self.errors.pop(name, None)
        if error:
            self.errors[name] = error

    def _begin_targeted(self, plan: Plan, name: str, now: datetime) -> None:
        targeted = [
            action.name
            for step in plan.steps
            for action in step
            if isinstance(action, Patch)
            and action.gvk.kind == "Node"
            and DESIRED in (action.body["metadata"].get("annotations") or {})
        ]
        by_pool: dict[str, list[str]] = {}
        for node in targeted:
            by_pool.setdefault(self._homes.get(node, name), []).append(node)
        for pool_name, nodes in by_pool.items():
            fresh = [node for node in nodes if node not in self._open]
            if not fresh:
                continue
            self._waves[pool_name] = self._waves.get(pool_name, 0) + 1
            for node in fresh:
                self._begin(self._node(node), pool_name, self._waves[pool_name], now)

    def _members(self, pool: Obj) -> tuple[Obj, ...]:
        try:
            return members(pool, self.scratch.cache.views(NODE, ObservedNode), self.scratch.cache.objects(POOL))
        except MembershipError:
            return ()

    # -- nodes ---------------------------------------------------------------------------------------------------

    def _node(self, name: str) -> Obj:
        node = self.scratch.cache.get(ObjectRef(*NODE, "", name))
        assert node is not None, "nodes do not go while it is played"
        return node

    def _annotate(self, name: str, notes: Mapping[str, str | None], now: datetime) -> None:
        body: Obj = {"metadata": {"annotations": dict(notes)}}
        self.scratch.handle([Patch(_NODE, "", name, body, "it is played")], now)

    def _begin(self, node: Obj, pool: str, wave: int, now: datetime, *, under_way: bool = False) -> None:
        have, name = annotations_of(node), name_of(node)
        turn = Turn(name, pool, have.get(CURRENT, ""), have.get(DESIRED, ""), now, wave, under_way=under_way)
        turn.old_image, turn.new_image = have.get(CURRENT_IMAGE, ""), have.get(DESIRED_IMAGE, "")
        self._idle = 0
        self.turns.append(turn)
        self._open[name] = turn
        work = self._work(turn)
        if isinstance(work, str):
            turn.state, turn.reason = State.REFUSED, work
            self._annotate(name, {STATE: "Unreconcilable", REASON: work}, now)
            self._open.pop(name)
            self._schedule(now, "pool", pool)
            return
        turn.work = work
        if have.get(STATE) not in FAILED_STATES:
            self._annotate(name, {STATE: "Working"}, now)
        turn.drains = work.drain and have.get(TOPOLOGY) != SINGLE_REPLICA
        drained = have.get(LAST_DRAIN) == f"drain-{turn.new}"
        if have.get(POST_ACTION) == REBOOTING:
            left = max(self.paces[pool].reboot.seconds - self._rebooting(name, now), 0.0)
            self._schedule(now + timedelta(seconds=left), "done", name)
        elif turn.drains and not drained:
            self._drain(turn, now)
        else:
            self._change(turn, now)

    def _rebooting(self, name: str, now: datetime) -> float:
        """Return the seconds since a node was asked to reboot, by its MachineConfigNode."""
        record = self.scratch.cache.get(ObjectRef(*MACHINE_CONFIG_NODE, "", name))
        for condition in dig(record, "status", "conditions", default=[]):
            if condition.get("type") == "RebootedNode" and condition.get("status") == "Unknown":
                since = time_or_none(condition.get("lastTransitionTime"))
                return 0.0 if since is None else (now - since).total_seconds()
        return 0.0

    def _work(self, turn: Turn) -> Work | str:
        """Return the work of a turn, cached by its configs, or a text why it is refused."""
        key = (turn.old, turn.new, turn.old_image, turn.new_image)
        if key not in self._works:
            self._works[key] = worked_out(self.scratch.cache, *key)
        return self._works[key]

    def _drain(self, turn: Turn, now: datetime) -> None:
        """Request a drain as the agent does, and forecast and start it as the drain controller does."""
        self._annotate(turn.node, {DESIRED_DRAIN: f"drain-{turn.new}"}, now)
        observed = drain_observing.observe(self.scratch.cache, ref_of(self._node(turn.node)))
        assert observed is not None, "a drain is asked for"
        if not (Progress.of(observed.node) and dig(observed.node, "spec", "unschedulable")):
            self.scratch.handle(drain_planning.plan(observed, now).actions, now)
        node = self._node(turn.node)
        if dig(node, "spec", "unschedulable"):
            endless = self._endless(observed, turn.node, now)
            if endless:
                turn.state, turn.reason = State.BLOCKED, endless
                return
            turn.state, turn.reason, turn.fixes = State.WAITS, "", ()
            pace = self.paces[turn.pool]
            self._schedule(now + timedelta(seconds=pace.drain.seconds), "drained", turn.node)
            return
        note = BlockedNote.of(node)
        turn.state = State.BLOCKED if note is not None else State.WAITS
        turn.reason = note.message if note is not None else "it is drained when other nodes are back"
        turn.fixes = note.fixes if note is not None else ()

    def _endless(self, observed: drain_observing.Observed, name: str, now: datetime) -> str:
        """Return why a drain that a user insists on does not end."""
        if observed.forecast is None or not observed.leaving or not insists(observed.node, observed.pool):
            return ""
        verdict = judge(observed.forecast(), name, now)
        return verdict.message() if verdict.outlook is Outlook.BLOCKED else ""

    def _drained(self, turn: Turn, now: datetime) -> None:
        """End a drain; the node then gets its newest target."""
        have = annotations_of(self._node(turn.node))
        later = replace(turn, new=have.get(DESIRED, turn.new), new_image=have.get(DESIRED_IMAGE, ""))
        work = self._work(later)
        if isinstance(work, Work):
            turn.new, turn.new_image, turn.work = later.new, later.new_image, work
        request = f"drain-{turn.new}"
        self._annotate(turn.node, {DESIRED_DRAIN: request, LAST_DRAIN: request, PROGRESS: None, BLOCKED: None}, now)
        self._change(turn, now)

    def _change(self, turn: Turn, now: datetime) -> None:
        assert turn.work is not None, "refusals do not come here"
        pace = self.paces[turn.pool]
        steps = [step for step in pace.used(turn.work, drained=turn.drains) if step != "drain"]
        self._schedule(now + timedelta(seconds=pace.seconds(steps)), "done", turn.node)

    def _end(self, turn: Turn, now: datetime) -> None:
        """End an update: uncordon, report Done, and begin the next if the target has changed."""
        turn.state, turn.ended = State.DONE, now
        self._open.pop(turn.node)
        self._annotate(turn.node, {DESIRED_DRAIN: f"uncordon-{turn.new}"}, now)
        observed = drain_observing.observe(self.scratch.cache, ref_of(self._node(turn.node)))
        if observed is not None:
            self.scratch.handle(drain_planning.plan(observed, now).actions, now)
        notes: dict[str, str | None] = {CURRENT: turn.new, CURRENT_IMAGE: turn.new_image or None}
        self._annotate(turn.node, notes | {STATE: DONE, REASON: "", POST_ACTION: None}, now)
        if turn.under_way:
            self.scratch.put(_back(self._node(turn.node)), now)
        node = self._node(turn.node)
        have = annotations_of(node)
        if (have.get(DESIRED), have.get(DESIRED_IMAGE, "")) != (turn.new, turn.new_image):
            self._begin(node, turn.pool, turn.wave, now)

    # -- afterwards ----------------------------------------------------------------------------------------------

    def waits(self, pool: Obj) -> Sequence[Wait]:
        """Return why nodes of a pool are still behind it at the end."""
        observed = pool_observing.observe(self.scratch.cache, ref_of(pool))
        if observed is None:
            return ()
        _, snapshot = pool_planning.looked(observed, self._now, self.settings)
        return snapshot.waits.get(name_of(pool), ())

    def left(self, pool: Obj) -> list[Obj]:
        """Return nodes behind their pool whose update has not begun."""
        begun = {turn.node for turn in self.turns}
        observed = pool_observing.observe(self.scratch.cache, ref_of(pool))
        if observed is None:
            return []
        layering = observed.world.layering(observed.pool)
        nodes = self._members(observed.pool)
        return [node for node in nodes if name_of(node) not in begun and is_candidate(node, observed.pool, layering)]


def _moves(node: Obj) -> bool:
    """Return whether current and desired differ."""
    have = annotations_of(node)
    return (have.get(CURRENT), have.get(CURRENT_IMAGE, "")) != (have.get(DESIRED), have.get(DESIRED_IMAGE, ""))


def _back(node: Obj) -> Obj:
    """Return a node that was away, as it is after its update."""
    conditions = [
        each | {"status": "True"} if each.get("type") == "Ready" else each
        for each in dig(node, "status", "conditions", default=[])
    ]
    return node | {"status": (node.get("status") or {}) | {"conditions": conditions}}


def worked_out(cache: Snapshot, old: str, new: str, old_image: str = "", new_image: str = "") -> Work | str:
    """Return the work between two rendered configs (with images of image mode), or a text why it is refused."""
    configs = [cache.get(ObjectRef(*MACHINE_CONFIG, "", name)) for name in (old, new)]
    for name, config in zip((old, new), configs, strict=True):
        if config is None:
            return f'machineconfig.machineconfiguration.openshift.io "{name}" not found'
    before, after = configs
    assert before is not None and after is not None, "both were found"
    setting = cache.get(CLUSTER)
    try:
        before, after = Due(before, after, old_image, new_image).embedded
        policies = policies_in_force(setting)
        if policies is None:  # the status is outdated; agents wait for it
            policies = effective_policies(dig(setting, "spec", "nodeDisruptionPolicy"))
        return work_of(before, after, policies, waived_sections(setting))
    except (Irreconcilable, ConfigError, RegistriesError) as error:
        return str(error)
