"""The verbs of ``syncline proj`` by name; each is imported when it is called."""

from __future__ import annotations

import click

from syncline.cli.frame.lazy import CONTEXT, LazyGroup

VERBS: dict[str, tuple[str, str]] = {
    "add-destination": ("proj.lists:add_destination", "Allow a destination."),
    "add-source": ("proj.lists:add_source", "Allow a source repository."),
    "add-source-namespace": ("proj.lists:add_source_namespace", "Allow Applications of a namespace."),
    "remove-source-namespace": ("proj.lists:remove_source_namespace", "No longer allow Applications of a namespace."),
    "set": ("proj.verbs:set_fields", "Change fields of a project by flags."),
    "add-destination-service-account": ("proj.entries:add_account", "Name who syncs to a destination impersonate."),
    "add-orphaned-ignore": ("proj.entries:add_ignored", "Leave objects of a kind out of the orphans."),
    "add-signature-key": ("proj.entries:add_key", "Trust commits that a GnuPG key signed."),
    "remove-destination-service-account": ("proj.entries:remove_account", "No longer name a service account."),
    "remove-orphaned-ignore": ("proj.entries:remove_ignored", "No longer leave a kind out of the orphans."),
    "remove-signature-key": ("proj.entries:remove_key", "No longer trust a GnuPG key."),
    "edit": ("proj.verbs:edit", "Edit the spec of a project in $EDITOR."),
    "role": ("proj.group:role", "Roles of a project, as an argocd-server reads them."),
    "source-integrity": ("proj.integrity:source_integrity", "Which signatures the sources of a project need."),
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
    "update": ("proj.windows:update", "Change a sync window by its ID."),
    "disable-sync-overrun": ("proj.windows:disable_overrun", "An operation ends where its window does."),
    "enable-sync-overrun": ("proj.windows:enable_overrun", "An operation that began in time may go on."),
}
ROLE_VERBS: dict[str, tuple[str, str]] = {
    "add-group": ("proj.roles:add_group", "Give a role to a group."),
    "add-policy": ("proj.roles:add_policy", "Add a line of policy to a role."),
    "create": ("proj.roles:create", "Add a role to a project."),
    "delete": ("proj.roles:delete", "Remove a role from a project."),
    "delete-token": ("proj.roles:delete_token", "Withdraw a token that an argocd-server made."),
    "get": ("proj.roles:get_role", "Show one role."),
    "list": ("proj.roles:list_roles", "List the roles of a project."),
    "list-tokens": ("proj.roles:list_tokens", "List the tokens that an argocd-server made for a role."),
    "remove-group": ("proj.roles:remove_group", "Take a role from a group."),
    "remove-policy": ("proj.roles:remove_policy", "Remove a line of policy from a role."),
}


@click.command(cls=LazyGroup, table=VERBS, context_settings=CONTEXT)
def proj() -> None:
    """Manage AppProjects, which limit what Applications may read and write, with the verbs and flags of argocd.

    \b
    Example:  syncline proj create team --src 'https://github.com/team/*' --dest https://kubernetes.default.svc,team
    """


@click.command(cls=LazyGroup, table=WINDOW_VERBS, context_settings=CONTEXT)
def windows() -> None:
    """Manage the sync windows of a project.

    \b
    Example:  syncline proj windows add team --kind deny --schedule '0 22 * * *' --duration 8h --applications '*'
    """


@click.command(cls=LazyGroup, table=ROLE_VERBS, context_settings=CONTEXT)
def role() -> None:
    """Manage roles of a project for an argocd-server beside Syncline; here Kubernetes RBAC decides.

    \b
    Example:  syncline proj role create team deployer
    """
