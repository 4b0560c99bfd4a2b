"""The Argo CD cluster Secret of each ManagedCluster (basic variant; reference ocm-pull-model §9.7).

Its address is a placeholder that nothing connects to: the Secret only lets generators see the cluster.
"""

from __future__ import annotations

from syncline.argo.clusters import SECRET_TYPE
from syncline.control.plan import Create, Delete, Plan
from syncline.kube.objects import Obj, is_terminating


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
        "stringData": {"name": name, "server": f"https://{name}-control-plane:6443"},
    }
    return Plan(((Create(made, f"let generators see cluster {name}"),),), why=f"cluster {name} has no Secret")
