"""``syncline admin app|proj|repo|cluster generate-spec``: prints the objects of the create and add commands as YAML."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from syncline.argo.stores.secrets import repository_secret_name, secret_object
from syncline.cli.admin.files import written
from syncline.cli.app.spec.create import create as create_app
from syncline.cli.app.spec.create import from_flags
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.output import print_documents
from syncline.cli.proj.verbs import create as create_project
from syncline.cli.proj.verbs import project_from_flags
from syncline.cli.remotes.cluster import add as add_cluster
from syncline.cli.remotes.cluster import cluster_object
from syncline.cli.remotes.repo import add as add_repository
from syncline.cli.remotes.repo import repository_fields
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.objects import Obj

FORMS = click.Choice(["yaml", "json"])
OF_CLUSTERS = ("kubeconfig", "context", "upsert", "validate", "file", "yes")
"""Options that only matter when writing to a cluster."""


def _command(made: Callable[[str, dict[str, Any]], Obj], of: click.Command, about: str, name: str) -> click.Command:
    """Return a command with the flags of ``of`` and those common to these commands."""
    example = {"app": "shop --repo https://github.com/org/shop --path deploy", "proj": "team --src '*'"}.get(
        name, "URL"
    )

    @click.command("generate-spec", help=f"{about}\n\n\b\nExample:  syncline admin {name} generate-spec {example}")
    @click.option("-f", "--file", "file", type=click.Path(dir_okay=False, path_type=Path), help="Change this manifest.")
    @click.option("-i", "--inline", is_flag=True, help="Write it back into --file.")
    @click.option("-o", "--output", type=FORMS, default="yaml", show_default=True)
    def command(file: Path | None, inline: bool, output: str, **given: Any) -> None:
        if inline and file is None:
            raise CommandFailed("--inline writes back into --file; name it", USAGE)
        found = made("" if file is None else str(file), given)
        if inline and file is not None:
            written(file, [found], output)
        else:
            print_documents(found, output)

    taken = {param.name for param in command.params}
    command.params = [param for param in of.params if param.name not in {*taken, *OF_CLUSTERS}] + command.params
    return command


def _app(file: str, given: dict[str, Any]) -> Obj:
    from syncline.cli.app.spec.create import applications_in, with_overrides

    namespace, name = given["app_namespace"], given["name"] or given["named"]
    if not file:
        return from_flags(name, namespace, given)
    read = applications_in(Path(file), namespace)
    if len(read) != 1:
        raise CommandFailed(f"{file}: found {len(read)} Applications; one is wanted", USAGE)
    return with_overrides(read[0], name, "", given, single=True)


def _project(file: str, given: dict[str, Any]) -> Obj:
    from syncline.cli.proj.verbs import from_file

    flags = project_from_flags(given.get("name") or "", given)
    if not file:
        if not given.get("name"):
            raise CommandFailed("give PROJECT, or --file FILE", USAGE)
        return flags
    known = from_file(Path(file))
    return known | {"spec": known["spec"] | flags["spec"]}


def _readable(secret: Obj) -> Obj:
    """Return the Secret with plain values (``stringData``), for users who encrypt it in Git."""
    texts = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    return {key: value for key, value in secret.items() if key != "data"} | {"stringData": texts}


def _repository(file: str, given: dict[str, Any]) -> Obj:
    _without_file(file)
    name = repository_secret_name(given["url"], given["project"])
    fields = repository_fields(given["url"], given)
    return _readable(secret_object("repository", given["namespace"], name, fields))


def _cluster(file: str, given: dict[str, Any]) -> Obj:
    _without_file(file)
    return _readable(cluster_object(given["wanted"], given["source"], given["namespace"], given))


def _without_file(file: str) -> None:
    if file:
        raise CommandFailed("--file is for Applications and projects; the flags say all of a Secret", USAGE)


app_spec = _command(_app, create_app, f"Print an {APPLICATION.kind} as `app create` would write it.", "app")
proj_spec = _command(_project, create_project, f"Print an {APP_PROJECT.kind} as `proj create` would write it.", "proj")
repo_spec = _command(
    _repository, add_repository, "Print a Secret as `repo add` would write it, its credentials readable.", "repo"
)
cluster_spec = _command(
    _cluster, add_cluster, "Print a Secret as `cluster add` would write it, its credentials readable.", "cluster"
)
