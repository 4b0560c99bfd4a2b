"""Encrypt objects at rest, with configured resources and keys, in the format of Kubernetes' API server.

``datafile`` and ``disk`` call it for each row; ``assembly`` gives the text of a key file. Pure except for nonces, which
always come from the operating system, even in a seeded world.

A sealed value is ``k8s:enc:PROVIDER:v1:KEY:`` and the ciphertext, as in etcd (apiserver ``pkg/storage/value/encrypt``).
``aesgcm`` authenticates the value together with its key in the store, so that rows cannot be swapped; ``aescbc``
authenticates nothing and exists for compatibility. The first key of the first provider in a matching rule seals; all
keys of the file open.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from syncline.cluster.storage.store import Key
from syncline.kube.yaml import loading as yaml

SEALED = b"k8s:enc:"
"""Prefix of every sealed value; JSON never begins like this."""

NONCE_BYTES = 12
BLOCK_BYTES = 16
KEY_BYTES = 32
KEY_LIMIT = 100
CONFIGURATION = "EncryptionConfiguration"
PROVIDERS = ("aesgcm", "aescbc", "identity")
HOW_TO_MAKE = "make a key with: head -c 32 /dev/urandom | base64"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


class EncryptionError(ValueError):
    """The key file is invalid, or no key opens a value. Messages contain no key and no value."""


@dataclass(frozen=True, slots=True)
class _Provider:
    """One key of one provider; ``identity`` has no key."""

    kind: str
    name: str = ""
    secret: bytes = b""

    @property
    def prefix(self) -> bytes:
        return b"" if self.kind == "identity" else f"k8s:enc:{self.kind}:v1:{self.name}:".encode()

    def __repr__(self) -> str:
        return f"{self.kind} {self.name}".rstrip()


@dataclass(frozen=True, slots=True)
class _Rule:
    resources: tuple[str, ...]
    providers: tuple[_Provider, ...]

    def covers(self, resource: str) -> bool:
        """Match ``group/plural``; patterns are ``secrets``, ``deployments.apps``, ``*.apps``, ``*.*``."""
        group, _, plural = resource.partition("/")
        names = (f"{plural}.{group}" if group else plural, f"*.{group}", "*.*")
        return any(pattern in names for pattern in self.resources)


class Encryption:
    """Seals and opens values. Immutable; used by the disk's thread."""

    def __init__(self, rules: Iterable[_Rule]) -> None:
        self._rules = tuple(rules)
        self._writers: dict[str, _Provider | None] = {}
        self._readers = [p for rule in self._rules for p in rule.providers if p.prefix]

    def seal(self, key: Key, raw: bytes) -> bytes:
        """Return the sealed value, or ``raw`` itself if its resource is not encrypted."""
        writer = self._writer(key.resource)
        if writer is None:
            return raw
        return writer.prefix + _SEAL[writer.kind](writer.secret, raw, _place(key))

    def open(self, key: Key, value: bytes) -> bytes:
        """Return the plain value, opened with any key that fits. Raises :class:`EncryptionError`."""
        if not value.startswith(SEALED):
            return value
        named = False
        for reader in self._readers:
            if value.startswith(reader.prefix):
                named = True
                try:
                    return _OPEN[reader.kind](reader.secret, value[len(reader.prefix) :], _place(key))
                except (InvalidTag, ValueError):
                    continue
        what = f"{key.resource.lstrip('/')} {key.namespace}/{key.name} is encrypted with {describe_seal(value)}"
        if named:
            raise EncryptionError(f"{what}, but the key of that name here is another one; give the key it was made by")
        raise EncryptionError(f"{what}, which is not among {self.described()}; add that key to the file")

    def is_current(self, key: Key, value: bytes) -> bool:
        """Return whether :meth:`seal` would use the same key for it."""
        writer = self._writer(key.resource)
        return value.startswith(writer.prefix) if writer is not None else not value.startswith(SEALED)

    def described(self) -> str:
        """Return the keys by provider and name, the sealing one first."""
        return ", ".join(dict.fromkeys(map(repr, self._readers))) or "no key"

    def _writer(self, resource: str) -> _Provider | None:
        if resource not in self._writers:
            rule = next((rule for rule in self._rules if rule.covers(resource)), None)
            first = rule.providers[0] if rule else None
            self._writers[resource] = first if first is not None and first.prefix else None
        return self._writers[resource]


def describe_seal(value: bytes) -> str:
    """Return ``key NAME (PROVIDER)`` of a sealed value."""
    parts = value[:200].split(b":", 5)
    if len(parts) < 6:
        return "an unknown form of encryption"
    return f"key {parts[4].decode(errors='replace')} ({parts[2].decode(errors='replace')})"


# -- key files --------------------------------------------------------------------------------------------------------


