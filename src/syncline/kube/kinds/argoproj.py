"""The ``argoproj.io/v1alpha1`` kinds that Syncline serves: fields, types and rules as upstream's.

Field names and types are Argo CD's (``pkg/apis/application/v1alpha1``), so that repositories and clients work
unchanged; the descriptions are ours.
"""

from __future__ import annotations

from syncline.kube.kinds.structure import (
    ANY,
    BOOL,
    INT,
    INT_OR_STRING,
    STR,
    TIME,
    Fields,
    column,
    definition,
    enum,
    items,
    mapping,
    obj,
    strings,
)
from syncline.kube.objects import GVK, Obj

GROUP = "argoproj.io"
VERSION = "v1alpha1"
APPLICATION = GVK(GROUP, VERSION, "Application")
APP_PROJECT = GVK(GROUP, VERSION, "AppProject")

_NAME_VALUE = obj({"name": STR, "value": STR}, "name", "value")
_ENV = items(_NAME_VALUE)


def _helm() -> Obj:
    return obj(
        {
            "apiVersions": strings(),
            "fileParameters": items(obj({"name": STR, "path": STR})),
            "ignoreMissingValueFiles": BOOL,
            "kubeVersion": STR,
            "namespace": STR,
            "parameters": items(obj({"forceString": BOOL, "name": STR, "value": STR})),
            "passCredentials": BOOL,
            "releaseName": STR,
            "skipCrds": BOOL,
            "skipSchemaValidation": BOOL,
            "skipTests": BOOL,
            "valueFiles": strings(),
            "values": STR,
            "valuesObject": ANY,
            "version": STR,
        }
    )


def _kustomize() -> Obj:
    parts = ("annotationSelector", "group", "kind", "labelSelector", "name", "namespace", "version")
    selector = dict.fromkeys(parts, STR)
    return obj(
        {
            "apiVersions": strings(),
            "commonAnnotations": mapping(STR),
            "commonAnnotationsEnvsubst": BOOL,
            "commonLabels": mapping(STR),
            "components": strings(),
            "forceCommonAnnotations": BOOL,
            "forceCommonLabels": BOOL,
            "ignoreMissingComponents": BOOL,
            "images": strings(),
            "kubeVersion": STR,
            "labelIncludeTemplates": BOOL,
            "labelWithoutSelector": BOOL,
            "namePrefix": STR,
            "nameSuffix": STR,
            "namespace": STR,
            "patches": items(obj({"options": mapping(BOOL), "patch": STR, "path": STR, "target": obj(dict(selector))})),
            "replicas": items(obj({"count": INT_OR_STRING, "name": STR}, "count", "name")),
            "version": STR,
        }
    )


def _directory() -> Obj:
    variable = obj({"code": BOOL, "name": STR, "value": STR}, "name", "value")
    return obj(
        {
            "disableExtensionFilter": BOOL,
            "exclude": STR,
            "include": STR,
            "jsonnet": obj({"extVars": items(variable), "libs": strings(), "tlas": items(variable)}),
            "recurse": BOOL,
        }
    )


def _plugin() -> Obj:
    parameter = obj({"array": strings(), "map": mapping(STR), "name": STR, "string": STR})
    return obj({"env": _ENV, "name": STR, "parameters": items(parameter)})


def source_schema() -> Obj:
    """``spec.source`` and each entry of ``spec.sources``."""
    fields: Fields = {
        "chart": STR,
        "directory": _directory(),
        "helm": _helm(),
        "kustomize": _kustomize(),
        "name": STR,
        "path": STR,
        "plugin": _plugin(),
        "ref": STR,
        "repoURL": STR,
        "tagPrefix": STR,
        "targetRevision": STR,
    }
    return obj(fields, "repoURL", about="where manifests come from")


def _hydrator() -> Obj:
    dry: Fields = {
        "directory": _directory(),
        "helm": _helm(),
        "kustomize": _kustomize(),
        "path": STR,
        "plugin": _plugin(),
        "repoURL": STR,
        "targetRevision": STR,
    }
    return obj(
        {
            "drySource": obj(dry, "path", "repoURL", "targetRevision"),
            "hydrateTo": obj({"targetBranch": STR}, "targetBranch"),
            "syncSource": obj(
                {
                    "path": {"type": "string", "minLength": 1, "pattern": r"^.{2,}|[^./]$"},
                    "repoURL": STR,
                    "targetBranch": STR,
                },
                "path",
                "targetBranch",
            ),
        },
        "drySource",
        "syncSource",
    )


