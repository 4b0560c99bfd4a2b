"""Signs and reads tokens of ours: :func:`sign`, :func:`read_token`. Pure; HMAC with the key of ``argocd-secret``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jwt
from jwt.types import Options

from syncline.argo.access.sessions import TokenError
from syncline.base.secret import Secret

ALGORITHM = "HS256"
ACCEPTED = ("HS256", "HS384", "HS512")
"""What upstream accepts: any HMAC, never a key of another kind or none at all."""
UNTIMED: Options = {
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}
"""Only the signature: :mod:`syncline.argo.access.sessions` judges the claims."""
UNPROVED: Options = {**UNTIMED, "verify_signature": False}
MAX_TOKEN = 16_384
"""Letters of a token."""


def sign(claims: Mapping[str, Any], key: Secret) -> Secret:
    """Return the signed token."""
    return Secret(jwt.encode(dict(claims), key.reveal(), ALGORITHM))


def issuer_of(token: Secret) -> str:
    """Return the issuer that a token names, unproved, to choose who proves it. Raises :class:`TokenError`."""
    found = _decoded(token, None)
    issuer = found.get("iss")
    return issuer if isinstance(issuer, str) else ""


def read_token(token: Secret, key: Secret) -> Mapping[str, Any]:
    """Return the claims of a token with our signature; its times are not looked at. Raises :class:`TokenError`."""
    return _decoded(token, key)


def _decoded(token: Secret, key: Secret | None) -> Mapping[str, Any]:
    text = token.reveal()
    if len(text) > MAX_TOKEN:
        raise TokenError(f"the token has {len(text)} letters; at most {MAX_TOKEN} are read")
    try:
        claims = jwt.decode(text, key.reveal() if key else "", list(ACCEPTED), options=UNTIMED if key else UNPROVED)
    except jwt.PyJWTError as error:
        raise TokenError(f"the token cannot be read: {error}") from error
    return claims
