"""Which strategy writes which kind.

Called by the registry for every built-in kind. A group and kind come in, a :class:`Strategy` leaves: shared, without
state. Kinds that are not listed get the permissive default with ObjectMeta validation; custom resources bring their
own strategy.
"""

from __future__ import annotations

from syncline.cluster.kinds.base import Context, Kind, Strategy
from syncline.cluster.kinds.jobs import CronJobKind, JobKind
from syncline.cluster.kinds.pods import PodKind
from syncline.cluster.kinds.workloads import DaemonSetKind, DeploymentKind, ReplicaSetKind, StatefulSetKind
from syncline.kube.objects import GroupKind

__all__ = ["Context", "Kind", "Strategy", "strategy_for"]

_KINDS: dict[GroupKind, Strategy] = {
    GroupKind("", "Pod"): PodKind(),
    GroupKind("apps", "DaemonSet"): DaemonSetKind(),
    GroupKind("apps", "Deployment"): DeploymentKind(),
    GroupKind("apps", "ReplicaSet"): ReplicaSetKind(),
    GroupKind("apps", "StatefulSet"): StatefulSetKind(),
    GroupKind("batch", "CronJob"): CronJobKind(),
    GroupKind("batch", "Job"): JobKind(),
}

_DEFAULT = Kind()


def strategy_for(kind: GroupKind) -> Strategy:
    return _KINDS.get(kind, _DEFAULT)
