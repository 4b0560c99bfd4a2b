"""Hashes of passwords as Argo CD keeps them: :func:`hashed`, :func:`matches`.

Pure, and slow on purpose: a call takes 50 milliseconds of CPU, so a server calls them beside its loop. A caller with an
unknown name compares with :data:`NO_ACCOUNT`, so that an answer takes the same time whether a name exists or not.
"""

from __future__ import annotations

import base64
import string

import bcrypt

from syncline.base.secret import Secret

COST = 10
"""Rounds as a power of two, as upstream has them."""
MAX_BYTES = 72
"""Bcrypt reads no further; a longer new password is refused, as upstream refuses it."""
SALT_BYTES = 16
_PLAIN = (string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/").encode()
_BCRYPT = ("./" + string.ascii_uppercase + string.ascii_lowercase + string.digits).encode()
NO_ACCOUNT = Secret("$2b$10$wQ1bqV7oYvYdV9W6Ue0bUeXq7Qh4o6dTqg1b9f6mH0cJ0e5S8b0Wu")
"""The hash of no password that an account has."""


def hashed(password: Secret, salt: bytes) -> Secret:
    """Return the hash of a new password; ``salt``: 16 drawn bytes. Raises ``ValueError`` if it is empty or too long."""
    text = password.reveal().encode()
    if not text:
        raise ValueError("blank passwords are not allowed")
    if len(text) > MAX_BYTES:
        raise ValueError(f"the password has {len(text)} bytes; at most {MAX_BYTES} are allowed")
    return Secret(bcrypt.hashpw(text, f"$2a${COST}$".encode() + _spelled(salt)).decode())


def matches(password: Secret, known: Secret) -> bool:
    """Return whether ``known`` is the hash of ``password``; a hash that cannot be read matches nothing."""
    text = password.reveal().encode()[:MAX_BYTES]
    try:
        return bool(text) and bcrypt.checkpw(text, known.reveal().encode())
    except ValueError:
        return False


def _spelled(salt: bytes) -> bytes:
    """Return the salt in bcrypt's own alphabet of base64."""
    if len(salt) != SALT_BYTES:
        raise ValueError(f"the salt has {len(salt)} bytes; {SALT_BYTES} are allowed")
    return base64.b64encode(salt).rstrip(b"=").translate(bytes.maketrans(_PLAIN, _BCRYPT))
