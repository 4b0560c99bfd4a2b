"""Databases and storage whose message comes from several fields: Ceph, Elasticsearch."""

from __future__ import annotations

from syncline.apply.health.reading import CannotJudge, at, number, shown
from syncline.apply.health.table import Rule, Settings
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj

CEPH_HEALTH = {
    "HEALTH_OK": HealthStatus.HEALTHY,
    "HEALTH_WARN": HealthStatus.DEGRADED,
    "HEALTH_ERR": HealthStatus.DEGRADED,
}
CEPH_STATES = {
    "Created": HealthStatus.HEALTHY,
    "Connected": HealthStatus.HEALTHY,
    "Error": HealthStatus.DEGRADED,
}


def ceph_cluster(obj: Obj, settings: Settings) -> Health:
    """Return Ceph's own health first; only if healthy, the operator's state."""
    if obj.get("status") is None:
        return Health(HealthStatus.PROGRESSING, "Waiting for status to be reported")
    status, parts = HealthStatus.PROGRESSING, []
    health = at(obj, "status.ceph.health")
    if health is not None:
        status = CEPH_HEALTH.get(health, status)
        parts.append(f"Ceph health is {shown(health)}{_details(obj)}")
    state = at(obj, "status.state")
    if state is not None and status is HealthStatus.HEALTHY:
        status = CEPH_STATES.get(state, HealthStatus.PROGRESSING)
        parts.append(f"Ceph cluster state is {shown(state)}")
    said = at(obj, "status.message")
    if said is not None:
        parts.append(shown(said))
    return Health(status, " - ".join(part for part in parts if part))


def _details(obj: Obj) -> str:
    details = at(obj, "status.ceph.details") or {}
    said = [details[name].get("message") for name in sorted(details)]
    texts = [shown(text) for text in said if text is not None]
    return f" ({'; '.join(texts)})" if texts else ""


def elasticsearch_nodes(obj: Obj, settings: Settings) -> Health | None:
    """Return Progressing until all node sets have joined; only then the cluster's colour counts."""
    if at(obj, "status.availableNodes") is None:
        return None
    sets = at(obj, "spec.nodeSets")
    if not isinstance(sets, list):
        raise CannotJudge("spec.nodeSets: must be a list")
    wanted = sum(number(one, "count") for one in sets)
    there = number(obj, "status.availableNodes")
    if there < wanted:
        why = f"The desired amount of availableNodes is {shown(wanted)} but the current amount is {shown(there)}"
        return Health(HealthStatus.PROGRESSING, why)
    return None if there == wanted else Health(HealthStatus.UNKNOWN, settings.get("say", ""))


RULES: dict[str, Rule] = {"ceph cluster": ceph_cluster, "elasticsearch nodes": elasticsearch_nodes}
