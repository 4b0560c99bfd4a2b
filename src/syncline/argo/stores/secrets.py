"""Secrets that declare repositories, credentials and clusters: their names, labels and fields.

Pure. Used by the server and by ``syncline repo`` and ``syncline cluster``. Rules: Argo CD ``util/db/secrets.go``.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from urllib.parse import urlsplit

from syncline.kube.objects import Obj, annotations_of, dig, labels_of, meta

LABEL = "argocd.argoproj.io/secret-type"
MANAGED_BY = "managed-by"
ARGO_CD = "argocd.argoproj.io"
FNV_OFFSET, FNV_PRIME = 2166136261, 16777619


def fnv32a(text: str) -> int:
    """Return the FNV-1a hash, with which Argo CD names these Secrets."""
    value = FNV_OFFSET
    for byte in text.encode():
        value = (value ^ byte) * FNV_PRIME & 0xFFFFFFFF
    return value


def repository_secret_name(url: str, project: str = "", prefix: str = "repo") -> str:
    """Return ``repo-<hash>``: one Secret per URL and project."""
    return f"{prefix}-{fnv32a(url + project)}"


def cluster_secret_name(server: str) -> str:
    """Return ``cluster-<host>-<hash>``; an address of IPv6 has dashes for colons."""
    try:
        host = urlsplit(server).hostname or "local"
    except ValueError:
        host = "local"
    return f"cluster-{host.lower().replace(':', '-')}-{fnv32a(server)}"


def secret_object(kind: str, namespace: str, name: str, fields: Mapping[str, str]) -> Obj:
    """Return a Secret of secret-type ``kind``, without empty fields."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {LABEL: kind},
            "annotations": {MANAGED_BY: ARGO_CD},
        },
        "type": "Opaque",
        "data": encoded({key: value for key, value in sorted(fields.items()) if value}),
    }


def encoded(fields: Mapping[str, str]) -> dict[str, str]:
    """Return texts as the data of a Secret."""
    return {key: base64.b64encode(value.encode()).decode() for key, value in fields.items()}


def fields_of(secret: Obj) -> dict[str, str]:
    """Return all decodable fields, decoded; for look-ups only, never for output."""
    found = {}
    for key, value in (dig(secret, "data", default={}) or {}).items():
        try:
            found[str(key)] = base64.b64decode(str(value), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
    return found


def of_type(secret: Obj, kind: str) -> bool:
    """Return whether a Secret is labelled as one of this type."""
    return labels_of(secret).get(LABEL) == kind


def is_managed(secret: Obj) -> bool:
    """Return whether Argo CD made the Secret, so that removing what it declares deletes it."""
    return annotations_of(secret).get(MANAGED_BY) == ARGO_CD


def unlabelled(secret: Obj) -> Obj:
    """Return a Secret of people without the label by which it declares something: the rest of it stays theirs."""
    labels = {key: value for key, value in labels_of(secret).items() if key != LABEL}
    return secret | {"metadata": dict(meta(secret)) | {"labels": labels}}
