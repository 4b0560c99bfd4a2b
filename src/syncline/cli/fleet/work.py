"""``syncline work``: what clusters get, from the manifest on the hub to the object and the refusal on the cluster."""

from __future__ import annotations

from datetime import datetime

import click

from syncline.assembly.inspection.pulled import pulled
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.fleet.reading import all_of, one_of, only_one
from syncline.cli.frame.failure import BLOCKED
from syncline.cli.frame.lazy import CONTEXT, Group
from syncline.cli.frame.output import output_option, print_documents, print_names, print_table
from syncline.cli.frame.terminal import one_cell
from syncline.cli.views.cause import describe_cause
from syncline.cli.views.fleet.work import (
    describe_work,
    manifest_table,
    outlook_obj,
    outlook_table,
    work_obj,
    work_rows,
    work_state,
    work_tree,
)
from syncline.explain.fleet.replicasets import outlook
from syncline.explain.graph import cause_to_obj, explain_object
from syncline.explain.view import View
from syncline.fleet.hub.replicasets.works import set_key, works_of_set
from syncline.fleet.hub.works.explaining import APPLIED, advice_for, manifest_states
from syncline.kube.kinds.manifestworks import MANIFEST_WORK, REPLICA_SET
from syncline.kube.objects import Obj, name_of, namespace_of

RESOURCE = f"manifestwork.{MANIFEST_WORK.group}"
LIST = "syncline work list"
OF_SETS = ("mwrs/", "manifestworkreplicaset/")
cluster_option = click.option("-n", "--namespace", default=None, help="Cluster, which is the namespace of its works.")


@click.group(cls=Group, context_settings=CONTEXT)
def work() -> None:
    """Show works: what clusters get, how it is there, and why it is not.

    \b
    Example:  syncline work list -n cluster1
              syncline work explain shop -n cluster1
    """


@work.command("list")
@cluster_option
@click.option("--set", "made_by", default="", metavar="[NAMESPACE/]NAME", help="Of this ManifestWorkReplicaSet.")
@click.option("--failed", is_flag=True, help="Only those that are not applied, not available or degraded.")
@output_option("wide", "json", "yaml", "name")
@connection_options
def list_works(
    namespace: str | None, made_by: str, failed: bool, output: str | None, kubeconfig: str | None, context: str | None
) -> None:
    """List works of all clusters, or of one: manifests, how many are applied and available, what made them.

    \b
    Example:  syncline work list --failed -o wide
    """
    with Connection(kubeconfig, context) as link:
        found, now = all_of(link, MANIFEST_WORK, namespace or ""), link.now()
        if made_by:
            space, _, name = made_by.rpartition("/")
            owner = one_of(link, REPLICA_SET, space or link.namespace, name, "kubectl get mwrs -A")
            found = list(works_of_set(owner, found))
    if failed:
        found = [one for one in found if work_state(one) in ("NotApplied", "NotAvailable", "Degraded")]
    if output == "name":
        print_names(RESOURCE, [f"{namespace_of(one)}/{name_of(one)}" for one in found])
    elif output in ("json", "yaml"):
        print_documents([work_obj(one) for one in found], output)
    else:
        print_table(work_rows(found, now, wide=output == "wide"), len(found), "ManifestWorks")