def _retry() -> Obj:
    backoff = obj({"duration": STR, "factor": INT, "maxDuration": STR})
    return obj({"backoff": backoff, "limit": INT, "refresh": BOOL})


def _destination() -> Obj:
    return obj({"name": STR, "namespace": STR, "server": STR})


def _ignore_differences() -> Obj:
    return items(
        obj(
            {
                "group": STR,
                "jqPathExpressions": strings(),
                "jsonPointers": strings(),
                "kind": STR,
                "managedFieldsManagers": strings(),
                "name": STR,
                "namespace": STR,
            },
            "kind",
        )
    )


def _namespace_metadata() -> Obj:
    return obj({"annotations": mapping(STR), "labels": mapping(STR)})


def application_spec_schema() -> Obj:
    """``spec`` of an Application, and of each template of an ApplicationSet."""
    automated = obj({"allowEmpty": BOOL, "enabled": BOOL, "prune": BOOL, "selfHeal": BOOL})
    policy = obj(
        {
            "automated": automated,
            "managedNamespaceMetadata": _namespace_metadata(),
            "retry": _retry(),
            "syncOptions": strings(),
        }
    )
    return obj(
        {
            "destination": _destination(),
            "ignoreDifferences": _ignore_differences(),
            "info": items(_NAME_VALUE),
            "project": STR,
            "revisionHistoryLimit": INT,
            "source": source_schema(),
            "sourceHydrator": _hydrator(),
            "sources": items(source_schema()),
            "syncPolicy": policy,
        },
        "destination",
        "project",
        about="what is to be synced, whereto, and how",
    )


def _operation() -> Obj:
    strategy = obj({"apply": obj({"force": BOOL}), "hook": obj({"force": BOOL})})
    resource = obj({"group": STR, "kind": STR, "name": STR, "namespace": STR}, "kind", "name")
    sync = obj(
        {
            "autoHealAttemptsCount": INT,
            "dryRun": BOOL,
            "manifests": strings(),
            "prune": BOOL,
            "resources": items(resource),
            "revision": STR,
            "revisions": strings(),
            "source": source_schema(),
            "sources": items(source_schema()),
            "syncOptions": strings(),
            "syncStrategy": strategy,
        }
    )
    return obj(
        {
            "info": items(_NAME_VALUE),
            "initiatedBy": obj({"automated": BOOL, "username": STR}),
            "retry": _retry(),
            "sync": sync,
        },
        about="a request to sync; the controller moves it into status.operationState",
    )


def _sync_result() -> Obj:
    row = obj(
        {
            "group": STR,
            "hookPhase": STR,
            "hookType": STR,
            "images": strings(),
            "kind": STR,
            "message": STR,
            "name": STR,
            "namespace": STR,
            "status": STR,
            "syncPhase": STR,
            "version": STR,
        },
        "group",
        "kind",
        "name",
        "namespace",
        "version",
    )
    return obj(
        {
            "managedNamespaceMetadata": _namespace_metadata(),
            "resources": items(row),
            "revision": STR,
            "revisions": strings(),
            "source": source_schema(),
            "sources": items(source_schema()),
        },
        "revision",
    )


def _operation_state() -> Obj:
    return obj(
        {
            "finishedAt": TIME,
            "message": STR,
            "operation": _operation(),
            "phase": STR,
            "retryCount": INT,
            "startedAt": TIME,
            "syncResult": _sync_result(),
        },
        "operation",
        "phase",
        "startedAt",
    )


def _history() -> Obj:
    return items(
        obj(
            {
                "deployStartedAt": TIME,
                "deployedAt": TIME,
                "id": INT,
                "initiatedBy": obj({"automated": BOOL, "username": STR}),
                "revision": STR,
                "revisions": strings(),
                "source": source_schema(),
                "sources": items(source_schema()),
            },
            "deployedAt",
            "id",
        )
    )


def _status() -> Obj:
    health = obj({"lastTransitionTime": TIME, "message": STR, "status": STR})
    resource = obj(
        {
            "group": STR,
            "health": health,
            "hook": BOOL,
            "kind": STR,
            "name": STR,
            "namespace": STR,
            "requiresDeletionConfirmation": BOOL,
            "requiresPruning": BOOL,
            "status": STR,
            "syncWave": INT,
            "version": STR,
        }
    )
    compared = obj(
        {
            "destination": _destination(),
            "ignoreDifferences": _ignore_differences(),
            "source": source_schema(),
            "sources": items(source_schema()),
        },
        "destination",
    )
    condition = obj({"lastTransitionTime": TIME, "message": STR, "type": STR}, "message", "type")
    sync = obj({"comparedTo": compared, "revision": STR, "revisions": strings(), "status": STR}, "status")
    summary = obj({"externalURLs": strings(), "images": strings(), "isAppOfApps": BOOL})
    return obj(
        {
            "conditions": items(condition),
            "controllerNamespace": STR,
            "health": health,
            "history": _history(),
            "observedAt": TIME,
            "operationState": _operation_state(),
            "reconciledAt": TIME,
            "resourceHealthSource": STR,
            "resources": items(resource),
            "sourceHydrator": ANY,
            "sourceType": STR,
            "sourceTypes": strings(),
            "summary": summary,
            "sync": sync,
        },
        about="what the controller found and did",
    )


