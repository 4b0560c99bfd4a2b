"""The kinds of ``work.open-cluster-management.io``: fields, types, rules and columns as upstream's (its ``api``
repository); the descriptions are ours."""

from __future__ import annotations

from syncline.kube.kinds.structure import (
    BOOL,
    CONDITION,
    INT,
    INT32,
    INT_OR_STRING,
    STR,
    TIME,
    Fields,
    column,
    definition,
    enum,
    items,
    keyed,
    kind_schema,
    obj,
    strings,
)
from syncline.kube.objects import GVK, Obj

GROUP = "work.open-cluster-management.io"
MANIFEST_WORK = GVK(GROUP, "v1", "ManifestWork")
APPLIED_WORK = GVK(GROUP, "v1", "AppliedManifestWork")
REPLICA_SET = GVK(GROUP, "v1alpha1", "ManifestWorkReplicaSet")
WORK_FINALIZER = "cluster.open-cluster-management.io/manifest-work-cleanup"
"""Finalizer of a work, and of the rights of its agent: what it brought is removed first."""
APPLIED_FINALIZER = "cluster.open-cluster-management.io/applied-manifest-work-cleanup"
"""Finalizer of the inventory of a work on its cluster."""
SPEC_HASH = "open-cluster-management.io/config-spec-hash"
"""Annotation with the hash of what was applied; on the work of an add-on the hashes of its configs, as JSON."""

_IDENTIFIER = obj(dict.fromkeys(("group", "name", "namespace", "resource"), STR), "name", "resource")
_DOMAIN: Obj = {
    "type": "string",
    "maxLength": 253,
    "minLength": 1,
    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$",
}
_COUNT: Obj = {"type": "integer"}


def _manifest_config() -> Obj:
    rule = obj(
        {
            "celExpressions": strings(),
            "condition": STR,
            "message": STR,
            "messageExpression": STR,
            "type": enum("WellKnownConditions", "CEL"),
        },
        "condition",
        "type",
    )
    for_cel = "self.type != 'CEL' || self.condition != \"\""
    rule["x-kubernetes-validations"] = [{"message": "Condition is required for CEL rules", "rule": for_cel}]
    path = obj(dict.fromkeys(("name", "path", "version"), STR), "name", "path")
    feedback = obj({"jsonPaths": keyed(path, "name"), "type": enum("WellKnownStatus", "JSONPaths")}, "type")
    ignored = obj(
        {
            "condition": enum("OnSpokePresent", "OnSpokeChange") | {"default": "OnSpokePresent"},
            **dict.fromkeys(("jqPathExpressions", "jsonPaths", "jsonPointers"), strings()),
        },
        "condition",
    )
    manager: Obj = {"type": "string", "default": "work-agent", "pattern": "^work-agent"}
    applied = obj({"fieldManager": manager, "force": BOOL, "ignoreFields": keyed(ignored, "condition")})
    strategies = enum("Update", "CreateOnly", "ServerSideApply", "ReadOnly") | {"default": "Update"}
    return obj(
        {
            "conditionRules": keyed(rule, "condition"),
            "feedbackRules": items(feedback),
            "feedbackScrapeType": enum("Poll", "Watch") | {"default": "Poll"},
            "resourceIdentifier": _IDENTIFIER,
            "updateStrategy": obj({"serverSideApply": applied, "type": strategies}, "type"),
        },
        "resourceIdentifier",
    )


def work_spec() -> Obj:
    """``spec`` of a ManifestWork, the template of a ManifestWorkReplicaSet, and the agent of an AddOnTemplate."""
    manifest: Obj = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    policy = enum("Foreground", "Orphan", "SelectivelyOrphan") | {"default": "Foreground"}
    orphans = obj({"orphaningRules": items(_IDENTIFIER)})
    account = obj({"name": _DOMAIN, "namespace": _DOMAIN}, "name", "namespace")
    subject = obj({"serviceAccount": account, "type": enum("ServiceAccount")}, "type")
    deletion: Fields = {"propagationPolicy": policy, "selectivelyOrphans": orphans, "ttlSecondsAfterFinished": INT}
    return obj(
        {
            "deleteOption": obj(deletion),
            "executor": obj({"subject": subject}),
            "manifestConfigs": items(_manifest_config()),
            "workload": obj({"manifests": items(manifest)}),
        }
    )


