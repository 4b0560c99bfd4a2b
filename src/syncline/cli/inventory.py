"""``syncline inventory``: what of a cluster a play can be run on, as one document. The Ansible collection reads it."""

from __future__ import annotations

import click

from syncline.assembly.inspection.inventory import READS, inventory
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.frame.output import output_option, print_documents, table
from syncline.cli.views.inventory import inventory_obj


@click.command("inventory")
@click.option("--only", "sections", multiple=True, type=click.Choice(list(READS)), help="Only this part; repeatable.")
@output_option("json", "yaml")
@connection_options
def show_inventory(sections: tuple[str, ...], output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """List nodes with their pools, addresses and versions, machine config pools, clusters of a hub, and what Placements
    select, in one document.

    Lists are read in pages. A kind that may not be listed is in `refused` with the server's reason, one that the
    cluster does not serve in `absent`.

    \b
    Example:  syncline inventory -o json
              syncline inventory --only nodes --only pools -o yaml
    """
    wanted = sections or tuple(READS)
    with Connection(kubeconfig, context) as link:
        document = inventory_obj(link.run(inventory(wanted)), wanted, link.server, link.now())
    for kind, why in document["refused"].items():
        click.echo(f"warning: {kind} may not be listed: {why}", err=True)
    if output:
        print_documents(document, output)
        return
    rows = [(name, *_shown(document[name])) for name in READS if name in wanted]
    print(table(("PART", "COUNT", "NAMES"), rows))


SHOWN = 8
"""Names in a row of the table; the others are counted."""


def _shown(rows: list[dict[str, str]] | None) -> tuple[str, str]:
    """Return count and names."""
    if rows is None:
        return "?", "not served, or not yours to list"
    names = [f"{row['namespace']}/{row['name']}" if row.get("namespace") else row["name"] for row in rows]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return str(len(names)), (", ".join(names[:SHOWN]) or "-") + more
