"""Leaving a hub: the hub lets go first, while the agent still cleans up; then goes what is left on the cluster; then
the credentials.

Deleting the ManagedCluster on the hub deletes its works, and the agent what they applied. A running agent that finds
the mark of :func:`mark` ends itself once the hub has nothing of the cluster any more.
"""

from __future__ import annotations

import hashlib
from typing import Final

from syncline.assembly.ports import HttpPort
from syncline.control.manager import Port
from syncline.hosts.fleet.joining import CLUSTERS, Say
from syncline.hosts.fleet.places import Joining, Place
from syncline.hosts.fleet.secrets import SECRET, SecretKeep
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.errors import ApiError
from syncline.kube.kinds.manifestworks import APPLIED_WORK
from syncline.kube.objects import Obj, ResourceInfo, dig, finalizers, name_of, resource_version, uid_of
from syncline.kube.transport.kubeconfig import ClusterAccess

MARK: Final = "leaving"
APPLIED: Final = ResourceInfo(
    APPLIED_WORK.group, APPLIED_WORK.version, APPLIED_WORK.kind, "appliedmanifestworks", namespaced=False
)
MAX_PAGE: Final = 500
ATTEMPTS: Final = 10
"""Writes that may lose against the cluster's own."""
OWN_FINALIZERS: Final = "cluster.open-cluster-management.io/"
"""What finalizers of the agent begin with; others, also that of an orphaning deletion, stay."""


def mark(place: Place, *, keep_objects: bool = False) -> None:
    """Make the agent of a directory leave as soon as its hub let go. ``keep_objects``: what was applied stays."""
    (place.folder / MARK).write_text("keep objects\n" if keep_objects else "")


def is_marked(place: Place) -> bool:
    return (place.folder / MARK).exists()


async def released(hub: ClusterAccess, cluster: str) -> str:
    """Delete the ManagedCluster with the rights of an administrator of the hub; return what happened in words. Raises
    ApiError."""
    port = HttpPort(hub)
    try:
        answer = await port.send(client.delete(CLUSTERS, "", cluster))
        if answer.status == 404:
            return f"the hub {hub.server} has no cluster {cluster}"
        answer.or_raise()
        return f"the hub {hub.server} deletes cluster {cluster} and its works"
    finally:
        await port.close()


async def clean_up(place: Place, joining: Joining, spoke: ClusterAccess, say: Say) -> None:
    """Delete what is left on the cluster of the works of this hub, then the files. What the cluster refuses is said,
    and stops nothing: the credentials go in any case."""
    keep = is_marked(place) and "keep" in (place.folder / MARK).read_text()
    port = HttpPort(spoke)
    try:
        count = await applied_gone(port, joining, keep_objects=keep)
        if count:
            say(f"{count} AppliedManifestWorks of the hub were left; {'their objects stay' if keep else 'they go'}")
    except ApiError as error:
        say(f"what the hub applied could not be cleaned up: {error}; look at kubectl get appliedmanifestworks")
    try:
        if joining.keep == SECRET:
            await SecretKeep(port).remove()
    except ApiError as error:
        say(f"the Secrets of the agent could not be deleted: {error}")
    finally:
        await port.close()
    (place.folder / MARK).unlink(missing_ok=True)
    place.remove()
    say(f"cluster {joining.cluster} has left the hub {joining.hub}; its credentials are deleted")


async def applied_gone(port: Port, joining: Joining, *, keep_objects: bool) -> int:
    """Delete the AppliedManifestWorks of this hub and agent. Their finalizer is the agent's, which ends: the cluster's
    garbage collector deletes what they own."""
    found = await port.send(client.list_(APPLIED, limit=MAX_PAGE))
    if found.status == 404:
        return 0
    mine = [one for one in found.or_raise().get("items") or () if _is_mine(one, joining)]
    for one in mine:
        propagation = "Orphan" if keep_objects else "Background"
        deleted = await port.send(client.delete(APPLIED, "", name_of(one), uid=uid_of(one), propagation=propagation))
        if deleted.status != 404:
            deleted.or_raise()
        await _released(port, name_of(one))
    return len(mine)


async def _released(port: Port, name: str) -> None:
    """Take the agent's finalizers away; those of the cluster, as that of an orphaning deletion, are not touched."""
    for _ in range(ATTEMPTS):
        found = await port.send(client.get(APPLIED, "", name))
        if found.status == 404:
            return
        live: Obj = found.or_raise()
        kept = [each for each in finalizers(live) if not each.startswith(OWN_FINALIZERS)]
        body = {"metadata": {"finalizers": kept, "resourceVersion": resource_version(live)}}
        answer = await port.send(client.patch(APPLIED, "", name, PatchType.MERGE, body))
        if answer.status not in (404, 409):
            answer.or_raise()
        if answer.status != 409:
            return


def _is_mine(applied: Obj, joining: Joining) -> bool:
    digest = hashlib.sha256(joining.hub.encode()).hexdigest()
    return bool(
        dig(applied, "spec", "hubHash") == digest and dig(applied, "spec", "agentID") in (joining.agent, None, "")
    )
