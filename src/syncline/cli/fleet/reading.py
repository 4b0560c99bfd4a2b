"""Reads the kinds of a hub for commands, and reports what is not there or may not be read."""

from __future__ import annotations

from collections.abc import Iterable

import click

from syncline.assembly.inspection.fleet import fleet_snapshot
from syncline.assembly.inspection.pulled import listed
from syncline.cli.access.connection import Connection
from syncline.cli.frame.arguments import did_you_mean
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.control.cache import Cache
from syncline.kube import client
from syncline.kube.objects import GVK, GroupKind, Obj, ResourceInfo, name_of, namespace_of

MAX_NAMES = 500
"""Names that a misspelt one is compared with."""

namespace_option = click.option("-n", "--namespace", default=None, help="Namespace [default: the kubeconfig's].")
everywhere_option = click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="In all namespaces.")


def hub_kind(link: Connection, gvk: GVK) -> ResourceInfo:
    """Return the resource of a kind that hubs serve. Raises CommandFailed on a cluster that is no hub."""
    info = link.mapper.preferred(gvk.group_kind)
    if info is None:
        raise CommandFailed(
            f"{link.server} serves no {gvk.kind} ({gvk.api_version}), so it is no hub; `syncline up --hub` starts one, "
            "`syncline controller --roles hub` makes a cluster one"
        )
    return info


def all_of(link: Connection, gvk: GVK, namespace: str = "") -> list[Obj]:
    """Return the objects of a kind by namespace and name. Raises CommandFailed on a cluster that is no hub."""
    return link.run(listed(hub_kind(link, gvk), namespace))


def one_of(link: Connection, gvk: GVK, namespace: str, name: str, hint: str) -> Obj:
    """Return one object. Raises CommandFailed with similar names if there is none; ``hint``: what lists them."""
    info = hub_kind(link, gvk)
    answer = link.send(client.get(info, namespace, name))
    if answer.status != 404:
        found: Obj = link.check(answer)
        return found
    where = f"{namespace}/{name}" if namespace else name
    nearby = link.send(client.list_(info, namespace, limit=MAX_NAMES))
    names = [name_of(one) for one in nearby.obj.get("items") or ()] if nearby.ok else []
    raise CommandFailed(f"{gvk.kind} {where} does not exist; `{hint}` shows those that do.{did_you_mean(name, names)}")


def read_fleet(link: Connection, kinds: Iterable[GroupKind]) -> Cache:
    """Return a snapshot of these kinds; what may not be read is reported on stderr, since the result lacks it."""
    found = link.run(fleet_snapshot(kinds))
    for problem in found.unreadable:
        click.echo(f"warning: not seen: {problem}", err=True)
    return found.cache


def only_one(
    link: Connection, gvk: GVK, name: str, namespace: str | None, listing: str, *, place: str = "namespace"
) -> Obj:
    """Return an object that is named as NAME or NAMESPACE/NAME; without a namespace the only one of this name.
    ``listing``: the command that shows all; ``place``: what a namespace stands for. Raises CommandFailed."""
    space, slash, rest = name.partition("/")
    if slash:
        namespace, name = space, rest
    if namespace is not None:
        return one_of(link, gvk, namespace, name, f"{listing} -n {namespace}")
    found = [one for one in all_of(link, gvk) if name_of(one) == name]
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandFailed(f"no {place} has a {gvk.kind} {name}; `{listing}` shows those that there are")
    where = ", ".join(namespace_of(one) for one in found[:5])
    said = f"{len(found)} {place}s have a {gvk.kind} {name}: {where}; choose with -n {place.upper()}"
    raise CommandFailed(said, USAGE)
