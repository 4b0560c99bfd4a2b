"""Plugins of the operator: who finds a folder its own, what a program is told, and where its power ends."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.sources.conftest import Upstream

from syncline.assembly.sources.reading import SANDBOX, GitSourceReader, renderers_with
from syncline.cluster.machines.processes.launching import sandbox_problem
from syncline.kube.objects import Obj
from syncline.sources.rendering.environment import RenderContext
from syncline.sources.rendering.plugin_run import PluginLimits, PluginRunner
from syncline.sources.rendering.plugins import PluginError, PluginRenderer, load_plugins
from syncline.sources.rendering.renderer import DEFAULT_RENDERERS

PROBLEM = sandbox_problem()
pytestmark = pytest.mark.skipif(bool(PROBLEM), reason=PROBLEM)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONTEXT = RenderContext("team_shop", "default", "prod", "v1.36.0", ("apps/v1", "v1"))
SHOW = """
import json, os, sys
names = sorted(n for n in os.environ if n.startswith(("ARGOCD_", "PARAM_", "KUBE_")))
obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shown"}}
obj["data"] = {n: os.environ[n] for n in names}
obj["data"]["files"] = " ".join(sorted(os.listdir(".")))
obj["data"]["here"] = os.getcwd()
print(json.dumps(obj))
"""


class Operator:
    """Somebody with a folder of declarations, and a reader that was started with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "plugins"
        self.folder.mkdir()
        self._cache = folder / "cache"

    def declares(self, name: str, generate: str, **spec: Any) -> None:
        """``generate`` is a shell script, or a Python program if it begins so."""
        command = ["python3" if generate.startswith("\nimport") else "sh", "-c", generate]
        manifest = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "ConfigManagementPlugin",
            "metadata": {"name": name},
            "spec": {"generate": {"command": command}, **spec},
        }
        (self.folder / f"{name}.yaml").write_text(json.dumps(manifest))

    def reader(self, limits: PluginLimits | None = None) -> GitSourceReader:
        renderers = renderers_with(self.folder)
        if limits is not None:
            runner = PluginRunner(SANDBOX, limits=limits)
            renderers = (PluginRenderer(load_plugins(self.folder), runner), *DEFAULT_RENDERERS)
        return GitSourceReader(self._cache, allow_local=True, renderers=renderers)


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path)


def read(reader: GitSourceReader, upstream: Upstream, path: str = "app", **plugin: Any) -> Any:
    source: Obj = {"repoURL": str(upstream.path), "path": path, "targetRevision": "main"}
    if plugin:
        source["plugin"] = plugin
    return reader.read((source,), ("main",), NOW, CONTEXT)


def test_a_program_sees_the_repository_and_what_it_is_told(operator: Operator, upstream: Upstream) -> None:
    operator.declares("show", SHOW)
    sha = upstream.commit({"app/a.txt": "a", "base/b.txt": "b"})
    found = read(
        operator.reader(),
        upstream,
        name="show",
        env=[{"name": "COLOR", "value": "red-$ARGOCD_APP_NAMESPACE"}],
        parameters=[
            {"name": "my-text", "string": "t"},
            {"name": "list", "array": ["x", "y"]},
            {"name": "map", "map": {"some.key": "v"}},
        ],
    )
    assert (found.error, found.source_types) == ("", ("Plugin",))
    data = found.objects[0]["data"]
    assert (
        data.items()
        >= {
            "ARGOCD_APP_NAME": "team_shop",
            "ARGOCD_APP_REVISION": sha,
            "ARGOCD_ENV_COLOR": "red-prod",
            "KUBE_VERSION": "v1.36.0",
            "KUBE_API_VERSIONS": "apps/v1,v1",
            "PARAM_MY_TEXT": "t",
            "PARAM_LIST_0": "x",
            "PARAM_LIST_1": "y",
            "PARAM_MAP_SOME_KEY": "v",
            "files": "a.txt",
            "here": "/repository/app",
        }.items()
    )
    assert json.loads(data["ARGOCD_APP_PARAMETERS"])[0] == {"name": "my-text", "string": "t"}


