"""The kinds of Validated Patterns: ``Pattern``, the ``ArgoCD`` of the GitOps operator, and those of OpenShift that a
cluster group makes or that installing one reads. Fields as upstream's (patterns-operator 1bf5a2c3, argocd-operator
cf5d1c02, openshift/api); the descriptions are ours. A cluster that has these kinds keeps its own definitions.
"""

from __future__ import annotations

from typing import Final

from syncline.kube.kinds.machineconfiguration import openshift_kind
from syncline.kube.kinds.openshiftconfig import GROUP as CONFIG
from syncline.kube.kinds.structure import (
    ANY,
    BOOL,
    CONDITION,
    INT,
    STR,
    TIME,
    column,
    definition,
    enum,
    items,
    kind_schema,
    mapping,
    obj,
    strings,
)
from syncline.kube.objects import GVK, Obj

PATTERN = GVK("gitops.hybrid-cloud-patterns.io", "v1alpha1", "Pattern")
ARGO_CD = GVK("argoproj.io", "v1beta1", "ArgoCD")
CONSOLE_LINK = GVK("console.openshift.io", "v1", "ConsoleLink")
CLUSTER_VERSION = GVK(CONFIG, "v1", "ClusterVersion")
INFRASTRUCTURE = GVK(CONFIG, "v1", "Infrastructure")
CLUSTER_INGRESS = GVK(CONFIG, "v1", "Ingress")
SCHEDULER = GVK(CONFIG, "v1", "Scheduler")
_OPEN: Final[Obj] = {"x-kubernetes-preserve-unknown-fields": True}


def pattern_crd() -> Obj:
    """``patterns``."""
    git = obj(
        {
            "inClusterGitServer": BOOL | {"default": False},
            **dict.fromkeys(("targetRepo", "targetRevision", "originRepo", "originRevision"), STR),
            **dict.fromkeys(("hostname", "tokenSecret", "tokenSecretNamespace"), STR),
        },
        about="the repository of the pattern, and how to read it",
    )
    chart = ("helmRepoUrl", "clusterGroupChartVersion", "clusterGroupGitRepoUrl", "clusterGroupChartGitRevision")
    spec = obj(
        {
            **dict.fromkeys(("clusterGroupName", "variant", "analyticsUUID", "experimentalCapabilities"), STR),
            "gitSpec": git,
            "multiSourceConfig": obj({"enabled": BOOL | {"default": True}, **dict.fromkeys(chart, STR)}),
            "gitOpsSpec": obj({"manualSync": BOOL}),
            "extraParameters": items(obj({"name": STR, "value": STR}, "name", "value")),
            "extraValueFiles": strings(),
        },
        "gitSpec",
    )
    condition = obj(
        {"type": STR, "status": STR, "message": STR, "lastUpdateTime": TIME, "lastTransitionTime": TIME},
        "lastUpdateTime",
        "status",
        "type",
    )
    texts = ("lastStep", "lastError", "clusterName", "appClusterDomain", "clusterDomain", "clusterID")
    status = obj(
        {
            **dict.fromkeys((*texts, "clusterPlatform", "clusterVersion", "analyticsUUID", "path"), STR),
            "version": {"type": "integer"},
            "analyticsSent": {"type": "integer", "default": 0},
            "deletionPhase": STR,
            "conditions": items(condition),
            "applications": items(obj(dict.fromkeys(("name", "namespace", "syncStatus", "healthStatus"), STR))),
        }
    )
    schema = kind_schema(spec, status, about="A Validated Pattern: a repository whose values describe a cluster.")
    columns = (
        column("Step", ".status.lastStep", wide=True),
        column("Error", ".status.lastError") | {"priority": 2},
    )
    return definition(PATTERN, "patterns", schema, short=("patt",), columns=columns, namespaced=True)


