"""The verbs of ``syncline appset`` by name; each is imported when it is called."""

from __future__ import annotations

import click

from syncline.cli.frame.lazy import CONTEXT, LazyGroup

VERBS: dict[str, tuple[str, str]] = {
    "create": ("appset.create:create", "Create ApplicationSets from files or URLs."),
    "delete": ("appset.delete:delete", "Delete ApplicationSets, and their Applications with them."),
    "diff": ("appset.diff:diff", "Show what files would change in each Application."),
    "generate": ("appset.generate:generate", "Print the Applications that files make; store nothing."),
    "get": ("appset.show:get", "Show one ApplicationSet and the Applications that it makes."),
    "list": ("appset.show:list_sets", "List ApplicationSets."),
}


@click.command(cls=LazyGroup, table=VERBS, context_settings=CONTEXT)
def appset() -> None:
    """Manage ApplicationSets, with the verbs and flags of argocd.

    \b
    Example:  syncline appset create fleet.yaml
              syncline plan appset/fleet && syncline explain appset/fleet
    """
