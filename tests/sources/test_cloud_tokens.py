"""Repositories of clouds: an account gets a token at the place that its Secret names, once an hour."""

from __future__ import annotations

import base64
import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import jwt
import pytest
from tests.sources.conftest import Upstream
from tests.sources.githttp import Server
from tests.sources.test_github_app import KEY, PEM
from tests.sources.test_lfs import learn

from syncline.sources.errors import SourceError
from syncline.sources.git.mirrors import Git
from syncline.sources.remote.cloud_tokens import AZURE_SCOPE, GOOGLE_SCOPE, forget_cloud_tokens

TOKEN = "t0k3n"
EMAIL = "robot@project.iam.example.com"


class Tokens:
    """A place for tokens as both clouds have it; answers those who prove themselves."""

    def __init__(self) -> None:
        self.observed: list[str] = []
        self.lasts = 3600

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(handler) -> None:
                form = parse_qs(handler.rfile.read(int(handler.headers["content-length"])).decode())
                self.observed.append(handler.path)
                allowed = self.google(form) if handler.path == "/google" else self.azure(handler.path, form)
                answer = {"access_token": TOKEN, "expires_in": self.lasts} if allowed else {"error": "invalid_grant"}
                handler.send_response(200 if allowed else 401)
                handler.end_headers()
                handler.wfile.write(json.dumps(answer).encode())

            def log_message(self, *_: object) -> None: ...

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def google(self, form: dict[str, list[str]]) -> bool:
        given = jwt.decode(form["assertion"][0], KEY.public_key(), algorithms=["RS256"], audience=f"{self.url}/google")
        return (given["iss"], given["scope"]) == (EMAIL, GOOGLE_SCOPE)

    def azure(self, path: str, form: dict[str, list[str]]) -> bool:
        wanted = {"client_id": ["client"], "client_secret": ["secret"], "scope": [AZURE_SCOPE]}
        return path == "/tenant/oauth2/v2.0/token" and {name: form[name] for name in wanted} == wanted


@pytest.fixture
def tokens() -> Iterator[Tokens]:
    forget_cloud_tokens()
    served = Tokens()
    yield served
    served.http.shutdown()
    served.http.server_close()
    forget_cloud_tokens()


def account(tokens: Tokens, cloud: str, **more: str) -> dict[str, str]:
    if cloud == "google":
        key = {"client_email": EMAIL, "private_key": PEM, "token_uri": f"{tokens.url}/google"}
        return {"gcpServiceAccountKey": json.dumps(key | more)}
    return {
        "azureServicePrincipalTenantId": "tenant",
        "azureServicePrincipalClientId": "client",
        "azureServicePrincipalClientSecret": "secret",
        "azureActiveDirectoryEndpoint": tokens.url,
        **more,
    }


@pytest.mark.parametrize(
    ("cloud", "shown"),
    [("google", "Basic " + base64.b64encode(f"{EMAIL}:{TOKEN}".encode()).decode()), ("azure", f"Bearer {TOKEN}")],
)
def test_an_account_opens_a_repository_and_its_token_is_kept(
    tokens: Tokens, upstream: Upstream, git: Git, tmp_path: Path, cloud: str, shown: str
) -> None:
    upstream.commit({"a.yaml": "a: 1\n"})
    bare = tmp_path / "host" / "app.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(upstream.path), str(bare)], check=True)
    subprocess.run(["git", "-C", str(bare), "update-server-info"], check=True)
    server = Server(tmp_path / "host", shown)
    learn(git, f"{server.url}/app.git", **account(tokens, cloud))
    repository = git.repository(f"{server.url}/app.git")
    assert [entry.path for entry in repository.tree(repository.resolve("HEAD")).entries] == ["a.yaml"]
    assert len(tokens.observed) == 1
    server.close()


def test_a_token_that_is_about_to_end_is_asked_for_again(tokens: Tokens, git: Git) -> None:
    tokens.lasts = 60
    learn(git, "http://127.0.0.1:9/app.git", **account(tokens, "azure"))
    for _ in range(2):
        with pytest.raises(SourceError, match="is not reachable"):
            git.repository("http://127.0.0.1:9/app.git").refs()
    assert len(tokens.observed) == 2


@pytest.mark.parametrize(
    ("cloud", "more", "why"),
    [
        ("google", {"client_email": "other"}, "service account of Secret s: 127.0.0.1: 401 Unauthorized"),
        ("google", {"private_key": "no"}, "gcpServiceAccountKey holds no private key in PEM"),
        ("google", {"client_email": ""}, "gcpServiceAccountKey is no key of a service account"),
        ("azure", {"azureServicePrincipalClientSecret": "no"}, "service principal of Secret s: 127.0.0.1: 401"),
        ("azure", {"azureServicePrincipalTenantId": "../x"}, "401 Unauthorized"),
        ("azure", {"azureServicePrincipalTenantId": ""}, "a service principal needs azureServicePrincipalTenantId too"),
    ],
)
def test_an_account_that_cannot_work_says_why(
    tokens: Tokens, git: Git, cloud: str, more: dict[str, str], why: str
) -> None:
    learn(git, "http://127.0.0.1:9/app.git", **account(tokens, cloud, **more))
    with pytest.raises(SourceError) as caught:
        git.repository("http://127.0.0.1:9/app.git").refs()
    assert why in str(caught.value)
    assert "secret" not in str(caught.value).replace("Secret s", "").replace("repository Secret", "")
