"""The ManifestWork that carries an Application to its cluster (reference ocm-pull-model §9.3, 9.4, 9.8)."""

from __future__ import annotations

from collections.abc import Mapping

from syncline.apply.last_applied import LAST_APPLIED
from syncline.apply.managed import LABEL
from syncline.argo.application import REFRESH, SKIP_RECONCILE
from syncline.argo.clusters import IN_CLUSTER_SERVER
from syncline.argo.content.names import RENDERED
from syncline.fleet.pull import names
from syncline.fleet.pull.names import Variant
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.objects import Obj, annotations_of, copied, finalizers, labels_of, name_of, namespace_of

FEEDBACK = {
    "healthStatus": ".status.health.status",
    "syncStatus": ".status.sync.status",
    "operationStateStartedAt": ".status.operationState.startedAt",
    "operationStatePhase": ".status.operationState.phase",
    "syncRevision": ".status.sync.revision",
}
"""What the cluster's agent reports of the Application: names of values and where they are."""
_STAYS = {names.CLUSTER, names.CLUSTER_NAMESPACE, SKIP_RECONCILE, RENDERED}
_STAYS_BASIC = _STAYS | {names.DESTINATION_NAME, names.DESTINATION_SERVER}
_IGNORED = {
    Variant.BASIC: [".operation"],
    Variant.ACM: [".operation", f'.metadata.annotations["{REFRESH}"]'],
}


def namespace_on_cluster(app: Obj) -> str:
    """Return the namespace of the Application in the cluster."""
    return annotations_of(app).get(names.CLUSTER_NAMESPACE) or namespace_of(app) or "argocd"


def destination(app: Obj, variant: Variant) -> Obj | None:
    """Return the destination that the cluster's copy has: the cluster itself, or what annotations say (basic)."""
    given = (app.get("spec") or {}).get("destination")
    if not isinstance(given, dict):
        return None
    annotations = annotations_of(app)
    name, server = annotations.get(names.DESTINATION_NAME), annotations.get(names.DESTINATION_SERVER)
    if variant is Variant.BASIC and (name is not None or server is not None):
        return {**given, "name": name or "", "server": server or ""}
    made = {**given, "name": "", "server": IN_CLUSTER_SERVER}
    if variant is Variant.ACM and made.get("namespace") == "":
        made["namespace"] = namespace_on_cluster(app)
    return made


def payload(app: Obj, variant: Variant) -> Obj:
    """Return the cluster's copy of an Application: without what only the hub uses."""
    stays = _STAYS_BASIC if variant is Variant.BASIC else _STAYS
    labels = {key: value for key, value in labels_of(app).items() if key != names.PULL}
    annotations = {key: value for key, value in annotations_of(app).items() if key not in stays}
    if owner := names.owning_set(app):
        labels[names.SET] = "true"
        annotations[names.HOSTING_SET] = f"{namespace_of(app)}/{owner}"
    metadata: Obj = {"name": name_of(app), "namespace": namespace_on_cluster(app)}
    metadata |= {"labels": labels, "annotations": annotations}
    metadata |= {"finalizers": finalizers(app)} if finalizers(app) else {}
    made: Obj = {"apiVersion": APPLICATION.api_version, "kind": APPLICATION.kind, "metadata": metadata}
    if isinstance(app.get("spec"), dict):
        made["spec"] = copied(app["spec"])
        if (target := destination(app, variant)) is not None:
            made["spec"]["destination"] = target
    if isinstance(app.get("operation"), dict):
        made["operation"] = copied(app["operation"])
    return made


def part_metadata(app: Obj) -> dict[str, Obj]:
    """Return labels and annotations of the further parts of an Application's work: they go with the Application, and
    say nothing of its status."""
    return {
        "labels": {names.PULL: "true"},
        "annotations": {names.HUB_NAMESPACE: namespace_of(app), names.HUB_NAME: name_of(app)},
    }


def work_of(app: Obj, variant: Variant, project: Obj | None = None) -> Obj:
    """Return the ManifestWork of an Application. ``project``: the AppProject that travels with it (ACM variant)."""
    carried = payload(app, variant)
    annotations = {names.HUB_NAMESPACE: namespace_of(app), names.HUB_NAME: name_of(app)}
    labels = {names.PULL: "true"}
    if owner := names.owning_set(app):
        annotations[names.HOSTING_SET] = f"{namespace_of(app)}/{owner}"
        of_set = {names.SET: "true"}
        hashed = {**of_set, names.SET_HASH: names.set_hash(namespace_of(app), owner)}
        labels = {**labels, **of_set} if variant is Variant.BASIC else hashed
    metadata = {"name": names.work_name(app), "namespace": annotations_of(app).get(names.CLUSTER, "")}
    return {
        "apiVersion": MANIFEST_WORK.api_version,
        "kind": MANIFEST_WORK.kind,
        "metadata": {**metadata, "labels": labels, "annotations": annotations},
        "spec": _spec(carried, variant, project),
    }


def _spec(carried: Obj, variant: Variant, project: Obj | None) -> Obj:
    where = {"name": name_of(carried), "namespace": namespace_of(carried)}
    rules = [{"type": "JSONPaths", "jsonPaths": [{"name": key, "path": path}]} for key, path in FEEDBACK.items()]
    ignored = [{"condition": "OnSpokeChange", "jsonPaths": _IGNORED[variant]}]
    config = {
        "resourceIdentifier": {"group": APPLICATION.group, "resource": "applications", **where},
        "feedbackRules": rules,
        "updateStrategy": {
            "type": "ServerSideApply",
            "serverSideApply": {"force": True, "ignoreFields": ignored},
        },
    }
    spec: Obj = {"workload": {"manifests": [carried]}, "manifestConfigs": [config]}
    if variant is Variant.ACM:
        before, kept = _companions(namespace_of(carried), project)
        spec["workload"]["manifests"] = [*before, carried]
        orphans = {"orphaningRules": kept}
        spec["deleteOption"] = {"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": orphans}
    return spec


def _companions(namespace: str, project: Obj | None) -> tuple[list[Obj], list[Obj]]:
    """What travels before the Application, and the rules that keep it in the cluster when the work goes. The default
    project of the GitOps operator is in each cluster already."""
    labels = {LABEL: names.GITOPS_NAMESPACE}
    keep = {"argocd.argoproj.io/sync-options": "Delete=false"}
    metadata = {"name": namespace, "labels": labels, "annotations": keep}
    manifests: list[Obj] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "spec": {}, "status": {}}]
    rules = [{"group": "", "resource": "namespaces", "namespace": "", "name": namespace}]
    if project is not None and (namespace_of(project), name_of(project)) != (names.GITOPS_NAMESPACE, "default"):
        named = {"namespace": namespace_of(project), "name": name_of(project)}
        manifests.append(_bare_project(project, named))
        rules.append({"group": APP_PROJECT.group, "resource": "appprojects", **named})
    return manifests, rules


def _bare_project(project: Obj, named: Mapping[str, str]) -> Obj:
    annotations = {key: value for key, value in annotations_of(project).items() if key != LAST_APPLIED}
    metadata = {**named, "labels": labels_of(project), "annotations": annotations}
    spec = {"spec": copied(project["spec"])} if isinstance(project.get("spec"), dict) else {}
    return {"apiVersion": APP_PROJECT.api_version, "kind": APP_PROJECT.kind, "metadata": metadata, **spec}
