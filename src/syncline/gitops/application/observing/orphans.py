"""Objects of a destination namespace that no application tracks.

Observation calls it for the warning that a project may request; so does the tree of an Application's objects. Pure.
Rules: Argo CD ``controller/appcontroller.go`` getOrphanedNodes (reference argocd-app §2.4).
"""

from __future__ import annotations

from syncline.argo.application import IN_CLUSTER_NAME, IN_CLUSTER_SERVER, AppView
from syncline.argo.excluded import ResourceFilter
from syncline.argo.project import permits_resource
from syncline.argo.tracking import Tracking
from syncline.control.cache import Snapshot
from syncline.kube.objects import (
    GroupKind,
    Obj,
    ObjectRef,
    annotations_of,
    dig,
    labels_of,
    name_of,
    owner_references,
    ref_of,
)
from syncline.kube.text.glob import glob_matches

STATEFUL_SET = GroupKind("apps", "StatefulSet")
SERVICE_NAME = "kubernetes.io/service-name"
TOKEN_TYPE = "kubernetes.io/service-account-token"
TOKEN_OF = "kubernetes.io/service-account"


def count_orphans(cache: Snapshot, app: Obj, project: Obj | None, tracking: Tracking) -> int | None:
    """Return the number of orphans; None if the project does not warn of them."""
    if dig(project, "spec", "orphanedResources", "warn") is not True:
        return None
    return len(orphans(cache, app, project or {}, tracking))


def orphans(cache: Snapshot, app: Obj, project: Obj, tracking: Tracking) -> list[Obj]:
    """Return top-level objects that the project permits, Kubernetes does not create itself and
    ``spec.orphanedResources.ignore`` does not list; none if the project lacks that field."""
    watched = dig(project, "spec", "orphanedResources")
    view = AppView(app)
    namespace = view.destination_namespace
    if watched is None or not namespace:
        return []
    ignored = [entry for entry in watched.get("ignore") or () if isinstance(entry, dict)]
    rows = {_row_ref(row) for row in dig(app, "status", "resources", default=[])}
    found = []
    for kind in cache.kinds():
        for obj in cache.objects(kind, namespace):
            ref = ref_of(obj)
            ours = ref in rows or tracking.app_name(obj) or owner_references(obj) or _has_inferred_owner(cache, obj)
            if not ours and _permitted(project, ref, view) and not _is_ignored(ref, ignored):
                found.append(obj)
    return found


def _has_inferred_owner(cache: Snapshot, obj: Obj) -> bool:
    """Return whether the object belongs to another one without an owner reference (gitops-engine ``references.go``):
    the endpoints of a Service, the token of a service account, the claims of a StatefulSet, operators of an
    OperatorGroup."""
    ref = ref_of(obj)
    match ref.group, ref.kind:
        case "", "Endpoints":
            return True
        case "discovery.k8s.io", "EndpointSlice":
            return SERVICE_NAME in labels_of(obj)
        case "", "Secret":
            notes = annotations_of(obj)
            return obj.get("type") == TOKEN_TYPE and all(notes.get(f"{TOKEN_OF}.{part}") for part in ("name", "uid"))
        case "operators.coreos.com", "ClusterServiceVersion":
            return bool(annotations_of(obj).get("olm.operatorGroup"))
        case "", "PersistentVolumeClaim":
            return any(_claims(one, ref.name) for one in cache.objects(STATEFUL_SET, ref.namespace))
    return False


def _claims(stateful: Obj, name: str) -> bool:
    """Return whether a claim of this name comes from one of its templates: ``TEMPLATE-NAME-NUMBER``."""
    base, _, number = name.rpartition("-")
    if not (number.isascii() and number.isdigit()):
        return False
    templates = dig(stateful, "spec", "volumeClaimTemplates", default=[])
    return any(base == f"{name_of(one)}-{name_of(stateful)}" for one in templates if isinstance(one, dict))


def _row_ref(row: Obj) -> ObjectRef:
    return ObjectRef(*(str(row.get(part) or "") for part in ("group", "kind", "namespace", "name")))


def _permitted(project: Obj, ref: ObjectRef, view: AppView) -> bool:
    server = str(view.destination.get("server") or IN_CLUSTER_SERVER).rstrip("/")
    name = str(view.destination.get("name") or (IN_CLUSTER_NAME if server == IN_CLUSTER_SERVER else ""))
    if ResourceFilter().excludes(ref.group, ref.kind, server):
        return False
    return permits_resource(project, ref.group, ref.kind, ref.name, ref.namespace, server, name)


def _is_ignored(ref: ObjectRef, entries: list[Obj]) -> bool:
    """Return whether an entry matches: its group always counts (empty: core); an empty kind or name matches any."""
    own = {
        ObjectRef("", "Service", "default", "kubernetes"),
        ObjectRef("", "ServiceAccount", ref.namespace, "default"),
        ObjectRef("", "ConfigMap", ref.namespace, "kube-root-ca.crt"),
    }
    return ref in own or any(
        glob_matches(str(entry.get("group") or ""), ref.group)
        and all(
            not entry.get(key) or glob_matches(str(entry[key]), text)
            for key, text in (("kind", ref.kind), ("name", ref.name))
        )
        for entry in entries
    )
