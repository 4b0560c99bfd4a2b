"""Which tokens are valid, and whose they are: :func:`checked`, :func:`session_claims`.

Pure; signatures are checked before (:mod:`syncline.argo.access.signing`). Rules: Argo CD
``util/session/sessionmanager.go`` and ``pkg/apis/application/v1alpha1/app_project_types.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from syncline.argo.access.accounts import CAPABILITIES, Accounts, Capability
from syncline.argo.access.rights import Identity, identity_of, project_role
from syncline.kube.objects import Obj, dig

ISSUER = "argocd"
SESSION = timedelta(hours=24)
"""The default of ``users.session.duration``."""
RENEWED = timedelta(minutes=5)
"""A session that ends within this time is renewed by the answer to its next request."""
MAX_NAME = 32
"""Bytes of an account's name at login."""


class TokenError(ValueError):
    """The token is not valid; the text says why and may be shown to its bearer."""


@dataclass(frozen=True, slots=True)
class Session:
    """A valid token: whose it is, and the claims of its successor where it ends soon."""

    identity: Identity
    renewed: Mapping[str, Any] | None = None


def token_claims(subject: str, identifier: str, now: datetime, lasts: timedelta | None) -> dict[str, Any]:
    """Return the claims of a token of ours; ``lasts`` None: it has no end."""
    issued = int(now.timestamp())
    claims: dict[str, Any] = {"iss": ISSUER, "sub": subject, "nbf": issued, "iat": issued, "jti": identifier}
    return claims | ({"exp": issued + int(lasts.total_seconds())} if lasts else {})


def session_claims(name: str, identifier: str, now: datetime, lasts: timedelta = SESSION) -> dict[str, Any]:
    """Return the claims of a person's session."""
    return token_claims(f"{name}:{Capability.LOGIN}", identifier, now, lasts)


def checked(
    claims: Mapping[str, Any],
    accounts: Accounts,
    project: Callable[[str], Obj | None],
    revoked: Collection[str],
    now: datetime,
    new_id: Callable[[], str],
) -> Session:
    """Return whose token of ours this is. Raises :class:`TokenError`.

    ``revoked`` holds the ids of sessions that were ended; ``new_id`` names the successor of a session that ends soon.
    """
    issued = _number(claims, "iat")
    _check_times(claims, now)
    subject = identity_of(claims).subject
    role = project_role(subject)
    if role is not None:
        _check_project(project(role[0]), role, issued, _text(claims, "jti"))
        return Session(identity_of(claims))
    name, capability = _account_of(subject)
    account = accounts.by_name.get(name)
    if account is None:
        raise TokenError(f"account '{name}' does not exist")
    if not account.enabled:
        raise TokenError(f"account {name} is disabled")
    if capability not in account.capabilities:
        raise TokenError(f"account {name} does not have '{capability}' capability")
    identifier = _text(claims, "jti")
    if not identifier:
        raise TokenError("token does not have a unique identifier (jti claim) and cannot be validated")
    if identifier in revoked:
        raise TokenError("token is revoked, please re-login")
    if capability is Capability.API_KEY and account.token(identifier) is None:
        raise TokenError(f"account {name} does not have token with id {identifier}")
    changed = account.password_changed
    if changed is not None and datetime.fromtimestamp(issued, UTC) < changed:
        raise TokenError("account password has changed since token issued")
    renewed = _renewed(claims, issued, now, name, new_id) if capability is Capability.LOGIN else None
    return Session(identity_of({**claims, "sub": name}), renewed)


def _renewed(
    claims: Mapping[str, Any], issued: int, now: datetime, name: str, new_id: Callable[[], str]
) -> Mapping[str, Any] | None:
    if "exp" not in claims:
        return None
    expires = _number(claims, "exp")
    if datetime.fromtimestamp(expires, UTC) - now >= RENEWED:
        return None
    return session_claims(name, new_id(), now, timedelta(seconds=expires - issued))


def _check_times(claims: Mapping[str, Any], now: datetime) -> None:
    if "exp" in claims and now.timestamp() >= _number(claims, "exp"):
        raise TokenError("token has invalid claims: token is expired")
    if "nbf" in claims and now.timestamp() < _number(claims, "nbf"):
        raise TokenError("token has invalid claims: token is not valid yet")


def _check_project(project: Obj | None, role: tuple[str, str], issued: int, identifier: str) -> None:
    """Raise unless the project lists the token: by its id, else by the second in which it was issued."""
    name, role_name = role
    if project is None:
        raise TokenError(f'appproject.argoproj.io "{name}" not found')
    listed = dig(project, "status", "jwtTokensByRole", role_name, "items", default=()) or ()
    known = any(identifier and token.get("id") == identifier for token in listed)
    if not known and not any(token.get("iat") == issued for token in listed):
        raise TokenError(f"JWT token for role '{role_name}' issued at '{issued}' does not exist in project '{name}'")


def _account_of(subject: str) -> tuple[str, Capability]:
    """Return name and capability of ``NAME:CAPABILITY``; a name alone is one of a pipeline's token."""
    name, _, rest = subject.partition(":")
    word = rest.partition(":")[0]
    return name, Capability(word) if word in CAPABILITIES else Capability.API_KEY


def _text(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    return value if isinstance(value, str) else ""


def _number(claims: Mapping[str, Any], name: str) -> int:
    value = claims.get(name)
    if value is None:
        raise TokenError(f"token does not have {name} claim")
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1 << 40:
        raise TokenError(f"{name} '{value}' is not a number")
    return int(value)
