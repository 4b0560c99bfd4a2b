"""Command lines written for argocd: Go's booleans everywhere, words that are near, plugins, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from syncline.cli.frame.arguments import did_you_mean, go_booleans
from syncline.cli.frame.failure import BLOCKED, FAILED, LIKE_ARGOCD, USAGE, CommandFailed, exit_code
from syncline.cli.frame.lazy import Group
from syncline.cli.main import cli, main, plugin


def commands(command: click.Command, name: str = "syncline") -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for below in command.list_commands(click.Context(command)):
            found = command.get_command(click.Context(command), below)
            assert found is not None
            yield from commands(found, f"{name} {below}")


ALL = dict(commands(cli))
SWITCHES = [
    (name, param)
    for name, command in ALL.items()
    for param in command.params
    if isinstance(param, click.Option) and param.is_bool_flag and param.name not in ("help", "version")
]


@pytest.mark.parametrize("name", [name for name, one in ALL.items() if isinstance(one, click.Group)])
def test_every_group_reads_gos_booleans(name: str) -> None:
    assert isinstance(ALL[name], Group)


def parsed(command: click.Command, option: click.Option, *arguments: str) -> object:
    """The value after click read what :func:`go_booleans` made."""
    alone = click.Command("x", params=[option])
    return alone.make_context("x", go_booleans(command, list(arguments))).params[str(option.name)]


@pytest.mark.parametrize(("name", "option"), SWITCHES, ids=lambda part: getattr(part, "name", part))
def test_every_switch_takes_true_and_false_and_the_last_one_counts(name: str, option: click.Option) -> None:
    command, flag = ALL[name], option.opts[0]
    assert parsed(command, option, f"{flag}=true") is True
    assert parsed(command, option, f"{flag}=false") is False
    assert parsed(command, option, flag, f"{flag}=F") is False
    assert parsed(command, option, f"{flag}=0", f"{flag}=T") is True
    for no in option.secondary_opts:
        assert parsed(command, option, f"{no}=false") is True


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["shop", "--cascade=false", "--yes"], ["shop", "--no-cascade", "--yes"]),
        (["--selector", "--cascade=false"], ["--selector", "--cascade=false"]),
        (["--selector=a", "-y=true"], ["--selector=a", "--yes"]),
        (["--", "--cascade=false"], ["--", "--cascade=false"]),
        (["--unknown=true"], ["--unknown=true"]),
    ],
)
def test_only_switches_are_rewritten(given: list[str], read: list[str]) -> None:
    found = go_booleans(ALL["syncline app delete"], given)
    assert [word.replace("-y", "--yes") if word == "-y" else word for word in found] == read


def test_what_is_no_boolean_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["app", "delete", "shop", "--cascade=maybe"]) == USAGE
    assert "--cascade=maybe: write --cascade=true or --cascade=false" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "meant"),
    [(["ap"], "'app'"), (["app", "snyc"], "'sync'"), (["proj", "windows", "ad"], "'add'"), (["node", "lst"], "'list'")],
)
def test_a_word_that_is_near_is_named(words: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == USAGE
    assert f"No such command {words[-1]!r}. Did you mean {meant}" in capsys.readouterr().err


def test_a_flag_that_is_near_is_named_and_a_far_word_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["app", "sync", "shop", "--prun"]) == USAGE
    assert "Did you mean" in (said := capsys.readouterr().err) and "--prune" in said
    assert did_you_mean("zzz", ["shop"]) == ""


@pytest.mark.parametrize(
    ("group", "code", "ends"),
    [
        ("app", None, 20),
        ("repocreds", None, 20),
        ("cluster", BLOCKED, 20),
        ("app", FAILED, 1),
        ("proj", USAGE, 2),
        ("plan", None, 1),
        ("plan", BLOCKED, 3),
    ],
)
def test_groups_of_argocd_end_with_its_codes_and_others_with_ours(group: str, code: int | None, ends: int) -> None:
    assert exit_code(CommandFailed("no", code), group) == ends
    assert group in (*LIKE_ARGOCD, "plan")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """``syncline-greet``, and one in a folder below."""
    for place in (tmp_path / "bin", tmp_path / "here"):
        place.mkdir()
        (place / "syncline-greet").write_text(f'#!/bin/sh\necho "{place.name}: $*"\nexit 7\n')
        (place / "syncline-greet").chmod(0o755)
    return tmp_path


def test_a_program_of_the_path_is_a_command(program: Path) -> None:
    environment = os.environ | {"PATH": f"{program / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    words = [sys.executable, "-c", "from syncline.cli.main import main; main()", "greet", "you", "--flag=true"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "bin: you --flag=true\n")


@pytest.mark.parametrize("name", ["", "-greet", "../greet", "x/../greet", "gr\0eet", "nosuch"])
def test_names_that_are_no_plugin(name: str, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program / "bin"))
    assert plugin(name) is None
    assert plugin("greet") == str(program / "bin" / "syncline-greet")


def test_the_working_directory_is_no_place_for_plugins(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(program / "here")
    for path in ("", ".", os.pathsep, f".{os.pathsep}"):
        monkeypatch.setenv("PATH", path)
        assert plugin("greet") is None
