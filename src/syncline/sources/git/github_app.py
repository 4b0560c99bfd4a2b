"""Gets installation tokens, valid for an hour, for GitHub Apps: :func:`with_token`.

``sources/git/mirrors.py`` calls it before a remote call. The app signs a JWT, the host returns a token for the
installation, which is cached until shortly before it expires. Rules: Argo CD ``util/git`` creds.
"""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlsplit

from syncline.base.clock import SystemClock, parse_time
from syncline.base.secret import Secret
from syncline.sources.errors import Problem, SourceError
from syncline.sources.remote.credentials import GitHubApp, RepositoryAccess

PUBLIC = "https://api.github.com"
USER = "x-access-token"
BEFORE_END = timedelta(minutes=5)
SIGNED_FOR = timedelta(minutes=8)
"""The host takes at most ten minutes, and clocks differ."""
MAX_TOKENS = 500

_tokens: dict[tuple[str, str, str, str], tuple[Secret, datetime]] = {}
_lock = threading.Lock()


def forget_tokens() -> None:
    """Clear the cache, for tests."""
    with _lock:
        _tokens.clear()


def with_token(access: RepositoryAccess) -> RepositoryAccess:
    """Return ``access`` with a token as password, or unchanged if it has no app. Raises :class:`SourceError`."""
    app = access.github_app
    if app is None or access.password is not None:
        return access
    owner = urlsplit(access.url).path.strip("/").partition("/")[0] if not app.installation else ""
    key = (app.base_url, app.identity, app.installation, owner)
    now = SystemClock().now()
    with _lock:
        kept = _tokens.get(key)
    if kept is None or kept[1] - BEFORE_END <= now:
        kept = _new_token(access, app, owner, now)
        with _lock:
            if len(_tokens) >= MAX_TOKENS:
                _tokens.clear()
            _tokens[key] = kept
    return replace(access, username=USER, password=kept[0])


def _new_token(access: RepositoryAccess, app: GitHubApp, owner: str, now: datetime) -> tuple[Secret, datetime]:
    import jwt  # takes as long as all of git's modules, and few sources need it

    claims = {"iss": app.identity, "iat": now - timedelta(minutes=1), "exp": now + SIGNED_FOR}
    try:
        signed = jwt.encode(claims, app.key.reveal(), algorithm="RS256")
    except (ValueError, TypeError, jwt.PyJWTError):
        message = f"Secret {access.name}: githubAppPrivateKey is no private key in PEM"
        raise SourceError(Problem.DENIED, message, field="spec.source.repoURL") from None
    base = app.base_url or PUBLIC
    installation = app.installation or _installation(access, signed, base, owner)
    found = _asked(access, signed, f"{base}/app/installations/{installation}/access_tokens", "POST")
    try:
        return Secret(str(found["token"])), parse_time(str(found["expires_at"]))
    except (KeyError, ValueError):
        message = f"Secret {access.name}: the host gives no token for the app {app.identity}"
        raise SourceError(Problem.DENIED, message) from None


def _installation(access: RepositoryAccess, signed: str, base: str, owner: str) -> str:
    """Return the number of the installation for an organization, or for a user."""
    for kind in ("orgs", "users"):
        found = _asked(
            access, signed, f"{base}/{kind}/{quote(owner, safe='')}/installation", "GET", missing=kind == "orgs"
        )
        if found.get("id"):
            return str(found["id"])
    raise SourceError(Problem.DENIED, f"GitHub App of Secret {access.name} is not installed for {owner}")


def _asked(access: RepositoryAccess, signed: str, url: str, method: str, *, missing: bool = False) -> dict[str, Any]:
    """Return the decoded answer; empty for 404 if it may be ``missing``."""
    label = f"GitHub App of Secret {access.name}"
    from syncline.sources.remote.web import WebRequest, fetch

    answer = fetch(
        WebRequest(
            url,
            label,
            access,
            signed=False,
            method=method,
            headers={"Accept": "application/vnd.github+json"},
            secret_headers={"Authorization": f"Bearer {signed}"},
        )
    )
    if missing and answer.status == 404:
        return {}
    if not answer.ok:
        problem = Problem.DENIED if answer.status in (401, 403, 404) else Problem.UNREACHABLE
        raise SourceError(problem, f"{label}: {urlsplit(url).path}: {answer.said}", field="spec.source.repoURL")
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}
