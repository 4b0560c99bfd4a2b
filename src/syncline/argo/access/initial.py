"""What a first start writes: the administrator's password, the key that signs tokens, the server's certificate.

Pure: :func:`missing` says what is absent, :func:`initial_patch` what to write once it was made. Rule: Argo CD
``InitializeSettings`` in ``util/settings/settings.go``. Nothing that exists is replaced.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, auto
from typing import Any

from syncline.argo.access.accounts import ADMIN, SIGNING_KEY, Accounts, secret_patch
from syncline.base.secret import Secret
from syncline.kube.objects import Obj, dig

PASSWORD_SECRET = "argocd-initial-admin-secret"
"""Holds the first password until an administrator deletes it; it changes nothing once the password was changed."""
PASSWORD_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-"
PASSWORD_LENGTH = 16


class Missing(Enum):
    """Something that a first start makes."""

    PASSWORD = auto()
    PASSWORD_TIME = auto()
    KEY = auto()
    CERTIFICATE = auto()


@dataclass(frozen=True, slots=True)
class Made:
    """What was made; None where nothing was missing. ``password_hash`` is that of the administrator's password."""

    password_hash: Secret | None = None
    key: Secret | None = None
    certificate: tuple[str, Secret] | None = None
    """Certificate and key, PEM."""


def missing(accounts: Accounts, secret: Obj | None, *, tls: bool) -> frozenset[Missing]:
    """Return what ``argocd-secret`` lacks; an administrator who is disabled needs no password."""
    admin = accounts.by_name[ADMIN]
    data = dig(secret or {}, "data", default={}) or {}
    lacks = {
        Missing.PASSWORD: admin.enabled and admin.password is None,
        Missing.PASSWORD_TIME: admin.enabled and admin.password_changed is None,
        Missing.KEY: accounts.key is None,
        Missing.CERTIFICATE: tls and not (data.get("tls.crt") and data.get("tls.key")),
    }
    return frozenset(one for one, absent in lacks.items() if absent)


def initial_patch(accounts: Accounts, lacking: frozenset[Missing], made: Made, now: datetime) -> dict[str, Any]:
    """Return the merge patch of ``argocd-secret``, empty where nothing is missing."""
    data: dict[str, str] = {}
    if lacking & {Missing.PASSWORD, Missing.PASSWORD_TIME}:
        admin = accounts.by_name[ADMIN]
        changed = replace(admin, password=made.password_hash or admin.password, password_changed=now)
        data |= {key: value for key, value in secret_patch(changed)["data"].items() if value is not None}
    if made.key is not None:
        data[SIGNING_KEY] = _base64(made.key.reveal())
    if made.certificate is not None:
        certificate, key = made.certificate
        data |= {"tls.crt": _base64(certificate), "tls.key": _base64(key.reveal())}
    return {"data": data} if data else {}


def certificate_hosts(namespace: str) -> tuple[str, ...]:
    """Return the names of the server in a certificate that it makes for itself."""
    name = "argocd-server"
    service = f"{name}.{namespace}"
    return ("localhost", name, service, f"{service}.svc", f"{service}.svc.cluster.local")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
