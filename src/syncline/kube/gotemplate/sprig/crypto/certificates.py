"""sprig's private keys and certificates: :func:`certificate_functions`.

The keys come from the operating system's randomness, whatever the seed of the other functions: a key that can be
computed again from a seed is none.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from syncline.base.entropy import Entropy
from syncline.kube.gotemplate.fmt import sprintf
from syncline.kube.gotemplate.functions import Function, FunctionError, Kind
from syncline.kube.gotemplate.sprig.crypto.budget import Budget
from syncline.kube.gotemplate.sprig.text.encoding import CorruptError, decode64
from syncline.kube.gotemplate.values import Opaque, decode, encode

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

STRING, INT, LIST, CERTIFICATE = Kind.STRING, Kind.INT, Kind.LIST, Kind.CERTIFICATE

CERTIFICATE_UNITS = 2
KEY_UNITS = {"": 20, "rsa": 20, "dsa": 20, "ecdsa": 1, "ed25519": 1}
MAX_DAYS = 36_500
"""A century; Go's own arithmetic ends at 106751 days."""
MAX_NAMES = 100
MAX_PEM = 1 << 16


@dataclass(frozen=True, slots=True)
class Certificate(Opaque):
    """sprig's certificate with its key, both in PEM; templates read ``.Cert`` and ``.Key``."""

    go_type: ClassVar[str] = "sprig.certificate"
    kind: ClassVar[str] = "struct"

    cert: str
    key: str

    def fields(self) -> Mapping[str, Any]:
        return {"Cert": self.cert, "Key": self.key}


_PEM = re.compile(r"-----BEGIN ([^\n-]+)-----[ \t]*\r?\n.*?-----END \1-----[^\n]*\n?", re.DOTALL)


def _block(text: str) -> tuple[str, bytes] | None:
    """Return the type and the text of the first block of PEM."""
    found = _PEM.search(text) if len(text) <= MAX_PEM else None
    return (found[1], encode(found[0])) if found else None


def _private_key(text: str) -> PrivateKeyTypes:
    """Read a private key. Raises :class:`FunctionError` in sprig's words."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    block = _block(text)
    if block is None:
        raise FunctionError("no PEM data in input")
    kind, data = block
    prefix = kind.removesuffix("PRIVATE KEY")
    if prefix == kind or (prefix and not prefix.endswith(" ")):
        raise FunctionError(f"no private key data in PEM block of type {kind}")
    if prefix not in ("", "RSA ", "EC ", "DSA "):
        raise FunctionError(f"invalid private key type {prefix.strip()}")
    try:
        return load_pem_private_key(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        what = f"parsing {prefix}private key from PEM" if prefix else "decoding PEM as PKCS#8"
        raise FunctionError(f"{what}: {error}") from None


def _certificate(text: str) -> x509.Certificate:
    from cryptography import x509

    block = _block(text)
    if block is None:
        raise FunctionError("unable to decode certificate")
    try:
        return x509.load_pem_x509_certificate(block[1])
    except ValueError as error:
        raise FunctionError(f"error parsing certificate: decodedCert.Bytes: {error}") from None


def _build_custom(certificate: str, key: str) -> Certificate:
    """Take a certificate and a key in base64; both must be readable, they need not belong together."""
    texts = []
    for text, what in ((certificate, "certificate"), (key, "private key")):
        try:
            texts.append(decode(decode64(text)))
        except CorruptError:
            raise FunctionError(f"unable to decode base64 {what}") from None
    _certificate(texts[0])
    try:
        _private_key(texts[1])
    except FunctionError as error:
        raise FunctionError(f"error parsing private key: {error}") from None
    return Certificate(*texts)


def _new_key(kind: str) -> PrivateKeyTypes:
    from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

    make: Mapping[str, Callable[[], PrivateKeyTypes]] = {
        "dsa": lambda: dsa.generate_private_key(2048),
        "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
        "ed25519": ed25519.Ed25519PrivateKey.generate,
        "certificate": lambda: rsa.generate_private_key(65537, 2048),
    }
    return make[kind]() if kind in make else rsa.generate_private_key(65537, 4096)


def _key_text(key: PrivateKeyTypes) -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    form = serialization.PrivateFormat
    shape = form.PKCS8 if isinstance(key, ed25519.Ed25519PrivateKey) else form.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, shape, serialization.NoEncryption()).decode()


def _names(ips: list[Any], names: list[Any]) -> list[x509.GeneralName]:
    from cryptography import x509

    if len(ips) + len(names) > MAX_NAMES:
        raise FunctionError(f"a certificate has at most {MAX_NAMES} addresses and names, not {len(ips) + len(names)}")
    addresses: list[x509.GeneralName] = []
    for ip in ips:
        if not isinstance(ip, str):
            raise FunctionError(f"error parsing ip: {sprintf('%v', ip)} is not a string")
        try:
            addresses.append(x509.IPAddress(ipaddress.ip_address(ip)))
        except ValueError:
            raise FunctionError(f"error parsing ip: {ip}") from None
    made: list[x509.GeneralName] = []
    for name in names:
        if not isinstance(name, str):
            raise FunctionError(f"error processing alternate dns name: {sprintf('%v', name)} is not a string")
        if not name.isascii():
            quoted = sprintf("%q", name)
            raise FunctionError(f"error creating certificate: x509: {quoted} cannot be encoded as an IA5String")
        made.append(x509.DNSName(name))
    return [*made, *addresses]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a certificate says; ``days`` from now."""

    name: str
    days: int
    names: list[x509.GeneralName]
    authority: bool = False


