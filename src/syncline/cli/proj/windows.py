"""``syncline proj windows``: the sync windows of a project."""

from __future__ import annotations

from typing import Any

import click

from syncline.argo.project.windows import validate_window
from syncline.cli.access.connection import Connection
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.proj.target import Change, change_spec, get_project, namespace_options
from syncline.cli.views.project import window_rows
from syncline.kube.objects import Obj, dig


@click.command("list")
@click.argument("project")
@output_option("json", "yaml")
@namespace_options
def list_windows(project: str, output: str | None, namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """List the sync windows of a project, and which are open now.

    \b
    Example:  syncline proj windows list team
    """
    with Connection(kubeconfig, context) as link:
        entries = dig(get_project(link, namespace, project), "spec", "syncWindows", default=[])
        now = link.now()
    if output:
        print_documents(entries, output)
    else:
        print(window_rows(entries, now))


def _names(_context: Any, _option: Any, value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


@click.command()
@click.argument("project")
@click.option("-k", "--kind", type=click.Choice(["allow", "deny"]), default="allow", show_default=True)
@click.option("--schedule", required=True, help="Start, as a cron expression: '0 22 * * *'.")
@click.option("--duration", required=True, help="For example 30m or 8h.")
@click.option("--applications", default="", callback=_names, help="Names or globs, with commas.")
@click.option("--namespaces", default="", callback=_names, help="Destination namespaces, with commas.")
@click.option("--clusters", default="", callback=_names, help="Destination clusters, with commas.")
@click.option("--manual-sync", is_flag=True, help="People may sync nevertheless.")
@click.option("--sync-overrun", is_flag=True, help="An operation that began in time may go on.")
@click.option("--use-and-operator", is_flag=True, help="Every list that is given has to match, not one of them.")
@click.option("--time-zone", default="UTC", show_default=True)
@click.option("--description", default="", help="Why.")
@namespace_options
def add(project: str, **given: Any) -> None:
    """Add a sync window.

    \b
    Example:  syncline proj windows add team --kind deny --schedule '0 22 * * *' --duration 8h --applications '*'
    """
    fields = {
        "kind": given["kind"],
        "schedule": given["schedule"],
        "duration": given["duration"],
        "applications": given["applications"],
        "namespaces": given["namespaces"],
        "clusters": given["clusters"],
        "manualSync": given["manual_sync"],
        "syncOverrun": given["sync_overrun"],
        "andOperator": given["use_and_operator"],
        "timeZone": given["time_zone"],
        "description": given["description"],
    }
    window = {key: value for key, value in fields.items() if value}
    problem = validate_window(window)
    if problem:
        raise CommandFailed(problem, USAGE)
    change_spec(given, project, lambda spec: spec | {"syncWindows": [*(spec.get("syncWindows") or []), window]})


@click.command()
@click.argument("project")
@click.argument("window", type=int, metavar="ID")
@namespace_options
def delete(project: str, window: int, **given: Any) -> None:
    """Delete the sync window with this ID, as `windows list` shows it.

    \b
    Example:  syncline proj windows delete team 0
    """
    change_spec(given, project, lambda spec: without_window(spec, window))


def without_window(spec: Obj, window: int) -> Obj:
    """Return ``spec`` without one window. Raises CommandFailed if the ID does not exist."""
    entries = _entries(spec, window)
    left = [entry for index, entry in enumerate(entries) if index != window]
    rest = {key: value for key, value in spec.items() if key != "syncWindows"}
    return rest | ({"syncWindows": left} if left else {})


def changed_window(window: int, fields: Obj) -> Change:
    """Return the change that sets fields of one window."""

    def change(spec: Obj) -> Obj:
        entries = _entries(spec, window)
        return spec | {"syncWindows": [one | fields if at == window else one for at, one in enumerate(entries)]}

    return change


def _entries(spec: Obj, window: int) -> list[Obj]:
    entries: list[Obj] = spec.get("syncWindows") or []
    if not 0 <= window < len(entries):
        raise CommandFailed(
            f"window {window} does not exist; `syncline proj windows list PROJECT` shows {len(entries)} of them"
        )
    return entries


def _switch(name: str, field: str, value: bool, about: str) -> click.Command:
    """The command that gives ``field`` of one window this value."""
    example = f"\n\n\b\nExample:  syncline proj windows {name} team 0"

    @click.command(name, help=about + example)
    @click.argument("project")
    @click.argument("window", type=int, metavar="ID")
    @namespace_options
    def switch(project: str, window: int, **given: Any) -> None:
        change_spec(given, project, changed_window(window, {field: value}))

    return switch


enable_manual = _switch("enable-manual-sync", "manualSync", True, "People may sync in spite of this window.")
disable_manual = _switch("disable-manual-sync", "manualSync", False, "The window also holds syncs that people start.")
enable_overrun = _switch(
    "enable-sync-overrun", "syncOverrun", True, "An operation that began in time may go on after its window."
)
disable_overrun = _switch(
    "disable-sync-overrun", "syncOverrun", False, "An operation waits where its window has ended."
)


@click.command()
@click.argument("project")
@click.argument("window", type=int, metavar="ID")
@click.option("--schedule", default="", help="Start, as a cron expression: '0 22 * * *'.")
@click.option("--duration", default="", help="For example 30m or 8h.")
@click.option("--applications", default="", callback=_names, help="Names or globs, with commas.")
@click.option("--namespaces", default="", callback=_names, help="Destination namespaces, with commas.")
@click.option("--clusters", default="", callback=_names, help="Destination clusters, with commas.")
@click.option("--time-zone", default="", help="Such as Europe/Berlin.")
@click.option("--description", default="", help="Why.")
@namespace_options
def update(project: str, window: int, time_zone: str, **given: Any) -> None:
    """Change a sync window by its ID, as `windows list` shows it.

    \b
    Example:  syncline proj windows update team 0 --duration 4h
    """
    names = ("schedule", "duration", "applications", "namespaces", "clusters", "description")
    fields = {name: given[name] for name in names if given[name]} | ({"timeZone": time_zone} if time_zone else {})
    if not fields:
        raise CommandFailed("say what to change, for example --duration 4h; see --help", USAGE)

    def change(spec: Obj) -> Obj:
        problem = validate_window(_entries(spec, window)[window] | fields)
        if problem:
            raise CommandFailed(problem, USAGE)
        return changed_window(window, fields)(spec)

    change_spec(given, project, change)
