"""``syncline app logs``: prints the logs of an Application's pods."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import click

from syncline.assembly.inspection.resource_tree import ResourceNode, resource_tree, walk
from syncline.base.clock import time_or_none
from syncline.cli.access.connection import Connection
from syncline.cli.app.looked import looked_for
from syncline.cli.app.target import namespace_options, split
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.kube.client import Request
from syncline.kube.errors import ApiError
from syncline.kube.objects import GVK, Obj, ObjectRef, dig

POD = GVK("", "v1", "Pod")
MAX_FOLLOWED = 50
"""Limit of containers followed at once; each needs a connection."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One container's log."""

    namespace: str
    pod: str
    container: str


@click.command()
@click.argument("name")
@click.option("--group", default="", help="Only pods of this group's objects.")
@click.option("--kind", default="", help="Only pods of objects of this kind.")
@click.option("--name", "resource", default="", help="Only pods of the object of this name.")
@click.option("--namespace", default="", help="Only pods in this namespace.")
@click.option("-c", "--container", default="", help="Only this container.")
@click.option("-f", "--follow", is_flag=True, help="Go on as they write; Ctrl-C stops.")
@click.option("-p", "--previous", is_flag=True, help="Of the container before the last restart.")
@click.option("--tail", type=int, default=None, help="Only the last lines of each container.")
@click.option("--since-seconds", type=int, default=None, help="Only what is younger.")
@click.option("--filter", "text", default="", help="Only lines with this text; !TEXT: only lines without it.")
@click.option("-m", "--match-case", is_flag=True, help="The filter tells capitals from small letters.")
@click.option("--until-time", default="", metavar="TIME", help="Only what is older: 2026-01-31T12:00:00Z.")
@namespace_options
def logs(
    name: str,
    group: str,
    kind: str,
    resource: str,
    namespace: str,
    container: str,
    follow: bool,
    previous: bool,
    tail: int | None,
    since_seconds: int | None,
    text: str,
    match_case: bool,
    until_time: str,
    app_namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Print the logs of an Application's pods; with several containers each line begins with its pod and container.

    \b
    Example:  syncline app logs shop --kind Deployment --name web --tail 20 --follow
    """
    until = _moment(until_time)
    given = {
        "timestamps": True if until else None,
        "tailLines": tail,
        "sinceSeconds": since_seconds,
        "previous": previous or None,
        "follow": follow or None,
    }
    query = {key: "true" if value is True else str(value) for key, value in given.items() if value is not None}
    with Connection(kubeconfig, context) as home, looked_for(home, split(name, app_namespace)) as snapshot:
        link = snapshot.others.link_to(snapshot.app)
        trees = _chosen(resource_tree(snapshot.there, snapshot.app), ObjectRef(group, kind, namespace, resource))
        streams = streams_of(trees, container, namespace)
        if not streams:
            raise CommandFailed(f"no pods to read; `syncline app resources {name} -o tree` shows what there is")
        lines = _followed(link, streams, query) if follow else _read(link, streams, query)
        for stream, line in lines if until is None else _before(lines, until):
            if _wanted(line, text, match_case):
                print(line if len(streams) == 1 else f"{stream.pod}/{stream.container} {line}", flush=follow)


def _chosen(trees: Sequence[ResourceNode], wanted: ObjectRef) -> tuple[ResourceNode, ...]:
    """Return the trees below the selected objects; all of them without a name or kind."""
    if not (wanted.group or wanted.kind or wanted.name):
        return tuple(trees)
    return tuple(
        node
        for node in walk(tuple(trees))
        if wanted.group in ("", node.ref.group)
        and wanted.kind in ("", node.ref.kind)
        and wanted.name in ("", node.ref.name)
    )


def streams_of(trees: Sequence[ResourceNode], container: str = "", namespace: str = "") -> list[Stream]:
    """Return every container of every pod in the trees, each once, in order."""
    found: dict[Stream, None] = {}
    for node in walk(tuple(trees)):
        if node.ref.group_kind != POD.group_kind or node.live is None or namespace not in ("", node.ref.namespace):
            continue
        for name in _containers(node.live):
            if container in ("", name):
                found[Stream(node.ref.namespace, node.ref.name, name)] = None
    return list(found)


def _containers(pod: Obj) -> list[str]:
    return [
        str(one.get("name")) for part in ("initContainers", "containers") for one in dig(pod, "spec", part, default=[])
    ]


def _wanted(line: str, text: str, match_case: bool) -> bool:
    """Return whether a line matches, as argocd filters: case-insensitive by default; ``!`` negates."""
    if not match_case:
        line, text = line.lower(), text.lower()
    return text.removeprefix("!") not in line if text.startswith("!") else text in line


def _moment(text: str) -> datetime | None:
    found = time_or_none(text) if text else None
    if text and found is None:
        raise CommandFailed(f"--until-time {text}: write a time such as 2026-01-31T12:00:00Z", USAGE)
    return found


def _before(lines: Iterator[tuple[Stream, str]], until: datetime) -> Iterator[tuple[Stream, str]]:
    """Yield the lines with a time stamp up to ``until``, without the time stamp."""
    for stream, line in lines:
        at, _, rest = line.partition(" ")
        written = time_or_none(at)
        if written is None or written <= until:
            yield stream, rest


def _request(link: Connection, stream: Stream, query: dict[str, str]) -> Request:
    path = link.resource(POD).path(stream.namespace, stream.pod, "log")
    return Request("GET", path, query | {"container": stream.container})


def _read(link: Connection, streams: list[Stream], query: dict[str, str]) -> Iterator[tuple[Stream, str]]:
    """Yield the logs one after the other. A container that has not started yet is reported on stderr."""
    for stream in streams:
        answer = link.send(_request(link, stream, query))
        if not answer.ok:
            click.echo(f"warning: {stream.pod}/{stream.container}: {dig(answer.obj, 'message', default='')}", err=True)
            continue
        for line in answer.raw.decode("utf-8", "replace").splitlines():
            yield stream, line


def _followed(link: Connection, streams: list[Stream], query: dict[str, str]) -> Iterator[tuple[Stream, str]]:
    """Yield the lines of all logs as they arrive, until every container has ended."""
    if len(streams) > MAX_FOLLOWED:
        raise CommandFailed(
            f"{len(streams)} containers; choose at most {MAX_FOLLOWED} with --kind, --name, --container"
        )
    lines: queue.Queue[tuple[Stream, str | None]] = queue.Queue()

    def follow(stream: Stream, request: Request) -> None:
        try:
            for line in link.lines(request):
                lines.put((stream, line))
        except ApiError as error:
            click.echo(f"warning: {stream.pod}/{stream.container}: {error}", err=True)
        finally:
            lines.put((stream, None))

    for stream in streams:
        threading.Thread(target=follow, args=(stream, _request(link, stream, query)), daemon=True).start()
    open_ones = len(streams)
    while open_ones:
        stream, line = lines.get()
        if line is None:
            open_ones -= 1
        else:
            yield stream, line
