"""``syncline pool``: pauses machine config pools, so that they start no node updates, and resumes them.

A pause is a Hold (kind ``Hold`` of ``syncline.dev``) with owner, reason and end. ``--spec`` sets ``spec.paused`` as
``oc patch`` does, without owner and end.
"""

from __future__ import annotations

import getpass
import re
from datetime import datetime, timedelta
from typing import Any

import click

from syncline.base.clock import format_time, time_or_none
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.access.following import followed
from syncline.cli.frame.failure import BLOCKED, FAILED, USAGE, CommandFailed
from syncline.cli.frame.lazy import CONTEXT, Group
from syncline.cli.frame.output import output_option, print_documents, print_names, print_table
from syncline.cli.views.pool import describe_history, describe_pool, history_rows, node_rows, pool_row, pool_table
from syncline.kube import client
from syncline.kube.client import PatchType
from syncline.kube.kinds.holds import Hold, holds_of, make_hold, pause_writer
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG
from syncline.kube.kinds.machineconfiguration import MACHINE_CONFIG_POOL as POOL
from syncline.kube.kinds.syncline import HOLD
from syncline.kube.objects import GVK, Obj, dig, name_of
from syncline.kube.text.durations import DurationError, parse_duration

NODE, EVENT = GVK("", "v1", "Node"), GVK("", "v1", "Event")
MANAGER = "syncline-pool"
RESOURCE = f"machineconfigpool.{POOL.group}"
NAME = re.compile(r"[^a-z0-9.-]+")
MAX_NAME = 200
"""Limit of characters from pool and user in a Hold's name."""


@click.group(cls=Group, context_settings=CONTEXT)
def pool() -> None:
    """Pause and resume machine config pools by Holds, and list them.

    \b
    Example:  syncline pool pause worker --reason "a look at the disks" --for 2h
              syncline pool resume worker
    """


def _hold_name(pool_name: str, owner: str) -> str:
    """Return the Hold's name, unique per user and pool, so that a second pause extends the first."""
    return NAME.sub("-", f"{pool_name}-{owner}".lower())[:MAX_NAME].strip("-.")


def _pool(link: Connection, name: str) -> Obj:
    answer = link.send(client.get(link.resource(POOL), "", name))
    if answer.status == 404:
        raise CommandFailed(f"MachineConfigPool {name} does not exist; `syncline pool list` shows those that do")
    found: Obj = link.check(answer)
    return found


def _set_paused(link: Connection, name: str, paused: bool) -> None:
    body = {"spec": {"paused": paused}}
    link.ask(client.patch(link.resource(POOL), "", name, PatchType.MERGE, body, field_manager=MANAGER))


def _duration(text: str) -> timedelta:
    try:
        found = parse_duration(text)
    except DurationError as error:
        raise CommandFailed(f"--for {text}: {error}; write 90m or 2h", USAGE) from error
    if found <= timedelta(0):
        raise CommandFailed(f"--for {text}: must be longer than nothing", USAGE)
    return found


def _instant(text: str, now: datetime) -> datetime:
    found = time_or_none(text)
    if found is None:
        raise CommandFailed(f"--until {text}: write an instant like {format_time(now + timedelta(hours=1))}", USAGE)
    if found <= now:
        raise CommandFailed(f"--until {text}: is over; it is {format_time(now)}", USAGE)
    return found


@pool.command()
@click.argument("names", nargs=-1, required=True, metavar="POOL...")
@click.option("--reason", default="paused by hand", show_default=True, help="Why; people see it.")
@click.option("--for", "length", default=None, help="When the pause ends by itself [default: 1h].")
@click.option("--until", "instant", default="", help="The same as an instant: 2026-05-01T06:00:00Z.")
@click.option("--owner", default=None, help="Who holds [default: your user name].")
@click.option("--spec", "spec", is_flag=True, help="Set spec.paused instead: no owner, no end.")
@connection_options
def pause(
    names: tuple[str, ...],
    reason: str,
    length: str | None,
    instant: str,
    owner: str | None,
    spec: bool,
    kubeconfig: str | None,
    context: str | None,
) -> None:
    """Pause node updates of pools; a second call extends the pause.

    \b
    Example:  syncline pool pause worker infra --reason "quarter's end" --for 8h
    """
    if length and instant:
        raise CommandFailed("give --for or --until, not both", USAGE)
    lasts, who = _duration(length or "1h"), owner or getpass.getuser()
    with Connection(kubeconfig, context) as link:
        until = _instant(instant, link.now()) if instant else link.now() + lasts
        for name in names:
            _pool(link, name)
            if spec:
                _set_paused(link, name, True)
                print(f"machineconfigpool/{name} spec.paused set; `syncline pool resume {name} --spec` ends it")
                continue
            made = make_hold(_hold_name(name, who), [name], who, reason, until)
            info = link.resource(HOLD)
            answer = link.send(client.create(info, made, field_manager=MANAGER))
            if answer.status == 409:
                body = {"spec": made["spec"]}
                link.ask(client.patch(info, "", name_of(made), PatchType.MERGE, body, field_manager=MANAGER))
            else:
                link.check(answer)
            print(f"machineconfigpool/{name} held by {who} until {until:%Y-%m-%d %H:%M} UTC")