MAP = "printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: %s}\\n' "


@pytest.mark.parametrize(
    ("discover", "path", "claimed"),
    [
        ({"fileName": "thing.toml"}, "app", True),
        ({"fileName": "./*.toml"}, "app", True),
        ({"fileName": "thing.toml"}, "other", False),
        ({"find": {"glob": "**/deep.txt"}}, "app", True),
        ({"find": {"glob": "*.nothing"}}, "app", False),
        ({"find": {"command": ["sh", "-c", "ls thing.toml 2>/dev/null || true"]}}, "app", True),
        ({"find": {"command": ["sh", "-c", "ls thing.toml 2>/dev/null || true"]}}, "other", False),
        ({"find": {"command": ["sh", "-c", "echo found; exit 1"]}}, "app", False),
        ({}, "app", False),
    ],
)
def test_a_plugin_finds_its_folders_by_name_pattern_or_command(
    operator: Operator, upstream: Upstream, discover: Obj, path: str, claimed: bool
) -> None:
    plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"
    upstream.commit({"app/thing.toml": "", "app/x/deep.txt": "", "app/a.yaml": plain, "other/a.yaml": plain})
    operator.declares("thing", MAP + "made", discover=discover)
    found = read(operator.reader(), upstream, path)
    assert found.error == ""
    assert found.source_types == (("Plugin",) if claimed else ("Directory",))
    assert [obj["metadata"]["name"] for obj in found.objects] == ["made" if claimed else "plain"]


def test_a_named_plugin_must_be_there_and_must_want_the_folder(operator: Operator, upstream: Upstream) -> None:
    upstream.commit({"app/a.txt": ""})
    operator.declares("picky", MAP + "x", version="v1", discover={"fileName": "thing.toml"})
    operator.declares("any", MAP + "x")
    reader = operator.reader()
    for name in ("absent", "picky-v1", "picky"):
        error = read(reader, upstream, name=name).error
        assert f'could not find cmp-server plugin with name "{name}" supporting the given repository' in error
    assert read(reader, upstream, name="any").error == ""
    unnamed = read(reader, upstream, env=[{"name": "A", "value": "b"}])
    assert "could not find plugin supporting the given repository" in unnamed.error


def test_init_runs_first_in_the_same_copy(operator: Operator, upstream: Upstream) -> None:
    upstream.commit({"app/a.txt": ""})
    operator.declares("two", MAP + "$(cat made)", init={"command": ["sh", "-c"], "args": ["echo first > made"]})
    found = read(operator.reader(), upstream, name="two")
    assert [obj["metadata"]["name"] for obj in found.objects] == ["first"]
    assert not (upstream.path / "app" / "made").exists()


