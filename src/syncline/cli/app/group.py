"""The verbs of ``syncline app`` by name; each is imported when it is called."""

from __future__ import annotations

import click

from syncline.cli.frame.lazy import CONTEXT, LazyGroup

VERBS: dict[str, tuple[str, str]] = {
    "actions": ("app.actions:actions", "List and run actions on objects: restart, pause, scale and more."),
    "add-source": ("app.spec.sources:add_source", "Append a source to an Application with several."),
    "remove-source": ("app.spec.sources:remove_source", "Remove one of several sources."),
    "get-resource": ("app.objects:get_resource", "Print live objects of an Application."),
    "patch-resource": ("app.objects:patch_resource", "Patch a live object of an Application."),
    "delete-resource": ("app.objects:delete_resource", "Delete a live object of an Application."),
    "confirm-deletion": ("app.spec.edit:confirm_deletion", "Approve deletions that wait for a confirmation."),
    "create": ("app.spec.create:create", "Create an Application from flags or from a file."),
    "delete": ("app.delete:delete", "Delete Applications, with their resources unless --no-cascade."),
    "diff": ("app.diff:diff", "Show what differs between the source and the cluster."),
    "edit": ("app.spec.edit:edit", "Edit the spec of an Application in $EDITOR."),
    "get": ("app.show:get", "Show one Application, its last operation and its resources."),
    "history": ("app.history:history", "List what was deployed, oldest first."),
    "list": ("app.show:list_apps", "List Applications."),
    "logs": ("app.logs:logs", "Print the logs of an Application's pods."),
    "manifests": ("app.diff:manifests", "Print manifests as they come from the source, or as they are live."),
    "patch": ("app.spec.edit:patch", "Patch an Application with a JSON or merge patch."),
    "resources": ("app.resources:resources", "List an Application's objects and what they own."),
    "rollback": ("app.history:rollback", "Sync to what was deployed before."),
    "set": ("app.spec.settings:set_spec", "Change fields of an Application's spec."),
    "sync": ("app.sync:sync", "Sync an Application and watch its phases and waves."),
    "terminate-op": ("app.history:terminate_op", "End the operation in progress."),
    "unset": ("app.spec.settings:unset", "Remove overrides from an Application's source."),
    "wait": ("app.wait:wait", "Wait until Applications are Synced and Healthy and no operation runs."),
}


@click.command(cls=LazyGroup, table=VERBS, context_settings=CONTEXT)
def app() -> None:
    """Manage Applications, with the verbs and flags of argocd.

    \b
    Example:  syncline app create shop --repo https://github.com/org/shop --path deploy --dest-namespace shop
              syncline app diff shop && syncline app sync shop
    """
