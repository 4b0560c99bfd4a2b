"""The kinds of ``cluster.open-cluster-management.io``: fields, types, rules and columns as upstream's (its ``api``
repository); the descriptions are ours."""

from __future__ import annotations

from syncline.kube.kinds.structure import (
    AGE,
    BOOL,
    BYTES,
    CONDITION,
    INT,
    INT32,
    INT_OR_STRING,
    QUANTITY,
    REQUIREMENT,
    SELECTOR,
    STR,
    TIME,
    Fields,
    column,
    condition_column,
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

GROUP = "cluster.open-cluster-management.io"
MANAGED_CLUSTER = GVK(GROUP, "v1", "ManagedCluster")
CLUSTER_SET = GVK(GROUP, "v1beta2", "ManagedClusterSet")
CLUSTER_SET_BINDING = GVK(GROUP, "v1beta2", "ManagedClusterSetBinding")
PLACEMENT = GVK(GROUP, "v1beta1", "Placement")
PLACEMENT_DECISION = GVK(GROUP, "v1beta1", "PlacementDecision")
PLACEMENT_SCORE = GVK(GROUP, "v1alpha1", "AddOnPlacementScore")
CLUSTER_CLAIM = GVK(GROUP, "v1alpha1", "ClusterClaim")

_PREFIX = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
_KEY: Obj = {
    "type": "string",
    "maxLength": 316,
    "pattern": _PREFIX + r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
}
_TOPOLOGY: Obj = _KEY | {"pattern": _PREFIX + r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"}
_NAME: Obj = {"type": "string", "maxLength": 253, "minLength": 1}
_VALUE: Obj = {"type": "string", "maxLength": 1024}
_NAMESPACE: Obj = {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
_EFFECT = enum("NoSelect", "PreferNoSelect", "NoSelectIfNew")
_CONDITIONS = keyed(CONDITION, "type")


def managed_cluster_crd() -> Obj:
    """``managedclusters``, with the columns by which people see who joined and answers."""
    config = obj({"caBundle": BYTES, "url": STR}, "url")
    taint: Fields = {"effect": _EFFECT, "key": _KEY, "timeAdded": TIME | {"nullable": True}, "value": _VALUE}
    spec = obj(
        {
            "hubAcceptsClient": BOOL,
            "leaseDurationSeconds": INT32 | {"default": 60},
            "managedClusterClientConfigs": items(config),
            "taints": items(obj(taint, "effect", "key")),
        }
    )
    claim = obj({"name": _NAME, "value": _VALUE | {"minLength": 1}})
    owned = obj({"clusterSet": STR, "conditions": _CONDITIONS, "name": _NAMESPACE}, "clusterSet", "name")
    status = obj(
        {
            "allocatable": mapping(QUANTITY),
            "capacity": mapping(QUANTITY),
            "clusterClaims": items(claim),
            "conditions": _CONDITIONS,
            "managedNamespaces": keyed(owned, "clusterSet", "name"),
            "version": obj({"kubernetes": STR}),
        }
    )
    columns = (
        column("Hub Accepted", ".spec.hubAcceptsClient", "boolean"),
        column("Managed Cluster URLs", ".spec.managedClusterClientConfigs[*].url"),
        condition_column("Joined", "ManagedClusterJoined"),
        condition_column("Available", "ManagedClusterConditionAvailable"),
        AGE,
    )
    schema = kind_schema(spec, status, about="A ManagedCluster is a cluster that a hub knows.")
    return definition(MANAGED_CLUSTER, "managedclusters", schema, short=("mcl", "mcls"), columns=columns)


def cluster_claim_crd() -> Obj:
    """``clusterclaims``, which live on the managed cluster."""
    schema = kind_schema(obj({"value": _VALUE | {"minLength": 1}}), None, about="A fact about a cluster, by name.")
    return definition(CLUSTER_CLAIM, "clusterclaims", schema, status=False)


def cluster_set_crd() -> Obj:
    """``managedclustersets``."""
    kinds = enum("ExclusiveClusterSetLabel", "LabelSelector") | {"default": "ExclusiveClusterSetLabel"}
    by_label = {"selectorType": "ExclusiveClusterSetLabel"}
    selector = obj({"labelSelector": SELECTOR, "selectorType": kinds}, "selectorType") | {"default": by_label}
    namespaces = keyed(obj({"name": _NAMESPACE}, "name"), "name")
    spec = obj({"clusterSelector": selector, "managedNamespaces": namespaces}) | {
        "default": {"clusterSelector": by_label}
    }
    schema = kind_schema(spec, obj({"conditions": items(CONDITION)}), about="A group of ManagedClusters.")
    columns = (condition_column("Empty", "ClusterSetEmpty"), AGE)
    return definition(CLUSTER_SET, "managedclustersets", schema, short=("mclset", "mclsets"), columns=columns)


def cluster_set_binding_crd() -> Obj:
    """``managedclustersetbindings``."""
    spec, status = obj({"clusterSet": {"type": "string", "minLength": 1}}), obj({"conditions": items(CONDITION)})
    schema = kind_schema(spec, status, about="Lets Placements of a namespace choose from a set of clusters.")
    short = ("mclsetbinding", "mclsetbindings")
    return definition(CLUSTER_SET_BINDING, "managedclustersetbindings", schema, short=short, namespaced=True)


def placement_crd() -> Obj:
    """``placements``."""
    claims = obj({"matchExpressions": items(REQUIREMENT)})
    both: Fields = {"claimSelector": claims, "labelSelector": SELECTOR}
    size = INT_OR_STRING | {"default": "100%", "pattern": "^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$"}
    name: Obj = {"type": "string", "pattern": "^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$"}
    group = obj({"groupClusterSelector": obj(both), "groupName": name}, "groupClusterSelector", "groupName")
    groups = obj({"clustersPerDecisionGroup": size, "decisionGroups": items(group)})
    required = obj({**both, "celSelector": obj({"celExpressions": strings()})})
    addon = obj({"resourceName": STR, "scoreName": STR}, "resourceName", "scoreName")
    coordinate = obj(
        {"addOn": addon, "builtIn": STR, "type": enum("BuiltIn", "AddOn") | {"default": "BuiltIn"}}, "type"
    )
    weight = INT32 | {"default": 1, "maximum": 10, "minimum": -10}
    scored = obj({"scoreCoordinate": coordinate, "weight": weight}, "scoreCoordinate")
    constraint: Fields = {
        "maxSkew": INT32 | {"default": 1, "minimum": 1},
        "topologyKey": _TOPOLOGY,
        "topologyKeyType": enum("Label", "Claim"),
        "whenUnsatisfiable": enum("DoNotSchedule", "ScheduleAnyway") | {"default": "ScheduleAnyway"},
    }
    spread = items(obj(constraint, "topologyKey", "topologyKeyType")) | {"maxItems": 8}
    toleration: Fields = {
        "effect": _EFFECT,
        "key": _KEY,
        "operator": STR | {"default": "Equal"},
        "tolerationSeconds": INT,
        "value": _VALUE,
    }
    spec = obj(
        {
            "clusterSets": strings(),
            "decisionStrategy": obj({"groupStrategy": groups}),
            "numberOfClusters": INT32,
            "predicates": items(obj({"requiredClusterSelector": required})),
            "prioritizerPolicy": obj({"configurations": items(scored), "mode": STR | {"default": "Additive"}}),
            "scoreRateLimit": {"type": "string", "default": "1m", "pattern": "^[0-9]+[hms]$"},
            "sortBy": enum("ClusterName", "Score") | {"default": "ClusterName"},
            "spreadPolicy": obj({"spreadConstraints": spread}),
            "tolerations": items(obj(toleration)),
        }
    )
    decided: Fields = {
        "clusterCount": INT32 | {"default": 0},
        "decisionGroupIndex": INT32,
        "decisionGroupName": STR,
        "decisions": strings(),
    }
    status = obj(
        {
            "conditions": _CONDITIONS,
            "decisionGroups": items(obj(decided)),
            "lastScoreUpdateTime": TIME,
            "numberOfSelectedClusters": INT32,
        }
    )
    satisfied = '.status.conditions[?(@.type=="PlacementSatisfied")]'
    columns = (
        column("Succeeded", f"{satisfied}.status"),
        column("Reason", f"{satisfied}.reason"),
        column("SelectedClusters", ".status.numberOfSelectedClusters", "integer"),
    )
    schema = kind_schema(spec, status, "spec", about="A Placement chooses among the clusters of bound sets.")
    return definition(PLACEMENT, "placements", schema, columns=columns, namespaced=True)


def placement_decision_crd() -> Obj:
    """``placementdecisions``, which have a status alone."""
    decision = obj({"clusterName": STR, "reason": STR, "score": INT}, "clusterName", "reason")
    status = obj({"decisions": items(decision)}, "decisions")
    schema = kind_schema(None, status, about="A page of the clusters that a Placement chose.")
    return definition(PLACEMENT_DECISION, "placementdecisions", schema, namespaced=True)


def placement_score_crd() -> Obj:
    """``addonplacementscores``."""
    score = obj({"name": STR, "value": INT32 | {"maximum": 100, "minimum": -100}}, "name", "value")
    status = obj({"conditions": _CONDITIONS, "scores": keyed(score, "name"), "validUntil": TIME})
    schema = kind_schema(None, status, about="Scores of one cluster, which Placements may weigh.")
    return definition(PLACEMENT_SCORE, "addonplacementscores", schema, namespaced=True)


def hub_cluster_crds() -> tuple[Obj, ...]:
    """The definitions that a hub needs."""
    return (
        managed_cluster_crd(),
        cluster_set_crd(),
        cluster_set_binding_crd(),
        placement_crd(),
        placement_decision_crd(),
        placement_score_crd(),
    )
