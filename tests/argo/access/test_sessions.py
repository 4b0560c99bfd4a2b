"""Which tokens are valid: sessions, tokens of accounts and of projects, signatures that are not ours."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from syncline.argo.access.accounts import Account, Accounts, Capability, Token
from syncline.argo.access.sessions import Session, TokenError, checked, session_claims, token_claims
from syncline.argo.access.signing import MAX_TOKEN, issuer_of, read_token, sign
from syncline.base.secret import Secret

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
ISSUED = int(NOW.timestamp())
KEY = Secret("a key of the server, of at least sixty-four letters, as HS512 wants it to be")
ACCOUNTS = Accounts(
    {
        "admin": Account("admin", True, (Capability.LOGIN,), password_changed=NOW),
        "bot": Account("bot", True, (Capability.API_KEY,), tokens=(Token("t", ISSUED),)),
        "off": Account("off", False, (Capability.LOGIN, Capability.API_KEY), tokens=(Token("t", ISSUED),)),
    }
)
PROJECT = {
    "metadata": {"name": "shop"},
    "status": {"jwtTokensByRole": {"ci": {"items": [{"iat": ISSUED, "id": "p"}, {"iat": 7}]}}},
}


def check(claims: dict[str, Any], *revoked: str, at: datetime = NOW) -> Session:
    return checked(claims, ACCOUNTS, {"shop": PROJECT}.get, revoked, at, lambda: "next")


def test_a_session_is_that_of_its_account() -> None:
    found = check(session_claims("admin", "s", NOW))
    assert found.identity.subject == "admin"
    assert found.renewed is None


def test_a_session_that_ends_soon_is_renewed_for_as_long() -> None:
    claims = session_claims("admin", "s", NOW)
    later = NOW + timedelta(hours=23, minutes=55, seconds=1)
    assert check(claims, at=later).renewed == session_claims("admin", "next", later)
    assert check(claims, at=later - timedelta(seconds=2)).renewed is None
    with pytest.raises(TokenError, match="token is expired"):
        check(claims, at=NOW + timedelta(hours=24))


def test_a_token_of_an_account_is_never_renewed() -> None:
    lasting = token_claims("bot:apiKey", "t", NOW, timedelta(minutes=1))
    assert check(lasting).renewed is None
    assert check(lasting).identity.subject == "bot"


@pytest.mark.parametrize(
    ("claims", "problem"),
    [
        (session_claims("who", "s", NOW), "account 'who' does not exist"),
        (session_claims("off", "s", NOW), "account off is disabled"),
        (session_claims("bot", "s", NOW), "account bot does not have 'login' capability"),
        (token_claims("admin:apiKey", "s", NOW, None), "account admin does not have 'apiKey' capability"),
        (token_claims("bot:apiKey", "u", NOW, None), "account bot does not have token with id u"),
        (token_claims("bot:apiKey", "", NOW, None), "does not have a unique identifier"),
        (session_claims("admin", "gone", NOW), "token is revoked, please re-login"),
        (session_claims("admin", "s", NOW - timedelta(seconds=1)), "password has changed since token issued"),
        (session_claims("admin", "s", NOW + timedelta(minutes=1)), "token is not valid yet"),
        ({"sub": "admin:login", "jti": "s"}, "token does not have iat claim"),
        ({"sub": "admin:login", "jti": "s", "iat": "now"}, "iat 'now' is not a number"),
        ({"sub": "admin:login", "jti": "s", "iat": float("nan")}, "is not a number"),
        ({"sub": "admin:login", "jti": "s", "iat": 1e300}, "is not a number"),
        ({"sub": ["admin"], "jti": "s", "iat": ISSUED}, "account '' does not exist"),
        (token_claims("proj:shop:ci", "x", NOW + timedelta(seconds=-9), None), "does not exist in project 'shop'"),
        (token_claims("proj:shop:qa", "p", NOW, None), "JWT token for role 'qa' issued at"),
        (token_claims("proj:gone:ci", "p", NOW, None), 'appproject.argoproj.io "gone" not found'),
        (token_claims("proj:shop:ci", "p", NOW, timedelta(seconds=-1)), "token is expired"),
    ],
)
def test_a_token_that_counts_no_longer_says_why(claims: dict[str, Any], problem: str) -> None:
    with pytest.raises(TokenError, match=problem):
        check(claims, "gone")


@pytest.mark.parametrize(("identifier", "issued"), [("p", ISSUED - 5), ("", 7), ("x", ISSUED)])
def test_a_token_of_a_project_is_listed_by_its_id_or_its_second(identifier: str, issued: int) -> None:
    claims = token_claims("proj:shop:ci", identifier, datetime.fromtimestamp(issued, UTC), None)
    assert check(claims).identity.subject == "proj:shop:ci"


def test_a_token_is_read_with_the_key_that_signed_it() -> None:
    claims = session_claims("admin", "s", NOW)
    token = sign(claims, KEY)
    assert read_token(token, KEY) == claims
    assert issuer_of(token) == "argocd"
    assert "admin" not in f"{token} {token!r}"
    with pytest.raises(TokenError, match="cannot be read"):
        read_token(token, Secret("another key of the same length, which did not sign any token of this"))


def _forged(header: dict[str, str], claims: dict[str, Any], signature: str = "") -> Secret:
    parts = [base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in (header, claims)]
    return Secret(".".join([*parts, signature]))


@pytest.mark.parametrize(
    "token",
    [
        _forged({"alg": "none", "typ": "JWT"}, session_claims("admin", "s", NOW)),
        _forged({"alg": "None"}, session_claims("admin", "s", NOW)),
        _forged({"alg": "HS256"}, session_claims("admin", "s", NOW)),
        Secret(jwt.encode(session_claims("admin", "s", NOW), ec.generate_private_key(ec.SECP256R1()), "ES256")),
        Secret(""),
        Secret("a.b"),
        Secret("a.b.c"),
        Secret("." * 3),
        Secret("x" * (MAX_TOKEN + 1)),
        _forged({"alg": "HS256"}, {"a": "b" * MAX_TOKEN}),
    ],
)
def test_a_forged_token_is_refused_without_being_shown(token: Secret) -> None:
    with pytest.raises(TokenError) as caught:
        read_token(token, KEY)
    assert len(token.reveal()) < 9 or token.reveal() not in str(caught.value)


def test_every_hmac_of_our_key_is_accepted_as_upstream() -> None:
    claims = session_claims("admin", "s", NOW)
    for algorithm in ("HS384", "HS512"):
        assert read_token(Secret(jwt.encode(claims, KEY.reveal(), algorithm)), KEY) == claims
