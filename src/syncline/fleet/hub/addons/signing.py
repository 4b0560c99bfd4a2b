"""Signs requests of add-ons that have a signer of their own: :class:`SignHandler`."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Generator
from datetime import datetime, timedelta
from typing import Any, Final

from syncline.base.secret import Secret
from syncline.fleet.hub.addons.requests import Sign
from syncline.fleet.hub.registration.approving import CSR, pem_of
from syncline.kube import client
from syncline.kube.certificates import CertificateError, signed_certificate
from syncline.kube.client import PatchType, Request, Response
from syncline.kube.mapper import Mapper
from syncline.kube.objects import Obj, ResourceInfo, dig, name_of, resource_version, uid_of

SECRETS: Final = ResourceInfo("", "v1", "Secret", "secrets", namespaced=True)
LIFE: Final = timedelta(hours=24)
"""How long a certificate of an add-on's own signer is valid, as upstream's."""


class SignHandler:
    """Reads the key of the signer, which no cache holds, and writes the certificate."""

    def __init__(self, mapper: Mapper, now: Callable[[], datetime]) -> None:
        self._mapper, self._now = mapper, now

    def handle(self, action: Sign) -> Generator[Request, Response, Any]:
        info = self._mapper.find(CSR)
        if info is None:
            raise LookupError(f"{CSR}: the API server does not serve certificate requests")
        at = action.authority
        found = yield client.get(SECRETS, at.namespace, at.name)
        secret: Obj = found.or_raise()
        try:
            authority, key = _text(secret, "tls.crt"), Secret(_text(secret, "tls.key"))
            pem = signed_certificate(pem_of(action.csr), authority, key, self._now(), LIFE)
        except CertificateError as error:
            raise CertificateError(f"Secret {at.namespace}/{at.name} of the signer: {error}") from None
        body = {
            "metadata": {"uid": uid_of(action.csr), "resourceVersion": resource_version(action.csr)},
            "status": {"certificate": base64.b64encode(pem.encode()).decode()},
        }
        answer = yield client.patch(info, "", name_of(action.csr), PatchType.MERGE, body, subresource="status")
        answer.or_raise()
        return True


def _text(secret: Obj, key: str) -> str:
    try:
        return base64.b64decode(str(dig(secret, "data", key) or ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise CertificateError(f"data[{key!r}] is no PEM in base64") from None