@pool.command()
@click.argument("names", nargs=-1, required=True, metavar="POOL...")
@click.option("--owner", default=None, help="Whose Holds end [default: your user name].")
@click.option("--all", "every", is_flag=True, help="End the Holds of everybody, those of running syncs too.")
@click.option("--spec", "spec", is_flag=True, help="Clear spec.paused instead.")
@connection_options
def resume(
    names: tuple[str, ...], owner: str | None, every: bool, spec: bool, kubeconfig: str | None, context: str | None
) -> None:
    """Resume pools; Holds of others stay, and are named.

    \b
    Example:  syncline pool resume worker
    """
    who = owner or getpass.getuser()
    with Connection(kubeconfig, context) as link:
        for name in names:
            found = _pool(link, name)
            if spec:
                _set_paused(link, name, False)
                print(f"machineconfigpool/{name} spec.paused cleared")
                continue
            on_it = [hold for hold in _holds(link) if name in hold.pools]
            ending = [hold for hold in on_it if every or hold.owner == who]
            for hold in ending:
                _end(link, hold, name)
            print(_resumed(found, ending, [hold for hold in on_it if hold not in ending]))


def _end(link: Connection, hold: Hold, name: str) -> None:
    """End the Hold on pool ``name``; it keeps its other pools."""
    left = sorted(hold.pools - {name})
    info = link.resource(HOLD)
    if left:
        link.ask(client.patch(info, "", hold.name, PatchType.MERGE, {"spec": {"pools": left}}, field_manager=MANAGER))
    else:
        link.ask(client.delete(info, "", hold.name))


def _resumed(found: Obj, ended: list[Hold], left: list[Hold]) -> str:
    name = name_of(found)
    text = f"machineconfigpool/{name} " + (f"{len(ended)} Hold(s) ended" if ended else "no Hold of yours")
    if left:
        return f"{text}; still held by {', '.join(f'{hold.owner} ({hold.name})' for hold in left)}"
    if dig(found, "spec", "paused") is True:
        return f"{text}; spec.paused is set by {pause_writer(found)[0] or 'an unknown client'}: add --spec to clear it"
    return text


def _holds(link: Connection) -> tuple[Hold, ...]:
    found = link.ask(client.list_(link.resource(HOLD)))
    return holds_of(found.get("items") or [])


