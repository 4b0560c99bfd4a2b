"""``syncline app resources``: the objects of an Application, and what grew out of them."""

from __future__ import annotations

import click

from syncline.assembly.resource_tree import orphaned_resources, resource_tree
from syncline.cli.app.target import control_namespace, get_app, namespace_option, split
from syncline.cli.connection import Connection, connection_options
from syncline.cli.elsewhere import Elsewhere
from syncline.cli.looking import look_at
from syncline.cli.output import output_option, print_documents
from syncline.cli.treeview import node_objects, resource_table, resource_tree_table
from syncline.gitops.application.observe import AppSettings
from syncline.kube.kinds.argoproj import APP_PROJECT
from syncline.kube.objects import ObjectRef, dig, namespace_of

__all__ = ["resources"]


@click.command()
@click.argument("name")
@click.option("--orphaned", is_flag=True, help="Only objects of its namespace that nobody tracks.")
@click.option("--project", default=None, help="Taken for compatibility; the Application knows its project.")
@output_option("tree", "tree=detailed", "json", "yaml")
@namespace_option
@connection_options
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

    Objects that nobody tracks are listed where the project watches for them (spec.orphanedResources).

    \b
    Example:  syncline app resources shop --output tree=detailed
              syncline app resources shop --orphaned
    """
    with Connection(kubeconfig, context) as link:
        app = get_app(link, split(name, app_namespace))
        control = control_namespace(link, namespace_of(app))
        home, now = look_at(link, control), link.now()
        with Elsewhere(link, control, home) as others:
            cache = others.look_for(app, home)
    wanted = str(dig(app, "spec", "project", default="default"))
    found = home.get(ObjectRef(APP_PROJECT.group, APP_PROJECT.kind, control, wanted)) or {}
    orphans = orphaned_resources(cache, app, found, AppSettings(control_namespace=control))
    nodes = () if orphaned else resource_tree(cache, app)
    if output in ("json", "yaml"):
        print_documents([*node_objects(nodes, False), *node_objects(orphans, True)], output)
    elif output is None:
        print(resource_table(nodes, orphans))
    else:
        print(resource_tree_table(nodes, orphans, now, detailed=output == "tree=detailed"))
