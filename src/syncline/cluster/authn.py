"""Who is calling: client certificate, bearer token, impersonation.

Called by ``serve`` once per request, with the headers and the certificate that TLS has verified against the cluster's
CA. Returns a :class:`UserInfo` or raises :class:`Unauthorized` or :class:`Forbidden` in Kubernetes' words. Never looks
at what is asked for, except that health and version are answered without credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias
from urllib.parse import unquote

from syncline.cluster.authz import Decision, forbidden
from syncline.cluster.pki import user_of_certificate
from syncline.cluster.rbac import Attributes, go_quoted
from syncline.cluster.tokens import ServiceAccountTokens
from syncline.cluster.users import ANONYMOUS, UserInfo, service_account_user
from syncline.kube.errors import BadRequest, Unauthorized

__all__ = ["Authenticator", "Headers", "is_public_path"]

Headers: TypeAlias = Mapping[str, Sequence[str]]
"""Lower-case names; every value of a repeated header, in order."""

CACHE_LIMIT_CERTIFICATES = 1_000
"""Parsed client certificates; one per user and rotation."""

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version")
EXTRA_PREFIX = "impersonate-extra-"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"

Authorize: TypeAlias = Callable[[UserInfo, Attributes], Decision]


def is_public_path(path: str) -> bool:
    """Answered to anyone, as Kubernetes' role system:public-info-viewer has it (``/livez/ping`` too)."""
    return any(path == public or path.startswith(public + "/") for public in PUBLIC_PATHS)


class Authenticator:
    """``fixed_tokens`` are bearer tokens of known users (the administrator's); ``authorize`` judges impersonation.

    ``without_credentials``: who callers without credentials are. None refuses them with 401 outside the public paths;
    ANONYMOUS leaves them to authorization (403), as Kubernetes does by default; ADMIN serves a loopback port openly.
    """

    def __init__(
        self,
        *,
        authorize: Authorize,
        tokens: ServiceAccountTokens | None = None,
        fixed_tokens: Mapping[str, UserInfo] | None = None,
        without_credentials: UserInfo | None = None,
    ) -> None:
        self._authorize = authorize
        self._tokens = tokens
        self._fixed_tokens = dict(fixed_tokens or {})
        self._without_credentials = without_credentials
        self._certificates: dict[bytes, tuple[UserInfo, datetime, datetime]] = {}

    @property
    def asks_nobody(self) -> bool:
        """Whether callers without credentials are somebody who may do more than the public."""
        return self._without_credentials not in (None, ANONYMOUS)

    def authenticate(self, headers: Headers, peer_cert_der: bytes | None, now: datetime, path: str = "") -> UserInfo:
        """The user to act as. Raises Unauthorized (no or bad credentials) or Forbidden (may not impersonate)."""
        return self.acting(self.identify(headers, peer_cert_der, now, path), headers, path)

    def identify(self, headers: Headers, peer_cert_der: bytes | None, now: datetime, path: str = "") -> UserInfo:
        """Who is calling, before impersonation. Raises Unauthorized."""
        user = self._credentials(headers, peer_cert_der, now)
        if user is None:
            user = self._without_credentials or (ANONYMOUS if is_public_path(path) else None)
        if user is None:
            raise Unauthorized("Unauthorized")
        return user

    def token_user(self, token: str, now: datetime, audiences: Sequence[str] = ()) -> tuple[UserInfo, list[str]] | None:
        """TokenReview: the user of a bearer token and its accepted audiences, or None."""
        fixed = self._fixed_tokens.get(token)
        if fixed is not None:
            return _authenticated(fixed), list(audiences)
        return self._tokens.verify(token, now=now, audiences=audiences) if self._tokens else None

    def _credentials(self, headers: Headers, peer_cert_der: bytes | None, now: datetime) -> UserInfo | None:
        """Certificate first, then token, as Kubernetes tries them; a bad token is refused at once."""
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

    def acting(self, user: UserInfo, headers: Headers, path: str) -> UserInfo:
        """Whom ``user`` acts as by impersonation headers; raises Forbidden."""
        wanted = _wanted(headers, path)
        if wanted is None:
            return user
        for asked in _impersonation_requests(wanted):
            decision = self._authorize(user, asked)
            if not decision.allowed:
                raise forbidden(user, asked, decision.reason)
        return _completed(wanted)


