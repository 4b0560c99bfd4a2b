"""The filters and scores of the scheduler as pure functions: :func:`choose`, :func:`feasible`.

Called by the scheduler, by drain feasibility proofs and by rehearsals. From a pod, the nodes and their pods they return
a node's name, or Kubernetes' sentence about why there is none. Nothing is bound here.

Source of the rules, reasons and their order: the default profile of Kubernetes' kube-scheduler (1.36).
"""

from __future__ import annotations

import copy
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any, TypeAlias

from syncline.kube.objects import Obj, dig, is_terminating, labels_of, name_of, namespace_of
from syncline.kube.scheduling.podresources import ROOM, allocatable, requests_of
from syncline.kube.scheduling.terms import (
    Term,
    matches_node_terms,
    pinned_names,
    pod_terms,
    tolerates,
    tolerates_all,
)
from syncline.kube.scheduling.volume_limits import SharedVolumes
from syncline.kube.scheduling.volumes import PodVolumes, Storage
from syncline.kube.selectors import label_selector_from

NO_NODES = "no nodes available to schedule pods"
NO_VICTIMS = "No preemption victims found for incoming pod."
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_NO_STATE = "not found"
"""Said after a reason that holds everywhere: the plug-in that would look for claims of devices never began to count."""
_TOPOLOGY = "node(s) didn't match pod topology spread constraints"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node does not take the pod. ``helpless``: removing other pods would not help. ``everywhere``: the reason
    holds for all nodes, so it is reported once and not counted."""

    reasons: tuple[str, ...]
    helpless: bool
    everywhere: bool = False


@dataclass(slots=True)
class NodeState:
    """One node with its pods and their total requests, updated with each added pod."""

    node: Obj
    pods: list[Obj] = field(default_factory=list)
    used: Counter[str] = field(default_factory=Counter)
    ports: set[tuple[str, str, int]] = field(default_factory=set)
    name: str = field(init=False)
    has: dict[str, int] = field(init=False)
    labels: dict[str, str] = field(init=False)
    taints: list[Obj] = field(init=False)
    cordoned: bool = field(init=False)
    owners: Counter[str] = field(default_factory=Counter)
    """Pods by the uid of their controller."""
    shunning: list[Obj] = field(default_factory=list)
    """Pods with required anti-affinity."""
    _borrowed: bool = field(default=False, init=False)
    """True while the totals are shared with another state, until the next pod."""

    def __post_init__(self) -> None:
        self.name, self.has, self.labels = name_of(self.node), allocatable(self.node), labels_of(self.node)
        self.taints = dig(self.node, "spec", "taints", default=[])
        self.cordoned = bool(dig(self.node, "spec", "unschedulable", default=False))

    def copy(self) -> NodeState:
        """Return a copy with its own totals from its first pod on; do not add pods to this one any more."""
        made = copy.copy(self)
        made._borrowed = True
        return made

    def place(self, pod: Obj) -> None:
        """Add a pod."""
        if self._borrowed:
            self.pods, self.used, self.ports = self.pods.copy(), self.used.copy(), self.ports.copy()
            self.owners, self.shunning = self.owners.copy(), self.shunning.copy()
            self._borrowed = False
        self.pods.append(pod)
        for name, amount in requests_of(pod).items():
            self.used[name] += amount
        self.used[ROOM] += 1
        self.ports |= set(host_ports(pod))
        self.owners[controller_uid(pod)] += 1
        if dig(pod, "spec", "affinity", "podAntiAffinity"):
            self.shunning.append(pod)


class Counted:
    """A cache of the totals of each node between two snapshots, since most nodes and pods are unchanged. Pass it to
    :meth:`Cluster.of`; it never changes the result."""

    def __init__(self) -> None:
        self._known: dict[str, NodeState] = {}

    def state(self, node: Obj, pods: list[Obj]) -> NodeState:
        known = self._known.get(name_of(node))
        same = known is not None and known.node is node and len(known.pods) == len(pods)
        if known is not None and same and all(map(is_, known.pods, pods)):
            return known.copy()
        made = NodeState(node)
        for pod in pods:
            made.place(pod)
        self._known[made.name] = made
        return made.copy()

    def keep(self, names: Iterable[str]) -> None:
        """Drop nodes that are not in ``names``."""
        kept = set(names)
        for gone in [name for name in self._known if name not in kept]:
            del self._known[gone]


@dataclass(slots=True)
class Cluster:
    """All nodes in order of name, and the labels of namespaces (for namespace selectors). Pods are added by
    :meth:`NodeState.place` only."""

    nodes: list[NodeState]
    namespaces: Mapping[str, Mapping[str, str]]
    storage: Storage = field(default_factory=Storage)

    @classmethod
    def of(
        cls,
        nodes: Iterable[Obj],
        pods: Iterable[Obj],
        namespaces: Mapping[str, Mapping[str, str]] | None = None,
        storage: Storage | None = None,
        counted: Counted | None = None,
    ) -> Cluster:
        """Create a cluster from all ``pods`` that are not finished and run on a known node."""
        known = {name_of(node): node for node in sorted(nodes, key=name_of)}
        placed: dict[str, list[Obj]] = {name: [] for name in known}
        for pod in pods:
            here = placed.get(str((pod.get("spec") or {}).get("nodeName") or ""))
            if here is not None and dig(pod, "status", "phase") not in ("Succeeded", "Failed"):
                here.append(pod)
        counted = counted or Counted()
        counted.keep(known)
        states = [counted.state(node, placed[name]) for name, node in known.items()]
        return cls(states, namespaces or {}, storage or Storage())

    def pods(self) -> Iterable[tuple[NodeState, Obj]]:
        for state in self.nodes:
            for pod in state.pods:
                yield state, pod


Judgement: TypeAlias = "dict[str, Refusal]"
"""The refusal of each node, by name."""


def feasible(pod: Obj, cluster: Cluster) -> tuple[list[NodeState], Judgement]:
    """Return the nodes that accept the pod, and the first refusal of each other node."""
    return _judged(pod, cluster, PodVolumes(pod, cluster.storage), cluster.nodes, len(cluster.nodes))


def _judged(
    pod: Obj, cluster: Cluster, volumes: PodVolumes, nodes: Sequence[NodeState], most: int
) -> tuple[list[NodeState], Judgement]:
    """Filter ``nodes`` in this order until ``most`` of them accept the pod."""
    pinned = pinned_names(pod)
    if volumes.problem or pinned == set():
        refusal = Refusal((volumes.problem or "pod affinity terms conflict",), helpless=True, everywhere=True)
        return [], {state.name: refusal for state in nodes}
    filters = _Filters(pod, cluster, volumes)
    fitting: list[NodeState] = []
    refused: Judgement = {}
    for state in nodes:
        if pinned is not None and state.name not in pinned:
            refused[state.name] = _ELSEWHERE
            continue
        refused_by = filters.refusal(state)
        if refused_by is not None:
            refused[state.name] = refused_by
            continue
        fitting.append(state)
        if len(fitting) >= most:
            break
    return fitting, refused


_ELSEWHERE = Refusal(("node(s) didn't satisfy plugin(s) [NodeAffinity]",), True)


def refusal_on(pod: Obj, cluster: Cluster, state: NodeState) -> Refusal | None:
    """Return why one node refuses the pod, or None."""
    return _Filters(pod, cluster, PodVolumes(pod, cluster.storage)).refusal(state)


def choose(pod: Obj, cluster: Cluster) -> tuple[str, Judgement]:
    """Return the best node, or an empty name with the refusals. The name decides between equal scores.

    The nominated node, or the one selected for the pod's volumes, is used if it still accepts the pod. From a hundred
    nodes on only a part is scored, like in kube-scheduler, beginning at an index derived from the pod's name.
    """
    volumes = PodVolumes(pod, cluster.storage)
    nodes, most = cluster.nodes, _enough(len(cluster.nodes))
    if most < len(nodes):
        kept = (dig(pod, "status", "nominatedNodeName", default=""), volumes.selected())
        first = [state for state in nodes if state.name in kept] if any(kept) else []
        begin = zlib.crc32(f"{namespace_of(pod)}/{name_of(pod)}".encode()) % len(nodes)
        nodes = [*first, *nodes[begin:], *nodes[:begin]]
    fitting, refused = _judged(pod, cluster, volumes, nodes, most)
    if not fitting:
        return "", refused
    kept = (dig(pod, "status", "nominatedNodeName", default=""), volumes.selected())
    for state in fitting:
        if state.name in kept:
            return state.name, refused
    scores = _scores(pod, fitting, cluster)
    return min(fitting, key=lambda state: (-scores[state.name], state.name)).name, refused


def _enough(nodes: int) -> int:
    """Return how many accepting nodes are scored (``numFeasibleNodesToFind`` with its defaults): all of a hundred, half
    of two hundred, a decreasing share of more, at least a twentieth."""
    share = max(50 - nodes // 125, 5)
    return min(max(nodes * share // 100, 100), nodes)


def explain(
    pod: Obj, refused: Judgement, tried: Mapping[str, tuple[str, ...]] | None = None, *, preemption: str | None = None
) -> str:
    """Return Kubernetes' FailedScheduling sentence over all nodes.

    ``tried``: why preemption would not help on a node; ``preemption``: the text about preemption to use instead, empty
    for none (victims were found).
    """
    if not refused:
        return NO_NODES
    total = len(refused)
    reasons = Counter(reason for refusal in refused.values() for reason in refusal.reasons)
    own = next((refusal.reasons[0] for refusal in refused.values() if refusal.everywhere), "")
    text = f"0/{total} nodes are available: {own or _listed(reasons)}."
    if own:
        return f"{text} {_NO_STATE}"
    if preemption == "":
        return text
    text += " no new claims to deallocate, preemption: "
    if preemption is not None:
        return text + preemption
    if dig(pod, "spec", "preemptionPolicy") == "Never":
        return text + "not eligible due to preemptionPolicy=Never."
    helpless = ("Preemption is not helpful for scheduling.",)
    vain = Counter(
        reason
        for name, refusal in refused.items()
        for reason in (helpless if refusal.helpless else (tried or {}).get(name, (NO_VICTIMS,)))
    )
    return f"{text}0/{total} nodes are available: {_listed(vain)}."


def _listed(reasons: Counter[str]) -> str:
    """Join counted reasons, sorted as texts, without their full stops."""
    return ", ".join(sorted(f"{number} {reason.rstrip('.')}" for reason, number in reasons.items()))


# --- filters that look at one node ---------------------------------------------------------------------------------


class _Filters:
    """What a pod asks of a node, read once for all nodes."""

    def __init__(self, pod: Obj, cluster: Cluster, volumes: PodVolumes) -> None:
        spec = pod.get("spec") or {}
        self._spec, self._ports = spec, host_ports(pod)
        self._asked, self._tolerations = spec.get("nodeName"), spec.get("tolerations") or []
        self._wants = {ROOM: 1} | {name: amount for name, amount in requests_of(pod).items() if amount}
        self._bears_cordons = tolerates(self._tolerations, {"key": UNSCHEDULABLE, "effect": "NoSchedule"})
        self._goes_anywhere = not spec.get("nodeSelector") and not spec.get("affinity")
        self._volumes, self._shared = volumes, _shared(pod, cluster)
        self._spread, self._neighbours = _Spread(pod, cluster), _Neighbours(pod, cluster)

    def refusal(self, state: NodeState) -> Refusal | None:
        return (
            self._own(state)
            or _sharing_refusal(self._shared, state)
            or _volume_refusal(self._volumes, state)
            or self._spread.refusal(state)
            or self._neighbours.refusal(state)
        )

    def _own(self, state: NodeState) -> Refusal | None:
        if state.cordoned and not self._bears_cordons:
            return _CORDONED
        if self._asked and self._asked != state.name:
            return Refusal(("node(s) didn't match the requested node name",), True)
        if state.taints and not tolerates_all(self._tolerations, state.taints, ("NoSchedule", "NoExecute")):
            return Refusal(("node(s) had untolerated taint(s)",), True)
        if not self._goes_anywhere and not matches_node_terms(self._spec, state.node):
            return Refusal(("node(s) didn't match Pod's node affinity/selector",), True)
        if self._ports and any(port_taken(port, state.ports) for port in self._ports):
            return Refusal(("node(s) didn't have free ports for the requested pod ports",), False)
        return _fit_refusal(self._wants, state)


_CORDONED = Refusal(("node(s) were unschedulable",), True)


def _fit_refusal(wants: Mapping[str, int], state: NodeState) -> Refusal | None:
    has = state.has
    short = [name for name, amount in wants.items() if state.used[name] + amount > has.get(name, 0)]
    if not short:
        return None
    texts = tuple("Too many pods" if name == ROOM else f"Insufficient {name}" for name in sorted(short))
    return Refusal(texts, any(wants[name] > has.get(name, 0) for name in short))


def _shared(pod: Obj, cluster: Cluster) -> SharedVolumes | None:
    """None for the many pods whose volumes are no other owner's."""
    if not dig(pod, "spec", "volumes"):
        return None
    return SharedVolumes(pod, cluster.storage, lambda: (other for _, other in cluster.pods()))


