"""Single sign-on: settings, tokens of a provider, and where a browser may be sent."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from syncline.argo.access.provider import (
    DEFAULT_SCOPES,
    Provider,
    ProviderError,
    TokenExpired,
    UnknownKey,
    challenge,
    may_return_to,
    proved,
    read_provider,
    sign_on_address,
    token_id,
)
from syncline.argo.access.sessions import TokenError
from syncline.base.secret import Secret

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
MOMENT = int(NOW.timestamp())
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
OURS = Provider("Login", "https://id.example.com", "argo-cd", audiences=("argo-cd", "cli"))


def jwk(key: Any, kid: str, **more: str) -> dict[str, Any]:
    made = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    return json.loads(made.to_jwk(key.public_key())) | {"kid": kid} | more


KEYS = {"keys": [jwk(RSA, "r"), jwk(EC, "e"), jwk(RSA, "enc", use="enc"), {"kty": "odd", "kid": "r"}, 7]}


def token(key: Any = RSA, kid: str = "r", algorithm: str = "RS256", **changes: Any) -> Secret:
    claims = {"iss": OURS.issuer, "aud": "argo-cd", "sub": "alice", "exp": MOMENT + 60, "iat": MOMENT} | changes
    header = {"kid": kid} if kid else {}
    return Secret(jwt.encode({k: v for k, v in claims.items() if v is not None}, key, algorithm, header))


def test_a_provider_is_read_with_its_secret() -> None:
    text = """
        name: Login
        issuer: https://id.example.com
        clientID: argo-cd
        clientSecret: $oidc.clientSecret
        cliClientID: cli
        enablePKCEAuthentication: true
        requestedIDTokenClaims: {groups: {essential: true}}
        enableUserInfoGroups: true
        userInfoPath: /userinfo
    """
    found = read_provider({"oidc.config": text}, {"oidc.clientSecret": Secret(" hidden\n")}.get)
    assert found is not None
    assert (found.secret, found.audiences, found.pkce) == (Secret("hidden"), ("argo-cd", "cli"), True)
    assert (found.scopes, found.groups_of_userinfo) == (DEFAULT_SCOPES, "/userinfo")
    assert "hidden" not in repr(found)
    assert read_provider({}, {}.get) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("issuer: https://a", "clientID: it is empty"),
        ("clientID: a", "issuer: found ''"),
        ("{issuer: 'file:///etc', clientID: a}", "https address is allowed"),
        ("{issuer: https://a, clientID: [a]}", "clientID: found list; a text is allowed"),
        (
            "{issuer: https://a, clientID: a, clientSecret: $gone}",
            "clientSecret: the Secret of \\$gone has no such key",
        ),
        ("{issuer: https://a, clientID: a, requestedScopes: [1]}", "requestedScopes: a list of texts"),
        ("{issuer: https://a, clientID: a, enablePKCEAuthentication: 'yes'}", "true or false"),
        ("[a]", "a mapping with issuer and clientID"),
        ("{", "oidc.config"),
    ],
)
def test_a_setting_that_cannot_be_read_is_named(text: str, problem: str) -> None:
    with pytest.raises(ProviderError, match=problem):
        read_provider({"oidc.config": text}, {}.get)


@pytest.mark.parametrize(
    "good",
    [
        token(),
        token(EC, "e", "ES256"),
        token(kid=""),
        token(algorithm="PS512"),
        token(aud=["x", "cli"]),
        token(nbf=MOMENT + 200),
    ],
)
def test_a_token_of_the_provider_counts(good: Secret) -> None:
    assert proved(good, OURS, KEYS, NOW)["sub"] == "alice"


@pytest.mark.parametrize(
    ("bad", "kind", "problem"),
    [
        (token(exp=MOMENT), TokenExpired, "sign on again"),
        (token(exp=None), TokenError, "no number exp"),
        (token(exp=True), TokenError, "no number exp"),
        (token(nbf=MOMENT + 400), TokenError, "not valid yet"),
        (token(iss="https://other"), TokenError, "issued by 'https://other'"),
        (token(aud="other"), TokenError, "for other; allowed: argo-cd, cli"),
        (token(aud=[]), TokenError, "names no audience"),
        (token(aud=None), TokenError, "names no audience"),
        (token(aud=[["argo-cd"]]), TokenError, "allowed: argo-cd, cli"),
        (token(kid="other"), UnknownKey, "no key of the identity provider"),
        (token(kid="enc"), UnknownKey, "no key of the identity provider"),
        (token(rsa.generate_private_key(65537, 2048)), UnknownKey, "no key of the identity provider"),
        (token(EC, "r", "ES256"), UnknownKey, "no key of the identity provider"),
        (token("a text that both know and that is long enough", "r", "HS256"), TokenError, "signed by 'HS256'"),
        (Secret("a.b.c"), TokenError, "cannot be read"),
        (Secret("x" * 20_000), TokenError, "at most 16384"),
    ],
)
def test_another_token_does_not(bad: Secret, kind: type[TokenError], problem: str) -> None:
    with pytest.raises(kind, match=problem):
        proved(bad, OURS, KEYS, NOW)


def test_a_public_key_signs_nothing() -> None:
    """The oldest attempt: the key of the provider, which the world knows, taken as the text of an HMAC."""
    head, body = (
        {"alg": "HS256", "kid": "r"},
        {"iss": OURS.issuer, "aud": "argo-cd", "sub": "admin", "exp": MOMENT + 9},
    )
    for name in ("none", "HS256", "hs256"):
        forged = (head | {"alg": name}, body)
        parts = [base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in forged]
        with pytest.raises(TokenError, match=r"is signed by|cannot be read"):
            proved(Secret(".".join([*parts, "AAAA"])), OURS, KEYS, NOW)


@pytest.mark.parametrize("keys", [{}, {"keys": None}, {"keys": "x"}, {"keys": [{}]}])
def test_without_keys_no_token_counts(keys: dict[str, Any]) -> None:
    with pytest.raises(UnknownKey):
        proved(token(), OURS, keys, NOW)


def test_a_token_without_audience_counts_where_the_administrator_says_so() -> None:
    lenient = Provider("Login", OURS.issuer, "argo-cd", audiences=("argo-cd",), without_audience=True)
    assert proved(token(aud=None), lenient, KEYS, NOW)["sub"] == "alice"


def test_an_ended_session_is_named_by_the_token() -> None:
    assert token_id({"jti": "a", "uti": "b"}) == "a"
    assert token_id({"jti": 7, "uti": "b"}) == "b"
    assert token_id({"at_hash": "c"}) == "c"
    assert token_id({}) == ""


def test_a_browser_is_sent_to_the_provider_with_a_challenge() -> None:
    provider = Provider("L", "https://id", "me", claims={"groups": {"essential": True}}, domain_hint="corp")
    verifier = Secret("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    assert challenge(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"  # RFC 7636, appendix B
    found = urlsplit(sign_on_address(provider, "https://id/auth?tenant=a", "https://cd/auth/callback", "s t", verifier))
    query = {name: values[0] for name, values in parse_qs(found.query).items()}
    assert query == {
        "tenant": "a",
        "client_id": "me",
        "redirect_uri": "https://cd/auth/callback",
        "response_type": "code",
        "scope": "openid profile email groups",
        "state": "s t",
        "claims": '{"id_token":{"groups":{"essential":true}}}',
        "domain_hint": "corp",
        "code_challenge": challenge(verifier),
        "code_challenge_method": "S256",
    }


@pytest.mark.parametrize(
    ("address", "allowed", "expected"),
    [
        ("", "https://cd", True),
        ("https://cd", "https://cd", True),
        ("https://cd/applications?x=y", "https://cd", True),
        ("https://cd/argocd/apps", "https://cd/argocd", True),
        ("https://cd/argocd", "https://cd/argocd/", True),
        ("https://cd/argocd-evil", "https://cd/argocd", False),
        ("https://cd/argocd/../other", "https://cd/argocd", False),
        ("https://cd/argocd/%2e%2e/other", "https://cd/argocd", False),
        ("http://cd/", "https://cd", False),
        ("https://cd:444/", "https://cd", False),
        ("https://cd.evil/", "https://cd", False),
        ("https://cd@evil/", "https://cd", False),
        ("//evil/", "https://cd", False),
        ("/applications", "https://cd", False),
        ("https://cd\\@evil/", "https://cd", False),
        ("https://cd/\r\nSet-Cookie: a=b", "https://cd", False),
        ("javascript:alert(1)", "https://cd", False),
        ("https://cd:x/", "https://cd", False),
        ("https://[", "https://cd", False),
        ("javascript:alert(1)", "javascript:alert(1)", False),
    ],
)
def test_a_browser_returns_to_the_installation_alone(address: str, allowed: str, expected: bool) -> None:
    assert may_return_to(address, (allowed,)) is expected
