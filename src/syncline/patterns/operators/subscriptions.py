"""Conditions of a Subscription: the health of its catalogues, and what became of its InstallPlan.

Each function returns the new status, or the given one if nothing changed (OLM then writes nothing).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from syncline.base.clock import format_time
from syncline.kube.objects import Obj, dig

UNHEALTHY, MISSING, PENDING, FAILED = (
    "CatalogSourcesUnhealthy",
    "InstallPlanMissing",
    "InstallPlanPending",
    "InstallPlanFailed",
)
RESOLUTION_FAILED, UNPACKING, UNPACK_FAILED = "ResolutionFailed", "BundleUnpacking", "BundleUnpackFailed"
UPGRADE_PENDING, AT_LATEST, UPGRADE_FAILED = "UpgradePending", "AtLatestKnown", "UpgradeFailed"


def find(conditions: Iterable[Obj] | None, kind: str) -> Obj:
    """Return the condition of a type; one with status Unknown if there is none."""
    for one in conditions or ():
        if one.get("type") == kind:
            return one
    return {"type": kind, "status": "Unknown"}


def put(conditions: Sequence[Obj] | None, new: Obj) -> list[Obj]:
    """Return the conditions with ``new`` in place of the one of its type, else at the end."""
    made = list(conditions or ())
    for index, one in enumerate(made):
        if one.get("type") == new["type"]:
            made[index] = new
            return made
    return [*made, new]


def without(conditions: Iterable[Obj] | None, *kinds: str) -> list[Obj]:
    return [one for one in conditions or () if one.get("type") not in kinds]


def same(one: Obj, other: Obj) -> bool:
    """Return whether two conditions say the same, whenever."""
    return all((one.get(part) or "") == (other.get(part) or "") for part in ("type", "status", "reason", "message"))


def with_conditions(status: Obj, conditions: Sequence[Obj], now: datetime) -> Obj:
    """Return the status with these conditions; a status without conditions has no such field."""
    rest = {key: value for key, value in status.items() if key != "conditions"}
    made = {"conditions": list(conditions)} if conditions else {}
    return {**rest, **made, "lastUpdated": format_time(now)}


@dataclass(frozen=True, slots=True)
class _Judged:
    status: str
    reason: str
    message: str


def _judge(spec: Obj, health: Sequence[Obj], before: str) -> _Judged:
    """Return the condition that follows from the catalogues alone."""
    wanted = (spec.get("sourceNamespace") or "", spec.get("source") or "")
    place, message, missing = "/".join(wanted), before, True
    for one in health:
        reference = one.get("catalogSourceRef") or {}
        if (reference.get("namespace") or "", reference.get("name") or "") == wanted:
            missing = False
            if not one.get("healthy"):
                message = f"targeted catalogsource {place} unhealthy"
    if missing:
        return _Judged("True", "UnhealthyCatalogSourceFound", f"targeted catalogsource {place} missing")
    if not all(one.get("healthy") for one in health):
        return _Judged("True", "UnhealthyCatalogSourceFound", message)
    return _Judged("False", "AllCatalogSourcesHealthy", "all available catalogsources are healthy")


def _uid(health: Obj) -> str:
    return str((health.get("catalogSourceRef") or {}).get("uid") or "")


def update_health(spec: Obj, status: Obj, health: Sequence[Obj], now: datetime) -> Obj:
    """Record the health of the catalogues that a Subscription can use (``UpdateHealth``).

    ``health``: of its namespace and of the global one, each with ``catalogSourceRef``, ``healthy``, ``lastUpdated``.
    """
    old = find(status.get("conditions"), UNHEALTHY)
    judged = _judge(spec, health, str(old.get("message") or ""))
    known = status.get("catalogHealth") or []
    new, reason, message, update = {_uid(one): one for one in health}, judged.reason, judged.message, False
    if len(new) != len(known):
        reason, update = ("CatalogSourcesAdded" if len(new) > len(known) else "CatalogSourcesDeleted"), True
    elif not new:
        reason, message = "NoCatalogSourcesFound", "dependency resolution requires at least one catalogsource"
        update = True
    elif any(_uid(one) not in new or bool(new[_uid(one)].get("healthy")) != bool(one.get("healthy")) for one in known):
        reason = "CatalogSourcesUpdated"
    condition = {**old, "status": judged.status, "reason": reason, "message": message}
    if not update and same(condition, old):
        return status
    condition["lastTransitionTime"] = format_time(now)
    made = with_conditions(status, put(status.get("conditions"), condition), now)
    made.pop("catalogHealth", None)
    return {**made, "catalogHealth": list(health)} if health else made


def _alike(before: Iterable[Obj] | None, after: Iterable[Obj]) -> bool:
    """Return whether two lists of conditions say the same, in any order; the time of a transition does not count."""

    def read(conditions: Iterable[Obj] | None) -> set[tuple[tuple[str, str], ...]]:
        return {
            tuple(sorted((key, str(value)) for key, value in one.items() if key != "lastTransitionTime" and value))
            for one in conditions or ()
        }

    return read(before) == read(after)


def plan_not_found(status: Obj, now: datetime) -> Obj:
    """Note that the InstallPlan a Subscription refers to is gone (``InstallPlanNotFound``)."""
    conditions = without(status.get("conditions"), PENDING, FAILED)
    out = dict(status)
    if status.get("state") == UPGRADE_PENDING:
        for field in ("installPlanRef", "installplan", "currentCSV", "state"):
            out.pop(field, None)
        out["lastUpdated"] = format_time(now)
    else:
        missing = {"status": "True", "reason": "ReferencedInstallPlanNotFound", "lastTransitionTime": format_time(now)}
        conditions = put(conditions, {**find(conditions, MISSING), **missing})
    if _alike(status.get("conditions"), conditions):
        return status
    return with_conditions(out, conditions, now)


def check_plan(status: Obj, plan: Obj, now: datetime) -> Obj:
    """Reflect the status of the InstallPlan that a Subscription refers to (``CheckInstallPlanStatus``)."""
    phase = str(plan.get("phase") or "")
    conditions = without(status.get("conditions"), MISSING, PENDING, FAILED)
    made: Obj = {"status": "True", "lastTransitionTime": format_time(now)}
    if message := plan_message(plan):
        made["message"] = message
    if phase in ("", "Planning", "Installing", "RequiresApproval"):
        reason = phase or "InstallPlanNotYetReconciled"
        conditions = put(conditions, {"type": PENDING, **made, "reason": reason})
    elif phase == "Failed":
        installed = find(plan.get("conditions"), "Installed")
        reason = str(installed.get("reason") or "") if installed.get("status") == "False" else "InstallPlanFailed"
        conditions = put(conditions, {"type": FAILED, **made, **({"reason": reason} if reason else {})})
    if _alike(status.get("conditions"), conditions):
        return status
    return with_conditions(status, conditions, now)


def plan_message(plan: Obj) -> str:
    """Return what an InstallPlan says for its Subscriptions: of its condition, else of bundles that are unpacked."""
    installed = find(plan.get("conditions"), "Installed")
    if installed.get("status") != "Unknown" and installed.get("message"):
        return str(installed["message"])
    waits = (find(lookup.get("conditions"), "BundleLookupPending") for lookup in plan.get("bundleLookups") or ())
    return " ".join(f"{one['message']}." for one in waits if one.get("status") != "Unknown" and one.get("message"))


def deprecated(status: Obj, channel: str, found: Obj | None, now: datetime) -> Obj:
    """Reflect what a catalogue says about deprecation. ``found``: messages by ``package``, ``channel`` and ``bundle``
    of the installed version (``updateDeprecatedStatus``); None: the catalogue does not have that version."""
    if found is None:
        return status
    conditions, messages, changed = list(status.get("conditions") or ()), [], False
    for part in ("package", "channel", "bundle"):
        kind, message = f"{part.title()}Deprecated", str(found.get(part) or "")
        old = find(conditions, kind)
        if message and not (part == "channel" and not channel):
            messages.append(message)
            if old.get("message") != message:
                new = {"type": kind, "message": message, "status": "True", "lastTransitionTime": format_time(now)}
                conditions, changed = put(conditions, new), True
        elif old.get("status") == "True":
            conditions, changed = without(conditions, kind), True
    if not changed:
        return status
    if messages:
        rolled = {"message": "; ".join(messages), "status": "True", "lastTransitionTime": format_time(now)}
        conditions = put(conditions, {"type": "Deprecated", **rolled})
    else:
        conditions = without(conditions, "Deprecated")
    return {**status, "conditions": conditions}


def resolution_message(status: Obj) -> str:
    return str(find(dig(status, "conditions", default=()), RESOLUTION_FAILED).get("message") or "")
