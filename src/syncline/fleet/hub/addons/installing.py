"""Where an add-on is installed: on the clusters that its Placements chose; pure. :func:`installs`.

Rules: ``pkg/addon/controllers/addonmanagement`` of upstream; of a Placement that says it chose clusters, and whose
decisions are not there, nothing is taken away.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from syncline.base.action import Action
from syncline.control.plan import Create, Delete
from syncline.fleet.hub.addons.configuration import Chosen
from syncline.fleet.hub.rollout.model import clusters_of
from syncline.kube.kinds.managedaddons import CLUSTER_ADDON, GROUP, MANAGED_ADDON
from syncline.kube.objects import Obj, annotations_of, dig, is_terminating, name_of, namespace_of, uid_of


def owner_of(cluster_addon: Obj) -> Obj:
    """Return the owner reference by which add-ons go with their ClusterManagementAddOn."""
    return {
        "apiVersion": CLUSTER_ADDON.api_version,
        "kind": CLUSTER_ADDON.kind,
        "name": name_of(cluster_addon),
        "uid": uid_of(cluster_addon),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def addon_notes(obj: Obj) -> dict[str, str]:
    """Return the annotations of a cluster that its add-ons have too."""
    return {key: value for key, value in annotations_of(obj).items() if key.startswith(GROUP)}


def installs(
    cluster_addon: Obj, chosen: Iterable[Chosen], addons: Iterable[Obj], clusters: Mapping[str, Obj]
) -> tuple[Action, ...]:
    """Return the add-ons to create and to delete. ``clusters``: the ManagedClusters that exist."""
    listed = list(chosen)
    wanted = {cluster for one in listed for cluster in clusters_of(one.groups)}
    live = {namespace_of(one): one for one in addons}
    missing = sorted(wanted.difference(live).intersection(clusters))
    made = [_new(cluster_addon, cluster, clusters[cluster]) for cluster in missing]
    actions: list[Action] = [Create(one, f"placements chose cluster {namespace_of(one)}") for one in made]
    if not unknown(listed):
        actions += _removed(live, wanted)
    return tuple(actions)


def unknown(chosen: Iterable[Chosen]) -> str:
    """Return why it is not known which clusters the Placements chose; empty if it is."""
    for one in chosen:
        count = dig(one.placement, "status", "numberOfSelectedClusters") or 0
        if count and not one.groups:
            at = f"{namespace_of(one.placement)}/{name_of(one.placement)}"
            return (
                f"Placement {at} selects {count} clusters but has no PlacementDecisions; nothing is removed until then"
            )
    return ""


def _removed(live: Mapping[str, Obj], wanted: Collection[str]) -> list[Action]:
    going = [one for cluster, one in sorted(live.items()) if cluster not in wanted and not is_terminating(one)]
    return [Delete.of(one, f"no placement chooses cluster {namespace_of(one)} any more") for one in going]


def _new(cluster_addon: Obj, cluster: str, managed_cluster: Obj) -> Obj:
    notes = addon_notes(managed_cluster)
    metadata = {"name": name_of(cluster_addon), "namespace": cluster, "ownerReferences": [owner_of(cluster_addon)]}
    return {
        "apiVersion": MANAGED_ADDON.api_version,
        "kind": MANAGED_ADDON.kind,
        "metadata": metadata | ({"annotations": notes} if notes else {}),
        "spec": {},
    }
