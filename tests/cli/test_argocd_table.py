"""The table of argocd's commands and flags in docs/compatibility.md and the parsers say the same, both ways."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from syncline.cli.frame.failure import ARGOCD, GENERAL, USAGE
from syncline.cli.frame.refused import COMMANDS, EVERYWHERE, FLAGS, refused_command
from syncline.cli.main import cli, main

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
OF_ARGOCD = 169
"""Commands in argocd's own reference, groups included."""
OURS = {"appset diff", "cluster accept", "cluster deny", "cluster detach", "cluster sets"}
"""Commands of our own in its groups."""
IMPLICIT = {"-h", "--help", "--kubeconfig", "--context", "-N", "--app-namespace"}
EVERY = "every command"


def tables() -> list[list[list[str]]]:
    """The cells of each table of the section."""
    text = DOCUMENT.read_text(encoding="utf-8").split("### Verbs and flags of argocd\n")[1].split("\n## ")[0]
    found: list[list[list[str]]] = []
    for line in text.splitlines():
        if line.startswith("|--"):
            found.append([])
        elif line.startswith("| `"):
            found[-1].append([cell.strip() for cell in line.removeprefix("|").removesuffix("|").split(" | ")])
    return found


def named(cell: str) -> list[str]:
    return re.findall("`([^`]+)`", cell)


THERE, GONE, REFUSED = tables()
ROWS = {named(row[0])[0]: [set(named(cell)) for cell in row[1:]] for row in THERE}
MISSING = {path: row[1] for row in GONE for path in named(row[0])}


def command_of(path: str) -> click.Command | None:
    found: click.Command | None = cli
    for word in path.split():
        found = found.get_command(click.Context(found), word) if isinstance(found, click.Group) else None
    return found


def below(command: click.Command, path: str) -> list[str]:
    if not isinstance(command, click.Group):
        return [path]
    found = [] if not path else [path]
    for name in command.list_commands(click.Context(command)):
        one = command.get_command(click.Context(command), name)
        assert one is not None
        found += below(one, f"{path} {name}".strip()) if path or name in ARGOCD else []
    return found


def flags_of(command: click.Command) -> set[str]:
    options = [param for param in command.params if isinstance(param, click.Option)]
    return {text for one in options for text in (*one.opts, *(() if one.is_bool_flag else one.secondary_opts))}


def known(path: str) -> set[str]:
    """Flags that a command takes in a meaning of its own."""
    return flags_of(command_of(path) or cli)


def test_the_table_has_every_command_of_argocd_once() -> None:
    assert len(ROWS) + len(MISSING) == OF_ARGOCD + len(OURS) and set(ROWS) >= OURS and not set(ROWS) & set(MISSING)
    assert set(ROWS) == set(below(cli, "")), "commands of our own beside argocd's have a row, too"


@pytest.mark.parametrize("path", ROWS)
def test_a_row_names_the_flags_that_the_parser_takes(path: str) -> None:
    command = command_of(path)
    assert command is not None
    there, refused, ours = ROWS[path]
    assert flags_of(command) - IMPLICIT == (there | ours) - IMPLICIT
    assert there & IMPLICIT <= flags_of(command)
    assert not refused & flags_of(command)
    assert refused == set(FLAGS.get(path, {})), "what is refused of this command alone"


def test_the_table_says_what_commands_that_are_not_there_say() -> None:
    assert set(COMMANDS) <= set(MISSING)
    for path, sentence in MISSING.items():
        assert refused_command(path.split()).endswith(f" is not here: {sentence}")


def test_the_table_says_what_flags_that_are_not_there_say() -> None:
    written = {(flag, where, row[2]) for row in REFUSED for flag in named(row[0]) for where in row[1].split(", ")}
    known = {(flag, EVERY, text) for flag, text in EVERYWHERE.items()}
    known |= {(flag, f"`{path}`", text) for path, flags in FLAGS.items() for flag, text in flags.items()}
    assert written == known


@pytest.mark.parametrize("path", MISSING)
def test_a_command_that_is_not_there_says_what_to_use_instead(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path.split(), "NAME", "--output", "json"]) == GENERAL
    said = capsys.readouterr()
    assert said.err.endswith(f"{MISSING[path]}\n") and said.err.startswith("error: `") and said.out == ""
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("path", "flag"),
    [
        *((path, flag) for path, flags in FLAGS.items() for flag in flags),
        *((path, flag) for path in ("", "app", "app list") for flag in EVERYWHERE if flag not in known(path)),
    ],
)
def test_a_flag_that_is_not_there_says_what_to_use_instead(
    path: str, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = FLAGS.get(path, {}).get(flag) or EVERYWHERE[flag]
    for words in ([flag, "value"], [f"{flag}=value"] if flag.startswith("--") else [flag]):
        assert main([*path.split(), *words]) == GENERAL
        assert capsys.readouterr().err == f"error: {flag} of argocd is not here: {sentence}\n"


def test_what_argocd_has_not_either_stays_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["app", "list", "--nosuch"]) == USAGE
    assert main(["up", "--server", "x"]) == USAGE, "no command of argocd"
    assert main(["app", "fly"]) == USAGE
    assert "is not here" not in capsys.readouterr().err
