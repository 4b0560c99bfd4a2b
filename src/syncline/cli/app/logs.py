"""``syncline app logs``: prints the logs of an Application's pods."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import click

from syncline.assembly.inspection.resource_tree import resource_tree
from syncline.assembly.inspection.streams import POD, Stream, chosen, streams_of
from syncline.base.clock import time_or_none
from syncline.cli.access.connection import Connection
from syncline.cli.app.looked import looked_for
from syncline.cli.app.target import get_app, namespace_options, split
from syncline.cli.fleet.asking import about, asked, cluster_of, timeout_option
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.fleet.pull.queries.model import DEFAULT_LINES, Ask, Question
from syncline.kube.client import Request
from syncline.kube.errors import ApiError
from syncline.kube.objects import Obj, ObjectRef, dig

MAX_FOLLOWED = 50
"""Limit of containers followed at once; each needs a connection."""


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
@timeout_option
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
    timeout: int,
    app_namespace: str,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Print the logs of an Application's pods; with several containers each line begins with its pod and container.

    Of an Application that a cluster pulls from this hub, the cluster's agent reads them: 1000 lines of each without
    --tail.

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
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(Connection(kubeconfig, context))
        app = get_app(home, split(name, app_namespace))
        if cluster_of(app):
            if follow:
                raise CommandFailed("--follow needs a connection to the cluster; ask again with --since-seconds", USAGE)
            select = ObjectRef(group, kind, namespace, resource)
            wanted = about(app, Ask.LOGS, select=select, container=container, previous=previous)
            wanted = replace(wanted, lines=DEFAULT_LINES if tail is None else tail, since_s=since_seconds or 0)
            several, lines = _asked(home, app, replace(wanted, timestamps=until is not None), timeout)
            _print(lines, until, text, match_case, several=several, flush=False)
            return
        snapshot = stack.enter_context(looked_for(home, split(name, app_namespace), app))
        link = snapshot.others.link_to(snapshot.app)
        trees = chosen(resource_tree(snapshot.there, snapshot.app), ObjectRef(group, kind, namespace, resource))
        streams = streams_of(trees, container, namespace)
        if not streams:
            raise CommandFailed(f"no pods to read; `syncline app resources {name} -o tree` shows what there is")
        lines = _followed(link, streams, query) if follow else _read(link, streams, query)
        _print(lines, until, text, match_case, several=len(streams) != 1, flush=follow)


def _print(
    lines: Iterator[tuple[Stream, str]],
    until: datetime | None,
    text: str,
    match_case: bool,
    *,
    several: bool,
    flush: bool,
) -> None:
    for stream, line in lines if until is None else _before(lines, until):
        if _wanted(line, text, match_case):
            print(f"{stream.pod}/{stream.container} {line}" if several else line, flush=flush)


def _asked(home: Connection, app: Obj, wanted: Question, timeout_s: float) -> tuple[bool, Iterator[tuple[Stream, str]]]:
    """Return whether the agent read several containers, and their lines. One that has no log is said on stderr."""
    rows = asked(home, app, wanted, timeout_s)

    def lines() -> Iterator[tuple[Stream, str]]:
        for row in rows:
            stream = Stream(*(str(row.get(part) or "") for part in ("namespace", "pod", "container")))
            if row.get("error"):
                click.echo(f"warning: {stream.pod}/{stream.container}: {row['error']}", err=True)
            if row.get("cut") or row.get("tooLarge"):
                hint = "the log is longer; choose with --tail, --since-seconds or --container"
                click.echo(f"warning: {stream.pod}/{stream.container}: {hint}", err=True)
            for line in str(row.get("text") or "").splitlines():
                yield stream, line

    return len(rows) != 1, lines()


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


def _read(link: Connection, streams: list[Stream], query: dict[str, str]) -> Iterator[tuple[Stream, str]]:
    """Yield the logs one after the other. A container that has not started yet is reported on stderr."""
    for stream in streams:
        answer = link.send(stream.request(link.resource(POD), query))
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
        threading.Thread(target=follow, args=(stream, stream.request(link.resource(POD), query)), daemon=True).start()
    open_ones = len(streams)
    while open_ones:
        stream, line = lines.get()
        if line is None:
            open_ones -= 1
        else:
            yield stream, line
