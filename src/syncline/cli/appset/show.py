"""``syncline appset list`` and ``appset get``."""

from __future__ import annotations

import click

from syncline.cli.access.connection import Connection
from syncline.cli.app.target import CONTROL_NAMESPACE
from syncline.cli.appset.target import get_set, place_of, set_options
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.application import parameter_rows, set_ref_of
from syncline.cli.views.appset import describe_set, qualified, set_rows
from syncline.kube import client
from syncline.kube.kinds.applicationset import APPLICATION_SET
from syncline.kube.kinds.argoproj import APPLICATION
from syncline.kube.objects import dig, name_of, namespace_of, ref_of


@click.command("list")
@click.option("-p", "--project", "projects", multiple=True, help="Only with this project in the template; repeatable.")
@click.option("-l", "--selector", default="", help="Label selector.")
@output_option("wide", "name", "json", "yaml")
@set_options("Only in this namespace [default: every one you may list].")
def list_sets(
    projects: tuple[str, ...],
    selector: str,
    output: str | None,
    namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """List ApplicationSets.

    \b
    Example:  syncline appset list -o wide -p default
    """
    with Connection(kubeconfig, context) as link:
        info = link.resource(APPLICATION_SET)
        answer = link.send(client.list_(info, namespace, label_selector=selector))
        if answer.status == 403 and not namespace:
            click.echo(f"only namespace {CONTROL_NAMESPACE} is listed: {dig(answer.obj, 'message')}", err=True)
            answer = link.send(client.list_(info, CONTROL_NAMESPACE, label_selector=selector))
        found = link.check(answer).get("items") or []
    project = ("spec", "template", "spec", "project")
    found = sorted((one for one in found if not projects or dig(one, *project) in projects), key=name_of)
    if output in ("json", "yaml"):
        kind = {"apiVersion": APPLICATION_SET.api_version, "kind": APPLICATION_SET.kind}
        print_documents([kind | one for one in found], output)
    elif output == "name":
        for one in found:
            print(qualified(one))
    else:
        print(set_rows(found, wide=output == "wide"))


@click.command()
@click.argument("name")
@click.option("--show-params", is_flag=True, help="Also the Helm parameters of the template's source.")
@output_option("wide", "json", "yaml")
@set_options("Its namespace; NAMESPACE/NAME wins [default: argocd].")
def get(
    name: str, show_params: bool, output: str | None, namespace: str, kubeconfig: str | None, context: str | None
) -> None:
    """Show one ApplicationSet, its conditions, the steps of its rollout and its Applications.

    \b
    Example:  syncline appset get fleet
              syncline appset get team/fleet -o yaml
    """
    with Connection(kubeconfig, context) as link:
        found = get_set(link, place_of(name, namespace))
        if output in ("json", "yaml"):
            print_documents(found, output)
            return
        # The status of the set has their state of its last reconcile.
        answer = link.send(client.list_(link.resource(APPLICATION), namespace_of(found)))
        apps = (answer.obj.get("items") or []) if answer.ok else []
    print(describe_set(found, [one for one in apps if set_ref_of(one) == ref_of(found)]))
    if show_params:
        source = dig(found, "spec", "template", "spec", "source", default={}) or {}
        print(f"\n{parameter_rows(source)}")
