"""Seals bytes so that one cluster alone can read them, for one Application; pure: randomness comes from the caller.

X25519 with an ephemeral key, HKDF-SHA256 and AES-256-GCM (as the base mode of RFC 9180 does it). Cluster, Application
and the keyed digest of the plaintext are bound as associated data and in the derived key: a sealed chunk opens for
nothing else. Each key encrypts one message, so the nonce is fixed.

``cryptography`` is imported when something is sealed: most Applications are not, and commands that plan start at once.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Final

from syncline.argo.content.chunks import ContentError

KEY_BYTES: Final = 32
_LABEL: Final = b"syncline.dev/content/1"
_NONCE: Final = bytes(12)


@dataclass(frozen=True, slots=True)
class Recipient:
    """For whom something is sealed: the cluster, and namespace and name of the Application there."""

    cluster: str
    namespace: str
    name: str


NO_ONE: Final = Recipient("", "", "")


@dataclass(frozen=True, slots=True)
class PublicKey:
    """``id``: the first 16 characters of the digest of the key."""

    id: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class PrivateKey:
    raw: bytes = field(repr=False)

    @property
    def public(self) -> PublicKey:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        return public_key(X25519PrivateKey.from_private_bytes(self.raw).public_key().public_bytes_raw())


def public_key(raw: bytes) -> PublicKey:
    return PublicKey(hashlib.sha256(raw).hexdigest()[:16], raw)


def key_bytes(text: object) -> bytes:
    """Return the 32 bytes of a key in base64. Raises :class:`ContentError`."""
    try:
        raw = base64.b64decode(str(text or ""), validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != KEY_BYTES:
        raise ContentError(f"a key must be {KEY_BYTES} bytes in base64")
    return raw


def keyed_digest(secret: bytes, recipient: Recipient, key: str, plain: bytes) -> str:
    """Return the id of sealed bytes: equal for equal bytes, and no help to guess them without ``secret``."""
    return hmac.new(secret, _framed(_LABEL, *_who(recipient), key.encode(), plain), hashlib.sha256).hexdigest()


def seal(plain: bytes, recipient: Recipient, key: PublicKey, content_id: str, ephemeral: bytes) -> bytes:
    """Return the sealed bytes: the ephemeral public key, and the ciphertext with its tag. ``ephemeral``: 32 random
    bytes, for this one message. Raises :class:`ContentError` for a key that is none."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    mine = X25519PrivateKey.from_private_bytes(ephemeral)
    sender = mine.public_key().public_bytes_raw()
    try:
        shared = mine.exchange(X25519PublicKey.from_public_bytes(key.raw))
    except ValueError:
        raise ContentError(f"key {key.id} of cluster {recipient.cluster} is not a key of X25519") from None
    bound = _bound(recipient, content_id, sender, key.raw)
    return sender + AESGCM(_derived(shared, bound)).encrypt(_NONCE, plain, bound)


def unseal(sealed: bytes, recipient: Recipient, key: PrivateKey, content_id: str) -> bytes:
    """Return what was sealed. Raises :class:`ContentError` for bytes that were changed, or are for another cluster,
    Application or content."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    sender, text = sealed[:KEY_BYTES], sealed[KEY_BYTES:]
    bound = _bound(recipient, content_id, sender, key.public.raw)
    try:
        shared = X25519PrivateKey.from_private_bytes(key.raw).exchange(X25519PublicKey.from_public_bytes(sender))
        return AESGCM(_derived(shared, bound)).decrypt(_NONCE, text, bound)
    except (InvalidTag, ValueError):
        what = f"Application {recipient.namespace}/{recipient.name} of cluster {recipient.cluster}"
        raise ContentError(f"a sealed chunk was changed, or is not for {what}") from None


def ephemeral_of(seed: bytes, content_id: str) -> bytes:
    """Return the ephemeral key of one message from the randomness of one pass."""
    return hmac.new(seed, _framed(_LABEL, b"ephemeral", content_id.encode()), hashlib.sha256).digest()


def _who(recipient: Recipient) -> tuple[bytes, bytes, bytes]:
    return recipient.cluster.encode(), recipient.namespace.encode(), recipient.name.encode()


def _bound(recipient: Recipient, content_id: str, sender: bytes, key: bytes) -> bytes:
    return _framed(_LABEL, *_who(recipient), content_id.encode(), sender, key)


def _framed(*parts: bytes) -> bytes:
    """Return the parts with their lengths, so that no two lists of parts give the same bytes."""
    return b"".join(len(one).to_bytes(8, "big") + one for one in parts)


def _derived(shared: bytes, bound: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(SHA256(), KEY_BYTES, salt=None, info=bound).derive(shared)