def _sharing_refusal(shared: SharedVolumes | None, state: NodeState) -> Refusal | None:
    reason = shared.refusal(state.name, state.pods) if shared is not None else ""
    return Refusal((reason,), helpless=False) if reason else None


def _volume_refusal(volumes: PodVolumes, state: NodeState) -> Refusal | None:
    """No pod that is removed brings a volume nearer."""
    reason = volumes.refusal(state.node)
    return Refusal((reason,), helpless=True) if reason else None


def host_ports(pod: Obj) -> list[tuple[str, str, int]]:
    """Return address, protocol and number of the host ports of a pod."""
    found: list[tuple[str, str, int]] = []
    spec = pod.get("spec") or {}
    staying = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    for container in (*(spec.get("containers") or ()), *staying):
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port.get("containerPort") if spec.get("hostNetwork") else 0)
            if number:
                found.append((port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", int(number)))
    return found


def port_taken(wanted: tuple[str, str, int], taken: Iterable[tuple[str, str, int]]) -> bool:
    """Return True if one of ``taken`` conflicts; ``0.0.0.0`` stands for every address."""
    address, protocol, number = wanted
    for other_address, other_protocol, other_number in taken:
        same = (protocol, number) == (other_protocol, other_number)
        if same and ("0.0.0.0" in (address, other_address) or address == other_address):
            return True
    return False


# --- filters that look at the neighbours ---------------------------------------------------------------------------


class _Spread:
    """Topology spread constraints with ``DoNotSchedule``: counts per domain, made once per pod."""

    def __init__(self, pod: Obj, cluster: Cluster) -> None:
        wanted = dig(pod, "spec", "topologySpreadConstraints", default=[])
        self._hard = [c for c in wanted if c.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"]
        self._pod = pod
        self._counts = [_domain_counts(pod, each, self._hard, cluster) for each in self._hard]

    def refusal(self, state: NodeState) -> Refusal | None:
        for constraint, counts in zip(self._hard, self._counts):
            domain = labels_of(state.node).get(str(constraint.get("topologyKey")))
            if domain is None:
                return Refusal((f"{_TOPOLOGY} (missing required label)",), True)
            few = len(counts) < int(constraint.get("minDomains") or 1)
            least = 0 if few or not counts else min(counts.values())
            itself = 1 if _spread_selector(self._pod, constraint).matches(labels_of(self._pod)) else 0
            if counts.get(domain, 0) + itself - least > int(constraint.get("maxSkew") or 1):
                return Refusal((_TOPOLOGY,), False)
        return None


def _spread_selector(pod: Obj, constraint: Obj) -> Any:
    selector = dict(constraint.get("labelSelector") or {})
    labels = labels_of(pod)
    keyed = {key: labels[key] for key in constraint.get("matchLabelKeys") or () if key in labels}
    selector["matchLabels"] = dict(selector.get("matchLabels") or {}) | keyed
    return label_selector_from(selector if constraint.get("labelSelector") is not None or keyed else None)


def _domain_counts(pod: Obj, constraint: Obj, group: Sequence[Obj], cluster: Cluster) -> dict[str, int]:
    """Matching pods per domain, over the nodes that count (``nodeAffinityPolicy``, ``nodeTaintsPolicy``)."""
    selector = _spread_selector(pod, constraint)
    keys = [str(each.get("topologyKey")) for each in group]
    counts: dict[str, int] = {}
    for state in cluster.nodes:
        labels = labels_of(state.node)
        if not all(key in labels for key in keys) or not _counts_for_spread(pod, constraint, state):
            continue
        domain = labels[str(constraint.get("topologyKey"))]
        counts.setdefault(domain, 0)
        for other in state.pods:
            here = namespace_of(other) == namespace_of(pod) and not is_terminating(other)
            counts[domain] += bool(here and selector.matches(labels_of(other)))
    return counts


def _counts_for_spread(pod: Obj, constraint: Obj, state: NodeState) -> bool:
    spec = pod.get("spec") or {}
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not matches_node_terms(spec, state.node):
        return False
    if constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore":
        return True
    taints = dig(state.node, "spec", "taints", default=[])
    return tolerates_all(spec.get("tolerations") or [], taints, ("NoSchedule", "NoExecute"))


class _Neighbours:
    """Required pod affinity and anti-affinity, of the pod and of those that run already."""

    def __init__(self, pod: Obj, cluster: Cluster) -> None:
        self._wants = pod_terms(pod, "podAffinity")
        self._shuns = pod_terms(pod, "podAntiAffinity")
        self._near: Counter[tuple[str, str]] = Counter()
        self._far: Counter[tuple[str, str]] = Counter()
        self._shunned: set[tuple[str, str]] = set()
        for state in cluster.nodes:
            for other in state.pods if self._wants or self._shuns else state.shunning:
                self._count(pod, state, other, cluster.namespaces)
        self._first_of_kind = not self._near and all(t.matches(pod, cluster.namespaces) for t in self._wants)
        self._minds = bool(self._wants or self._far or self._shunned)

    def _count(self, pod: Obj, state: NodeState, other: Obj, namespaces: Mapping[str, Mapping[str, str]]) -> None:
        labels = labels_of(state.node)
        if self._wants and all(term.matches(other, namespaces) for term in self._wants):
            self._near.update((t.topology, labels[t.topology]) for t in self._wants if t.topology in labels)
        self._far.update(
            (t.topology, labels[t.topology])
            for t in self._shuns
            if t.topology in labels and t.matches(other, namespaces)
        )
        for term in pod_terms(other, "podAntiAffinity"):
            if term.topology in labels and term.matches(pod, namespaces):
                self._shunned.add((term.topology, labels[term.topology]))

    def refusal(self, state: NodeState) -> Refusal | None:
        if not self._minds:
            return None
        places = set(state.labels.items())
        if not self._near_enough(state.labels):
            return Refusal(("node(s) didn't match pod affinity rules",), True)
        if any(place in places for place in self._far):
            return Refusal(("node(s) didn't match pod anti-affinity rules",), False)
        if self._shunned & places:
            return Refusal(("node(s) didn't satisfy existing pods anti-affinity rules",), False)
        return None

    def _near_enough(self, labels: Mapping[str, str]) -> bool:
        """A pod that wants company of its own kind may be the first of it."""
        if not all(term.topology in labels for term in self._wants):
            return False
        close = all(self._near[(t.topology, labels[t.topology])] > 0 for t in self._wants)
        return close or self._first_of_kind


# --- scores ----------------------------------------------------------------------------------------------------------


def _scores(pod: Obj, nodes: list[NodeState], cluster: Cluster) -> dict[str, float]:
    """Weighted as the default profile weighs: taints 3, affinities 2, spreading 2 (the pod's soft constraints, or few
    pods of the same controller where it has no constraints), free room 1."""
    taints = _inverted({s.name: _soft_taints(pod, s) for s in nodes})
    preferred = _normalised({s.name: _preference(pod, s, cluster) for s in nodes})
    owner, wants = controller_uid(pod), requests_of(pod)
    company = _soft_spread(pod, nodes, cluster)
    if company is None:
        company = _inverted({s.name: s.owners[owner] if owner else 0 for s in nodes})
    return {
        s.name: 3 * taints[s.name] + 2 * preferred[s.name] + 2 * company[s.name] + _least_allocated(wants, s)
        for s in nodes
    }


def _soft_spread(pod: Obj, nodes: list[NodeState], cluster: Cluster) -> dict[str, float] | None:
    """Score few matching pods in the node's domains, 0 to 100; None if the pod has no constraint.

    Constraints with more domains weigh more (``topologyNormalizingWeight``); nodes without the label of a constraint
    come last.
    """
    wanted = dig(pod, "spec", "topologySpreadConstraints", default=[])
    soft = [each for each in wanted if each.get("whenUnsatisfiable") == "ScheduleAnyway"]
    if not soft:
        return None if not wanted else dict.fromkeys((state.name for state in nodes), 0.0)
    raw = {s.name: 0.0 for s in nodes if all(each.get("topologyKey") in labels_of(s.node) for each in soft)}
    for constraint in soft:
        counts = _domain_counts(pod, constraint, soft, cluster)
        weight = math.log(len(counts) + 2)
        for state in nodes:
            if state.name in raw:
                count = counts.get(labels_of(state.node)[str(constraint.get("topologyKey"))], 0)
                raw[state.name] += count * weight + int(constraint.get("maxSkew") or 1) - 1
    low, high = min(raw.values(), default=0.0), max(raw.values(), default=0.0)
    return {
        s.name: 0.0 if s.name not in raw else (100 * (high + low - raw[s.name]) / high if high else 100.0)
        for s in nodes
    }


def _normalised(raw: Mapping[str, float]) -> dict[str, float]:
    low, high = min(raw.values()), max(raw.values())
    return {name: 100 * (value - low) / (high - low) if high > low else 0.0 for name, value in raw.items()}


def _inverted(raw: Mapping[str, float]) -> dict[str, float]:
    high = max(raw.values())
    return {name: 100 * (high - value) / high if high else 100.0 for name, value in raw.items()}


def _soft_taints(pod: Obj, state: NodeState) -> int:
    if not state.taints:
        return 0
    tolerations = dig(pod, "spec", "tolerations", default=[])
    return sum(t.get("effect") == "PreferNoSchedule" and not tolerates(tolerations, t) for t in state.taints)


def _preference(pod: Obj, state: NodeState, cluster: Cluster) -> float:
    """Weights of the preferred node terms and pod terms that the node satisfies."""
    weight = 0
    affinity = dig(pod, "spec", "affinity", default={})
    if not affinity:
        return weight
    for choice in dig(affinity, "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution", default=[]):
        if Term.node_term_matches(choice.get("preference") or {}, state.node):
            weight += int(choice.get("weight") or 0)
    for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1)):
        for choice in dig(affinity, kind, "preferredDuringSchedulingIgnoredDuringExecution", default=[]):
            term = Term.of(pod, choice.get("podAffinityTerm") or {})
            weight += sign * int(choice.get("weight") or 0) * _matching_in_domain(term, state, cluster)
    return weight


def _matching_in_domain(term: Term, state: NodeState, cluster: Cluster) -> int:
    domain = labels_of(state.node).get(term.topology)
    if domain is None:
        return 0
    return sum(
        term.matches(other, cluster.namespaces)
        for place, other in cluster.pods()
        if labels_of(place.node).get(term.topology) == domain
    )


def controller_uid(pod: Obj) -> str:
    """Return the uid of the controlling owner; empty without one."""
    owners = dig(pod, "metadata", "ownerReferences", default=[])
    return next((str(owner.get("uid")) for owner in owners if owner.get("controller")), "")


def _least_allocated(wants: Mapping[str, int], state: NodeState) -> float:
    """Return the mean share of cpu and memory that would stay free, 0 to 100."""
    has = state.has
    shares = []
    for name in ("cpu", "memory"):
        total = has.get(name, 0)
        free = total - state.used[name] - wants.get(name, 0)
        shares.append(max(free, 0) * 100 / total if total else 0.0)
    return sum(shares) / len(shares)
