"""``syncline policy``: policies of a hub, on which clusters they hold, and why they do not."""

from __future__ import annotations

import click

from syncline.assembly.inspection.pulled import pulled
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.fleet.reading import all_of, namespace_option, one_of, only_one
from syncline.cli.frame.failure import BLOCKED
from syncline.cli.frame.lazy import CONTEXT, Group
from syncline.cli.frame.output import output_option, print_documents, print_names, print_table
from syncline.cli.views.cause import describe_cause
from syncline.cli.views.fleet.policy import describe_copy, describe_policy, is_good, policy_obj, policy_rows
from syncline.explain.graph import cause_to_obj, explain_object
from syncline.explain.view import View
from syncline.kube.kinds.governance import POLICY
from syncline.kube.objects import Obj, labels_of, name_of, namespace_of, ref_of
from syncline.patterns.policies.hub.replicating import full_name
from syncline.patterns.policies.names import ROOT_LABEL

RESOURCE = f"policy.{POLICY.group}"
LIST = "syncline policy list"


@click.group(cls=Group, context_settings=CONTEXT)
def policy() -> None:
    """Show policies: which clusters get them, whether these comply, and why not.

    \b
    Example:  syncline policy list
              syncline policy explain shop -n policies
    """


@policy.command("list")
@namespace_option
@click.option("--noncompliant", is_flag=True, help="Only those that do not hold everywhere.")
@click.option("--copies", is_flag=True, help="The copies in the namespaces of clusters, too.")
@output_option("wide", "json", "yaml", "name")
@connection_options
def list_policies(
    namespace: str | None,
    noncompliant: bool,
    copies: bool,
    output: str | None,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """List policies of all namespaces, or of one: what they do, whether clusters comply.

    On a managed cluster the policies that it has from its hub are listed.

    \b
    Example:  syncline policy list --noncompliant -o wide
    """
    with Connection(kubeconfig, context) as link:
        found, now = all_of(link, POLICY, namespace or ""), link.now()
    roots = [one for one in found if ROOT_LABEL not in labels_of(one)]
    shown = found if copies or not roots else roots
    shown = [one for one in shown if not noncompliant or not is_good(one)]
    if output == "name":
        print_names(RESOURCE, [f"{namespace_of(one)}/{name_of(one)}" for one in shown])
    elif output in ("json", "yaml"):
        print_documents([policy_obj(one, _copies(found, one)) for one in shown], output)
    else:
        print_table(policy_rows(shown, now, copies=found, wide=output == "wide"), len(shown), "Policies")


def _copies(policies: list[Obj], root: Obj) -> list[Obj]:
    return [one for one in policies if labels_of(one).get(ROOT_LABEL) == full_name(root)]


@policy.command()
@click.argument("name", metavar="POLICY")
@namespace_option
@click.option("--cluster", default="", help="Of this cluster: each template with its history.")
@output_option("json", "yaml", "name")
@connection_options
def get(
    name: str, namespace: str | None, cluster: str, output: str | None, kubeconfig: str | None, context: str | None
) -> None:
    """Show one policy: its bindings, and what each cluster reports; with --cluster its history there.

    \b
    Example:  syncline policy get shop -n policies
              syncline policy get shop -n policies --cluster cluster1
    """
    with Connection(kubeconfig, context) as link:
        root = _policy(link, name, namespace)
        if cluster:
            copy = one_of(link, POLICY, cluster, full_name(root), f"{LIST} -n {cluster}")
            _show_copy(copy, output, link)
            return
        copies, now = _copies(all_of(link, POLICY), root), link.now()
    if output == "name":
        print_names(RESOURCE, [name])
    elif output:
        print_documents(policy_obj(root, copies), output)
    elif ROOT_LABEL in labels_of(root):
        print(describe_copy(root, now))
    else:
        print(describe_policy(root, copies, now))


def _show_copy(copy: Obj, output: str | None, link: Connection) -> None:
    if output == "name":
        print_names(RESOURCE, [name_of(copy)])
    elif output:
        print_documents(copy, output)
    else:
        print(describe_copy(copy, link.now()))


def _policy(link: Connection, name: str, namespace: str | None) -> Obj:
    return only_one(link, POLICY, name, namespace, LIST)


@policy.command()
@click.argument("name", metavar="POLICY")
@namespace_option
@output_option("json", "yaml")
@connection_options
def explain(name: str, namespace: str | None, output: str | None, kubeconfig: str | None, context: str | None) -> int:
    """Show why a policy does not hold: bindings that choose no cluster, clusters that do not answer, what the others
    say of each template.

    \b
    Exit codes: 0 nothing blocks, 3 blocked
    Example:    syncline policy explain shop -n policies
    """
    with Connection(kubeconfig, context) as link:
        found = _policy(link, name, namespace)
        cache = pulled(link, {})
        cache.put(ref_of(found).group_kind, found)
        view = View(cache, link.now())
        explained = explain_object(view, found)
    for text in cache.sentences():
        click.echo(f"warning: {text}", err=True)
    if output:
        print_documents(cause_to_obj(explained.cause) | {"blocked": explained.blocked}, output)
    else:
        print(describe_cause(explained.cause, view.now))
    return BLOCKED if explained.blocked else 0
