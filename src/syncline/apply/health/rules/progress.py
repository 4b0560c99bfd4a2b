"""Rules with messages from several fields: Grafana, IAM roles, the older ExternalSecret."""

from __future__ import annotations

from syncline.apply.health.reading import at, conditions, shown
from syncline.apply.health.table import Rule, Settings
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj


def reasons_up_to_the_first_failure(obj: Obj, settings: Settings) -> Health:
    """Grafana: ``REASON for TYPE because MESSAGE`` of each condition, until one is False."""
    status, message = HealthStatus.PROGRESSING, ""
    for item in conditions(obj):
        if item.get("status") is None:
            continue
        message += (", " if message else "") + _because(item)
        if item["status"] == "False":
            return Health(HealthStatus.DEGRADED, message)
        if item["status"] == "True":
            status = HealthStatus.HEALTHY
    return Health(status, message)


def _because(item: Obj) -> str:
    if item.get("reason") is None:
        return ""
    text = shown(item["reason"])
    if item.get("type") is None:
        return text
    text += f" for {shown(item['type'])}"
    return text if item.get("message") is None else f"{text} because {shown(item['message'])}"


def iam_role_failure(obj: Obj, settings: Settings) -> Health:
    """iam-manager: a message with the role, the number of tries and the error."""
    name, arn, ident = (at(obj, f"status.{field}") or "<none>" for field in ("roleName", "roleARN", "roleID"))
    retries = at(obj, "status.retryCount")
    tried = f"(retry {shown(retries)}) " if retries and retries > 0 else ""
    message = f"Failed to reconcile the Iamrole {tried}for role '{name}' with ARN '{arn}' and ID '{ident}'."
    why = at(obj, "status.errorDescription")
    return Health(
        HealthStatus.DEGRADED, message if why is None else f"{message} Reconciliation error was: {shown(why)}"
    )


def external_secret_error(obj: Obj, settings: Settings) -> Health | None:
    """kubernetes-client.io: its status is ``ERROR, WHY``."""
    said = at(obj, "status.status")
    if not isinstance(said, str) or not said.startswith("ERROR"):
        return None
    return Health(HealthStatus.DEGRADED, said.replace("ERROR, ", ""))


RULES: dict[str, Rule] = {
    "external secret error": external_secret_error,
    "iam role failure": iam_role_failure,
    "reasons up to the first failure": reasons_up_to_the_first_failure,
}
