"""Joining a hub: the cluster that is proposed, whether a name is free, and what a cluster waits for; pure.

Rules: ``pkg/registration/spoke/registration/creating_controller.go`` of upstream (reference ocm-pull-model §1.3). What
upstream does not do: a name that another cluster has is refused.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from syncline.fleet.conditions import is_true
from syncline.fleet.hub.registration.leases import ACCEPTED, JOINED
from syncline.kube.certificates import is_approved, issued_certificate
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER
from syncline.kube.objects import Obj, annotations_of, dig, name_of
from syncline.kube.text.names import dns_label

AGENT_PREFIX: Final = "agent.open-cluster-management.io/"
"""Annotations that an agent may set when it proposes its cluster."""
CLUSTER_UID: Final = AGENT_PREFIX + "cluster-uid"
"""The uid of the cluster's namespace kube-system, by which it is known again."""
ID_CLAIM: Final = "id.k8s.io"


@dataclass(frozen=True, slots=True)
class Own:
    """What an agent knows of the cluster that joins; empty: unknown."""

    name: str
    uid: str = ""
    claim: str = ""
    """Its ClusterClaim id.k8s.io."""
    url: str = ""
    ca_pem: str = ""

    def config(self) -> Obj | None:
        """Return how the hub may reach the cluster's API; None: it cannot be said."""
        if not self.url.startswith("https://"):
            return None
        return {"url": self.url, "caBundle": base64.b64encode(self.ca_pem.encode()).decode()}


def proposed(own: Own, annotations: Mapping[str, str] | None = None) -> Obj:
    """Return the ManagedCluster to create. ``annotations``: only those that begin with :data:`AGENT_PREFIX` count."""
    notes = {key: value for key, value in (annotations or {}).items() if key.startswith(AGENT_PREFIX)}
    if own.uid:
        notes[CLUSTER_UID] = own.uid
    config = own.config()
    configs = {"managedClusterClientConfigs": [config]} if config else {}
    return {
        "apiVersion": MANAGED_CLUSTER.api_version,
        "kind": MANAGED_CLUSTER.kind,
        "metadata": {"name": own.name, **({"annotations": notes} if notes else {})},
        "spec": {"hubAcceptsClient": False, **configs},
    }


def name_problem(name: str) -> str:
    """Return why a name cannot be that of a cluster, or "": it is also that of a namespace."""
    problems = dns_label(name)
    return problems[0] if problems else ""


def with_config(live: Obj, own: Own) -> Obj | None:
    """Return the ManagedCluster with how to reach the cluster added; None: it is there, or unknown."""
    config = own.config()
    known = dig(live, "spec", "managedClusterClientConfigs") or []
    if config is None or any(one.get("url") == own.url for one in known):
        return None
    return {**live, "spec": {**live["spec"], "managedClusterClientConfigs": [*known, config]}}


def refusal(live: Obj, own: Own) -> str:
    """Return why this cluster may not join under the name of a registered one, or "". A cluster that was registered
    beforehand by people, and never joined, is free."""
    fix = f"choose another --name, or let the hub remove it first: kubectl delete managedcluster {own.name}"
    head = f"the hub has a cluster {own.name} already, and it is another one"
    known = annotations_of(live).get(CLUSTER_UID, "")
    if known and own.uid:
        return "" if known == own.uid else f"{head} (uid {known}, this one has {own.uid}); {fix}"
    claims = {str(one.get("name")): str(one.get("value")) for one in dig(live, "status", "clusterClaims") or ()}
    claimed = claims.get(ID_CLAIM, "")
    if claimed and own.claim:
        return "" if claimed == own.claim else f"{head} ({ID_CLAIM} {claimed}, this one has {own.claim}); {fix}"
    config, configs = own.config(), dig(live, "spec", "managedClusterClientConfigs") or []
    if config and configs:
        pairs = {(one.get("url"), one.get("caBundle") or "") for one in configs}
        if (config["url"], config["caBundle"]) in pairs:
            return ""
        return f"{head} (its API is at {configs[0].get('url')}, this one's at {own.url}); {fix}"
    if is_true(dig(live, "status", "conditions") or (), JOINED):
        return f"the hub has a joined cluster {own.name}, and nothing shows that it is this one; {fix}"
    return ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a joining cluster waits for, who decides, and what they type."""

    what: str
    command: str

    def __str__(self) -> str:
        return f"waiting for {self.what}; an administrator of the hub types: {self.command}"


def waiting_for(cluster: Obj, request: Obj | None) -> Waiting | None:
    """Return what is missing of the two gates; None: nothing. ``request``: that of the certificate; None: there is a
    certificate."""
    name = name_of(cluster)
    accepted = is_true(dig(cluster, "status", "conditions") or (), ACCEPTED)
    accept = f"syncline cluster accept {name}"
    if request is not None and not is_approved(request):
        approve = f"kubectl certificate approve {name_of(request)}"
        if accepted:
            return Waiting(f"the approval of request {name_of(request)}", approve)
        return Waiting(f"the acceptance of cluster {name} and the approval of request {name_of(request)}", accept)
    if request is not None and not issued_certificate(request)[0]:
        return Waiting(f"the certificate of request {name_of(request)}", f"kubectl describe csr {name_of(request)}")
    if not accepted:
        return Waiting(f"the acceptance of cluster {name}", accept)
    return None
