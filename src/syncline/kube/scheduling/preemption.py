"""Chooses pods to evict for one of higher priority, as pure functions on :class:`Cluster`: :func:`preempt`.

Called by the scheduler for a pod that no node accepts. From the pod, the cluster, the refusals and the disruption
budgets it returns a node with its victims, or the reasons why there are none. Nothing is evicted here.

Source: Kubernetes' plug-in DefaultPreemption (1.36): the most important pods are spared first, those whose budget would
be broken before others; then the node with the fewest broken budgets, the least important victims, the fewest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from syncline.kube.objects import Obj, dig, is_terminating, labels_of, name_of, namespace_of
from syncline.kube.scheduling.filters import NO_VICTIMS, Cluster, Judgement, NodeState, refusal_on
from syncline.kube.selectors import label_selector_from

MAX_CANDIDATES = 100
"""Nodes that are examined for victims (``minCandidateNodesAbsolute``): each costs a trial per pod on it."""
TERMINATING = "not eligible due to a terminating pod on the nominated node."
_OFFSET = 2**31
"""Added to each priority, so that two victims weigh more than one also below zero."""
_NEVER = "9999"
"""Later than any start time."""


@dataclass(frozen=True, slots=True)
class Victims:
    """Pods to evict from a node, the most important first; ``violations`` of them break a budget."""

    node: str
    pods: tuple[Obj, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class Preemption:
    """The result. ``victims`` None: no node can be freed; ``reasons`` has why for each node that was tried.
    ``ineligible``: why none was tried."""

    victims: Victims | None = None
    reasons: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ineligible: str = ""


def priority_of(pod: Obj) -> int:
    return int(dig(pod, "spec", "priority", default=0) or 0)


def preempt(pod: Obj, cluster: Cluster, refused: Judgement, budgets: Sequence[Obj]) -> Preemption:
    """Try every node where fewer pods would help; ties are decided by name."""
    if dig(pod, "spec", "preemptionPolicy") == "Never":
        return Preemption()
    if _makes_room_already(pod, cluster, refused):
        return Preemption(ineligible=TERMINATING)
    found: list[Victims] = []
    reasons: dict[str, tuple[str, ...]] = {}
    for state in cluster.nodes:
        if state.name not in refused or refused[state.name].helpless or len(found) >= MAX_CANDIDATES:
            continue
        tried = _on_node(pod, cluster, state, budgets)
        if isinstance(tried, Victims):
            found.append(tried)
        else:
            reasons[state.name] = tried
    return Preemption(min(found, key=_cost, default=None), reasons)


def _makes_room_already(pod: Obj, cluster: Cluster, refused: Judgement) -> bool:
    """Return True while victims of an earlier attempt are terminating."""
    nominated = str(dig(pod, "status", "nominatedNodeName", default=""))
    if nominated not in refused or refused[nominated].helpless:
        return False
    state = next(each for each in cluster.nodes if each.name == nominated)
    return any(is_terminating(other) and priority_of(other) < priority_of(pod) for other in state.pods)


def _on_node(pod: Obj, cluster: Cluster, state: NodeState, budgets: Sequence[Obj]) -> Victims | tuple[str, ...]:
    """Remove all pods of lower priority, then add back as many as fit, the most important first."""
    lower = sorted((each for each in state.pods if priority_of(each) < priority_of(pod)), key=_importance)
    if not lower:
        return (NO_VICTIMS,)
    kept = [each for each in state.pods if priority_of(each) >= priority_of(pod)]
    refusal = _refusal_with(pod, cluster, state, kept)
    if refusal:
        return refusal
    violating, harmless = _by_budget(lower, budgets)
    victims: list[Obj] = []
    violations = 0
    for group in (violating, harmless):
        for each in group:
            if not _refusal_with(pod, cluster, state, [*kept, each]):
                kept.append(each)
            else:
                victims.append(each)
                violations += group is violating
    return Victims(state.name, tuple(sorted(victims, key=_importance)), violations)


def _refusal_with(pod: Obj, cluster: Cluster, state: NodeState, pods: Iterable[Obj]) -> tuple[str, ...]:
    """Why the node would still refuse with just these pods on it."""
    trial = NodeState(state.node)
    for each in pods:
        trial.place(each)
    nodes = [trial if each is state else each for each in cluster.nodes]
    refusal = refusal_on(pod, Cluster(nodes, cluster.namespaces, cluster.storage), trial)
    return refusal.reasons if refusal is not None else ()


def _importance(pod: Obj) -> tuple[int, str, str, str]:
    """Higher priority first, then the code that runs longer (``MoreImportantPod``), then by name."""
    return -priority_of(pod), _started(pod), namespace_of(pod), name_of(pod)


def _started(pod: Obj) -> str:
    return str(dig(pod, "status", "startTime", default="") or _NEVER)


def _by_budget(pods: Sequence[Obj], budgets: Sequence[Obj]) -> tuple[list[Obj], list[Obj]]:
    """Return the pods that would break a budget, and the others; each pod uses up its budgets."""
    left = {id(each): int(dig(each, "status", "disruptionsAllowed", default=0)) for each in budgets}
    violating: list[Obj] = []
    harmless: list[Obj] = []
    for pod in pods:
        mine = [each for each in budgets if _covers(each, pod)]
        for each in mine:
            left[id(each)] -= 1
        (violating if any(left[id(each)] < 0 for each in mine) else harmless).append(pod)
    return violating, harmless


def _covers(budget: Obj, pod: Obj) -> bool:
    """An empty selector covers nothing here; a pod whose disruption is noted already is not counted again."""
    selector = dig(budget, "spec", "selector")
    if not selector or namespace_of(budget) != namespace_of(pod) or not labels_of(pod):
        return False
    noted = dig(budget, "status", "disruptedPods", default={})
    return name_of(pod) not in noted and label_selector_from(selector).matches(labels_of(pod))


def _cost(victims: Victims) -> tuple[int, int, int, int, list[int], str]:
    """Source of the order: ``pickOneNodeForPreemption``. The node whose top victims started last is preferred."""
    highest = max((priority_of(pod) for pod in victims.pods), default=0)
    total = sum(priority_of(pod) + _OFFSET for pod in victims.pods)
    earliest = min((_started(pod) for pod in victims.pods if priority_of(pod) == highest), default="")
    latest_first = [-ord(letter) for letter in earliest]
    return victims.violations, highest, total, len(victims.pods), latest_first, victims.node
