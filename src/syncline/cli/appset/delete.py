"""``syncline appset delete``."""

from __future__ import annotations

import sys
from functools import partial

import click

from syncline.cli.access.connection import Connection
from syncline.cli.appset.target import follow, get_set, place_of, set_options
from syncline.kube import client
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.objects import Obj, uid_of


@click.command()
@click.argument("names", nargs=-1, required=True)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("--wait", "wait_", is_flag=True, help="Wait until it is gone.")
@set_options("Its namespace; NAMESPACE/NAME wins [default: argocd].")
def delete(
    names: tuple[str, ...], yes: bool, wait_: bool, namespace: str, kubeconfig: str | None, context: str | None
) -> None:
    """Delete ApplicationSets and all their Applications. To keep the Applications: kubectl delete applicationset NAME
    --cascade=orphan.

    \b
    Example:  syncline appset delete fleet --yes --wait
    """
    everything = yes or not sys.stdin.isatty()
    with Connection(kubeconfig, context) as link:
        for name in names:
            where = place_of(name, namespace)
            found = get_set(link, where)
            if not everything:
                agreed, everything = _asked(name, several=len(names) > 1)
                if not agreed:
                    print(f"The command to delete '{name}' was cancelled.")
                    continue
            link.ask(client.delete(link.resource(APPLICATION_SET), *where))
            if wait_:
                follow(link, where, partial(_is_gone, uid_of(found)), 0, lambda: "its deletion")
            print(f"applicationset '{name}' deleted")


def _is_gone(uid: str, found: Obj | None) -> bool:
    return found is None or uid_of(found) != uid


def _asked(name: str, *, several: bool) -> tuple[bool, bool]:
    """Return whether to delete it, and whether to ask no further."""
    choices = ["y", "n", "a"] if several else ["y", "n"]
    more = " where 'a' is to delete all specified ApplicationSets and their Applications without prompting"
    text = f"Are you sure you want to delete '{name}' and all its Applications?{more if several else ''}"
    given = click.prompt(text, type=click.Choice(choices, case_sensitive=False))
    return given != "n", given == "a"