@pool.command("list")
@output_option("json", "yaml", "name")
@connection_options
def list_pools(output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """List pools with their progress, pauses and Holds.

    \b
    Example:  syncline pool list
    """
    with Connection(kubeconfig, context) as link:
        pools = link.ask(client.list_(link.resource(POOL))).get("items") or []
        holds, now = _holds(link), link.now()
    rows = [pool_row(one, [hold for hold in holds if name_of(one) in hold.pools and hold.lives(now)]) for one in pools]
    if output == "name":
        print_names(RESOURCE, map(name_of, pools))
    elif output:
        print_documents(rows, output)
    else:
        print_table(pool_table(rows, now), len(rows), "MachineConfigPools")


@pool.command("get")
@click.argument("name", metavar="POOL")
@output_option("json", "yaml", "name")
@connection_options
def get_pool(name: str, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Show one pool: configs, counts, who holds it, what its conditions say, and its nodes.

    \b
    Example:  syncline pool get worker
    """
    with Connection(kubeconfig, context) as link:
        found = _pool(link, name)
        pools = link.ask(client.list_(link.resource(POOL))).get("items") or []
        nodes = link.ask(client.list_(link.resource(NODE))).get("items") or []
        holds, now = _holds(link), link.now()
    row = pool_row(found, [hold for hold in holds if name in hold.pools and hold.lives(now)])
    mine = node_rows(found, pools, nodes)
    if output == "name":
        print_names(RESOURCE, [name])
    elif output:
        conditions = dig(found, "status", "conditions", default=[])
        print_documents(row | {"conditions": conditions, "nodes": mine}, output)
    else:
        print(describe_pool(row, found, mine, now))


@pool.command()
@click.argument("name", metavar="POOL")
@click.option("--timeout", default=0.0, help="Seconds to wait; 0 is for ever.")
@output_option("json", "yaml")
@connection_options
def wait(name: str, timeout: float, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Wait until all nodes of a pool have the config that it aims at.

    What it waits for is said on stderr, also who paused or holds the pool.

    \b
    Exit codes: 0 updated, 1 degraded, 3 the time is over
    Example:    syncline pool wait worker --timeout 3600
    """
    row: dict[str, Any] = {}
    said: list[str] = []
    with Connection(kubeconfig, context) as link:
        _pool(link, name)
        for found in followed(link, link.resource(POOL), ("", name), timeout):
            if found is None:
                raise CommandFailed(f"MachineConfigPool {name} was deleted meanwhile")
            on_it = [hold for hold in _holds(link) if name in hold.pools and hold.lives(link.now())]
            row = pool_row(found, on_it)
            left = outstanding(row, found)
            if not left:
                break
            if left not in said:
                said.append(left)
                click.echo(f"waiting for machineconfigpool/{name}: {left}", err=True)
        else:
            last = said[-1] if said else "its state"
            raise CommandFailed(f"timed out after {timeout:g} s waiting for machineconfigpool/{name}: {last}", BLOCKED)
    if output:
        print_documents(row, output)
    else:
        print(f"machineconfigpool/{name} updated: {row['machines']['updated']} nodes")


def outstanding(row: dict[str, Any], found: Obj) -> str:
    """Return what a pool's update still waits for; empty if it is done. Raises CommandFailed if it is degraded."""
    machines = row["machines"]
    conditions = {each.get("type"): each for each in dig(found, "status", "conditions", default=[])}
    degraded = conditions.get("Degraded") or {}
    if degraded.get("status") == "True":
        raise CommandFailed(f"machineconfigpool/{row['name']} is degraded: {degraded.get('message') or '-'}", FAILED)
    updated = (conditions.get("Updated") or {}).get("status") == "True"
    if updated and row["configuration"]["wanted"] == row["configuration"]["reached"] != "":
        return ""
    left = f"{machines['updated']} of {machines['total']} nodes have {row['configuration']['wanted'] or 'a config'}"
    who = [f"{hold['owner']} until {hold['expiresAt']} ({hold['reason']})" for hold in row["holds"]]
    stops = [f"held by {one}" for one in who] + (["paused by spec.paused"] if row["paused"] else [])
    blocked = conditions.get("DrainBlocked") or {}
    stops += [str(blocked.get("message"))] if blocked.get("status") == "True" else []
    return "; ".join([left, *stops])


@pool.command("history")
@click.argument("name", metavar="POOL")
@output_option("json", "yaml")
@connection_options
def history(name: str, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Show the rendered configs of a pool, the nodes on them, and its roll-out Events.

    \b
    Example:  syncline pool history worker
    """
    with Connection(kubeconfig, context) as link:
        found = _pool(link, name)
        kind = link.mapper.find(MACHINE_CONFIG)
        configs = link.ask(client.list_(kind)).get("items") or [] if kind is not None else []
        nodes = link.ask(client.list_(link.resource(NODE))).get("items") or []
        about = f"involvedObject.kind=MachineConfigPool,involvedObject.name={name}"
        events = link.ask(client.list_(link.resource(EVENT), field_selector=about)).get("items") or []
        now = link.now()
    rows = history_rows(found, configs, nodes)
    if output:
        print_documents(rows, output)
    else:
        print(describe_history(rows, events, now))


@pool.command()
@click.argument("name", metavar="POOL")
@click.option("--config", default="", help="A rendered config [default: the one that the pool aims at].")
@output_option("json", "yaml", "svg")
@connection_options
def timeline(name: str, config: str, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Show the rollout of a config to a pool: which nodes drained and rebooted when, are in progress, or wait.

    \b
    Example:  syncline pool timeline worker
              syncline pool timeline worker -o svg > rollout.svg
    """
    from shutil import get_terminal_size

    from syncline.cli.views.timeline import describe_timeline, draw_timeline, timeline_document
    from syncline.machineconfig.nodes.timeline import timeline_of
    from syncline.machineconfig.pools.membership import MembershipError, members

    with Connection(kubeconfig, context) as link:
        found = _pool(link, name)
        pools = link.ask(client.list_(link.resource(POOL))).get("items") or []
        nodes = link.ask(client.list_(link.resource(NODE))).get("items") or []
        events: list[Obj] = []
        for kind in ("MachineConfigPool", "Node"):
            about = f"involvedObject.kind={kind}"
            events += link.ask(client.list_(link.resource(EVENT), field_selector=about)).get("items") or []
        now = link.now()
    try:
        mine = members(found, nodes, pools)
    except MembershipError as error:
        raise CommandFailed(str(error)) from error
    drawn = timeline_of(found, mine, events, now, config)
    if output == "svg":
        print(draw_timeline(drawn), end="")
    elif output:
        print_documents(timeline_document(drawn), output)
    else:
        print(describe_timeline(drawn, get_terminal_size((120, 40)).columns))
