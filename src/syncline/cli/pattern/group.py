"""The verbs of ``syncline pattern`` by name; each is imported when it is called."""

from __future__ import annotations

import click

from syncline.cli.frame.lazy import CONTEXT, LazyGroup

VERBS: dict[str, tuple[str, str]] = {
    "render": ("pattern.render:render_group", "Print the objects that values of a cluster group stand for."),
}


@click.command(cls=LazyGroup, table=VERBS, context_settings=CONTEXT)
def pattern() -> None:
    """Validated Patterns: values files that name operators, namespaces and applications."""
