"""The claims that a cluster makes about itself on its hub; pure.

Rules: ``pkg/registration/spoke/managedcluster/claim_reconcile.go`` of upstream (reference ocm-pull-model §1.7).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from syncline.kube.objects import Obj, dig, labels_of, name_of

RESERVED: Final = frozenset(
    {
        "id.k8s.io",
        "kubeversion.open-cluster-management.io",
        "platform.open-cluster-management.io",
        "product.open-cluster-management.io",
    }
)
"""Claims that come first and are never left out."""
CUSTOM: Final = 20
"""The most other claims."""
SPOKE_ONLY: Final = "open-cluster-management.io/spoke-only"
"""The label of claims that stay on their cluster."""
TRUNCATED: Final = "CustomClusterClaimsTruncated"


@dataclass(frozen=True, slots=True)
class Claims:
    """``shown``: name and value each, as ``status.clusterClaims``; ``dropped``: the text of the Event about those that
    are not shown, or ""."""

    shown: tuple[Obj, ...]
    dropped: str = ""


def exposed(
    claims: Iterable[Obj], properties: Iterable[Obj], *, most: int = CUSTOM, suffixes: tuple[str, ...] = ()
) -> Claims:
    """Return what the hub is shown of ClusterClaims and of ClusterProperties (About API), which win by name. Claims
    with one of the ``suffixes`` are treated as reserved ones."""
    values: dict[str, str] = {}
    for one in (*claims, *properties):
        value = dig(one, "spec", "value")
        if SPOKE_ONLY not in labels_of(one) and isinstance(value, str) and value:
            values[name_of(one)] = value
    reserved = [name for name in sorted(values) if name in RESERVED or name.endswith(suffixes)]
    custom = [name for name in sorted(values) if name not in set(reserved)]
    shown = tuple({"name": name, "value": values[name]} for name in (*reserved, *custom[:most]))
    if len(custom) <= most:
        return Claims(shown)
    over = len(custom) - most
    return Claims(
        shown,
        f"{len(custom)} cluster claims are found. It exceeds the max number of custom cluster claims ({most}). "
        f"{over} custom cluster claims are not exposed.",
    )
