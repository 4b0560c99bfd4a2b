"""Conditions and related objects of an OperatorPolicy, in upstream's words; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from syncline.kube.kinds.operatorlifecycle import (
    CATALOG_SOURCE,
    INSTALL_PLAN,
    OPERATOR_GROUP,
    SERVICE_VERSION,
    SUBSCRIPTION,
)
from syncline.kube.objects import GVK, Obj, dig, name_of, namespace_of, uid_of
from syncline.patterns.policies.cluster.reasons import ABSENT, CREATED, DELETED, EXISTS, MISSING, NO_MATCH, UNWANTED
from syncline.patterns.policies.cluster.reasons import UPDATED as UPDATE_DONE
from syncline.patterns.policies.names import State

DEPLOYMENT: Final = GVK("apps", "v1", "Deployment")
CRD: Final = GVK("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
COMPLIANT: Final = "Compliant"
VALID: Final = "ValidPolicySpec"
CATALOG: Final = "CatalogSourcesUnhealthy"
"""The one condition that is good when it is False."""
DEPRECATIONS: Final = "NoDeprecations"
CHANNELS: Final = "MinorChannelUpgradeAvailable"
ORDER: Final = (
    VALID,
    *(f"{one.kind}Compliant" for one in (OPERATOR_GROUP, SUBSCRIPTION, INSTALL_PLAN, SERVICE_VERSION, CRD, DEPLOYMENT)),
    CATALOG,
)
"""The conditions that count, in the order of the message."""
NO_NAMESPACE: Final = "the operator namespace"
_NOT_HANDLED: Final = "Resource found but will not be handled in mustnothave mode"
_TRUE, _FALSE, _UNKNOWN = "True", "False", "Unknown"


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    status: str
    reason: str
    message: str


def type_of(gvk: GVK) -> str:
    return CATALOG if gvk == CATALOG_SOURCE else f"{gvk.kind}Compliant"


def _said(gvk: GVK, good: bool, reason: str, message: str) -> Condition:
    status = _TRUE if good != (gvk == CATALOG_SOURCE) else _FALSE
    return Condition(type_of(gvk), status, reason, message)


def undetermined(gvk: GVK) -> Condition:
    text = f"the status of the {gvk.kind} could not be determined because the policy is invalid"
    return Condition(type_of(gvk), _UNKNOWN, "InvalidPolicySpec", text)


def missing(gvk: GVK) -> Condition:
    return _said(gvk, False, f"{gvk.kind}Missing", f"the {gvk.kind} required by the policy was not found")


def absent(gvk: GVK) -> Condition:
    return _said(gvk, True, f"{gvk.kind}NotPresent", f"the {gvk.kind} is not present")


def present(gvk: GVK, names: Sequence[str] = ()) -> Condition:
    what, verb = _named(gvk, names)
    return _said(gvk, False, f"{gvk.kind}Present", f"the {what} {verb} present")


def created(gvk: GVK) -> Condition:
    return _said(gvk, True, f"{gvk.kind}Created", f"the {gvk.kind} required by the policy was created")


def deleted(gvk: GVK, names: Sequence[str] = ()) -> Condition:
    what, verb = _named(gvk, names, "was", "were")
    return _said(gvk, True, f"{gvk.kind}Deleted", f"the {what} {verb} deleted")


def deleting(gvk: GVK, names: Sequence[str] = ()) -> Condition:
    what, verb = _named(gvk, names, "has a deletion timestamp", "have a deletion timestamp")
    return _said(gvk, False, f"{gvk.kind}Deleting", f"the {what} {verb}")


def _named(gvk: GVK, names: Sequence[str], one: str = "is", more: str = "are") -> tuple[str, str]:
    if not names:
        return gvk.kind, one
    listed = f" ({', '.join(sorted(names))})"
    return (gvk.kind + listed, one) if len(names) == 1 else (f"{gvk.kind}s{listed}", more)


def kept(gvk: GVK) -> Condition:
    return _said(gvk, True, f"{gvk.kind}Kept", f"the policy specifies to keep the {gvk.kind}")


def matching(gvk: GVK) -> Condition:
    return _said(gvk, True, f"{gvk.kind}Matches", f"the {gvk.kind} matches what is required by the policy")


def mismatching(gvk: GVK, more: str = "") -> Condition:
    text = f"the {gvk.kind} found on the cluster does not match the policy{more}"
    return _said(gvk, False, f"{gvk.kind}Mismatch", text)


def updated(gvk: GVK) -> Condition:
    return _said(gvk, True, f"{gvk.kind}Updated", f"the {gvk.kind} was updated to match the policy")


def inapplicable(gvk: GVK) -> Condition:
    return _said(gvk, True, f"{gvk.kind}NotApplicable", f"MustNotHave policies ignore kind {gvk.kind}")


def elsewhere(gvk: GVK, namespace: str) -> Condition:
    text = f"the operator is installed in namespace {namespace} and is available via AllNamespaces mode"
    return _said(gvk, True, "ExistingInstallation", text)


def valid(error: str = "") -> Condition:
    if error:
        return Condition(VALID, _FALSE, "InvalidPolicySpec", error)
    return Condition(VALID, _TRUE, "PolicyValidated", "the policy spec is valid")


GROUP_THERE: Final = _said(
    OPERATOR_GROUP,
    True,
    "PreexistingOperatorGroupFound",
    "the policy does not specify an OperatorGroup but one already exists in the namespace - assuming that "
    "OperatorGroup is correct",
)
TOO_MANY_GROUPS: Final = _said(
    OPERATOR_GROUP, False, "TooManyOperatorGroups", "there is more than one OperatorGroup in the namespace"
)
UNSATISFIABLE: Final = _said(
    SUBSCRIPTION,
    False,
    "ConstraintsNotSatisfiable",
    "constraints not satisfiable: refer to the Subscription for more details",
)
NO_PLANS: Final = _said(
    INSTALL_PLAN, True, "NoInstallPlansFound", "there are no relevant InstallPlans in the namespace"
)
PLAN_FAILED: Final = _said(INSTALL_PLAN, False, "InstallPlanFailed", "the current InstallPlan has failed")
PLAN_INSTALLING: Final = _said(
    INSTALL_PLAN, False, "InstallPlansInstalling", "a relevant InstallPlan is actively installing"
)
NO_APPROVALS: Final = _said(
    INSTALL_PLAN, True, "NoInstallPlansRequiringApproval", "no InstallPlans requiring approval were found"
)
NO_VERSION: Final = _said(
    SERVICE_VERSION,
    False,
    "RelevantCSVNotFound",
    "a relevant installed ClusterServiceVersion could not be found",
)
NO_CRDS: Final = _said(CRD, True, "RelevantCRDNotFound", "no CRDs were found for the operator")
CRDS: Final = _said(CRD, True, "RelevantCRDFound", "there are CRDs present for the operator")
NO_DEPLOYMENTS: Final = _said(
    DEPLOYMENT,
    True,
    "NoRelevantDeployments",
    "there are no relevant deployments because the ClusterServiceVersion is missing",
)
CATALOG_UNKNOWN: Final = Condition(
    "CatalogSourcesUnknownState",
    _TRUE,
    "LastObservedUnknown",
    "could not determine last observed state of CatalogSource",
)
RECOMMENDED: Final = Condition(
    DEPRECATIONS,
    _TRUE,
    "Recommended",
    "The requested package, channel, and bundle are all at the recommended versions",
)


def unresolved(condition: Obj) -> Condition:
    """Return what OLM says of a Subscription."""
    return _said(SUBSCRIPTION, False, str(condition.get("reason") or ""), str(condition.get("message") or ""))


def to_approve(names: Sequence[str], left: Sequence[str], compliant: bool) -> Condition:
    text = f"an InstallPlan to update to [{', '.join(sorted(names))}] is available for approval"
    if left:
        text += f" but approval for [{', '.join(sorted(left))}] is required"
    return _said(INSTALL_PLAN, compliant, "InstallPlanRequiresApproval", text)


def approved(version: str) -> Condition:
    return _said(INSTALL_PLAN, True, "InstallPlanApproved", f"the InstallPlan for {version} was approved")


def of_version(found: Obj) -> Condition:
    status = found.get("status") or {}
    text = f"ClusterServiceVersion ({name_of(found)}) - {status.get('message') or ''}"
    return _said(SERVICE_VERSION, status.get("phase") == "Succeeded", str(status.get("reason") or ""), text)


def not_allowed(found: Obj) -> str:
    return f"ClusterServiceVersion ({name_of(found)}) is not an approved version"


def version_not_allowed(found: Obj) -> Condition:
    return _said(SERVICE_VERSION, False, "UnapprovedVersion", not_allowed(found))


def of_deployments(there: bool, unavailable: Sequence[str], tolerated: bool) -> Condition:
    if unavailable:
        text = f"the deployments {', '.join(unavailable)} do not have their minimum availability"
        return _said(DEPLOYMENT, tolerated, "DeploymentsUnavailable", text)
    if not there:
        return _said(DEPLOYMENT, True, "NoExistingDeployments", "no existing operator Deployments")
    return _said(DEPLOYMENT, True, "DeploymentsAvailable", "all operator Deployments have their minimum availability")


def of_catalog(name: str, there: bool, healthy: bool, tolerated: bool) -> Condition:
    if not there:
        text = f"CatalogSource '{name}' was not found"
        return _said(CATALOG_SOURCE, tolerated, "CatalogSourcesNotFound", text)
    if not healthy:
        text = "CatalogSource was found but is unhealthy"
        return _said(CATALOG_SOURCE, tolerated, "CatalogSourcesFoundUnhealthy", text)
    return _said(CATALOG_SOURCE, True, "CatalogSourcesFound", "CatalogSource was found")


def deprecated(name: str, schema: str, message: str) -> Condition:
    text = f"the requested {name} {schema} was deprecated. {message}"
    return Condition(DEPRECATIONS, _FALSE, f"{schema}Deprecated", text)


def newer_channels(names: Sequence[str], tolerated: bool) -> Condition:
    text = f"a newer version of the operator is available in channel(s): {', '.join(names)}"
    return Condition(CHANNELS, _TRUE if tolerated else _FALSE, "UpgradeAvailable", text)


def channel_fine(reason: str, message: str) -> Condition:
    return Condition(CHANNELS, _TRUE, reason, message)


# -- related objects ---------------------------------------------------------------------------------------------------


def entry(gvk: GVK, namespace: str, name: str, compliant: str, reason: str, uid: str = "", **more: Any) -> Obj:
    """Return an entry of ``status.relatedObjects``."""
    metadata = {"name": name or "-"} | ({"namespace": namespace} if namespace else {})
    made: Obj = {"object": {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata}}
    if compliant:
        made["compliant"] = str(compliant)
    if reason:
        made["reason"] = reason
    properties = {**more, **({"uid": uid} if uid else {})}
    return {**made, "properties": properties} if properties else made


def _of(gvk: GVK, obj: Obj, state: str, reason: str, *, uid: bool = True, **more: Any) -> Obj:
    return entry(gvk, namespace_of(obj), name_of(obj), state, reason, uid_of(obj) if uid else "", **more)


def missing_entry(gvk: GVK, obj: Obj) -> Obj:
    return _of(gvk, obj, State.NON_COMPLIANT, MISSING, uid=False)


def absent_entry(gvk: GVK, obj: Obj) -> Obj:
    return _of(gvk, obj, State.COMPLIANT, ABSENT, uid=False)


def unwanted_entry(gvk: GVK, obj: Obj) -> Obj:
    return _of(gvk, obj, State.NON_COMPLIANT, UNWANTED)


def unhandled_entry(gvk: GVK, obj: Obj) -> Obj:
    return _of(gvk, obj, State.COMPLIANT, _NOT_HANDLED)


def created_entry(gvk: GVK, obj: Obj) -> Obj:
    return _of(gvk, obj, State.COMPLIANT, CREATED, createdByPolicy=True)


def deleted_entry(gvk: GVK, obj: Obj) -> Obj:
    return _of(gvk, obj, State.COMPLIANT, DELETED, uid=False)


def deleting_entry(gvk: GVK, obj: Obj) -> Obj:
    return _of(gvk, obj, State.NON_COMPLIANT, "The object is being deleted but has not been removed yet", uid=False)


def matched_entry(gvk: GVK, obj: Obj) -> Obj:
    return _of(gvk, obj, State.COMPLIANT, EXISTS)


def mismatched_entry(gvk: GVK, obj: Obj) -> Obj:
    return _of(gvk, obj, State.NON_COMPLIANT, NO_MATCH)


def updated_entry(gvk: GVK, obj: Obj) -> Obj:
    return _of(gvk, obj, State.COMPLIANT, UPDATE_DONE)


def failed_entry(gvk: GVK, obj: Obj, reason: str) -> Obj:
    return _of(gvk, obj, State.NON_COMPLIANT, reason)


def left_entry(gvk: GVK, obj: Obj) -> Obj:
    text = f"The {gvk.kind} is attached to a mustnothave policy, but does not need to be removed"
    return _of(gvk, obj, "", text)


def surplus_group_entry(obj: Obj) -> Obj:
    return _of(OPERATOR_GROUP, obj, State.NON_COMPLIANT, "There is more than one OperatorGroup in this namespace")


def no_plans_entry(namespace: str) -> Obj:
    text = "There are no relevant InstallPlans in this namespace"
    return entry(INSTALL_PLAN, namespace, "", State.COMPLIANT, text)


def plan_entry(plan: Obj, tolerated: bool) -> Obj:
    phase = str(dig(plan, "status", "phase") or "")
    fine = phase == "Complete" or (phase in ("Installing", "RequiresApproval") and tolerated)
    state = State.COMPLIANT if fine else State.NON_COMPLIANT
    return _of(INSTALL_PLAN, plan, state, f"The InstallPlan is {phase or 'Unknown'}")


def version_entry(found: Obj) -> Obj:
    fine = dig(found, "status", "phase") == "Succeeded"
    reason = str(dig(found, "status", "reason") or "")
    return _of(SERVICE_VERSION, found, State.COMPLIANT if fine else State.NON_COMPLIANT, reason)


def version_not_allowed_entry(found: Obj) -> Obj:
    return _of(SERVICE_VERSION, found, State.NON_COMPLIANT, not_allowed(found))


NO_VERSION_ENTRY: Final = entry(SERVICE_VERSION, "", "", "Inapplicable", "No relevant ClusterServiceVersion found")
NO_CRD_ENTRY: Final = entry(CRD, "", "", "Inapplicable", "No relevant CustomResourceDefinitions found")
NO_DEPLOYMENT_ENTRY: Final = entry(DEPLOYMENT, "", "", "Inapplicable", "No relevant deployments found")


def deployment_entry(found: Obj, tolerated: bool) -> Obj:
    if not dig(found, "status", "unavailableReplicas"):
        return _of(DEPLOYMENT, found, State.COMPLIANT, "Deployment Available")
    reason = "Deployment Unavailable"
    if not tolerated:
        return _of(DEPLOYMENT, found, State.NON_COMPLIANT, reason)
    more = " (policy compliance is not impacted due to spec.complianceConfig.deploymentsUnavailable)"
    return _of(DEPLOYMENT, found, State.COMPLIANT, reason + more)


def catalog_entry(namespace: str, name: str, there: bool, healthy: bool, tolerated: bool) -> Obj:
    reason = MISSING if not there else EXISTS if healthy else f"{EXISTS} but is unhealthy"
    fine = (there and healthy) or tolerated
    return entry(CATALOG_SOURCE, namespace, name, State.COMPLIANT if fine else State.NON_COMPLIANT, reason)


def unknown_catalog_entry(namespace: str, name: str) -> Obj:
    text = "Resource found but current state is unknown"
    return entry(CATALOG_SOURCE, namespace, name, State.NON_COMPLIANT, text)
