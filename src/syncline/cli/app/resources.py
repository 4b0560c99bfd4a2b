"""``syncline app resources``: lists the objects of an Application and those that they own."""

from __future__ import annotations

import click

from syncline.assembly.inspection.resource_tree import orphaned_resources, resource_tree
from syncline.cli.access.connection import Connection
from syncline.cli.app.looked import looked_for
from syncline.cli.app.target import namespace_options, split
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.tree import node_objects, resource_table, resource_tree_table


@click.command()
@click.argument("name")
@click.option("--orphaned", is_flag=True, help="Only objects of its namespace that no Application tracks.")
@click.option("--project", default=None, help="Taken for compatibility; the Application knows its project.")
@output_option("tree", "tree=detailed", "json", "yaml")
@namespace_options
def resources(
    name: str,
    orphaned: bool,
    project: str | None,
    output: str | None,
    app_namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """List the objects of an Application and what they own.

    Objects that no Application tracks are listed where the project watches for them (spec.orphanedResources).

    \b
    Example:  syncline app resources shop --output tree=detailed
              syncline app resources shop --orphaned
    """
    with Connection(kubeconfig, context) as link:
        with looked_for(link, split(name, app_namespace)) as snapshot:
            orphans = orphaned_resources(snapshot.there, snapshot.app, snapshot.project, snapshot.settings)
            nodes = () if orphaned else resource_tree(snapshot.there, snapshot.app)
        now = link.now()
    if output in ("json", "yaml"):
        print_documents([*node_objects(nodes, False), *node_objects(orphans, True)], output)
    elif output is None:
        print(resource_table(nodes, orphans))
    else:
        print(resource_tree_table(nodes, orphans, now, detailed=output == "tree=detailed"))
