"""Known hosts of ssh and certificates of TLS servers, in two ConfigMaps, as argocd's API has them.

Pure. Rules: Argo CD ``util/db/certificate.go`` and ``util/cert``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa

from syncline.kube.objects import Obj
from syncline.kube.text.glob import GlobError, glob_match

KNOWN_HOSTS = "ssh_known_hosts"
"""The key of the ConfigMap."""
MAX_ENTRIES = 256
MAX_LINES = 128
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9_][a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])"
_HOST = re.compile(rf"{_LABEL}(?:\.{_LABEL}){{0,126}}\.?")
_PORTED = re.compile(r"\[(.{1,255})\]:[0-9]{1,5}")
_IPV6 = re.compile(r"[0-9a-fA-F:.]{2,45}(?:%[0-9a-zA-Z]{1,32})?")
_ALGORITHMS = ((rsa.RSAPublicKey, "rsa"), (ec.EllipticCurvePublicKey, "ecdsa"), (dsa.DSAPublicKey, "dsa"))
_SHORT = {"organizationName": "O", "organizationalUnitName": "OU", "commonName": "CN", "countryName": "C"}


class CertificateError(ValueError):
    """Certificates of a request that cannot be stored; the words are upstream's."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which certificates a request is about; empty fields and ``*`` stand for all."""

    host: str = ""
    kind: str = ""
    sub_kind: str = ""

    @property
    def ssh(self) -> bool:
        return self.kind in ("", "*", "ssh")

    @property
    def tls(self) -> bool:
        return self.kind in ("", "*", "https", "tls")

    def names(self, host: str) -> bool:
        """Return whether the pattern names a host; brackets stand for themselves."""
        escaped = self.host.replace("[", "\\[").replace("]", "\\]")
        try:
            return not self.host or glob_match(escaped, host)
        except GlobError:
            return False

    def takes(self, entry: Entry) -> bool:
        return self.names(entry.host) and self.sub_kind in ("", "*", entry.kind)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of known hosts."""

    host: str
    kind: str
    data: str

    def __str__(self) -> str:
        return f"{self.host} {self.kind} {self.data}"

    def as_certificate(self) -> Obj:
        return {"serverName": self.host, "certType": "ssh", "certSubType": self.kind}


def known_hosts(text: str) -> list[Entry]:
    """Return the lines of known hosts that have three parts. Raises :class:`CertificateError` for too many."""
    lines = [line.strip() for line in text.splitlines()]
    found = [Entry(*parts) for line in lines if not line.startswith("#") and len(parts := line.split(" ", 2)) == 3]
    if len(found) > MAX_ENTRIES:
        raise CertificateError("limit exceeded")
    return found


def fingerprint(data: str) -> str:
    """Return the SHA-256 of a public key as ssh prints it, empty for what is no key."""
    blob = _blob(data)
    return "" if blob is None else base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def _blob(data: str) -> bytes | None:
    try:
        return base64.b64decode(data.split(" ", 1)[0], validate=True) or None
    except (binascii.Error, ValueError):
        return None


def pem_blocks(text: str) -> list[str]:
    """Return the certificates of a text, each with its markers. Raises :class:`CertificateError`."""
    found: list[str] = []
    block: list[str] = []
    for line in text.splitlines():
        if not block and not line.startswith(_BEGIN):
            continue
        block.append(line)
        if len(block) > MAX_LINES:
            raise CertificateError("maximum number of lines exceeded during certificate parsing")
        if line.startswith(_END):
            found.append("\n".join(block) + "\n")
            block = []
            if len(found) > MAX_ENTRIES:
                raise CertificateError("limit exceeded")
    return found


def _described(pem: str) -> tuple[str, str]:
    """Return subject and algorithm of a certificate. Raises :class:`CertificateError`."""
    try:
        certificate = x509.load_pem_x509_certificate(pem.encode())
        key = certificate.public_key()
        parts = list(certificate.subject)
    except (ValueError, TypeError) as error:
        raise CertificateError("could not parse X509 data from input") from error
    algorithm = next((name for kind, name in _ALGORITHMS if isinstance(key, kind)), "")
    algorithm = "ed25519" if isinstance(key, ed25519.Ed25519PublicKey) else algorithm
    names = (f"{_SHORT.get(one.oid._name, one.oid.dotted_string)}={one.value!s}" for one in reversed(parts))
    return ",".join(names), algorithm


def listed(hosts: str, certificates: Mapping[str, str], wanted: Wanted) -> list[Obj]:
    """Return what is stored, without the data of certificates. Raises :class:`CertificateError`."""
    found: list[Obj] = []
    if wanted.ssh:
        entries = [one for one in known_hosts(hosts) if wanted.takes(one)]
        found += [one.as_certificate() | {"certInfo": f"SHA256:{fingerprint(one.data)}"} for one in entries]
    if wanted.tls:
        for host in sorted(host for host in certificates if wanted.names(host)):
            found += _tls_listed(host, certificates[host])
    return found


def _tls_listed(host: str, text: str) -> Iterator[Obj]:
    try:
        blocks = pem_blocks(text)
    except CertificateError:
        return
    for pem in blocks:
        try:
            info, algorithm = _described(pem)
        except CertificateError as error:
            info, algorithm = str(error), "invalid"
        yield {"serverName": host, "certType": "https", "certSubType": algorithm, "certInfo": info}


def added(
    hosts: str, certificates: Mapping[str, str], given: Sequence[Obj], *, upsert: bool
) -> tuple[list[Entry], dict[str, str], list[Obj]]:
    """Return both stores with what a request gives, and what was new or changed. Raises :class:`CertificateError`."""
    entries, pems, created = known_hosts(hosts), dict(certificates), list[Obj]()
    for one in given:
        name, kind = str(one.get("serverName") or ""), str(one.get("certType") or "")
        data = _text(one.get("certData"))
        ported = _PORTED.fullmatch(name)
        host = ported[1] if kind == "ssh" and ported is not None else name
        if kind not in ("ssh", "https"):
            raise CertificateError(f"unknown certificate type: {kind}")
        if not _HOST.fullmatch(host) and not (":" in host and _IPV6.fullmatch(host)):
            raise CertificateError(f"invalid hostname in request: {host}")
        if kind == "https":
            created += _put_tls(pems, name, data, upsert=upsert)
        else:
            created += _put_host(entries, Entry(name, str(one.get("certSubType") or ""), data), upsert=upsert)
    if len(entries) > MAX_ENTRIES:
        raise CertificateError("limit exceeded")
    return entries, pems, created


def _text(data: object) -> str:
    try:
        return base64.b64decode(str(data or ""), validate=True).decode()
    except (binascii.Error, ValueError):
        raise CertificateError("certData is no text in base64") from None


def _put_host(entries: list[Entry], entry: Entry, *, upsert: bool) -> list[Obj]:
    blob, size = _blob(entry.data), len(entry.kind)
    named = blob is not None and blob[:4] == size.to_bytes(4, "big") and blob[4 : 4 + size] == entry.kind.encode()
    if not named or any(ord(letter) < 32 for letter in str(entry)) or " " in entry.kind:
        raise CertificateError(f"the key for '{entry.host}' is no public key of type '{entry.kind}'")
    at = next((i for i, one in enumerate(entries) if (one.host, one.kind) == (entry.host, entry.kind)), None)
    if at is None:
        entries.append(entry)
    elif entries[at].data == entry.data:
        return []
    elif not upsert:
        raise CertificateError(
            f"key for '{entry.host}' (subtype: '{entry.kind}') already exists, and upsert was not specified"
        )
    else:
        entries[at] = entry
    data = base64.b64encode(entry.data.encode()).decode()
    return [entry.as_certificate() | {"certData": data, "certInfo": fingerprint(entry.data)}]


def _put_tls(pems: dict[str, str], name: str, data: str, *, upsert: bool) -> list[Obj]:
    if name in pems and pems[name] != data and not upsert:
        raise CertificateError(f"TLS certificate for server '{name}' already exists, and upsert was not specified")
    blocks = pem_blocks(data)
    if not blocks:
        raise CertificateError("no valid PEM data received")
    for pem in blocks:
        _described(pem)
    if pems.get(name) == data:
        return []
    pems[name] = data
    return [_tls_data(name, pem) for pem in blocks]


def _tls_data(name: str, pem: str) -> Obj:
    return {"serverName": name, "certType": "https", "certData": base64.b64encode(pem.encode()).decode()}


def without(
    hosts: str, certificates: Mapping[str, str], wanted: Wanted
) -> tuple[list[Entry], dict[str, str], list[Obj]]:
    """Return both stores without what a request names, and what was taken away. Raises :class:`CertificateError`."""
    entries = known_hosts(hosts)
    gone = [one for one in entries if wanted.ssh and wanted.takes(one)]
    removed = [one.as_certificate() | {"certData": base64.b64encode(one.data.encode()).decode()} for one in gone]
    left = {name: text for name, text in certificates.items() if not (wanted.tls and wanted.names(name))}
    for name in sorted(certificates.keys() - left.keys()):
        removed += [_tls_data(name, pem) for pem in pem_blocks(certificates[name])]
    return [one for one in entries if one not in gone], left, removed
