"""The status of an ApplicationSet: conditions, health, resources; pure.

A status is computed whole and written once at the end of a reconcile, only if it differs. Rules: ``SetConditions``,
``CalculateHealth`` and ``setApplicationSetStatusCondition`` of upstream (reference argocd-applicationset §1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.argo.rollout.strategy import is_rolling
from syncline.base.clock import format_time
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, dig, name_of, namespace_of

ERROR: Final = "ErrorOccurred"
GENERATED: Final = "ParametersGenerated"
UP_TO_DATE: Final = "ResourcesUpToDate"
PROGRESSING: Final = "RolloutProgressing"
INVALID_ROLLOUT: Final = "InvalidRolloutConfig"
SOURCE_WAIT: Final = "SourceWaitWarning"
"""A condition of ours: a source that is read in the background is waited for; the rest of the status is from before."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition to set; upstream's fields."""

    type: str
    status: bool
    reason: str
    message: str

    def as_obj(self) -> Obj:
        return {
            "type": self.type,
            "status": "True" if self.status else "False",
            "reason": self.reason,
            "message": self.message,
        }


def failed(reason: str, message: str) -> Condition:
    return Condition(ERROR, True, reason, message)


def succeeded() -> Condition:
    return Condition(UP_TO_DATE, True, "ApplicationSetUpToDate", "All applications have been generated successfully")


def with_conditions(
    appset: Obj, status: Obj, conditions: Sequence[Condition], now: datetime, *, generated: bool
) -> Obj:
    """Return ``status`` with these conditions, those that follow from them, and the health. ``generated``: whether the
    parameters are known; what is not decided stays."""
    message = next((one.message for one in conditions if one.type == ERROR), "progressive sync")
    first = (
        Condition(GENERATED, True, "ParametersGenerated", "Successfully generated parameters for all Applications")
        if generated
        else Condition(GENERATED, False, "ErrorOccurred", message)
    )
    rolling = is_rolling(appset)
    new = [first, *(follower for one in conditions for follower in _with_followers(one))]
    if not rolling:
        new = [one for one in new if one.type not in (PROGRESSING, INVALID_ROLLOUT)]
    decided = {one.type for one in new} | {SOURCE_WAIT} | (set() if rolling else {PROGRESSING, INVALID_ROLLOUT})
    return _replaced(status, decided, new, now)


def with_wait(status: Obj, text: str, now: datetime) -> Obj:
    """Return ``status`` with the condition that a source is waited for; all else stays."""
    return _replaced(status, {SOURCE_WAIT}, [Condition(SOURCE_WAIT, True, "ReadingSources", text)], now)


def _with_followers(condition: Condition) -> list[Condition]:
    if condition.type == UP_TO_DATE and condition.status:
        return [condition, Condition(ERROR, False, condition.reason, condition.message)]
    if condition.type == ERROR and condition.status:
        return [condition, Condition(UP_TO_DATE, False, "ErrorOccurred", condition.message)]
    return [condition]


def _replaced(status: Obj, decided: Iterable[str], new: Iterable[Condition], now: datetime) -> Obj:
    known = [one for one in status.get("conditions") or () if isinstance(one, dict)]
    gone = set(decided)
    made = [one if one.get("lastTransitionTime") else {**one, "lastTransitionTime": format_time(now)} for one in known]
    kept = [one for one in made if one.get("type") not in gone]
    for condition in new:
        fields = condition.as_obj()
        before = next((one for one in known if one.get("type") == condition.type), {})
        same = all(before.get(key) == value for key, value in fields.items())
        kept.append(before if same else {**fields, "lastTransitionTime": format_time(now)})
    order = ("type", "status", "reason", "message", "lastTransitionTime")
    kept.sort(key=lambda one: tuple(str(one.get(key) or "") for key in order))
    if _bare(kept) == _bare(known):
        return status
    return {**status, "conditions": kept, "health": _health(kept)}


def _bare(conditions: Iterable[Obj]) -> list[Obj]:
    return [{key: value for key, value in one.items() if key != "lastTransitionTime"} for one in conditions]


def _health(conditions: Sequence[Obj]) -> Obj:
    said = {str(one.get("type")): str(one.get("message") or "") for one in conditions if one.get("status") == "True"}
    for type_, health in ((ERROR, "Degraded"), (PROGRESSING, "Progressing"), (UP_TO_DATE, "Healthy")):
        if type_ in said:
            return {"status": health, **({"message": said[type_]} if said[type_] else {})}
    waits = "Waiting for health status to be determined"
    return {"status": "Unknown", "message": waits if conditions else "No status conditions found for ApplicationSet"}


def with_resources(status: Obj, apps: Iterable[Obj], limit: int) -> Obj:
    """Return ``status`` with one entry for each Application, at most ``limit`` (0: all), and the count of all."""
    rows = [_resource(app) for app in sorted(apps, key=name_of)]
    shown = rows[:limit] if limit else rows
    rest = {key: value for key, value in status.items() if key not in ("resources", "resourcesCount")}
    return {**rest, **({"resources": shown} if shown else {}), **({"resourcesCount": len(rows)} if rows else {})}


def _resource(app: Obj) -> Obj:
    synced, health = (str(dig(app, "status", part, "status", default="") or "") for part in ("sync", "health"))
    return {
        "group": APPLICATION.group,
        "version": APPLICATION.version,
        "kind": APPLICATION.kind,
        "name": name_of(app),
        "namespace": namespace_of(app),
        **({"status": synced} if synced else {}),
        "health": {"status": health} if health else {},
    }
