"""``syncline app wait``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

from syncline.argo.application import HYDRATE, AppView
from syncline.cli.access.connection import Connection
from syncline.cli.app.selected import is_selected, selected
from syncline.cli.app.target import (
    ask_refresh,
    chosen,
    get_app,
    is_refreshing,
    namespace_options,
    selector_option,
    until,
)
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.kube import client
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj, annotations_of, dig, name_of

CONDITIONS = ("want_sync", "want_health", "want_operation", "degraded", "suspended", "want_delete", "hydrated")
COMMIT = re.compile("[0-9a-f]{7,64}")


@click.command()
@click.argument("names", nargs=-1)
@selector_option
@click.option("--sync", "want_sync", is_flag=True, help="Wait for Synced.")
@click.option("--health", "want_health", is_flag=True, help="Wait for Healthy.")
@click.option("--operation", "want_operation", is_flag=True, help="Wait until no operation runs.")
@click.option("--hydrated", is_flag=True, help="Wait until its source is hydrated.")
@click.option("--degraded", is_flag=True, help="Degraded is fine too.")
@click.option("--suspended", is_flag=True, help="Suspended is fine too.")
@click.option("--delete", "want_delete", is_flag=True, help="Wait until it is gone.")
@click.option("--revision", default="", help="Wait until this commit (7 digits or more) or chart version is synced.")
@click.option("--resource", "resources", multiple=True, metavar="[!]GROUP:KIND:NAME", help="Only these; repeatable.")
@click.option("--timeout", default=0, help="Seconds to wait; 0 is for ever.")
@output_option("json", "yaml")
@namespace_options
def wait(names: tuple[str, ...], selector: str, app_namespace: str, output: str | None, **given: Any) -> None:
    """Wait until Applications are Synced and Healthy and no operation runs.

    Without flags it waits for all three. --health, --suspended and --degraded are alternatives. Before it trusts
    Synced, the controller reads the repository once more. What it waits for is said on stderr.

    \b
    Example:  syncline app wait shop --health --timeout 300
              syncline app wait shop --sync --revision "$(git rev-parse HEAD)"
    """
    given["wanted"] = [selected(text) for text in given["resources"]]
    if given["revision"]:
        given["want_sync"] = True
    if not any(given[flag] for flag in CONDITIONS):
        given |= {"want_sync": True, "want_health": True, "want_operation": True}
    finals = []
    with Connection(given["kubeconfig"], given["context"]) as link:
        for where in chosen(link, names, selector, app_namespace):
            if given["want_delete"]:
                wait_gone(link, where, given["timeout"])
            else:
                finals.append(_wait_one(link, where, given))
    if output and finals:
        print_documents(finals[0] if len(finals) == 1 else finals, output)
    for final in () if output else finals:
        print(f"{name_of(final)}: {_said(final, 'sync')}, {_said(final, 'health')}")


def _wait_one(link: Connection, where: tuple[str, str], given: Mapping[str, Any]) -> Obj:
    app = get_app(link, where)
    _check_revision(app, given["revision"])
    if given["want_sync"]:
        ask_refresh(link, where, "normal", app)
    said: list[str] = []

    def done(app: Obj) -> bool:
        left = outstanding(app, given)
        text = "; ".join(left)
        if left and text not in said:
            said.append(text)
            click.echo(f"waiting for application '{where[1]}': {text}", err=True)
        return not left

    return until(link, where, done, given["timeout"], lambda: f"Application {where[1]}: {said[-1] if said else ''}")


def _check_revision(app: Obj, revision: str) -> None:
    charts = any(source.get("chart") for source in AppView(app).sources)
    if revision and not charts and not COMMIT.fullmatch(revision):
        raise CommandFailed(
            f"--revision {revision}: write a commit with 7 to 64 hexadecimal digits, as `git rev-parse {revision}` "
            "prints it",
            USAGE,
        )


def outstanding(app: Obj, given: Mapping[str, Any]) -> list[str]:
    """Return the pending conditions of the wait, one sentence each. Raises CommandFailed if one cannot be reached."""
    left = []
    if given["want_sync"] and is_refreshing(app):
        left.append("the controller reads the repository")
    running = app.get("operation") or dig(app, "status", "operationState", "phase") in ("Running", "Terminating")
    if given["want_operation"] and running:
        left.append("its operation ends")
    if given.get("hydrated"):
        left += _of_hydration(app)
    if given["wanted"]:
        return [*left, *_of_resources(app, given)]
    left += _of_health(_said(app, "health"), name_of(app), given)
    if given["want_sync"] and _said(app, "sync") != "Synced":
        left.append(f"Synced (is {_said(app, 'sync')}{_never(app, running=bool(running))})")
    revision = given.get("revision")
    if revision and not any(one.startswith(revision) for one in _revisions(app)):
        left.append(f"revision {revision} (is {', '.join(_revisions(app)) or 'none'})")
    return left


def _of_hydration(app: Obj) -> list[str]:
    """Return the pending hydration. Raises CommandFailed if the Application is not hydrated."""
    view = AppView(app)
    if view.hydrator is None:
        raise CommandFailed(f"application '{view.name}' has no spec.sourceHydrator: nothing is hydrated")
    status = view.status.get("sourceHydrator") or {}
    operation, last = (status.get(key) or {} for key in ("currentOperation", "lastSuccessfulOperation"))
    same = all(operation.get(key) == last.get(key) for key in ("sourceHydrator", "drySHA"))
    if operation.get("phase") == "Hydrated" and same and HYDRATE not in annotations_of(app):
        return []
    phase = operation.get("phase") or "not begun; hydrator.enabled of argocd-cmd-params-cm has to be true"
    message = f": {operation['message']}" if operation.get("message") else ""
    return [f"its dry source is hydrated (is {phase}{message})"]


def _said(app: Obj, part: str) -> str:
    return str(dig(app, "status", part, "status", default="Unknown"))


def _of_health(health: str, name: str, given: Mapping[str, Any]) -> list[str]:
    flags = (("want_health", "Healthy"), ("degraded", "Degraded"), ("suspended", "Suspended"))
    wanted = [status for flag, status in flags if given[flag]]
    if given["want_health"] and health == "Degraded" and "Degraded" not in wanted:
        raise CommandFailed(f"application '{name}' health state has transitioned to Degraded")
    return [f"{' or '.join(wanted)} (is {health})"] if wanted and health not in wanted else []


def _of_resources(app: Obj, given: Mapping[str, Any]) -> list[str]:
    rows = [row for row in dig(app, "status", "resources", default=[]) if is_selected(row, given["wanted"])]
    left = [] if rows else [f"resources {', '.join(given['resources'])}"]
    for row in rows:
        name = f"{row.get('kind')} {row.get('name')}"
        health = dig(row, "health", "status", default="")
        left += [f"{name}: {text}" for text in (_of_health(health, name_of(app), given) if health else [])]
        if given["want_sync"] and row.get("status") != "Synced":
            left.append(f"{name}: Synced (is {row.get('status') or 'Unknown'})")
    return left


def _never(app: Obj, *, running: bool) -> str:
    """Return a hint if only a user can end this wait."""
    automated = dig(app, "spec", "syncPolicy", "automated")
    manual = automated is None or automated.get("enabled") is False
    stuck = manual and not running and _said(app, "sync") == "OutOfSync" and not is_refreshing(app)
    hint = f"; it has no automated sync: it stays so until you run `syncline app sync {name_of(app)}`"
    return hint if stuck else ""


def _revisions(app: Obj) -> list[str]:
    sync = dig(app, "status", "sync", default={})
    return [one for one in (sync.get("revision"), *(sync.get("revisions") or ())) if one]


def wait_gone(link: Connection, where: tuple[str, str], timeout_s: float) -> None:
    """Wait until the Application at (namespace, name) is deleted; 0 seconds: forever."""
    if link.send(client.get(link.resource(APPLICATION), *where)).status == 404:
        return
    try:
        until(link, where, lambda _a: False, timeout_s, "its deletion")
    except CommandFailed as error:
        if "was deleted meanwhile" not in str(error) and "does not exist" not in str(error):
            raise
