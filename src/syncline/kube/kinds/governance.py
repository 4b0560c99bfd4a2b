"""The kinds of ``policy.open-cluster-management.io``: fields, types, rules, short names and columns as upstream's
(governance-policy-propagator and config-policy-controller); the descriptions are ours."""

from __future__ import annotations

from typing import Final

from syncline.kube.kinds.structure import (
    AGE,
    ANY,
    BOOL,
    CONDITION,
    INT,
    STR,
    TIME,
    Fields,
    atomic,
    column,
    definition,
    enum,
    items,
    keyed,
    kind_schema,
    mapping,
    obj,
    strings,
)
from syncline.kube.objects import GVK, Obj

GROUP: Final = "policy.open-cluster-management.io"
POLICY: Final = GVK(GROUP, "v1", "Policy")
BINDING: Final = GVK(GROUP, "v1", "PlacementBinding")
POLICY_SET: Final = GVK(GROUP, "v1beta1", "PolicySet")
AUTOMATION: Final = GVK(GROUP, "v1beta1", "PolicyAutomation")
CONFIGURATION_POLICY: Final = GVK(GROUP, "v1", "ConfigurationPolicy")
CERTIFICATE_POLICY: Final = GVK(GROUP, "v1", "CertificatePolicy")
OPERATOR_POLICY: Final = GVK(GROUP, "v1beta1", "OperatorPolicy")
TEMPLATE_LABELS: Final = {f"{GROUP}/policy-type": "template"}
"""Of definitions whose objects may stand in ``spec.policy-templates``."""

_STATE: Final = enum("Compliant", "Pending", "NonCompliant")
_STATE_OR_GONE: Final = enum("Compliant", "Pending", "NonCompliant", "Terminating")
_NAME: Final[Obj] = {"type": "string", "minLength": 1}
_ACTION: Final = enum("Inform", "inform", "Enforce", "enforce")
_SEVERITY: Final = enum("low", "Low", "medium", "Medium", "high", "High", "critical", "Critical")
_COUNT: Final[Obj] = {"type": "integer", "minimum": 0}
_COMPLIANCE: Final = column("Compliance state", ".status.compliant")


def _dependency() -> Obj:
    local = {"kind": enum("CertificatePolicy", "ConfigurationPolicy"), "namespace": {"maxLength": 0}}
    del local["kind"]["type"]
    fields: Fields = {**dict.fromkeys(("apiVersion", "kind", "name", "namespace"), STR), "compliance": _STATE}
    other = {"not": {"properties": {"kind": {"pattern": "^(?:(?:Certificate|Configuration)Policy)$"}}}}
    return obj(fields, "apiVersion", "kind", "name", "compliance") | {"oneOf": [{"properties": local}, other]}


def policy_crd() -> Obj:
    """``policies``, on the hub and, replicated, on each cluster."""
    template = obj(
        {"extraDependencies": items(_dependency()), "ignorePending": BOOL, "objectDefinition": ANY}, "objectDefinition"
    )
    spec = obj(
        {
            "copyPolicyMetadata": BOOL,
            "dependencies": items(_dependency()),
            "disabled": BOOL,
            "hubTemplateOptions": obj({"serviceAccountName": STR}),
            "policy-templates": items(template),
            "remediationAction": _ACTION,
        },
        "disabled",
        "policy-templates",
    )
    event = obj({"eventName": STR, "lastTimestamp": TIME, "message": STR})
    detail = obj({"compliant": _STATE, "history": items(event), "templateMeta": ANY})
    placed = obj(
        {
            "decisions": items(obj({"clusterName": STR, "clusterNamespace": STR})),
            "exclusions": items(obj({"clusterName": STR})),
            **dict.fromkeys(("placement", "placementBinding", "placementRule", "policySet"), STR),
        }
    )
    cluster = obj(
        {
            "clustername": STR,
            "clusternamespace": STR,
            "compliant": _STATE,
            "remainingBindings": items(obj({"placementBinding": STR})),
        }
    )
    status = obj({"compliant": _STATE, "details": items(detail), "placement": items(placed), "status": items(cluster)})
    schema = kind_schema(spec, status, "metadata", "spec", about="What clusters shall have, and whether they have it.")
    columns = (column("Remediation action", ".spec.remediationAction"), _COMPLIANCE, AGE)
    return definition(POLICY, "policies", schema, short=("plc",), columns=columns, namespaced=True)


