"""Create the keys and certificates of an embedded cluster: CA, server and administrator certificate, token signing key.

``assembly`` calls it at start, and the CSR signer. All keys are EC P-256, in a directory of the cluster's data (files
0600) or only in memory. Keys never enter objects that a journal compares; certificates only as a CSR or CA bundle.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from syncline.base.secret import Secret
from syncline.cluster.access.users import ADMIN, UserInfo
from syncline.kube.objects import Obj

warnings.filterwarnings("ignore", "Attribute's length must be", UserWarning)
# X.520 bounds names at 64 characters; Kubernetes signs requests with longer ones.

CA_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)
"""A leaf certificate with less than this left is renewed at start."""

CLOCK_SKEW = timedelta(hours=2)
"""How much earlier certificates begin, for clients whose clock is behind and for a clock that is set back by an hour:
TLS uses the machine's clock and would refuse every newer certificate. Kubernetes uses five minutes."""

SERVICE_IP = "10.96.0.1"
"""Cluster IP of the kubernetes Service: the first of kubeadm's default range."""

SERVICE_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
LOOPBACK = ("127.0.0.1", "::1", SERVICE_IP)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A PEM certificate and its PEM private key."""

    certificate_pem: str
    key_pem: Secret


@dataclass(frozen=True, slots=True)
class SigningKey:
    """Signs service-account tokens."""

    private_pem: Secret
    public_pem: str
    key_id: str

    @classmethod
    def from_pem(cls, pem: str) -> SigningKey:
        key = _load_key(pem)
        public = key.public_key()
        der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        public_pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        return cls(Secret(pem), public_pem.decode(), _base64url(hashlib.sha256(der).digest()))

    def public_jwk(self) -> Obj:
        """Return the public key as JSON Web Key (RFC 7517)."""
        numbers = _load_key(self.private_pem.reveal()).public_key().public_numbers()
        x, y = (_base64url(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        return {"use": "sig", "kty": "EC", "kid": self.key_id, "crv": "P-256", "alg": "ES256", "x": x, "y": y}


@dataclass(frozen=True, slots=True)
class CertificateAuthority:
    """Signs the certificates of the cluster's clients and servers."""

    pair: KeyPair

    def sign(
        self,
        request_pem: str,
        *,
        now: datetime,
        lifetime: timedelta,
        client: bool = True,
        server: bool = False,
    ) -> str:
        """Return the PEM certificate for a PEM signing request, with its subject and alternative names.

        It ends with the CA at the latest. Raises ValueError if the request is malformed or not signed by its own key.
        """
        request = x509.load_pem_x509_csr(request_pem.encode())
        if not request.is_signature_valid:
            raise ValueError("the certificate request is not signed by the key that it names")
        try:
            names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            names = None
        usages = _usages(client, server)
        return self._issue(request.subject, request.public_key(), names, usages, now, lifetime)

    def issue(
        self,
        common_name: str,
        *,
        now: datetime,
        organizations: Sequence[str] = (),
        server_names: Sequence[str] = (),
    ) -> KeyPair:
        """Return a new key with its certificate: a server's if ``server_names`` are given, else a client's."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([_general_name(name) for name in server_names]) if server_names else None
        usages = _usages(not server_names, bool(server_names))
        subject = _subject(common_name, organizations)
        return KeyPair(self._issue(subject, key.public_key(), names, usages, now, LEAF_LIFETIME), _key_pem(key))

    def _issue(
        self,
        subject: x509.Name,
        public_key: object,
        names: x509.SubjectAlternativeName | None,
        usages: x509.ExtendedKeyUsage,
        now: datetime,
        lifetime: timedelta,
    ) -> str:
        own = x509.load_pem_x509_certificate(self.pair.certificate_pem.encode())
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(own.subject)
            .public_key(public_key)  # type: ignore[arg-type]  # any key a request may carry
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCK_SKEW)
            .not_valid_after(min(now + lifetime, own.not_valid_after_utc))
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(usages, critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_issuer_key(own), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        signed = builder.sign(_load_key(self.pair.key_pem.reveal()), hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM).decode()


@dataclass(frozen=True, slots=True)
class ClusterKeys:
    """All keys of one cluster. ``admin`` is a client certificate of a member of system:masters."""

    authority: CertificateAuthority
    server: KeyPair
    admin: KeyPair
    service_accounts: SigningKey

    @property
    def ca_pem(self) -> str:
        return self.authority.pair.certificate_pem


def create_keys(now: datetime, hosts: Sequence[str] = ()) -> ClusterKeys:
    """Create keys in memory. ``hosts`` are additional names or addresses of the server."""
    authority = CertificateAuthority(new_authority(now))
    signing = SigningKey.from_pem(_key_pem(ec.generate_private_key(ec.SECP256R1())).reveal())
    return ClusterKeys(authority, _new_server(authority, now, hosts), _new_admin(authority, now), signing)


def load_or_create_keys(directory: Path, now: datetime, hosts: Sequence[str] = ()) -> ClusterKeys:
    """Load the keys in ``directory``; create missing ones, renew leaves that end soon or lack a host."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    pair = _read_pair(directory, "ca") or _write_pair(directory, "ca", new_authority(now))
    authority = CertificateAuthority(pair)
    server = _read_pair(directory, "server")
    if server is None or not _serves(server, authority, now, hosts):
        server = _write_pair(directory, "server", _new_server(authority, now, hosts))
    admin = _read_pair(directory, "admin")
    if admin is None or not _is_current(admin, authority, now):
        admin = _write_pair(directory, "admin", _new_admin(authority, now))
    signing = directory / "service-accounts.key"
    if not signing.exists():
        _write(signing, _key_pem(ec.generate_private_key(ec.SECP256R1())).reveal())
    return ClusterKeys(authority, server, admin, SigningKey.from_pem(signing.read_text()))


