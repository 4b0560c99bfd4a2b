"""Serving certificates of operators: an authority and a certificate that it signs, as OLM makes them for webhooks and
aggregated APIs. Keys are drawn from the :class:`Entropy` of the world, so that a seed gives the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from syncline.base.entropy import Entropy
from syncline.base.secret import Secret

LIFE: Final = timedelta(days=730)
FRESH: Final = timedelta(days=1)
"""A certificate is replaced this long before it ends."""
_ORGANIZATION: Final = "Red Hat, Inc."
_SKEW: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Serving:
    """``ca`` and ``certificate`` are PEM."""

    ca: str
    certificate: str
    key: Secret
    ends: datetime


def new_serving(hosts: Sequence[str], now: datetime, entropy: Entropy) -> Serving:
    """Return a new authority, and a certificate of it for these names."""
    begins = now.astimezone(UTC).replace(microsecond=0)
    ends = begins + LIFE
    own, key = (Ed25519PrivateKey.from_private_bytes(entropy.key()) for _ in range(2))
    issuer = _name(f"olm-selfsigned-{entropy.suffix(16)}")
    made = _builder(issuer, issuer, own, begins, ends, entropy)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    ca = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(own.public_key()), critical=False).sign(own, None)
    leaf = _builder(_name(hosts[0]), issuer, key, begins, ends, entropy)
    leaf = leaf.add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in hosts]), critical=False)
    leaf = leaf.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(own.public_key()), critical=False)
    signed = leaf.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Serving(_pem(ca), _pem(signed.sign(own, None)), Secret(pem.decode()), ends)


def _name(common: str) -> x509.Name:
    organization = x509.NameAttribute(NameOID.ORGANIZATION_NAME, _ORGANIZATION)
    return x509.Name([organization, x509.NameAttribute(NameOID.COMMON_NAME, common[:64])])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Ed25519PrivateKey, begins: datetime, ends: datetime, entropy: Entropy
) -> x509.CertificateBuilder:
    serial = int.from_bytes(entropy.key()[:19], "big") + 1
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    return made.serial_number(serial).not_valid_before(begins - _SKEW).not_valid_after(ends)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def ends_of(ca: str, certificate: str, hosts: Sequence[str], now: datetime) -> datetime | None:
    """Return when a certificate ends; None if it must be replaced now (``shouldRotateCerts``): it cannot be read, is
    not valid, not signed by its authority, or not for these names."""
    try:
        root, leaf = (x509.load_pem_x509_certificate(one.encode()) for one in (ca, certificate))
        leaf.verify_directly_issued_by(root)
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return None
    ends = min(root.not_valid_after_utc, leaf.not_valid_after_utc)
    begins = max(root.not_valid_before_utc, leaf.not_valid_before_utc)
    covered = set(hosts) <= set(names.get_values_for_type(x509.DNSName))
    return ends if covered and begins <= now < ends - FRESH else None
