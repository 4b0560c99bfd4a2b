"""``syncline app wait``."""

from __future__ import annotations

from typing import Any

import click

from syncline.cli.app.target import chosen, namespace_option, selector_option, until
from syncline.cli.connection import Connection, connection_options
from syncline.cli.failure import CommandFailed
from syncline.kube import client
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, dig, name_of

__all__ = ["wait", "wait_gone"]

CONDITIONS = ("want_sync", "want_health", "want_operation", "degraded", "suspended", "want_delete")


@click.command()
@click.argument("names", nargs=-1)
@selector_option
@click.option("--sync", "want_sync", is_flag=True, help="Wait for Synced.")
@click.option("--health", "want_health", is_flag=True, help="Wait for Healthy.")
@click.option("--operation", "want_operation", is_flag=True, help="Wait until no operation runs.")
@click.option("--degraded", is_flag=True, help="Degraded is fine too.")
@click.option("--suspended", is_flag=True, help="Suspended is fine too.")
@click.option("--delete", "want_delete", is_flag=True, help="Wait until it is gone.")
@click.option("--timeout", default=0, help="Seconds to wait; 0 is for ever.")
@namespace_option
@connection_options
def wait(names: tuple[str, ...], selector: str, app_namespace: str, timeout: int, **given: Any) -> None:
    """Wait until Applications are Synced and Healthy and no operation runs.

    Without flags it waits for all three. --health, --suspended and --degraded are alternatives. Exit code 3: timed out.

    \b
    Example:  syncline app wait shop --health --timeout 300
    """
    if not any(given[flag] for flag in CONDITIONS):
        given |= {"want_sync": True, "want_health": True, "want_operation": True}
    with Connection(given["kubeconfig"], given["context"]) as link:
        for where in chosen(link, names, selector, app_namespace):
            name = where[1]
            if given["want_delete"]:
                wait_gone(link, where, timeout)
                continue
            final = until(link, where, lambda app: _satisfied(app, given), timeout, f"Application {name}")
            print(f"{name}: {dig(final, 'status', 'sync', 'status')}, {dig(final, 'status', 'health', 'status')}")


def _satisfied(app: Obj, given: dict[str, Any]) -> bool:
    health = dig(app, "status", "health", "status", default="Unknown")
    wanted = {
        code
        for flag, code in (("want_health", "Healthy"), ("degraded", "Degraded"), ("suspended", "Suspended"))
        if given[flag]
    }
    if given["want_health"] and health == "Degraded" and "Degraded" not in wanted:
        raise CommandFailed(f"application '{name_of(app)}' health state has transitioned to Degraded")
    if wanted and health not in wanted:
        return False
    if given["want_sync"] and dig(app, "status", "sync", "status") != "Synced":
        return False
    running = app.get("operation") or dig(app, "status", "operationState", "phase") in ("Running", "Terminating")
    return not (given["want_operation"] and running)


def wait_gone(link: Connection, where: tuple[str, str], timeout_s: float) -> None:
    """Wait until there is no Application at (namespace, name); 0 seconds is for ever."""
    if link.send(client.get(link.resource(APPLICATION), *where)).status == 404:
        return
    try:
        until(link, where, lambda _a: False, timeout_s, "its deletion")
    except CommandFailed as error:
        if "was deleted meanwhile" not in str(error) and "does not exist" not in str(error):
            raise
