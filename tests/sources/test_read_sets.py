"""A commit costs only the Applications whose files it touches, whichever tool reads them and wherever they lie."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sources.conftest import Upstream
from tests.sources.githttp import Server

from syncline.sources.git.mirrors import Freshness, Git, GitSettings
from syncline.sources.remote.listing import Listing, SmallFiles
from syncline.sources.rendering.cache import RenderCache
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.rendering.renderer import render_opened
from syncline.sources.sourcing import Sources
from syncline.sources.tree import Entry

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
CONTEXT = RenderContext("shop", "default", "prod")
CHART = "apiVersion: v2\nname: app\nversion: 1.0.0\n"
NEEDS = "dependencies: [{name: lib, version: 1.0.0, repository: 'file://../lib'}]\n"
FILES = {
    "plain/a.yaml": MAP % "a",
    "plain/link.yaml": "@../shared/linked.yaml",
    "shared/linked.yaml": MAP % "linked",
    "program/main.jsonnet": "(import 'lib.libsonnet') + {data: {v: importstr 'v.txt'}}",
    "program/v.txt": "1",
    "libs/lib.libsonnet": "{apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: 'j'}}",
    "overlay/kustomization.yaml": "resources: [../base, '../more']\nconfigMapGenerator: [{name: g, files: [f.txt]}]\n",
    "overlay/f.txt": "1",
    "base/kustomization.yaml": "resources: [b.yaml]\n",
    "base/b.yaml": MAP % "b",
    "more/kustomization.yaml": "resources: [m.yaml]\ncomponents: [../component]\n",
    "more/m.yaml": MAP % "m",
    "component/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: c-\n",
    "chart/Chart.yaml": CHART + NEEDS,
    "chart/templates/a.yaml": MAP % "{{ .Values.name }}",
    "chart/values.yaml": "name: v\n",
    "lib/Chart.yaml": "apiVersion: v2\nname: lib\nversion: 1.0.0\n",
    "lib/templates/l.yaml": MAP % "lib",
    "env/prod.yaml": "a: 1\n",
    "env/other.yaml": "a: 2\n",
    "env/note.txt": "text",
}
SOURCES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "plain": ({"path": "plain"}, {"plain/a.yaml", "shared/linked.yaml"}),
    "jsonnet": (
        {"path": "program", "directory": {"jsonnet": {"libs": ["libs"]}}},
        {"program/main.jsonnet", "program/v.txt", "libs/lib.libsonnet"},
    ),
    "kustomize": (
        {"path": "overlay"},
        {name for name in FILES if name.split("/")[0] in ("overlay", "base", "more", "component")},
    ),
    "helm": (
        {
            "path": "chart",
            "helm": {"valueFiles": ["../env/prod.yaml"], "fileParameters": [{"name": "n", "path": "/env/note.txt"}]},
        },
        {"env/prod.yaml", "env/note.txt"} | {name for name in FILES if name.split("/")[0] in ("chart", "lib")},
    ),
    "helm with a ref": (
        {"path": "chart", "helm": {"valueFiles": ["$own/env/prod.yaml"]}},
        {"env/prod.yaml"} | {name for name in FILES if name.split("/")[0] in ("chart", "lib")},
    ),
}


def write(upstream: Upstream, files: dict[str, str]) -> str:
    for name, text in files.items():
        place = upstream.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("@"):
            place.symlink_to(text[1:])
        else:
            place.write_text(text)
    return upstream.commit({})


@pytest.mark.parametrize("tool", SOURCES)
def test_a_commit_costs_those_alone_who_read_what_it_touches(upstream: Upstream, tmp_path: Path, tool: str) -> None:
    if "helm" in tool and importlib.util.find_spec("helm_python") is None:
        pytest.skip("pip install 'syncline[helm]'")
    block, read = SOURCES[tool]
    write(upstream, FILES)
    sources, cache = Sources(GitSettings(tmp_path / "cache", allow_local=True)), RenderCache()
    source = {"repoURL": str(upstream.path), "targetRevision": "main", **block}

    def cached() -> bool:
        opened = sources.open(source, "main")
        refs = {"own": sources.lend({**source, "ref": "own"}, "main").tree} if "ref" in tool else {}
        remote = sources.remote("default")
        found = render_opened(
            source, opened.tree, opened.revision.sha, context=CONTEXT, refs=refs, remote=remote, cache=cache
        )
        assert found.objects
        return found.cached

    assert not cached()
    assert cached()
    wrong: list[str] = []
    for name in sorted(FILES):
        if FILES[name].startswith("@"):
            continue
        text = (upstream.path / name).read_text()
        write(upstream, {name: f"{text} " if name.endswith("txt") else f"{text}\n# touched\n"})
        if cached() == (name in read):
            wrong.append(name)
    assert not wrong, f"rendered anew for what is not read, or not for what is: {wrong}"


def test_a_new_file_counts_where_a_tool_would_read_it(upstream: Upstream, tmp_path: Path) -> None:
    write(upstream, FILES)
    sources, cache = Sources(GitSettings(tmp_path / "cache", allow_local=True)), RenderCache()

    def cached(path: str) -> bool:
        source = {"repoURL": str(upstream.path), "path": path}
        opened = sources.open(source, "main")
        return render_opened(source, opened.tree, opened.revision.sha, context=CONTEXT, cache=cache).cached

    assert [cached("plain"), cached("overlay")] == [False, False]
    write(upstream, {"plain/new.yaml": MAP % "new", "base/new.yaml": MAP % "new"})
    assert [cached("plain"), cached("overlay")] == [False, True]


@contextmanager
def served(upstream: Upstream, tmp_path: Path) -> Iterator[tuple[Server, str]]:
    upstream.run("clone", "--quiet", "--bare", str(upstream.path), str(tmp_path / "host" / "app.git"), inside=False)
    upstream.run("-C", str(tmp_path / "host" / "app.git"), "update-server-info", inside=False)
    server = Server(tmp_path / "host", "")
    yield server, f"{server.url}/app.git"
    server.close()


def test_polls_of_many_applications_ask_the_host_once(upstream: Upstream, tmp_path: Path) -> None:
    write(upstream, FILES)
    sources = Sources(GitSettings(tmp_path / "cache"))
    with served(upstream, tmp_path) as (_, url):
        for path in ("plain", "base", "overlay", "chart"):
            sources.open({"repoURL": url, "path": path}, "main", freshness=Freshness(NOON, NOON))
        asked = {what: count for _, what, _, count in sources.requests()}
        assert asked == {"ls-remote": 1, "fetch": 1}
        sources.open({"repoURL": url, "path": "plain"}, "main")
        assert {what: count for _, what, _, count in sources.requests()} == {"ls-remote": 2, "fetch": 1}


def test_the_listing_of_a_commit_answers_for_every_folder(upstream: Upstream, git: Git) -> None:
    sha = write(upstream, {**FILES, "a/b/c.yaml": "1", "a/b-c.yaml": "2", "a.yaml": "3", "way": "@a"})
    repository = git.repository(str(upstream.path))
    first = {path: repository.tree(sha, path).entries for path in ("a", "a/b")}
    again = {path: repository.tree(sha, path).entries for path in ("a", "a/b", "way")}
    assert {path: again[path] for path in first} == first
    assert [entry.path for entry in again["way"]] == ["b-c.yaml", "b/c.yaml"], "a folder behind a link"
    entries = [Entry(name, "100644", name, 1) for name in sorted(("a", "a/b", "a.b", "a/b/c", "b"))]
    listing = Listing("s", entries)
    assert [entry.path for entry in listing.folder("a")] == ["b", "b/c"]
    assert [listing.has_file(name) for name in ("a", "b", "c", "")] == [True, True, False, False]


def test_small_files_are_bounded() -> None:
    small = SmallFiles(each=4, together=10)
    small.put([("a", b"1234"), ("b", b"1234"), ("large", b"12345")])
    small.get(["a"])
    small.put([("c", b"1234")])
    assert sorted(small.get(["a", "b", "c", "large"])) == ["a", "c"]
