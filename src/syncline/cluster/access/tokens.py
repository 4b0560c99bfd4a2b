"""Issue and verify service-account tokens: the JWTs of TokenRequest.

The API (TokenRequest, TokenReview) and ``authn`` call it. The signing key comes from ``pki``; a lookup function finds
the objects that a token is bound to, so that deleting them revokes it. Claims are those of Kubernetes'
``pkg/serviceaccount/claims.go``. Tokens never appear in messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt

from syncline.base.entropy import Entropy
from syncline.base.secret import Secret
from syncline.cluster.access.pki import SigningKey
from syncline.cluster.access.users import UserInfo, service_account_user
from syncline.kube.objects import Obj, dig

ISSUER = "https://kubernetes.default.svc.cluster.local"
"""Issuer and default audience, as kubeadm sets them."""

CACHE_LIMIT_TOKENS = 2_000
"""Cached tokens with a verified signature; a pod sends one token for an hour, in thousands of requests."""

UidLookup = Callable[[str, str, str], str]
"""(resource as in store keys, namespace, name) -> uid of the object, empty if it does not exist."""


@dataclass(frozen=True, slots=True)
class BoundObject:
    """An object that a token is bound to besides its service account: a Pod, Secret or Node."""

    kind: str
    name: str
    uid: str


_BOUND_RESOURCES = {"pod": "/pods", "secret": "/secrets", "node": "/nodes"}


@dataclass(frozen=True, slots=True)
class IssuedToken:
    token: Secret
    expires_at: datetime


class ServiceAccountTokens:
    """Issues and verifies tokens with one key."""

    def __init__(self, key: SigningKey, uid_of: UidLookup, entropy: Entropy) -> None:
        self._key = key
        self._uid_of = uid_of
        self._entropy = entropy
        self._checked: dict[str, Obj] = {}

    def issue(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        now: datetime,
        lifetime_s: int,
        audiences: Sequence[str] = (),
        bound: Sequence[BoundObject] = (),
    ) -> IssuedToken:
        """Return a token of the service account with that uid. Empty ``audiences``: the API server."""
        issued_at = int(now.timestamp())
        private: Obj = {"namespace": namespace}
        for item in sorted(bound, key=lambda item: item.kind):
            private[item.kind.lower()] = {"name": item.name, "uid": item.uid}
        private["serviceaccount"] = {"name": name, "uid": uid}
        claims = {
            "aud": list(audiences) or [ISSUER],
            "exp": issued_at + lifetime_s,
            "iat": issued_at,
            "iss": ISSUER,
            "jti": self._entropy.uid(),
            "kubernetes.io": private,
            "nbf": issued_at,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        token = jwt.encode(claims, self._key.private_pem.reveal(), "ES256", headers={"kid": self._key.key_id})
        return IssuedToken(Secret(token), datetime.fromtimestamp(issued_at, UTC) + timedelta(seconds=lifetime_s))

    def verify(self, token: str, *, now: datetime, audiences: Sequence[str] = ()) -> tuple[UserInfo, list[str]] | None:
        """Return the user of a token and its accepted audiences; None if it is invalid.

        It must have our signature, be within its validity, name one of ``audiences`` (empty: the API server), and its
        service account and bound objects must still have their uids.
        """
        claims = self._claims(token)
        if claims is None or not _in_time(claims, now):
            return None
        accepted = [audience for audience in audiences or (ISSUER,) if audience in _audiences(claims)]
        private = claims.get("kubernetes.io")
        if not accepted or not isinstance(private, dict) or not self._alive(private):
            return None
        return _user_of(claims, private), accepted

    def jwks(self) -> Obj:
        """Return the public key in the form of ``/openid/v1/jwks``."""
        return {"keys": [self._key.public_jwk()]}

    def _claims(self, token: str) -> Obj | None:
        """Verify only signature and form; validity and objects are checked on each use."""
        known = self._checked.get(token)
        if known is not None:
            return known
        options: Any = {
            "verify_exp": False,  # PyJWT would read the machine's clock.
            "verify_iat": False,
            "verify_nbf": False,
            "verify_aud": False,
            "require": ["exp", "iat", "nbf", "sub"],
        }
        try:
            claims = jwt.decode(token, self._key.public_pem, ["ES256"], options, issuer=ISSUER)
        except (jwt.InvalidTokenError, ValueError):
            return None
        if len(self._checked) >= CACHE_LIMIT_TOKENS:
            self._checked.clear()
        self._checked[token] = claims
        return claims

    def _alive(self, private: Obj) -> bool:
        namespace = dig(private, "namespace", default="")
        bound = [("/serviceaccounts", namespace, private.get("serviceaccount"))]
        for kind, resource in _BOUND_RESOURCES.items():
            if kind in private and not (kind == "node" and "pod" in private):
                bound.append((resource, "" if kind == "node" else namespace, private[kind]))
        for resource, space, claimed in bound:
            uid, name = dig(claimed, "uid", default=""), dig(claimed, "name", default="")
            if not all(isinstance(each, str) for each in (uid, name, space)):
                return False
            if not uid or self._uid_of(resource, space, name) != uid:
                return False
        return True


def _audiences(claims: Obj) -> list[str]:
    value = claims.get("aud")
    return [value] if isinstance(value, str) else [item for item in value or [] if isinstance(item, str)]


def issuer_documents(tokens: ServiceAccountTokens) -> dict[str, tuple[str, Obj]]:
    """Return media type and content by path: the documents of OpenID Connect discovery."""
    about = {
        "issuer": ISSUER,
        "jwks_uri": f"{ISSUER}/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    return {
        "/.well-known/openid-configuration": ("application/json", about),
        "/openid/v1/jwks": ("application/jwk-set+json", tokens.jwks()),
    }


def _in_time(claims: Obj, now: datetime) -> bool:
    moment = now.timestamp()
    try:
        return bool(claims["nbf"] <= moment < claims["exp"])
    except TypeError:
        return False


def _user_of(claims: Obj, private: Obj) -> UserInfo:
    account = private["serviceaccount"]
    user = service_account_user(private["namespace"], account["name"], account["uid"])
    extra: dict[str, tuple[str, ...]] = {}
    if claims.get("jti"):
        extra["authentication.kubernetes.io/credential-id"] = (f"JTI={claims['jti']}",)
    for kind in ("node", "pod"):
        if kind in private:
            extra[f"authentication.kubernetes.io/{kind}-name"] = (private[kind]["name"],)
            extra[f"authentication.kubernetes.io/{kind}-uid"] = (private[kind].get("uid", ""),)
    return replace(user, extra=extra)
