"""Decide which pods a DaemonSet creates and deletes: one per node, and the steps of a rolling update.

Source: Kubernetes' daemon controller. Without a surge, an old pod is deleted before its node gets a new one; with a
surge, the new pod starts first and the old one is deleted when the new one is available.
"""

from __future__ import annotations

from datetime import datetime
from typing import TypeAlias

from syncline.cluster.builtin.pods import is_available, is_finished, is_ready, phase
from syncline.cluster.builtin.workloads.daemonset.observe import Observed
from syncline.cluster.builtin.workloads.daemonset.placing import daemon_pod, node_of
from syncline.cluster.builtin.workloads.history import HASH_LABEL, History
from syncline.control.plan import Create, Delete, Emit
from syncline.kube.objects import Obj, is_terminating, labels_of, name_of, namespace_of

COMPONENT = "daemonset-controller"
Actions: TypeAlias = tuple[Create | Delete | Emit, ...]


def manage(observed: Observed, known: History, now: datetime) -> Actions:
    """Create missing pods; delete unwanted and surplus ones."""
    actions: list[Create | Delete | Emit] = []
    for node, starts, stays in observed.places:
        here = observed.lasting_on(node)
        running = [pod for pod in here if not is_finished(pod)]
        if starts and not (running if observed.surges and stays else observed.on(node)):
            actions.append(_make(observed, known, node, f"{node} has none"))
        if not stays:
            actions += [Delete.of(pod, f"{node} should not run it") for pod in here]
            continue
        actions += [action for pod in here if is_finished(pod) for action in _clear(observed, pod, node)]
        actions += [Delete.of(pod, "one on each node is enough") for pod in _excess(observed, known, running, now)]
    names = {node for node, _, _ in observed.places}
    lost = [pod for pod in observed.pods if node_of(pod) not in names and not is_terminating(pod)]
    return (*actions, *(Delete.of(pod, "its node is gone") for pod in lost))


def _clear(observed: Observed, pod: Obj, node: str) -> Actions:
    """Delete a finished pod, so that another can start."""
    failed, where = phase(pod) == "Failed", f"{namespace_of(pod)}/{name_of(pod)} on node {node}"
    if failed:
        reason, text = "FailedDaemonPod", f"Found failed daemon pod {where}, will try to kill it"
    else:
        reason, text = "SucceededDaemonPod", f"Found succeeded daemon pod {where}, will try to delete it"
    event = Emit(observed.daemonset, reason, text, COMPONENT, warning=failed)
    return event, Delete.of(pod, "it ended, another takes its place")


def _make(observed: Observed, known: History, node: str, why: str) -> Create:
    return Create(daemon_pod(observed.daemonset, node, known.hash), why)


def _excess(observed: Observed, known: History, running: list[Obj], now: datetime) -> list[Obj]:
    """Return all pods but the oldest; with a surge all but the oldest of either template, while the old one is ready
    and the new one is not yet available."""
    if not observed.surges:
        return running[1:]
    new = [pod for pod in running if _is_new(pod, known)]
    old = [pod for pod in running if not _is_new(pod, known)]
    replaced = bool(new and old) and (not is_ready(old[0]) or is_available(new[0], observed.min_ready_s, now))
    return [*new[1:], *old[1:], *(old[:1] if replaced else [])]


def _is_new(pod: Obj, known: History) -> bool:
    return labels_of(pod).get(HASH_LABEL) == known.hash


def update(observed: Observed, known: History, now: datetime) -> Actions:
    """Return the next actions of a rolling update; none with OnDelete."""
    if not observed.rolls:
        return ()
    return _surge(observed, known, now) if observed.max_surge > 0 else _replace(observed, known, now)


def _occupied(observed: Observed) -> list[str]:
    """Return the nodes with pods, and those that should have one."""
    return sorted({node_of(pod) for pod in observed.pods} | set(observed.wanted))


def _replace(observed: Observed, known: History, now: datetime) -> Actions:
    """Delete unavailable old pods at once, others as ``maxUnavailable`` allows."""
    broken: list[Obj] = []
    candidates: list[Obj] = []
    unavailable = 0
    for node in _occupied(observed):
        here = observed.lasting_on(node)
        works = len(here) == 1 and is_available(here[0], observed.min_ready_s, now)
        unavailable += not works
        if len(here) == 1 and not _is_new(here[0], known):
            (candidates if works else broken).append(here[0])
    room = max(observed.max_unavailable - unavailable, 0)
    return tuple(Delete.of(pod, "it has an old template") for pod in [*broken, *candidates[:room]])


def _surge(observed: Observed, known: History, now: datetime) -> Actions:
    """Create new pods beside at most ``maxSurge`` available old ones, and at once beside unavailable ones. Old pods on
    nodes that no longer want them stay until enough others are available."""
    needed: list[str] = []
    candidates: list[str] = []
    doomed: list[Obj] = []
    unwanted: list[Obj] = []
    surging = available = 0
    for node in _occupied(observed):
        here = observed.lasting_on(node)
        new = [pod for pod in here if _is_new(pod, known)]
        old = [pod for pod in here if not _is_new(pod, known)]
        if len(new) > 1 or len(old) > 1:
            surging += 1
            continue
        works = bool(old or new) and is_available((old or new)[0], observed.min_ready_s, now)
        available += works
        if old and new:
            if is_available(new[0], observed.min_ready_s, now):
                doomed += old
            else:
                surging += 1
        elif old and node not in observed.wanted:
            (unwanted if works else doomed).extend(old)
        elif old:
            (candidates if works else needed).append(node)
    doomed += unwanted[: max(available - len(observed.wanted), 0)]
    chosen = [*needed, *candidates[: max(observed.max_surge - surging, 0)]]
    made = (_make(observed, known, node, f"{node} gets a new template") for node in chosen)
    return (*made, *(Delete.of(pod, "it has an old template") for pod in doomed))
