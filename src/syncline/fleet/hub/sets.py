"""Cluster sets: which clusters are members of a set, which sets a namespace may select from; pure.

Rules: ``GetClustersFromClusterSet`` and ``GetClusterSetsOfCluster`` of upstream's sdk-go (reference ocm-pull-model §2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from syncline.kube.objects import Obj, dig, labels_of, name_of
from syncline.kube.selectors import Selector, SelectorError, label_selector_from, selector_from_labels

CLUSTER_SET_LABEL: Final = "cluster.open-cluster-management.io/clusterset"
"""The label of a cluster that names its exclusive set."""
EXCLUSIVE, BY_LABELS = "ExclusiveClusterSetLabel", "LabelSelector"


class SetError(ValueError):
    """A set whose members cannot be determined; the text is upstream's."""


def member_selector(cluster_set: Obj) -> Selector:
    """Return the selector for labels of members: the exclusive label, or the set's own selector; a set of type
    LabelSelector without a selector has no members. Raises :class:`SetError`."""
    kind = str(dig(cluster_set, "spec", "clusterSelector", "selectorType", default="") or "")
    if kind in ("", EXCLUSIVE):
        return selector_from_labels({CLUSTER_SET_LABEL: name_of(cluster_set)})
    if kind != BY_LABELS:
        raise SetError(f"selectorType is not right: {kind}")
    try:
        return label_selector_from(dig(cluster_set, "spec", "clusterSelector", "labelSelector"))
    except SelectorError as error:
        raise SetError(str(error)) from None


def is_member(cluster: Obj, cluster_set: Obj) -> bool:
    """Return whether a cluster is a member of a set. Raises :class:`SetError`."""
    return member_selector(cluster_set).matches(labels_of(cluster))


def members(cluster_set: Obj, clusters: Iterable[Obj]) -> list[Obj]:
    """Return the members of a set in the order of ``clusters``, terminating ones too. Raises :class:`SetError`."""
    selector = member_selector(cluster_set)
    return [cluster for cluster in clusters if selector.matches(labels_of(cluster))]


def sets_of(cluster: Obj, sets: Iterable[Obj]) -> list[Obj]:
    """Return the sets that a cluster is a member of. A set that cannot be read has no members."""
    found = []
    for one in sets:
        try:
            if is_member(cluster, one):
                found.append(one)
        except SetError:
            continue
    return found


def valid_bindings(bindings: Iterable[Obj], sets: Mapping[str, Obj]) -> list[str]:
    """Return the sorted names of the bindings of a namespace whose set exists: a binding has the name of its set."""
    return sorted(name_of(one) for one in bindings if name_of(one) in sets)
