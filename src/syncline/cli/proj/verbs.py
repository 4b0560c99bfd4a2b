"""``syncline proj create|list|get|delete`` and ``set|edit``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from syncline.cli.access.connection import Connection
from syncline.cli.frame.editing import edited
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.proj.entries import account_entry, key_id
from syncline.cli.proj.target import change_spec, check_project, get_project, namespace_options
from syncline.cli.views.project import describe_project, project_rows
from syncline.kube import client
from syncline.kube.kinds.argoproj import APP_PROJECT, APPLICATION
from syncline.kube.objects import Obj, dig, name_of, namespace_of

OPTIONS = (
    click.option("--description", default="", help="What it is for."),
    click.option("-s", "--src", "sources", multiple=True, metavar="URL", help="Allowed repository; repeatable."),
    click.option("-d", "--dest", "destinations", multiple=True, metavar="SERVER,NAMESPACE", help="Repeatable."),
    click.option("--source-namespaces", multiple=True, help="Namespace of Applications outside the control plane's."),
    click.option("--allow-cluster-resource", multiple=True, metavar="GROUP/KIND", help="Repeatable."),
    click.option("--deny-cluster-resource", multiple=True, metavar="GROUP/KIND", help="Repeatable."),
    click.option("--allow-namespaced-resource", multiple=True, metavar="GROUP/KIND", help="Repeatable."),
    click.option("--deny-namespaced-resource", multiple=True, metavar="GROUP/KIND", help="Repeatable."),
    click.option(
        "--dest-service-accounts", "accounts", multiple=True, metavar="SERVER,NAMESPACE,ACCOUNT", help="Repeatable."
    ),
    click.option("--signature-keys", "keys", multiple=True, metavar="KEY-ID", help="Trusted GnuPG key; repeatable."),
    click.option("--orphaned-resources", is_flag=True, help="Watch for objects that no Application tracks."),
    click.option("--orphaned-resources-warn", is_flag=True, help="And warn of them."),
)


def project_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of ``proj create`` and ``proj set`` for the fields of a project."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@click.command("set")
@click.argument("name")
@project_options
@namespace_options
def set_fields(name: str, **given: Any) -> None:
    """Change fields of a project; a list replaces the existing one.

    \b
    Example:  syncline proj set team --src 'https://github.com/team/*' --description 'of the team'
    """
    wanted = project_from_flags(name, given)["spec"]
    if not wanted:
        raise CommandFailed("say what to change, for example --description TEXT; see --help", USAGE)
    change_spec(given, name, lambda spec: spec | wanted)


@click.command()
@click.argument("name", required=False)
@click.option("-f", "--file", "file", type=click.Path(exists=True, dir_okay=False), help="Read the project from it.")
@project_options
@click.option("--upsert", is_flag=True, help="Change a project of this name.")
@namespace_options
def create(name: str | None, file: str | None, upsert: bool, **given: Any) -> None:
    """Create a project from flags or from a file.

    \b
    Example:  syncline proj create team --src 'https://github.com/team/*' \\
                  --dest https://kubernetes.default.svc,team-* --allow-cluster-resource /Namespace
    """
    namespace = given["namespace"]
    if (name is None) == (file is None):
        raise click.UsageError("give either NAME or -f FILE")
    wanted = from_file(Path(file)) if file else project_from_flags(str(name), given)
    wanted = check_project(wanted | {"metadata": {"namespace": namespace} | wanted["metadata"]})
    with Connection(given["kubeconfig"], given["context"]) as link:
        info = link.resource(APP_PROJECT)
        request = client.create(info, wanted, field_manager="syncline", field_validation="Strict")
        answer = link.send(request)
        if answer.status != 409:
            link.check(answer)
            print(f"project '{name_of(wanted)}' created")
            return
        known = get_project(link, namespace_of(wanted), name_of(wanted))
        if known.get("spec") == wanted["spec"]:
            print(f"project '{name_of(wanted)}' unchanged")
            return
        if not upsert:
            raise CommandFailed(
                "existing project spec is different, use upsert flag to force update: "
                f"--upsert changes '{name_of(wanted)}'"
            )
        link.ask(client.update(info, known | {"spec": wanted["spec"]}, field_manager="syncline"))
    print(f"project '{name_of(wanted)}' updated")


def from_file(path: Path) -> Obj:
    """Return the project in a manifest file. Raises CommandFailed."""
    from syncline.kube.yaml.loading import YamlError, load

    try:
        found = load(path.read_bytes(), file=str(path))
    except YamlError as error:
        raise CommandFailed(str(error)) from error
    if not isinstance(found, dict) or found.get("kind") != APP_PROJECT.kind or not name_of(found):
        raise CommandFailed(f"{path}: one object of kind AppProject with a name is wanted")
    return {"spec": {}} | found


def project_from_flags(name: str, given: dict[str, Any]) -> Obj:
    """Return the AppProject of ``proj create``, without lists that were not given."""
    spec: Obj = {
        "description": given["description"],
        "sourceRepos": list(given["sources"]),
        "destinations": [_destination(text) for text in given["destinations"]],
        "sourceNamespaces": list(given["source_namespaces"]),
        "clusterResourceWhitelist": [_kind(text) for text in given["allow_cluster_resource"]],
        "clusterResourceBlacklist": [_kind(text) for text in given["deny_cluster_resource"]],
        "namespaceResourceWhitelist": [_kind(text) for text in given["allow_namespaced_resource"]],
        "namespaceResourceBlacklist": [_kind(text) for text in given["deny_namespaced_resource"]],
        "destinationServiceAccounts": [_account(text) for text in given["accounts"]],
        "signatureKeys": [{"keyID": key_id(one)} for text in given["keys"] for one in text.split(",")],
    }
    spec = {key: value for key, value in spec.items() if value}
    if given["orphaned_resources"] or given["orphaned_resources_warn"]:
        spec["orphanedResources"] = {"warn": True} if given["orphaned_resources_warn"] else {}
    return {"apiVersion": APP_PROJECT.api_version, "kind": APP_PROJECT.kind, "metadata": {"name": name}, "spec": spec}


def _destination(text: str) -> Obj:
    server, comma, namespace = text.partition(",")
    if not comma:
        raise CommandFailed(f"--dest {text!r}: write SERVER,NAMESPACE", USAGE)
    place = {"server": server} if "://" in server or server == "*" else {"name": server}
    return {**place, "namespace": namespace}


def _account(text: str) -> Obj:
    parts = text.split(",")
    if len(parts) != 3 or not parts[0] or not parts[2]:
        raise CommandFailed(f"--dest-service-accounts {text!r}: write SERVER,NAMESPACE,ACCOUNT", USAGE)
    return account_entry(*parts)


def _kind(text: str) -> Obj:
    group, slash, kind = text.rpartition("/")
    if not slash or not kind:
        raise CommandFailed(f"{text!r}: write GROUP/KIND, for the core group /KIND", USAGE)
    return {"group": group, "kind": kind}


@click.command("list")
@output_option("name", "json", "yaml")
@namespace_options
def list_projects(output: str | None, namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """List projects.

    \b
    Example:  syncline proj list
    """
    with Connection(kubeconfig, context) as link:
        found = link.ask(client.list_(link.resource(APP_PROJECT), namespace)).get("items") or []
    if output in ("json", "yaml"):
        print_documents(found, output)
    elif output == "name":
        print("\n".join(name_of(one) for one in found))
    else:
        print(project_rows(found))


@click.command()
@click.argument("name")
@output_option("json", "yaml")
@namespace_options
def get(name: str, output: str | None, namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """Show one project.

    \b
    Example:  syncline proj get default
    """
    with Connection(kubeconfig, context) as link:
        found = get_project(link, namespace, name)
    if output:
        print_documents(found, output)
    else:
        print(describe_project(found))


@click.command()
@click.argument("name")
@namespace_options
def edit(name: str, namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """Edit the spec of a project in $EDITOR; nothing is written unless it changed.

    \b
    Example:  EDITOR=nano syncline proj edit team
    """
    with Connection(kubeconfig, context) as link:
        found = get_project(link, namespace, name)
        spec = edited(dig(found, "spec", default={}))
        if spec is None:
            print("Edit cancelled, no changes made.")
            return
        wanted = check_project(found | {"spec": spec})
        info = link.resource(APP_PROJECT)
        link.ask(client.update(info, wanted, field_manager="syncline", field_validation="Strict"))
    print(f"project '{name}' updated")


@click.command()
@click.argument("names", nargs=-1, required=True)
@namespace_options
def delete(names: tuple[str, ...], namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """Delete projects that no Application uses.

    \b
    Example:  syncline proj delete team
    """
    with Connection(kubeconfig, context) as link:
        apps = link.ask(client.list_(link.resource(APPLICATION))).get("items") or []
        for name in names:
            users = sorted(name_of(one) for one in apps if dig(one, "spec", "project", default="default") == name)
            if users:
                raise CommandFailed(
                    f"project '{name}' is referenced by {len(users)} applications ({', '.join(users[:3])}"
                    f"{', …' if len(users) > 3 else ''}); move them with `syncline app set APP --project OTHER`"
                )
            get_project(link, namespace, name)
            link.ask(client.delete(link.resource(APP_PROJECT), namespace, name))
            print(f"project '{name}' deleted")
