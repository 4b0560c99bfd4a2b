"""Labels, annotations and names of the pull model, and which objects belong to it (reference ocm-pull-model §9.1, 9.2).

The names are those of OCM's Argo CD integrations, because other tools select by them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import Enum

from syncline.fleet.hub.works.splitting import part_prefix
from syncline.kube.objects import Obj, annotations_of, labels_of, name_of, namespace_of, owner_references, uid_of

APPS = "apps.open-cluster-management.io"
PULL = f"{APPS}/pull-to-ocm-managed-cluster"
CLUSTER = f"{APPS}/ocm-managed-cluster"
CLUSTER_NAMESPACE = f"{APPS}/ocm-managed-cluster-app-namespace"
DESTINATION_NAME = f"{APPS}/destination-name"
DESTINATION_SERVER = f"{APPS}/destination-server"
SET = f"{APPS}/application-set"
SET_HASH = f"{APPS}/application-set-hash"
HOSTING_SET = f"{APPS}/hosting-applicationset"
HUB_NAMESPACE = f"{APPS}/hub-application-namespace"
HUB_NAME = f"{APPS}/hub-application-name"
GITOPS_NAMESPACE = "openshift-gitops"

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
"""What Go's ``strconv.ParseBool`` reads as true."""


class Variant(Enum):
    """Whose rules apply: argocd-pull-integration's, or those of Advanced Cluster Management."""

    BASIC = "basic"
    ACM = "acm"


def is_carried(app: Obj) -> bool:
    """Return whether an Application is for a cluster to pull: a true label and the name of a cluster."""
    return labels_of(app).get(PULL) in _TRUE and bool(annotations_of(app).get(CLUSTER))


def is_changed(old: Obj, new: Obj) -> bool:
    """Return whether more than the status of a carried Application differs (the filter of the ACM variant)."""
    bare = ({key: value for key, value in one.items() if key != "status"} for one in (old, new))
    return is_carried(new) and next(bare) != next(bare)


def returns_status(work: Obj) -> bool:
    """Return whether a ManifestWork carries an Application whose status goes back onto the hub (basic variant)."""
    return labels_of(work).get(PULL) in _TRUE and hub_application(work) is not None


def hub_application(work: Obj) -> tuple[str, str] | None:
    """Return namespace and name of the hub's Application that a work carries."""
    annotations: Mapping[str, str] = annotations_of(work)
    found = annotations.get(HUB_NAMESPACE, ""), annotations.get(HUB_NAME, "")
    return found if all(found) else None


def owning_set(app: Obj) -> str:
    """Return the name of the ApplicationSet that owns an Application; empty: none. Upstream ignores case."""
    for one in owner_references(app):
        kind = str(one.get("apiVersion")).lower(), str(one.get("kind")).lower()
        if kind == ("argoproj.io/v1alpha1", "applicationset"):
            return str(one.get("name") or "")
    return ""


def work_name(app: Obj) -> str:
    """Return the name of the ManifestWork of an Application: its own and the first five characters of its uid."""
    return f"{name_of(app)}-{uid_of(app)[:5]}"


def is_part(work: Obj, cluster: str, name: str) -> bool:
    """Return whether a ManifestWork is a further part of the work ``name`` of a cluster."""
    return namespace_of(work) == cluster and name_of(work).startswith(part_prefix(name))


def set_hash(namespace: str, name: str) -> str:
    """Return the value of the label :data:`SET_HASH`: a name of an ApplicationSet that fits into a label."""
    return hashlib.sha1(f"{namespace}/{name}".encode(), usedforsecurity=False).hexdigest()
