"""The Argo CD cluster Secret of each ManagedCluster (basic variant; reference ocm-pull-model §9.7).

Its address is a placeholder that nothing connects to: the Secret only lets generators see the cluster.
"""

from __future__ import annotations

from syncline.argo.clusters import SECRET_TYPE
from syncline.control.plan import Create, Delete, Plan
from syncline.fleet.pull.gitops_secrets import field_of
from syncline.kube.objects import Obj, is_terminating


def placeholder(cluster: str) -> str:
    """Return the address in the Secret of a cluster that pulls."""
    return f"https://{cluster}-control-plane:6443"


def is_placeholder(secret: Obj, cluster: str) -> bool:
    """Return whether a Secret is one that :func:`plan_cluster` made: without a credential, with the placeholder."""
    return field_of(secret, "server") == placeholder(cluster) and not field_of(secret, "config")


def plan_cluster(name: str, cluster: Obj | None, secret: Obj | None, namespace: str) -> Plan:
    """Plan the Secret of the cluster ``name`` in Argo CD's namespace. ``secret`` is the one there; it isn't changed."""
    if cluster is None or is_terminating(cluster):
        gone = f"cluster {name} is gone"
        return Plan(((Delete.of(secret, gone),),) if secret is not None else (), why=gone)
    if secret is not None:
        return Plan(why="the Secret exists")
    made: Obj = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"{name}-secret",
            "namespace": namespace,
            "labels": {SECRET_TYPE: "cluster"},
        },
        "type": "Opaque",
        "stringData": {"name": name, "server": placeholder(name)},
    }
    return Plan(((Create(made, f"let generators see cluster {name}"),),), why=f"cluster {name} has no Secret")
