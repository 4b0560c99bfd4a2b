"""``syncline app edit``, ``app patch`` and ``app confirm-deletion``: change an existing Application."""

from __future__ import annotations

import json
from typing import Any

import click

from syncline.base.clock import format_time
from syncline.cli.access.connection import Connection
from syncline.cli.app.target import get_app, merge, namespace_options, replace_spec, split
from syncline.cli.frame.editing import edited
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.kinds.argoproj import APPLICATION

APPROVED = "argocd.argoproj.io/deletion-approved"


@click.command()
@click.argument("name")
@namespace_options
def edit(name: str, app_namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """Edit the spec of an Application in $EDITOR; nothing is written unless it changed.

    \b
    Example:  EDITOR=nano syncline app edit shop
    """
    with Connection(kubeconfig, context) as link:
        found = get_app(link, split(name, app_namespace))
        spec = edited(found["spec"])
        if spec is None:
            print("Edit cancelled, no changes made.")
            return
        replace_spec(link, found, spec)
    print(f"application '{name}' updated")


@click.command()
@click.argument("name")
@click.option("--patch", "text", required=True, help="The patch, as JSON or YAML.")
@click.option("--type", "kind", type=click.Choice(["json", "merge"]), default="json", show_default=True)
@namespace_options
def patch(name: str, text: str, kind: str, app_namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """Patch an Application: RFC 6902 (json) or RFC 7386 (merge).

    \b
    Example:  syncline app patch shop --patch '[{"op": "replace", "path": "/spec/source/path", "value": "new"}]'
              syncline app patch shop --type merge --patch '{"spec": {"source": {"targetRevision": "v2"}}}'
    """
    body = parsed_patch(text, list if kind == "json" else dict)
    where = split(name, app_namespace)
    with Connection(kubeconfig, context) as link:
        get_app(link, where)
        form = PatchType.JSON if kind == "json" else PatchType.MERGE
        link.ask(client.patch(link.resource(APPLICATION), *where, form, body, field_validation="Strict"))
    print(f"application '{where[1]}' patched")


def parsed_patch(text: str, wanted: type) -> Any:
    from syncline.kube.yaml.loading import YamlError, load

    try:
        body = json.loads(text) if text.lstrip().startswith(("[", "{")) else load(text, file="--patch")
    except (ValueError, YamlError, RecursionError) as error:
        raise CommandFailed(f"--patch cannot be read: {error}", USAGE) from error
    if not isinstance(body, wanted):
        shape = "a list of operations; for a mapping give --type merge" if wanted is list else "a mapping"
        raise CommandFailed(f"--patch: expected {shape}", USAGE)
    return body


@click.command("confirm-deletion")
@click.argument("name")
@namespace_options
def confirm_deletion(name: str, app_namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """Approve deletions that wait for a person: sync options Prune=confirm and Delete=confirm.

    \b
    Example:  syncline app confirm-deletion shop
    """
    with Connection(kubeconfig, context) as link:
        found = get_app(link, split(name, app_namespace))
        merge(link, found, {"metadata": {"annotations": {APPROVED: format_time(link.now())}}})
    print(f"Application '{name}' updated successfully")
