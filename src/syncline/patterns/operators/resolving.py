"""The Subscriptions of a namespace: what they have, what a resolution gives them, and the InstallPlan that follows
(``syncResolvingNamespace``)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from syncline.base.clock import format_time
from syncline.kube.kinds.operatorlifecycle import GROUP, INSTALL_PLAN, SUBSCRIPTION
from syncline.kube.objects import Obj, annotations_of, api_version, dig, name_of, namespace_of, owner_references, uid_of
from syncline.patterns.operators.names import GENERATED_BY
from syncline.patterns.operators.resolver.constraints import installed_properties, package_named
from syncline.patterns.operators.subscriptions import (
    AT_LATEST,
    RESOLUTION_FAILED,
    UNPACK_FAILED,
    UNPACKING,
    UPGRADE_FAILED,
    UPGRADE_PENDING,
    find,
    put,
    same,
    with_conditions,
    without,
)

_GUIDANCE = (
    "Manual retry: in the CatalogSource namespace, run `kubectl get jobs -l operatorframework.io/bundle-unpack-ref` "
    "and delete the specific failing job."
)
_CAUSES = "Common causes: Missing ICSP (ppc64le/s390x/arm64), auth failure, invalid image."
FAILED_GUIDANCE = f"Auto-retry in ~5 min after job cleanup (TTL). {_CAUSES} {_GUIDANCE}"
PULL_FAILED = (
    f"Bundle image pull failed. {_CAUSES} Job will retry until timeout (~10 min), then auto-cleanup and retry in ~5 "
    f"min. {_GUIDANCE}"
)
UNSATISFIABLE = "constraints not satisfiable"
RETRY_UNPACKING_S = 5.0
MOST_PLANS = 5
"""InstallPlans that are kept for a namespace."""
MOST_DELETIONS = 5


@dataclass(frozen=True, slots=True)
class Resolved:
    """The answer of the resolver. ``subscriptions``: those that change, with their new status, and new ones.
    ``lookups``: bundles that have to be fetched; ``error``: why nothing was found."""

    steps: tuple[Obj, ...] = ()
    subscriptions: tuple[Obj, ...] = ()
    lookups: tuple[Obj, ...] = ()
    error: str = ""
    unpack_error: str = ""
    """Why no bundle can be fetched."""
    fatal: bool = False
    """Whether fetching again cannot help."""

    @property
    def unsatisfiable(self) -> bool:
        """Whether the constraints of the Subscriptions contradict each other, so that only a person can help."""
        return self.error.startswith(UNSATISFIABLE)


@dataclass(frozen=True, slots=True)
class Decided:
    """``subscriptions``: all, with the status to write; ``plan``: the InstallPlan to create, with its status."""

    subscriptions: tuple[Obj, ...]
    plan: Obj | None = None
    error: str = ""
    again_s: float | None = None
    """Seconds until the namespace is looked at again."""
    updated: frozenset[str] = frozenset()
    """Names of the Subscriptions that get the reference to ``plan``."""


def _with_status(subscription: Obj, status: Obj) -> Obj:
    return {**subscription, "status": status}


def reference_to(plan: Obj) -> Obj:
    """Return the object reference to an InstallPlan, as Kubernetes makes it."""
    fields: dict[str, Any] = {
        "kind": INSTALL_PLAN.kind,
        "namespace": namespace_of(plan),
        "name": name_of(plan),
        "uid": uid_of(plan),
        "apiVersion": api_version(GROUP, INSTALL_PLAN.version),
        "resourceVersion": str(dig(plan, "metadata", "resourceVersion", default="") or ""),
    }
    return {key: value for key, value in fields.items() if value}


def _installation(reference: Obj) -> dict[str, Obj]:
    short = {key: str(reference.get(key) or "") for key in ("apiVersion", "kind", "name")}
    return {"installPlanRef": reference, "installplan": {**short, "uuid": str(reference.get("uid") or "")}}


def settle(
    subscriptions: Sequence[Obj], csvs: Mapping[str, Obj], plans: Mapping[str, Obj], fail_forward: bool, now: datetime
) -> tuple[tuple[Obj, ...], bool]:
    """Bring the status of each Subscription to what its namespace holds now; tells whether one changed, and then
    nothing is resolved in this pass."""
    settled = [_settled(one, csvs, plans, fail_forward, now) for one in subscriptions]
    return tuple(settled), any(after is not before for after, before in zip(settled, subscriptions, strict=True))


def _settled(
    subscription: Obj, csvs: Mapping[str, Obj], plans: Mapping[str, Obj], fail_forward: bool, now: datetime
) -> Obj:
    found = _with_plan(subscription, plans, fail_forward, now)
    status = found.get("status") or {}
    current = str(status.get("currentCSV") or "")
    if not current:
        return found
    if current in csvs:
        new = {**status, "state": AT_LATEST, "installedCSV": current}
    else:
        new = {**status, "state": UPGRADE_PENDING}
        plan = plans.get(str(dig(status, "installPlanRef", "name", default="") or ""))
        if fail_forward and plan is not None and dig(plan, "status", "phase", default="") == "Failed":
            new["state"] = UPGRADE_FAILED
    if new["state"] == status.get("state"):
        return found
    return _with_status(found, {**new, "lastUpdated": format_time(now)})


def _with_plan(subscription: Obj, plans: Mapping[str, Obj], fail_forward: bool, now: datetime) -> Obj:
    """Give a Subscription that an InstallPlan made the reference to it."""
    status = subscription.get("status") or {}
    plan = plans.get(annotations_of(subscription).get(GENERATED_BY, ""))
    if status.get("installPlanRef") or status.get("installplan") or plan is None:
        return subscription
    failed = fail_forward and dig(plan, "status", "phase", default="") == "Failed"
    new: Obj = {
        **status,
        **_installation(reference_to(plan)),
        "state": UPGRADE_FAILED if failed else UPGRADE_PENDING,
        "currentCSV": str(dig(subscription, "spec", "startingCSV", default="") or ""),
        "lastUpdated": format_time(now),
    }
    return _with_status(subscription, new)


def adopted(subscriptions: Sequence[Obj], plans: Sequence[Obj], now: datetime) -> tuple[Obj, ...]:
    """Give Subscriptions the reference to an InstallPlan that was made for them, where a crash lost that write.

    Upstream makes another InstallPlan then, which cannot be resolved once the first one is carried out.
    """
    known = {str(dig(one, "status", "installPlanRef", "uid", default="") or "") for one in subscriptions}
    newest = max((_generation(one) for one in subscriptions), default=0)
    left = [one for one in plans if dig(one, "spec", "generation", default=0) > newest and uid_of(one) not in known]
    found = list(subscriptions)
    for plan in sorted(left, key=lambda one: dig(one, "spec", "generation", default=0)):
        owners = {str(one.get("uid")) for one in owner_references(plan)}
        for index, one in enumerate(found):
            name = _planned_csv(plan, str(dig(one, "spec", "name", default="") or ""))
            if uid_of(one) in owners and name:
                state = {"state": UPGRADE_PENDING, "currentCSV": name, "lastUpdated": format_time(now)}
                status = {**(one.get("status") or {}), **_installation(reference_to(plan)), **state}
                status["installPlanGeneration"] = plan["spec"]["generation"]
                found[index] = _with_status(one, status)
    return tuple(found)


def _generation(subscription: Obj) -> int:
    return int(dig(subscription, "status", "installPlanGeneration", default=0) or 0)


def _planned_csv(plan: Obj, package: str) -> str:
    """Return the ClusterServiceVersion of a package in the steps of an InstallPlan; "" if there is none."""
    for step in dig(plan, "status", "plan", default=None) or ():
        if step["resource"].get("kind") != "ClusterServiceVersion":
            continue
        try:
            properties = installed_properties(json.loads(step["resource"].get("manifest") or "{}"))
        except (ValueError, AttributeError, RecursionError):
            continue  # The InstallPlan itself says that it cannot be read.
        if package_named(properties) == package:
            return str(step["resource"].get("name") or "")
    return ""


def waits_for_plan(subscription: Obj) -> bool:
    """Return whether a Subscription has an InstallPlan that is not done, so that it needs no resolution."""
    status = subscription.get("status") or {}
    return bool(status.get("installPlanRef")) and status.get("state") == UPGRADE_PENDING


def says(subscriptions: Sequence[Obj], condition: Obj, now: datetime) -> tuple[Obj, ...]:
    """Set a condition on each Subscription that does not say the same already."""

    def said(one: Obj) -> Obj:
        status = one.get("status") or {}
        if same(find(status.get("conditions"), condition["type"]), condition):
            return one
        return _with_status(one, with_conditions(status, put(status.get("conditions"), condition), now))

    return tuple(said(one) for one in subscriptions)


def _cleared(subscription: Obj, kinds: Sequence[str], now: datetime) -> Obj:
    status = subscription.get("status") or {}
    conditions = status.get("conditions") or []
    if not any(one.get("type") in kinds for one in conditions):
        return subscription
    return _with_status(subscription, with_conditions(status, without(conditions, *kinds), now))


def _true(kind: str, reason: str, message: str) -> Obj:
    return {"type": kind, "status": "True", "reason": reason} | ({"message": message} if message else {})


def decide(subscriptions: Sequence[Obj], resolved: Resolved, plans: Sequence[Obj], now: datetime) -> Decided:
    """Return what follows from a resolution. ``plans``: the InstallPlans of the namespace."""
    if resolved.error:
        reason = "ConstraintsNotSatisfiable" if resolved.unsatisfiable else "ErrorPreventedResolution"
        said = says(subscriptions, _true(RESOLUTION_FAILED, reason, resolved.error), now)
        return Decided(said, error="" if resolved.unsatisfiable else resolved.error)
    if resolved.lookups:
        waiting = _unpacking(subscriptions, resolved, now)
        if waiting is not None:
            return waiting
    done = (UNPACKING, UNPACK_FAILED, RESOLUTION_FAILED)
    if not resolved.subscriptions:
        return Decided(tuple(_cleared(one, done, now) for one in subscriptions))
    known = [dig(one, "status", "installPlanGeneration", default=0) or 0 for one in subscriptions]
    known += [dig(one, "spec", "generation", default=0) or 0 for one in plans]
    plan = _plan(subscriptions, resolved, max(known, default=0) + 1)
    changed = {name_of(one): one for one in resolved.subscriptions}
    merged = [changed.pop(name_of(one), one) for one in subscriptions]
    merged += changed.values()
    cleared = tuple(_cleared(one, done, now) for one in merged)
    return Decided(cleared, plan, updated=frozenset(name_of(one) for one in resolved.subscriptions))


def _unpacking(subscriptions: Sequence[Obj], resolved: Resolved, now: datetime) -> Decided | None:
    """Return what follows while bundles are not there; None: all are."""
    if resolved.unpack_error:
        if not resolved.fatal:
            return Decided(
                tuple(subscriptions), error=f"bundle unpacking failed with an error: {resolved.unpack_error}"
            )
        condition = _true(UNPACK_FAILED, "ErrorPreventedUnpacking", resolved.unpack_error)
        return Decided(says(subscriptions, condition, now))
    looked = [one for lookup in resolved.lookups for one in lookup.get("conditions") or ()]
    failed = next((one for one in looked if one["type"] == "BundleLookupFailed" and one.get("status") == "True"), None)
    if failed is not None:
        message = f"Bundle unpacking failed - {failed.get('reason', '')}: {failed.get('message', '')}"
        if not any(part in str(failed.get("message") or "") for part in ("Auto-retry", "Common causes")):
            message = f"{message}. {FAILED_GUIDANCE}"
        new = any(
            find(dig(one, "status", "conditions"), UNPACK_FAILED).get("status") != "True" for one in subscriptions
        )
        said = says(subscriptions, _true(UNPACK_FAILED, "BundleUnpackFailed", message), now)
        return Decided(tuple(_cleared(one, (UNPACKING,), now) for one in said), again_s=300.0 if new else None)
    pending = [one for one in looked if one["type"] == "BundleLookupPending" and one.get("status") == "True"]
    if not pending:
        return None
    pulls = (
        one
        for one in pending
        if one.get("reason") == "JobIncomplete"
        and any(word in str(one.get("message") or "") for word in ("ImagePullBackOff", "ErrImagePull"))
    )
    condition = _true(UNPACKING, "UnpackingInProgress", PULL_FAILED if any(True for _ in pulls) else "")
    return Decided(says(subscriptions, condition, now), again_s=RETRY_UNPACKING_S)


def _plan(subscriptions: Sequence[Obj], resolved: Resolved, generation: int) -> Obj | None:
    """Return the InstallPlan, with its first status and without a name; None: nothing is installed."""
    if not resolved.steps and not resolved.lookups:
        return None
    manual = any(dig(one, "spec", "installPlanApproval", default="") == "Manual" for one in subscriptions)
    names = [step["resource"]["name"] for step in resolved.steps if step["resource"]["kind"] == "ClusterServiceVersion"]
    sources = sorted({str(step["resource"].get("sourceName") or "") for step in resolved.steps})
    status: Obj = {
        "phase": "RequiresApproval" if manual else "Installing",
        "catalogSources": sources,
        "plan": list(resolved.steps),
    }
    if resolved.lookups:
        status["bundleLookups"] = list(resolved.lookups)
    return {
        "apiVersion": api_version(GROUP, INSTALL_PLAN.version),
        "kind": INSTALL_PLAN.kind,
        "metadata": {
            "generateName": "install-",
            "namespace": namespace_of(subscriptions[0]),
            "ownerReferences": [_owner(one) for one in subscriptions],
        },
        "spec": {
            "clusterServiceVersionNames": names,
            "approval": "Manual" if manual else "Automatic",
            "approved": not manual,
            "generation": generation,
        },
        "status": status,
    }


def _owner(subscription: Obj) -> Obj:
    return {
        "apiVersion": api_version(GROUP, SUBSCRIPTION.version),
        "kind": SUBSCRIPTION.kind,
        "name": name_of(subscription),
        "uid": uid_of(subscription),
        "controller": False,
        "blockOwnerDeletion": False,
    }


def planned(decided: Decided, created: Obj, now: datetime) -> Decided:
    """Give the Subscriptions the reference to the InstallPlan that was created."""
    assert decided.plan is not None, "an InstallPlan was created"
    generation = (created.get("spec") or decided.plan["spec"])["generation"]

    def referring(one: Obj) -> Obj:
        if name_of(one) not in decided.updated:
            return one
        found = _installation(reference_to(created))
        state = {"state": UPGRADE_PENDING, "installPlanGeneration": generation, "lastUpdated": format_time(now)}
        return _with_status(one, {**(one.get("status") or {}), **found, **state})

    return replace(decided, subscriptions=tuple(referring(one) for one in decided.subscriptions))


def unplanned(subscriptions: Sequence[Obj], error: str, now: datetime) -> Decided:
    """Return what follows when the InstallPlan could not be created."""
    message = f"error ensuring InstallPlan: {error}"
    condition = _true(UNPACK_FAILED, "EnsureInstallPlanFailed", message)
    return Decided(says(subscriptions, condition, now), error=message)


def outlived(plans: Sequence[Obj]) -> tuple[Obj, ...]:
    """Return the InstallPlans that are deleted because newer generations exist (``gcInstallPlans``)."""
    surplus = min(len(plans) - MOST_PLANS, MOST_DELETIONS)
    if surplus <= 0:
        return ()
    ordered = sorted(
        plans,
        key=lambda one: (
            dig(one, "spec", "generation", default=0) or 0,
            str(dig(one, "metadata", "creationTimestamp", default="")),
            name_of(one),
        ),
    )
    return tuple(ordered[:surplus])
