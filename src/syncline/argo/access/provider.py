"""Single sign-on: ``oidc.config`` of argocd-cm, and whether a token of the identity provider is valid.

Pure: the provider's keys and addresses are fetched by the caller. Rules: Argo CD ``util/oidc`` and ``util/settings``.
Only signatures with a public key count, so that nothing that a client knows can sign a token.
"""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

import jwt

from syncline.argo.access.sessions import TokenError
from syncline.argo.access.signing import MAX_TOKEN, UNTIMED
from syncline.base.secret import Secret
from syncline.kube.yaml.loading import YamlError, load

KEY = "oidc.config"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
DEFAULT_SCOPES = ("openid", "profile", "email", "groups")
CLOCK_SKEW = 300.0
"""Seconds that the provider's clock may be ahead, as upstream's library allows."""
MAX_KEYS = 100
"""Keys of a provider."""


class ProviderError(ValueError):
    """A setting of single sign-on that cannot be read; the text names the field."""


class TokenExpired(TokenError):
    """The provider's token has ended; its bearer signs on again."""


class UnknownKey(TokenError):
    """The token names a key that the provider did not have when its keys were fetched; fetch them again, once."""


@dataclass(frozen=True)
class Provider:
    """The identity provider of an installation."""

    name: str
    issuer: str
    client: str
    secret: Secret | None = None
    cli_client: str = ""
    scopes: tuple[str, ...] = DEFAULT_SCOPES
    claims: Mapping[str, Any] = field(default_factory=dict)
    """Claims of the token that are asked for, as the standard spells them."""
    audiences: tuple[str, ...] = ()
    """Of tokens that count."""
    without_audience: bool = False
    """Whether a token without an audience counts."""
    logout: str = ""
    root_ca: str = ""
    """Certificates that the provider's certificate is checked with, PEM; empty: those of the system."""
    pkce: bool = False
    groups_of_userinfo: str = ""
    """The path from which the groups of a user are fetched; empty: they are in the token."""
    domain_hint: str = ""


def read_provider(config: Mapping[str, str], secret: Callable[[str], Secret | None]) -> Provider | None:
    """Return the provider of argocd-cm's data, None where there is none. Raises :class:`ProviderError`.

    ``secret`` answers for ``KEY`` of ``argocd-secret``, or ``NAME:KEY`` of another Secret of the installation.
    """
    text = config.get(KEY, "")
    if not text.strip():
        return None
    try:
        found = load(text, file=f"argocd-cm {KEY}")
    except YamlError as error:
        raise ProviderError(str(error)) from error
    if not isinstance(found, dict):
        raise ProviderError(f"argocd-cm {KEY}: a mapping with issuer and clientID is allowed")
    given = _Given(found, secret)
    client, cli_client = given.text("clientID"), given.text("cliClientID")
    issuer = given.text("issuer")
    if urlsplit(issuer).scheme not in ("https", "http"):
        raise ProviderError(f"argocd-cm {KEY} issuer: found {issuer!r}; an https address is allowed")
    if not client:
        raise ProviderError(f"argocd-cm {KEY} clientID: it is empty; the name of the client at the provider is allowed")
    return Provider(
        name=given.text("name"),
        issuer=issuer,
        client=client,
        secret=given.secret("clientSecret"),
        cli_client=cli_client,
        scopes=given.texts("requestedScopes") or DEFAULT_SCOPES,
        claims=given.mapping("requestedIDTokenClaims"),
        audiences=given.texts("allowedAudiences") or tuple(one for one in (client, cli_client) if one),
        without_audience=given.boolean("skipAudienceCheckWhenTokenHasNoAudience"),
        logout=given.text("logoutURL"),
        root_ca=given.text("rootCA"),
        pkce=given.boolean("enablePKCEAuthentication"),
        groups_of_userinfo=given.text("userInfoPath") if given.boolean("enableUserInfoGroups") else "",
        domain_hint=given.text("domainHint").strip(),
    )


class _Given:
    """The fields of ``oidc.config``, with references to Secrets resolved."""

    def __init__(self, fields: Mapping[str, Any], secret: Callable[[str], Secret | None]) -> None:
        self._fields = fields
        self._secret = secret

    def text(self, name: str) -> str:
        found = self.secret(name)
        return found.reveal() if found else ""

    def secret(self, name: str) -> Secret | None:
        value = self._value(name, str, "a text")
        if value is None:
            return None
        if value.startswith("$"):
            known = self._secret(value[1:])
            if known is None:
                raise ProviderError(f"argocd-cm {KEY} {name}: the Secret of {value} has no such key")
            return Secret(known.reveal().strip())
        return Secret(value)

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._value(name, list, "a list of texts") or []
        if not all(isinstance(value, str) for value in values):
            raise ProviderError(f"argocd-cm {KEY} {name}: a list of texts is allowed")
        return tuple(values)

    def mapping(self, name: str) -> Mapping[str, Any]:
        return self._value(name, dict, "a mapping") or {}

    def boolean(self, name: str) -> bool:
        return bool(self._value(name, bool, "true or false"))

    def _value(self, name: str, kind: type, allowed: str) -> Any:
        value = self._fields.get(name)
        if value is not None and not isinstance(value, kind):
            raise ProviderError(f"argocd-cm {KEY} {name}: found {type(value).__name__}; {allowed} is allowed")
        return value


