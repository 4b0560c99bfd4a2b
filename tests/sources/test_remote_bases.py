"""What kustomizations name beyond their repository: files by address, and folders of other repositories."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sources.conftest import Upstream
from tests.sources.githttp import Server

from syncline.assembly.sources.reading import GitSourceReader
from syncline.sources.kustomize.loader import remote_base
from syncline.sources.remote.credentials import credential_store
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.sourcing import SourceRules

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONTEXT = RenderContext("shop", "default", "prod")
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Server]:
    """A host with one repository, its tag v1, a plain file and a page."""
    other = Upstream(tmp_path / "other")
    nested = "resources: [b.yaml, ../shared]\n"
    other.commit({"base/kustomization.yaml": nested, "base/b.yaml": MAP % "b"})
    other.commit({"shared/kustomization.yaml": "resources: [s.yaml]\n", "shared/s.yaml": MAP % "s"})
    other.run("tag", "v1")
    other.commit({"base/b.yaml": MAP % "later", "out/kustomization.yaml": "resources: [../../secret.yaml]\n"})
    bare = tmp_path / "host" / "org" / "other.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", str(other.path), str(bare)], check=True)
    subprocess.run(["git", "-C", str(bare), "update-server-info"], check=True)
    (tmp_path / "host" / "plain.yaml").write_text(MAP % "plain")
    (tmp_path / "host" / "page").write_text("<!DOCTYPE html><html></html>")
    served = Server(tmp_path / "host", "")
    yield served
    served.close()


@pytest.fixture
def reader(tmp_path: Path) -> GitSourceReader:
    return GitSourceReader(tmp_path / "cache", allow_local=True)


def built(reader: GitSourceReader, upstream: Upstream, resource: str, more: str = "") -> Any:
    upstream.commit({"app/kustomization.yaml": f"resources: ['{resource}']\n{more}"})
    source = {"repoURL": str(upstream.path), "path": "app", "targetRevision": "main"}
    return reader.read((source,), ("main",), NOW, CONTEXT)


def names(found: Any) -> list[str]:
    assert found.error == ""
    return [obj["metadata"]["name"] for obj in found.objects]


def test_a_file_by_its_address_is_a_resource(reader: GitSourceReader, upstream: Upstream, host: Server) -> None:
    assert names(built(reader, upstream, f"{host.url}/plain.yaml", "namePrefix: x-\n")) == ["x-plain"]
    assert "404" in built(reader, upstream, f"{host.url}/no.yaml").error


@pytest.mark.parametrize(
    "form", ["%s/org/other//base?ref=v1", "%s/org/other.git/base?ref=v1", "git::%s/org/other.git//base?ref=v1"]
)
def test_a_folder_of_another_repository_is_a_base(
    reader: GitSourceReader, upstream: Upstream, host: Server, form: str
) -> None:
    resource = (form % host.url).replace("/other//", "/other.git//")
    assert names(built(reader, upstream, resource, "nameSuffix: -z\n")) == ["b-z", "s-z"]


def test_what_was_fetched_for_a_commit_stays_with_it(reader: GitSourceReader, upstream: Upstream, host: Server) -> None:
    built(reader, upstream, f"{host.url}/org/other.git//base?ref=v1")
    host.observed.clear()
    upstream.commit({"README.md": "x"})
    source = {"repoURL": str(upstream.path), "path": "app", "targetRevision": "main"}
    assert names(reader.read((source,), ("main",), NOW, CONTEXT)) == ["b", "s"]
    assert host.observed == []


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        ("%s/org/other.git//nothing?ref=v1", "is no folder of the repository"),
        ("%s/org/other.git//base?ref=v9", "unable to resolve 'v9'"),
        ("%s/org/other.git//out", "no such file"),
        ("%s/page", "is not reachable"),
        ("file:///etc//x", "is a place on this machine"),
        ("git::ext::sh -c x", "transport helper"),
    ],
)
def test_what_cannot_be_fetched_is_one_sentence(
    reader: GitSourceReader, upstream: Upstream, host: Server, resource: str, words: str
) -> None:
    error = built(reader, upstream, resource % host.url if "%s" in resource else resource).error
    assert words in error or "is not an address of a repository" in error, error


def test_a_base_that_the_project_does_not_list_gets_no_credentials(
    reader: GitSourceReader, upstream: Upstream, host: Server
) -> None:
    url = f"{host.url}/org/other.git"
    data = {"url": url, "username": "me", "password": "pw", "forceHttpBasicAuth": "true"}
    labels = {"argocd.argoproj.io/secret-type": "repository"}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    reader.learn(credential_store([{"metadata": {"name": "s", "labels": labels}, "data": encoded}], []))
    reader.learn_rules(SourceRules(permits=lambda _project, other: other != url))
    built(reader, upstream, f"{url}//base?ref=v1")
    assert set(host.observed) == {""}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("github.com/org/repo//path?ref=v1", ("https://github.com/org/repo.git", "v1", "path")),
        ("https://github.com/org/repo/a/b?ref=v1", ("https://github.com/org/repo.git", "v1", "a/b")),
        ("git@github.com:org/repo//path", ("git@github.com:org/repo.git", "HEAD", "path")),
        ("ssh://git@h/org/repo.git/path?version=x", ("ssh://git@h/org/repo.git", "x", "path")),
        ("https://dev.example.com/o/p/_git/repo/sub?ref=m", ("https://dev.example.com/o/p/_git/repo", "m", "sub")),
        ("git::https://h/o/r//p?timeout=9&ref=v2", ("https://h/o/r", "v2", "p")),
    ],
)
def test_places_are_read_as_kustomize_reads_them(name: str, expected: tuple[str, str, str]) -> None:
    assert remote_base(name) == expected
