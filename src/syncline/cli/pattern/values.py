"""Values files of a cluster group, as ``syncline pattern`` takes them: options, reading, rendering."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.clustergroup.defaults import layered
from syncline.clustergroup.errors import RenderFailed, ValuesRefused
from syncline.clustergroup.render import render, values_of
from syncline.kube.objects import Obj
from syncline.sources.errors import SourceError
from syncline.sources.helm.values import parameters_into, read_values

MAX_BYTES: Final = 4 * 1024 * 1024
"""Size limit of one values file."""


def values_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``-f``, ``--set`` and ``--set-string``."""
    text = click.option("--set-string", "texts", multiple=True, metavar="NAME=VALUE", help="A value that is a text.")
    one = click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="A value, as `helm --set` reads it.")
    file = click.option(
        "-f",
        "--values",
        "files",
        multiple=True,
        required=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Values file; repeatable, later ones override.",
    )
    return file(one(text(command)))


def read_file(path: Path) -> dict[str, Any]:
    """Return the values of a file. Raises CommandFailed, SourceError."""
    if path.stat().st_size > MAX_BYTES:
        raise CommandFailed(f"{path} is larger than {MAX_BYTES} bytes", USAGE)
    return read_values(path.read_bytes(), str(path))


def pair(text: str) -> tuple[str, str]:
    """Split ``NAME=VALUE``. Raises CommandFailed."""
    name, sign, value = text.partition("=")
    if not sign:
        raise CommandFailed(f"--set {text}: expected NAME=VALUE", USAGE)
    return name, value


def merged(files: tuple[Path, ...], given: tuple[str, ...], texts: tuple[str, ...]) -> tuple[dict[str, Any], list[str]]:
    """Return the values that files and parameters give, and warnings. Raises CommandFailed, SourceError."""
    values = layered(read_file(path) for path in files)
    pairs = [*((one, False) for one in given), *((one, True) for one in texts)]
    warnings = parameters_into(values, [(*pair(one), force) for one, force in pairs], ())
    return values, warnings


def rendered(files: tuple[Path, ...], given: tuple[str, ...], texts: tuple[str, ...]) -> list[Obj]:
    """Return the objects of a cluster group. Raises CommandFailed."""
    try:
        values, warnings = merged(files, given, texts)
        objects = render(values_of([values]))
    except (SourceError, RenderFailed) as error:
        raise CommandFailed(str(error)) from None
    except ValuesRefused as refused:
        raise refusal(refused) from None
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    return objects


def refusal(refused: ValuesRefused) -> CommandFailed:
    lines = "\n".join(f"  {one}" for one in refused.violations)
    return CommandFailed(f"the values are not those of a cluster group:\n{lines}")
