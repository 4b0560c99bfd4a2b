"""Kinds and reads that OLM's controllers share."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from syncline.control.cache import Snapshot
from syncline.kube.kinds.operatorlifecycle import (
    CATALOG_SOURCE,
    INSTALL_PLAN,
    OLM_CONFIG,
    OPERATOR_CONDITION,
    OPERATOR_GROUP,
    SERVICE_VERSION,
    SUBSCRIPTION,
)
from syncline.kube.objects import GroupKind, Obj, ObjectRef, name_of, namespace_of
from syncline.patterns.operators.catalogs.model import Catalog

SOURCES = CATALOG_SOURCE.group_kind
SUBSCRIPTIONS = SUBSCRIPTION.group_kind
PLANS = INSTALL_PLAN.group_kind
VERSIONS = SERVICE_VERSION.group_kind
GROUPS = OPERATOR_GROUP.group_kind
CONDITIONS = OPERATOR_CONDITION.group_kind
CONFIGS = OLM_CONFIG.group_kind
NAMESPACES = GroupKind("", "Namespace")
ACCOUNTS = GroupKind("", "ServiceAccount")
SERVICES = GroupKind("", "Service")
SECRETS = GroupKind("", "Secret")
"""Watched without what they hold."""
HOOKS = tuple(
    GroupKind("admissionregistration.k8s.io", f"{kind}WebhookConfiguration") for kind in ("Validating", "Mutating")
)
DEPLOYMENTS = GroupKind("apps", "Deployment")
DEFINITIONS = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
SERVICES_OF_APIS = GroupKind("apiregistration.k8s.io", "APIService")
RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLES = GroupKind(RBAC, "ClusterRole")
CLUSTER_BINDINGS = GroupKind(RBAC, "ClusterRoleBinding")
ROLES = GroupKind(RBAC, "Role")
BINDINGS = GroupKind(RBAC, "RoleBinding")
MANAGER = "operator-lifecycle-manager"
"""Field manager and service account, as upstream's."""
GLOBAL_NAMESPACE = "openshift-marketplace"
"""Where the catalogues are that every namespace can use."""

Offers = Callable[[Obj], Catalog | str]
"""Returns the catalogue of a CatalogSource, or one sentence why there is none."""


def unlisted(cache: Snapshot, kinds: Iterable[GroupKind]) -> tuple[str, ...]:
    """Return the kinds of which not everything is known yet."""
    return tuple(kind.kind for kind in kinds if not cache.has_synced(kind))


def by_name(objects: Iterable[Obj]) -> dict[str, Obj]:
    return {name_of(one): one for one in objects}


def namespace_ref(namespace: str) -> ObjectRef:
    return ObjectRef(*NAMESPACES, "", namespace)


def its_namespace(obj: Obj, _cache: Snapshot) -> Iterable[ObjectRef]:
    yield namespace_ref(namespace_of(obj))