def kubeconfig_for(
    *,
    server: str,
    ca_pem: str = "",
    client: KeyPair | None = None,
    token: Secret | None = None,
    name: str = "syncline",
    namespace: str = "",
) -> Obj:
    """Return a kubeconfig as JSON (valid YAML): one cluster, user and context, all called ``name``.

    It holds credentials in the clear: write it to a file with mode 0600, never to a log.
    """
    cluster: Obj = {"server": server}
    if ca_pem:
        cluster["certificate-authority-data"] = _base64(ca_pem)
    user: Obj = {}
    if client is not None:
        user["client-certificate-data"] = _base64(client.certificate_pem)
        user["client-key-data"] = _base64(client.key_pem.reveal())
    if token is not None:
        user["token"] = token.reveal()
    context: Obj = {"cluster": name, "user": name}
    if namespace:
        context["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }


def user_of_certificate(der: bytes) -> tuple[UserInfo, datetime, datetime]:
    """Return the user of a client certificate (CN and every O) and the start and end of its validity.

    Raises ValueError if it is malformed or has no common name (Kubernetes x509 CommonNameUserConversion).
    """
    certificate = x509.load_der_x509_certificate(der)
    names = [str(item.value) for item in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if not names or not names[-1]:
        raise ValueError("the client certificate has no common name to take the user from")
    groups = tuple(str(i.value) for i in certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
    digest = hashlib.sha256(der).hexdigest()
    extra = {"authentication.kubernetes.io/credential-id": (f"X509SHA256={digest}",)}
    user = UserInfo(names[-1], groups, extra=extra)
    return user, certificate.not_valid_before_utc, certificate.not_valid_after_utc


# -- making -------------------------------------------------------------------------------------------------------


def new_authority(now: datetime) -> KeyPair:
    """Return a new CA, valid for :data:`CA_LIFETIME`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = _subject("syncline-ca", ())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + CA_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM).decode(), _key_pem(key))


def _new_server(authority: CertificateAuthority, now: datetime, hosts: Sequence[str]) -> KeyPair:
    names = tuple(dict.fromkeys((*SERVICE_NAMES, *LOOPBACK, *(host for host in hosts if _is_name(host)))))
    return authority.issue("kube-apiserver", now=now, server_names=names)


def _new_admin(authority: CertificateAuthority, now: datetime) -> KeyPair:
    return authority.issue(ADMIN.name, now=now, organizations=("system:masters",))


def _subject(common_name: str, organizations: Sequence[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _is_name(host: str) -> bool:
    """Return False for wildcard addresses, which a client cannot connect to."""
    return host not in ("", "0.0.0.0", "::")


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usages(client: bool, server: bool) -> x509.ExtendedKeyUsage:
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH] if client else []
    return x509.ExtendedKeyUsage([*usages, ExtendedKeyUsageOID.SERVER_AUTH] if server else usages)


def _issuer_key(own: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    """Return the authority key identifier; strict clients (Python 3.13) refuse a leaf without it."""
    identifier = own.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _load_key(pem: str) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(pem.encode(), None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("the cluster's keys are EC P-256; this file holds another kind of key")
    return key


def _key_pem(key: ec.EllipticCurvePrivateKey) -> Secret:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Secret(pem.decode())


# -- keeping ------------------------------------------------------------------------------------------------------


def _is_current(pair: KeyPair, authority: CertificateAuthority, now: datetime) -> bool:
    certificate = x509.load_pem_x509_certificate(pair.certificate_pem.encode())
    own = x509.load_pem_x509_certificate(authority.pair.certificate_pem.encode())
    return certificate.issuer == own.subject and now + RENEW_BEFORE < certificate.not_valid_after_utc


def _serves(pair: KeyPair, authority: CertificateAuthority, now: datetime, hosts: Sequence[str]) -> bool:
    if not _is_current(pair, authority, now):
        return False
    certificate = x509.load_pem_x509_certificate(pair.certificate_pem.encode())
    named = set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    return all(_general_name(host) in named for host in hosts if _is_name(host))


def _read_pair(directory: Path, name: str) -> KeyPair | None:
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    if certificate.exists() and not key.exists():
        raise ValueError(f"{key.name} is missing, {certificate.name} is there")  # The key is always written first.
    if not certificate.exists() or not key.exists():
        return None
    pair = KeyPair(certificate.read_text(), Secret(key.read_text()))
    try:
        shown = x509.load_pem_x509_certificate(pair.certificate_pem.encode()).public_key()
        own = _load_key(pair.key_pem.reveal()).public_key()
    except ValueError as error:
        raise ValueError(f"{certificate.name} or {key.name} is not readable as PEM") from error
    if shown != own:
        raise ValueError(f"{certificate.name} is not of {key.name}")
    return pair


def _write_pair(directory: Path, name: str, pair: KeyPair) -> KeyPair:
    _write(directory / f"{name}.key", pair.key_pem.reveal())
    _write(directory / f"{name}.crt", pair.certificate_pem)
    return pair


def _write(path: Path, text: str) -> None:
    """Write a file atomically, so that a crash leaves no partial key."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
