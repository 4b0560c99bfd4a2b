"""``syncline app history``, ``rollback`` and ``terminate-op``: past deployments, return to one, end an operation."""

from __future__ import annotations

from typing import Any

import click

from syncline.cli.access.connection import Connection
from syncline.cli.app.sync import follow, judge, request_sync
from syncline.cli.app.target import get_app, merge, namespace_options, split
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.application import history_text, operation_block
from syncline.cli.views.progress import progress_for
from syncline.kube.objects import Obj, dig, is_terminating, name_of


@click.command()
@click.argument("name")
@output_option("wide", "id", "json", "yaml")
@namespace_options
def history(name: str, output: str | None, app_namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """List the deployments of an Application, oldest first.

    \b
    Example:  syncline app history shop
    """
    with Connection(kubeconfig, context) as link:
        found = get_app(link, split(name, app_namespace))
    if output in ("json", "yaml"):
        print_documents(dig(found, "status", "history", default=[]), output)
        return
    text = history_text(found, ids_only=output == "id")
    if text:
        print(text)


@click.command()
@click.argument("name")
@click.argument("deployment", type=int, required=False, metavar="[ID]")
@click.option("--prune", is_flag=True, help="Delete what that deployment did not have.")
@click.option("--timeout", default=0, help="Seconds to wait; 0 is for ever.")
@output_option("json", "yaml")
@namespace_options
def rollback(name: str, deployment: int | None, prune: bool, timeout: int, output: str | None, **given: Any) -> None:
    """Sync to a deployment of the history, without ID to the one before the last. Hooks do not run.

    \b
    Example:  syncline app history shop
              syncline app rollback shop 3 --prune
    """
    with Connection(given["kubeconfig"], given["context"]) as link:
        found = get_app(link, split(name, given["app_namespace"]))
        begun = request_sync(link, found, rollback_operation(found, deployment, prune=prune))
        final = follow(link, begun, timeout, None if output else progress_for())
    if output:
        print_documents(final, output)
    else:
        print(f"\n{operation_block(final)}")
    judge(final)


def rollback_operation(app: Obj, deployment: int | None, *, prune: bool) -> Obj:
    """Return the rollback operation; raises CommandFailed in upstream's words (``server/application`` Rollback)."""
    entry = _deployment(app, deployment)
    policy = dig(app, "spec", "syncPolicy", default={})
    automated = policy.get("automated")
    if is_terminating(app):
        raise CommandFailed("application is deleting")
    if automated is not None and automated.get("enabled") is not False:
        raise CommandFailed(
            "rollback cannot be initiated when auto-sync is enabled; "
            f"first `syncline app set {name_of(app)} --sync-policy none`"
        )
    kept = {key: entry[key] for key in ("source", "sources", "revision", "revisions") if entry.get(key)}
    if not kept.get("source") and not kept.get("sources"):
        raise CommandFailed(
            f"cannot rollback to deployment {entry.get('id')}: the history does not say its source; "
            f"sync to its commit instead: `syncline app sync {name_of(app)} --revision {entry.get('revision')}`"
        )
    sync: Obj = {**kept, "syncStrategy": {"apply": {}}}
    if prune:
        sync["prune"] = True
    if policy.get("syncOptions"):
        sync["syncOptions"] = list(policy["syncOptions"])
    return {"initiatedBy": {"username": "syncline"}, "sync": sync}


def _deployment(app: Obj, wanted: int | None) -> Obj:
    name, entries = name_of(app), dig(app, "status", "history", default=[])
    if wanted is None:
        if len(entries) < 2:
            raise CommandFailed(f"Application '{name}' should have at least two successful deployments")
        before: Obj = entries[-2]
        return before
    for entry in entries:
        if entry.get("id") == wanted:
            found: Obj = entry
            return found
    raise CommandFailed(
        f"Application '{name}' does not have deployment id '{wanted}' in history; see `syncline app history {name}`"
    )


@click.command("terminate-op")
@click.argument("name")
@namespace_options
def terminate_op(name: str, app_namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """End the operation in progress: its hooks are deleted, what was applied stays.

    \b
    Example:  syncline app terminate-op shop && syncline app wait shop --operation
    """
    with Connection(kubeconfig, context) as link:
        found = get_app(link, split(name, app_namespace))
        merge(link, found, {"status": {"operationState": {"phase": "Terminating"}}}, _check_running)
    print(f"Application '{name_of(found)}' operation terminating")


def _check_running(app: Obj) -> None:
    if not app.get("operation") or not dig(app, "status", "operationState"):
        raise CommandFailed("Unable to terminate operation. No operation is in progress")
