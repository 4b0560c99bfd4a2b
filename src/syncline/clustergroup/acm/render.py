"""The managed cluster groups of a hub: value files in, objects out, in the order in which Helm prints them; pure.

Facts: acm chart 0.2.8 (reference clustergroup §12). :func:`render`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from syncline.clustergroup.acm import applications, authorities, gitops, provision, secrets
from syncline.clustergroup.acm.bundles import CLUSTERS, LATER
from syncline.clustergroup.acm.defaults import CATALOGUE, DEFAULTS
from syncline.clustergroup.acm.facts import Facts
from syncline.clustergroup.defaults import filled, layered
from syncline.clustergroup.ordering import rank
from syncline.clustergroup.printing import NO_RELEASE, Release, first, floats, is_empty, printed, whole
from syncline.kube.gotemplate.fmt import sprintf
from syncline.kube.objects import Obj


def _hub(facts: Facts) -> list[Obj]:
    """Return the MultiClusterHub."""
    out, given = facts.printer("multiclusterhub"), facts.section("acm")
    engine = given.get("mce_operator")
    channel = out.field(engine, "channel", "acm.mce_operator")
    chosen = "" if is_empty(channel) else sprintf(',"channel": "%s"', channel)
    source = printed(first(out.field(engine, "source", "acm.mce_operator"), CATALOGUE))
    annotations = {
        "installer.open-cluster-management.io/mce-subscription-spec": out.single(f'{{"source": "{source}"{chosen} }}'),
        "patterns.gitops.validatedpatterns.io/managed": "true",
    }
    return [
        {
            "apiVersion": "operator.open-cluster-management.io/v1",
            "kind": "MultiClusterHub",
            "metadata": {
                "name": "multiclusterhub",
                "namespace": "open-cluster-management",
                "annotations": annotations,
            },
            "spec": given.get("mch_spec"),
        }
    ]


def _set_binding(facts: Facts) -> list[Obj]:
    """Return what lets Placements choose from the clusters of the default set."""
    if is_empty(facts.section("clusterGroup").get("managedClusterGroups")):
        return []
    metadata = {"name": "default", "annotations": LATER}
    binding: Obj = {
        "apiVersion": f"{CLUSTERS}/v1beta2",
        "kind": "ManagedClusterSetBinding",
        "metadata": metadata,
        "spec": {"clusterSet": "default"},
    }
    return [binding]


Part = Callable[[Facts], list[Obj]]
PARTS: Final[tuple[Part, ...]] = (
    _hub,
    authorities.authorities,
    applications.policies,
    _set_binding,
    gitops.policies,
    authorities.credentials,
    provision.deployments,
    provision.pools,
    provision.sets,
    secrets.aws,
    secrets.azure,
    secrets.common,
)
"""What makes the objects, in the order of the chart's files."""


def values_of(files: Iterable[Mapping[str, Any]]) -> Obj:
    """Return the values that given files and the chart's defaults make; the chart has no schema."""
    found: Obj = floats(filled(layered(files), DEFAULTS))
    return found


def render(values: Obj) -> list[Obj]:
    """Return the objects. ``values``: from :func:`values_of`. Raises :class:`RenderFailed`."""
    return sorted(objects_of(values), key=rank)


def objects_of(values: Obj, release: Release = NO_RELEASE) -> list[Obj]:
    """Return the objects in the order of the chart's files. Raises :class:`RenderFailed`."""
    facts = Facts(values, release)
    found: list[Obj] = whole([one for part in PARTS for one in part(facts)])
    return found
