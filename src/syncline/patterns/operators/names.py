"""Labels, annotations and phases that OLM writes, and its finalizer."""

from __future__ import annotations

from typing import Final

OPERATOR_GROUP: Final = "olm.operatorGroup"
OPERATOR_NAMESPACE: Final = "olm.operatorNamespace"
TARGET_NAMESPACES: Final = "olm.targetNamespaces"
PROVIDED_APIS: Final = "olm.providedAPIs"
COPIED_FROM: Final = "olm.copiedFrom"
"""Label of a copied ClusterServiceVersion: the namespace of the original."""
MANAGED: Final = "olm.managed"
"""Label of what OLM made; OLM sees only Deployments and service accounts that have it."""
OWNER: Final = "olm.owner"
OWNER_KIND: Final = "olm.owner.kind"
OWNER_NAMESPACE: Final = "olm.owner.namespace"
SPEC_HASH: Final = "olm.deployment-spec-hash"
GENERATED_BY: Final = "olm.generated-by"
"""Annotation of a Subscription that an InstallPlan made for a dependency."""
CATALOG: Final = "olm.catalogSource"
FINALIZER: Final = "operators.coreos.com/csv-cleanup"
ALL_NAMESPACES: Final = ""
"""The target of an operator that watches the whole cluster."""


def owner_labels(name: str, namespace: str) -> dict[str, str]:
    """Return the labels of what belongs to a ClusterServiceVersion."""
    return {OWNER: name, OWNER_KIND: "ClusterServiceVersion", OWNER_NAMESPACE: namespace}
