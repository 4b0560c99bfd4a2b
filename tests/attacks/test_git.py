"""Commits that git itself would never check out, and addresses in files that git reads: none reaches a disk."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.crafted import CHART, MAP, Crafted, Node
from tests.sources.conftest import Upstream

from syncline.assembly.sources.reading import SANDBOX, GitSourceReader, renderers_with
from syncline.cluster.machines.processes.launching import sandbox_problem
from syncline.sources.errors import Problem, SourceError
from syncline.sources.git import tree as git_module
from syncline.sources.git.mirrors import Git, GitSettings
from syncline.sources.rendering import plugin_run
from syncline.sources.rendering.environment import RenderContext

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONTEXT = RenderContext("shop", "default", "prod")
FILE, FOLDER, LINK = "100644", "40000", "120000"
LEAF: list[Node] = [(FILE, "f", b"x")]


def read(repository: Path, cache: Path, path: str = "app", **block: Any) -> str:
    reader = GitSourceReader(cache, allow_local=True, renderers=renderers_with(None))
    source = {"repoURL": str(repository), "path": path, "targetRevision": "main", **block}
    return reader.read((source,), ("main",), NOW, CONTEXT).error


TREES: dict[str, list[Node]] = {
    "a link and a folder of one name": [(LINK, "a", b".."), (FOLDER, "a", LEAF)],
    "a file and a folder of one name": [(FILE, "a", b"x"), (FOLDER, "a", LEAF)],
    "two files of one name": [(FILE, "a", b"x"), (FILE, "a", b"y")],
    "the folder above": [(FOLDER, "..", LEAF)],
    "the folder above, deeper": [(FOLDER, "a", [(FOLDER, "..", [(FOLDER, "..", LEAF)])])],
    "the same folder": [(FOLDER, ".", LEAF)],
    "git's own folder": [(FOLDER, ".git", [(FILE, "config", b"[core]\n\tfsmonitor = touch /tmp/x\n")])],
    "git's own folder in other letters": [(FOLDER, "a", [(FOLDER, ".GiT", LEAF)])],
    "a file in git's place": [(FILE, ".git", b"gitdir: /etc\n")],
    "dots and strokes in one name": [(FILE, "a/../../f", b"x")],
    "a name from the root": [(FILE, "/etc/f", b"x")],
    "a name that ends in a stroke": [(FILE, "a//f", b"x")],
}


@pytest.mark.parametrize("tree", TREES)
def test_a_tree_that_no_checkout_holds_is_refused_whole(tree: str, tmp_path: Path) -> None:
    upstream = Crafted(tmp_path / "upstream")
    upstream.commit((FILE, "z.yaml", (MAP % "z").encode()), *TREES[tree])
    error = read(upstream.path, tmp_path / "cache", ".")
    assert "which git does not check out" in error or "git-pack-objects died" in error, error


@pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem())
def test_no_file_is_written_through_a_link_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``way`` lies inside by its letters, and two folders above the copy once ``a/b/c`` is followed."""
    upstream, temporary = Crafted(tmp_path / "upstream"), tmp_path / "temporary"
    temporary.mkdir()
    up: Node = (FOLDER, "a", [(FOLDER, "b", [(LINK, "c", b"../..")])])
    way: list[Node] = [(LINK, "way", b"a/b/c/../.."), (FOLDER, "way", [(FILE, "written", b"by a stranger")])]
    upstream.commit(up, (FOLDER, "app", LEAF), *way)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    tree = (
        Git(GitSettings(tmp_path / "cache", allow_local=True))
        .repository(str(upstream.path))
        .tree(
            subprocess.run(
                ["git", "-C", str(upstream.path), "rev-parse", "main"], capture_output=True, text=True, check=True
            ).stdout.strip(),
            "app",
        )
    )
    for trusting in (False, True):
        if trusting:  # also where a tree comes without that look
            monkeypatch.setattr(git_module, "checked", lambda entries, _label: entries)
        with pytest.raises(SourceError) as caught, plugin_run.PluginRunner(SANDBOX).checkout(tree, keep_modes=True):
            pass
        assert caught.value.problem in (Problem.REFUSED, Problem.INVALID)
        assert list(temporary.iterdir()) == []