def binding_crd() -> Obj:
    """``placementbindings``."""
    groups = {"Placement": "cluster.open-cluster-management.io", "PlacementRule": "apps.open-cluster-management.io"}
    fits = [{"properties": {"apiGroup": {"enum": [group]}, "kind": {"enum": [kind]}}} for kind, group in groups.items()]
    group = enum(*sorted(groups.values())) | {"minLength": 1}
    reference = obj(
        {"apiGroup": group, "kind": enum("PlacementRule", "Placement") | {"minLength": 1}, "name": _NAME},
        "apiGroup",
        "kind",
        "name",
    ) | {"oneOf": fits}
    subject = obj(
        {
            "apiGroup": enum(GROUP) | {"minLength": 1},
            "kind": enum("Policy", "PolicySet") | {"minLength": 1},
            "name": _NAME,
        },
        "apiGroup",
        "kind",
        "name",
    )
    schema = kind_schema(None, {"type": "object"}, "placementRef", "subjects", about="Binds policies to a Placement.")
    schema["properties"] |= {
        "bindingOverrides": obj({"remediationAction": enum("Enforce", "enforce")}),
        "placementRef": reference,
        "subFilter": enum("restricted"),
        "subjects": items(subject) | {"minItems": 1},
    }
    return definition(BINDING, "placementbindings", schema, short=("pb",), namespaced=True)


def policy_set_crd() -> Obj:
    """``policysets``."""
    names = items(_NAME)
    excluded = obj({"clusterNames": names | {"minItems": 1}, "policyName": _NAME, "reason": STR}, "clusterNames")
    excluded["required"] = ["clusterNames", "policyName"]
    spec = obj({"description": STR, "exclusions": items(excluded), "policies": names}, "policies")
    out = obj({"clusters": names | {"minItems": 1}, "policyName": _NAME}, "clusters", "policyName")
    placed = obj(dict.fromkeys(("placement", "placementBinding", "placementRule"), STR))
    status = obj(
        {"compliant": _STATE, "exclusions": items(out), "placement": items(placed), "statusMessage": STR},
    )
    schema = kind_schema(spec, status, "spec", about="Policies that are bound together.")
    return definition(POLICY_SET, "policysets", schema, short=("plcset",), columns=(_COMPLIANCE, AGE), namespaced=True)


def automation_crd() -> Obj:
    """``policyautomations``; no controller acts on them here."""
    job = obj(
        {
            "extra_vars": ANY,
            "jobTtl": _COUNT,
            "name": _NAME,
            "policyViolationsLimit": _COUNT,
            "secret": _NAME,
            "type": STR,
        },
        "name",
        "secret",
    )
    spec = obj(
        {
            "automationDef": job,
            "delayAfterRunSeconds": _COUNT,
            "eventHook": enum("noncompliant") | {"default": "noncompliant"},
            "mode": enum("once", "everyEvent", "disabled"),
            "policyRef": _NAME,
            "rescanAfter": STR,
        },
        "automationDef",
        "mode",
        "policyRef",
    )
    started = obj({"automationStartTime": STR, "eventTime": STR}, "automationStartTime", "eventTime")
    schema = kind_schema(
        spec,
        obj({"clustersWithEvent": mapping(started)}),
        "spec",
        about="An Ansible job that runs when a policy is violated. Nothing here acts on it.",
    )
    return definition(AUTOMATION, "policyautomations", schema, short=("plca",), namespaced=True)


