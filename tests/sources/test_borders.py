"""May this project read this address, and with whose credentials: what a repository names gets what is lent.

Real Git, charts and registries over HTTP on loopback addresses; each host writes down what it was shown.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import http.server
import io
import json
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sources.charthttp import ChartRepository, OciRegistry
from tests.sources.conftest import Upstream
from tests.sources.githttp import Server

from syncline.assembly.sources.reading import GitSourceReader
from syncline.assembly.sources.source_rules import source_rules
from syncline.base.secret import Secret
from syncline.kube import client
from syncline.kube.objects import Obj, ResourceInfo
from syncline.kube.transport.http import BlockingClient, HttpClient
from syncline.kube.transport.kubeconfig import ClusterAccess
from syncline.sources.errors import SourceError
from syncline.sources.git.lfs import LargeFiles
from syncline.sources.git.mirrors import Git, GitSettings
from syncline.sources.remote.artifacts import Artifacts
from syncline.sources.remote.cloud_tokens import forget_cloud_tokens, with_cloud_token
from syncline.sources.remote.credentials import AzurePrincipal, CredentialStore, RepositoryAccess, credential_store
from syncline.sources.remote.registry import Registry
from syncline.sources.remote.web import WebRequest, fetch
from syncline.sources.rendering.environment import RenderContext

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
CANARY = "c4n4ry"
SHOWN = "Basic " + base64.b64encode(f"me:{CANARY}".encode()).decode()
LABEL = "argocd.argoproj.io/secret-type"
Answer = tuple[int, dict[str, str], bytes]


class Recorder:
    """Answers by a function of the path; ``observed``: path, Authorization, body."""

    def __init__(self, answer: Callable[[str], Answer] = lambda _path: (404, {}, b"")) -> None:
        self.observed: list[tuple[str, str, bytes]] = []
        self.answer = answer

        class Handler(http.server.BaseHTTPRequestHandler):
            def handled(handler) -> None:
                body = handler.rfile.read(int(handler.headers.get("content-length") or 0))
                self.observed.append((handler.path, handler.headers.get("authorization", ""), body))
                status, headers, content = self.answer(handler.path)
                handler.send_response(status)
                for name, value in {"content-length": str(len(content)), **headers}.items():
                    handler.send_header(name, value)
                handler.end_headers()
                if handler.command != "HEAD":
                    handler.wfile.write(content)

            do_GET = do_HEAD = do_POST = handled

            def log_message(self, *_: object) -> None: ...

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()

    @property
    def told(self) -> str:
        return repr(self.observed)


@pytest.fixture
def hosts() -> Iterator[Callable[..., Any]]:
    """Makes servers that are closed at the end."""
    made: list[Any] = []

    def keep(one: Any) -> Any:
        made.append(one)
        return one

    yield keep
    for one in made:
        one.close()


def book(*secrets: dict[str, str]) -> CredentialStore:
    def encoded(data: dict[str, str]) -> dict[str, str]:
        return {key: base64.b64encode(value.encode()).decode() for key, value in data.items() if key != "label"}

    return credential_store(
        [
            {
                "metadata": {"name": f"s{number}", "labels": {LABEL: data.get("label", "repository")}},
                "data": encoded(data),
            }
            for number, data in enumerate(secrets)
        ],
        [],
    )


def account(url: str, **more: str) -> dict[str, str]:
    return {"url": url, "username": "me", "password": CANARY, **more}


def lists(**projects: list[str]) -> list[Obj]:
    return [{"metadata": {"name": name}, "spec": {"sourceRepos": repos}} for name, repos in projects.items()]


@pytest.fixture
def reader(tmp_path: Path) -> GitSourceReader:
    return GitSourceReader(tmp_path / "cache", allow_local=True)


def read(reader: GitSourceReader, project: str, url: str, path: str = "app", **block: Any) -> Any:
    source = {"repoURL": url, "path": path, "targetRevision": "main", **block}
    return reader.read((source,), (source["targetRevision"],), NOW, RenderContext("shop", project, "prod"))


def names(found: Any) -> list[str]:
    assert found.error == ""
    return sorted(obj["metadata"]["name"] for obj in found.objects)


def publish(upstream: Upstream, place: Path) -> None:
    subprocess.run(["git", "clone", "-q", "--bare", str(upstream.path), str(place)], check=True)
    subprocess.run(["git", "-C", str(place), "update-server-info"], check=True)


# -- what a repository names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["../secret.git", "../x/../secret.git", "../SECRET.git/../secret.git"])
def test_a_submodule_that_the_project_does_not_list_gets_no_credentials_also_after_another_project_read_it(
    reader: GitSourceReader, upstream: Upstream, tmp_path: Path, hosts: Callable[..., Any], spelling: str
) -> None:
    secret = Upstream(tmp_path / "secret")
    secret.commit({"s.yaml": MAP % "stolen"})
    publish(secret, tmp_path / "host" / "secret.git")
    upstream.commit({"app/a.yaml": MAP % "mine"})
    upstream.run("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(secret.path), "app/sub")
    upstream.run("config", "-f", ".gitmodules", "submodule.app/sub.url", spelling)
    upstream.commit({})
    publish(upstream, tmp_path / "host" / "mine.git")
    host = hosts(Server(tmp_path / "host", SHOWN))
    reader.learn(book(account(host.url, label="repo-creds")))
    url = f"{host.url}/mine.git"
    reader.learn_rules(source_rules(lists(trusted=[f"{host.url}/*"], tenant=[url]), []))
    recurse = {"directory": {"recurse": True}}
    assert names(read(reader, "trusted", url, **recurse)) == ["mine", "stolen"]
    found = read(reader, "tenant", url, **recurse)
    assert not found.objects
    assert "add it to the project's sourceRepos" in found.error
    reader.learn_rules(source_rules(lists(trusted=[url]), []))
    assert "sourceRepos" in read(reader, "trusted", url, **recurse).error, "what is not listed any more is not read"


def test_a_base_that_another_project_fetched_is_not_handed_to_a_copy_of_its_kustomization(
    reader: GitSourceReader, upstream: Upstream, tmp_path: Path, hosts: Callable[..., Any]
) -> None:
    base = Upstream(tmp_path / "base")
    base.commit({"kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": MAP % "stolen"})
    publish(base, tmp_path / "host" / "base.git")
    host = hosts(Server(tmp_path / "host", SHOWN))
    upstream.commit({"app/kustomization.yaml": f"resources: ['{host.url}/base.git?ref=main']\n"})
    copy = Upstream(tmp_path / "copy")
    copy.commit({"app/kustomization.yaml": f"resources: ['{host.url}/base.git?ref=main']\n"})
    reader.learn(book(account(f"{host.url}/base.git")))
    reader.learn_rules(source_rules(lists(trusted=["*"], tenant=["/**"]), []))
    assert names(read(reader, "trusted", str(upstream.path))) == ["stolen"]
    for place in (upstream, copy):
        found = read(reader, "tenant", str(place.path))
        assert not found.objects
        assert "sourceRepos" in found.error


def test_a_submodule_of_an_unlisted_base_gets_no_credentials_either(
    upstream: Upstream, tmp_path: Path, hosts: Callable[..., Any], reader: GitSourceReader
) -> None:
    secret = Upstream(tmp_path / "secret")
    secret.commit({"s.yaml": MAP % "stolen"})
    publish(secret, tmp_path / "closed" / "secret.git")
    closed = hosts(Server(tmp_path / "closed", SHOWN))
    base = Upstream(tmp_path / "base")
    base.commit({"kustomization.yaml": "resources: [sub/s.yaml]\n"})
    base.run("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(secret.path), "sub")
    base.run("config", "-f", ".gitmodules", "submodule.sub.url", f"{closed.url}/secret.git")
    base.commit({})
    publish(base, tmp_path / "open" / "base.git")
    opened = hosts(Server(tmp_path / "open", ""))
    upstream.commit({"app/kustomization.yaml": f"resources: ['{opened.url}/base.git?ref=main']\n"})
    reader.learn(book(account(closed.url, label="repo-creds")))
    reader.learn_rules(source_rules(lists(tenant=["/**"]), []))
    assert "sourceRepos" in read(reader, "tenant", str(upstream.path)).error
    assert set(closed.observed) == {""}


def test_what_anybody_may_read_is_asked_without_the_administrators_own_credentials(
    tmp_path: Path, hosts: Callable[..., Any], reader: GitSourceReader, upstream: Upstream, monkeypatch: Any
) -> None:
    host = hosts(Recorder())
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"http.{host.url}/.extraHeader")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", f"Authorization: Bearer {CANARY}")
    upstream.commit({"app/kustomization.yaml": f"resources: ['{host.url}/base.git?ref=main']\n"})
    reader.learn_rules(source_rules(lists(tenant=["/**"]), []))
    assert read(reader, "tenant", str(upstream.path)).error
    assert any(path.startswith("/base.git/info/refs") for path, _, _ in host.observed)
    assert CANARY not in host.told


def test_an_applications_own_source_must_be_listed_however_it_came_here(
    reader: GitSourceReader, hosts: Callable[..., Any]
) -> None:
    host = hosts(Recorder())
    reader.learn(book(account(host.url, label="repo-creds")))
    reader.learn_rules(source_rules(lists(tenant=[f"{host.url}/mine"]), []))
    for url in (f"{host.url}/secret", f"{host.url}/mine/../secret", f"{host.url}/mine/%2e%2e/secret"):
        for block in ({}, {"chart": "web", "path": ""}):
            assert "is not permitted in project 'tenant'" in read(reader, "tenant", url, **block).error
    assert host.observed == []


# -- charts ---------------------------------------------------------------------------------------------------------


def packed(name: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as made:
        files = {"Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: 1.0.0\n", "templates/a.yaml": MAP % "stolen"}
        for path, text in files.items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(text)
            made.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def index(*urls: str) -> str:
    return json.dumps({"entries": {"web": [{"version": "1.0.0", "urls": list(urls)}]}})


@pytest.mark.parametrize("named", ["../secret/web-1.0.0.tgz", "/secret/web-1.0.0.tgz", "x/..//../secret/web-1.0.0.tgz"])
@pytest.mark.parametrize("passes", [False, True])
def test_an_index_lends_the_credentials_of_its_repository_to_no_other_place(
    reader: GitSourceReader, tmp_path: Path, hosts: Callable[..., Any], named: str, passes: bool
) -> None:
    for folder in ("mine", "secret"):
        (tmp_path / "charts" / folder).mkdir(parents=True)
    (tmp_path / "charts" / "secret" / "web-1.0.0.tgz").write_bytes(packed("web"))
    (tmp_path / "charts" / "mine" / "index.yaml").write_text(index(named))
    host = hosts(ChartRepository(tmp_path / "charts", f"me:{CANARY}"))
    reader.learn(book(account(host.url, label="repo-creds", type="helm")))
    url = f"{host.url}/mine"
    reader.learn_rules(source_rules(lists(tenant=[url], trusted=[f"{host.url}/**"]), []))
    block = {"chart": "web", "targetRevision": "1.0.0", "path": "", "helm": {"passCredentials": passes}}
    assert "asked without credentials" in read(reader, "tenant", url, **block).error
    assert [given for path, given, _ in host.observed if "secret" in path] == [""]
    read(reader, "trusted", url, **block)
    assert host.observed[-1] == ("/secret/web-1.0.0.tgz", SHOWN, 200)


@pytest.mark.parametrize("form", ["http://{}/x.tgz", "//{}/x.tgz"])
def test_a_token_in_the_address_of_a_repository_goes_to_no_other_host(
    hosts: Callable[..., Any], tmp_path: Path, form: str
) -> None:
    other = hosts(Recorder())
    place = form.format(other.url.removeprefix("http://"))
    own = hosts(Recorder(lambda _path: (200, {}, index(place).encode())))
    with pytest.raises(SourceError, match="404"):
        Artifacts(tmp_path / "cache").chart(f"{own.url}/charts?token={CANARY}", "web", "1.0.0")
    assert other.observed, "it was asked"
    assert CANARY not in other.told


def test_an_index_that_names_a_registry_gets_no_credentials_for_it(
    reader: GitSourceReader, hosts: Callable[..., Any]
) -> None:
    registry = hosts(OciRegistry(f"me:{CANARY}"))
    own = hosts(Recorder(lambda _path: (200, {}, index(f"oci://{registry.host}/secret/web:1.0.0").encode())))
    shared = account(f"oci://{registry.host}/secret", type="oci", insecureOCIForceHttp="true", label="repo-creds")
    reader.learn(book(shared))
    reader.learn_rules(source_rules(lists(tenant=[own.url]), []))
    assert read(reader, "tenant", own.url, "", chart="web", targetRevision="1.0.0").error
    assert not [kind for _, _, kind in registry.requests if kind]


def test_a_chart_that_was_brought_with_credentials_is_not_found_by_a_project_that_does_not_list_it(
    tmp_path: Path, hosts: Callable[..., Any], reader: GitSourceReader, upstream: Upstream
) -> None:
    (tmp_path / "charts").mkdir()
    (tmp_path / "charts" / "web-1.0.0.tgz").write_bytes(packed("web"))
    (tmp_path / "charts" / "index.yaml").write_text(index("web-1.0.0.tgz"))
    host = hosts(ChartRepository(tmp_path / "charts", f"me:{CANARY}"))
    store = reader.sources
    reader.learn(book(account(host.url, type="helm")))
    reader.learn_rules(source_rules(lists(trusted=["*"], tenant=["/**"]), []))
    version, digest = store.remote("trusted").dependency(host.url, "web", "1.0.0", "pin")
    assert (version, hashlib.sha256(store.remote("trusted").archive(digest)).hexdigest()) == ("1.0.0", digest)
    for spelling in (host.url, f"{host.url}/", f"{host.url}/x/.."):
        with pytest.raises(SourceError, match="are not permitted in project 'tenant'"):
            store.remote("tenant").dependency(spelling, "web", "1.0.0", "pin")


def test_secrets_of_another_project_decide_nothing_by_address_prefix_name_or_registry(tmp_path: Path) -> None:
    known = book(
        account("https://h/own", project="other"),
        account("https://h", project="other", label="repo-creds"),
        account("https://charts/x", project="other", type="helm", name="friend"),
        account("oci://reg/team", project="other", type="oci"),
    )
    assert known.access("https://h/own", "tenant") is None
    assert known.access("https://h/else", "tenant", charts=True) is None
    assert known.named("friend", "tenant") is None
    assert known.registry("oci://reg/team/web", "tenant") is None
    mine = known.registry("oci://reg/team/web", "other")
    assert mine is not None and mine.name == "s3"


def test_lists_of_global_projects_and_secrets_of_the_project_itself_permit(reader: GitSourceReader) -> None:
    everywhere = {"metadata": {"name": "all"}, "spec": {"sourceRepos": ["https://h/shared/*"]}}
    team = {"metadata": {"name": "team", "labels": {"t": "1"}}, "spec": {"sourceRepos": ["https://h/*"]}}
    choice = '[{projectName: all, labelSelector: {matchLabels: {t: "1"}}}]'
    settings = {"metadata": {"name": "argocd-cm"}, "data": {"globalProjects": choice}}
    reader.learn_rules(source_rules([everywhere, team, *lists(other=["https://h/*"])], [settings]))
    reader.learn(book(account("https://own/x", project="team"), account("https://h/secret/x", project="other")))
    judged = reader.sources.border.judge
    for url, project, permitted in (
        ("https://h/shared/x", "team", True),
        ("https://h/shared/x", "other", False),
        ("https://h/secret/x", "team", False),
        ("https://own/x.git", "team", True),
        ("https://own/x", "other", False),
        ("https://own/y", "team", False),
        ("https://h/x", "nobody", False),
    ):
        lent = judged(url, project)
        assert (url, project, lent.permitted) == (url, project, permitted)
        assert lent.has_credentials is (url == "https://own/x.git")


# -- large files ----------------------------------------------------------------------------------------------------

CONTENT = b"large"
OID = hashlib.sha256(CONTENT).hexdigest()
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{OID}\nsize {len(CONTENT)}\n"


@pytest.mark.parametrize("named", ["/secret.git/info/lfs", "/mine.git/../secret.git/info/lfs", "/x"])
def test_large_files_of_another_repository_are_asked_for_without_credentials(
    tmp_path: Path, hosts: Callable[..., Any], named: str
) -> None:
    own = hosts(Recorder())
    url = f"{own.url}/mine.git"
    access = RepositoryAccess(url, username="me", password=Secret(CANARY), lfs=True)
    for configured, shown in ((own.url + named, ""), (f"{own.url}/x/../mine.git/info/lfs", SHOWN), ("", SHOWN)):
        own.observed.clear()
        with pytest.raises(SourceError, match="404"):
            LargeFiles(url, access, tmp_path / "lfs", configured).smudged({"a": POINTER.encode()})
        assert [given for _, given, _ in own.observed] == [shown]


def test_a_batch_answer_of_another_place_names_no_address_that_gets_our_credentials(
    tmp_path: Path, hosts: Callable[..., Any]
) -> None:
    own = hosts(Recorder(lambda _path: (200, {}, CONTENT)))

    def batch(_path: str) -> Answer:
        download = {"download": {"href": f"{own.url}/secret/raw"}}
        return 200, {}, json.dumps({"objects": [{"oid": OID, "size": len(CONTENT), "actions": download}]}).encode()

    stranger = hosts(Recorder(batch))
    url = f"{own.url}/mine.git"
    access = RepositoryAccess(url, username="me", password=Secret(CANARY), lfs=True)
    LargeFiles(url, access, tmp_path / "lfs", f"{stranger.url}/lfs").smudged({"a": POINTER.encode()})
    assert SHOWN not in own.told + stranger.told
    assert own.observed, "the object was brought"


def test_large_files_that_one_project_brought_are_not_found_by_another(tmp_path: Path, upstream: Upstream) -> None:
    sha = upstream.commit({"app/a.yaml": POINTER})
    place = upstream.path / ".git" / "lfs" / "objects" / OID[:2] / OID[2:4]
    place.mkdir(parents=True)
    (place / OID).write_bytes(CONTENT)
    git = Git(GitSettings(tmp_path / "cache", allow_local=True))
    other = Upstream(tmp_path / "other")
    theirs = other.commit({"app/a.yaml": POINTER})
    git.learn(book(*({"url": str(one.path), "enableLfs": "true"} for one in (upstream, other))))
    tree = git.repository(str(upstream.path)).tree(sha, "app")
    assert tree.read(tree.entries)["a.yaml"] == CONTENT
    with pytest.raises(SourceError, match="is not there"):
        tree = git.repository(str(other.path)).tree(theirs, "app")
        tree.read(tree.entries)


# -- redirects ------------------------------------------------------------------------------------------------------


def test_who_was_sent_to_a_stranger_and_back_shows_nothing_any_more(hosts: Callable[..., Any]) -> None:
    own, stranger = hosts(Recorder()), hosts(Recorder())
    own.answer = lambda path: (200, {}, b"x") if path == "/secret" else (302, {"location": f"{stranger.url}/"}, b"")
    stranger.answer = lambda _path: (302, {"location": f"{own.url}/secret"}, b"")
    access = RepositoryAccess(own.url, username="me", password=Secret(CANARY))
    fetch(WebRequest(f"{own.url}/first", "test", access, secret_headers={"X-Token": CANARY}))
    assert [(path, given) for path, given, _ in own.observed] == [("/first", SHOWN), ("/secret", "")]
    assert stranger.observed == [("/", "", b"")]


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_what_buys_a_token_is_sent_to_nobody_else(hosts: Callable[..., Any], status: int) -> None:
    stranger = hosts(Recorder())
    own = hosts(Recorder(lambda _path: (status, {"location": f"{stranger.url}/token"}, b"")))
    azure = AzurePrincipal("t", "c", Secret(CANARY), own.url)
    forget_cloud_tokens()
    with pytest.raises(SourceError, match="redirects what is for it alone"):
        with_cloud_token(RepositoryAccess("https://h/x", azure=azure))
    assert stranger.observed == []


@pytest.mark.parametrize(
    "data",
    [{"bearerToken": CANARY}, {"username": "me", "password": CANARY, "forceHttpBasicAuth": "true"}],
    ids=["bearer", "forced basic"],
)
def test_tokens_that_git_shows_unasked_follow_no_redirect(
    hosts: Callable[..., Any], tmp_path: Path, data: dict[str, str]
) -> None:
    stranger = hosts(Recorder())
    own = hosts(Recorder(lambda path: (302, {"location": stranger.url + path}, b"")))
    git = Git(GitSettings(tmp_path / "cache"))
    git.learn(book({"url": own.url, "label": "repo-creds", **data}))
    with pytest.raises(SourceError, match="follow no redirect"):
        git.repository(f"{own.url}/app.git").refs()
    assert own.observed[0][1], "the repository itself was shown it"
    assert stranger.observed == []


def test_a_registry_that_redirects_lets_nobody_ask_for_our_password(hosts: Callable[..., Any]) -> None:
    stranger = hosts(Recorder())
    realm = {"www-authenticate": f'Bearer realm="{stranger.url}/token",service="s"'}
    stranger.answer = lambda path: (200, {}, b'{"token": "t"}') if path.startswith("/token") else (401, realm, b"")
    access = RepositoryAccess("oci://x", username="me", password=Secret(CANARY))
    for answer in ((307, {"location": f"{stranger.url}/v2/"}, b""), (401, realm, b"")):
        own = hosts(Recorder(lambda _path, answer=answer: answer))  # type: ignore[misc]
        with pytest.raises(SourceError):
            Registry(f"{own.url.removeprefix('http://')}/x", access, plain_http=True).check()
    assert SHOWN not in stranger.told


def test_clients_of_a_cluster_follow_no_redirect_with_their_token(hosts: Callable[..., Any]) -> None:
    stranger = hosts(Recorder())
    own = hosts(Recorder(lambda path: (307, {"location": stranger.url + path}, b"")))
    access = ClusterAccess(own.url, token=Secret(CANARY))
    request = client.get(ResourceInfo("", "v1", "ConfigMap", "configmaps", True), "default", "x")
    assert not BlockingClient(access).send(request).ok

    async def asked() -> bool:
        link = HttpClient(access)
        try:
            return (await link.send(request)).ok
        finally:
            await link.close()

    assert not asyncio.run(asked())
    assert [given for _, given, _ in own.observed] == [f"Bearer {CANARY}"] * 2
    assert stranger.observed == []


ODD = ["http://[x", "http://h:99999/x", "http://h:x/y", "//[/x", "http://a..b/x", "http://0x7f.1/x"]


@pytest.mark.parametrize("odd", ODD)
def test_an_address_that_a_host_names_and_nobody_can_read_is_one_sentence(
    hosts: Callable[..., Any], tmp_path: Path, odd: str
) -> None:
    own = hosts(Recorder(lambda _path: (302, {"location": odd}, b"")))
    with pytest.raises(SourceError):
        fetch(WebRequest(own.url, "test"))
    own.answer = lambda _path: (200, {}, index(odd).encode())
    with pytest.raises(SourceError):
        Artifacts(tmp_path / "cache").chart(own.url, "web", "1.0.0")
    download = {"objects": [{"oid": OID, "size": 5, "actions": {"download": {"href": odd}}}]}
    own.answer = lambda _path: (200, {}, json.dumps(download).encode())
    for configured in ("", odd):
        with pytest.raises(SourceError):
            LargeFiles(f"{own.url}/x", None, tmp_path / "lfs", configured).smudged({"a": POINTER.encode()})
    own.answer = lambda _path: (200, {"link": f'<{odd}>; rel="next"'}, b"{}")
    with pytest.raises(SourceError):
        Registry(f"{own.url.removeprefix('http://')}/x", None, plain_http=True).tags()
    own.answer = lambda _path: (401, {"www-authenticate": f'Bearer realm="{odd}"'}, b"{}")
    with pytest.raises(SourceError):
        Registry(f"{own.url.removeprefix('http://')}/x", None, plain_http=True).tags()


# -- networks that nobody reaches -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/x", "http://[fe80::1]/x", "http://metadata.google.internal/x", "http://0.0.0.0/x"]
)
def test_no_repository_reaches_what_tells_machines_their_credentials(
    reader: GitSourceReader, upstream: Upstream, hosts: Callable[..., Any], url: str
) -> None:
    away = hosts(Recorder(lambda _path: (302, {"location": url}, b"")))
    words = "lies in a network that repositories may not name"
    upstream.commit({"app/kustomization.yaml": f"resources: ['{url}.yaml']\n"})
    assert words in read(reader, "tenant", str(upstream.path)).error
    upstream.commit({"app/kustomization.yaml": f"resources: ['{away.url}/x.yaml']\n"})
    assert words in read(reader, "tenant", str(upstream.path)).error
    assert words in read(reader, "tenant", url).error
    assert words in read(reader, "tenant", url, "", chart="web").error


def test_a_name_is_judged_by_where_it_leads(hosts: Callable[..., Any], reader: GitSourceReader) -> None:
    host = hosts(Recorder())
    settings = {"metadata": {"name": "argocd-cm"}, "data": {"source.forbidden.networks": "127.0.0.0/8,::1"}}
    reader.learn_rules(source_rules(lists(tenant=["*"]), [settings]))
    port = host.url.rpartition(":")[2]
    with pytest.raises(SourceError, match="lies in a network"):
        reader.sources.remote("tenant").text(f"http://localhost:{port}/values.yaml")
    assert host.observed == []
