"""Plan a StatefulSet: pods are created in ascending order, deleted and updated in descending order, by default one by
one.

Source: Kubernetes' stateful set control.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from syncline.cluster.builtin.pods import is_available, is_ready, phase, until_available
from syncline.cluster.builtin.workloads.history import HASH_LABEL, History, expired, history, template_of
from syncline.cluster.builtin.workloads.shares import share
from syncline.cluster.builtin.workloads.statefulset.identity import claims_of, ordinal_of, stateful_pod
from syncline.cluster.builtin.workloads.statefulset.retention import retention_patches
from syncline.control.plan import Create, Delete, Done, Emit, Patch, Plan, Requeue, Result, Retry, set_status
from syncline.kube.objects import Obj, dig, generation, is_terminating, labels_of, name_of

COMPONENT = "statefulset-controller"


@dataclass(frozen=True, slots=True)
class Observed:
    """``claims`` are all claims in the namespace, by name."""

    statefulset: Obj
    pods: tuple[Obj, ...]
    patches: tuple[Patch, ...]
    claims: Mapping[str, Obj]
    revisions: tuple[Obj, ...]

    @property
    def replicas(self) -> int:
        return int(dig(self.statefulset, "spec", "replicas", default=1))

    @property
    def ordinals(self) -> range:
        start = int(dig(self.statefulset, "spec", "ordinals", "start", default=0))
        return range(start, start + self.replicas)

    @property
    def parallel(self) -> bool:
        return bool(dig(self.statefulset, "spec", "podManagementPolicy", default="") == "Parallel")

    @property
    def rolls(self) -> bool:
        return bool(dig(self.statefulset, "spec", "updateStrategy", "type", default="RollingUpdate") == "RollingUpdate")

    @property
    def partition(self) -> int:
        """Lowest ordinal that is updated."""
        partition = dig(self.statefulset, "spec", "updateStrategy", "rollingUpdate", "partition", default=0)
        return self.ordinals.start + int(partition)

    @property
    def max_unavailable(self) -> int | None:
        """Pods that an update may take down at once, at least one; None if the field is unset."""
        value = dig(self.statefulset, "spec", "updateStrategy", "rollingUpdate", "maxUnavailable")
        return None if value is None else max(share(value, self.replicas, up=False), 1)

    @property
    def min_ready_s(self) -> int:
        return int(dig(self.statefulset, "spec", "minReadySeconds", default=0))

    def by_ordinal(self) -> dict[int, Obj]:
        numbered = ((ordinal_of(self.statefulset, pod), pod) for pod in self.pods)
        return {ordinal: pod for ordinal, pod in numbered if ordinal is not None}


Actions = tuple[Create | Delete, ...]


def plan(observed: Observed, now: datetime) -> Plan:
    """Claim pods; find the revisions; create, delete, update. The status is written in any case."""
    if observed.patches:
        return Plan((observed.patches,), why="pods are adopted or released by the selector")
    known = history(observed.statefulset, observed.revisions)
    if is_terminating(observed.statefulset):
        return _status_plan(observed, known, now)
    if known.action is not None:
        return Plan(((known.action,),), why="a new revision begins")
    shown = _status_plan(observed, known, now)
    retained = retention_patches(
        observed.statefulset, observed.by_ordinal(), frozenset(observed.ordinals), observed.claims
    )
    if retained:
        return Plan((retained,), Requeue(0.0, "then the pods"), "claims get the owners with which they go")
    actions = _next_actions(observed, known, now)
    if actions:
        steps = tuple((action,) for action in actions)
        return Plan(
            steps,
            shown.outcome,
            f"{name_of(observed.statefulset)} wants {observed.replicas} pods in order",
            shown.status,
        )
    used = {labels_of(pod).get(HASH_LABEL, "") for pod in observed.pods} | {_current(observed, known)}
    gone = expired(observed.statefulset, known, used)
    return Plan((gone,), shown.outcome, "old revisions go", shown.status) if gone else shown


def _current(observed: Observed, known: History) -> str:
    return str(dig(observed.statefulset, "status", "currentRevision", default="")) or known.name


def _healthy(observed: Observed, pod: Obj, now: datetime) -> bool:
    available = is_available(pod, observed.min_ready_s, now)
    return phase(pod) == "Running" and available and not is_terminating(pod)


def _next_actions(observed: Observed, known: History, now: datetime) -> Actions:
    pods = observed.by_ordinal()
    actions, wait = _fill(observed, known, pods, now)
    if wait or (actions and not observed.parallel):
        return actions
    removed, wait = _condemn(observed, pods, now)
    if actions or removed or wait:
        return (*actions, *removed)
    return _update(observed, known, pods, now)


def _fill(observed: Observed, known: History, pods: dict[int, Obj], now: datetime) -> tuple[Actions, bool]:
    """Create missing and replace failed pods, lowest first; in order, each waits until those below are available."""
    actions: list[Create | Delete] = []
    for ordinal in observed.ordinals:
        pod = pods.get(ordinal)
        if pod is None:
            actions += _make(observed, known, ordinal)
            if not observed.parallel:
                return tuple(actions), True
        elif phase(pod) in ("Failed", "Succeeded") and not is_terminating(pod):
            return (*actions, Delete.of(pod, "it ended, another takes its place")), True
        elif not observed.parallel and not _healthy(observed, pod, now):
            return tuple(actions), True
    return tuple(actions), False


def _make(observed: Observed, known: History, ordinal: int) -> list[Create | Delete]:
    claims = [claim for claim in claims_of(observed.statefulset, ordinal) if name_of(claim) not in observed.claims]
    template, revision = dig(observed.statefulset, "spec", "template", default={}), known.name
    current = known.named(_current(observed, known))
    if observed.rolls and ordinal < observed.partition and current is not None:
        template, revision = template_of(current), name_of(current)
    pod = stateful_pod(observed.statefulset, template, ordinal, revision)
    made: list[Create | Delete] = [Create(claim, f"pod {ordinal} wants it") for claim in claims]
    return [*made, Create(pod, f"ordinal {ordinal} has none")]


def _condemn(observed: Observed, pods: dict[int, Obj], now: datetime) -> tuple[Actions, bool]:
    """Delete pods beyond the replicas, highest first; in order, each waits until the previous one is gone, and an
    unavailable one is deleted only if it is the lowest of these (``processCondemned``)."""
    condemned = [pods[ordinal] for ordinal in sorted(pods, reverse=True) if ordinal not in observed.ordinals]
    if observed.parallel:
        doomed = tuple(Delete.of(pod, "fewer are wanted") for pod in condemned if not is_terminating(pod))
        return doomed, bool(condemned)
    ailing = [pod for pod in reversed(condemned) if not _healthy(observed, pod, now)]
    for pod in condemned:
        waits = is_terminating(pod) or (pod in ailing and pod is not ailing[0])
        return (() if waits else (Delete.of(pod, "fewer are wanted"),)), True
    return (), False


def _update(observed: Observed, known: History, pods: dict[int, Obj], now: datetime) -> Actions:
    """Update the highest ordinal first, down to the partition. Without ``maxUnavailable``, each waits until the
    previous one is available; with it, as many are updated as the limit allows beside unavailable ones."""
    if not observed.rolls:
        return ()
    most = observed.max_unavailable
    if most is not None:
        old = [
            pods[each]
            for each in sorted(pods, reverse=True)
            if each in observed.ordinals and each >= observed.partition
        ]
        unavailable = sum(not _healthy(observed, pods[each], now) for each in pods if each in observed.ordinals)
        doomed = [pod for pod in old if labels_of(pod).get(HASH_LABEL) != known.name and not is_terminating(pod)]
        return tuple(Delete.of(pod, "it has an old template") for pod in doomed[: max(most - unavailable, 0)])
    for ordinal in sorted((each for each in pods if each >= observed.partition), reverse=True):
        pod = pods[ordinal]
        if labels_of(pod).get(HASH_LABEL) != known.name and not is_terminating(pod):
            return (Delete.of(pod, "it has an old template"),)
        if not _healthy(observed, pod, now):
            return ()
    return ()


def _status_plan(observed: Observed, known: History, now: datetime) -> Plan:
    current, update = _current(observed, known), known.name
    lasting = [labels_of(pod).get(HASH_LABEL) for pod in observed.pods if not is_terminating(pod)]
    ready = sum(is_ready(pod) and phase(pod) == "Running" for pod in observed.pods)
    updated = lasting.count(update)
    if observed.rolls and updated == len(observed.pods) == ready == observed.replicas:
        current = update  # the rollout is complete: the update revision becomes current
    available = sum(is_available(pod, observed.min_ready_s, now) for pod in observed.pods)
    counts = {
        "readyReplicas": ready,
        "currentReplicas": lasting.count(current),
        "updatedReplicas": updated,
    }
    status: Obj = {"observedGeneration": generation(observed.statefulset), "replicas": len(observed.pods)}
    status |= {name: number for name, number in counts.items() if number}
    status |= {"currentRevision": current, "updateRevision": update, "availableReplicas": available}
    status["collisionCount"] = dig(observed.statefulset, "status", "collisionCount", default=0)
    write = set_status(observed.statefulset, status, "the pods changed")
    return Plan(
        status=write,
        outcome=until_available(observed.pods, observed.min_ready_s, now),
        why="the pods are as wanted, or must be waited for",
    )


def settle(observed: Observed, results: tuple[Result, ...]) -> tuple[Observed, Plan] | None:
    """Emit events for pods and claims created and deleted."""
    events: list[Emit] = []
    failed = ""
    for result in results:
        what = _subject(observed.statefulset, result)
        if not what:
            continue
        verb = "create" if isinstance(result.action, Create) else "delete"
        reason = ("Successful" if result.ok else "Failed") + verb.capitalize()
        ending = what.success if result.ok else f"failed error: {result.error}"
        text = f"{verb.capitalize()} {what.subject} {ending}"
        events.append(Emit(observed.statefulset, reason, text, COMPONENT, warning=not result.ok))
        failed = failed or ("" if result.ok else str(result.error))
    if not events:
        return None
    return observed, Plan((tuple(events),), Retry(failed) if failed else Done(), "tell what became of the pods")


@dataclass(frozen=True, slots=True)
class _Subject:
    subject: str
    success: str


def _subject(statefulset: Obj, result: Result) -> _Subject | None:
    if not isinstance(result.action, Create | Delete):
        return None
    target, owner = result.action.target, name_of(statefulset)
    if target.kind == "Pod":
        return _Subject(f"Pod {target.name} in StatefulSet {owner}", "successful")
    if target.kind == "PersistentVolumeClaim":
        pod = target.name[target.name.index(f"{owner}-") :] if f"{owner}-" in target.name else owner
        return _Subject(f"Claim {target.name} Pod {pod} in StatefulSet {owner}", "success")
    return None