@pytest.mark.skipif(importlib.util.find_spec("helm_python") is None, reason="syncline[helm]")
@pytest.mark.parametrize("enabled", [False, True])
def test_no_file_of_a_chart_is_written_beside_its_folder(
    enabled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from syncline.sources.kustomize.flags import BuildFlags
    from syncline.sources.rendering.renderer import render_opened

    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(git_module, "checked", lambda entries, _label: entries)
    upstream = Crafted(tmp_path / "upstream")
    out: Node = (FOLDER, "..", [(FOLDER, "..", [(FOLDER, "..", [(FILE, "written", b"x")])])])
    chart: list[Node] = [out, (FILE, "Chart.yaml", CHART.encode()), (FILE, "values.yaml", b"{}")]
    sha = upstream.commit(
        (FOLDER, "charts", [(FOLDER, "c", chart)]),
        (FILE, "kustomization.yaml", b"helmCharts: [{name: c}]\n"),
    )
    tree = Git(GitSettings(tmp_path / "cache", allow_local=True)).repository(str(upstream.path)).tree(sha)
    with pytest.raises(SourceError):
        render_opened({}, tree, sha, context=CONTEXT, kustomize=BuildFlags(helm=enabled))
    assert not (tmp_path / "written").exists()
    assert list(temporary.rglob("written")) == []


@pytest.mark.skipif(importlib.util.find_spec("helm_python") is None, reason="syncline[helm]")
@pytest.mark.parametrize("name", ["n" * 300, "a\nb", f"{'d' * 250}/" * 17 + "f"])
def test_a_name_that_no_disk_holds_is_one_sentence(name: str, tmp_path: Path) -> None:
    upstream = Crafted(tmp_path / "upstream")
    parts = name.split("/")
    inner: Node = (FILE, parts[-1], b"x")
    for part in parts[-2::-1]:
        inner = (FOLDER, part, [inner])
    template: Node = (FOLDER, "templates", [(FILE, "a.yaml", (MAP % "a").encode())])
    upstream.commit((FOLDER, "app", [(FILE, "Chart.yaml", CHART.encode()), inner, template]))
    error = read(upstream.path, tmp_path / "cache")
    assert error == "" if name == "a\nb" else "file name too long" in error
    assert len(error) < 1000


def test_a_tree_that_repeats_itself_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_module, "MAX_ENTRIES", 500)
    upstream = Crafted(tmp_path / "upstream")
    upstream.commit(*((FOLDER, f"d{n}", [(FILE, f"f{m}", b"x") for m in range(30)]) for n in range(20)))
    assert "more than 500 files" in read(upstream.path, tmp_path / "cache", ".", directory={"recurse": True})


STOLEN = '[submodule "s"]\n\tpath = s\n\turl = http://127.0.0.1:9/stolen\n[lfs]\n\turl = http://127.0.0.1:9/stolen\n'
CONFIGS = {
    "an include": "[include]\n\tpath = {secret}\n",
    "an include by folder": '[includeIf "gitdir:/"]\n\tpath = {secret}\n',
    "an include of what is no setting": "[include]\n\tpath = /etc/passwd\n",
    "a program": "[credential]\n\thelper = !touch {mark}\n[core]\n\tfsmonitor = touch {mark}\n\thooksPath = .\n",
    "another's address": '[url "file:///"]\n\tinsteadOf = https://\n',
}


@pytest.mark.parametrize("config", CONFIGS)
def test_files_of_a_commit_set_nothing_and_include_nothing(config: str, tmp_path: Path) -> None:
    secret, mark = tmp_path / "secret", tmp_path / "mark"
    secret.write_text(STOLEN)
    upstream = Crafted(tmp_path / "upstream")
    text = CONFIGS[config].replace("{secret}", str(secret)).replace("{mark}", str(mark)).encode()
    files: list[Node] = [(FILE, name, text) for name in (".gitmodules", ".lfsconfig")]
    app: list[Node] = [(FILE, "a.yaml", (MAP % "a").encode()), ("160000", "s", b"no commit")]
    sha = upstream.commit(*files, (FILE, ".gitattributes", b"* export-subst filter=x diff=x\n"), (FOLDER, "app", app))
    assert read(upstream.path, tmp_path / "cache") == ""
    found = Git(GitSettings(tmp_path / "cache", allow_local=True)).repository(str(upstream.path))
    for file in (".gitmodules", ".lfsconfig"):
        said = found.settings_at(sha, file, "--list")
        assert "stolen" not in said.output.decode() and "/etc/passwd" not in said.complaint
    assert not mark.exists()


def test_what_a_repository_says_of_its_own_objects_is_not_believed(tmp_path: Path) -> None:
    """Replacements and grafts that a mirror brought along would show another commit than the one that was signed."""
    upstream = Upstream(tmp_path / "upstream")
    first = upstream.commit({"app/a.yaml": MAP % "honest"})
    second = upstream.commit({"app/a.yaml": MAP % "other"})
    upstream.run("replace", first, second)
    upstream.run("update-ref", "refs/heads/main", first)
    reader = GitSourceReader(tmp_path / "cache", allow_local=True)
    source = {"repoURL": str(upstream.path), "path": "app", "targetRevision": "refs/replace/" + first}
    found = reader.read(({**source, "targetRevision": "main"},), ("main",), NOW, CONTEXT)
    assert [json.dumps(obj).count("honest") for obj in found.objects] == [1]
    reader.read((source,), (f"refs/replace/{first}",), NOW, CONTEXT)
    again = reader.read(({**source, "targetRevision": first},), (first,), NOW, CONTEXT)
    assert [json.dumps(obj).count("honest") for obj in again.objects] == [1]
