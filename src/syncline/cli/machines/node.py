"""``syncline node``: shows nodes and their configs; adds, removes, reboots, fails and recovers simulated ones.

All of it is done by objects: a Node with the right annotations creates a machine, its deletion removes it, and
annotations control power and reboots. So kubectl or Git can do the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from syncline.base.clock import format_micro_time
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.frame.lazy import CONTEXT, Group
from syncline.cli.frame.output import output_option, print_documents, print_names, print_table
from syncline.cli.machines.nodeaccess import node_kubeconfig
from syncline.cli.machines.nodedrain import cordon, drain, uncordon
from syncline.cli.views.pool import describe_node, node_row, node_table, pool_of, roles_of
from syncline.cluster.machines.kubelet.node import MACHINE, node_object
from syncline.cluster.machines.kubelet.power import POWER, REBOOT, REBOOT_DONE, Switch
from syncline.cluster.machines.machine import MachineSpec
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG_NODE, MACHINE_CONFIG_POOL
from syncline.kube.objects import GVK, Obj, annotations_of, dig, name_of
from syncline.kube.selectors import label_key_problems, label_value_problems
from syncline.kube.text.quantity import QuantityError, parse_quantity

NODE = GVK("", "v1", "Node")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
MANAGER = "syncline-node"


@click.group(cls=Group, context_settings=CONTEXT)
def node() -> None:
    """List nodes with their pools and configs; cordon and drain them; add, remove, reboot, fail and recover simulated
    ones."""


for _command in (node_kubeconfig, cordon, drain, uncordon):
    node.add_command(_command)


def label_pairs(given: tuple[str, ...]) -> dict[str, str]:
    """Parse labels ``KEY=VALUE``. Raises CommandFailed."""
    pairs = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CommandFailed(f"--label {text}: write KEY=VALUE", USAGE)
        problems = [*label_key_problems(key), *label_value_problems(value)]
        if problems:
            raise CommandFailed(f"--label {text}: {problems[0]}", USAGE)
        pairs[key] = value
    return pairs


def _taint(text: str) -> dict[str, str]:
    """Parse a taint ``KEY[=VALUE]:EFFECT``, as kubectl writes it."""
    named, colon, effect = text.rpartition(":")
    key, _, value = named.partition("=")
    if not colon or not key or effect not in EFFECTS:
        raise CommandFailed(f"--taint {text}: write KEY[=VALUE]:EFFECT with {', '.join(EFFECTS)}", USAGE)
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def _quantity(option: str, text: str) -> str:
    try:
        parse_quantity(text)
    except QuantityError as error:
        raise CommandFailed(f"{option} {text}: {error}", USAGE) from error
    return text


@node.command("list")
@output_option("wide", "json", "yaml", "name")
@connection_options
def list_nodes(output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """List nodes: ready or not, their pool, and from which config to which they move.

    \b
    Example:  syncline node list
    """
    with Connection(kubeconfig, context) as link:
        nodes, pools = link.ask(client.list_(link.resource(NODE))).get("items") or [], _pools(link)
        now = link.now()
    if output == "name":
        print_names("node", map(name_of, nodes))
    elif output in ("json", "yaml"):
        print_documents([_row(one, pools) for one in nodes], output)
    else:
        print_table(node_table(nodes, pools, now, wide=output == "wide"), len(nodes), "nodes")


@node.command("get")
@click.argument("name")
@output_option("json", "yaml", "name")
@connection_options
def get_node(name: str, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Show one node: its pool, its configs, the phases of its update, and what keeps it.

    \b
    Example:  syncline node get worker-0
    """
    with Connection(kubeconfig, context) as link:
        found, pools, now = _node(link, name), _pools(link), link.now()
        kind = link.mapper.find(MACHINE_CONFIG_NODE)
        record = link.send(client.get(kind, "", name)) if kind is not None else None
        known = link.check(record) if record is not None and record.status != 404 else None
    if output == "name":
        print_names("node", [name])
    elif output:
        phases = dig(known, "status", "conditions", default=[])
        print_documents(_row(found, pools) | {"phases": phases}, output)
    else:
        print(describe_node(found, pools, known, now))


def _node(link: Connection, name: str) -> Obj:
    answer = link.send(client.get(link.resource(NODE), "", name))
    if answer.status == 404:
        raise CommandFailed(f"node {name} does not exist; `syncline node list` shows those that do")
    found: Obj = link.check(answer)
    return found


def _pools(link: Connection) -> list[Obj]:
    """Return the pools; empty if the cluster has no such kind."""
    kind = link.mapper.find(MACHINE_CONFIG_POOL)
    found: list[Obj] = link.ask(client.list_(kind)).get("items") or [] if kind is not None else []
    return found


def _row(one: Obj, pools: list[Obj]) -> Obj:
    return node_row(one) | {"pool": pool_of(one, pools), "roles": roles_of(one)}