def manifest_work_crd() -> Obj:
    """``manifestworks``."""
    value = obj(
        {
            "boolean": BOOL,
            "integer": INT,
            "jsonRaw": {"type": "string", "maxLength": 1024},
            "string": STR,
            "type": enum("Integer", "String", "Boolean", "JsonRaw"),
        },
        "type",
    )
    values = keyed(obj({"fieldValue": value, "name": STR}, "fieldValue", "name"), "name")
    named = dict.fromkeys(("group", "kind", "name", "namespace", "resource", "version"), STR)
    manifest = obj(
        {
            "conditions": keyed(CONDITION, "type"),
            "resourceMeta": obj({**named, "ordinal": INT32}, "ordinal"),
            "statusFeedback": obj({"values": values}),
        },
        "conditions",
        "resourceMeta",
    )
    status = obj({"conditions": keyed(CONDITION, "type"), "resourceStatus": obj({"manifests": items(manifest)})})
    schema = kind_schema(work_spec(), status, about="Objects that a managed cluster gets, and how they are there.")
    return definition(MANIFEST_WORK, "manifestworks", schema, namespaced=True)


def applied_work_crd() -> Obj:
    """``appliedmanifestworks``, which live on the managed cluster: the inventory of its agent."""
    spec = obj(dict.fromkeys(("agentID", "hubHash", "manifestWorkName"), STR), "hubHash", "manifestWorkName")
    fields = dict.fromkeys(("group", "name", "namespace", "resource", "uid", "version"), STR)
    resource = obj(fields, "name", "resource", "version")
    status = obj({"appliedResources": items(resource), "evictionStartTime": TIME})
    schema = kind_schema(spec, status, about="What the agent applied for one ManifestWork.")
    return definition(APPLIED_WORK, "appliedmanifestworks", schema)


def rollout_strategy() -> Obj:
    """How a change is rolled out over the clusters of a Placement."""
    share = INT_OR_STRING | {"pattern": "^((100|[0-9]{1,2})%|[0-9]+)$"}
    common: Fields = {
        "maxFailures": share | {"default": 0},
        "minSuccessTime": STR | {"default": "0"},
        "progressDeadline": {"type": "string", "default": "None", "pattern": "^(([0-9])+[h|m|s])|None$"},
    }
    mandatory = items(obj({"groupIndex": INT32, "groupName": STR}))
    grouped: Fields = {**common, "mandatoryDecisionGroups": mandatory}
    kinds = enum("All", "Progressive", "ProgressivePerGroup") | {"default": "All"}
    return obj(
        {
            "all": obj(common),
            "progressive": obj({**grouped, "maxConcurrency": share}),
            "progressivePerGroup": obj(grouped),
            "type": kinds,
        }
    )


def replica_set_crd() -> Obj:
    """``manifestworkreplicasets``."""
    strategy = rollout_strategy() | {"default": {"all": {"progressDeadline": "None"}, "type": "All"}}
    reference = obj({"name": {"type": "string", "minLength": 1}, "rolloutStrategy": strategy}, "name")
    spec = obj(
        {
            "cascadeDeletionPolicy": enum("Background", "Foreground") | {"default": "Background"},
            "manifestWorkTemplate": work_spec(),
            "placementRefs": items(reference) | {"minItems": 1},
        },
        "cascadeDeletionPolicy",
        "placementRefs",
    )
    counts = ("applied", "available", "degraded", "desiredTotal", "progressing", "total", "updated")
    summary = obj(dict.fromkeys(counts, _COUNT))
    placed = obj({"availableDecisionGroups": STR, "name": STR, "summary": summary})
    status = obj(
        {"conditions": keyed(CONDITION, "type"), "placementSummary": items(placed), "summary": summary},
    )
    columns = tuple(
        column(name, f'.status.conditions[?(@.type=="{condition}")].{field}')
        for name, condition, field in (
            ("Placement", "PlacementVerified", "reason"),
            ("Found", "PlacementVerified", "status"),
            ("ManifestWorks", "ManifestworkApplied", "reason"),
            ("Applied", "ManifestworkApplied", "status"),
        )
    )
    schema = kind_schema(spec, status, about="The same ManifestWork for each cluster that Placements choose.")
    short = ("mwrs",)
    return definition(REPLICA_SET, "manifestworkreplicasets", schema, short=short, columns=columns, namespaced=True)
