"""Forecasts whether a drain can finish, by simulating it on a copy of the cluster before the cordon; pure.

Evictable pods leave the copy, the scheduler's own filters place their replacements, and budgets are recounted, until
the node is empty or nothing changes. Pods that are starting count as started, so that a running roll-out raises no
alarm. Each proposed fix is simulated, too.

The drain controller and ``explain`` call :func:`judge`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from syncline.base.clock import LONG_AGO, time_or_none
from syncline.kube.objects import (
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    is_terminating,
    name_of,
    namespace_of,
    owner_references,
    ref_of,
)
from syncline.kube.scheduling.filters import Cluster, Judgement, NodeState, choose
from syncline.kube.scheduling.filters import explain as sentence
from syncline.kube.scheduling.preemption import Victims, preempt, priority_of
from syncline.kube.scheduling.volumes import Storage
from syncline.machineconfig.drain.budgets import (
    allowed,
    counts_controllers,
    covers,
    expected_pods,
    is_finished,
    is_ready,
    needed,
    spared_by_policy,
    unbudgeted,
    uncounted,
)
from syncline.machineconfig.drain.pods import leaves
from syncline.machineconfig.names import DESIRED_DRAIN, LAST_DRAIN, UPDATE_TAINT

PATIENCE = timedelta(minutes=10)
"""Time after which a pod that is not ready no longer counts as starting (a roll-out's usual deadline)."""
STUCK = (
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "ErrImagePull",
    "ErrImageNeverPull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
)
"""Reasons of waiting containers that do not resolve with time."""
AT_ONCE = timedelta(seconds=10)
"""Time in which a controller replaces a terminating pod."""
TURNS = ("PodScheduled", "Initialized", "Ready")
"""Conditions whose change shows that a pod makes progress."""
MAX_RESTARTS = 3
"""Restarts of a container beyond which its pod is not expected to become ready."""
BEHIND = " ← "
"""Separates an effect from its cause."""
MAX_NAMES = 3
"""Maximum nodes named per reason of the scheduler."""
MAX_ROUNDS = 300
"""Maximum rounds of a simulation; each removes at least one pod, and a node has no more pods."""
MAX_WAITING = 50
"""Maximum other pending pods that are placed in a simulation whose trial adds capacity."""
MAX_BLOCKED = 5
"""Maximum pods that a verdict names; they mostly share a budget."""


class Outlook(StrEnum):
    CAN = "can finish"
    WAITS = "waits for other nodes"
    BLOCKED = "cannot finish"


@dataclass(frozen=True)
class Sight:
    """The part of a cluster that a drain depends on. A simulation reads few of its pods; a subclass with indices can
    override :meth:`on`, :meth:`under`, :meth:`waiting` and :meth:`cluster`."""

    nodes: Sequence[Obj]
    pods: Sequence[Obj]
    budgets: Sequence[Obj]
    daemon_sets: frozenset[ObjectRef] = frozenset()
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    storage: Storage = field(default_factory=Storage)

    def on(self, node: str) -> Sequence[Obj]:
        """Return the pods on a node, in order."""
        return [pod for pod in self.pods if _is_on(pod, node)]

    def under(self, budgets: Sequence[Obj]) -> list[Obj]:
        """Return the pods that any of the budgets covers, in order."""
        return [pod for pod in self.pods if any(covers(budget, pod) for budget in budgets)]

    def waiting(self) -> list[Obj]:
        """Return the unscheduled pods that could be scheduled."""
        return [pod for pod in self.pods if waits(pod)]

    def cluster(self, nodes: Sequence[Obj], placed: Sequence[Obj]) -> Cluster:
        """Return a copy to place pods on, with ``nodes`` for its own nodes and with the pods ``placed`` added."""
        return Cluster.of(nodes, (*self.pods, *placed), self.namespaces, self.storage)


@dataclass(frozen=True, slots=True)
class Homeless:
    """A pod that no node accepts, with the scheduler's message and node names. ``waits_already``: the pod exists; else
    it is a replacement that would be created for ``pod``, or a new one like it."""

    pod: ObjectRef
    sentence: str
    waits_already: bool = False

    def __str__(self) -> str:
        who = f"{self.pod.namespace}/{self.pod.name}"
        called = f"pod {who} Pending" if self.waits_already else f"replacement of {who} would be Pending"
        return f"{called}{BEHIND}{self.sentence}"


@dataclass(frozen=True, slots=True)
class Blocked:
    """A pod whose eviction will be refused: the budget's numbers at the end of the simulation, or why the budget does
    not count (``uncounted``), and the pods whose absence or bad health causes it. An empty ``budget`` means several
    budgets, which the API does not support."""

    pod: ObjectRef
    budget: str
    healthy: int = 0
    desired: int = 0
    expected: int = 0
    homeless: tuple[Homeless, ...] = ()
    budgets: tuple[str, ...] = ()
    uncounted: str = ""
    unwell: tuple[str, ...] = ()
    """Pods that exist and will not become ready, each with the reason."""

    def message(self) -> str:
        who = f"pod {self.pod.namespace}/{self.pod.name}"
        if not self.budget:
            return f"{who} has several disruption budgets ({', '.join(self.budgets)}), so that every eviction fails"
        text = f"eviction of {who} is refused by budget {self.budget} ({self.numbers()})"
        missing = [*map(str, self.homeless), *self.unwell]
        return f"{text}{BEHIND}{missing[0]}" if missing else text

    def numbers(self) -> str:
        if self.uncounted:
            return f"allows 0: {self.uncounted}"
        return f"allows 0: {self.healthy} of {self.expected} healthy, {self.desired} needed"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The forecast. ``waits_for``: nodes being updated without which the drain would not finish. ``begun``: the node is
    already cordoned."""

    node: str
    outlook: Outlook
    blocked: tuple[Blocked, ...] = ()
    waits_for: tuple[str, ...] = ()
    begun: bool = False

    def message(self) -> str:
        """Return one sentence with the chain of causes; empty if the drain can finish."""
        if self.outlook is Outlook.CAN:
            return ""
        if self.outlook is Outlook.WAITS:
            return f"node {self.node} is drained when {', '.join(self.waits_for)} is back"
        spared = "" if self.begun else ", so it is not cordoned"
        first = self.blocked[0]
        others = sorted({each.budget for each in self.blocked} - {first.budget, ""})
        more = f"; refused by budget {', '.join(others)}, too" if others else ""
        return f"the drain of node {self.node} cannot finish{spared}{BEHIND}{first.message()}{more}"


@dataclass(frozen=True, slots=True)
class Trial:
    """Changes of the copy with which a drain is simulated."""

    extra_nodes: tuple[Obj, ...] = ()
    changed_nodes: Mapping[str, Obj] = field(default_factory=dict)
    extra_pods: tuple[Obj, ...] = ()
    """Added pods: those without a node must be scheduled, the others are placed already."""
    changed_budgets: Mapping[tuple[str, str], Obj | None] = field(default_factory=dict)
    """Budgets by namespace and name; None for a deleted one."""

    @property
    def brings_room(self) -> bool:
        return bool(self.extra_nodes or self.changed_nodes)


def judge(sight: Sight, node: str, now: datetime) -> Verdict:
    """Return the forecast for draining ``node`` now."""
    blocked = simulate(sight, node, now)
    if not blocked:
        return Verdict(node, Outlook.CAN)
    away = {name_of(each): back(each) for each in sight.nodes if name_of(each) != node and in_update(each)}
    if away and not simulate(sight, node, now, Trial(changed_nodes=away)):
        return Verdict(node, Outlook.WAITS, blocked, tuple(sorted(away)))
    return Verdict(node, Outlook.BLOCKED, blocked, begun=_is_cordoned(sight, node))


def _is_cordoned(sight: Sight, node: str) -> bool:
    return any(name_of(each) == node and dig(each, "spec", "unschedulable") for each in sight.nodes)


def in_update(node: Obj) -> bool:
    """Return whether the node is drained by us and not yet uncordoned, so it is away only temporarily."""
    have = annotations_of(node)
    request = have.get(DESIRED_DRAIN, "")
    return request.startswith("drain-") or request != have.get(LAST_DRAIN, request)


def back(node: Obj) -> Obj:
    """Return the node as it will be after its update."""
    spec = {key: value for key, value in (node.get("spec") or {}).items() if key not in ("unschedulable", "taints")}
    taints = [t for t in dig(node, "spec", "taints", default=[]) if not _passes(t)]
    return node | {"spec": spec | ({"taints": taints} if taints else {})}


def _passes(taint: Obj) -> bool:
    """Return whether the taint disappears when the node is back."""
    return taint.get("key") == UPDATE_TAINT["key"] or str(taint.get("key")).startswith("node.kubernetes.io/")


def simulate(sight: Sight, node: str, now: datetime, trial: Trial | None = None) -> tuple[Blocked, ...]:
    """Return the pods left on the node when nothing changes any more; empty if the drain finishes."""
    trial = trial or Trial()
    budgets = sight.budgets
    if trial.changed_budgets:
        changed = [trial.changed_budgets.get((namespace_of(each), name_of(each)), each) for each in budgets]
        budgets = [each for each in changed if each is not None]
    leaving = [pod for pod in sight.on(node) if leaves(pod, sight.daemon_sets)]
    if not any(covers(budget, pod) for budget in budgets for pod in leaving):
        return ()  # without a budget no eviction is refused
    return _Simulation(sight, node, now, trial, leaving, budgets).run()


def _is_on(pod: Obj, node: str) -> bool:
    return str(dig(pod, "spec", "nodeName", default="")) == node


class _Simulation:
    """One simulated drain."""

    def __init__(
        self, sight: Sight, node: str, now: datetime, trial: Trial, leaving: list[Obj], budgets: Sequence[Obj]
    ) -> None:
        self._now = now
        self._trial = trial
        self._every_budget = budgets
        self._budgets = [b for b in budgets if any(covers(b, pod) for pod in leaving)]
        self._sight = sight
        self._node = node
        self._leaving = [pod for pod in leaving if not is_terminating(pod)]
        self._added = [pod for pod in trial.extra_pods if not dig(pod, "spec", "nodeName")]
        self._pods: list[Obj] = [*sight.under(self._budgets), *(pod for pod in self._added if self._is_covered(pod))]
        self._healthy: set[int] = {id(pod) for pod in self._pods if self._hopeful(pod)}
        self._expected = {id(b): self._expect(b) for b in self._budgets}
        self._homeless: list[tuple[Obj, Homeless]] = []
        self._stands_for: dict[int, Obj] = {}
        """Simulated pods by the identity of the placed copy."""

    def _expect(self, budget: Obj) -> int:
        there = self._sight.under((budget,))
        return expected_pods(budget, there) + sum(covers(budget, pod) for pod in self._added)

    def _build_cluster(self) -> None:
        """Build the copy of the cluster; this is costly, so it is done only if a pod must be placed."""
        sight, trial = self._sight, self._trial
        nodes = [trial.changed_nodes.get(name_of(each), each) for each in sight.nodes]
        nodes = [_cordoned(each) if name_of(each) == self._node else each for each in (*nodes, *trial.extra_nodes)]
        placed = [pod for pod in trial.extra_pods if dig(pod, "spec", "nodeName")]
        self._cluster = sight.cluster(nodes, placed)
        self._going = "being drained" if _is_cordoned(sight, self._node) else "to be drained"

    def _is_covered(self, pod: Obj) -> bool:
        return any(covers(budget, pod) for budget in self._budgets)

    def _of(self, budget: Obj) -> list[Obj]:
        return [pod for pod in self._pods if covers(budget, pod)]

    def _hopeful(self, pod: Obj) -> bool:
        """Return whether the pod is ready, or placed and just starting."""
        if is_ready(pod):
            return True
        if is_terminating(pod) or is_finished(pod) or not dig(pod, "spec", "nodeName"):
            return False
        if any(dig(each, "state", "waiting", "reason") in STUCK for each in _containers(pod)):
            return False
        return _began(pod) + PATIENCE > self._now

    def _settle_pending(self) -> None:
        """Place pending pods and those that controllers will create; pods that find a node count as started."""
        for pod in sorted(self._waiting(), key=_rank):
            self._place(pod, pod, waits_already=True)
        for budget in self._budgets:
            for model in self._unmade(budget):
                self._replace(model)

    def _waiting(self) -> list[Obj]:
        """Return the pods to place; those outside the budgets only if the trial adds capacity."""
        found = [pod for pod in self._pods if waits(pod)]
        if self._trial.brings_room:
            others = [pod for pod in self._sight.waiting() if not self._is_covered(pod)]
            found += sorted(others, key=_rank)[:MAX_WAITING]
        return found

    def _unmade(self, budget: Obj) -> list[Obj]:
        """Return models of the missing pods that controllers will create."""
        there = [pod for pod in self._of(budget) if _is_replaced(pod) and not is_finished(pod)]
        alive = [pod for pod in there if not is_terminating(pod)]
        if counts_controllers(budget):
            return sorted(alive or there, key=_called)[:1] * (self._expected[id(budget)] - len(alive))
        going = [pod for pod in there if is_terminating(pod)]
        return [pod for pod in sorted(going, key=_called) if _comes_again(pod, alive, going, self._now)]

    def _place(self, pod: Obj, stands_for: Obj, *, waits_already: bool = False) -> None:
        name, refused = choose(pod, self._cluster)
        removed: list[Obj] = []
        if not name:
            victims = preempt(pod, self._cluster, refused, self._every_budget).victims
            if victims is None:
                report = Homeless(ref_of(_typed(stands_for)), self._refusal(pod, refused), waits_already)
                self._homeless.append((pod, report))
                return
            name, removed = victims.node, self._removed(victims)
        placed = pod | {"spec": pod["spec"] | {"nodeName": name}}
        next(each for each in self._cluster.nodes if each.name == name).place(placed)
        self._stands_for[id(placed)] = pod
        self._healthy.add(id(pod))
        for victim in filter(_is_replaced, removed):
            self._replace(victim)

    def _removed(self, victims: Victims) -> list[Obj]:
        """Remove preempted pods from the counts of their budgets, and return them."""
        self._without(victims.node, victims.pods)
        gone = [self._stands_for.pop(id(each), each) for each in victims.pods]
        self._healthy -= {id(each) for each in gone}
        self._pods = [each for each in self._pods if not any(each is other for other in gone)]
        return gone

    def _without(self, node: str, gone: Sequence[Obj]) -> None:
        """Remove pods from a node; the remaining ones still count for affinity and spreading."""
        for at, old in enumerate(self._cluster.nodes):
            if old.name == node:
                self._cluster.nodes[at] = staying = NodeState(old.node)
                for pod in old.pods:
                    if not any(pod is each for each in gone):
                        staying.place(pod)

    def _refusal(self, pod: Obj, refused: Judgement) -> str:
        """Return the scheduler's message with the nodes for each reason."""
        if not refused or any(refusal.everywhere for refusal in refused.values()):
            return sentence(pod, refused, preemption="").removesuffix(".")
        nodes: dict[str, list[str]] = {}
        for name, refusal in refused.items():
            for reason in refusal.reasons:
                nodes.setdefault(reason.rstrip("."), []).append(name)
        report = sorted(f"{len(names)} {reason} ({self._named(names)})" for reason, names in nodes.items())
        return f"0/{len(refused)} nodes are available: {', '.join(report)}"

    def _named(self, names: list[str]) -> str:
        """Return the names of nodes, the drained one first."""
        mine = self._node
        shown = [f"{mine}, {self._going}"] if mine in names else []
        shown += [name for name in names if name != mine][: MAX_NAMES - len(shown)]
        more = len(names) - len(shown)
        return ", ".join(shown) + (f" and {more} more" if more else "")

    def _replace(self, pod: Obj) -> None:
        made = _fresh(pod)
        self._pods.append(made)
        self._place(made, pod)

    # -- evictions -------------------------------------------------------------------------------------------------

    def run(self) -> tuple[Blocked, ...]:
        return () if self._all_may_go_now() else self._in_rounds()

    def _in_rounds(self) -> tuple[Blocked, ...]:
        self._build_cluster()
        self._settle_pending()
        for _ in range(MAX_ROUNDS):
            gone = self._evict_what_may_go()
            if not gone:
                break
            for pod in sorted(gone, key=_rank):
                if _is_replaced(pod) and not is_finished(pod):
                    self._replace(pod)
        left = sorted(self._leaving, key=_called)
        return tuple(self._why(pod) for pod in left[:MAX_BLOCKED])

    def _all_may_go_now(self) -> bool:
        """Return whether all pods may go one by one although no replacement becomes ready."""
        spare = {id(budget): self._numbers(budget)[2] for budget in self._budgets}
        # Pods that may go in any case go first: they, too, may count as healthy.
        for pod in sorted(self._leaving, key=unbudgeted, reverse=True):
            mine = [budget for budget in self._budgets if covers(budget, pod)]
            if not unbudgeted(pod) and (len(mine) > 1 or any(spare[id(budget)] <= 0 for budget in mine)):
                return False
            for budget in mine:
                spare[id(budget)] -= id(pod) in self._healthy
        return True

    def _evict_what_may_go(self) -> list[Obj]:
        gone = []
        for pod in sorted(self._leaving, key=_called):
            if self._may_go(pod):
                gone.append(pod)
                self._leaving.remove(pod)
                self._healthy.discard(id(pod))
                self._pods = [each for each in self._pods if each is not pod]
        if gone:
            self._without(self._node, gone)
        return gone

    def _may_go(self, pod: Obj) -> bool:
        if unbudgeted(pod):
            return True
        mine = [budget for budget in self._budgets if covers(budget, pod)]
        if len(mine) != 1:
            return not mine
        healthy, desired, spare = self._numbers(mine[0])
        return spare > 0 or spared_by_policy(mine[0], pod, healthy, desired)

    def _numbers(self, budget: Obj) -> tuple[int, int, int]:
        """Return healthy and needed pods, and how many may go."""
        healthy = sum(id(pod) in self._healthy for pod in self._of(budget))
        expected = self._expected[id(budget)]
        desired = needed(budget, expected)
        return healthy, desired, allowed(budget, healthy, desired, expected)

    def _why(self, pod: Obj) -> Blocked:
        mine = [budget for budget in self._budgets if covers(budget, pod)]
        ref = ref_of(_typed(pod))
        if len(mine) > 1:
            return Blocked(ref, "", budgets=tuple(name_of(budget) for budget in mine))
        budget = mine[0]
        healthy, desired, _ = self._numbers(budget)
        expected = self._expected[id(budget)]
        homeless = tuple(report for other, report in self._homeless if covers(budget, other))
        unwell = tuple(_illness(each) for each in sorted(self._of(budget), key=_called) if self._is_unwell(each))
        why = uncounted(budget, expected)
        return Blocked(ref, name_of(budget), healthy, desired, expected, homeless, uncounted=why, unwell=unwell)

    def _is_unwell(self, pod: Obj) -> bool:
        """Return whether the pod exists and is neither healthy, nor waiting for a node, nor terminating."""
        if id(pod) in self._healthy or is_finished(pod) or is_terminating(pod):
            return False
        return not any(pod is other for other, _ in self._homeless)


def waits(pod: Obj) -> bool:
    """Return whether the pod waits only for a node."""
    return not (dig(pod, "spec", "nodeName") or _is_gated(pod) or is_terminating(pod) or is_finished(pod))


def _rank(pod: Obj) -> tuple[int, str, str]:
    """Return the scheduler's sort key: priority, then name."""
    return (-priority_of(pod), *_called(pod))


def _containers(pod: Obj) -> list[Obj]:
    """Return the states of all containers, init containers first."""
    init, main = (dig(pod, "status", key, default=[]) for key in ("initContainerStatuses", "containerStatuses"))
    return [*init, *main]


def _illness(pod: Obj) -> str:
    who = f"pod {namespace_of(pod)}/{name_of(pod)}"
    if _is_gated(pod):
        gates = ", ".join(str(each.get("name")) for each in dig(pod, "spec", "schedulingGates", default=[]))
        return f"{who} waits for its scheduling gates ({gates})"
    reasons = [reason for each in _containers(pod) if (reason := dig(each, "state", "waiting", "reason"))]
    because = f" ({reasons[0]})" if reasons else ""
    return f"{who} on node {dig(pod, 'spec', 'nodeName', default='')} is not ready{because}"


def _comes_again(pod: Obj, alive: Sequence[Obj], going: Sequence[Obj], now: datetime) -> bool:
    """Return whether a replacement for a terminating pod is still to come: a StatefulSet creates it after the end,
    others at once, so that it exists already or is not wanted."""
    owner = _controller(pod)
    if owner.get("kind") == "StatefulSet":
        return True
    grace = timedelta(seconds=int(dig(pod, "metadata", "deletionGracePeriodSeconds", default=0) or 0))
    since = _time(dig(pod, "metadata", "deletionTimestamp")) - grace
    if since + AT_ONCE < now:
        return False
    made = sum(_controller(each) == owner and _created(each) >= since for each in alive)
    return made < sum(_controller(each) == owner for each in going)


def _controller(pod: Obj) -> Obj:
    return next((owner for owner in owner_references(pod) if owner.get("controller")), {})


def _is_gated(pod: Obj) -> bool:
    """Return whether a scheduling gate blocks the pod, for an unknown time."""
    return bool(dig(pod, "spec", "schedulingGates"))


def _called(pod: Obj) -> tuple[str, str]:
    return namespace_of(pod), name_of(pod)


def _typed(pod: Obj) -> Obj:
    return {"apiVersion": "v1", "kind": "Pod"} | pod


def _created(pod: Obj) -> datetime:
    return _time(dig(pod, "metadata", "creationTimestamp"))


def _began(pod: Obj) -> datetime:
    """Return when the pod was created, scheduled, or became unready; the creation time if it restarts often."""
    restarts = max((int(each.get("restartCount") or 0) for each in _containers(pod)), default=0)
    if restarts > MAX_RESTARTS:
        return _created(pod)
    conditions = dig(pod, "status", "conditions", default=[])
    changed = (_time(each.get("lastTransitionTime")) for each in conditions if each.get("type") in TURNS)
    return max([_created(pod), *changed])


def _time(text: object) -> datetime:
    return time_or_none(text) or LONG_AGO


def _cordoned(node: Obj) -> Obj:
    return node | {"spec": (node.get("spec") or {}) | {"unschedulable": True}}


def _is_replaced(pod: Obj) -> bool:
    """Return whether its controller replaces the pod."""
    never = ("DaemonSet", "Node")
    return any(owner.get("controller") and owner.get("kind") not in never for owner in owner_references(pod))


def _fresh(pod: Obj) -> Obj:
    """Return an unscheduled pod of the same controller."""
    spec = fresh_spec(pod)
    metadata = {key: value for key, value in pod["metadata"].items() if key not in ("deletionTimestamp", "uid")}
    return pod | {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def fresh_spec(pod: Obj) -> Obj:
    """Return the spec of another pod of the controller, without ephemeral volumes, whose claims are created with it."""
    spec: Obj = {key: value for key, value in (pod.get("spec") or {}).items() if key != "nodeName"}
    if "volumes" in spec:
        spec["volumes"] = [volume for volume in spec["volumes"] if "ephemeral" not in volume]
    return spec


def without_update_taint(node: Obj) -> Obj:
    """Return a new node like this one, without its cordon and update taints."""
    fresh = replace_spec(node, unschedulable=None)
    return replace_spec(fresh, taints=[t for t in dig(node, "spec", "taints", default=[]) if not _passes(t)] or None)


def replace_spec(node: Obj, **changes: object) -> Obj:
    """Return the node with changed fields of its spec; None removes a field."""
    spec = (node.get("spec") or {}) | changes
    return node | {"spec": {key: value for key, value in spec.items() if value is not None}}
