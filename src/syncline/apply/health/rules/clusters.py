"""Rules for kinds that report on many clusters or machines: Cluster API, Karmada, Open Cluster Management."""

from __future__ import annotations

from syncline.apply.health.reading import CannotJudge, at, conditions, first, shown, words
from syncline.apply.health.table import Rule, Settings
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj

POOL_PHASES = {
    "Running": HealthStatus.HEALTHY,
    "Scaling": HealthStatus.HEALTHY,
    "Failed": HealthStatus.DEGRADED,
    "Unknown": HealthStatus.DEGRADED,
}
INSUFFICIENT = Health(HealthStatus.PROGRESSING, "Current resource status is insufficient")


def machine_pool(obj: Obj, settings: Settings) -> Health:
    """Return the health by phase; the message lists every False condition."""
    phase = at(obj, "status.phase")
    message = "" if phase is None else f"MachinePool is {shown(phase)}"
    missing = [
        f"Not {item['type']}" + (f" ({item['reason']})" if item.get("reason") is not None else "")
        for item in conditions(obj)
        if item.get("type") is not None and item.get("status") == "False"
    ]
    if missing:
        message += f": {', '.join(missing)}"
    return Health(POOL_PHASES.get(phase, HealthStatus.PROGRESSING), message)


def errors_by_severity(obj: Obj, settings: Settings) -> Health | None:
    """Cluster API: join the messages of conditions that are False with severity Error."""
    errors = [item for item in conditions(obj) if (item.get("status"), item.get("severity")) == ("False", "Error")]
    if not errors:
        return None
    return Health(HealthStatus.DEGRADED, "".join(f"{shown(item.get('message'), 'message')} " for item in errors))


def karmada_binding(obj: Obj, settings: Settings) -> Health:
    """Check that every bound cluster has reported. ``clusters: required``: having none is not enough."""
    clusters, reports = at(obj, "spec.clusters"), at(obj, "status.aggregatedStatus")
    if clusters is None and settings.get("clusters") == "required":
        return INSUFFICIENT
    if clusters == [] or not isinstance(reports, list) or (not reports and clusters is None):
        return INSUFFICIENT
    if clusters is not None and len(clusters) != len(reports):
        return INSUFFICIENT
    for report in reports:
        health = at(report, "health")
        if health == "Unhealthy" or (health == "Unknown" and at(report, "applied") is not True):
            return Health(HealthStatus.DEGRADED, "Current resource status is unhealthy")
    return Health(HealthStatus.HEALTHY)


def compliance_details(obj: Obj, settings: Settings) -> Health:
    """ConfigurationPolicy: join the messages of all conditions of all templates."""
    details = at(obj, "status.compliancyDetails")
    said = [
        f"{shown(item['type'])} - {shown(item['message'])}"
        for detail in (details if isinstance(details, list) else [])
        for item in conditions(detail, "conditions")
        if item.get("message") is not None and item.get("type") is not None
    ]
    return Health(_compliance(obj), "; ".join(said))


def compliance_of_clusters(obj: Obj, settings: Settings) -> Health:
    """Policy: list the clusters that do not comply; on a managed cluster the templates."""
    clusters, templates = at(obj, "status.status"), at(obj, "status.details")
    if isinstance(clusters, list):
        names = [at(one, "clustername") for one in clusters if at(one, "compliant") != "Compliant"]
        return Health(_compliance(obj), _named("clusters", names))
    if isinstance(templates, list):
        names = [at(one, "templateMeta.name") for one in templates if at(one, "compliant") != "Compliant"]
        return Health(_compliance(obj), _named("templates", names))
    return Health(_compliance(obj))


def _named(things: str, names: list[object]) -> str:
    if any(not isinstance(name, str) for name in names):
        raise CannotJudge(f"status: one of the {things} has no name")
    return f"NonCompliant {things}: {words(names)}" if names else f"All {things} are compliant"


def _compliance(obj: Obj) -> HealthStatus:
    return HealthStatus.HEALTHY if at(obj, "status.compliant") == "Compliant" else HealthStatus.DEGRADED


def oldest_of_ready_and_errors(obj: Obj, settings: Settings) -> Health | None:
    """Keycloak: if Ready and HasErrors are both True, the older one decides; one without a time counts as newest."""
    found = sorted(conditions(obj), key=lambda item: str(item.get("lastTransitionTime") or "~"))
    decisive = first(found, "Ready|HasErrors=True")
    if decisive is None:
        return None
    if decisive["type"] == "Ready":
        return Health(HealthStatus.HEALTHY)
    return Health(HealthStatus.DEGRADED, f"Has Errors: {shown(decisive.get('message'), 'message')}")


RULES: dict[str, Rule] = {
    "compliance details": compliance_details,
    "compliance of clusters": compliance_of_clusters,
    "errors by severity": errors_by_severity,
    "karmada binding": karmada_binding,
    "machine pool": machine_pool,
    "oldest of ready and errors": oldest_of_ready_and_errors,
}