PART_OF = {"app.kubernetes.io/part-of": "argocd"}


def application_crd() -> Obj:
    """CustomResourceDefinition ``applications.argoproj.io``; no status subresource, as upstream."""
    schema = obj(
        {
            "apiVersion": STR,
            "kind": STR,
            "metadata": {"type": "object"},
            "operation": _operation(),
            "spec": application_spec_schema(),
            "status": _status(),
        },
        "metadata",
        "spec",
        about="An Application ties manifests in Git to a destination cluster.",
    )
    columns = (
        column("Sync Status", ".status.sync.status"),
        column("Health Status", ".status.health.status"),
        column("Revision", ".status.sync.revision") | {"priority": 10},
        column("Project", ".spec.project") | {"priority": 10},
    )
    return definition(
        APPLICATION,
        "applications",
        schema,
        short=("app", "apps"),
        columns=columns,
        status=False,
        namespaced=True,
        labels=PART_OF,
    )


def _project_spec() -> Obj:
    group_kind = obj({"group": STR, "kind": STR}, "group", "kind")
    cluster_kind = obj({"group": STR, "kind": STR, "name": STR}, "group", "kind")
    token = obj({"exp": INT, "iat": INT, "id": STR}, "iat")
    role = obj(
        {"description": STR, "groups": strings(), "jwtTokens": items(token), "name": STR, "policies": strings()},
        "name",
    )
    window = obj(
        {
            "andOperator": BOOL,
            "applications": strings(),
            "clusters": strings(),
            "description": STR,
            "duration": STR,
            "kind": STR,
            "manualSync": BOOL,
            "namespaces": strings(),
            "schedule": STR,
            "syncOverrun": BOOL,
            "timeZone": STR,
        }
    )
    account = obj({"defaultServiceAccount": STR, "namespace": STR, "server": STR}, "defaultServiceAccount", "server")
    orphan = obj({"group": STR, "kind": STR, "name": STR})
    gpg = obj({"keys": strings(), "mode": enum("none", "head", "strict")})
    policy = obj({"gpg": gpg, "repos": items(obj({"url": STR}))})
    return obj(
        {
            "clusterResourceBlacklist": items(cluster_kind),
            "clusterResourceWhitelist": items(cluster_kind),
            "description": {"type": "string", "maxLength": 255},
            "destinationServiceAccounts": items(account),
            "destinations": items(_destination()),
            "namespaceResourceBlacklist": items(group_kind),
            "namespaceResourceWhitelist": items(group_kind),
            "orphanedResources": obj({"ignore": items(orphan), "warn": BOOL}),
            "permitOnlyProjectScopedClusters": BOOL,
            "roles": items(role),
            "signatureKeys": items(obj({"keyID": STR}, "keyID")),
            "sourceIntegrity": obj({"git": obj({"policies": items(policy)})}),
            "sourceNamespaces": strings(),
            "sourceRepos": strings(),
            "syncWindows": items(window),
        },
        about="what the applications of this project may do",
    )


def app_project_crd() -> Obj:
    """CustomResourceDefinition ``appprojects.argoproj.io``."""
    token = obj({"exp": INT, "iat": INT, "id": STR}, "iat")
    status = obj({"jwtTokensByRole": mapping(obj({"items": items(token)}))})
    schema = obj(
        {"apiVersion": STR, "kind": STR, "metadata": {"type": "object"}, "spec": _project_spec(), "status": status},
        "metadata",
        "spec",
        about="An AppProject narrows what its Applications may read and write.",
    )
    return definition(
        APP_PROJECT,
        "appprojects",
        schema,
        short=("appproj", "appprojs"),
        status=False,
        namespaced=True,
        labels=PART_OF,
    )


def crds() -> tuple[Obj, ...]:
    """Applications and projects, which the GitOps controllers need."""
    return (application_crd(), app_project_crd())
