"""Command groups that import a command when it is called, so that ``--help`` and short commands start fast."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Mapping
from typing import Any

import click

from syncline.cli.frame.arguments import did_you_mean, go_booleans
from syncline.cli.frame.failure import GENERAL, CommandFailed
from syncline.cli.frame.terminal import clean_output

CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


def command_words(ctx: click.Context) -> list[str]:
    """Return the words of a command, without the program's name."""
    words: list[str] = []
    at: click.Context | None = ctx
    while at is not None and at.parent is not None:
        words.append(at.info_name or "")
        at = at.parent
    return words[::-1]


def refuse_command(words: list[str]) -> None:
    """Raise CommandFailed if argocd has this command and Syncline does not."""
    from syncline.cli.frame.refused import refused_command

    sentence = refused_command(words)
    if sentence:
        raise CommandFailed(sentence, GENERAL)


class Group(click.Group):
    """Accepts Go's booleans for its commands, and suggests similar commands for a wrong word."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        known = self.list_commands(ctx)
        if word not in known and not word.startswith("-") and not ctx.resilient_parsing:
            refuse_command([*command_words(ctx), *args])
            ctx.fail(f"No such command {word[:256]!r}.{did_you_mean(word, known)}")
        name, command, rest = super().resolve_command(ctx, args)
        if ctx.resilient_parsing and command is not None and name is not None:
            from syncline.cli.frame.completing import complete_names

            complete_names([*command_words(ctx), name], command)
        return name, command, rest if command is None else go_booleans(command, rest)


class LazyGroup(Group):
    """A group with a table of commands: name → (``module:attribute`` below ``syncline.cli``, help line)."""

    def __init__(self, *arguments: Any, table: Mapping[str, tuple[str, str]], **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._table = table

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Run a command with cleaned output."""
        with clean_output():
            return super().main(*arguments, **settings)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._table.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry[0].partition(":")
        gc.disable()  # modules stay loaded: searching them for garbage takes a tenth of the time
        try:
            command: click.Command = getattr(importlib.import_module(f"syncline.cli.{module}"), attribute)
        finally:
            gc.freeze()
            gc.enable()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._table[name][1]) for name in self.list_commands(ctx)])