def _selector_fields() -> Fields:
    requirement = obj({"key": STR, "operator": STR, "values": atomic(STR)}, "key", "operator")
    return {"matchExpressions": atomic(requirement), "matchLabels": mapping(STR)}


def _related(*more: str) -> Obj:
    metadata = obj({"name": STR, "namespace": STR})
    properties: Fields = {"createdByPolicy": BOOL, "uid": STR}
    properties |= {name: BOOL if name == "matchesAfterDryRun" else STR for name in more}
    return obj(
        {
            "compliant": STR,
            "object": obj({"apiVersion": STR, "kind": STR, "metadata": metadata}),
            "properties": obj(properties),
            "reason": STR,
        }
    )


_HISTORY: Final = items(obj({"lastTimestamp": TIME, "message": STR}))


def configuration_policy_crd() -> Obj:
    """``configurationpolicies``, which a cluster's agent evaluates."""
    every = r"^(?:(?:(?:[0-9]+(?:.[0-9])?)(?:h|m|s|(?:ms)|(?:us)|(?:ns)))|never|watch)+$"
    interval: Obj = {"type": "string", "pattern": every}
    have = ("MustHave", "Musthave", "musthave", "MustOnlyHave", "Mustonlyhave", "mustonlyhave")
    lacks = ("MustNotHave", "Mustnothave", "mustnothave")
    template = obj(
        {
            "complianceType": enum(*have, *lacks),
            "metadataComplianceType": enum(*have),
            "objectDefinition": ANY,
            "objectSelector": obj(_selector_fields()) | {"x-kubernetes-map-type": "atomic"},
            "recordDiff": enum("Log", "InStatus", "None"),
            "recreateOption": enum("None", "IfRequired", "Always") | {"default": "None"},
        },
        "complianceType",
        "objectDefinition",
    )
    namespaces = obj(
        {
            "exclude": items(_NAME),
            "include": items(_NAME),
            **_selector_fields(),
            "terminatingInclusion": enum("IfMatch", "Never", "Default") | {"default": "Default"},
        }
    ) | {"x-kubernetes-map-type": "atomic"}
    spec = obj(
        {
            "customMessage": obj({"compliant": STR, "noncompliant": STR}),
            "evaluationInterval": obj({"compliant": interval, "noncompliant": interval}),
            "namespaceSelector": namespaces,
            "object-templates": items(template),
            "object-templates-raw": STR,
            "pruneObjectBehavior": enum("DeleteAll", "DeleteIfCreated", "None") | {"default": "None"},
            "remediationAction": _ACTION | {"default": "inform"},
            "severity": _SEVERITY,
        },
        "remediationAction",
    ) | {"oneOf": [{"required": ["object-templates"]}, {"required": ["object-templates-raw"]}]}
    condition = obj({"lastTransitionTime": TIME, **dict.fromkeys(("message", "reason", "status", "type"), STR)}, "type")
    details = obj(
        {
            "Compliant": _STATE_OR_GONE,
            "Validity": obj({"reason": STR, "valid": BOOL}),
            "conditions": items(condition),
        }
    )
    status = obj(
        {
            "compliancyDetails": items(details),
            "compliant": _STATE_OR_GONE,
            "history": _HISTORY,
            "lastEvaluated": STR,
            "lastEvaluatedGeneration": INT,
            "relatedObjects": items(_related("diff", "matchesAfterDryRun")),
        }
    )
    schema = kind_schema(spec, status, "spec", about="Objects that a cluster shall have, or shall not have.")
    return definition(
        CONFIGURATION_POLICY,
        "configurationpolicies",
        schema,
        columns=(_COMPLIANCE,),
        namespaced=True,
        labels=TEMPLATE_LABELS,
    )


def _removal(default: str, *values: str) -> Obj:
    every = {"enum": ["Keep", "Delete", "DeleteIfUnused"]}
    return {"type": "string", "default": default, "allOf": [every, {"enum": list(values)}]}


