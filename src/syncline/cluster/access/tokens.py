"""Service-account tokens: issuing and verifying the JWTs of TokenRequest.

Called by the API (TokenRequest, TokenReview) and by ``authn``. The signing key comes from ``pki``; objects that a token
is bound to are looked up through a function, so that a token dies with them. Claims are those of Kubernetes'
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

__all__ = ["ISSUER", "BoundObject", "IssuedToken", "ServiceAccountTokens", "UidLookup", "issuer_documents"]

ISSUER = "https://kubernetes.default.svc.cluster.local"
"""Issuer and default audience, as kubeadm sets them."""

CACHE_LIMIT_TOKENS = 2_000
"""Tokens whose signature was checked already; a pod uses one token for an hour, in thousands of requests."""

UidLookup = Callable[[str, str, str], str]
"""(resource as in store keys, namespace, name) -> uid of the object, empty when it does not exist."""


@dataclass(frozen=True, slots=True)
class BoundObject:
    """What a token lives and dies with besides its service account: a Pod, Secret or Node."""

    kind: str
    name: str
    uid: str


_BOUND_RESOURCES = {"pod": "/pods", "secret": "/secrets", "node": "/nodes"}


@dataclass(frozen=True, slots=True)
class IssuedToken:
    token: Secret
    expires_at: datetime


class ServiceAccountTokens:
    """Issues and verifies with one key; see the module."""

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
        """A token of the service account with that uid. ``audiences`` empty: the API server itself."""
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
        """The user behind a token and the audiences it was accepted for; None when it counts for nothing.

        It must be signed by our key, be within its time, name one of ``audiences`` (empty: the API server), and the
        service account and the bound objects must still have the uids in it.
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
        """The public key as ``/openid/v1/jwks`` shows it."""
        return {"keys": [self._key.public_jwk()]}

    def _claims(self, token: str) -> Obj | None:
        """Signature and form only; times and objects are judged afresh each time."""
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
    """By path, the media type and content of what others need to verify tokens (OpenID Connect discovery)."""
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
