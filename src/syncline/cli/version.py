"""``syncline version``."""

from __future__ import annotations

import click

from syncline import __version__


@click.command()
def version() -> None:
    """Print the version."""
    print(f"syncline {__version__}")