def _bearer_token(headers: Headers) -> str | None:
    """None when there is no bearer token; other schemes are ignored, as Kubernetes does."""
    for value in headers.get("authorization", ()):
        scheme, _, token = value.strip().partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            return token.strip()
    return None


def _authenticated(user: UserInfo) -> UserInfo:
    return user if AUTHENTICATED in user.groups else replace(user, groups=(*user.groups, AUTHENTICATED))


def _wanted(headers: Headers, path: str) -> UserInfo | None:
    """The user that the Impersonate headers name, or None; raises when they name attributes without a user."""
    names = [value for value in headers.get("impersonate-user", ()) if value]
    groups = tuple(headers.get("impersonate-group", ()))
    uid = next(iter(headers.get("impersonate-uid", ())), "")
    extra = {
        unquote(header.removeprefix(EXTRA_PREFIX)): tuple(values)
        for header, values in sorted(headers.items())
        if header.startswith(EXTRA_PREFIX)
    }
    if names:
        return UserInfo(names[0], groups, uid, extra)
    if groups or uid or extra:
        asked = f'Name:"", UID:{go_quoted([uid])[1:-1]}, Groups:{_go_strings(groups)}, Extra:{_go_extra(extra)}'
        raise BadRequest(f"requested &user.DefaultInfo{{{asked}}} without impersonating a user name")
    return None


def _go_strings(values: tuple[str, ...]) -> str:
    return f"[]string{{{go_quoted(values)[1:-1]}}}" if values else "[]string(nil)"


def _go_extra(extra: Mapping[str, tuple[str, ...]]) -> str:
    if not extra:
        return "map[string][]string(nil)"
    listed = ", ".join(f"{go_quoted([key])[1:-1]}:{_go_strings(values)}" for key, values in sorted(extra.items()))
    return f"map[string][]string{{{listed}}}"


def _impersonation_requests(wanted: UserInfo) -> list[Attributes]:
    """What must be allowed to become ``wanted``: one request for each attribute (withImpersonation)."""
    account = _service_account(wanted.name)
    if account:
        asked = [Attributes("impersonate", "", "serviceaccounts", namespace=account[0], name=account[1])]
    else:
        asked = [Attributes("impersonate", "", "users", name=wanted.name)]
    asked += [Attributes("impersonate", "", "groups", name=group) for group in wanted.groups]
    for key, values in wanted.extra.items():
        asked += [Attributes("impersonate", "authentication.k8s.io", "userextras", key, name=v) for v in values]
    if wanted.uid:
        asked.append(Attributes("impersonate", "authentication.k8s.io", "uids", name=wanted.uid))
    return asked


def _completed(wanted: UserInfo) -> UserInfo:
    """With the groups that the user has by nature."""
    account = _service_account(wanted.name)
    if account and not wanted.groups:
        wanted = replace(wanted, groups=service_account_user(*account).groups)
    if wanted.name == ANONYMOUS.name:
        missing = [group for group in ANONYMOUS.groups if group not in wanted.groups]
        return replace(wanted, groups=(*wanted.groups, *missing))
    return wanted if UNAUTHENTICATED in wanted.groups else _authenticated(wanted)


def _service_account(name: str) -> tuple[str, str] | None:
    if not name.startswith(SERVICE_ACCOUNT_PREFIX):
        return None
    parts = name.removeprefix(SERVICE_ACCOUNT_PREFIX).split(":")
    return (parts[0], parts[1]) if len(parts) == 2 and all(parts) else None
