"""Which of many Applications a push leaves alone: told by Git, and only where it can be told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sources.conftest import Upstream

from syncline.argo.application import AppView
from syncline.assembly.endpoints.pushes import FEW, Touched
from syncline.assembly.sources.reading import GitSourceReader
from syncline.gitops.application.manifests import Manifests
from syncline.kube.objects import Obj, name_of
from syncline.sources.rendering.environment import RenderContext

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"
CHART = {
    "{at}/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "{at}/values.yaml": "a: 1\n",
    "{at}/templates/a.yaml": MAP.format(name="chart"),
}
PLAIN = [f"plain-{number}" for number in range(FEW + 1)]


class Scene:
    """Applications in folders of one repository, each rendered once."""

    def __init__(self, place: Path, files: Mapping[str, str], folders: list[str]) -> None:
        self.upstream = Upstream(place / "upstream")
        self.upstream.commit(dict(files))
        self.reader = GitSourceReader(place / "cache", allow_local=True)
        self.read: dict[str, Manifests] = {}
        self.apps = [self.app(folder) for folder in folders]
        for app in self.apps:
            self.render(app)

    def app(self, folder: str, **more: Any) -> Obj:
        source = {"repoURL": str(self.upstream.path), "path": folder, "targetRevision": "main", **more}
        metadata = {"name": folder.replace("/", "-") or "root", "namespace": "argocd"}
        return {"kind": "Application", "metadata": metadata, "spec": {"project": "default", "source": source}}

    def render(self, app: Obj) -> None:
        view = AppView(app)
        context = RenderContext(name_of(app), "default", "ns")
        found = self.reader.read(view.sources, view.revisions_wanted, NOW, context)
        assert not found.error, found.error
        self.read[name_of(app)] = found

    def left_alone(self) -> list[str]:
        touched = Touched(self.reader, lambda app: self.read.get(name_of(app)), lambda: NOW)
        return sorted(ref.name for ref in asyncio.run(touched.left_alone(self.apps)))


def plain(place: Path, *, of: list[str] = PLAIN) -> Scene:
    return Scene(place, {f"{name}/map.yaml": MAP.format(name=name) for name in of}, of)


def test_of_many_the_one_whose_folder_a_commit_touches_is_to_be_refreshed(tmp_path: Path) -> None:
    scene = plain(tmp_path)
    scene.upstream.commit({"plain-2/map.yaml": MAP.format(name="changed"), "README": "new"})
    assert scene.left_alone() == [name for name in PLAIN if name != "plain-2"]


@pytest.mark.parametrize(
    "change",
    [{"plain-1/new.yaml": "{}"}, {"plain-1/deeper/new.txt": "x"}, {"plain-1/.argocd-source.yaml": "{}"}],
    ids=["a new file", "one below", "an override"],
)
def test_whatever_comes_into_its_folder_touches_an_application(tmp_path: Path, change: dict[str, str]) -> None:
    scene = plain(tmp_path)
    scene.upstream.commit(change)
    assert scene.left_alone() == [name for name in PLAIN if name != "plain-1"]


def test_a_folder_that_goes_is_touched_and_one_whose_name_only_begins_so_is_not(tmp_path: Path) -> None:
    scene = plain(tmp_path, of=[*PLAIN, "plain-11"])
    scene.upstream.run("rm", "-r", "-q", "plain-1")
    scene.upstream.commit({})
    assert scene.left_alone() == sorted(name for name in [*PLAIN, "plain-11"] if name != "plain-1")


def test_all_commits_since_the_last_render_count_whatever_a_push_says(tmp_path: Path) -> None:
    scene = plain(tmp_path)
    scene.upstream.commit({"plain-0/map.yaml": MAP.format(name="missed")})
    scene.upstream.commit({"README": "the commit that is told"})
    assert scene.left_alone() == PLAIN[1:]


def test_a_commit_that_is_taken_back_touches_what_it_had_touched(tmp_path: Path) -> None:
    scene = plain(tmp_path)
    before = scene.upstream.run("rev-parse", "HEAD")
    scene.upstream.commit({"plain-3/map.yaml": MAP.format(name="wrong")})
    scene.render(scene.apps[3])
    scene.upstream.run("reset", "-q", "--hard", before)
    assert scene.left_alone() == PLAIN[:3]


def test_a_few_are_refreshed_without_a_question(tmp_path: Path) -> None:
    scene = plain(tmp_path, of=PLAIN[:FEW])
    scene.upstream.commit({"README": "new"})
    asked = scene.reader.requests()
    assert (scene.left_alone(), scene.reader.requests()) == ([], asked)


def test_what_reads_beyond_its_folder_is_refreshed(tmp_path: Path) -> None:
    files = {f"{name}/map.yaml": MAP.format(name=name) for name in PLAIN}
    files |= {"base/kustomization.yaml": "resources: [map.yaml]\n", "base/map.yaml": MAP.format(name="base")}
    files |= {"over/kustomization.yaml": "resources: [../base]\n"}
    files |= {"own/kustomization.yaml": "resources: [map.yaml]\n", "own/map.yaml": MAP.format(name="own")}
    files |= {"lib/a.libsonnet": "{}", "jsonnet/a.jsonnet": f"(import '../lib/a.libsonnet') + {JSONNET}"}
    files |= {path.format(at="chart"): text for path, text in CHART.items()}
    files |= {path.format(at="far"): text for path, text in CHART.items()}
    scene = Scene(tmp_path, files, [*PLAIN, "over", "own", "jsonnet", "chart"])
    far = scene.app("far", helm={"valueFiles": ["../chart/values.yaml"]})
    linked = scene.app("linked")
    (scene.upstream.path / "linked").mkdir()
    (scene.upstream.path / "linked" / "map.yaml").symlink_to("../base/map.yaml")
    scene.upstream.commit({})
    scene.apps += [far, linked]
    for app in scene.apps:
        scene.render(app)
    scene.upstream.commit({"README": "nothing that anything reads"})
    assert scene.left_alone() == sorted([*PLAIN, "own", "chart"])


JSONNET = '{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "jsonnet"}}'


def test_what_was_never_read_here_or_failed_is_refreshed(tmp_path: Path) -> None:
    scene = plain(tmp_path, of=[*PLAIN, "x", "y"])
    del scene.read["x"]
    scene.read["y"] = Manifests((), (), (), NOW, error="it failed")
    scene.upstream.commit({"README": "new"})
    assert scene.left_alone() == PLAIN


def test_a_host_that_fails_leaves_no_one_alone(tmp_path: Path) -> None:
    scene = plain(tmp_path)
    scene.upstream.path.rename(tmp_path / "elsewhere")
    assert scene.left_alone() == []


def test_submodules_that_move_are_told_by_no_path(tmp_path: Path) -> None:
    scene = plain(tmp_path)
    scene.upstream.commit({".gitmodules": '[submodule "a"]\n\tpath = a\n\turl = ../a\n'})
    assert scene.left_alone() == []
