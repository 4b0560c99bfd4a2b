"""``syncline appset`` over HTTP: the verbs that people know from argocd, on a served cluster without controllers."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.cli.commanding import Shell
from tests.cli.test_completing import offered
from tests.live import Served, served_cluster

from syncline.assembly.gitops import foreign_objects
from syncline.assembly.settings import ClusterSettings
from syncline.cli.access.connection import Connection
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.objects import gvk_of

SET = """apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: NAME}
spec:
  goTemplate: true
  generators: [{list: {elements: [{team: red}, {team: blue}]}}]
  template:
    metadata: {name: 'NAME-{{ .team }}'}
    spec:
      project: default
      source: {repoURL: 'https://127.0.0.1:1/r', path: 'apps/{{ .team }}', targetRevision: main}
      destination: {server: 'https://kubernetes.default.svc', namespace: '{{ .team }}'}
"""
TEMPLATED = "the Argo CD API does not currently support creating ApplicationSets with templated `project` fields"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_cluster(tmp_path_factory.mktemp("appset"), ClusterSettings(nodes=0)) as found:
        for obj in foreign_objects("argocd"):
            with Connection(str(found.kubeconfig)) as link:
                link.ask(client.create(link.resource(gvk_of(obj)), obj))
        yield found


@pytest.fixture
def shell(cluster: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    return Shell(capsys, [])


def written(folder: Path, name: str, *changes: tuple[str, str]) -> str:
    text = SET.replace("NAME", name)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return str(path)


def test_a_set_is_created_once_and_changed_only_with_upsert(shell: Shell, tmp_path: Path) -> None:
    file = written(tmp_path, "once")
    first = shell("appset", "create", file)
    assert first.startswith("Name:               argocd/once\nProject:            default\n")
    assert "ApplicationSet 'once' created\n" in shell.printed
    shell("appset", "create", file)
    assert "ApplicationSet 'once' unchanged\n" in shell.printed, "an equal spec is idempotent"
    changed = written(tmp_path, "once", ("targetRevision: main", "targetRevision: next"))
    assert "existing ApplicationSet spec is different, use upsert flag to force update" in shell(
        "appset", "create", changed, code=20
    )
    assert shell.json("appset", "create", changed, "--upsert")["spec"]["template"]["spec"]["source"][
        "targetRevision"
    ] == "next"  # fmt: skip
    assert "ApplicationSet 'once' updated\n" in shell.printed


def test_upsert_adds_labels_and_replaces_finalizers(shell: Shell, tmp_path: Path) -> None:
    shell("appset", "create", written(tmp_path, "marked", ("{name: marked}", "{name: marked, labels: {a: '1'}}")))
    again = written(tmp_path, "marked", ("{name: marked}", "{name: marked, labels: {b: '2'}}"))
    shell("appset", "create", again, "--upsert")
    assert shell.json("appset", "get", "marked")["metadata"]["labels"] == {"a": "1", "b": "2"}


def test_b57_a_templated_project_is_refused_with_upstreams_words(shell: Shell, tmp_path: Path) -> None:
    file = written(tmp_path, "anyone", ("project: default", "project: '{{ .team }}'"))
    assert f"error validating ApplicationSets: {TEMPLATED}" in shell("appset", "create", file, code=20)
    assert "does not exist" in shell("appset", "get", "anyone", code=20)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("project: default", "project: nosuch"), "ApplicationSet references project nosuch which does not exist"),
        (("list:", "lists:"), "ApplicationSet bad contains unrecognized generators: lists"),
        (("{name: bad}", "{namespace: argocd}"), "ApplicationSet does not have Name field set"),
        (("kind: ApplicationSet", "kind: Other"), "No ApplicationSets found while parsing the input file"),
        (("goTemplate: true", "goTemplates: true"), "goTemplates"),
    ],
)
def test_what_a_server_would_refuse_is_not_stored(
    shell: Shell, tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    code = 1 if change[1].endswith("Other") else 20
    assert words in shell("appset", "create", written(tmp_path, "bad", change), code=code)
    assert "does not exist" in shell("appset", "get", "bad", code=20)


def test_nothing_is_stored_where_one_of_several_documents_is_refused(shell: Shell, tmp_path: Path) -> None:
    both = tmp_path / "both.yaml"
    wrong = written(tmp_path, "wrong", ("project: default", "project: nosuch"))
    both.write_text(f"{SET.replace('NAME', 'fine')}---\n{Path(wrong).read_text()}")
    shell("appset", "create", str(both), code=20)
    assert "does not exist" in shell("appset", "get", "fine", code=20)


def test_several_documents_the_standard_input_and_a_url_are_read(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = tmp_path / "several.yaml"
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n"
    several.write_text("---\n".join((SET.replace("NAME", "one"), other, SET.replace("NAME", "two"))))
    shell("appset", "create", str(several))
    assert f"left out: {several}: ConfigMap beside\n" in "".join(shell.printed)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SET.replace("NAME", "three").encode())))
    shell("appset", "create", "-")
    with web(SET.replace("NAME", "four")) as url:
        shell("appset", "create", f"{url}/set.yaml")
        assert "it answers 404" in shell("appset", "create", f"{url}/nosuch", code=20)
    there = shell("appset", "list", "-o", "name").splitlines()
    assert {"argocd/one", "argocd/two", "argocd/three", "argocd/four"} <= set(there)
    assert there == sorted(there)


class web:
    """A web server with one file, ``/set.yaml``, on the loopback."""

    def __init__(self, text: str) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if self.path == "/set.yaml" else 404)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_arguments: object) -> None:
                return

        self.server = HTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> str:
        Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_error: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def test_list_and_get_show_what_argocd_shows(shell: Shell, tmp_path: Path, cluster: Served) -> None:
    shell("appset", "create", written(tmp_path, "shown", ("spec:\n  go", "spec:\n  syncPolicy: "
          "{applicationsSync: create-only}\n  go")))  # fmt: skip
    with Connection(str(cluster.kubeconfig)) as link:
        conditions = [
            {"type": "ErrorOccurred", "status": "False", "reason": "ApplicationSetUpToDate", "message": "fine"},
            {"type": "ResourcesUpToDate", "status": "True", "reason": "ApplicationSetUpToDate", "message": "fine"},
        ]
        rollout = [{"application": "shown-red", "status": "Waiting", "step": "1", "message": "waits",
                    "targetRevisions": ["abc"]}]  # fmt: skip
        resources = [
            {"group": "argoproj.io", "version": "v1alpha1", "kind": "Application", "namespace": "argocd",
             "name": name, "status": "Synced", "health": {"status": "Healthy"}}
            for name in ("shown-red", "shown-blue")
        ]  # fmt: skip
        status = {"conditions": conditions, "applicationStatus": rollout, "resources": resources,
                  "resourcesCount": 2, "health": {"status": "Healthy"}}  # fmt: skip
        info = link.resource(APPLICATION_SET)
        link.ask(client.patch(info, "argocd", "shown", PatchType.MERGE, {"status": status}, subresource="status"))
    rows = [line.split() for line in shell("appset", "list", "-o", "wide").splitlines()]
    assert rows[0] == ["NAME", "PROJECT", "SYNCPOLICY", "HEALTH", "CONDITIONS", "REPO", "PATH", "TARGET"]
    row = next(one for one in rows if one[0] == "argocd/shown")
    assert row[1:5] == ["default", "create-only", "Healthy", "ResourcesUpToDate"]
    assert row[-1] == "main" and shell("appset", "list", "-p", "nosuch").count("\n") == 1
    text = shell("appset", "get", "argocd/shown")
    assert "Health Status:      Healthy\n" in text and "- Repo:             https://127.0.0.1:1/r\n" in text
    assert "CONDITION           STATUS   MESSAGE   LAST TRANSITION\n" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["APPLICATION", "STATUS", "HEALTH", "STEP", "ROLLOUT", "MESSAGE"] in lines
    assert ["shown-red", "Synced", "Healthy", "1", "Waiting", "waits"] in lines
    assert offered("appset", "get", "sho") == ["shown"]


def test_deleting_asks_for_each_and_waits_where_asked(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gone", "stays", "last"):
        shell("appset", "create", written(tmp_path, name))
    monkeypatch.setattr("syncline.cli.appset.delete.sys", _Terminal)
    answers = iter("na")
    monkeypatch.setattr("click.prompt", lambda *_a, **_k: next(answers))
    said = shell("appset", "delete", "stays", "gone", "last", "--wait")
    assert said == (
        "The command to delete 'stays' was cancelled.\napplicationset 'gone' deleted\napplicationset 'last' deleted\n"
    )
    assert "does not exist" in shell("appset", "get", "gone", code=20)
    shell("appset", "delete", "stays", "--yes", "-N", "argocd")
    assert "does not exist" in shell("appset", "delete", "stays", code=20)


class _Terminal:
    class stdin:
        @staticmethod
        def isatty() -> bool:
            return True
