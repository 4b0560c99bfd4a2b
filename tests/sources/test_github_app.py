"""Repositories that an app opens instead of a person, and settings of a repository that change how git asks."""

from __future__ import annotations

import base64
import http.server
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.sources.conftest import Upstream
from tests.sources.githttp import Server
from tests.sources.test_lfs import learn

from syncline.sources.errors import SourceError
from syncline.sources.git.github_app import forget_tokens
from syncline.sources.git.mirrors import Git

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PEM = KEY.private_bytes(
    serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
).decode()
TOKEN = "ghs_t0k3n"


class Api:
    """The two questions of a GitHub: which installation, and its token."""

    def __init__(self) -> None:
        self.observed: list[str] = []
        self.status = 201

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(handler) -> None:
                self.observed.append(f"{handler.command} {handler.path}")
                token = handler.headers["authorization"].removeprefix("Bearer ")
                claims = jwt.decode(token, KEY.public_key(), algorithms=["RS256"])
                given = {"id": 7} if handler.path == "/api/v3/orgs/org/installation" else {}
                if handler.path == "/api/v3/app/installations/7/access_tokens" and claims["iss"] == "42":
                    given = {"token": TOKEN, "expires_at": "2100-01-01T00:00:00Z"}
                handler.send_response(self.status)
                handler.end_headers()
                handler.wfile.write(json.dumps(given).encode())

            do_GET = do_POST = answer

            def log_message(self, *_: object) -> None: ...

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/api/v3"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def api() -> Iterator[Api]:
    forget_tokens()
    served = Api()
    yield served
    served.close()
    forget_tokens()


@pytest.fixture
def repository(upstream: Upstream, tmp_path: Path) -> tuple[Path, str]:
    sha = upstream.commit({"a.yaml": "a: 1\n"})
    bare = tmp_path / "host" / "org" / "app.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(upstream.path), str(bare)], check=True)
    subprocess.run(["git", "-C", str(bare), "update-server-info"], check=True)
    return tmp_path / "host", sha


def app(api: Api, **more: str) -> dict[str, str]:
    return {"githubAppID": "42", "githubAppPrivateKey": PEM, "githubAppEnterpriseBaseUrl": api.url, **more}


@pytest.mark.parametrize("installation", ["7", ""])
def test_an_app_opens_a_repository_with_a_token_that_is_kept(
    api: Api, repository: tuple[Path, str], git: Git, installation: str
) -> None:
    server = Server(repository[0], "Basic " + base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode())
    url = f"{server.url}/org/app.git"
    learn(git, url, **app(api, githubAppInstallationID=installation))
    found = git.repository(url)
    assert [entry.path for entry in found.tree(found.resolve("HEAD")).entries] == ["a.yaml"]
    asked = ["GET /api/v3/orgs/org/installation"] if not installation else []
    assert api.observed == [*asked, "POST /api/v3/app/installations/7/access_tokens"]
    server.close()


def test_an_app_that_the_host_does_not_know_is_one_sentence(api: Api, git: Git) -> None:
    api.status = 404
    learn(git, "http://127.0.0.1:9/org/app.git", **app(api, githubAppInstallationID="7"))
    with pytest.raises(SourceError, match=r"GitHub App of Secret s: .*access_tokens: 404 Not Found"):
        git.repository("http://127.0.0.1:9/org/app.git").refs()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"githubAppPrivateKey": "no key", "githubAppID": "42"}, "githubAppPrivateKey is no private key in PEM"),
        ({"githubAppPrivateKey": PEM, "githubAppID": "x"}, "needs the number of its app in githubAppID"),
        ({"depth": "deep"}, "depth is not a whole number"),
        ({"useAzureWorkloadIdentity": "true"}, "useAzureWorkloadIdentity is not supported"),
    ],
)
def test_a_secret_that_cannot_work_says_why(git: Git, data: dict[str, str], why: str) -> None:
    learn(git, "http://127.0.0.1:9/org/app.git", **data)
    with pytest.raises(SourceError, match=why):
        git.repository("http://127.0.0.1:9/org/app.git").refs()


def test_with_force_http_basic_auth_the_password_is_shown_unasked(repository: tuple[Path, str], git: Git) -> None:
    wanted = "Basic " + base64.b64encode(b"me:pw").decode()
    server = Server(repository[0], wanted)
    url = f"{server.url}/org/app.git"
    learn(git, url, username="me", password="pw", forceHttpBasicAuth="true")
    git.repository(url).refs()
    assert set(server.observed) == {wanted}
    server.close()


def test_depth_brings_that_much_history(upstream: Upstream, git: Git, tmp_path: Path) -> None:
    first = upstream.commit({"a.yaml": "a: 1\n"})
    shas = [upstream.commit({"a.yaml": f"a: {number}\n"}) for number in range(2, 6)]
    learn(git, f"file://{upstream.path}", depth="1")
    repository = git.repository(f"file://{upstream.path}")
    tree = repository.tree(repository.resolve("main"))
    assert tree.read(tree.entries) == {"a.yaml": b"a: 5\n"}
    mirror = next((tmp_path / "cache").glob("*.git"))

    def has(sha: str) -> bool:
        return (
            subprocess.run(
                ["git", "-C", str(mirror), "cat-file", "-e", sha], check=False, capture_output=True
            ).returncode
            == 0
        )

    assert [has(sha) for sha in (first, shas[-2], shas[-1])] == [False, False, True]
    assert repository.tree(first).read(repository.tree(first).entries) == {"a.yaml": b"a: 1\n"}, (
        "older ones are brought"
    )
