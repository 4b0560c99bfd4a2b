"""``syncline cluster``: destinations of Applications and clusters of a hub, in one list.

A cluster that is both has one row: REGISTERED in Argo CD, JOINED to the hub. What is of the hub alone is in
``cli/fleet``.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from syncline.argo.application import IN_CLUSTER_NAME, IN_CLUSTER_SERVER
from syncline.argo.settings import CONFIG_MAP as SETTINGS_MAP
from syncline.argo.settings import parse_system
from syncline.argo.stores.secrets import cluster_secret_name, secret_object
from syncline.cli.access.connection import Connection
from syncline.cli.access.declared import SECRET, declared, namespace_options, plain_fields, remove, write
from syncline.cli.frame.arguments import did_you_mean
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.lazy import CONTEXT, LazyGroup
from syncline.cli.frame.output import output_option, print_documents
from syncline.cli.views.repository import Destination, cluster_rows
from syncline.fleet.hub.registration.pending import stage_of
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.objects import GVK, GroupKind, Obj, dig, name_of, namespace_of
from syncline.kube.transport.kubeconfig import ClusterAccess, KubeconfigError, load_kubeconfig

CONFIG_MAP = GVK("", "v1", "ConfigMap")
MANAGED_CLUSTER = GroupKind("cluster.open-cluster-management.io", "ManagedCluster")
AVAILABLE = {"True": "Successful", "False": "Failed"}


VERBS: dict[str, tuple[str, str]] = {
    "accept": ("fleet.accepting:accept", "Accept clusters to the hub: approve their requests, set hubAcceptsClient."),
    "add": ("remotes.cluster:add", "Declare the cluster of a kubeconfig's context as a destination."),
    "deny": ("fleet.accepting:deny", "Take the rights of clusters back; nothing is deleted."),
    "detach": ("fleet.accepting:detach", "Remove a cluster from the hub, and what its works made there."),
    "get": ("remotes.cluster:get", "Show one cluster, without its credentials."),
    "list": ("remotes.cluster:list_clusters", "List destinations and clusters of the hub."),
    "rm": ("remotes.cluster:rm", "Remove a declared destination; what was synced there stays."),
    "rotate-auth": ("remotes.cluster:rotate_auth", "Refused: credentials belong to who made them."),
    "set": ("remotes.cluster:set_cluster", "Change the name, the namespaces or the labels of a destination."),
    "sets": ("fleet.accepting:sets", "List cluster sets with their members and bindings."),
}


@click.command(cls=LazyGroup, table=VERBS, context_settings=CONTEXT)
def cluster() -> None:
    """Manage clusters in both senses: destinations that Applications may name (REGISTERED, as argocd has them), and
    clusters whose agent has joined this hub (JOINED, as Open Cluster Management has them).

    \b
    Example:  syncline cluster list
              syncline cluster accept cluster1
    """


@click.command()
@click.argument("wanted", metavar="CONTEXT")
@click.option("--name", default="", help="Name of the cluster [default: that of the context].")
@click.option("--from", "source", default=None, help="Kubeconfig with the context [default: $KUBECONFIG].")
@click.option("--namespace", "namespaces", multiple=True, help="Manage only this namespace; repeatable.")
@click.option("--cluster-resources", is_flag=True, help="With --namespace: manage cluster-scoped objects too.")
@click.option("--project", default="", help="Only for Applications of this project.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label of its Secret; repeatable.")
@click.option("--annotation", "annotations", multiple=True, metavar="KEY=VALUE", help="Annotation; repeatable.")
@click.option("--shard", type=click.IntRange(min=0), default=None, help="For an Argo CD beside us.")
@click.option("--in-cluster", is_flag=True, help="It is the cluster of the controllers, by its own address.")
@click.option("--proxy-url", default="", help="Reach it by this proxy [default: the kubeconfig's].")
@click.option("--server-proxy-url", default=None, help="The same for the controllers alone; empty for none.")
@click.option("--disable-compression", is_flag=True, help="For an Argo CD beside us.")
@click.option("-y", "--yes", is_flag=True, help="Taken for compatibility; nothing is asked.")
@click.option("--upsert", is_flag=True, help="Change what is declared for this server.")
@namespace_options
def add(wanted: str, source: str | None, upsert: bool, namespace: str, **given: Any) -> None:
    """Declare the cluster of a kubeconfig's context as a destination.

    The credentials of the context are stored in a Secret of the control namespace; no service account is made in the
    other cluster. Better give a context of a service account that has the rights which syncs need.

    \b
    Example:  syncline cluster add prod --from ~/.kube/config --name prod-eu
    """
    secret = cluster_object(wanted, source, namespace, given)
    server = plain_fields(secret)["server"]
    with Connection(given["kubeconfig"], given["context"]) as link:
        if server.rstrip("/") == IN_CLUSTER_SERVER and _is_disabled(link, namespace):
            raise CommandFailed(
                f"cannot register cluster: in-cluster has been disabled (cluster.inClusterEnabled of {SETTINGS_MAP})"
            )
        did = write(link, secret, upsert=upsert, what="cluster")
    print(f"Cluster '{server}' {'added' if did == 'created' else did}")


def cluster_object(wanted: str, source: str | None, namespace: str, given: dict[str, Any]) -> Obj:
    """Return the Secret that declares the cluster of context ``wanted``. Raises CommandFailed."""
    try:
        access = load_kubeconfig(source, wanted)
    except (KubeconfigError, OSError) as error:
        raise CommandFailed(str(error)) from error
    proxy = given["proxy_url"] or access.proxy_url
    proxy = proxy if given["server_proxy_url"] is None else given["server_proxy_url"]
    server = IN_CLUSTER_SERVER if given["in_cluster"] else access.server
    access = replace(access, proxy_url=proxy, server=server)
    fields = secret_fields(access, given["name"] or wanted, compressed=not given["disable_compression"])
    fields |= {"shard": str(given["shard"])} if given["shard"] is not None else {}
    fields |= {"project": given["project"], "namespaces": ",".join(given["namespaces"])}
    fields |= {"clusterResources": "true"} if given["cluster_resources"] else {}
    secret = secret_object("cluster", namespace, cluster_secret_name(access.server), fields)
    for kind in ("labels", "annotations"):
        secret["metadata"][kind] |= _pairs(kind, given[kind])
    return secret


def secret_fields(access: ClusterAccess, name: str, *, compressed: bool = True) -> dict[str, str]:
    """Return the fields of a cluster Secret; ``config`` is JSON in Argo CD's form (``ClusterConfig``)."""
    tls: Obj = {"insecure": access.skip_tls_verify, "serverName": access.tls_server_name}
    if access.ca_pem and not access.skip_tls_verify:
        tls["caData"] = _encoded(access.ca_pem)
    if access.certificate_pem:
        tls["certData"] = _encoded(access.certificate_pem)
    if access.key_pem is not None:
        tls["keyData"] = _encoded(access.key_pem.reveal())
    config: Obj = {"tlsClientConfig": {key: value for key, value in tls.items() if value != ""}}
    config |= {"proxyUrl": access.proxy_url} if access.proxy_url else {}
    config |= {} if compressed else {"disableCompression": True}
    if access.token is not None:
        config["bearerToken"] = access.token.reveal()
    if access.token_file is not None:
        config["bearerToken"] = access.token_file.read_text(encoding="utf-8").strip()
    if "bearerToken" not in config and "keyData" not in config["tlsClientConfig"]:
        raise CommandFailed(
            f"context '{access.context}' has neither a token nor a client certificate that could be stored; "
            "make a service account there and give a context that uses its token"
        )
    return {"name": name, "server": access.server, "config": json.dumps(config, sort_keys=True)}