def test_modes_and_links_are_as_in_the_repository(operator: Operator, upstream: Upstream) -> None:
    upstream.commit({"app/run.sh": "#!/bin/sh\n" + MAP + "ran\n"})
    (upstream.path / "app" / "run.sh").chmod(0o755)
    os.symlink("run.sh", upstream.path / "app" / "way.sh")
    upstream.commit({})
    operator.declares("modes", "./way.sh", preserveFileMode=True)
    operator.declares("plain", "./way.sh")
    reader = operator.reader()
    assert read(reader, upstream, name="modes").error == ""
    assert "Permission denied" in read(reader, upstream, name="plain").error
    os.symlink("../../x", upstream.path / "app" / "out")
    upstream.commit({})
    assert "repository contains out-of-bounds symlinks. file: app/out" in read(reader, upstream, name="modes").error


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo complaint >&2; exit 3", "`sh` failed exit status 3: complaint"),
        ("echo not a manifest", "renders is no manifest"),
        ("sleep 60", "took longer than 3 seconds"),
        ("while :; do :; done", "plugin bad: generate: "),
        ("yes", "printed more than 1000000 bytes"),
        (f"{sys.executable.rpartition('/')[2]} -c 'bytearray(10**10)'", "failed exit status"),
        ("head -c 50000000 /dev/zero > big", "failed exit status"),
        ("cat /root/.ssh/id_rsa /etc/shadow /proc/1/environ; exit 4", "failed exit status 4"),
        ("python3 -c \"import socket; socket.create_connection(('127.0.0.1', 22), 2)\"", "Connection refused"),
        ("python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), 2)\"", "Network is unreachable"),
        ("touch /usr/x /repository/../x", "Read-only file system"),
    ],
)
def test_what_a_program_must_not_do_is_one_sentence(
    operator: Operator, upstream: Upstream, script: str, words: str
) -> None:
    upstream.commit({"app/a.txt": ""})
    operator.declares("bad", script)
    limits = PluginLimits(
        wall_s=3 if script == "sleep 60" else 300,
        cpu_s=2,
        output_bytes=1_000_000,
        file_bytes=1_000_000,
        memory_bytes=10**9,
        processes=64,
    )
    error = read(operator.reader(limits), upstream, name="bad").error
    assert words in error, error
    assert len(error) < 1500


def test_the_environment_of_the_controllers_stays_with_them(
    operator: Operator, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "c4n4ry")
    upstream.commit({"app/a.txt": ""})
    operator.declares("env", "env >&2; exit 1")
    error = read(operator.reader(), upstream, name="env").error
    assert "ARGOCD_APP_NAME=" in error
    assert "c4n4ry" not in error


def test_a_look_that_finds_nothing_new_starts_no_program(
    operator: Operator, upstream: Upstream, tmp_path: Path
) -> None:
    upstream.commit({"app/a.txt": ""})
    operator.declares(
        "once", MAP + "$(cat /proc/sys/kernel/random/uuid)", discover={"find": {"command": ["echo", "yes"]}}
    )
    reader = operator.reader()
    first, again = (read(reader, upstream).objects for _ in range(2))
    assert first == again
    upstream.commit({"README.md": "nobody knows what a program reads"})
    assert read(reader, upstream).objects != first


def test_without_a_folder_of_declarations_there_are_no_plugins(upstream: Upstream, tmp_path: Path) -> None:
    upstream.commit({"app/a.txt": ""})
    reader = GitSourceReader(tmp_path / "plain", allow_local=True)
    assert "which is not enabled here; start the controllers with --plugins" in read(reader, upstream, name="x").error


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: Pod\n", "kind is not ConfigManagementPlugin"),
        ("kind: ConfigManagementPlugin\nmetadata: {name: a}\n", "spec.generate.command is missing"),
        ("kind: ConfigManagementPlugin\nspec: {generate: {command: [a]}}\n", "metadata.name or spec is missing"),
        (
            "kind: ConfigManagementPlugin\nmetadata: {name: a}\nspec: {generate: {command: [a, 1]}}\n",
            "spec.generate: command and args are lists of texts",
        ),
        (
            "kind: ConfigManagementPlugin\nmetadata: {name: a}\nspec: {provideGitCreds: true}\n",
            "spec.provideGitCreds is not supported",
        ),
        ("a: [", "plugin "),
    ],
)
def test_a_declaration_that_cannot_be_used_is_named_at_the_start(operator: Operator, text: str, words: str) -> None:
    (operator.folder / "p.yaml").write_text(text)
    with pytest.raises(PluginError, match=words.replace(".", r"\.")):
        load_plugins(operator.folder)


def test_a_copy_is_bounded(operator: Operator, upstream: Upstream) -> None:
    upstream.commit({f"app/{number}": "" for number in range(12)})
    operator.declares("any", MAP + "x")
    few = replace(PluginLimits(), files=10)
    assert "a plugin may read 10 files" in read(operator.reader(few), upstream, name="any").error
