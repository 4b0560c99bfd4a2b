"""The verbs of ``syncline proj`` by name; each is imported when it is called."""

from __future__ import annotations

import click

from syncline.cli.lazy import CONTEXT, LazyGroup

__all__ = ["VERBS", "WINDOW_VERBS", "proj", "windows"]

VERBS: dict[str, tuple[str, str]] = {
    "add-destination": ("proj.lists:add_destination", "Allow a destination."),
    "add-source": ("proj.lists:add_source", "Allow a source repository."),
    "add-source-namespace": ("proj.lists:add_source_namespace", "Allow Applications of a namespace."),
    "remove-source-namespace": ("proj.lists:remove_source_namespace", "No longer allow Applications of a namespace."),
    "set": ("proj.verbs:set_fields", "Change fields of a project by flags."),
    "allow-cluster-resource": ("proj.lists:allow_cluster_resource", "Allow a cluster-scoped kind."),
    "allow-namespace-resource": ("proj.lists:allow_namespace_resource", "No longer deny a namespaced kind."),
    "create": ("proj.verbs:create", "Create a project from flags or from a file."),
    "delete": ("proj.verbs:delete", "Delete projects that no Application uses."),
    "deny-cluster-resource": ("proj.lists:deny_cluster_resource", "No longer allow a cluster-scoped kind."),
    "deny-namespace-resource": ("proj.lists:deny_namespace_resource", "Deny a namespaced kind."),
    "get": ("proj.verbs:get", "Show one project."),
    "list": ("proj.verbs:list_projects", "List projects."),
    "remove-destination": ("proj.lists:remove_destination", "No longer allow a destination."),
    "remove-source": ("proj.lists:remove_source", "No longer allow a source repository."),
    "windows": ("proj.group:windows", "List, add and delete sync windows."),
}
WINDOW_VERBS: dict[str, tuple[str, str]] = {
    "add": ("proj.windows:add", "Add a sync window."),
    "delete": ("proj.windows:delete", "Delete a sync window by its ID."),
    "disable-manual-sync": ("proj.windows:disable_manual", "A closed window also holds syncs by hand."),
    "enable-manual-sync": ("proj.windows:enable_manual", "People may sync while a window is closed."),
    "list": ("proj.windows:list_windows", "List sync windows."),
}


@click.command(cls=LazyGroup, table=VERBS, context_settings=CONTEXT)
def proj() -> None:
    """What Applications may read and write: AppProjects, with the verbs and flags of argocd.

    \b
    Example:  syncline proj create team --src 'https://github.com/team/*' --dest https://kubernetes.default.svc,team
    """


@click.command(cls=LazyGroup, table=WINDOW_VERBS, context_settings=CONTEXT)
def windows() -> None:
    """When the Applications of a project may be synced.

    \b
    Example:  syncline proj windows add team --kind deny --schedule '0 22 * * *' --duration 8h --applications '*'
    """
