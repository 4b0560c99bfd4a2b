"""The verbs of ``syncline pattern`` by name; each is imported when it is called."""

from __future__ import annotations

import click

from syncline.cli.frame.lazy import CONTEXT, LazyGroup

VERBS: dict[str, tuple[str, str]] = {
    "render": ("pattern.render:render_group", "Print the objects that values of a cluster group stand for."),
    "plan": ("pattern.plan:plan_group", "Print the waves of a cluster group, and what holds each of them."),
    "rehearse": ("pattern.rehearse:rehearse", "Install a pattern in virtual time, and show what happened."),
    "races": ("pattern.races:races_of_group", "Print pairs of operators whose outcome depends on their order."),
    "install": ("pattern.install:install", "Install a pattern: make its Pattern object, and its Secrets first."),
    "uninstall": ("pattern.install:uninstall", "Delete a Pattern; with --prune what it installed, too."),
    "list": ("pattern.show:list_patterns", "List Patterns, and where their installation is."),
    "get": ("pattern.show:get", "Show a Pattern: steps, conditions, Applications, a timeline."),
    "explain": ("pattern.show:explain", "Show what holds the installation of a Pattern."),
}


@click.command(cls=LazyGroup, table=VERBS, context_settings=CONTEXT)
def pattern() -> None:
    """Validated Patterns: values files that name operators, namespaces and applications."""
