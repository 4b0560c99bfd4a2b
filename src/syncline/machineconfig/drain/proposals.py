"""Proposes fixes for a blocked drain, each simulated on a copy of the cluster; pure. Entry point: :func:`proposals`.

Called by the drain controller for its message, and by ``explain``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from syncline.kube.objects import (
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    owner_references,
)
from syncline.kube.schema.extensions import MACHINE, SIMULATED
from syncline.machineconfig.drain.budgets import covers, expected_pods, is_finished, is_ready, needed, uncounted
from syncline.machineconfig.drain.feasible import (
    Outlook,
    Sight,
    Trial,
    Verdict,
    back,
    fresh_spec,
    in_update,
    replace_spec,
    simulate,
    without_update_taint,
)
from syncline.machineconfig.drain.pods import leaves

CONTROL_PLANE = ("node-role.kubernetes.io/master", "node-role.kubernetes.io/control-plane")
WORKER_LABEL = "node-role.kubernetes.io/worker"
MAX_PROPOSALS = 5
MAX_OPENED = 20
"""Maximum cordoned nodes that are tried one by one."""
MAX_KEPT = 2
"""Maximum budgets of a pod that are tried as the remaining one."""
UNCORDON, BUDGETS = "uncordon a node", "change budgets"
LIMITS = ("minAvailable", "maxUnavailable")


@dataclass(frozen=True, slots=True)
class Proposal:
    """A fix. ``text`` describes it, ``command`` executes it. ``instead_of``: text of a milder or similar proposal; this
    one is tried only if that one fails."""

    text: str
    command: str = ""
    instead_of: str = ""

    @property
    def kind(self) -> str:
        return self.instead_of or self.text

    def __str__(self) -> str:
        return f"{self.text}: {self.command}" if self.command else self.text


def proposals(sight: Sight, verdict: Verdict, now: datetime) -> tuple[Proposal, ...]:
    """Return the fixes that work, the least intrusive first; empty if the drain can finish or only has to wait."""
    if verdict.outlook is not Outlook.BLOCKED:
        return ()
    found: dict[str, Proposal] = {}
    for trial, proposal in _ideas(sight, verdict):
        if proposal.instead_of not in found and not simulate(sight, verdict.node, now, trial):
            found.setdefault(proposal.kind, proposal)
    return tuple(found.values())[:MAX_PROPOSALS]


def _ideas(sight: Sight, verdict: Verdict) -> Iterator[tuple[Trial, Proposal]]:
    home = next((node for node in sight.nodes if name_of(node) == verdict.node), None)
    if home is None:
        return
    yield _another_node(sight, home)
    yield from _open_nodes(sight, verdict.node)
    yield from _another_replica(sight, verdict)
    yield from _other_budgets(sight, verdict)


def _another_node(sight: Sight, home: Obj) -> tuple[Trial, Proposal]:
    """Propose another node like this one, with the pods that would run on every such node."""
    name = f"{name_of(home)}-2"
    labels = labels_of(home) | {"kubernetes.io/hostname": name}
    fresh = without_update_taint(home) | {"metadata": {"name": name, "labels": labels}}
    fresh |= {"status": {key: value for key, value in (home.get("status") or {}).items() if key != "conditions"}}
    role = next((key.rpartition("/")[2] for key in sorted(labels) if key.startswith("node-role.kubernetes.io/")), "")
    flag = f" --label node-role.kubernetes.io/{role}=" if role else ""
    text = f"add a {role or 'further'} node like {name_of(home)}"
    staying = tuple(
        pod | {"spec": pod["spec"] | {"nodeName": name}}
        for pod in sight.pods
        if dig(pod, "spec", "nodeName") == name_of(home) and not leaves(pod, sight.daemon_sets)
    )
    command = f"syncline node add NAME{flag}" if annotations_of(home).get(MACHINE) == SIMULATED else ""
    return Trial(extra_nodes=(fresh,), extra_pods=staying), Proposal(text, command)


def _open_nodes(sight: Sight, home: str) -> Iterator[tuple[Trial, Proposal]]:
    """Propose to uncordon nodes: workers one by one, masters together as ``mastersSchedulable`` does. Nodes being
    updated are taken as they will be after it, and need no uncordon."""
    away = {name_of(node): back(node) for node in sight.nodes if in_update(node) and name_of(node) != home}
    closed: list[str] = []
    masters: dict[str, Obj] = {}
    for node in sight.nodes:
        name = name_of(node)
        if any(label in labels_of(node) for label in CONTROL_PLANE) and name != home:
            masters[name] = away.get(name, node)
        elif dig(node, "spec", "unschedulable") and name not in away and name != home:
            closed.append(name)
    for name in sorted(closed)[:MAX_OPENED]:
        changed = {name: replace_spec(_of(sight.nodes, name), unschedulable=None)}
        yield (
            Trial(changed_nodes=away | changed),
            Proposal(f"uncordon node {name}", f"kubectl uncordon {name}", UNCORDON),
        )
    opened = {name: open_ for name, node in masters.items() if (open_ := _schedulable_master(node)) != node}
    if opened:
        text = f"make the masters schedulable ({', '.join(sorted(opened))})"
        yield Trial(changed_nodes=away | opened), Proposal(text, _opening([masters[name] for name in sorted(opened)]))


def _opening(masters: Sequence[Obj]) -> str:
    """Return the commands, each for the masters that need it."""
    cordoned = [name_of(node) for node in masters if dig(node, "spec", "unschedulable")]
    unlabelled = [name_of(node) for node in masters if WORKER_LABEL not in labels_of(node)]
    tainted: dict[str, list[str]] = {}
    for node in masters:
        for taint in _role_taints(node):
            tainted.setdefault(str(taint.get("key")), []).append(name_of(node))
    commands = [f"kubectl uncordon {' '.join(cordoned)}"] if cordoned else []
    commands += [f"kubectl label node {' '.join(unlabelled)} {WORKER_LABEL}="] if unlabelled else []
    commands += [f"kubectl taint nodes {' '.join(names)} {key}-" for key, names in sorted(tainted.items())]
    return " && ".join(commands)


def _of(nodes: Sequence[Obj], name: str) -> Obj:
    return next(node for node in nodes if name_of(node) == name)


def _role_taints(node: Obj) -> list[Obj]:
    return [t for t in dig(node, "spec", "taints", default=[]) if t.get("key") in CONTROL_PLANE]


def _schedulable_master(node: Obj) -> Obj:
    taints = [t for t in dig(node, "spec", "taints", default=[]) if t.get("key") not in CONTROL_PLANE]
    opened = replace_spec(node, unschedulable=None, taints=taints or None)
    metadata = node["metadata"] | {"labels": labels_of(node) | {WORKER_LABEL: ""}}
    return opened | {"metadata": metadata}


def _another_replica(sight: Sight, verdict: Verdict) -> Iterator[tuple[Trial, Proposal]]:
    """Propose one more replica of the blocked pod's controller before the drain, unless its pods are unhealthy."""
    for pod in _blocked_pods(sight, verdict):
        owner = next((each for each in owner_references(pod) if each.get("controller")), None)
        if owner is None or owner.get("kind") not in ("ReplicaSet", "StatefulSet") or not is_ready(pod):
            continue
        name = f"{name_of(pod)}-more"
        metadata: Obj = {"name": name, "namespace": namespace_of(pod), "labels": labels_of(pod)}
        metadata["ownerReferences"] = [owner]
        more: Obj = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": fresh_spec(pod), "status": {}}
        kind, of = _scaled(owner, pod)
        text = f"run one more replica of {kind} {namespace_of(pod)}/{of}"
        have = sum(_same_owner(each, owner) for each in sight.pods)
        command = f"kubectl -n {namespace_of(pod)} scale {kind.lower()} {of} --replicas={have + 1}"
        yield Trial(extra_pods=(more,)), Proposal(text, command)
        return  # blocked pods mostly share a controller; one such proposal is enough


