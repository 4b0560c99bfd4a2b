"""InstallPlans: from planning to complete (``syncInstallPlans``, ``transitionInstallPlanState``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from syncline.base.clock import format_time, time_or_none
from syncline.kube.objects import Obj, dig
from syncline.patterns.operators.groups import account_of
from syncline.patterns.operators.subscriptions import find, put

REQUIRES_APPROVAL, INSTALLING, COMPLETE, FAILED = "RequiresApproval", "Installing", "Complete", "Failed"
INSTALLED = "Installed"
CHECK_FAILED = "InstallCheckFailed"
TIMEOUT = timedelta(minutes=1)
"""How long steps are tried again, from the first try; OLM's default."""
RETRY_S = 5.0
"""Seconds between two tries."""


@dataclass(frozen=True, slots=True)
class Executed:
    """What became of the steps. ``forbidden``: the error is one of rights, which a person may grant at any time.
    ``waits``: a step waits for an API."""

    error: str = ""
    forbidden: bool = False
    waits: bool = False
    steps: tuple[Obj, ...] | None = None
    """The steps with their new status; None: as before."""


def condition(conditions: Sequence[Obj] | None, new: Obj, now: datetime) -> list[Obj]:
    """Set a condition; the time of the transition stays while its status does."""
    at = format_time(now)
    old = find(conditions, str(new["type"]))
    since = old.get("lastTransitionTime") if old.get("status") == new["status"] else at
    times = {"lastUpdateTime": at} | ({"lastTransitionTime": since} if since else {})
    return put(conditions, {**new, **times})


def failed(status: Obj, reason: str, message: str, now: datetime) -> Obj:
    new = {"type": INSTALLED, "status": "False"} | _given(reason=reason, message=message)
    return {**status, "conditions": condition(status.get("conditions"), new, now)}


def _given(**fields: str) -> dict[str, str]:
    return {key: value for key, value in fields.items() if value}


@dataclass(frozen=True, slots=True)
class Checked:
    """``status``: what to write (None: nothing); ``error``: why the plan cannot go on; ``ready``: it can."""

    status: Obj | None = None
    error: str = ""
    ready: bool = False


def check(plan: Obj, groups: Sequence[Obj], now: datetime) -> Checked:
    """Look whether a plan may be worked on, and with whose rights. ``groups``: the OperatorGroups of its namespace."""
    status = plan.get("status") or {}
    if not status.get("plan") and not status.get("bundleLookups"):
        return Checked()
    if status.get("phase") in (FAILED, COMPLETE):
        return Checked()
    account, problem = account_of(groups)
    if problem:
        error = f"attenuated service account query failed - {problem}"
        old = find(status.get("conditions"), INSTALLED)
        if (old.get("reason"), old.get("message"), old.get("status")) == (CHECK_FAILED, problem, "False"):
            return Checked(error=error)
        return Checked(failed(status, CHECK_FAILED, problem, now), error)
    if find(status.get("conditions"), INSTALLED).get("reason") == CHECK_FAILED:
        status = failed(status, "Unknown", "", now)
    if account is not None and status.get("attenuatedServiceAccountRef") != account:
        return Checked({**status, "attenuatedServiceAccountRef": account})
    return Checked(status if status != plan.get("status") else None, ready=True)


def transition(plan: Obj, executed: Executed, now: datetime, timeout: timedelta = TIMEOUT) -> tuple[Obj, str]:
    """Return the next status, and the error of the steps. ``executed`` counts in phase Installing alone."""
    status = dict(plan.get("status") or {})
    if status.get("phase") == REQUIRES_APPROVAL and dig(plan, "spec", "approved", default=False):
        status["phase"] = INSTALLING
        status.pop("message", None)
    if (plan.get("status") or {}).get("phase") != INSTALLING:
        return status, ""
    since = time_or_none(status.get("startTime"))
    if since is None:
        since = now
        status["startTime"] = format_time(now)
    if executed.steps is not None:
        status["plan"] = list(executed.steps)
    if not executed.error:
        if executed.waits or any(step.get("status") == "WaitingForApi" for step in status.get("plan") or ()):
            return status, ""
        met = {"type": INSTALLED, "status": "True"}
        status |= {"conditions": condition(status.get("conditions"), met, now), "phase": COMPLETE}
        status.pop("message", None)
        return status, ""
    if executed.forbidden or now - since < timeout:
        return {**status, "message": f"retrying execution due to error: {executed.error}"}, executed.error
    status = failed(status, "InstallComponentFailed", executed.error, now)
    return {**status, "phase": FAILED, "message": executed.error}, executed.error
