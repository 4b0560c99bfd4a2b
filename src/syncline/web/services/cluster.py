"""ClusterService: lists the clusters to which Applications may be sent. Rules: Argo CD ``server/cluster/cluster.go``.

Credentials never leave: of a cluster's ``config`` only what upstream shows stands in an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from syncline.argo.clusters import HERE, clusters_of, is_cluster_secret, secret_text
from syncline.kube.objects import Obj, dig
from syncline.web.access import Access
from syncline.web.state import SECRET, State
from syncline.web.wire.calls import Call, Handler


@dataclass(frozen=True, slots=True)
class Clusters:
    """The service; see :meth:`handlers`."""

    state: State
    access: Access

    def handlers(self) -> Mapping[str, Handler]:
        """Return the handlers of the service."""
        return {"/cluster.ClusterService/List": self.list}

    async def list(self, call: Call, query: Obj) -> Obj:
        """Return the clusters that a query selects and its caller may get, by name."""
        wanted = query.get("id") or {}
        by_name = [query.get("name"), wanted.get("value") if wanted.get("type") == "name" else None]
        by_server = [query.get("server"), wanted.get("value") if wanted.get("type") in (None, "", "server") else None]
        found = [
            cluster
            for cluster in self._shown()
            if all(not name or cluster["name"] == name for name in by_name)
            and all(not server or cluster["server"] == server for server in by_server)
            and self.access.permits(call.caller, "clusters", "get", _right(cluster))
        ]
        return {"metadata": {}, "items": found}

    def _shown(self) -> Iterator[Obj]:
        here = str(self.state.data("argocd-cm").get("cluster.inClusterEnabled", "true")).lower() != "false"
        secrets = [one for one in self.state.cache.objects(SECRET, self.state.namespace) if is_cluster_secret(one)]
        by_server = {secret_text(dig(one, "data", "server")).rstrip("/"): one for one in secrets}
        for cluster in clusters_of(secrets, here=here):
            secret = by_server.get(cluster.server)
            shown: Obj = {
                "server": cluster.server,
                "name": cluster.name,
                "config": _config(secret),
                "info": {"connectionState": {"status": "Unknown", "message": ""}},
                "connectionState": {"status": "Unknown", "message": ""},
            }
            if cluster is HERE:
                shown["info"]["serverVersion"] = shown["serverVersion"] = self.state.mapper.version
            yield shown | {
                key: value
                for key, value in (
                    ("project", cluster.project),
                    ("namespaces", list(cluster.namespaces)),
                    ("clusterResources", cluster.cluster_resources),
                )
                if value
            }


def _right(cluster: Obj) -> str:
    """Return how rights name a cluster (upstream: ``CreateClusterRBACObject``)."""
    project = cluster.get("project")
    return f"{project}/{cluster['server']}" if project else str(cluster["server"])


def _config(secret: Obj | None) -> Obj:
    """Return what may be seen of a cluster's configuration."""
    try:
        config: Any = json.loads(secret_text(dig(secret or {}, "data", "config")) or "{}")
    except (ValueError, RecursionError):
        config = {}
    tls: Mapping[str, Any] = (config.get("tlsClientConfig") if isinstance(config, dict) else None) or {}
    return {"tlsClientConfig": {"insecure": bool(tls.get("insecure")), "serverName": str(tls.get("serverName") or "")}}
