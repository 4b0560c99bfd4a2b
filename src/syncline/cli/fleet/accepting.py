"""``syncline cluster accept|deny|detach|sets``: who belongs to the hub.

Acceptance approves the certificate request of an agent after its subject, signer and user were checked
(``fleet/hub/registration/pending.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from syncline.assembly.inspection.clusters import counted
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.fleet.reading import all_of, hub_kind, one_of
from syncline.cli.frame.failure import FAILED, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents, print_names, print_table
from syncline.cli.views.fleet.clusters import request_table, set_rows
from syncline.fleet.conditions import find_condition
from syncline.fleet.hub.registration.leases import AVAILABLE
from syncline.fleet.hub.registration.pending import (
    BOOTSTRAP_USERS,
    Acceptance,
    Pending,
    acceptance,
    pending_requests,
    stage_of,
)
from syncline.kube import client
from syncline.kube.certificates import CSR, approved
from syncline.kube.client import PatchType, Request
from syncline.kube.kinds.managedaddons import MANAGED_ADDON
from syncline.kube.kinds.managedclusters import CLUSTER_SET, CLUSTER_SET_BINDING, MANAGED_CLUSTER
from syncline.kube.kinds.manifestworks import MANIFEST_WORK
from syncline.kube.objects import Obj, dig, is_terminating, name_of, uid_of
from syncline.views.texts import age

MANAGER = "syncline-cluster"
LIST = "syncline cluster list"


@click.command()
@click.argument("names", nargs=-1, metavar="CLUSTER...")
@click.option("--all-pending", is_flag=True, help="Every cluster that waits; they are shown first.")
@click.option("--request", "chosen", multiple=True, metavar="CSR", help="Approve this request; repeatable.")
@click.option("--requester", "users", multiple=True, metavar="USER", help="Agents join as this user too; repeatable.")
@click.option("--again", is_flag=True, help="A new certificate for a cluster that has joined, and lost its own.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@connection_options
def accept(
    names: tuple[str, ...],
    all_pending: bool,
    chosen: tuple[str, ...],
    users: tuple[str, ...],
    again: bool,
    yes: bool,
    kubeconfig: str | None,
    context: str | None,
) -> int:
    """Accept clusters to the hub: approve the certificate requests of their agents, and set hubAcceptsClient.

    A request is approved if it asks for an agent of just this cluster, from the signer of clients, and was made with
    the credentials that agents join with. Two requests for one name need a choice.

    \b
    Example:  syncline cluster accept cluster1
              syncline cluster accept --all-pending
    """
    if bool(names) == all_pending or (chosen and len(names) != 1):
        raise CommandFailed("give names of clusters, or --all-pending; --request goes with one name", USAGE)
    with Connection(kubeconfig, context) as link:
        pending = pending_requests(all_of(link, CSR), (*BOOTSTRAP_USERS, *users))
        clusters = _waiting(link, pending) if all_pending else [_cluster(link, one, pending) for one in names]
        if all_pending:
            _show(link, clusters, pending, ask=not yes)
        failed = False
        for cluster in clusters:
            decided = acceptance(cluster, pending, chosen, again=again)
            if decided.refused:
                failed = True
                click.echo(f"managedcluster/{decided.cluster} not accepted: {decided.refused}", err=True)
                continue
            _carry_out(link, decided)
    return FAILED if failed else 0


def _cluster(link: Connection, name: str, pending: Sequence[Pending]) -> Obj:
    answer = link.send(client.get(hub_kind(link, MANAGED_CLUSTER), "", name))
    if answer.status == 404 and any(one.cluster == name for one in pending):
        raise CommandFailed(
            f"ManagedCluster {name} does not exist, although an agent asks for a certificate in its name; the agent "
            "creates it first, or `kubectl create` a ManagedCluster of this name"
        )
    return one_of(link, MANAGED_CLUSTER, "", name, LIST)


def _waiting(link: Connection, pending: Sequence[Pending]) -> list[Obj]:
    """Return the clusters that are not accepted, or have a request that counts."""
    asking = {one.cluster for one in pending if not one.refused}
    found = [one for one in all_of(link, MANAGED_CLUSTER) if not is_terminating(one)]
    return [one for one in found if name_of(one) in asking or stage_of(one) == "pending"]


def _show(link: Connection, clusters: Sequence[Obj], pending: Sequence[Pending], *, ask: bool) -> None:
    names = [name_of(one) for one in clusters]
    if not names:
        click.echo("No cluster waits.", err=True)
        return
    mine = [one for one in pending if one.cluster in names]
    if mine:
        print(request_table(mine, link.now()))
    without = [one for one in names if one not in (each.cluster for each in mine)]
    if without:
        print(f"without a request: {', '.join(without)}")
    if ask:
        if not sys.stdin.isatty():
            raise CommandFailed("nothing was accepted: add --yes, or name the clusters", USAGE)
        click.confirm(f"Accept {', '.join(names)}?", abort=True)


def _carry_out(link: Connection, decided: Acceptance) -> None:
    for one in decided.approve:
        _approve(link, one)
        since = age(one.since, link.now())
        print(f"certificatesigningrequest/{one.name} approved: agent {one.agent}, asked by {one.user} {since} ago")
    for one in decided.passed_over:
        click.echo(f"certificatesigningrequest/{one.name} passed over: {one.refused}", err=True)
    if decided.accept:
        body = {"spec": {"hubAcceptsClient": True}}
        info = link.resource(MANAGED_CLUSTER)
        link.ask(client.patch(info, "", decided.cluster, PatchType.MERGE, body, field_manager=MANAGER))
    print(f"managedcluster/{decided.cluster} {'accepted' if decided.accept else 'was accepted before'}")
    if decided.approve:
        print(
            f"next: the hub makes namespace {decided.cluster} with the rights of the agent and its lease; the agent "
            f"takes its certificate and joins. See: syncline cluster get {decided.cluster}"
        )
    else:
        print(
            "next: no request of its agent is pending; when one comes, run this again. On the cluster: syncline join "
            f"--name {decided.cluster}"
        )


def _approve(link: Connection, one: Pending) -> None:
    """Approve the request that was checked: a write on its version, so that what replaced it is not approved."""
    info = link.resource(CSR)
    body = approved(one.csr, "AcceptedByUser", "approved by syncline cluster accept")
    link.ask(Request("PUT", f"{info.path()}/{one.name}/approval", {"fieldManager": MANAGER}, body=body))


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="CLUSTER...")
@connection_options
def deny(names: tuple[str, ...], kubeconfig: str | None, context: str | None) -> None:
    """Take the rights of clusters back: hubAcceptsClient becomes false, pending requests are denied.

    Nothing is deleted, on the hub or on the cluster; `syncline cluster accept` gives the rights back.

    \b
    Example:  syncline cluster deny cluster1
    """
    with Connection(kubeconfig, context) as link:
        pending = pending_requests(all_of(link, CSR))
        for name in names:
            one_of(link, MANAGED_CLUSTER, "", name, LIST)
            for request in pending:
                if request.cluster == name:
                    _deny(link, request)
                    print(f"certificatesigningrequest/{request.name} denied")
            body = {"spec": {"hubAcceptsClient": False}}
            link.ask(
                client.patch(link.resource(MANAGED_CLUSTER), "", name, PatchType.MERGE, body, field_manager=MANAGER)
            )
            works = counted(all_of(link, MANIFEST_WORK, name))
            print(f"managedcluster/{name} denied")
            kept = f"; works that stay, with their objects on the cluster: {works.total}" if works.total else ""
            print(
                f"next: the hub removes the rights of its agent, which may then only read its own ManagedCluster{kept}"
            )


def _deny(link: Connection, one: Pending) -> None:
    info = link.resource(CSR)
    fields = {"type": "Denied", "status": "True", "reason": "DeniedByUser", "message": "syncline cluster deny"}
    body = one.csr | {"status": (one.csr.get("status") or {}) | {"conditions": [fields]}}
    link.ask(Request("PUT", f"{info.path()}/{one.name}/approval", {"fieldManager": MANAGER}, body=body))


@click.command()
@click.argument("name", metavar="CLUSTER")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@connection_options
def detach(name: str, yes: bool, kubeconfig: str | None, context: str | None) -> None:
    """Remove a cluster from the hub: its works and what they made on the cluster, its add-ons, its rights.

    On the cluster, `syncline leave` does the same from the other side.

    \b
    Example:  syncline cluster detach cluster1
    """
    with Connection(kubeconfig, context) as link:
        found = one_of(link, MANAGED_CLUSTER, "", name, LIST)
        works = all_of(link, MANIFEST_WORK, name)
        addons = link.mapper.find(MANAGED_ADDON)
        extra = len(link.ask(client.list_(addons, name)).get("items") or []) if addons is not None else 0
        orphaned = [one for one in works if dig(one, "spec", "deleteOption", "propagationPolicy") == "Orphan"]
        print(
            f"managedcluster/{name}: works: {len(works)}, of which {len(orphaned)} leave their objects behind; "
            f"add-ons: {extra}"
        )
        if not yes and sys.stdin.isatty():
            click.confirm(f"Remove cluster {name} from the hub, and what its works made there?", abort=True)
        link.ask(client.delete(link.resource(MANAGED_CLUSTER), "", name, uid=uid_of(found)))
    print(f"managedcluster/{name} {'is being removed already' if is_terminating(found) else 'is being removed'}")
    print(_after_detaching(found, name, len(works)))


def _after_detaching(cluster: Obj, name: str, works: int) -> str:
    """Say what happens next, and what it waits for."""
    available = (find_condition(dig(cluster, "status", "conditions") or (), AVAILABLE) or {}).get("status")
    if works and available != "True":
        return (
            "next: its agent does not answer, and the works wait for it, the cluster with them. If it never comes "
            f"back: kubectl get manifestworks -n {name}, and remove their finalizer; what they made stays there"
        )
    waits = "its agent deletes what the works made, by cleanup priority, then " if works else ""
    return f"next: {waits}the hub removes its rights and the ManagedCluster; namespace {name} stays"


@click.command()
@output_option("wide", "json", "yaml", "name")
@connection_options
def sets(output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """List cluster sets: what selects their members, how many there are, which namespaces may select from them.

    \b
    Example:  syncline cluster sets -o wide
    """
    with Connection(kubeconfig, context) as link:
        found = all_of(link, CLUSTER_SET)
        clusters, bindings = all_of(link, MANAGED_CLUSTER), all_of(link, CLUSTER_SET_BINDING)
    if output == "name":
        print_names(f"managedclusterset.{CLUSTER_SET.group}", map(name_of, found))
    elif output in ("json", "yaml"):
        print_documents(found, output)
    else:
        print_table(set_rows(found, clusters, bindings, wide=output == "wide"), len(found), "ManagedClusterSets")