def _issue(
    wanted: _Wanted,
    key: PrivateKeyTypes,
    serial: int,
    now: datetime,
    signer: tuple[x509.Certificate, PrivateKeyTypes] | None,
) -> Certificate:
    """Sign a certificate for ``key``, with the key itself or with a ``signer``."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    subject = _subject(wanted.name)
    begin = now.replace(microsecond=0)
    signing = signer[1] if signer else key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer[0].subject if signer else subject)
        .public_key(key.public_key())  # type: ignore[arg-type]
        .serial_number(serial)
        .not_valid_before(begin)
        .not_valid_after(begin + timedelta(days=wanted.days))
    )
    for extension, critical in _extensions(wanted, key, signer[0] if signer else None):
        builder = builder.add_extension(extension, critical)
    algorithm = None if isinstance(signing, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    made = builder.sign(signing, algorithm)  # type: ignore[arg-type]
    return Certificate(made.public_bytes(serialization.Encoding.PEM).decode(), _key_text(key))


def _subject(name: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name, _validate=False)] if name else [])


def _extensions(
    wanted: _Wanted, key: PrivateKeyTypes, parent: x509.Certificate | None
) -> list[tuple[x509.ExtensionType, bool]]:
    """Return the extensions, each with whether it is critical."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    usage = x509.KeyUsage(True, False, True, False, False, wanted.authority, False, False, False)
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    made: list[tuple[x509.ExtensionType, bool]] = [
        (usage, True),
        (x509.ExtendedKeyUsage(purposes), False),
        (x509.BasicConstraints(wanted.authority, None), True),
    ]
    if wanted.authority:
        made.append((x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False))  # type: ignore[arg-type]
    if parent is not None:
        try:
            identifier = parent.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
            made.append((x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), False))
        except (x509.ExtensionNotFound, ValueError):
            pass
    if wanted.names:
        made.append((x509.SubjectAlternativeName(wanted.names), not wanted.name))
    return made


class _Issuer:
    """Makes keys and certificates of one rendering."""

    def __init__(self, now: Callable[[], datetime], entropy: Entropy, budget: Budget) -> None:
        self._now, self._entropy, self._budget = now, entropy, budget

    def private_key(self, kind: str) -> str:
        if kind not in KEY_UNITS:
            return f"Unknown type {kind}"
        self._budget.take(KEY_UNITS[kind], "genPrivateKey")
        return _key_text(_new_key(kind))

    def authority(self, name: str, days: int) -> Certificate:
        return self._made(name, [], [], days, None, None, authority=True)

    def authority_with_key(self, name: str, days: int, key: str) -> Certificate:
        return self._made(name, [], [], days, None, key, authority=True)

    def self_signed(self, name: str, ips: list[Any], names: list[Any], days: int) -> Certificate:
        return self._made(name, ips, names, days, None, None)

    def self_signed_with_key(self, name: str, ips: list[Any], names: list[Any], days: int, key: str) -> Certificate:
        return self._made(name, ips, names, days, None, key)

    def signed(self, name: str, ips: list[Any], names: list[Any], days: int, by: Certificate) -> Certificate:
        return self._made(name, ips, names, days, by, None)

    def signed_with_key(
        self, name: str, ips: list[Any], names: list[Any], days: int, by: Certificate, key: str
    ) -> Certificate:
        return self._made(name, ips, names, days, by, key)

    def _made(
        self,
        name: str,
        ips: list[Any],
        names: list[Any],
        days: int,
        by: Certificate | None,
        key: str | None,
        *,
        authority: bool = False,
    ) -> Certificate:
        self._budget.take(CERTIFICATE_UNITS, "a certificate")
        if not 0 <= days <= MAX_DAYS:
            raise FunctionError(f"a certificate is valid for 0 to {MAX_DAYS} days, not {days}")
        own = self._own(key)
        signer = (_certificate(by.cert), self._signing(by.key)) if by else None
        wanted = _Wanted(name, days, _names(ips, names), authority)
        try:
            return _issue(wanted, own, self._entropy.randrange(1 << 127) + 1, self._now(), signer)
        except (ValueError, TypeError) as error:
            raise FunctionError(f"error creating certificate: {error}") from None

    def _own(self, key: str | None) -> PrivateKeyTypes:
        if key is None:
            return _new_key("certificate")
        try:
            return _private_key(key)
        except FunctionError as error:
            raise FunctionError(f"parsing private key: {error}") from None

    def _signing(self, key: str) -> PrivateKeyTypes:
        try:
            return _private_key(key)
        except FunctionError as error:
            raise FunctionError(f"error parsing private key: {error}") from None


CERTIFICATES: Mapping[str, Function] = {
    "buildCustomCert": Function(_build_custom, (STRING, STRING), result=CERTIFICATE)
}


def certificate_functions(now: Callable[[], datetime], entropy: Entropy, budget: Budget) -> Mapping[str, Function]:
    """Return the functions that make keys and certificates, valid from ``now``."""
    issuer = _Issuer(now, entropy, budget)
    named = (STRING, LIST, LIST, INT)

    def issuing(call: Callable[..., Certificate], *params: Kind) -> Function:
        return Function(call, params, result=CERTIFICATE)

    return {
        "genPrivateKey": Function(issuer.private_key, (STRING,), result=STRING),
        "genCA": issuing(issuer.authority, STRING, INT),
        "genCAWithKey": issuing(issuer.authority_with_key, STRING, INT, STRING),
        "genSelfSignedCert": issuing(issuer.self_signed, *named),
        "genSelfSignedCertWithKey": issuing(issuer.self_signed_with_key, *named, STRING),
        "genSignedCert": issuing(issuer.signed, *named, CERTIFICATE),
        "genSignedCertWithKey": issuing(issuer.signed_with_key, *named, CERTIFICATE, STRING),
    }
