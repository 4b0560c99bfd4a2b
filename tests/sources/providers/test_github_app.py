"""A GitHub App instead of a token: whose key signs, for which installation, and where what it signs is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.sources.providers.conftest import Serve
from tests.sources.providers.replay import Replay, ReplayHost

from syncline.base.secret import Secret
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git.github_app import forget_tokens
from syncline.sources.providers.asking import pull_requests, repositories
from syncline.sources.providers.model import ProviderError, SecretReference
from syncline.sources.providers.reach import Reach

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
).decode()
TOKEN = {"token": "ghs_t0k3n", "expires_at": "2100-01-01T00:00:00Z"}
INSTALLATIONS = {
    "/api/v3/users/anna/installation": Replay({"id": 7}),
    "/api/v3/orgs/acme/installation": Replay({"id": 9}),
    "/api/v3/app/installations/7/access_tokens": Replay(TOKEN, 201),
    "/api/v3/app/installations/9/access_tokens": Replay(TOKEN, 201),
    "/api/v3/orgs/acme/repos": Replay([]),
    "/api/v3/repos/anna/web/pulls": Replay([]),
}


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    forget_tokens()
    yield
    forget_tokens()


def secrets(**more: str) -> Mapping[SecretReference, Secret]:
    given = {"githubAppID": "42", "githubAppPrivateKey": PEM, **more}
    return {SecretReference("argocd", "app", key, purpose="github-app"): Secret(value) for key, value in given.items()}


def ask(api: str, given: Mapping[SecretReference, Secret], reach: Reach | None = None) -> Any:
    spec = {"github": {"organization": "acme", "api": api, "appSecretName": "app"}}
    return repositories(spec, given, reach or Reach())


def test_the_app_signs_for_the_installation_of_the_organization(serve: Serve) -> None:
    host = serve(INSTALLATIONS)
    own = secrets(githubAppEnterpriseBaseUrl=f"{host.url}/api/v3")
    for _ in range(2):
        assert ask("", own) == ()
    assert [one.path for one in host.asked] == [
        "/api/v3/orgs/acme/installation",
        "/api/v3/app/installations/9/access_tokens",
        "/api/v3/orgs/acme/repos",
        "/api/v3/orgs/acme/repos",
    ]
    claims = jwt.decode(host.asked[0].headers["authorization"].removeprefix("Bearer "), KEY.public_key(), ["RS256"])
    assert claims["iss"] == "42"
    assert host.asked[3].headers["authorization"] == "Bearer ghs_t0k3n"


def test_a_user_may_have_installed_it(serve: Serve) -> None:
    host = serve(INSTALLATIONS)
    spec = {"github": {"owner": "anna", "repo": "web", "appSecretName": "app"}}
    assert pull_requests(spec, secrets(githubAppEnterpriseBaseUrl=host.url), Reach()) == ()
    paths = [one.path for one in host.asked]
    assert paths[:2] == ["/api/v3/orgs/anna/installation", "/api/v3/users/anna/installation"]


def test_the_installation_of_the_secret_is_not_looked_up(serve: Serve) -> None:
    host = serve(INSTALLATIONS)
    ask("", secrets(githubAppEnterpriseBaseUrl=host.url, githubAppInstallationID="7"))
    assert host.asked[0].path == "/api/v3/app/installations/7/access_tokens"


def test_an_app_that_is_not_installed_is_denied(serve: Serve) -> None:
    host = serve({})
    with pytest.raises(SourceError, match="GitHub App of Secret app") as error:
        ask("", secrets(githubAppEnterpriseBaseUrl=host.url))
    assert error.value.problem is Problem.DENIED


def home(host: ReplayHost) -> Mapping[str, Mapping[SecretReference, Secret]]:
    return {
        "its enterprise address": secrets(githubAppEnterpriseBaseUrl=f"{host.url}/api/v3"),
        "its repositories": secrets(url=f"{host.url}/acme"),
    }


@pytest.mark.parametrize("of", ["its enterprise address", "its repositories"])
def test_an_address_of_the_apps_own_host_is_asked(serve: Serve, of: str) -> None:
    host = serve(INSTALLATIONS)
    assert ask(host.url, home(host)[of]) == ()


@pytest.mark.parametrize(
    "more", [{}, {"url": "https://github.com/acme"}, {"githubAppEnterpriseBaseUrl": "https://ghe"}]
)
def test_what_the_app_signs_is_sent_to_no_other_host(serve: Serve, more: dict[str, str]) -> None:
    host = serve(INSTALLATIONS)
    with pytest.raises(ProviderError, match="the GitHub App of Secret app is not one of http://127") as error:
        ask(host.url, secrets(**more))
    assert error.value.problem is Problem.REFUSED
    assert host.asked == []


def test_the_administrator_may_allow_it(serve: Serve) -> None:
    host = serve(INSTALLATIONS)
    assert ask(host.url, secrets(), Reach(allowed=(host.url,))) == ()


def test_a_broken_key_is_named_and_not_shown(serve: Serve) -> None:
    host = serve(INSTALLATIONS)
    given = secrets(githubAppEnterpriseBaseUrl=host.url, githubAppPrivateKey="no key at all")
    with pytest.raises(SourceError, match="Secret app: githubAppPrivateKey is no private key") as error:
        ask("", given)
    assert "no key at all" not in str(error.value)
