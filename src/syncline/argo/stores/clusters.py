"""Clusters as argocd's API has them, and as Secrets hold them. Pure. Rules: Argo CD ``util/db/cluster.go``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from syncline.argo.clusters import IN_CLUSTER_NAME, IN_CLUSTER_SERVER, is_cluster_secret
from syncline.argo.stores.secrets import ARGO_CD, LABEL, MANAGED_BY, encoded, fields_of
from syncline.kube.objects import Obj, annotations_of, labels_of, meta

REFRESH = "argocd.argoproj.io/refresh"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
UPDATABLE = ("name", "namespaces", "config", "shard", "clusterResources", "labels", "annotations", "project")
"""Fields that an update may name."""
COMPARED = ("server", "name", "namespaces", "shard", "clusterResources", "annotations", "labels", "config")
HERE: Obj = {"server": IN_CLUSTER_SERVER, "name": IN_CLUSTER_NAME, "config": {}}
"""The cluster of the Applications where no Secret declares it."""


def record_of(secret: Obj) -> Obj:
    """Return the cluster that a Secret declares, with its credentials. A config that is no object counts as empty."""
    data = fields_of(secret)
    try:
        config: Any = json.loads(data.get("config") or "{}")
    except (ValueError, RecursionError):
        config = {}
    kept = {key: value for key, value in labels_of(secret).items() if key != LABEL}
    notes = {key: value for key, value in annotations_of(secret).items() if key not in (LAST_APPLIED, MANAGED_BY)}
    shard = data.get("shard", "")
    found: Obj = {
        "server": data.get("server", "").rstrip("/"),
        "name": data.get("name", ""),
        "config": config if isinstance(config, dict) else {},
        "namespaces": [part.strip() for part in data.get("namespaces", "").split(",") if part.strip()],
        "clusterResources": data.get("clusterResources") == "true",
        "shard": int(shard) if shard.isdigit() else None,
        "project": data.get("project", ""),
        "labels": kept,
        "annotations": notes,
        "refreshRequestedAt": notes.get(REFRESH),
    }
    return {key: value for key, value in found.items() if value or key in ("server", "name", "config", "shard")}


def records_of(secrets: Iterable[Obj], *, here: bool) -> list[Obj]:
    """Return the declared clusters in the order of their Secrets, and the local one last unless a Secret declares it.
    ``here`` False: the local cluster is disabled."""
    found = [record_of(secret) for secret in secrets if is_cluster_secret(secret)]
    if not here:
        return [one for one in found if one["server"] != IN_CLUSTER_SERVER]
    return found if any(one["server"] == IN_CLUSTER_SERVER for one in found) else [*found, HERE]


def secret_written(record: Obj, secret: Obj) -> Obj:
    """Return a Secret that holds a cluster, and nothing that it held before."""
    fields = {
        "server": str(record.get("server") or "").rstrip("/"),
        "name": record.get("name") or record.get("server") or "",
        "namespaces": ",".join(record.get("namespaces") or ()),
        "config": json.dumps(_config(record), sort_keys=True),
        "shard": "" if record.get("shard") is None else str(record["shard"]),
        "clusterResources": "true" if record.get("clusterResources") else "",
        "project": record.get("project") or "",
    }
    notes = {key: value for key, value in (record.get("annotations") or {}).items() if key != REFRESH}
    if record.get("refreshRequestedAt"):
        notes[REFRESH] = record["refreshRequestedAt"]
    metadata = dict(meta(secret)) | {
        "labels": {**(record.get("labels") or {}), LABEL: "cluster"},
        "annotations": {**notes, MANAGED_BY: ARGO_CD},
    }
    return secret | {"metadata": metadata, "data": encoded({key: text for key, text in fields.items() if text})}


def _config(record: Obj) -> Obj:
    config = {key: value for key, value in (record.get("config") or {}).items() if value}
    tls = {key: value for key, value in (config.get("tlsClientConfig") or {}).items() if value}
    return config | {"tlsClientConfig": {"insecure": False, **tls}}


def shown_cluster(record: Obj) -> Obj:
    """Return what may be seen of a cluster: of its configuration neither token, password, key nor program."""
    config = _config(record)
    tls = config["tlsClientConfig"]
    kept = {key: config[key] for key in ("awsAuthConfig", "proxyUrl", "disableCompression") if config.get(key)}
    safe = {"insecure": bool(tls.get("insecure")), "serverName": str(tls.get("serverName") or "")}
    return record | {"config": kept | {"tlsClientConfig": safe}}


def differing_fields(one: Obj, other: Obj) -> tuple[str, ...]:
    """Return the fields in which two clusters differ, as upstream's types name them."""
    left, right = ({**record, "config": _config(record)} for record in (one, other))
    return tuple(
        field[0].upper() + field[1:] for field in COMPARED if (left.get(field) or None) != (right.get(field) or None)
    )


def updated(known: Obj, given: Obj, fields: Iterable[str]) -> Obj:
    """Return a cluster with these fields of another; unknown names change nothing."""
    wanted = [field for field in fields if field in UPDATABLE]
    kept = {key: value for key, value in known.items() if key not in wanted}
    return kept | {field: given[field] for field in wanted if field in given}
