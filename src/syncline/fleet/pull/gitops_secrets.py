"""The Argo CD cluster Secrets of a GitOpsCluster (reference ocm-pull-model §10): blank ones for clusters that pull, or
those that an import left in the namespace of each cluster.
"""

from __future__ import annotations

import base64
import binascii
import json

from syncline.apply.last_applied import LAST_APPLIED
from syncline.argo.clusters import SECRET_TYPE
from syncline.fleet.pull.names import APPS
from syncline.kube.objects import Obj, annotations_of, labels_of, name_of

OURS = f"{APPS}/acm-cluster"
CLUSTER_NAME = f"{APPS}/cluster-name"
CLUSTER_SERVER = f"{APPS}/cluster-server"
DATA_SOURCE = f"{APPS}/data-source"
AGENT_NAME = "argocd-agent.argoproj-labs.io/agent-name"
COMPONENT = "application-manager"
SUFFIX = "-cluster-secret"


def imported_names(cluster: str) -> tuple[str, str]:
    """Return the names under which an import leaves the Secret, the usual one first."""
    return f"{cluster}{SUFFIX}", f"{cluster}-{COMPONENT}{SUFFIX}"


def field_of(secret: Obj, key: str) -> str:
    """Return a field of a Secret as text; empty if there is none or it can't be read."""
    if plain := (secret.get("stringData") or {}).get(key):
        return str(plain)
    try:
        return base64.b64decode((secret.get("data") or {}).get(key) or "").decode()
    except (binascii.Error, UnicodeDecodeError, TypeError):
        return ""


def is_cluster_secret(secret: Obj) -> bool:
    return labels_of(secret).get(SECRET_TYPE) == "cluster"


def blank_secret(namespace: str, cluster: Obj, account: str) -> Obj:
    """Return the Secret of a cluster that pulls: its address is a placeholder that nothing connects to."""
    name = name_of(cluster)
    labels = {CLUSTER_NAME: name, CLUSTER_SERVER: f"{name}-control-plane", DATA_SOURCE: "blank"}
    values = {"name": name, "server": f"https://{name}-control-plane"}
    return _secret(f"{name}-{account or COMPONENT}{SUFFIX}", namespace, cluster, labels, values)


def blank_import(cluster: str) -> Obj:
    """Return the Secret that stands for an import in the namespace of a cluster that pulls."""
    labels = {CLUSTER_NAME: cluster, CLUSTER_SERVER: f"{cluster}-control-plane"}
    values = {"name": cluster, "server": f"https://{cluster}-control-plane"}
    metadata = {"name": f"{cluster}-{COMPONENT}{SUFFIX}", "namespace": cluster, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "stringData": values}


def address_of(cluster: Obj) -> str:
    """Return the first address of a cluster's API that its ManagedCluster names; empty: it names none."""
    configs = (cluster.get("spec") or {}).get("managedClusterClientConfigs") or ()
    url = next((str(one.get("url") or "") for one in configs), None)
    if url is None:
        return ""
    return url if url.strip().startswith(("http://", "https://")) else f"https://{url}"


def token_problem(imported: Obj) -> str:
    """Return why an imported Secret has no token, in upstream's words; empty: it has one."""
    text = field_of(imported, "config")
    if not text:
        return "empty secret data config"
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return "failed to unmarshal JSON: its config is no JSON"
    token = config.get("bearerToken") if isinstance(config, dict) else None
    return "" if token else "bearerToken field is missing or empty"


def imported_secret(namespace: str, cluster: Obj, imported: Obj, server: str) -> Obj:
    """Return Argo CD's copy of the Secret that an import left. ``server``: where the Secret has none, the cluster's."""
    labels = {key: labels_of(imported).get(key, "") for key in (CLUSTER_NAME, CLUSTER_SERVER)}
    values = {**{key: field_of(imported, key) for key in ("config", "name")}, "server": server}
    return _secret(name_of(imported), namespace, cluster, labels, values)


def _secret(name: str, namespace: str, cluster: Obj, labels: dict[str, str], values: dict[str, str]) -> Obj:
    """A Secret with the cluster's own labels, for the selectors of generators; ours win."""
    labels = {**labels_of(cluster), SECRET_TYPE: "cluster", OURS: "true", **labels}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "stringData": values}


def updated(live: Obj, wanted: Obj) -> Obj:
    """Return the live Secret with our content; annotations stay, but for those of agents and of kubectl."""
    kept = {key: one for key, one in annotations_of(live).items() if key not in ("managed-by", LAST_APPLIED)}
    labels = {key: one for key, one in labels_of(wanted).items() if key != AGENT_NAME}
    metadata = {**live["metadata"], "labels": labels, "annotations": kept}
    return {**wanted, "metadata": metadata}