def encryption_of(text: str) -> Encryption:
    """Return the Encryption of a key file's text; raise :class:`EncryptionError`.

    The text has lines of ``NAME:BASE64`` or ``BASE64`` (32 bytes each, the first seals, for Secrets), or is Kubernetes'
    ``EncryptionConfiguration`` with the providers aesgcm, aescbc and identity.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
    if any(line.startswith(("kind:", "apiVersion:", "{", '"kind"')) for line in lines):
        return _configured(text)
    if not lines:
        raise EncryptionError(f"holds no key; {HOW_TO_MAKE}")
    if len(lines) > KEY_LIMIT:
        raise EncryptionError(f"{len(lines)} keys; at most {KEY_LIMIT} are read")
    keys = [_line(number, line) for number, line in enumerate(lines, 1)]
    _refuse_doubles(key.name for key in keys)
    return Encryption([_Rule(("secrets",), tuple(keys))])


def _line(number: int, line: str) -> _Provider:
    name, colon, encoded = line.rpartition(":")
    secret = _key_bytes(f"line {number}", encoded, (KEY_BYTES,))
    if not colon:
        name = "key-" + hashlib.sha256(secret).hexdigest()[:8]
    return _Provider("aesgcm", _checked_name(f"line {number}", name), secret)


def _configured(text: str) -> Encryption:
    try:
        found = yaml.load(text)
    except yaml.YamlError as error:
        # The parser's message may quote a key.
        raise EncryptionError(f"not YAML (line {error.position.line})") from None
    if not isinstance(found, dict) or found.get("kind") != CONFIGURATION:
        raise EncryptionError(f"neither lines of keys nor one {CONFIGURATION}; {HOW_TO_MAKE}")
    if found.get("apiVersion") not in ("apiserver.config.k8s.io/v1", "v1"):
        raise EncryptionError(f"apiVersion {found.get('apiVersion')!r}; write apiserver.config.k8s.io/v1")
    rules = [_rule(f"resources[{index}]", each) for index, each in enumerate(_list_of(found, "resources", ""))]
    return Encryption(rules)


def _rule(place: str, found: Any) -> _Rule:
    resources = [str(each) for each in _list_of(found, "resources", place)]
    providers: list[_Provider] = []
    for index, each in enumerate(_list_of(found, "providers", place)):
        providers.extend(_providers(f"{place}.providers[{index}]", each))
    _refuse_doubles(f"{provider.kind} {provider.name}" for provider in providers)
    return _Rule(tuple(resources), tuple(providers))


def _providers(place: str, found: Any) -> Iterator[_Provider]:
    if not isinstance(found, dict) or len(found) != 1:
        raise EncryptionError(f"{place}: exactly one provider, of {', '.join(PROVIDERS)}")
    ((kind, settings),) = found.items()
    if kind == "identity":
        yield _Provider("identity")
        return
    if kind not in PROVIDERS:
        raise EncryptionError(f"{place}: provider {kind} is not supported; use one of {', '.join(PROVIDERS)}")
    sizes = (16, 24, 32) if kind == "aesgcm" else (32,)
    for index, each in enumerate(_list_of(settings, "keys", f"{place}.{kind}")):
        at = f"{place}.{kind}.keys[{index}]"
        if not isinstance(each, dict):
            raise EncryptionError(f"{at}: write name and secret")
        secret = _key_bytes(at, str(each.get("secret") or ""), sizes)
        yield _Provider(kind, _checked_name(at, str(each.get("name") or "")), secret)


def _list_of(found: Any, name: str, place: str) -> list[Any]:
    value = found.get(name) if isinstance(found, dict) else None
    if not isinstance(value, list) or not value or len(value) > KEY_LIMIT:
        raise EncryptionError(f"{place + '.' if place else ''}{name}: write a list of 1 to {KEY_LIMIT} entries")
    return value


def _key_bytes(place: str, encoded: str, sizes: tuple[int, ...]) -> bytes:
    allowed = " or ".join(map(str, sizes))
    try:
        secret = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EncryptionError(f"{place}: the key is not base64 of {allowed} bytes; {HOW_TO_MAKE}") from error
    if len(secret) not in sizes:
        raise EncryptionError(f"{place}: the key has {len(secret)} bytes, {allowed} are needed; {HOW_TO_MAKE}")
    return secret


def _checked_name(place: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise EncryptionError(f"{place}: a key's name has 1 to 63 letters, digits, '.', '_' and '-'")
    return name


def _refuse_doubles(names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen and name.strip() != "identity":
            raise EncryptionError(f"two keys are called {name}; give each a name of its own")
        seen.add(name)


# -- ciphers ----------------------------------------------------------------------------------------------------------


def _place(key: Key) -> bytes:
    return "/".join(key).encode()


def _seal_gcm(secret: bytes, raw: bytes, place: bytes) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(secret).encrypt(nonce, raw, place)


def _open_gcm(secret: bytes, sealed: bytes, place: bytes) -> bytes:
    return AESGCM(secret).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], place)


def _seal_cbc(secret: bytes, raw: bytes, _place: bytes) -> bytes:
    padder, start = padding.PKCS7(BLOCK_BYTES * 8).padder(), os.urandom(BLOCK_BYTES)
    encryptor = Cipher(algorithms.AES(secret), modes.CBC(start)).encryptor()
    return start + encryptor.update(padder.update(raw) + padder.finalize()) + encryptor.finalize()


def _open_cbc(secret: bytes, sealed: bytes, _place: bytes) -> bytes:
    unpadder = padding.PKCS7(BLOCK_BYTES * 8).unpadder()
    decryptor = Cipher(algorithms.AES(secret), modes.CBC(sealed[:BLOCK_BYTES])).decryptor()
    padded = decryptor.update(sealed[BLOCK_BYTES:]) + decryptor.finalize()
    raw = unpadder.update(padded) + unpadder.finalize()
    if not raw.startswith(b"{"):
        raise ValueError("another key made this")
    return raw


_Change = Callable[[bytes, bytes, bytes], bytes]
_SEAL: dict[str, _Change] = {"aesgcm": _seal_gcm, "aescbc": _seal_cbc}
_OPEN: dict[str, _Change] = {"aesgcm": _open_gcm, "aescbc": _open_cbc}
