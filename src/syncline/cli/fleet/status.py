"""``syncline fleet``: the clusters of a hub in one table."""

from __future__ import annotations

import click

from syncline.assembly.inspection.clusters import READ, ClusterState, cluster_states
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.fleet.reading import hub_kind, read_fleet
from syncline.cli.frame.arguments import did_you_mean
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.frame.output import output_option, print_documents, print_names
from syncline.cli.views.fleet.clusters import fleet_obj, fleet_summary, fleet_table
from syncline.kube.kinds.managedclusters import MANAGED_CLUSTER

RESOURCE = f"managedcluster.{MANAGED_CLUSTER.group}"


@click.command()
@click.argument("names", nargs=-1, metavar="[CLUSTER...]")
@output_option("wide", "json", "yaml", "name")
@connection_options
def fleet(names: tuple[str, ...], output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Show the clusters of a hub in one table: accepted, joined, available since when, version, cluster sets, taints,
    works (applied of all), add-ons, pending requests. A `?` stands for what you may not read.

    \b
    Example:  syncline fleet -o wide
    """
    with Connection(kubeconfig, context) as link:
        found, now = states_of(link), link.now()
    unknown = sorted(set(names) - {one.name for one in found})
    if unknown:
        near = did_you_mean(unknown[0], [one.name for one in found])
        raise CommandFailed(f"ManagedCluster {unknown[0]} does not exist; `syncline fleet` shows those that do.{near}")
    shown = [one for one in found if not names or one.name in names]
    if output == "name":
        print_names(RESOURCE, [one.name for one in shown])
    elif output in ("json", "yaml"):
        print_documents([fleet_obj(one) for one in shown], output)
    elif shown:
        print(fleet_table(shown, now, wide=output == "wide"))
        print(fleet_summary(shown))
    else:
        click.echo("No clusters have joined; `syncline hub token` prints how one does.", err=True)


def states_of(link: Connection) -> list[ClusterState]:
    """Return the states of the clusters of a hub. Raises CommandFailed on a cluster that is no hub."""
    hub_kind(link, MANAGED_CLUSTER)
    return cluster_states(read_fleet(link, READ))
