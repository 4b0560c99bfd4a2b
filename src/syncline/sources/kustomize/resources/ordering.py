"""The order of the output: legacy (by kind, then by id) or first in, first out.

Called at the end of a build and by ``fieldspec`` for the order of configurations. Source: kustomize
``SortOrderTransformer``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from syncline.sources.kustomize.failure import BuildError
from syncline.sources.kustomize.resources.resource import Gvk, ResId, Resource

FIFO, LEGACY = "fifo", "legacy"

ORDER_FIRST = (
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
)
ORDER_LAST = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def _positions(first: Sequence[str], last: Sequence[str]) -> dict[str, int]:
    made = {kind: index - len(first) for index, kind in enumerate(first)}
    return made | {kind: index + 1 for index, kind in enumerate(last)}


KIND_ORDER: Mapping[str, int] = _positions(ORDER_FIRST, ORDER_LAST)


def sort_text(gvk: Gvk) -> str:
    """Return the sort key of kinds of equal rank."""
    return f"{gvk.group or '~G'}_{gvk.version or '~V'}_{gvk.kind or '~K'}"


def sort_resources(resources: Iterable[Resource], options: Mapping[str, Any]) -> list[Resource]:
    """Sort the resources by ``sortOptions``; raises :class:`BuildError` for invalid options."""
    order, legacy = options.get("order") or "", options.get("legacySortOptions")
    if order not in (FIFO, LEGACY):
        raise BuildError(f"the field 'sortOptions.order' must be one of [{FIFO}, {LEGACY}]")
    if order == FIFO:
        if legacy is not None:
            raise BuildError(
                "the field 'sortOptions.legacySortOptions' is set but the selected sort order is 'fifo', not 'legacy'"
            )
        return list(resources)
    positions = KIND_ORDER
    if legacy is not None:
        positions = _positions(legacy.get("orderFirst") or (), legacy.get("orderLast") or ())
    return sorted(resources, key=lambda resource: _legacy_key(resource.id, positions))


def _legacy_key(found: ResId, positions: Mapping[str, int]) -> tuple[int, str, str]:
    name = f"{found.gvk}|{found.namespace or '~X'}|{found.name or '~N'}"
    return positions.get(found.gvk.kind, 0), sort_text(found.gvk), name
