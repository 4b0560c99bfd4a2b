"""``syncline context``: lists the kubeconfig's contexts, as there is no server with sessions."""

from __future__ import annotations

import click

from syncline.cli.access.connection import default_kubeconfig
from syncline.cli.frame.arguments import did_you_mean
from syncline.cli.frame.failure import GENERAL, CommandFailed
from syncline.cli.frame.output import output_option, print_documents, table

KUBECTL = "`kubectl config use-context {0}` makes it the current one, --context {0} names it for one command"


@click.command()
@click.argument("name", required=False, metavar="[CONTEXT]")
@output_option("json", "yaml", "name")
@click.option("--kubeconfig", default=None, help="Kubeconfig [default: $KUBECONFIG, else that of the last `up`].")
def context(name: str | None, output: str | None, kubeconfig: str | None) -> None:
    """List the contexts of the kubeconfig. It is not written: kubectl switches, --context names one for one command.

    \b
    Example:  syncline context
              syncline app list --context prod
    """
    from syncline.kube.transport.kubeconfig import KubeconfigError, named_contexts

    try:
        found = named_contexts(kubeconfig or default_kubeconfig())
    except KubeconfigError as error:
        raise CommandFailed(str(error), GENERAL) from error
    if name is not None:
        wanted = next((one for one in found if one.name == name), None)
        if wanted is None:
            near = did_you_mean(name, [one.name for one in found])
            raise CommandFailed(
                f"context {name} does not exist; `syncline context` lists those that do.{near}", GENERAL
            )
        if not wanted.current:
            raise CommandFailed(f"context {name} is not switched to: {KUBECTL.format(name)}", GENERAL)
        print(f"Already at context '{name}'")
    elif output in ("json", "yaml"):
        print_documents([{"name": one.name, "server": one.server, "current": one.current} for one in found], output)
    elif output == "name":
        print("\n".join(one.name for one in found))
    else:
        rows = [("*" if one.current else " ", one.name, one.server) for one in found]
        print(table(("CURRENT", "NAME", "SERVER"), rows))