def _scaled(owner: Obj, pod: Obj) -> tuple[str, str]:
    """Return the Deployment behind a ReplicaSet with a template hash in its name, or the owner itself."""
    kind, name = str(owner.get("kind")), str(owner.get("name"))
    template = labels_of(pod).get("pod-template-hash")
    if kind == "ReplicaSet" and template and name.endswith(f"-{template}"):
        return "Deployment", name.removesuffix(f"-{template}")
    return kind, name


def _same_owner(pod: Obj, owner: Obj) -> bool:
    """Return whether the controller counts the pod."""
    counts = not is_terminating(pod) and not is_finished(pod)
    return counts and any(each.get("uid") == owner.get("uid") for each in owner_references(pod))


def _other_budgets(sight: Sight, verdict: Verdict) -> Iterator[tuple[Trial, Proposal]]:
    """Propose changes of budgets, the smallest that works: one budget per pod with several, allow pods that are not
    ready, allow one more pod, or as many as exist."""
    several = [(each.pod.namespace, each.budgets) for each in verdict.blocked if not each.budget]
    refusing = {(each.pod.namespace, each.budget) for each in verdict.blocked if each.budget}
    some_unready = not all(map(is_ready, _blocked_pods(sight, verdict)))
    steps: list[tuple[int | None, bool]] = [(0, False)] if several else []
    steps += [(0, True)] if some_unready else []
    steps += [(1, False), (None, False)]
    steps += [(1, True), (None, True)] if some_unready else []
    for more, unready in steps:
        for keep in range(MAX_KEPT if several else 1):
            kept = {(namespace, names[min(keep, len(names) - 1)]) for namespace, names in several}
            extra = sorted({(space, name) for space, names in several for name in names} - kept)
            yield _changed_budgets(
                sight, extra, refusing | kept if (more, unready) != (0, False) else set(), more, unready
            )


