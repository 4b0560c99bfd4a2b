"""What messages tell people to type exists: every `syncline …` in a text of the code is a command with its flags."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from syncline.cli.main import cli

SRC = Path(__file__).resolve().parents[2] / "src" / "syncline"
HOLE = "\N{WHITE SQUARE}"
"""A value that is put in later."""
DOCUMENTS = [*sorted((SRC.parents[1] / "docs").glob("*.md")), SRC.parents[1] / "README.md"]


def texts(tree: ast.AST) -> Iterator[str]:
    """Texts that are printed: not those that document a module, a class or a function."""
    nodes = list(ast.walk(tree))
    documents = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else HOLE for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents | parts:
            yield node.value


def remedies() -> dict[str, str]:
    """Command line → file."""
    found: dict[str, str] = {}
    for file in sorted(SRC.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if "`syncline " in text:
            for one in texts(ast.parse(text)):
                found |= dict.fromkeys(re.findall("`syncline ([^`]+)`", one), file.relative_to(SRC).as_posix())
    for file in DOCUMENTS:
        found |= dict.fromkeys(re.findall("`syncline ([^`\n]+)`", file.read_text(encoding="utf-8")), file.name)
    return found


def problem_of(line: str) -> str:
    """Why ``syncline LINE`` cannot be typed; empty where it can."""
    command: click.Command = cli
    for word in line.replace(HOLE, " \N{WHITE SQUARE} ").split():
        word = word.strip("…,;:.()[]'\"")
        if isinstance(command, click.Group) and re.fullmatch("[a-z][a-z-]+", word):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return f"{command.name} has no command {word}"
            command = found
        elif not any(isinstance(param, click.Option) for param in command.params):
            return ""  # it reads its own arguments
        elif re.fullmatch("--?[a-zA-Z][a-z-]*(=.*)?", word):
            flag = word.partition("=")[0]
            options = {text for one in command.params for text in (*one.opts, *one.secondary_opts)} | {"-h", "--help"}
            if flag not in options:
                return f"{command.name} has no flag {flag}"
    return ""


REMEDIES = remedies()


@pytest.mark.parametrize("line", sorted(REMEDIES))
def test_what_a_message_tells_to_type_exists(line: str) -> None:
    assert problem_of(line.split("|")[0]) == "", REMEDIES[line]


def test_a_command_that_is_not_there_is_found() -> None:
    assert problem_of(f"app set {HOLE} --project OTHER") == ""
    assert problem_of("app fly NAME") == "app has no command fly"
    assert problem_of("app set NAME --nosuch=x") == "set has no flag --nosuch"
    assert len(REMEDIES) > 50
