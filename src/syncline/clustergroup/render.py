"""A cluster group: value files in, objects out, in the order in which Helm prints them; pure. :func:`render`.

Facts: clusterGroup chart 0.9.55 with vp-rbac 0.1.2 (reference clustergroup). Two calls with equal values give equal
objects: nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from syncline.clustergroup.defaults import layered, with_defaults
from syncline.clustergroup.errors import ValuesRefused
from syncline.clustergroup.facts import Facts
from syncline.clustergroup.objects import (
    applications,
    argocd,
    imperative,
    namespaces,
    rights,
    smaller,
    subscriptions,
)
from syncline.clustergroup.ordering import rank
from syncline.clustergroup.printing import NO_RELEASE, Release, floats, whole
from syncline.clustergroup.schema import violations
from syncline.kube.objects import Obj

Part = Callable[[Facts], list[Obj]]
PARTS: Final[tuple[Part, ...]] = (
    rights.own_cluster_roles,
    rights.own_roles,
    rights.own_accounts,
    smaller.catalogues,
    smaller.given_objects,
    namespaces.namespaces,
    smaller.nodes,
    namespaces.operator_groups,
    smaller.scheduler,
    subscriptions.subscriptions,
    imperative.approving,
    rights.job_cluster_roles,
    imperative.config_maps,
    imperative.jobs,
    imperative.namespace,
    rights.job_bindings,
    rights.job_role,
    rights.job_accounts,
    imperative.unsealing,
    rights.vault_rights,
    applications.applications,
    applications.projects,
    argocd.plugin_configs,
    rights.argocd_rights,
    argocd.instance,
    argocd.namespace,
    argocd.certificates,
)
"""What makes the objects, in the order of the chart's files."""


def values_of(files: Iterable[Mapping[str, Any]], *, checked: bool = True) -> Obj:
    """Return the values that given files and the chart's defaults make. ``checked``: by the chart's schema.

    Raises :class:`ValuesRefused`, :class:`RenderFailed`.
    """
    values = with_defaults(layered(files))
    if checked and (refused := violations(values)):
        raise ValuesRefused(refused)
    found: Obj = floats(values)
    return found


def render(values: Obj) -> list[Obj]:
    """Return the objects of a cluster group. ``values``: from :func:`values_of`. Raises :class:`RenderFailed`."""
    return sorted(objects_of(values), key=rank)


def objects_of(values: Obj, release: Release = NO_RELEASE) -> list[Obj]:
    """Return the objects in the order of the chart's files. Raises :class:`RenderFailed`."""
    facts = Facts(values, release)
    found: list[Obj] = whole([one for part in PARTS for one in part(facts)])
    return found