def _changed_budgets(
    sight: Sight, extra: Sequence[tuple[str, str]], relaxed: set[tuple[str, str]], more: int | None, unready: bool
) -> tuple[Trial, Proposal]:
    texts, commands = [], []
    changed: dict[tuple[str, str], Obj | None] = dict.fromkeys(extra)
    if extra:
        texts.append(f"leave one budget for each pod, without {', '.join(f'{ns}/{name}' for ns, name in extra)}")
        commands += [f"kubectl -n {namespace} delete pdb {name}" for namespace, name in extra]
    for budget in sight.budgets:
        place = (namespace_of(budget), name_of(budget))
        if place in relaxed and place not in changed:
            changed[place], proposal = _relaxed(sight, budget, more, unready)
            texts.append(proposal.text)
            commands.append(proposal.command)
    return Trial(changed_budgets=changed), Proposal(" and ".join(texts), " && ".join(commands), BUDGETS)


def _relaxed(sight: Sight, budget: Obj, more: int | None, unready: bool) -> tuple[Obj, Proposal]:
    """Return the budget relaxed to allow ``more`` pods, or all if None, and unready pods if ``unready``; an uncountable
    budget is changed to count pods."""
    limit = _limit(sight, budget, more) if more != 0 else {}
    gone = {key: None for key in LIMITS if limit and key in budget["spec"] and key not in limit}
    limit |= {"unhealthyPodEvictionPolicy": "AlwaysAllow"} if unready else {}
    body = json.dumps({"spec": gone | limit}, separators=(",", ":"))
    command = f"kubectl -n {namespace_of(budget)} patch pdb {name_of(budget)} --type=merge -p '{body}'"
    spec = {key: value for key, value in budget["spec"].items() if key not in gone} | limit
    status = budget.get("status") or {}
    if more != 0:  # an uncountable budget is changed to a countable one
        status = {key: value for key, value in status.items() if key != "conditions"}
    message = ", ".join(f"{key} {value}" for key, value in limit.items())
    text = f"relax budget {namespace_of(budget)}/{name_of(budget)} ({message})"
    return budget | {"spec": spec, "status": status}, Proposal(text, command)


def _limit(sight: Sight, budget: Obj, more: int | None) -> Obj:
    covered = [pod for pod in sight.pods if covers(budget, pod)]
    expected = expected_pods(budget, covered)
    counts = not uncounted(budget, expected)
    least = needed(budget, expected) if counts else sum(map(is_ready, covered))
    left = max(least - more, 0) if more is not None else 0
    if counts and dig(budget, "spec", "maxUnavailable") is not None:
        return {"maxUnavailable": expected - left}
    return {"minAvailable": left}


def _blocked_pods(sight: Sight, verdict: Verdict) -> list[Obj]:
    wanted = {each.pod for each in verdict.blocked}
    return [pod for pod in sight.pods if ObjectRef("", "Pod", namespace_of(pod), name_of(pod)) in wanted]
