"""Resolves the destination of an Application to a cluster.

Called by validation and observation with the Secrets of the control namespace. Pure. Rules: Argo CD ``util/argo``
GetDestinationCluster and ``util/db`` clusters (reference argocd-app 1.8, 5.8). Only :func:`cluster_access` reads
credentials, for code that connects; no plan ever contains them.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from syncline.base.secret import Secret
from syncline.kube.objects import Obj, dig, labels_of
from syncline.kube.transport.kubeconfig import ClusterAccess

IN_CLUSTER_SERVER = "https://kubernetes.default.svc"
IN_CLUSTER_NAME = "in-cluster"
SECRET_TYPE = "argocd.argoproj.io/secret-type"


class ClusterError(ValueError):
    """A cluster Secret is invalid."""


@dataclass(frozen=True, slots=True, order=True)
class Cluster:
    """A declared cluster, without its credentials."""

    server: str
    name: str
    project: str = ""
    namespaces: tuple[str, ...] = ()
    """The only namespaces that may be written; cluster-scoped objects need ``cluster_resources``; empty: all."""
    cluster_resources: bool = False

    @property
    def is_here(self) -> bool:
        """Whether this is the cluster of the Applications."""
        return self.server == IN_CLUSTER_SERVER

    def refuses(self, kind: str, namespace: str, name: str) -> str:
        """Return why the Secret of the cluster leaves an object out, in upstream's words; empty: it does not. Source:
        gitops-engine GetManagedLiveObjs."""
        if not self.namespaces or (namespace in self.namespaces if namespace else self.cluster_resources):
            return ""
        if not namespace:
            return f'cluster level {kind} "{name}" can not be managed when in namespaced mode'
        return f'namespace "{namespace}" for {kind} "{name}" is not managed'


HERE = Cluster(IN_CLUSTER_SERVER, IN_CLUSTER_NAME)


def clusters_of(secrets: Iterable[Obj], *, here: bool = True) -> tuple[Cluster, ...]:
    """Return the clusters of the Secrets, sorted, and the local one unless a Secret declares it.

    ``here`` False: the local cluster is disabled (``cluster.inClusterEnabled``) under any name.
    """
    found = [_parse(secret) for secret in secrets if is_cluster_secret(secret)]
    declared = [cluster for cluster in found if cluster.server]
    if not here:
        return tuple(sorted(cluster for cluster in declared if not cluster.is_here))
    implicit = [] if any(cluster.is_here for cluster in declared) else [HERE]
    return tuple(sorted([*declared, *implicit]))


def _parse(secret: Obj) -> Cluster:
    data = dig(secret, "data", default={}) or {}
    server = secret_text(data.get("server")).rstrip("/")
    spaces = tuple(part.strip() for part in secret_text(data.get("namespaces")).split(",") if part.strip())
    wide = secret_text(data.get("clusterResources")) == "true"
    return Cluster(server, secret_text(data.get("name")) or server, secret_text(data.get("project")), spaces, wide)


def is_cluster_secret(obj: Obj) -> bool:
    return labels_of(obj).get(SECRET_TYPE) == "cluster"


def is_placeholder(secret: Obj) -> bool:
    """Return whether a Secret stands for a cluster that pulls its Applications: it has no credential, and an address
    that nothing connects to. Generators see the cluster by it. Source: OCM's Argo CD integrations."""
    data, cluster = dig(secret, "data", default={}) or {}, _parse(secret)
    address = f"https://{cluster.name}-control-plane"
    return not secret_text(data.get("config")) and cluster.server in (address, f"{address}:6443")


def cluster_access(secret: Obj) -> ClusterAccess:
    """Parse the access data in ``config`` of the Secret. Raises :class:`ClusterError`; its text contains no value."""
    data = dig(secret, "data", default={}) or {}
    server = secret_text(data.get("server")).rstrip("/")
    try:
        config = json.loads(secret_text(data.get("config")) or "{}")
    except (ValueError, RecursionError) as error:
        raise ClusterError(f'cluster "{server}": its config is no JSON') from error
    if not isinstance(config, dict):
        raise ClusterError(f'cluster "{server}": its config must be an object')
    for refused in ("execProviderConfig", "awsAuthConfig"):
        if config.get(refused):
            raise ClusterError(
                f'cluster "{server}": {refused} runs a program for credentials, which is not supported; '
                "give bearerToken or a client certificate in tlsClientConfig"
            )
    if config.get("username"):
        raise ClusterError(f'cluster "{server}": user name and password are not supported; give bearerToken')
    tls = config.get("tlsClientConfig")
    tls = tls if isinstance(tls, dict) else {}
    if tls.get("insecure") and tls.get("caData"):
        raise ClusterError(f'cluster "{server}": tlsClientConfig has both insecure and caData; take one away')
    token, key = config.get("bearerToken"), secret_text(tls.get("keyData"))
    return ClusterAccess(
        server=server,
        ca_pem=secret_text(tls.get("caData")),
        certificate_pem=secret_text(tls.get("certData")),
        key_pem=Secret(key) if key else None,
        token=Secret(str(token)) if token else None,
        skip_tls_verify=tls.get("insecure") is True,
        tls_server_name=str(tls.get("serverName") or ""),
        proxy_url=str(config.get("proxyUrl") or ""),
    )


def secret_text(encoded: object) -> str:
    """Return one decoded value of a Secret's data; empty if absent or invalid."""
    try:
        return base64.b64decode(str(encoded or ""), validate=True).decode().strip()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def resolve_destination(destination: Obj, clusters: tuple[Cluster, ...]) -> Cluster | str:
    """Return the cluster of ``spec.destination``, or upstream's error message."""
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
        missing = "is disabled" if server == IN_CLUSTER_SERVER else "not found"
        return (
            f"there are no clusters with this name: {name}"
            if name
            else f'error getting cluster by server "{server}": cluster "{server}" {missing}'
        )
    same = declared_twice(clusters).get(named[0].server, ())
    if same:
        # Which Secret's project and credentials apply would be random.
        return f"there are {len(same)} clusters with the same server {named[0].server}: [{' '.join(same)}]"
    return named[0]


def destination_of(app: Obj, clusters: tuple[Cluster, ...]) -> Cluster | str:
    """Return the cluster of an Application, or an error message; for controllers and commands."""
    return resolve_destination(dig(app, "spec", "destination", default={}) or {}, clusters)


def own_clusters(clusters: Iterable[Cluster], project: str) -> list[dict[str, str]]:
    """Return server and name of the clusters that belong to a project."""
    return [{"server": one.server, "name": one.name} for one in clusters if one.project == project]


def declared_twice(clusters: Iterable[Cluster]) -> dict[str, tuple[str, ...]]:
    """Return the servers that several Secrets declare, with the names in these.

    Not the cluster of the Applications if they differ by name alone: it is written with the controllers' own rights.
    """
    found: dict[str, tuple[Cluster, ...]] = {}
    for one in clusters:
        found[one.server] = (*found.get(one.server, ()), one)
    return {
        server: tuple(one.name for one in same)
        for server, same in found.items()
        if len(same) > 1 and not (same[0].is_here and len({replace(one, name="") for one in same}) == 1)
    }
