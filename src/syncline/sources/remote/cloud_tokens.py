"""Gets access tokens, valid for an hour, for Git hosts of Google and Azure: :func:`with_cloud_token`.

``sources/git/mirrors.py`` calls it before a remote call. The account authenticates with its key or secret at the token
endpoint in its Secret; the token is cached until shortly before it expires. Rules: Argo CD ``util/git`` creds, RFC 7523
(Google), OAuth 2.0 client credentials (Azure).
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from syncline.base.clock import SystemClock
from syncline.base.secret import Secret
from syncline.sources.errors import Problem, SourceError
from syncline.sources.remote.credentials import AzurePrincipal, RepositoryAccess

GOOGLE_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
GOOGLE_TOKENS = "https://oauth2.googleapis.com/token"
AZURE_LOGIN = "https://login.microsoftonline.com"
AZURE_SCOPE = "499b84ac-1321-427f-aa17-267ca6975798/.default"
"""Azure DevOps, as Microsoft numbers it."""
BEFORE_END = timedelta(minutes=5)
SIGNED_FOR = timedelta(minutes=30)
SHORTEST_S, LONGEST_S = 60, 3600
MAX_TOKENS = 500

_tokens: dict[str, tuple[Secret, datetime]] = {}
_lock = threading.Lock()


def forget_cloud_tokens() -> None:
    """Clear the cache, for tests."""
    with _lock:
        _tokens.clear()


def with_cloud_token(access: RepositoryAccess) -> RepositoryAccess:
    """Return ``access`` with a token, or unchanged if it has no cloud account. Raises :class:`SourceError`."""
    if access.google_key is not None and access.password is None:
        account = _google_account(access)
        token = _kept(access.google_key.reveal(), lambda now: _google(access, account, now))
        return replace(access, username=str(account["client_email"]), password=token)
    if access.azure is not None and access.bearer_token is None:
        azure = access.azure
        identity = f"{azure.login} {azure.tenant} {azure.client} {azure.secret.reveal()}"
        return replace(access, bearer_token=_kept(identity, lambda now: _azure(access, azure, now)))
    return access


def _kept(identity: str, ask: Any) -> Secret:
    key = hashlib.sha256(identity.encode()).hexdigest()
    now = SystemClock().now()
    with _lock:
        kept = _tokens.get(key)
    if kept is None or kept[1] - BEFORE_END <= now:
        kept = ask(now)
        with _lock:
            if len(_tokens) >= MAX_TOKENS:
                _tokens.clear()
            _tokens[key] = kept
    return kept[0]


def _google_account(access: RepositoryAccess) -> dict[str, Any]:
    assert access.google_key is not None, "only asked with a key"
    try:
        value = json.loads(access.google_key.reveal())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or not value.get("client_email") or not value.get("private_key"):
        message = f"Secret {access.name}: gcpServiceAccountKey is no key of a service account (JSON with client_email)"
        raise SourceError(Problem.DENIED, message, field="spec.source.repoURL")
    return value


def _google(access: RepositoryAccess, account: Mapping[str, Any], now: datetime) -> tuple[Secret, datetime]:
    import jwt  # takes as long as all of git's modules, and few sources need it

    place = str(account.get("token_uri") or GOOGLE_TOKENS)
    claims = {"iss": account["client_email"], "scope": GOOGLE_SCOPE, "aud": place}
    claims |= {"iat": now - timedelta(minutes=1), "exp": now + SIGNED_FOR}
    try:
        signed = jwt.encode(claims, str(account["private_key"]), algorithm="RS256")
    except (ValueError, TypeError, jwt.PyJWTError):
        message = f"Secret {access.name}: gcpServiceAccountKey holds no private key in PEM"
        raise SourceError(Problem.DENIED, message, field="spec.source.repoURL") from None
    form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": signed}
    return _asked(access, "service account", place, form, now)


def _azure(access: RepositoryAccess, azure: AzurePrincipal, now: datetime) -> tuple[Secret, datetime]:
    place = f"{azure.login or AZURE_LOGIN}/{quote(azure.tenant, safe='')}/oauth2/v2.0/token"
    form = {
        "grant_type": "client_credentials",
        "client_id": azure.client,
        "client_secret": azure.secret.reveal(),
        "scope": AZURE_SCOPE,
    }
    return _asked(access, "service principal", place, form, now)


def _asked(
    access: RepositoryAccess, what: str, place: str, form: Mapping[str, str], now: datetime
) -> tuple[Secret, datetime]:
    label = f"{what} of Secret {access.name}"
    from syncline.sources.remote.web import WebRequest, fetch

    answer = fetch(
        WebRequest(
            place,
            label,
            replace(access, certificate_key=None, ca_pem=""),
            signed=False,
            method="POST",
            headers={"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"},
            body=urlencode(form).encode(),
            secret_body=True,
        )
    )
    if not answer.ok:
        problem = Problem.DENIED if answer.status in (400, 401, 403, 404) else Problem.UNREACHABLE
        raise SourceError(problem, f"{label}: {urlsplit(place).hostname}: {answer.said}", field="spec.source.repoURL")
    try:
        value = json.loads(answer.body)
        lasts = min(max(int(value.get("expires_in") or SHORTEST_S), SHORTEST_S), LONGEST_S)
        return Secret(str(value["access_token"])), now + timedelta(seconds=lasts)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise SourceError(Problem.DENIED, f"{label}: {urlsplit(place).hostname} gives no token") from None
