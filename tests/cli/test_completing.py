"""Shells complete names of what the cluster has, within a bounded time and without a word where they cannot."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from syncline.cli.frame.completing import KINDS, Names, complete_names, in_time
from syncline.cli.main import COMMANDS, cli


def offered(*words: str) -> list[str]:
    """What a shell is told after these words; the last one is being written."""
    found = ShellComplete(cli, {}, "syncline", "_X").get_completions(list(words[:-1]), words[-1])
    return [one.value for one in found]


def test_every_group_of_the_table_is_a_command_and_names_its_parameters() -> None:
    assert set(KINDS) <= set(COMMANDS)
    for group, arguments in KINDS.items():
        command = cli.get_command(click.Context(cli), group)
        assert command is not None
        context = click.Context(command)
        below = (
            [command]
            if not isinstance(command, click.Group)
            else [one for name in command.list_commands(context) if (one := command.get_command(context, name))]
        )
        named = {param.name for one in below for param in one.params if isinstance(param, click.Argument)}
        assert named & set(arguments), group


def test_contexts_come_from_the_kubeconfig_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "config"
    file.write_text('{"contexts": [{"name": "prod", "context": {}}, {"name": "test", "context": {}}]}')
    monkeypatch.setenv("KUBECONFIG", str(file))
    assert offered("app", "list", "--context", "") == ["prod", "test"]
    assert offered("cluster", "add", "p") == ["prod"]
    assert offered("app", "get", "") == [], "there is no cluster, and nothing is said"


def test_a_new_name_is_not_completed() -> None:
    command = click.Command("create", params=[click.Argument(["name"])])
    complete_names(["app", "create"], command)
    assert not isinstance(command.params[0].type, Names)
    complete_names(["app", "get"], command)
    assert isinstance(command.params[0].type, Names)


def test_what_takes_too_long_or_fails_completes_nothing() -> None:
    never = threading.Event()

    def hang() -> list[str]:
        never.wait()
        return ["late"]

    assert in_time(hang, 0.01) == []
    never.set()
    assert in_time(lambda: list(Path("/nosuch").read_text()), 60) == []
    assert in_time(lambda: ["a"], 60) == ["a"]


def test_nothing_of_it_is_imported_before_a_shell_asks() -> None:
    code = "import sys; from syncline.cli.main import main; main(['--help']); main(['app', 'list', '--help'])\n"
    code += "print([name for name in sys.modules if name in ('syncline.cli.frame.completing', "
    code += "'syncline.cli.frame.refused')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
