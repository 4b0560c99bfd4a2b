"""The options of ``syncline up`` for operators: catalogues, and what installed operators do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from syncline.cli.frame.failure import USAGE, CommandFailed

if TYPE_CHECKING:
    from syncline.assembly.roles import Role


class OperatorOptions(TypedDict):
    """The values of :func:`operator_options`."""

    operators: bool
    catalogs: tuple[str, ...]
    behaviours: Path | None


def operator_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--operators``, ``--catalog`` and ``--operator-behaviours``."""
    folder = click.Path(file_okay=False, exists=True, path_type=Path)
    own = "Operators: a folder of YAML files that say what installed operators do, before those that come along."
    command = click.option("--operator-behaviours", "behaviours", type=folder, default=None, help=own)(command)
    named = "Operators: a folder of file-based catalogues, for the CatalogSource NAME (or NAMESPACE/NAME, or an image)."
    command = click.option("--catalog", "catalogs", multiple=True, metavar="NAME=FOLDER", help=named)(command)
    does = "Do what the Operator Lifecycle Manager does: Subscriptions bring operators from --catalog folders."
    return click.option("--operators", is_flag=True, help=does)(command)


def chosen_role(given: OperatorOptions) -> Role | None:
    """Return the role that the options ask for; None: no operators. Raises CommandFailed."""
    if not given["operators"]:
        if given["catalogs"] or given["behaviours"] is not None:
            raise CommandFailed("--catalog and --operator-behaviours are for operators; add --operators", USAGE)
        return None
    from syncline.assembly.operators.folders import FolderCatalogs, FolderError, parse_catalogs, read_behaviours
    from syncline.assembly.operators.role import folder_role

    try:
        catalogs = FolderCatalogs.read(parse_catalogs(given["catalogs"]))
        return folder_role(catalogs, read_behaviours(given["behaviours"]))
    except FolderError as error:
        raise CommandFailed(f"--operators: {error}", USAGE) from error
