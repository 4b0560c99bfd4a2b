"""What generators of ApplicationSets read: Git trees, plugins; and what a tenant's set may read."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.sources.conftest import Upstream
from tests.sources.test_borders import CANARY, account, book, lists

from syncline.appset.questions import DirectoriesQuestion, FilesQuestion, GitFiles, GitPaths, PluginQuestion
from syncline.assembly.sources.reading import GitSourceReader
from syncline.assembly.sources.source_rules import source_rules
from syncline.base.secret import Secret
from syncline.sources.errors import SourceError
from syncline.sources.providers.model import SecretReference
from syncline.sources.remote.border import of_generator

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOKEN = SecretReference("argocd", "argocd-secret", "token", purpose="plugin")
FILES = {
    "apps/web/kustomization.yaml": "x: 1\n",
    "apps/.hidden/deep/a.yaml": "x: 2\n",
    "apps/api/config.json": '{"a": 1}',
    "README.md": "r\n",
}


@pytest.fixture
def reader(tmp_path: Path) -> GitSourceReader:
    return GitSourceReader(tmp_path / "cache", allow_local=True)


def ask(reader: GitSourceReader, question: Any, token: str = "") -> Any:
    return reader.rows(question, {TOKEN: Secret(token)}, NOW, since=None, wanted=reader.moment())


def test_all_directories_are_listed_without_the_root(reader: GitSourceReader, upstream: Upstream) -> None:
    commit = upstream.commit(FILES)
    found = ask(reader, DirectoriesQuestion(str(upstream.path), "main", "default"))
    assert found == GitPaths(commit, ("apps", "apps/.hidden", "apps/.hidden/deep", "apps/api", "apps/web"))


def test_the_texts_of_matching_files_are_read_and_links_inside_the_repository_followed(
    reader: GitSourceReader, upstream: Upstream
) -> None:
    upstream.path.mkdir(exist_ok=True)
    (upstream.path / "apps").mkdir()
    (upstream.path / "apps" / "link.json").symlink_to("api/config.json")
    commit = upstream.commit(FILES)
    found = ask(reader, FilesQuestion(str(upstream.path), "", "default", ("apps/*.json",)))
    assert found == GitFiles(commit, {"apps/api/config.json": '{"a": 1}', "apps/link.json": '{"a": 1}'})


@pytest.mark.parametrize(
    ("name", "target", "text"),
    [("out.json", "../../etc/passwd", "leaves the repository"), ("dead.json", "nothing", "does not end at a file")],
)
def test_a_link_that_leads_nowhere_or_outside_is_refused(
    reader: GitSourceReader, upstream: Upstream, name: str, target: str, text: str
) -> None:
    upstream.commit(FILES)
    (upstream.path / name).symlink_to(target)
    upstream.commit({})
    with pytest.raises(SourceError, match=text):
        ask(reader, FilesQuestion(str(upstream.path), "", "default", ("*.json",)))


def test_files_that_are_too_large_are_named(
    reader: GitSourceReader, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    upstream.commit(FILES)
    monkeypatch.setattr("syncline.assembly.sources.generating.MAX_FILE_BYTES", 7)
    with pytest.raises(SourceError, match=r"apps/api/config.json has 8 bytes; of a file 7 bytes are read.*narrow"):
        ask(reader, FilesQuestion(str(upstream.path), "", "default", ("*.json",)))


def test_the_same_commit_is_listed_once(reader: GitSourceReader, upstream: Upstream) -> None:
    upstream.commit(FILES)
    question = DirectoriesQuestion(str(upstream.path), "main", "default")
    assert ask(reader, question) is ask(reader, question)
    upstream.commit({"new/file": ""})
    assert "new" in ask(reader, question).paths


# --- who may read what ---------------------------------------------------------------------------------------------

PRIVATE = "https://git.example/private.git"


def lent(reader: GitSourceReader, project: str, *, trusted: bool) -> str:
    """The password with which a set's repository would be read; empty: none."""
    found = of_generator(reader.sources.border, PRIVATE, project, trusted=trusted, local=False)
    password = found.access.password if found.access is not None else None
    return password.reveal() if password is not None else ""


def test_a_set_of_the_control_namespace_reads_with_credentials_although_its_project_does_not_list_it(
    reader: GitSourceReader,
) -> None:
    reader.learn(book(account(PRIVATE)))
    reader.learn_rules(source_rules(lists(tenant=["https://else/*"], default=["*"]), []))
    assert lent(reader, "tenant", trusted=True) == CANARY
    assert lent(reader, "", trusted=True) == CANARY, "a templated project"


def test_a_tenants_set_reads_what_its_project_lists_and_a_templated_project_gives_no_credentials(
    reader: GitSourceReader,
) -> None:
    reader.learn(book(account(PRIVATE)))
    reader.learn_rules(source_rules(lists(tenant=["https://else/*"], other=[PRIVATE], default=["*"]), []))
    with pytest.raises(SourceError, match="is not permitted in project 'tenant'"):
        lent(reader, "tenant", trusted=False)
    assert lent(reader, "other", trusted=False) == CANARY
    assert lent(reader, "", trusted=False) == ""


# --- plugins -------------------------------------------------------------------------------------------------------


class Plugin(ThreadingHTTPServer):
    """Answers as it is set to, and keeps the requests."""

    daemon_threads = True

    def __init__(self) -> None:
        self.answer: tuple[int, str] = (200, '{"output": {"parameters": [{"a": 1}]}}')
        self.requests: list[tuple[str, str | None, str | None, Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                heads = self.headers.get("Authorization"), self.headers.get("Content-Type")
                server.requests.append((self.path, *heads, body))
                status, text = server.answer
                self.send_response(status)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None: ...

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def plugin() -> Iterator[Plugin]:
    server = Plugin()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_b42_a_plugin_is_asked_as_upstream_asks_it(reader: GitSourceReader, plugin: Plugin) -> None:
    body = {"applicationSetName": "set", "input": {"parameters": {"k": "v"}}}
    question = PluginQuestion(f"{plugin.url}/base", json.dumps(body), TOKEN)
    assert ask(reader, question, token="t0ken") == {"output": {"parameters": [{"a": 1}]}}
    assert plugin.requests == [("/base/api/v1/getparams.execute", "Bearer t0ken", "application/json", body)]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ((500, '{"message": "no"}'), "API error with status code 500: no"),
        ((500, '{"error": "why"}'), "API error with status code 500: why"),
        ((502, "bad gateway"), "API error with status code 502: bad gateway"),
        ((200, "{"), "the answer of the plugin is not JSON"),
        ((200, "[]"), "must be an object with output.parameters"),
    ],
)
def test_b42_an_answer_that_cannot_be_used_is_an_error(
    reader: GitSourceReader, plugin: Plugin, answer: tuple[int, str], text: str
) -> None:
    plugin.answer = answer
    with pytest.raises(SourceError) as refused:
        ask(reader, PluginQuestion(plugin.url, "{}", TOKEN), token="t0ken")
    assert text in str(refused.value) and "t0ken" not in str(refused.value)


def test_an_empty_answer_of_a_plugin_has_no_rows(reader: GitSourceReader, plugin: Plugin) -> None:
    plugin.answer = (200, "")
    assert ask(reader, PluginQuestion(plugin.url, "{}", TOKEN), token="x") == {}
