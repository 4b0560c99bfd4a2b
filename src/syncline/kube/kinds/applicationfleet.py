"""The kinds of ``apps.open-cluster-management.io``: Applications over the clusters of a hub. Fields and types as
upstream's (its ``multicloud-integrations`` repository); the descriptions are ours."""

from __future__ import annotations

from syncline.kube.kinds.structure import (
    BOOL,
    CONDITION,
    STR,
    TIME,
    definition,
    enum,
    items,
    keyed,
    kind_schema,
    obj,
)
from syncline.kube.objects import GVK, Obj

GROUP = "apps.open-cluster-management.io"
GITOPS_CLUSTER = GVK(GROUP, "v1beta1", "GitOpsCluster")
REPORT = GVK(GROUP, "v1alpha1", "MulticlusterApplicationSetReport")

_OFF = BOOL | {"default": False}
KEPT: Obj = {"x-kubernetes-preserve-unknown-fields": True}


def report_crd() -> Obj:
    """MulticlusterApplicationSetReport: its content is ``statuses``; it has neither a spec nor a status."""
    said = obj({"type": STR, "message": STR})
    entry = ("cluster", "syncStatus", "healthStatus", "operationStateStartedAt", "operationStatePhase", "syncRevision")
    counts = ("synced", "notSynced", "healthy", "notHealthy", "inProgress", "clusters")
    content = obj(
        {
            "resources": items(obj(dict.fromkeys(("apiVersion", "kind", "name", "namespace"), STR))),
            "clusterConditions": items(obj({**dict.fromkeys((*entry, "app"), STR), "conditions": items(said)})),
            "summary": obj(dict.fromkeys(counts, STR)),
        },
        about="what each cluster says of the set's Application; the counts are strings",
    )
    schema = kind_schema(
        None, None, "metadata", about="How the Applications of an ApplicationSet fare in each cluster."
    )
    schema["properties"]["statuses"] = content
    short = ("appsetreport", "appsetreports")
    made = definition(REPORT, "multiclusterapplicationsetreports", schema, short=short, status=False, namespaced=True)
    warning = f"{REPORT.api_version} {REPORT.kind} is deprecated and will be removed in a future release."
    made["spec"]["versions"][0] |= {"deprecated": True, "deprecationWarning": warning}
    return made


def gitops_cluster_crd() -> Obj:
    """GitOpsCluster: the clusters of a Placement become clusters of an Argo CD.

    Version v1alpha1 is the kind of the same name in ``argocd-pull-integration``. It has other fields, so both versions
    keep what they do not know.
    """
    subscription = dict.fromkeys(("name", "namespace", "channel", "source", "sourceNamespace"), STR)
    agent = {"enabled": _OFF, "propagateHubCA": BOOL | {"default": True}}
    addon = {
        "enabled": _OFF,
        "gitOpsOperatorImage": STR,
        "argoCDAgent": obj({**agent, **dict.fromkeys(("serverAddress", "serverPort", "mode"), STR)}),
        "overrideExistingConfigs": _OFF,
        "olmSubscription": obj(
            {"enabled": _OFF, **subscription, "installPlanApproval": enum("Automatic", "Manual")},
        ),
    }
    reference = ("apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid")
    spec = obj(
        {
            "argoServer": obj({"cluster": STR, "argoNamespace": STR}, "argoNamespace"),
            "placementRef": obj(dict.fromkeys(reference, STR)) | {"x-kubernetes-map-type": "atomic"},
            "managedServiceAccountRef": STR,
            "gitopsAddon": obj(addon),
            "createBlankClusterSecrets": BOOL,
            "createPolicyTemplate": BOOL,
        },
        "argoServer",
        "placementRef",
    )
    status = obj({"lastUpdateTime": TIME, "message": STR, "phase": STR, "conditions": keyed(CONDITION, "type")})
    about = "The clusters of a Placement as clusters of an Argo CD."
    schema = kind_schema(spec | KEPT, status | KEPT, "metadata", "spec", about=about)
    made = definition(GITOPS_CLUSTER, "gitopsclusters", schema, namespaced=True)
    free = {"type": "object", **KEPT}
    other = kind_schema(free, free, "metadata", about=f"{about} Kept, and not acted on.")
    (version,) = made["spec"]["versions"]
    kept = {**version, "name": "v1alpha1", "storage": False, "schema": {"openAPIV3Schema": other}}
    made["spec"]["versions"].append(kept)
    return made
