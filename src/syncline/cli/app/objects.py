"""``syncline app get-resource``, ``patch-resource`` and ``delete-resource``: live objects of an Application.

They run with the user's rights. Objects that the project does not permit are neither patched nor deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from syncline.apply.diff import hide_secret
from syncline.argo.project import sync_permission
from syncline.cli.access.connection import Connection
from syncline.cli.app.actions import elsewhere, filters, live_objects, pick, project_of
from syncline.cli.app.spec.edit import parsed_patch
from syncline.cli.app.target import MANAGER, control_namespace, get_app, namespace_options, split
from syncline.cli.fleet.asking import about, asked, cluster_of, refuse_pulled, timeout_option
from syncline.cli.frame.failure import CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.fleet.pull.queries.model import Ask
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.objects import Obj, ObjectRef, dig, gvk_of, meta, name_of, namespace_of

kind_option = click.option("--kind", required=True, help="Kind of the object.")
all_option = click.option("--all", "every", is_flag=True, help="Every object that fits, not just one.")


@click.command("get-resource")
@click.argument("name")
@kind_option
@filters
@click.option("--project", default=None, help="Taken for compatibility; the Application knows its project.")
@click.option("--show-managed-fields", is_flag=True, help="Who owns which field, too.")
@click.option("--filter-fields", "fields", default="", metavar="A.B,C", help="Only these fields, with commas.")
@output_option("json", "yaml")
@timeout_option
@namespace_options
def get_resource(
    name: str, app_namespace: str, output: str | None, show_managed_fields: bool, fields: str, **given: Any
) -> None:
    """Print live objects of an Application. Values of Secrets are masked.

    \b
    Example:  syncline app get-resource shop --kind Deployment --resource-name web
    """
    where = split(name, app_namespace)
    with elsewhere(given, where) as (home, others):
        app = get_app(home, where)
        if cluster_of(app):
            select = ObjectRef(*(str(given[key] or "") for key in ("group", "kind", "namespace", "resource_name")))
            found = pick(
                asked(home, app, about(app, Ask.MANIFESTS, source="live", select=select), given["timeout"]), True
            )
        else:
            found = pick(list(live_objects(others.link_to(app), app, given)), True)
    paths = [tuple(path.strip().split(".")) for path in fields.split(",") if path.strip()]
    shown = [filtered(_shown(obj, show_managed_fields), paths) for obj in found]
    print_documents(shown[0] if len(shown) == 1 else shown, output or "yaml")


def filtered(obj: Obj, paths: Sequence[tuple[str, ...]]) -> Obj:
    """Return the name and the fields at ``paths``, in lists of each entry; the whole object without paths."""
    made: Any = {}
    for path in paths:
        made = _joined(made, _at(obj, path))
    return _joined(made, {"metadata": {"name": name_of(obj)}}) if paths else obj


def _at(value: Any, path: tuple[str, ...]) -> Any:
    """Return ``value`` reduced to the field at ``path``; None if it is missing."""
    if not path:
        return value
    if isinstance(value, list):
        return [found for found in (_at(one, path) for one in value) if found is not None] or None
    below = _at(value[path[0]], path[1:]) if isinstance(value, dict) and path[0] in value else None
    return None if below is None else {path[0]: below}


def _joined(one: Any, other: Any) -> Any:
    if other is None:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        return one | {key: _joined(one[key], value) if key in one else value for key, value in other.items()}
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [_joined(left, right) for left, right in zip(one, other, strict=True)]
    return other


def _shown(obj: Obj, managed: bool) -> Obj:
    masked = hide_secret(None, obj, ())[1] if (gvk_of(obj).group, gvk_of(obj).kind) == ("", "Secret") else obj
    assert masked is not None, "what is live stays so"
    metadata = {key: value for key, value in meta(masked).items() if managed or key != "managedFields"}
    return masked | {"metadata": metadata}


@click.command("patch-resource")
@click.argument("name")
@kind_option
@filters
@all_option
@click.option("--project", default=None, help="Taken for compatibility; the Application knows its project.")
@click.option("--patch", "text", required=True, help="The patch, as JSON or YAML.")
@click.option("--patch-type", type=click.Choice([one.value for one in PatchType]), default=PatchType.MERGE.value)
@namespace_options
def patch_resource(name: str, app_namespace: str, text: str, patch_type: str, every: bool, **given: Any) -> None:
    """Patch a live object of an Application.

    \b
    Example:  syncline app patch-resource shop --kind Deployment --resource-name web \\
                  --patch '{"spec": {"replicas": 2}}'
    """
    form = PatchType(patch_type)
    body = parsed_patch(text, list if form is PatchType.JSON else dict)

    def change(link: Connection, obj: Obj) -> None:
        info, where = link.resource(gvk_of(obj)), (namespace_of(obj), name_of(obj))
        # Only an apply may take over fields of others, and only if it requests that.
        link.ask(client.patch(info, *where, form, body, field_manager=MANAGER))

    _each(name, app_namespace, every, given, change, "patched")


@click.command("delete-resource")
@click.argument("name")
@kind_option
@filters
@all_option
@click.option("--project", default=None, help="Taken for compatibility; the Application knows its project.")
@click.option("--force", is_flag=True, help="Without a grace period.")
@click.option("--orphan", is_flag=True, help="Leave what it owns.")
@namespace_options
def delete_resource(name: str, app_namespace: str, force: bool, orphan: bool, every: bool, **given: Any) -> None:
    """Delete a live object of an Application.

    \b
    Example:  syncline app delete-resource shop --kind Pod --resource-name web-0
    """
    options: Obj = {"grace_period_s": 0} if force else {}
    policy = "Orphan" if orphan else "Background" if force else "Foreground"

    def change(link: Connection, obj: Obj) -> None:
        info = link.resource(gvk_of(obj))
        link.ask(client.delete(info, namespace_of(obj), name_of(obj), propagation=policy, **options))

    _each(name, app_namespace, every, given, change, "deleted")


def _each(
    name: str,
    namespace: str,
    every: bool,
    given: dict[str, Any],
    change: Callable[[Connection, Obj], None],
    did: str,
) -> None:
    """Change the matching objects; nothing is written unless the project permits all of them."""
    where = split(name, namespace)
    with elsewhere(given, where) as (home, others):
        app = get_app(home, where)
        refuse_pulled(app, "changing an object")
        link = others.link_to(app)
        found = pick(list(live_objects(link, app, given)), every)
        project = project_of(home, app, control_namespace(home, namespace_of(app)))
        place = dig(app, "spec", "destination", default={})
        for obj in found:
            refused = sync_permission(project, obj, link.resource(gvk_of(obj)), place)
            if refused:
                raise CommandFailed(refused)
        for obj in found:
            change(link, obj)
            print(f"Resource '{name_of(obj)}' {did}")
