"""Which cluster an Application's destination means.

Called by validation and observation with the Secrets of the control namespace. Pure. Rules: Argo CD ``util/argo``
GetDestinationCluster and ``util/db`` clusters (reference argocd-app 1.8, 5.8). Applications are applied to the cluster
that they live in; a destination that is known but elsewhere is refused with the way out.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from dataclasses import dataclass

from syncline.kube.objects import Obj, dig, labels_of

__all__ = ["HERE", "IN_CLUSTER_NAME", "IN_CLUSTER_SERVER", "Cluster", "clusters_of", "resolve_destination"]

IN_CLUSTER_SERVER = "https://kubernetes.default.svc"
IN_CLUSTER_NAME = "in-cluster"
_TYPE = "argocd.argoproj.io/secret-type"


@dataclass(frozen=True, slots=True, order=True)
class Cluster:
    """A cluster Secret without its credentials."""

    server: str
    name: str
    project: str = ""

    @property
    def is_here(self) -> bool:
        """The cluster in which Applications live."""
        return self.server == IN_CLUSTER_SERVER


HERE = Cluster(IN_CLUSTER_SERVER, IN_CLUSTER_NAME)


def clusters_of(secrets: Iterable[Obj]) -> tuple[Cluster, ...]:
    """The clusters that Secrets declare, and the one we are in unless one of them is about it; in order."""
    found = [_parse(secret) for secret in secrets if labels_of(secret).get(_TYPE) == "cluster"]
    declared = [cluster for cluster in found if cluster.server]
    implicit = [] if any(cluster.is_here for cluster in declared) else [HERE]
    return tuple(sorted([*declared, *implicit]))


def _parse(secret: Obj) -> Cluster:
    data = dig(secret, "data", default={}) or {}
    server = _text(data.get("server")).rstrip("/")
    return Cluster(server, _text(data.get("name")) or server, _text(data.get("project")))


def _text(encoded: object) -> str:
    try:
        return base64.b64decode(str(encoded or ""), validate=True).decode().strip()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def resolve_destination(destination: Obj, clusters: tuple[Cluster, ...]) -> Cluster | str:
    """The cluster of ``spec.destination``, or why there is none, in upstream's words."""
    server = str(destination.get("server") or "").rstrip("/")
    name = str(destination.get("name") or "")
    if server and name:
        return f"application destination can't have both name and server defined: {name} {server}"
    if not server and not name:
        return "Destination server missing from app spec"
    named = [one for one in clusters if (one.name == name if name else one.server == server)]
    if name and len(named) > 1:
        return f"there are {len(named)} clusters with the same name: [{' '.join(one.server for one in named)}]"
    if not named:
        return (
            f"there are no clusters with this name: {name}"
            if name
            else f'error getting cluster by server "{server}": cluster "{server}" not found'
        )
    if not named[0].is_here:
        return (
            f'cluster "{named[0].name}" ({named[0].server}) is declared, but Applications are applied only to the '
            f"cluster that they live in; create the Application there, with destination name {IN_CLUSTER_NAME}"
        )
    return named[0]
