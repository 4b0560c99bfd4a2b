"""Authenticate the caller: client certificate, bearer token, impersonation.

``serve`` calls it once per request, with the headers and the certificate that TLS verified against the cluster's CA. It
returns a :class:`UserInfo` or raises :class:`Unauthorized` or :class:`Forbidden` in Kubernetes' words. Health and
version paths need no credentials; the request itself is read only for impersonation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from syncline.cluster.access.attributes import attributes_of
from syncline.cluster.access.impersonation import AUTHENTICATED, Acting, Authorize, Headers, Impersonation
from syncline.cluster.access.pki import user_of_certificate
from syncline.cluster.access.tokens import ServiceAccountTokens
from syncline.cluster.access.users import ANONYMOUS, UserInfo
from syncline.kube.client import Request
from syncline.kube.errors import Unauthorized

__all__ = ["Authenticator", "Headers"]

CACHE_LIMIT_CERTIFICATES = 1_000
"""Parsed client certificates; one per user and rotation."""

PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version")


def is_public_path(path: str) -> bool:
    """Return whether anyone may read the path, as in the role system:public-info-viewer (with ``/livez/ping``)."""
    return any(path == public or path.startswith(public + "/") for public in PUBLIC_PATHS)


class Authenticator:
    """``fixed_tokens`` are bearer tokens of known users (the administrator's); ``authorize`` judges impersonation.

    ``without_credentials`` is the user of callers without credentials. None refuses them with 401 outside the public
    paths; ANONYMOUS leaves them to authorization (403), as Kubernetes does by default; ADMIN opens a loopback port.
    """

    def __init__(
        self,
        *,
        authorize: Authorize,
        tokens: ServiceAccountTokens | None = None,
        fixed_tokens: Mapping[str, UserInfo] | None = None,
        without_credentials: UserInfo | None = None,
    ) -> None:
        self._impersonation = Impersonation(authorize)
        self._tokens = tokens
        self._fixed_tokens = dict(fixed_tokens or {})
        self._without_credentials = without_credentials
        self._certificates: dict[bytes, tuple[UserInfo, datetime, datetime]] = {}

    @property
    def trusts_without_credentials(self) -> bool:
        """Return whether callers without credentials have more rights than anonymous ones."""
        return self._without_credentials not in (None, ANONYMOUS)

    def authenticate(self, headers: Headers, peer_cert_der: bytes | None, now: datetime, request: Request) -> UserInfo:
        """Return the effective user. Raises Unauthorized (no or bad credentials) or Forbidden (may not impersonate)."""
        return self.acting(self.identify(headers, peer_cert_der, now, request.path), headers, request).user

    def identify(self, headers: Headers, peer_cert_der: bytes | None, now: datetime, path: str = "") -> UserInfo:
        """Return the caller, before impersonation. Raises Unauthorized."""
        user = self._credentials(headers, peer_cert_der, now)
        if user is None:
            user = self._without_credentials or (ANONYMOUS if is_public_path(path) else None)
        if user is None:
            raise Unauthorized("Unauthorized")
        return user

    def token_user(self, token: str, now: datetime, audiences: Sequence[str] = ()) -> tuple[UserInfo, list[str]] | None:
        """Return the user of a bearer token and its accepted audiences, or None; for TokenReview."""
        fixed = self._fixed_tokens.get(token)
        if fixed is not None:
            return _authenticated(fixed), list(audiences)
        return self._tokens.verify(token, now=now, audiences=audiences) if self._tokens else None

    def _credentials(self, headers: Headers, peer_cert_der: bytes | None, now: datetime) -> UserInfo | None:
        """Try the certificate, then the token, as Kubernetes does; raise Unauthorized for a bad token."""
        if peer_cert_der:
            user = self._certificate_user(peer_cert_der, now)
            if user is not None:
                return user
        token = _bearer_token(headers)
        if token is None:
            return None
        found = self.token_user(token, now)
        if found is None:
            raise Unauthorized("Unauthorized")
        return found[0]

    def _certificate_user(self, der: bytes, now: datetime) -> UserInfo | None:
        known = self._certificates.get(der)
        if known is None:
            try:
                known = user_of_certificate(der)
            except ValueError:
                return None
            if len(self._certificates) >= CACHE_LIMIT_CERTIFICATES:
                self._certificates.clear()
            self._certificates[der] = known
        user, first, last = known
        if not first <= now <= last:  # A connection may outlive the certificate that opened it.
            raise Unauthorized("Unauthorized")
        return _authenticated(user)

    def acting(self, user: UserInfo, headers: Headers, request: Request) -> Acting:
        """Return the user that the impersonation headers select; raise BadRequest or Forbidden."""
        return self._impersonation.acting(user, headers, lambda: attributes_of(request))


def _bearer_token(headers: Headers) -> str | None:
    """Return the bearer token, or None; other schemes are ignored, as in Kubernetes."""
    for value in headers.get("authorization", ()):
        scheme, _, token = value.strip().partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            return token.strip()
    return None


def _authenticated(user: UserInfo) -> UserInfo:
    return user if AUTHENTICATED in user.groups else replace(user, groups=(*user.groups, AUTHENTICATED))
