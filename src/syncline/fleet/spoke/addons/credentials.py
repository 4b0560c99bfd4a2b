"""What the agent of an add-on needs to reach the hub, as objects: request, Secret, kubeconfig; pure.

Rules: ``pkg/registration/{spoke/addon,register/csr}`` of upstream.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from syncline.base.secret import Secret
from syncline.fleet.addons import default_group, default_user, install_namespace
from syncline.fleet.hub.registration.leases import CLUSTER_NAME
from syncline.fleet.spoke.registration.certificates import USAGES, due_at
from syncline.kube.certificates import CertificateError, Identity, certificate_request, identity_of, validity_of
from syncline.kube.kinds.addonversions import CLIENT_SIGNER
from syncline.kube.kinds.managedaddons import ADDON_NAME
from syncline.kube.objects import Obj, dig, name_of, namespace_of

HUB_LABEL: Final = "syncline.dev/hub"
"""The label of the Secrets that an agent keeps for add-ons: the hash of its hub's URL."""


def hub_hash(hub_url: str) -> str:
    return hashlib.sha256(hub_url.encode()).hexdigest()[:63]


@dataclass(frozen=True, slots=True)
class Access:
    """How the hub is reached. ``authority``: PEM of who signs its certificate; empty: one that machines trust."""

    url: str
    authority: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One certificate of an add-on: who signs it, for whom, and the Secret that holds it on the cluster."""

    cluster: str
    addon: str
    signer: str
    identity: Identity
    units: tuple[str, ...]
    namespace: str
    secret: str

    @property
    def is_client(self) -> bool:
        """Whether it is for the hub's API, so that a kubeconfig goes with it."""
        return self.signer == CLIENT_SIGNER


def wanted_of(addon: Obj) -> tuple[Wanted, ...]:
    """Return the certificates that an add-on (in v1alpha1) registers."""
    cluster, name = namespace_of(addon), name_of(addon)
    found = []
    for one in dig(addon, "status", "registrations") or ():
        signer, subject = str(one.get("signerName") or ""), one.get("subject") or {}
        user = str(subject.get("user") or default_user(cluster, name, name))
        groups = tuple(subject.get("groups") or ((default_group(cluster, name),) if signer == CLIENT_SIGNER else ()))
        units = tuple(subject.get("organizationUnit") or ())
        secret = f"{name}-hub-kubeconfig" if signer == CLIENT_SIGNER else _signed(name, signer)
        namespace = install_namespace(addon)
        found.append(Wanted(cluster, name, signer, Identity(user, groups), units, namespace, secret))
    return tuple(found)


def _signed(addon: str, signer: str) -> str:
    return f"{addon}-{signer.replace('/', '-')}-client-cert"


def request(wanted: Wanted, key: Secret) -> Obj:
    labels = {CLUSTER_NAME: wanted.cluster, ADDON_NAME: wanted.addon}
    metadata = {"generateName": f"addon-{wanted.cluster}-{wanted.addon}-", "labels": labels}
    names = (f"{wanted.addon}.addon.open-cluster-management.io",)
    return certificate_request(
        wanted.identity, key, wanted.signer, metadata, usages=USAGES, units=wanted.units, dns=names
    )


def kubeconfig(access: Access) -> str:
    """Return the kubeconfig that a Secret holds beside its certificate, to whose files it refers."""
    authority = base64.b64encode(access.authority.encode()).decode()
    cluster = {"server": access.url} | ({"certificate-authority-data": authority} if authority else {})
    context = {"cluster": "default-cluster", "user": "default-auth", "namespace": "configuration"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default-cluster", "cluster": cluster}],
        "users": [{"name": "default-auth", "user": {"client-certificate": "tls.crt", "client-key": "tls.key"}}],
        "contexts": [{"name": "default-context", "context": context}],
        "current-context": "default-context",
    }
    return json.dumps(config, sort_keys=True)


def extra_data(wanted: Wanted, access: Access) -> dict[str, str]:
    """Return what the Secret holds besides certificate and key."""
    return {"cluster-name": wanted.cluster} | ({"kubeconfig": kubeconfig(access)} if wanted.is_client else {})


def secret_of(wanted: Wanted, access: Access, certificate: str, key: Secret) -> Obj:
    data = {"tls.crt": certificate, "tls.key": key.reveal(), **extra_data(wanted, access)}
    labels = {HUB_LABEL: hub_hash(access.url)}
    metadata = {"name": wanted.secret, "namespace": wanted.namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": encoded(data)}


def encoded(data: dict[str, str]) -> dict[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}


def held(secret: Obj, key: str) -> str:
    """Return a text of a Secret; empty where it is missing or no text."""
    try:
        return base64.b64decode(str(dig(secret, "data", key) or ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""


def due_of(secret: Obj | None, wanted: Wanted, draw: float, now: datetime) -> datetime | None:
    """Return when a new certificate is due; None: now, because the Secret has none that is valid for who is wanted."""
    if secret is None or not held(secret, "tls.key"):
        return None
    pem = held(secret, "tls.crt")
    try:
        validity, who = validity_of(pem), identity_of(pem)
    except CertificateError:
        return None
    if who.user != wanted.identity.user or set(who.groups) != set(wanted.identity.groups) or validity.ends <= now:
        return None
    return due_at(validity, draw)


def secrets_of(addons: Iterable[Obj]) -> frozenset[tuple[str, str]]:
    """Return namespace and name of the Secrets of add-ons."""
    return frozenset((one.namespace, one.secret) for addon in addons for one in wanted_of(addon))