@node.command()
@click.argument("name")
@click.option("--label", "labels", multiple=True, help="KEY=VALUE; repeatable.")
@click.option("--taint", "taints", multiple=True, help="KEY[=VALUE]:EFFECT; repeatable.")
@click.option("--zone", default="", help="topology.kubernetes.io/zone.")
@click.option("--cpu", default="8", show_default=True)
@click.option("--memory", default="32Gi", show_default=True)
@click.option("--arch", default="amd64", show_default=True)
@connection_options
def add(
    name: str,
    labels: tuple[str, ...],
    taints: tuple[str, ...],
    zone: str,
    cpu: str,
    memory: str,
    arch: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Add a simulated machine; its kubelet registers at once."""
    spec = MachineSpec(
        name,
        cpu=_quantity("--cpu", cpu),
        memory=_quantity("--memory", memory),
        arch=arch,
        zone=zone,
        labels=label_pairs(labels),
        taints=tuple(_taint(each) for each in taints),
    )
    with Connection(kubeconfig, context) as link:
        link.ask(client.create(link.resource(NODE), node_object(spec), field_manager=MANAGER))
    print(f"node/{name} added")


@node.command()
@click.argument("name")
@connection_options
def remove(name: str, kubeconfig: str | None, context: str | None) -> None:
    """Remove a machine with its Node.

    Its pods are deleted, and controllers recreate theirs elsewhere.
    """
    with Connection(kubeconfig, context) as link:
        _simulated(link, name)
        link.ask(client.delete(link.resource(NODE), "", name))
    print(f"node/{name} removed")


@node.command()
@click.argument("name")
@click.option("--wait", is_flag=True, help="Until it is back and Ready.")
@connection_options
def reboot(name: str, wait: bool, kubeconfig: str | None, context: str | None) -> None:
    """Reboot a machine.

    It stops in order, boots with a new boot id, and its pods start again.
    """
    with Connection(kubeconfig, context) as link:
        _simulated(link, name)
        request = format_micro_time(link.now())
        changed = _annotate(link, name, {REBOOT: request})
        print(f"node/{name} reboots", flush=True)
        if wait:
            _wait_until(link, changed, lambda observed: annotations_of(observed).get(REBOOT_DONE) == request)
            print(f"node/{name} is back and Ready")


@node.command()
@click.argument("name")
@connection_options
def fail(name: str, kubeconfig: str | None, context: str | None) -> None:
    """Cut the power of a machine.

    It stops without notice, like a broken one.
    """
    with Connection(kubeconfig, context) as link:
        _simulated(link, name)
        _annotate(link, name, {POWER: Switch.OFF.value})
    print(f"node/{name} failed; `syncline node recover {name}` gives its power back")


@node.command()
@click.argument("name")
@click.option("--wait", is_flag=True, help="Until it is back and Ready.")
@connection_options
def recover(name: str, wait: bool, kubeconfig: str | None, context: str | None) -> None:
    """Restore the power of a failed machine: it boots."""
    with Connection(kubeconfig, context) as link:
        before = _simulated(link, name)
        if annotations_of(before).get(POWER) != Switch.OFF:
            print(f"node/{name} has power already")
            return
        changed = _annotate(link, name, {POWER: Switch.ON.value})
        print(f"node/{name} boots", flush=True)
        if wait:
            old = dig(before, "status", "nodeInfo", "bootID")
            _wait_until(link, changed, lambda observed: dig(observed, "status", "nodeInfo", "bootID") != old)
            print(f"node/{name} is back and Ready")


def _simulated(link: Connection, name: str) -> Obj:
    """Return the Node. Raises CommandFailed if it is not a simulated machine."""
    found = _node(link, name)
    if MACHINE not in annotations_of(found):
        raise CommandFailed(f"node {name} has no annotation {MACHINE}: it is no simulated machine")
    return found


def _annotate(link: Connection, name: str, annotations: dict[str, str]) -> Obj:
    body = {"metadata": {"annotations": annotations}}
    request = client.patch(link.resource(NODE), "", name, PatchType.MERGE, body, field_manager=MANAGER)
    changed: Obj = link.ask(request)
    return changed


def _wait_until(link: Connection, changed: Obj, has_booted: Callable[[Obj], bool]) -> None:
    """Wait until the node has booted and is Ready. Raises CommandFailed if the server ends the watch before."""
    name, since = changed["metadata"]["name"], changed["metadata"]["resourceVersion"]
    watched = client.watch(link.resource(NODE), resource_version=since, field_selector=f"metadata.name={name}")
    for event in link.watch(watched):
        observed: Any = event["object"]
        if event["type"] == "DELETED":
            raise CommandFailed(f"node {name} was deleted while it booted")
        if has_booted(observed) and _is_ready(observed):
            return
    raise CommandFailed(f"the server ended the watch before node {name} was back; `kubectl get node {name}` shows it")


def _is_ready(observed: Obj) -> bool:
    return any(
        c["type"] == "Ready" and c["status"] == "True" for c in dig(observed, "status", "conditions", default=[])
    )
