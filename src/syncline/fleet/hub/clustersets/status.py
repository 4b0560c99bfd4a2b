"""Status of cluster sets and of their bindings; pure.

Rules: ``pkg/registration/hub/managedclusterset`` and ``managedclustersetbinding`` of upstream (reference
ocm-pull-model §2).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from syncline.fleet.conditions import condition, with_condition
from syncline.fleet.hub.sets import SetError, members
from syncline.kube.objects import Obj, dig, is_terminating, name_of


def set_status_of(cluster_set: Obj, clusters: Iterable[Obj], now: datetime) -> Obj:
    """Return the status of a set: whether it has members, terminating ones too. That of a set being deleted stays.
    Raises :class:`SetError` with upstream's text."""
    status: Obj = cluster_set.get("status") or {}
    if is_terminating(cluster_set):
        return status
    try:
        count = len(members(cluster_set, clusters))
    except SetError as error:
        raise SetError(f'failed to sync ManagedClusterSet "{name_of(cluster_set)}": {error}') from None
    if count:
        new = condition("ClusterSetEmpty", "False", "ClustersSelected", f"{count} ManagedClusters selected")
    else:
        new = condition("ClusterSetEmpty", "True", "NoClusterMatched", "No ManagedCluster selected")
    return {**status, "conditions": with_condition(status.get("conditions") or (), new, now)}


def binding_status_of(binding: Obj, cluster_set: Obj | None, now: datetime) -> Obj:
    """Return the status of a binding; ``cluster_set``: the set it names, None if there is none."""
    if cluster_set is None:
        new = condition("Bound", "False", "ClusterSetNotFound")
    else:
        new = condition("Bound", "True", "ClusterSetBound")
    conditions = dig(binding, "status", "conditions") or ()
    return {**(binding.get("status") or {}), "conditions": with_condition(conditions, new, now)}