def operator_policy_crd() -> Obj:
    """``operatorpolicies``, which a cluster's agent evaluates."""
    verdict = enum("Compliant", "NonCompliant")
    checks = {
        "catalogSourceUnhealthy": "Compliant",
        "deploymentsUnavailable": "NonCompliant",
        "deprecationsPresent": "Compliant",
        "minorChannelUpgradeAvailable": "Compliant",
        "upgradesAvailable": "Compliant",
    }
    removal = {
        "clusterServiceVersions": _removal("Delete", "Keep", "Delete"),
        "customResourceDefinitions": _removal("Keep", "Keep", "Delete"),
        "operatorGroups": _removal("DeleteIfUnused", "Keep", "DeleteIfUnused"),
        "subscriptions": _removal("Delete", "Keep", "Delete"),
    }
    spec = obj(
        {
            "complianceConfig": obj({name: verdict | {"default": value} for name, value in checks.items()})
            | {"default": {}},
            "complianceType": enum("musthave", "mustnothave"),
            "operatorGroup": ANY,
            "remediationAction": _ACTION | {"default": "inform"},
            "removalBehavior": obj(dict(removal)) | {"default": {}},
            "severity": _SEVERITY,
            "subscription": ANY,
            "upgradeApproval": enum("None", "Automatic"),
            "versions": strings(),
        },
        "complianceType",
        "remediationAction",
        "subscription",
        "upgradeApproval",
    )
    status = obj(
        {
            "compliant": _STATE_OR_GONE,
            "conditions": keyed(CONDITION, "type"),
            "history": _HISTORY,
            "observedGeneration": INT,
            "overlappingPolicies": strings(),
            "relatedObjects": items(_related()),
            "resolvedSubscriptionLabel": STR,
            "subscriptionInterventionTime": TIME,
        }
    )
    schema = kind_schema(spec, status, about="An operator that a cluster shall have, or shall not have.")
    return definition(OPERATOR_POLICY, "operatorpolicies", schema, namespaced=True, labels=TEMPLATE_LABELS)


def certificate_policy_crd() -> Obj:
    """``certificatepolicies``, which a cluster's agent evaluates. Upstream tells histories by Events; ours are here."""
    duration: Obj = {"type": "string", "pattern": r"^(?:(?:(?:[0-9]+(?:.[0-9])?)(?:h|m|s|(?:ms)|(?:us)|(?:ns)))|)+$"}
    spec = obj(
        {
            "allowedSANPattern": _NAME,
            "disallowedSANPattern": _NAME,
            "labelSelector": mapping(_NAME),
            **dict.fromkeys((f"{one}Duration" for one in ("minimum", "minimumCA", "maximum", "maximumCA")), duration),
            "namespaceSelector": obj({"exclude": items(_NAME), "include": items(_NAME), **_selector_fields()}),
            "remediationAction": _ACTION,
            "severity": _SEVERITY,
        }
    )
    certificate = obj(
        {
            "ca": BOOL,
            "duration": INT,
            "expiration": STR,
            "expiry": INT,
            "sans": strings(),
            "secretName": STR,
        }
    )
    details = obj(
        {"NonCompliantCertificates": INT, "NonCompliantCertificatesList": mapping(certificate), "message": STR}
    )
    status = obj({"compliancyDetails": mapping(details), "compliant": STR, "history": _HISTORY})
    schema = kind_schema(spec, status, about="What certificates in the Secrets of a cluster have to be like.")
    return definition(
        CERTIFICATE_POLICY,
        "certificatepolicies",
        schema,
        columns=(_COMPLIANCE,),
        namespaced=True,
        labels=TEMPLATE_LABELS,
    )


def hub_policy_crds() -> tuple[Obj, ...]:
    """Return the definitions that a hub serves."""
    return policy_crd(), binding_crd(), policy_set_crd(), automation_crd()


def cluster_policy_crds() -> tuple[Obj, ...]:
    """Return the definitions that a managed cluster serves for its agent."""
    return policy_crd(), configuration_policy_crd(), operator_policy_crd(), certificate_policy_crd()
