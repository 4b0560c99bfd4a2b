"""InstallPlans of an operator: which is the latest, and whether the policy approves it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from syncline.kube import client
from syncline.kube.kinds.governance import OPERATOR_POLICY
from syncline.kube.kinds.operatorlifecycle import (
    INSTALL_PLAN,
    SUBSCRIPTION,
)
from syncline.kube.objects import (
    Obj,
    annotations_of,
    dig,
    namespace_of,
    uid_of,
)
from syncline.patterns.policies.cluster.enforcing import MANAGER
from syncline.patterns.policies.names import (
    is_enforced,
)
from syncline.patterns.policies.operators import words
from syncline.patterns.policies.operators.looking import Look, Steps, versions_in
from syncline.patterns.policies.operators.wanted import (
    MANAGED,
    allowed,
    dependencies_of,
    versions_of,
)


def handle_plans(look: Look, subscription: Obj | None) -> Steps:
    report = look.report
    if subscription is None:
        report.set(words.undetermined(INSTALL_PLAN))
        return
    namespace, (current, installed) = namespace_of(subscription), versions_in(subscription)
    found = []
    if current or installed:
        found = yield from look.list(INSTALL_PLAN, namespace)
    plan = _latest(found, current, installed)
    if plan is None:
        report.set(words.NO_PLANS, words.no_plans_entry(namespace))
    elif look.unwanted:
        report.set(words.inapplicable(INSTALL_PLAN), words.unhandled_entry(INSTALL_PLAN, plan))
    else:
        yield from _plan(look, subscription, plan)


def _plan(look: Look, subscription: Obj, plan: Obj) -> Steps:
    report, tolerated = look.report, look.tolerated("upgradesAvailable")
    names = [str(one) for one in dig(plan, "spec", "clusterServiceVersionNames") or ()]
    phase, (current, installed) = dig(plan, "status", "phase"), versions_in(subscription)
    entry = words.plan_entry(plan, tolerated)
    if phase == "Installing":
        report.set(words.PLAN_INSTALLING, entry)
    elif phase == "Failed":
        if len(names) == 1 or _step_failed(plan, current):
            report.set(words.PLAN_FAILED, entry)
        else:
            report.set(words.NO_APPROVALS)
    elif phase != "RequiresApproval":
        report.set(words.NO_APPROVALS, entry)
    elif installed and installed == current:
        report.set(words.NO_APPROVALS)
    elif dig(plan, "spec", "approved"):
        report.set(words.approved(current), entry)
    else:
        yield from _approval(look, subscription, plan, names, entry, tolerated)


def _approval(look: Look, subscription: Obj, plan: Obj, names: list[str], entry: Obj, tolerated: bool) -> Steps:
    report, (current, installed) = look.report, versions_in(subscription)
    automatic = look.spec.get("upgradeApproval") == "Automatic"
    if not look.enforced or (installed and not automatic):
        report.set(words.to_approve(names, (), tolerated), entry)
        return
    left = yield from _unapproved(look, subscription, plan, names)
    if left:
        report.set(words.to_approve(names, left, tolerated), entry)
        return
    made = {**plan, "spec": {**plan["spec"], "approved": True}}
    (yield client.update(look.must(INSTALL_PLAN), made, field_manager=MANAGER)).or_raise()
    report.set(words.approved(current), entry)


def _unapproved(look: Look, subscription: Obj, plan: Obj, names: list[str]) -> Steps:
    """Return the versions of an InstallPlan that no policy allows."""
    required = set(names) - _approved(look.spec, look.versions, subscription, plan)
    if not required:
        return []
    for one in (yield from look.list(SUBSCRIPTION, namespace_of(subscription), MANAGED)):
        namespace, _, name = annotations_of(one).get(MANAGED, "").partition(".")
        if uid_of(one) == uid_of(subscription) or not name or "." in name:
            continue
        other = yield from look.get(OPERATOR_POLICY, namespace, name)
        if other is not None:
            spec = other.get("spec") or {}
            required -= _approved(spec, versions_of(spec), one, plan)
    return sorted(required)


def _latest(plans: list[Obj], current: str, installed: str) -> Obj | None:
    """Return the InstallPlan that concerns these versions: one that installs the current one, else the latest."""
    best, highest = None, -1
    for one in plans:
        names = dig(one, "spec", "clusterServiceVersionNames") or ()
        if current not in names and installed not in names:
            continue
        if current in names and dig(one, "status", "phase") in ("Installing", "Complete"):
            return one
        number = dig(one, "spec", "generation")
        if isinstance(number, int) and number > highest:
            best, highest = one, number
    return best


def _step_failed(plan: Obj, version: str) -> bool:
    steps = (one for one in dig(plan, "status", "plan") or () if one.get("resolving") == version)
    return any(one.get("status") not in ("Created", "Present") for one in steps)


def _approved(spec: Mapping[str, Any], versions: list[str], subscription: Obj, plan: Obj) -> set[str]:
    """Return the versions of an InstallPlan that a policy allows with its Subscription."""
    current, installed = versions_in(subscription)
    automatic = spec.get("upgradeApproval") == "Automatic"
    if not is_enforced(spec.get("remediationAction")) or (installed and not automatic) or not current:
        return set()
    return dependencies_of(plan, current) if allowed(spec, versions, current) else set()
