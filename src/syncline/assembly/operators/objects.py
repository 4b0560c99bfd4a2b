"""What the role of operators needs on the embedded cluster, as OLM's own manifests bring it: namespaces, definitions,
the group for all namespaces, roles of users, and the APIService of PackageManifests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from syncline.kube.kinds.clusterextensions import extension_crds
from syncline.kube.kinds.operatorlifecycle import GROUP, PACKAGE_MANIFEST, operator_crds
from syncline.kube.objects import Obj
from syncline.patterns.operators.controllers.looking import GLOBAL_NAMESPACE

OPERATORS_NAMESPACE: Final = "openshift-operators"
"""Where operators for all namespaces go, as on OpenShift."""
_RBAC: Final = "rbac.authorization.k8s.io"
_READ: Final = ("get", "list", "watch")
_KINDS: Final = ("clusterserviceversions", "catalogsources", "installplans", "subscriptions")
_PACKAGES: Final = ("packagemanifests", "packagemanifests/icon")


def operators_objects(catalogs: Iterable[str] = ()) -> list[Obj]:
    """Return the objects; ``catalogs``: names of :class:`FolderCatalogs`, of which each in the global namespace gets a
    CatalogSource."""
    namespaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in (GLOBAL_NAMESPACE, OPERATORS_NAMESPACE)
    ]
    group = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": "global-operators", "namespace": OPERATORS_NAMESPACE},
        "spec": {},
    }
    sources = [_source(name) for name in catalogs if "/" not in name]
    return [*namespaces, *operator_crds(), *extension_crds(), *_roles(), _api_service(), group, *sources]


def _roles() -> list[Obj]:
    """Return what OLM adds to the roles admin, edit and view of every cluster (``aggregated.clusterrole.yaml``)."""
    return [
        _role(
            "aggregate-olm-edit",
            ("admin", "edit"),
            _rule(GROUP, ("subscriptions",), ("create", "update", "patch", "delete")),
            _rule(GROUP, _KINDS, ("delete",)),
        ),
        _role(
            "aggregate-olm-view",
            ("admin", "edit", "view"),
            _rule(GROUP, (*_KINDS, "operatorgroups"), _READ),
            _rule(PACKAGE_MANIFEST.group, _PACKAGES, _READ),
        ),
    ]


def _role(name: str, into: Sequence[str], *rules: Obj) -> Obj:
    labels = {f"{_RBAC}/aggregate-to-{one}": "true" for one in into}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": list(rules)}


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Obj:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _api_service() -> Obj:
    """Return the APIService of PackageManifests; it names no Service, because the API computes them itself."""
    group, version = PACKAGE_MANIFEST.group, PACKAGE_MANIFEST.version
    spec = {"group": group, "version": version, "groupPriorityMinimum": 2000, "versionPriority": 15}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{group}"},
        "spec": spec,
    }


def _source(name: str) -> Obj:
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "CatalogSource",
        "metadata": {"name": name, "namespace": GLOBAL_NAMESPACE},
        "spec": {"sourceType": "grpc", "image": f"{name}:local", "displayName": name, "publisher": "administrator"},
    }