def proved(token: Secret, provider: Provider, keys: Mapping[str, Any], now: datetime) -> Mapping[str, Any]:
    """Return the claims of a token that the provider signed for this installation, within its times.

    ``keys`` is the provider's JSON Web Key Set. Raises :class:`TokenError`, :class:`TokenExpired`, :class:`UnknownKey`.
    """
    text = token.reveal()
    if len(text) > MAX_TOKEN:
        raise TokenError(f"the token has {len(text)} letters; at most {MAX_TOKEN} are read")
    claims = _signed(text, keys)
    if claims.get("iss") != provider.issuer:
        raise TokenError(f"the token was issued by {claims.get('iss')!r}; {provider.issuer!r} is allowed")
    _check_audience(claims.get("aud"), provider)
    moment = now.timestamp()
    if _seconds(claims, "exp") <= moment:
        raise TokenExpired("the token of the identity provider has expired; sign on again")
    if "nbf" in claims and _seconds(claims, "nbf") > moment + CLOCK_SKEW:
        raise TokenError("the token of the identity provider is not valid yet; compare the clocks")
    return claims


def _signed(text: str, keys: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        header = jwt.get_unverified_header(text)
    except jwt.PyJWTError as error:
        raise TokenError(f"the token cannot be read: {error}") from error
    algorithm = header.get("alg")
    if algorithm not in ALGORITHMS:
        raise TokenError(f"the token is signed by {algorithm!r}; allowed: {', '.join(ALGORITHMS)}")
    listed = keys.get("keys")
    candidates = [key for key in (listed if isinstance(listed, list) else [])[:MAX_KEYS] if isinstance(key, dict)]
    named = [key for key in candidates if "kid" not in header or key.get("kid") == header["kid"]]
    for key in named:
        if key.get("use", "sig") != "sig":
            continue
        try:
            claims: Mapping[str, Any] = jwt.decode(text, jwt.PyJWK(key, algorithm), [str(algorithm)], options=UNTIMED)
        except jwt.PyJWTError:
            continue
        return claims
    raise UnknownKey("no key of the identity provider signed the token")


def _check_audience(found: Any, provider: Provider) -> None:
    if not found:
        if not provider.without_audience:
            raise TokenError("the token names no audience; skipAudienceCheckWhenTokenHasNoAudience allows it")
        return
    named = found if isinstance(found, list) else [found]
    if not set(provider.audiences) & {one for one in named if isinstance(one, str)}:
        raise TokenError(f"the token is for {', '.join(map(str, named))}; allowed: {', '.join(provider.audiences)}")


def _seconds(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenError(f"the token has no number {name}")
    return float(value)


def token_id(claims: Mapping[str, Any]) -> str:
    """Return what names a token in the list of ended sessions: ``jti``, else Entra's ``uti``, else ``at_hash``."""
    names = (claims.get(name) for name in ("jti", "uti", "at_hash"))
    return next((name for name in names if isinstance(name, str) and name), "")


def sign_on_address(provider: Provider, endpoint: str, callback: str, state: str, verifier: Secret | None) -> str:
    """Return the address at the provider to which a browser is sent; ``verifier``: of PKCE, proved at the callback."""
    query = {
        "client_id": provider.client,
        "redirect_uri": callback,
        "response_type": "code",
        "scope": " ".join(provider.scopes),
        "state": state,
    }
    if provider.claims:
        query["claims"] = json.dumps({"id_token": provider.claims}, separators=(",", ":"), sort_keys=True)
    if provider.domain_hint:
        query["domain_hint"] = provider.domain_hint
    if verifier is not None:
        query |= {"code_challenge": challenge(verifier), "code_challenge_method": "S256"}
    return f"{endpoint}{'&' if urlsplit(endpoint).query else '?'}{urlencode(query)}"


def challenge(verifier: Secret) -> str:
    """Return the challenge S256 of a PKCE verifier (RFC 7636)."""
    digest = hashlib.sha256(verifier.reveal().encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def may_return_to(address: str, allowed: tuple[str, ...]) -> bool:
    """Return whether a browser may be sent to ``address`` after sign-on: scheme, host, port and path of our own.

    ``allowed``: the addresses of the installation (``url``, ``additionalUrls``). An empty address means the first page.
    """
    if not address:
        return True
    if any(letter in address for letter in "\r\n\t\\") or not address.isprintable():
        return False
    try:
        wanted = urlsplit(address)
        own = [urlsplit(one) for one in allowed]
        wanted_port = wanted.port
    except ValueError:
        return False
    path = posixpath.normpath(unquote(wanted.path) or "/")
    return any(
        (one.scheme, one.netloc) == (wanted.scheme, wanted.netloc)
        and one.scheme in ("http", "https")
        and wanted_port == one.port
        and _within(path, one.path or "/")
        for one in own
    )


def _within(path: str, folder: str) -> bool:
    return folder == "/" or path == folder.rstrip("/") or path.startswith(folder.rstrip("/") + "/")
