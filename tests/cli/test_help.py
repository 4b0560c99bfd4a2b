"""Every command says what it does and shows it, and what lists or gets also speaks JSON and YAML."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from syncline.cli.completion import HINTS
from syncline.cli.main import COMMANDS, cli, kubectl_plugin, main

OF_A_HUB = ("cluster accept", "cluster deny", "cluster detach", "cluster sets")
"""Verbs of our own in argocd's groups that read nothing of Argo CD."""
GROUPS = ("app", "appset", "cluster", "proj", "repo", "repocreds")
"""Those with the verbs of argocd."""
HEAVY = ("aiohttp", "rich", "cryptography", "syncline.assembly", "syncline.gitops", "syncline.kube")


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for below in command.list_commands(context):
        found = command.get_command(context, below)
        assert found is not None, f"{name} {below} is listed and cannot be loaded"
        yield from commands(found, f"{name} {below}")


def verbs() -> dict[str, click.Command]:
    context = click.Context(cli)
    found: dict[str, click.Command] = {}
    for group in GROUPS:
        command = cli.get_command(context, group)
        assert command is not None
        found |= dict(commands(command, group))
    return found


VERBS = verbs()


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_an_example_that_calls_it(name: str) -> None:
    text = VERBS[name].help or ""
    assert "Example:" in text and f"syncline {name}" in text, f"{name} has no example of itself in its help"


@pytest.mark.parametrize(
    "name", [name for name in VERBS if name.split()[-1] in ("list", "get", "history", "resources")]
)
def test_what_lists_or_gets_speaks_json_and_yaml(name: str) -> None:
    forms = next(param.type for param in VERBS[name].params if param.name == "output")
    assert isinstance(forms, click.Choice) and {"json", "yaml"} <= set(forms.choices)


@pytest.mark.parametrize("name", [name for name in VERBS if name not in OF_A_HUB])
def test_every_argocd_verb_reaches_a_cluster_in_the_same_way(name: str) -> None:
    options = {text for param in VERBS[name].params for text in param.opts}
    assert {"--kubeconfig", "--context", "--app-namespace", "-N"} <= options


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from syncline.cli.main import main; main(['--help']); main(['app', '--help']);"
    code += f"print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_usage_error_ends_with_2_and_an_unknown_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["app", "rollback"]) == 2
    assert main(["app", "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


@pytest.mark.parametrize("shell", HINTS)
def test_shells_get_their_completion(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "_SYNCLINE_COMPLETE" in capsys.readouterr().out


def test_the_kubectl_plugin_calls_itself_as_kubectl_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["kubectl-syncline", "app", "--help"])
    assert kubectl_plugin() == 0
    assert capsys.readouterr().out.startswith("Usage: kubectl syncline app")


def test_commands_are_listed_with_one_line_each() -> None:
    assert all(about.endswith(".") and len(about) < 80 for _, about in COMMANDS.values())
