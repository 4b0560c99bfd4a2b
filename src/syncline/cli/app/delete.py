"""``syncline app delete``."""

from __future__ import annotations

import sys
from typing import Any

import click

from syncline.argo.requests.writing import cascading
from syncline.cli.access.connection import Connection
from syncline.cli.app.target import chosen, get_app, merge, namespace_options, selector_option
from syncline.cli.app.wait import wait_gone
from syncline.cli.views.application import resource_rows, set_text
from syncline.kube import client
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import Obj


@click.command()
@click.argument("names", nargs=-1)
@selector_option
@click.option("--cascade/--no-cascade", default=True, show_default=True, help="Delete its resources too.")
@click.option("-p", "--propagation-policy", type=click.Choice(["foreground", "background"]), default="foreground")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--wait", "wait_", is_flag=True, help="Wait until it is gone.")
@namespace_options
def delete(
    names: tuple[str, ...],
    selector: str,
    cascade: bool,
    propagation_policy: str,
    yes: bool,
    wait_: bool,
    app_namespace: str,
    **given: Any,
) -> None:
    """Delete Applications, with their resources unless --no-cascade.

    \b
    Example:  syncline app delete shop --yes --wait
    """
    with Connection(given["kubeconfig"], given["context"]) as link:
        info = link.resource(APPLICATION)
        for where in chosen(link, names, selector, app_namespace, none="no apps match"):
            found = get_app(link, where)
            if not yes and sys.stdin.isatty():
                count = len(resource_rows(found))
                what = f"with its {count} resources" if cascade else "without its resources"
                click.confirm(f"Delete application '{where[1]}' {what}?", abort=True)
            _set_cascade(link, found, cascade, propagation_policy)
            link.ask(client.delete(info, *where))
            print(f"application '{where[1]}' deleted")
            if owner := set_text(found):
                click.echo(f"ApplicationSet {owner} controls it: while a row makes it, it comes back", err=True)
            if wait_:
                wait_gone(link, where, 0)


def _set_cascade(link: Connection, found: Obj, cascade: bool, policy: str) -> None:
    after = cascading(found, cascade=cascade, policy=policy if cascade else "")
    if after is not None:
        merge(link, found, {"metadata": {"finalizers": after or None}})
