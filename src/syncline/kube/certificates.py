"""Client certificates from the ``certificates.k8s.io`` API: keys, requests, what was issued; no requests are sent here.

Agents of nodes and of clusters ask for their certificates with them. Rules: Kubernetes' ``certificates.k8s.io``.
"""

from __future__ import annotations

import base64
import binascii
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from syncline.base.secret import Secret
from syncline.kube.objects import GVK, Obj

warnings.filterwarnings("ignore", "Attribute's length must be", UserWarning)
# X.520 bounds names at 64 characters, Kubernetes does not: those of agents are longer (prefix, cluster, uid).

CSR: Final = GVK("certificates.k8s.io", "v1", "CertificateSigningRequest")
CLIENT_USAGES: Final = ("digital signature", "client auth")


class CertificateError(ValueError):
    """A certificate or key that cannot be used; the message never quotes a key."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a client certificate is for: user name and groups."""

    user: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Validity:
    """When a certificate, with those that signed it in the same file, is valid."""

    begins: datetime
    ends: datetime

    @property
    def life(self) -> timedelta:
        return self.ends - self.begins

    def left(self, share: float) -> datetime:
        """Return the instant at which ``share`` of the life is left."""
        return self.ends - self.life * share


def client_key() -> Secret:
    """Return a new private key as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    form = serialization.PrivateFormat.PKCS8
    return Secret(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode())


def certificate_request(
    identity: Identity,
    key_pem: Secret,
    signer: str,
    metadata: Obj,
    *,
    expiration_s: int = 0,
    usages: Sequence[str] = CLIENT_USAGES,
    units: Sequence[str] = (),
    dns: Sequence[str] = (),
) -> Obj:
    """Return a CertificateSigningRequest. ``expiration_s``: the wanted lifetime; 0: the signer's. ``units``:
    organizational units; ``dns``: names of a server."""
    key: Any = serialization.load_pem_private_key(key_pem.reveal().encode(), None)
    groups = [(NameOID.ORGANIZATION_NAME, one) for one in identity.groups]
    named = [*groups, *((NameOID.ORGANIZATIONAL_UNIT_NAME, one) for one in units), (NameOID.COMMON_NAME, identity.user)]
    # Names of agents may be longer than X.520 allows; Kubernetes does not limit them.
    asked = x509.Name([x509.NameAttribute(oid, text, _validate=False) for oid, text in named])
    builder = x509.CertificateSigningRequestBuilder().subject_name(asked)
    if dns:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in dns]), critical=False)
    signed = builder.sign(key, hashes.SHA256())
    lifetime: Mapping[str, int] = {"expirationSeconds": expiration_s} if expiration_s else {}
    return {
        "apiVersion": CSR.api_version,
        "kind": CSR.kind,
        "metadata": metadata,
        "spec": {
            "request": base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": signer,
            "usages": list(usages),
            **lifetime,
        },
    }


def approved(request: Obj, reason: str, message: str) -> Obj:
    """Return the request with the approval that ``kubectl certificate approve`` writes to its subresource."""
    fields = {"type": "Approved", "status": "True", "reason": reason, "message": message}
    return request | {"status": (request.get("status") or {}) | {"conditions": [fields]}}


def is_approved(request: Obj) -> bool:
    conditions = (request.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Approved" for each in conditions)


def issued_certificate(request: Obj) -> tuple[str, str]:
    """Return the signed PEM, or the error that makes it fail; both are empty while it is pending."""
    status = request.get("status") or {}
    for each in status.get("conditions") or ():
        if each.get("type") in ("Denied", "Failed"):
            return "", f"{each['type']}: {each.get('message', '')}"
    try:
        return base64.b64decode(str(status.get("certificate") or "")).decode(), ""
    except (binascii.Error, UnicodeDecodeError):
        return "", "status.certificate is no PEM in base64"


def identity_of(pem: str) -> Identity:
    """Return whom a certificate is for: the first one in the text. Raises :class:`CertificateError`."""
    subject = _certificates(pem)[0].subject
    names = subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return Identity(str(names[-1].value) if names else "", tuple(str(one.value) for one in groups))


def validity_of(pem: str) -> Validity:
    """Return when all certificates in the text are valid. Raises :class:`CertificateError`."""
    found = _certificates(pem)
    return Validity(max(one.not_valid_before_utc for one in found), min(one.not_valid_after_utc for one in found))


def is_of_key(pem: str, key_pem: Secret) -> bool:
    """Return whether a certificate is for a private key. Raises :class:`CertificateError`."""
    try:
        key: Any = serialization.load_pem_private_key(key_pem.reveal().encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError("the private key cannot be read") from error
    form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    mine: bytes = key.public_key().public_bytes(*form)
    return mine == _certificates(pem)[0].public_key().public_bytes(*form)


def _certificates(pem: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CertificateError("there is no certificate in PEM") from error


CLOCK_SKEW: Final = timedelta(minutes=5)
"""How much earlier a certificate begins, for clients whose clock is behind."""


def signed_certificate(request_pem: str, authority_pem: str, key_pem: Secret, now: datetime, life: timedelta) -> str:
    """Return a certificate for client and server, with the names of the request, signed by an authority; it ends with
    that at the latest. Raises :class:`CertificateError`."""
    own = _certificates(authority_pem)[0]
    ends = min(now + life, own.not_valid_after_utc)
    if ends <= now:
        raise CertificateError(f"signer has expired, expired time: {own.not_valid_after_utc}")
    try:
        request = x509.load_pem_x509_csr(request_pem.encode())
        key: Any = serialization.load_pem_private_key(key_pem.reveal().encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError("the request, or the private key of the signer, cannot be read") from error
    if not request.is_signature_valid:
        raise CertificateError("the request is not signed by the key that it names")
    if not is_of_key(authority_pem, key_pem):
        raise CertificateError("the private key is not that of the certificate")
    usages = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    signer: Any = own.public_key()
    builder = (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .issuer_name(own.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usages, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )
    try:
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        builder = builder.add_extension(names, critical=False)
    except x509.ExtensionNotFound:
        pass
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