@work.command()
@click.argument("name", metavar="WORK")
@cluster_option
@output_option("json", "yaml", "name")
@connection_options
def get(name: str, namespace: str | None, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Show one work: each manifest with applied, available, feedback and message; its conditions.

    \b
    Example:  syncline work get shop -n cluster1
    """
    with Connection(kubeconfig, context) as link:
        found, now = _work(link, name, namespace), link.now()
    if output == "name":
        print_names(RESOURCE, [name])
    elif output == "json":
        print_documents(work_obj(found), output)
    elif output:
        print_documents(found, output)
    else:
        print(describe_work(found, now))


def _work(link: Connection, name: str, cluster: str | None) -> Obj:
    return only_one(link, MANIFEST_WORK, name, cluster, LIST, place="cluster")


@work.command()
@click.argument("name", metavar="WORK | mwrs/[NAMESPACE/]NAME")
@cluster_option
@output_option("json", "yaml")
@connection_options
def tree(name: str, namespace: str | None, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Show a work with the objects that it makes on its cluster, or a replica set with its works.

    \b
    Example:  syncline work tree shop -n cluster1
              syncline work tree mwrs/fleet/shop
    """
    with Connection(kubeconfig, context) as link:
        owner = _set(link, name, namespace)
        works = [_work(link, name, namespace)] if owner is None else works_of_set(owner, all_of(link, MANIFEST_WORK))
    if output:
        shown = [work_obj(one) for one in works]
        print_documents({"set": set_key(owner), "works": shown} if owner is not None else shown[0], output)
        return
    if owner is None:
        print("\n".join(map(one_cell, work_tree(works[0]))))
        return
    print(f"ManifestWorkReplicaSet {namespace_of(owner)}/{name_of(owner)}")
    for index, one in enumerate(works):
        last = index == len(works) - 1
        head, *below = work_tree(one)
        print(one_cell(f"{'└─' if last else '├─'}{head}"))
        print("\n".join(one_cell(f"{'  ' if last else '│ '}{line}") for line in below))


def _set(link: Connection, name: str, namespace: str | None) -> Obj | None:
    """Return the replica set that is named as ``mwrs/NAME``; None for a work."""
    prefix = next((one for one in OF_SETS if name.lower().startswith(one)), "")
    if not prefix:
        return None
    space, _, short = name[len(prefix) :].rpartition("/")
    return one_of(link, REPLICA_SET, space or namespace or link.namespace, short, "kubectl get mwrs -A")


@work.command()
@click.argument("name", metavar="WORK | mwrs/[NAMESPACE/]NAME")
@cluster_option
@output_option("json", "yaml")
@connection_options
def explain(name: str, namespace: str | None, output: str | None, kubeconfig: str | None, context: str | None) -> int:
    """Show what keeps a work from being applied, down to the refusal on its cluster, with the objects that would grant
    a missing right; of a replica set, how far each cluster is and what it waits for.

    \b
    Exit codes: 0 nothing blocks, 3 blocked
    Example:    syncline work explain shop -n cluster1
    """
    with Connection(kubeconfig, context) as link:
        obj = _set(link, name, namespace) or _work(link, name, namespace)
        cache = pulled(link, {})
        cache.put(MANIFEST_WORK.group_kind if obj["kind"] == MANIFEST_WORK.kind else REPLICA_SET.group_kind, obj)
        view = View(cache, link.now())
        found = explain_object(view, obj)
        rows = outlook(view, obj).clusters if obj["kind"] == REPLICA_SET.kind else ()
    for text in cache.sentences():
        click.echo(f"warning: {text}", err=True)
    is_work = obj["kind"] == MANIFEST_WORK.kind
    granting = _granting(obj, view.now) if is_work else []
    if output:
        document = cause_to_obj(found.cause) | {"blocked": found.blocked}
        document |= {"create": granting} if granting else {}
        print_documents(document | ({} if is_work else {"clusters": [outlook_obj(one) for one in rows]}), output)
        return BLOCKED if found.blocked else 0
    print(describe_cause(found.cause, view.now))
    print(f"\n{manifest_table(manifest_states(obj)) if is_work else outlook_table(rows)}")
    if granting:
        print(f"\nOn cluster {namespace_of(obj)} this would grant the missing right:\n---")
        _print_manifests(granting)
    return BLOCKED if found.blocked else 0


def _print_manifests(objects: list[Obj]) -> None:
    """Print objects as YAML documents that ``kubectl apply -f -`` takes."""
    for index, one in enumerate(objects):
        if index:
            print("---")
        print_documents(one, "yaml")


def _granting(obj: Obj, now: datetime) -> list[Obj]:
    found: list[Obj] = []
    for state in manifest_states(obj):
        if state.status(APPLIED) == "False":
            found += [one for one in advice_for(obj, state, now).objects if one not in found]
    return found
