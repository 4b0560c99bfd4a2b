"""``syncline version``."""

from __future__ import annotations

import click

from syncline import __version__
from syncline.cli.frame.output import output_option, print_documents


@click.command()
@click.option("--client", is_flag=True, help="Taken for compatibility; no server is asked.")
@click.option("--short", is_flag=True, help="Taken for compatibility; it is short.")
@output_option("short", "json", "yaml")
def version(client: bool, short: bool, output: str | None) -> None:
    """Print the version.

    \b
    Example:  syncline version -o json
    """
    if output in ("json", "yaml"):
        print_documents({"client": {"syncline": __version__}}, output)
    else:
        print(f"syncline {__version__}")
