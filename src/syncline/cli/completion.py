"""``syncline completion``: prints a shell's completion script for commands and flags."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from syncline.cli.frame.failure import USAGE, CommandFailed

HINTS = {
    "bash": "source <(syncline completion bash)",
    "zsh": "source <(syncline completion zsh)",
    "fish": "syncline completion fish | source",
}


@click.command()
@click.argument("shell", type=click.Choice(list(HINTS)))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    Example:  source <(syncline completion bash)          # in ~/.bashrc; zsh the same
              syncline completion fish | source           # in ~/.config/fish/config.fish
    """
    from syncline.cli.main import cli

    found = get_completion_class(shell)
    if found is None:
        raise CommandFailed(f"there is no completion for {shell}; choose one of {', '.join(HINTS)}", USAGE)
    print(found(cli, {}, "syncline", "_SYNCLINE_COMPLETE").source())
