"""``syncline app history``, ``rollback`` and ``terminate-op``: past deployments, return to one, end an operation."""

from __future__ import annotations

from typing import Any

import click

from syncline.argo.requests.operations import TERMINATES, check_running, is_automated, rollback_operation
from syncline.cli.access.connection import Connection
from syncline.cli.app.sync import follow, judge, request_sync
from syncline.cli.app.target import USER, get_app, merge, namespace_options, refusals, split
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.application import history_text, operation_block
from syncline.cli.views.progress import progress_for
from syncline.kube.objects import Obj, dig, name_of


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
        begun = request_sync(link, found, rollback_to(found, deployment, prune=prune))
        final = follow(link, begun, timeout, None if output else progress_for())
    if output:
        print_documents(final, output)
    else:
        print(f"\n{operation_block(final)}")
    judge(final)


def rollback_to(app: Obj, deployment: int | None, *, prune: bool) -> Obj:
    """Return the rollback operation, by default to the deployment before the last."""
    name, entries = name_of(app), dig(app, "status", "history", default=[])
    if deployment is None and len(entries) < 2:
        raise CommandFailed(f"Application '{name}' should have at least two successful deployments")
    wanted = int(entries[-2].get("id") or 0) if deployment is None else deployment
    automated = is_automated(app)
    hint = f"first `syncline app set {name} --sync-policy none`" if automated else f"see `syncline app history {name}`"
    with refusals(hint):
        return rollback_operation(app, wanted, USER, prune=prune)


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
        with refusals():
            merge(link, found, TERMINATES, check_running)
    print(f"Application '{name_of(found)}' operation terminating")
