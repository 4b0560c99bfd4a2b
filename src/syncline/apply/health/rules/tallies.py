"""Kinds whose conditions are counted: Flux, Knative, KServe, operator subscriptions, routes."""

from __future__ import annotations

from syncline.apply.health.reading import CannotJudge, Pattern, at, conditions, shown, words
from syncline.apply.health.table import Rule, Settings
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj

FLUX_PROGRESSING = ("Ready=Unknown", "Reconciling=True")
UNHEALTHY_SUBSCRIPTION = "CatalogSourcesUnhealthy|InstallPlanFailed|ResolutionFailed=True"


def _count(found: list[Obj], patterns: list[str] | tuple[str, ...]) -> int:
    parsed = [Pattern.parse(pattern) for pattern in patterns]
    return sum(any(pattern.fits(item) for pattern in parsed) for item in found)


def flux(obj: Obj, settings: Settings) -> Health:
    """Return Progressing for two signs of progress, Healthy for exactly ``needs`` signs of success (1), else Degraded.

    The message is the reason of Ready, then that of an outdated artifact.
    """
    if settings.get("suspends", True) and at(obj, "spec.suspend") is True:
        return Health(HealthStatus.SUSPENDED, f"{obj.get('kind')} is suspended")
    if at(obj, "status.conditions") is None:
        return Health(HealthStatus.PROGRESSING, "Status unknown")
    found = conditions(obj)
    message = ""
    for item in found:
        if item.get("type") == "Ready":
            message = item.get("reason") or ""
        elif (item.get("type"), item.get("status")) == ("ArtifactOutdated", "True") and settings.get("needs") == 2:
            message = f"{message} {item.get('reason') or ''}"
    if _count(found, settings.get("progressing", FLUX_PROGRESSING)) == 2:
        return Health(HealthStatus.PROGRESSING, message)
    good = _count(found, settings["succeeded"]) == settings.get("needs", 1)
    return Health(HealthStatus.HEALTHY if good else HealthStatus.DEGRADED, message)


def knative_parts(obj: Obj, settings: Settings) -> Health:
    """All of ``true`` must be True. A False one of ``false``, or any Unknown, means Progressing."""
    kind = shown(obj.get("kind"), "kind")
    if at(obj, "status.conditions") is None:
        return Health(HealthStatus.PROGRESSING, f"Waiting for {kind}")
    found = conditions(obj)
    lines = [f"{n}: {_text(item, 'type')} | {_text(item, 'status')}\n" for n, item in enumerate(found, 1)]
    if _count(found, [f"{'|'.join(settings['false'])}=False", "*=Unknown"]):
        return Health(HealthStatus.PROGRESSING, "".join(lines))
    if _count(found, [f"{'|'.join(settings['true'])}=True"]) == len(settings["true"]):
        return Health(HealthStatus.HEALTHY, f"{kind} is healthy.")
    return Health(HealthStatus.DEGRADED, "".join(lines))


def _text(item: Obj, name: str) -> str:
    return shown(item.get(name), f"status.conditions[].{name}")


def knative_service(obj: Obj, settings: Settings) -> Health:
    """Configurations, routes and the service must be ready; the message lists the others line by line."""
    if at(obj, "status.conditions") is None:
        return Health(HealthStatus.PROGRESSING, "Waiting for status update.")
    found = conditions(obj)
    bad = [item for item in found if item.get("status") in ("False", "Unknown")]
    if not bad and _count(found, ["ConfigurationsReady|RoutesReady|Ready=True"]) == 3:
        return Health(HealthStatus.HEALTHY, "Knative Service is healthy.")
    failed = any(item["status"] == "False" for item in bad)
    message = "".join(_unready(item) + "\n" for item in bad)
    return Health(HealthStatus.DEGRADED if failed else HealthStatus.PROGRESSING, message)


def _unready(item: Obj) -> str:
    text = f"{_text(item, 'type')} is {item['status']}"
    if item.get("reason"):
        text += f", since {item['reason']}."
    return text + (f" {item['message']}" if item.get("message") else "")


