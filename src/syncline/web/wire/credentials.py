"""Finds the token of a call: :func:`token_of`. Pure.

Rules: ``getToken`` of Argo CD's ``server/server.go``: metadata ``token``, then ``Authorization: Bearer``, then the
cookie ``argocd.token``, which is split into numbered ones where it is long (``util/http``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from syncline.base.secret import Secret

COOKIE = "argocd.token"
COOKIE_PART = 3840
"""Letters in one cookie; browsers keep about 4096 with name and attributes."""
MAX_PARTS = 20
_JWT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*", re.ASCII)


def token_of(metadata: Mapping[str, str]) -> Secret | None:
    """Return the token that the headers of a call carry (names in lower case), or None."""
    if metadata.get("token"):
        return Secret(metadata["token"])
    scheme, _, bearer = metadata.get("authorization", "").partition(" ")
    if scheme == "Bearer" and _JWT.fullmatch(bearer):
        return Secret(bearer)
    joined = _joined(metadata.get("cookie", ""))
    return Secret(joined) if _JWT.fullmatch(joined) else None


def _joined(header: str) -> str:
    """Return the token of the cookies: its first part names the number of the others (``3:eyJ…``)."""
    cookies = dict(part.strip().partition("=")[::2] for part in header.split(";") if "=" in part)
    first = cookies.get(COOKIE, "").strip('"')
    count, colon, rest = first.partition(":")
    if not colon or not count.isascii() or not count.isdigit() or not 0 < int(count) <= MAX_PARTS:
        return first
    further = (cookies.get(f"{COOKIE}-{number}", "").strip('"') for number in range(1, int(count)))
    return rest + "".join(further)


def cookies_of(token: str, *, path: str = "/", secure: bool = True) -> list[str]:
    """Return the ``Set-Cookie`` values that keep a token in a browser; an empty token ends it."""
    attributes = f"; path={path}; SameSite=lax; httpOnly{'; Secure' if secure else ''}"
    if not token:
        return [f"{COOKIE}={attributes}"]
    count = -(-len(token) // COOKIE_PART)
    pieces = [token[at : at + COOKIE_PART] for at in range(0, len(token), COOKIE_PART)]
    named = [f"{COOKIE}={count}:{pieces[0]}" if count > 1 else f"{COOKIE}={pieces[0]}"]
    named += [f"{COOKIE}-{number}={piece}" for number, piece in enumerate(pieces[1:], 1)]
    return [one + attributes for one in named]
