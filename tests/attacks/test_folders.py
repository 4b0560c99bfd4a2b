"""Folders of this machine, kustomizations, plugins and large files: what they name beyond their repository."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.attacks.crafted import MAP
from tests.sources.conftest import Upstream

from syncline.assembly.sources.reading import SANDBOX, GitSourceReader
from syncline.cli.access.folder import DiskTree
from syncline.cluster.machines.processes.launching import sandbox_problem
from syncline.sources.errors import SourceError
from syncline.sources.git.mirrors import Git, GitSettings
from syncline.sources.git.process import Bounds, run_git
from syncline.sources.kustomize.flags import BuildFlags
from syncline.sources.remote.credentials import RepositoryAccess
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.rendering.plugin_run import PluginLimits, PluginRunner
from syncline.sources.rendering.plugins import Plugin, PluginRenderer
from syncline.sources.rendering.renderer import render_opened

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONTEXT = RenderContext("shop", "default", "prod")

# -- folders of this machine ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "link to a device", "link to itself", "name of two lines"])
def test_a_folder_that_is_planned_waits_for_no_pipe(kind: str, tmp_path: Path) -> None:
    app = tmp_path / "app"
    app.mkdir()
    (app / "a.yaml").write_text(MAP % "a")
    names = {"pipe": "p.yaml", "link to itself": "l.yaml", "name of two lines": "a\nb.yaml"}
    place = app / names.get(kind, "l.yaml")
    if "pipe" in kind:
        os.mkfifo(app / "p.yaml")
    if kind.startswith("link"):
        place.symlink_to({"link to a pipe": "p.yaml", "link to a device": "/dev/zero"}.get(kind, "l.yaml"))
    if kind == "name of two lines":
        place.write_text(MAP % "b")
    try:
        found = render_opened({}, DiskTree(tmp_path, "app"), "local", context=CONTEXT).manifests
        assert [one["metadata"]["name"] for one in found] == (["b", "a"] if "\n" in place.name else ["a"])
    except SourceError as error:
        assert "link" in str(error) and kind.startswith("link")


# -- kustomizations -------------------------------------------------------------------------------------------------

OUT = "../../../../../../etc/passwd"
BUILDS = {
    "an openapi of the machine": {"openapi": {"path": "/etc/passwd"}},
    "an openapi above": {"openapi": {"path": OUT}},
    "a configuration above": {"configurations": [OUT]},
    "a CRD above": {"crds": [OUT]},
    "a component above": {"components": ["../../../.."]},
    "a replacement above": {"replacements": [{"path": OUT}]},
    "a patch above": {"patches": [{"path": OUT}]},
    "a transformer above": {"transformers": [OUT]},
    "a validator above": {"validators": [OUT]},
    "an env above": {"configMapGenerator": [{"name": "a", "envs": [OUT]}]},
    "a secret above": {"secretGenerator": [{"name": "a", "files": [f"x={OUT}"]}]},
    "charts above": {"helmGlobals": {"chartHome": "../../../.."}, "helmCharts": [{"name": "etc"}]},
    "charts of the machine": {"helmGlobals": {"chartHome": "/etc"}, "helmCharts": [{"name": "ssl"}]},
    "a values file above": {"helmCharts": [{"name": "c", "valuesFile": OUT}]},
    "more values above": {"helmCharts": [{"name": "c", "additionalValuesFiles": [OUT]}]},
    "a chart of another folder": {"helmCharts": [{"name": "../../../../etc"}]},
    "a program": {"generators": ["exec.yaml"]},
    "a container": {"transformers": ["container.yaml"]},
    "a helper": {"resources": ["ext::sh -c id"]},
    "an option": {"resources": ["--upload-pack=id"]},
    "a file by URL": {"resources": ["file:///etc/passwd"]},
    "a repository of the machine": {"resources": ["git::file:///etc"]},
}
FUNCTION = {
    "apiVersion": "example.com/v1",
    "kind": "F",
    "metadata": {"name": "f", "annotations": {"config.kubernetes.io/function": ""}},
}


def function(how: dict[str, Any]) -> str:
    text = json.dumps(how)
    return json.dumps({**FUNCTION, "metadata": {"name": "f", "annotations": {"config.kubernetes.io/function": text}}})


@pytest.mark.parametrize("helm", [False, True])
@pytest.mark.parametrize("build", BUILDS)
def test_a_kustomization_names_nothing_beyond_its_repository(build: str, helm: bool, tmp_path: Path) -> None:
    upstream = Upstream(tmp_path / "upstream")
    sha = upstream.commit(
        {
            "app/kustomization.yaml": json.dumps({"resources": ["a.yaml"], **BUILDS[build]}),
            "app/a.yaml": MAP % "a",
            "app/exec.yaml": function({"exec": {"path": "/bin/id"}}),
            "app/container.yaml": function({"container": {"image": "x", "mounts": [{"type": "bind", "src": "/"}]}}),
            "app/charts/c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n",
            "app/charts/c/values.yaml": "{}",
        }
    )
    tree = Git(GitSettings(tmp_path / "cache", allow_local=True)).repository(str(upstream.path)).tree(sha, "app")
    with pytest.raises(SourceError) as caught:
        render_opened({}, tree, sha, context=CONTEXT, kustomize=BuildFlags(helm=helm, execs=True))
    assert "root:" not in str(caught.value) and "uid=" not in str(caught.value)


# -- plugins --------------------------------------------------------------------------------------------------------

PROBES = {
    "files of the user": "cat /root/.* /home/*/.* 2>/dev/null | head -c 100",
    "the copy of another": "ls -d /tmp/syncline-* 2>/dev/null",
    "the mirrors": "find / -maxdepth 4 -name '*.git' -not -path '/proc/*' 2>/dev/null | head -n 1",
    "the processes of the machine": "ls -d /proc/[0-9]*/ | wc -l | awk '$1 > 40 {print}'",
    "the environment of the controllers": "env | grep -E 'CANARY|KUBE_TOKEN|PYTHON'",
    "git's own folder": "ls -d .git .git/hooks 2>/dev/null",
    "the network": "(echo x > /dev/tcp/127.0.0.1/22) 2>/dev/null && echo open",
    "a device": "ls /dev/sd* /dev/vd* /dev/mem /dev/kmsg 2>/dev/null",
    "a place that stays": "for d in /usr /etc /bin /lib; do touch $d/left 2>/dev/null && echo $d/left; done",
}


@pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem())
@pytest.mark.parametrize("probe", PROBES)
def test_a_plugin_that_runs_a_strangers_script_shows_nothing(
    probe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", "stolen")
    upstream = Upstream(tmp_path / "upstream")
    sha = upstream.commit({"run.sh": f"found=$({PROBES[probe]}); echo \"$found\" | tr -d '\\n'\n"})
    tree = Git(GitSettings(tmp_path / "cache", allow_local=True)).repository(str(upstream.path)).tree(sha)
    runner = PluginRunner(SANDBOX)
    with runner.checkout(tree, keep_modes=False) as place:
        assert runner.run(place, ["bash", "run.sh"], {}, "plugin") == b""


@pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem())
def test_what_a_plugin_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    upstream = Upstream(tmp_path / "upstream")
    sha = upstream.commit({"a": "x"})
    tree = Git(GitSettings(tmp_path / "cache", allow_local=True)).repository(str(upstream.path)).tree(sha)
    runner = PluginRunner(SANDBOX, limits=PluginLimits(wall_s=60, output_bytes=10_000))
    mark = f"syncline-left-{tmp_path.name}"
    script = f"setsid nohup bash -c 'exec -a {mark} sleep 300' >/dev/null 2>&1 & ln -s /etc out; echo done"
    with runner.checkout(tree, keep_modes=False) as place:
        assert runner.run(place, ["bash", "-c", script], {}, "plugin") == b"done\n"
        with pytest.raises(SourceError, match="printed more than 10000 bytes"):
            runner.run(place, ["bash", "-c", "yes"], {}, "plugin")
    assert not place.root.exists() and Path("/etc").exists()
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if _readable(path)]
    assert not [line for line in lines if line.startswith(mark.encode())]


def _readable(path: Path) -> bool:
    try:
        return bool(path.read_bytes())
    except OSError:
        return False


VARIABLES = [{"name": "A=B", "value": "x"}, {"name": "A\0B", "value": "x"}, {"name": "A", "value": "x" * 300_000}]


@pytest.mark.skipif(bool(sandbox_problem()), reason=sandbox_problem())
@pytest.mark.parametrize("variable", VARIABLES, ids=["sign", "NUL", "long"])
def test_a_variable_that_no_program_can_have_is_one_sentence_or_none(variable: dict[str, str], tmp_path: Path) -> None:
    upstream = Upstream(tmp_path / "upstream")
    sha = upstream.commit({"a": "x"})
    tree = Git(GitSettings(tmp_path / "cache", allow_local=True)).repository(str(upstream.path)).tree(sha)
    plugin = Plugin("p", ("sh", "-c", "env | grep -E '^(LD_|PATH=x|A=)'; echo '{}' >/dev/null"))
    source = {"plugin": {"name": "p", "env": [variable]}}
    try:
        found = render_opened(
            source, tree, sha, context=CONTEXT, renderers=(PluginRenderer((plugin,), PluginRunner(SANDBOX)),)
        )
        assert found.manifests == ()
    except SourceError as error:
        assert len(str(error)) < 1500 and "Traceback" not in str(error)


# -- large files ----------------------------------------------------------------------------------------------------


def test_a_large_file_of_one_repository_is_none_of_another(tmp_path: Path) -> None:
    """Who knows its hash would read what another team's credentials have brought."""
    content = b"of the other team"
    oid = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"
    git = Git(GitSettings(tmp_path / "cache", allow_local=True))
    found = []
    for name in ("theirs", "mine"):
        upstream = Upstream(tmp_path / name)
        sha = upstream.commit({"a": pointer})
        if name == "theirs":
            place = upstream.path / ".git/lfs/objects" / oid[:2] / oid[2:4]
            place.mkdir(parents=True)
            (place / oid).write_bytes(content)
        repository = git.repository(str(upstream.path))
        repository.access = RepositoryAccess(str(upstream.path), lfs=True)
        try:
            found.append(repository.tree(sha).read(repository.tree(sha).entries)["a"])
        except SourceError as error:
            assert "is not there" in str(error)
    assert found == [content]


# -- deltas ---------------------------------------------------------------------------------------------------------


def test_no_git_takes_all_memory_of_the_machine(tmp_path: Path) -> None:
    """A chain of deltas, a commit of gigabytes: the limit comes at once, but nobody can say when that is."""
    assert 0 < Bounds(1).memory_bytes <= 4 * 1024**3
    look = 'alias.look=!until grep -q "^Max data size *123456789 " /proc/$PPID/limits; do :; done; echo bounded'
    answer = run_git(["-c", look, "look"], bounds=Bounds(120, memory_bytes=123_456_789), label="x")
    assert answer.output == b"bounded\n"


def test_the_reader_says_one_sentence_for_all_of_it(tmp_path: Path) -> None:
    upstream = Upstream(tmp_path / "upstream")
    upstream.commit({"app/a.yaml": MAP % "a"})
    reader = GitSourceReader(tmp_path / "cache", allow_local=True)
    source = {"repoURL": str(upstream.path), "path": "app", "targetRevision": "9" * 100_000}
    error = reader.read((source,), ("9" * 100_000,), NOW, CONTEXT).error
    assert "unable to resolve" in error
