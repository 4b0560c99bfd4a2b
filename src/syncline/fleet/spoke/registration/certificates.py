"""The certificate of an agent: for whom it is, when a new one is due, what the hub is shown of it; pure.

Rules: ``pkg/registration/register/csr`` of upstream (reference ocm-pull-model §1.4).
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from syncline.base.secret import Secret
from syncline.fleet.conditions import condition
from syncline.fleet.hub.registration.leases import CLUSTER_NAME
from syncline.fleet.hub.registration.requests import CLUSTERS_GROUP, PREFIX, SIGNER
from syncline.kube.certificates import Identity, Validity, certificate_request
from syncline.kube.kinds.managedaddons import ADDON_NAME
from syncline.kube.objects import Obj, labels_of

ROTATED: Final = "ClusterCertificateRotated"
USAGES: Final = ("digital signature", "key encipherment", "client auth")
MAX_REQUESTS: Final = 10
"""Requests of a cluster on its hub from which on an agent makes no further one."""
MIN_EXPIRATION_S: Final = 3600
LEFT, SPREAD = 0.2, 0.25
"""A new certificate is due when this share of its life is left, or up to a quarter of that earlier."""


def identity(cluster: str, agent: str) -> Identity:
    """Return user and groups of an agent of a cluster."""
    return Identity(f"{PREFIX}{cluster}:{agent}", (PREFIX + cluster, CLUSTERS_GROUP))


def named_by(user: str) -> tuple[str, str] | None:
    """Return cluster and agent of a user name; None if it is not an agent's."""
    cluster, colon, agent = user.removeprefix(PREFIX).partition(":")
    valid = user.startswith(PREFIX) and colon and cluster and agent and ":" not in agent
    return (cluster, agent) if valid else None


def request(cluster: str, agent: str, key: Secret, expiration_s: int = 0) -> Obj:
    """Return the request for the certificate of an agent. ``expiration_s``: as checked by
    :func:`expiration_problem`."""
    metadata = {"generateName": f"{cluster}-", "labels": {CLUSTER_NAME: cluster}}
    return certificate_request(
        identity(cluster, agent), key, SIGNER, metadata, expiration_s=expiration_s, usages=USAGES
    )


def expiration_problem(seconds: int) -> str:
    """Return why a certificate may not be asked for with this lifetime, or ""."""
    if seconds == 0 or seconds >= MIN_EXPIRATION_S:
        return ""
    return f"client certificate expiration seconds must be at least {MIN_EXPIRATION_S}, it is {seconds}"


def is_ours(csr: Obj, cluster: str) -> bool:
    """Return whether a request counts towards :data:`MAX_REQUESTS`: of the cluster itself, not of an add-on."""
    labels = labels_of(csr)
    return labels.get(CLUSTER_NAME) == cluster and ADDON_NAME not in labels


def due_at(validity: Validity, draw: float) -> datetime:
    """Return when to ask for a new certificate; ``draw`` from 0 to 1 spreads the agents of a hub."""
    return validity.left(LEFT + LEFT * SPREAD * draw)


def rotated(validity: Validity) -> Obj:
    """Return the condition after a new certificate was stored."""
    text = f"client certificate rotated starting from {_go_time(validity.begins)} to {_go_time(validity.ends)}"
    return condition(ROTATED, "True", "ClientCertificateUpdated", text)


def not_rotated(why: str) -> Obj:
    """Return the condition while a new certificate is due and cannot be had; ``why``: upstream's sentence."""
    return condition(ROTATED, "False", "ClientCertificateUpdateFailed", why)


TOO_MANY: Final = "Stop creating csr since there are too many csr created already on hub"


def _go_time(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