def inference_service(obj: Obj, settings: Settings) -> Health | None:
    """KServe: the model's transition and all conditions; a stopped service is Suspended."""
    if not isinstance(obj.get("status"), dict):
        return None
    found = conditions(obj)
    if _count(found, ["Stopped=True"]):
        return Health(HealthStatus.SUSPENDED, "InferenceService is Stopped")
    transition = at(obj, "status.modelStatus.transitionStatus")
    moving = at(obj, "status.modelStatus") is not None and transition != "UpToDate"
    message = f"0: transitionStatus | {shown(transition, 'transitionStatus')}" if moving else ""
    if at(obj, "status.conditions") is None:
        return Health(HealthStatus.PROGRESSING, "Waiting for InferenceService to report status...")
    for place, item in enumerate(found, 1):
        if item.get("status") != "True" and item.get("type") != "Stopped":
            more = [item[key] for key in ("reason", "message") if item.get(key)]
            message += f" | {place}: {words([_text(item, 'type'), _text(item, 'status'), *more], ' | ')}"
    if not moving and not _count(found, ["*=Unknown", "!Stopped=False"]):
        return Health(HealthStatus.HEALTHY, "InferenceService is healthy.")
    stuck = moving and transition != "InProgress"
    return Health(HealthStatus.DEGRADED if stuck else HealthStatus.PROGRESSING, message)


def subscription(obj: Obj, settings: Settings) -> Health | None:
    """Operator Lifecycle Manager: an upgrade that only waits for a user's approval is no problem."""
    if at(obj, "status.conditions") is None:
        return None
    found = conditions(obj)
    waits_for_approval = (
        at(obj, "spec.installPlanApproval") == "Manual"
        and at(obj, "status.installedCSV") is not None
        and _count(found, ["InstallPlanPending=True/RequiresApproval"]) > 0
    )
    lines, counted = [], []
    for place, item in enumerate(found, 1):
        if not (waits_for_approval and item.get("type") == "InstallPlanPending"):
            counted.append(item)
            lines.append(f"{place}: {_text(item, 'type')} | {_text(item, 'status')}\n")
    pending = _count(counted, ["InstallPlanPending=True"])
    degraded = _count(counted, ["InstallPlanMissing=*/!ReferencedInstallPlanNotFound", UNHEALTHY_SUBSCRIPTION])
    state = at(obj, "status.state")
    lines.append(_subscription_state(state, waits_for_approval))
    if state == "UpgradeFailed":
        degraded += 1
    elif state in (None, "", "UpgradeAvailable") or (state == "UpgradePending" and not waits_for_approval):
        pending += 1
    if degraded:
        return Health(HealthStatus.DEGRADED, "".join(lines))
    return Health(HealthStatus.PROGRESSING if pending else HealthStatus.HEALTHY, "".join(lines))


def _subscription_state(state: object, waits_for_approval: bool) -> str:
    if state is None:
        return ".status.state not yet known\n"
    if state == "UpgradePending" and waits_for_approval:
        return ".status.state is 'UpgradePending' (manual InstallPlan approval pending; treated as healthy)\n"
    return f".status.state is '{shown(state)}'\n"


def admitted_routes(obj: Obj, settings: Settings) -> Health:
    """OpenShift: every router of the route must have admitted it."""
    routers = at(obj, "status.ingress")
    if not isinstance(routers, list):
        raise CannotJudge("status.ingress: must be a list")
    found = [item for router in routers for item in conditions(router, "conditions")]
    if _count(found, ["Admitted=True"]) == len(routers):
        return Health(HealthStatus.HEALTHY, "Route is healthy")
    if _count(found, ["Admitted=False"]):
        return Health(HealthStatus.DEGRADED, "Route is degraded")
    return Health(HealthStatus.PROGRESSING, "Route is still getting admitted")


RULES: dict[str, Rule] = {
    "admitted routes": admitted_routes,
    "flux": flux,
    "inference service": inference_service,
    "knative parts": knative_parts,
    "knative service": knative_service,
    "operator subscription": subscription,
}