def argo_cd_crd() -> Obj:
    """``argocds``: fields that are not known here are kept; version v1alpha1 is served, too."""
    flag = obj({"enabled": BOOL}) | _OPEN
    check = obj({"group": STR, "kind": STR, "check": STR})
    differences = obj(
        {"jqPathExpressions": strings(), "jsonPointers": strings(), "managedFieldsManagers": strings()},
    )
    one = obj({"group": STR, "kind": STR, "customization": differences})
    rbac = obj(dict.fromkeys(("defaultPolicy", "policy", "scopes", "policyMatcherMode"), STR))
    texts = ("applicationInstanceLabelKey", "installationID", "gaTrackingID", "helpChatURL", "helpChatText", "image")
    more = ("kustomizeBuildOptions", "oidcConfig", "resourceExclusions", "resourceInclusions", "version")
    flags = ("disableAdmin", "gaAnonymizeUsers", "statusBadgeEnabled", "usersAnonymousEnabled", "webTerminalEnabled")
    parts = ("applicationSet", "controller", "redis", "repo", "server", "sso", "tls")
    spec = obj(
        {
            **dict.fromkeys((*texts, *more, "resourceTrackingMethod"), STR),
            **dict.fromkeys((*flags, "defaultClusterScopedRoleDisabled", "aggregatedClusterRoles"), BOOL),
            **dict.fromkeys(("grafana", "ha", "monitoring", "notifications", "prometheus", "imageUpdater"), flag),
            **dict.fromkeys(parts, ANY),
            "extraConfig": mapping(STR),
            "cmdParams": mapping(STR),
            "kustomizeVersions": items(obj({"version": STR, "path": STR})),
            "rbac": rbac,
            "resourceHealthChecks": items(check),
            "resourceActions": items(obj({"group": STR, "kind": STR, "action": STR})),
            "resourceIgnoreDifferences": obj({"all": differences, "resourceIdentifiers": items(one)}),
            "sourceNamespaces": strings(),
        }
    )
    states = ("applicationController", "applicationSetController", "notificationsController", "phase", "redis", "repo")
    status = obj(
        {**dict.fromkeys((*states, "server", "sso", "host"), STR), "conditions": items(CONDITION)},
    )
    schema = kind_schema(spec | _OPEN, status | _OPEN, about="An instance of Argo CD: its namespace and its settings.")
    made = definition(ARGO_CD, "argocds", schema, namespaced=True)
    (version,) = made["spec"]["versions"]
    free: Obj = {"type": "object", **_OPEN}
    older = kind_schema(free, free, about="An instance of Argo CD, in the older form; its fields are those of v1beta1.")
    made["spec"]["versions"].append(
        {**version, "name": "v1alpha1", "storage": False, "schema": {"openAPIV3Schema": older}}
    )
    return made


def openshift_platform_crds() -> tuple[Obj, ...]:
    """Kinds of OpenShift that installing a pattern reads, or a cluster group makes. No controller acts on them here."""
    history = obj({"state": STR, "version": STR, "image": STR, "startedTime": TIME, "completionTime": TIME})
    version = kind_schema(
        obj({"clusterID": STR, "channel": STR}) | _OPEN,
        obj({"history": items(history | _OPEN), "desired": obj({"version": STR}) | _OPEN, "observedGeneration": INT})
        | _OPEN,
        about="ClusterVersion, named version, says which version of OpenShift runs. No controller is here.",
    )
    infrastructure = kind_schema(
        obj({"platformSpec": obj({"type": STR}) | _OPEN}) | _OPEN,
        ANY,
        about="Infrastructure, named cluster, says what the cluster runs on. No controller is here.",
    )
    ingress = kind_schema(
        obj({"domain": STR}) | _OPEN,
        ANY,
        about="Ingress, named cluster, says the domain of applications. No controller is here.",
    )
    scheduler = kind_schema(ANY, ANY, about="Scheduler, named cluster, configures scheduling. No controller is here.")
    link = kind_schema(
        obj(
            {
                "applicationMenu": obj({"section": STR, "imageURL": STR}),
                "href": STR,
                "location": enum("ApplicationMenu", "HelpMenu", "UserMenu", "NamespaceDashboard"),
                "namespaceDashboard": ANY,
                "text": STR,
            },
            "href",
            "location",
            "text",
        ),
        None,
        about="A link in OpenShift's console. No controller is here.",
    )
    return (
        openshift_kind(CLUSTER_VERSION, "clusterversions", version, status=True),
        openshift_kind(INFRASTRUCTURE, "infrastructures", infrastructure, status=True),
        openshift_kind(CLUSTER_INGRESS, "ingresses", ingress, status=True),
        openshift_kind(SCHEDULER, "schedulers", scheduler, status=True),
        definition(CONSOLE_LINK, "consolelinks", link, status=False),
    )
