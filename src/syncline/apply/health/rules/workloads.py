"""Workloads with replicas: partitions of OpenKruise, Spark, SpinKube, OpenTelemetry, Flagger."""

from __future__ import annotations

import math
import re
from typing import Any

from syncline.apply.health.reading import CannotJudge, at, conditions, first, number, shown
from syncline.apply.health.table import Rule, Settings
from syncline.apply.health.verdict import Health, HealthStatus
from syncline.kube.objects import Obj

FAILED_DEPLOYMENT = ("timeout", "failed")
"""Words in the message of Progressing=False that mean a failed SpinApp, not a brief stop."""
RANGES = (
    ("spark.streaming.dynamicAllocation.enabled", "spark.streaming.dynamicAllocation"),
    ("spark.dynamicAllocation.enabled", "spark.dynamicAllocation"),
)


def held_at_partition(obj: Obj, settings: Settings) -> Health:
    """Return Suspended once more than ``of`` minus the partition are ``updated``; before, the rollout has not begun."""
    partition = number(obj, "spec.updateStrategy.rollingUpdate.partition")
    if number(obj, settings["updated"]) > number(obj, settings["of"]) - partition:
        return Health(HealthStatus.SUSPENDED, settings["say"])
    return Health(HealthStatus.PROGRESSING, "Waiting for initialization")


def game_servers(obj: Obj, settings: Settings) -> Health | None:
    """Return the health of a set of game servers whose spec has been observed."""
    partition = number(obj, "spec.updateStrategy.rollingUpdate.partition", 0)
    total = number(obj, "status.replicas", 0)
    if partition != 0 and number(obj, "status.updatedReplicas", 0) >= total - partition:
        why = f"Partition={shown(partition)}, waiting for manual intervention"
        return Health(HealthStatus.SUSPENDED, why)
    if number(obj, "status.updatedReadyReplicas", 0) == total:
        return Health(HealthStatus.HEALTHY, "All GameServerSet replicas are updated and ready")
    ready = number(obj, "status.readyReplicas", 0)
    if ready >= total:
        return None
    return Health(HealthStatus.PROGRESSING, f"ReadyReplicas {shown(ready)}/{shown(total)}, still progressing")


def spark_executors(obj: Obj, settings: Settings) -> Health | None:
    """A running application is Healthy if as many executors run as its spec requires."""
    if at(obj, "status.applicationState.state") != "RUNNING" or at(obj, "status.executorState") is None:
        return None
    running = list((at(obj, "status.executorState") or {}).values()).count("RUNNING")
    wanted = at(obj, "spec.executor.instances")
    limits = _executor_range(obj)
    unbounded = at(obj, "spec.dynamicAllocation") is None and wanted is None
    enough = (
        (wanted is not None and wanted == running)
        or (limits is not None and limits[0] <= running <= limits[1])
        or (limits is None and unbounded and running >= 1)
    )
    return Health(HealthStatus.HEALTHY, "SparkApplication is Running") if enough else None


def _executor_range(obj: Obj) -> tuple[float, float] | None:
    """Return minimum and maximum of executors under dynamic allocation, by the spec or by Spark's own settings."""
    if at(obj, "spec.dynamicAllocation.enabled"):
        least, most = at(obj, "spec.dynamicAllocation.minExecutors"), at(obj, "spec.dynamicAllocation.maxExecutors")
        return least or 0, most or math.inf
    conf: dict[str, Any] = at(obj, "spec.sparkConf") or {}
    for switch, prefix in RANGES:
        if conf.get(switch) == "true":
            return float(conf.get(f"{prefix}.minExecutors", 0)), float(conf.get(f"{prefix}.maxExecutors", math.inf))
    return None


