"""``syncline app resources``: lists the objects of an Application and those that they own."""

from __future__ import annotations

from datetime import datetime

import click

from syncline.assembly.inspection.resource_tree import orphaned_resources, resource_tree, tree_of
from syncline.cli.access.connection import Connection
from syncline.cli.app.looked import looked_for
from syncline.cli.app.target import get_app, namespace_options, split
from syncline.cli.fleet.asking import about, asked, cluster_of, timeout_option
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.tree import Nodes, node_objects, resource_table, resource_tree_table
from syncline.fleet.pull.queries.model import Ask


@click.command()
@click.argument("name")
@click.option("--orphaned", is_flag=True, help="Only objects of its namespace that no Application tracks.")
@click.option("--project", default=None, help="Taken for compatibility; the Application knows its project.")
@output_option("tree", "tree=detailed", "json", "yaml")
@timeout_option
@namespace_options
def resources(
    name: str,
    orphaned: bool,
    project: str | None,
    output: str | None,
    timeout: int,
    app_namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """List the objects of an Application and what they own.

    Of an Application that a cluster pulls from this hub, the cluster's agent reads them.
    Objects that no Application tracks are listed where the project watches for them (spec.orphanedResources).

    \b
    Example:  syncline app resources shop --output tree=detailed
              syncline app resources shop --orphaned
    """
    with Connection(kubeconfig, context) as link:
        app = get_app(link, split(name, app_namespace))
        if cluster_of(app):
            if orphaned:
                raise CommandFailed("--orphaned: agents show objects of the Application only", USAGE)
            _show(tree_of(asked(link, app, about(app, Ask.RESOURCES), timeout)), (), link.now(), output)
            return
        with looked_for(link, split(name, app_namespace), app) as snapshot:
            orphans = orphaned_resources(snapshot.there, snapshot.app, snapshot.project, snapshot.settings)
            nodes = () if orphaned else resource_tree(snapshot.there, snapshot.app)
        now = link.now()
    _show(nodes, orphans, now, output)


def _show(nodes: Nodes, orphans: Nodes, now: datetime, output: str | None) -> None:
    if output in ("json", "yaml"):
        print_documents([*node_objects(nodes, False), *node_objects(orphans, True)], output)
    elif output is None:
        print(resource_table(nodes, orphans))
    else:
        print(resource_tree_table(nodes, orphans, now, detailed=output == "tree=detailed"))