def _pairs(field: str, given: tuple[str, ...]) -> dict[str, str]:
    pairs = [text.partition("=") for text in given]
    wrong = next((key for key, equals, _ in pairs if not key or not equals), None)
    if wrong is not None:
        raise CommandFailed(f"--{field.rstrip('s')} {wrong}: write KEY=VALUE", USAGE)
    return {key: value for key, _, value in pairs}


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@click.command("list")
@output_option("server", "wide", "json", "yaml")
@namespace_options
def list_clusters(output: str | None, namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """List destinations (REGISTERED: Applications may name them) and clusters of the hub (JOINED: their agent has).
    STATUS of other clusters is the last known one: no connection is made. `-o wide` adds the table of `syncline fleet`.

    \b
    Example:  syncline cluster list -o yaml
    """
    with Connection(kubeconfig, context) as link:
        found = _all(link, namespace)
        if output == "wide" and any(one.joined for one in found):
            from syncline.cli.fleet.status import states_of
            from syncline.cli.views.fleet.clusters import fleet_table

            print(f"{cluster_rows(found)}\n\n{fleet_table(states_of(link), link.now(), wide=True)}")
            return
    if output in ("json", "yaml"):
        print_documents([one.to_obj() for one in found], output)
    elif output == "server":
        print("\n".join(one.server for one in found))
    else:
        print(cluster_rows(found))


@click.command()
@click.argument("wanted", metavar="SERVER | NAME")
@output_option("json", "yaml")
@namespace_options
def get(wanted: str, output: str | None, namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """Show one cluster, without its credentials; of a cluster of the hub also its conditions, works and requests.

    \b
    Example:  syncline cluster get in-cluster
    """
    with Connection(kubeconfig, context) as link:
        every = _all(link, namespace)
        found = [one for one in every if wanted.rstrip("/") in (one.server.rstrip("/"), one.name)]
        if found and found[0].joined:
            _print_joined(link, found[0], output)
            return
    if not found:
        near = did_you_mean(wanted, [one.name for one in every])
        raise CommandFailed(f"cluster '{wanted}' is not known; `syncline cluster list` shows those that are.{near}")
    print_documents(found[0].to_obj(), output or "yaml")


def _print_joined(link: Connection, found: Destination, output: str | None) -> None:
    from syncline.cli.fleet.status import states_of
    from syncline.cli.views.fleet.clusters import describe_cluster, fleet_obj

    state = next((one for one in states_of(link) if one.name == found.name), None)
    if state is None:
        raise CommandFailed(f"ManagedCluster {found.name} was deleted a moment ago")
    from syncline.cli.fleet.applications import applications_obj, applications_on, applications_text

    pulled_ones = applications_on(link, found.name)
    if output:
        managed = fleet_obj(state) | {"applications": applications_obj(pulled_ones)}
        print_documents(found.to_obj() | {"managed": managed}, output)
        return
    print(describe_cluster(state, link.now(), applications_text(pulled_ones)))
    if found.registered:
        print(f"\nRegistered in Argo CD as destination {found.name}: {found.server}")


@click.command()
@click.argument("wanted", metavar="SERVER | NAME")
@click.option("-y", "--yes", is_flag=True, help="Taken for compatibility; nothing is asked.")
@namespace_options
def rm(wanted: str, yes: bool, namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """Remove a declared destination; what was synced there stays.

    \b
    Example:  syncline cluster rm prod-eu
    """
    with Connection(kubeconfig, context) as link:
        remove(link, _declared_as(link, namespace, wanted))
    print(f"Cluster '{wanted}' removed")


@click.command("set")
@click.argument("wanted", metavar="SERVER | NAME")
@click.option("--name", default="", help="A new name.")
@click.option("--namespace", "namespaces", multiple=True, help="Manage only this namespace, '*' for all; repeatable.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="Label of its Secret; repeatable.")
@click.option("--annotation", "annotations", multiple=True, metavar="KEY=VALUE", help="Annotation; repeatable.")
@namespace_options
def set_cluster(wanted: str, name: str, namespace: str, **given: Any) -> None:
    """Change the name, the namespaces or the labels of a declared destination.

    \b
    Example:  syncline cluster set prod --name prod-eu --label region=eu
    """
    fields = {"name": name} if name else {}
    if given["namespaces"]:
        fields["namespaces"] = "" if "*" in given["namespaces"] else ",".join(given["namespaces"])
    metadata = {key: _pairs(key, given[key]) for key in ("labels", "annotations") if given[key]}
    body: Obj = {"data": {key: _encoded(value) for key, value in fields.items()}, "metadata": metadata}
    with Connection(given["kubeconfig"], given["context"]) as link:
        secret = _declared_as(link, namespace, wanted)
        info = link.resource(SECRET)
        link.ask(client.patch(info, namespace_of(secret), name_of(secret), PatchType.MERGE, body))
    print(f"Cluster '{wanted}' updated.")


@click.command("rotate-auth")
@click.argument("wanted", metavar="SERVER | NAME")
@namespace_options
def rotate_auth(wanted: str, namespace: str, kubeconfig: str | None, context: str | None) -> None:
    """Refused: credentials belong to who made them. Make new ones there, and store them.

    \b
    Example:  syncline cluster rotate-auth prod
    """
    with Connection(kubeconfig, context) as link:
        _declared_as(link, namespace, wanted)
    raise CommandFailed(
        f"cluster '{wanted}': no service account was made there, so none can be rotated; make new credentials and "
        "store them with `syncline cluster add CONTEXT --upsert`"
    )


def _declared_as(link: Connection, namespace: str, wanted: str) -> Obj:
    known = declared(link, namespace, "cluster")
    for secret in known:
        shown = plain_fields(secret)
        if wanted.rstrip("/") in (shown.get("server", "").rstrip("/"), shown.get("name")):
            return secret
    near = did_you_mean(wanted, [plain_fields(one).get("name", "") for one in known])
    raise CommandFailed(f"cluster '{wanted}' is not declared; `syncline cluster list` shows those that are.{near}")


def _all(link: Connection, namespace: str) -> list[Destination]:
    found = [declared_cluster(secret) for secret in declared(link, namespace, "cluster")]
    if _is_disabled(link, namespace):
        found = [one for one in found if one.server.rstrip("/") != IN_CLUSTER_SERVER]
    elif not any(one.server.rstrip("/") == IN_CLUSTER_SERVER for one in found):
        found.insert(0, _here(link))
    info = link.mapper.preferred(MANAGED_CLUSTER)
    managed = (link.ask(client.list_(info)).get("items") or []) if info is not None else []
    return merged(found, [managed_cluster(one) for one in sorted(managed, key=name_of)])


def merged(declared_ones: Sequence[Destination], managed: Sequence[Destination]) -> list[Destination]:
    """Return both lists as one: a destination with the name of a cluster of the hub is that cluster, as what makes
    destinations of a Placement's clusters names them."""
    joined = {one.name: one for one in managed}
    known = {one.name for one in declared_ones}
    both = [
        replace(one, joined=mine.joined, status=mine.status, version=mine.version, message=mine.message)
        if (mine := joined.get(one.name)) is not None
        else one
        for one in declared_ones
    ]
    return both + [one for one in managed if one.name not in known]


def _is_disabled(link: Connection, namespace: str) -> bool:
    """Return whether the settings disable the Applications' own cluster; False if they cannot be read."""
    answer = link.send(client.get(link.resource(CONFIG_MAP), namespace, SETTINGS_MAP))
    return answer.ok and not parse_system(answer.obj.get("data") or {}).in_cluster


def _here(link: Connection) -> Destination:
    """Return the connected cluster, which Applications know as in-cluster."""
    answer = link.send(client.Request("GET", "/version"))
    version = str(dig(answer.obj, "gitVersion", default="")) if answer.ok else ""
    status = "Successful" if answer.ok else "Failed"
    return Destination(IN_CLUSTER_SERVER, IN_CLUSTER_NAME, version.removeprefix("v"), status)


def declared_cluster(secret: Obj) -> Destination:
    """Return a destination from its Secret."""
    shown = plain_fields(secret)
    namespaces = tuple(part.strip() for part in shown.get("namespaces", "").split(",") if part.strip())
    server = shown.get("server", "")
    return Destination(server, shown.get("name") or server, project=shown.get("project", ""), namespaces=namespaces)


def managed_cluster(obj: Obj) -> Destination:
    """Return a row for a cluster of the hub; its status is the condition Available."""
    urls = [str(one.get("url") or "") for one in dig(obj, "spec", "managedClusterClientConfigs", default=[])]
    conditions = {one.get("type"): one for one in dig(obj, "status", "conditions", default=[])}
    available = conditions.get("ManagedClusterConditionAvailable") or {}
    return Destination(
        server=urls[0] if urls else "",
        name=name_of(obj),
        version=str(dig(obj, "status", "version", "kubernetes", default="")).removeprefix("v"),
        status=AVAILABLE.get(str(available.get("status")), "Unknown"),
        message=str(available.get("message") or ""),
        registered=False,
        joined=stage_of(obj),
    )