def spin_app(obj: Obj, settings: Settings) -> Health:
    """SpinKube: not available is Degraded; missing replicas and a rollout are Progressing."""
    if not at(obj, "status"):
        return Health(HealthStatus.PROGRESSING, "Waiting for status to be available")
    found = conditions(obj)
    failed = next((item for item in found if _deployment_failed(item)), None)
    if failed is not None:
        return Health(HealthStatus.DEGRADED, _message(failed, "Application deployment has failed"))
    available = first(found[::-1], "Available")
    if available is None or available.get("status") != "True":
        why = _message(available, "Application is not available") if available else ""
        return Health(HealthStatus.DEGRADED, why)
    ready, wanted = number(obj, "status.readyReplicas", 0), number(obj, "spec.replicas", 1)
    if ready < wanted:
        return Health(HealthStatus.PROGRESSING, f"Waiting for replicas to be ready ({ready:.0f}/{wanted:.0f})")
    moving = first(found[::-1], "Progressing=True")
    if moving is not None:
        return Health(HealthStatus.PROGRESSING, _message(moving, "Application progress status"))
    return Health(HealthStatus.HEALTHY, f"Application is healthy with {ready:.0f}/{wanted:.0f} replicas ready")


def _deployment_failed(item: Obj) -> bool:
    if (item.get("type"), item.get("status")) != ("Progressing", "False"):
        return False
    message = str(item.get("message") or "").lower()
    return item.get("reason") == "ProgressDeadlineExceeded" or any(word in message for word in FAILED_DEPLOYMENT)


def _message(condition: Obj, otherwise: str) -> str:
    message = condition.get("message")
    return otherwise if message is None else shown(message, "message")


def ready_of_total(obj: Obj, settings: Settings) -> Health:
    """OpenTelemetry collectors report ``READY/TOTAL`` as one text."""
    said = at(obj, "status.scale.statusReplicas")
    found = re.search(r"(\d+)/(\d+)", shown(said, "status.scale.statusReplicas"))
    if found is None:
        return Health(HealthStatus.PROGRESSING, f"Unable to parse replica status: {said}")
    ready, total = (int(part) for part in found.groups())
    if ready == 0 and total == 0 and at(obj, "spec.mode") == "daemonset":
        return Health(HealthStatus.HEALTHY, "DaemonSet has no eligible nodes (0/0)")
    if ready == 0:
        return Health(HealthStatus.DEGRADED, "No replicas are ready")
    if ready == total:
        return Health(HealthStatus.HEALTHY, "All replicas are ready")
    return Health(HealthStatus.PROGRESSING, "Replicas are starting up")


CANARY_PHASES = {
    "Failed": HealthStatus.DEGRADED,
    "Progressing": HealthStatus.PROGRESSING,
    "Finalising": HealthStatus.PROGRESSING,
    "Promoting": HealthStatus.PROGRESSING,
    "Succeeded": HealthStatus.HEALTHY,
    "Initialized": HealthStatus.HEALTHY,
}


def flagger_canary(obj: Obj, settings: Settings) -> Health:
    """Return the health by phase; the message adds weight and messages of all conditions."""
    if obj.get("status") is None:
        return Health(HealthStatus.UNKNOWN, "No status")
    try:
        weight = float(at(obj, "status.canaryWeight"))
    except (TypeError, ValueError) as error:
        raise CannotJudge("status.canaryWeight: must be a number") from error
    parts = [f"Canary Weight: {shown(at(obj, 'status.canaryWeight'))} %"] if weight > 0 else []
    parts += [shown(item.get("message"), "message") for item in conditions(obj)]
    phase = shown(at(obj, "status.phase"), "status.phase")
    return Health(CANARY_PHASES.get(phase, HealthStatus.UNKNOWN), f"{phase} --- {' --- '.join(parts)}")


RULES: dict[str, Rule] = {
    "flagger canary": flagger_canary,
    "game servers": game_servers,
    "held at partition": held_at_partition,
    "ready of total": ready_of_total,
    "spark executors": spark_executors,
    "spin app": spin_app,
}
