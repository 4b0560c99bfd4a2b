"""Values that travel in policies encrypted: AES in CBC mode with a key for each cluster, as upstream's; pure.

The initialization vector belongs to a policy and is no secret. The key is in the Secret ``policy-encryption-key``: of
the cluster's namespace on the hub, which the cluster's agent may read, and of the same namespace on the cluster.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from syncline.kube.objects import Obj, dig
from syncline.patterns.policies.templates.text import ENCRYPTED

IV_BYTES: Final = 16
KEY_BYTES: Final = 32
_VALUE: Final = re.compile(re.escape(ENCRYPTED) + "([a-zA-Z0-9+/=]+)")


class EncryptionError(Exception):
    """Why a value cannot be encrypted or decrypted; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class Keys:
    """``vector``: 16 bytes; ``previous``: the key before it was rotated, or empty."""

    key: bytes = field(repr=False)
    vector: bytes
    previous: bytes = field(default=b"", repr=False)


def vector_of(text: str) -> bytes:
    """Return the initialization vector of an annotation. Raises :class:`EncryptionError`."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EncryptionError(
            f'the policy annotation of "policy.open-cluster-management.io/encryption-iv" is not Base64: {error}'
        ) from error


def keys_of(secret: Obj, vector: bytes) -> Keys:
    """Return the keys of a Secret. Raises :class:`EncryptionError`."""
    found = [_bytes(dig(secret, "data", name)) for name in ("key", "previousKey")]
    if len(found[0]) not in (16, 24, 32):
        raise EncryptionError('The "policy-encryption-key" Secret contains an invalid AES key')
    if len(vector) != IV_BYTES:
        name = "policy.open-cluster-management.io/encryption-iv"
        raise EncryptionError(f'The "{name}" annotation value is not a valid initialization vector')
    return Keys(found[0], vector, found[1])


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(str(value or ""), validate=True)
    except (binascii.Error, ValueError):
        return b""


def protect(value: str, keys: Keys) -> str:
    """Return the encrypted value with its mark; an empty one stays."""
    if not value:
        return value
    padder = PKCS7(128).padder()
    padded = padder.update(value.encode("utf-8", "surrogateescape")) + padder.finalize()
    cipher = Cipher(algorithms.AES(keys.key), modes.CBC(keys.vector)).encryptor()
    return ENCRYPTED + base64.b64encode(cipher.update(padded) + cipher.finalize()).decode()


def decrypted(text: str, keys: Keys) -> tuple[str, bool]:
    """Return the text with each encrypted value replaced, and whether there was one. Raises
    :class:`EncryptionError`."""
    found = False

    def plain(match: re.Match[str]) -> str:
        nonlocal found
        found = True
        try:
            return _decrypt(match[1], keys)
        except EncryptionError as error:
            raise EncryptionError(f"decryption of {match[0]} failed: {error}") from error

    return _VALUE.sub(plain, text), found


def _decrypt(value: str, keys: Keys) -> str:
    try:
        sealed = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EncryptionError(f"{value}: the encrypted string is invalid base64: {error}") from error
    for key in filter(None, (keys.key, keys.previous)):
        try:
            cipher = Cipher(algorithms.AES(key), modes.CBC(keys.vector)).decryptor()
            padded = cipher.update(sealed) + cipher.finalize()
            unpadder = PKCS7(128).unpadder()
            return (unpadder.update(padded) + unpadder.finalize()).decode("utf-8", "surrogateescape")
        except ValueError:
            continue
    raise EncryptionError("invalid PCKS7 padding: the padding length is invalid")
