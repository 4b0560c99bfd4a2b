"""Rank surplus pods for deletion (Kubernetes ``ActivePodsWithRanks``)."""

from __future__ import annotations

from typing import Any

from syncline.cluster.builtin.pods import created_at, is_ready, phase, ready_since
from syncline.kube.objects import Obj, annotations_of, dig, name_of

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def deletion_order(pods: tuple[Obj, ...], crowd: dict[str, int]) -> list[Obj]:
    """Sort by: unassigned, pending, not ready, cheap, crowded, recently ready, often restarted, young."""
    return sorted(pods, key=lambda pod: _rank(pod, crowd))


def _rank(pod: Obj, crowd: dict[str, int]) -> tuple[Any, ...]:
    node = str(dig(pod, "spec", "nodeName", default=""))
    since = ready_since(pod)
    return (
        bool(node),
        _PHASES.get(phase(pod), 1),
        is_ready(pod),
        _cost(pod),
        -crowd.get(node, 0),
        -since.timestamp() if since is not None and since.year > 1 else 0.0,
        -_restarts(pod),
        _descending_age(pod),
        name_of(pod),
    )


def _descending_age(pod: Obj) -> float:
    created = created_at(pod)
    return -created.timestamp() if created.year > 1 else 0.0


def _cost(pod: Obj) -> int:
    try:
        return int(annotations_of(pod).get(DELETION_COST, "0"))
    except ValueError:
        return 0


def _restarts(pod: Obj) -> int:
    statuses = dig(pod, "status", "containerStatuses", default=[])
    return max((int(status.get("restartCount") or 0) for status in statuses), default=0)
