"""``syncline ansible list|get|plan``: AnsibleConfigs, how their nodes fare, and what one would ask of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from syncline.base.clock import time_or_none
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.access.following import followed
from syncline.cli.access.manifests import read_manifests
from syncline.cli.frame.failure import BLOCKED, USAGE, CommandFailed
from syncline.cli.frame.output import output_option, print_documents, print_names, print_table, table
from syncline.kube import client
from syncline.kube.kinds.ansible import ANSIBLE_CONFIG
from syncline.kube.objects import Obj, dig, generation, gvk_of, name_of
from syncline.kube.text.durations import DurationError
from syncline.machineconfig.ansible.content import MAX_BYTES, MAX_FILES, ContentError, File
from syncline.machineconfig.ansible.examining import COLLECTIONS, examine
from syncline.machineconfig.ansible.journal import IN_TROUBLE
from syncline.machineconfig.ansible.plan import play_of, wanted_of
from syncline.machineconfig.ansible.reading import Found
from syncline.views.texts import age

RESOURCE = f"ansibleconfig.{ANSIBLE_CONFIG.group}"
HEADERS = ("NAME", "POOL", "REVISION", "NODES", "APPLIED", "FAILING", "READY", "AGE")
NODE_HEADERS = ("NODE", "PHASE", "SINCE", "CHANGED", "TASK")


@click.command("list")
@output_option("json", "yaml", "name")
@connection_options
def list_ansible(output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """List AnsibleConfigs, and how many nodes have each.

    \b
    Example:  syncline ansible list
    """
    with Connection(kubeconfig, context) as link:
        found: list[Obj] = link.ask(client.list_(link.resource(ANSIBLE_CONFIG))).get("items") or []
        now = link.now()
    found.sort(key=name_of)
    if output == "name":
        print_names(RESOURCE, [name_of(one) for one in found])
    elif output:
        print_documents(found, output)
    else:
        rows = [[*_row(one), age(time_or_none(dig(one, "metadata", "creationTimestamp")), now)] for one in found]
        print_table(table(HEADERS, rows), len(rows), "AnsibleConfigs")


@click.command("get")
@click.argument("name", metavar="NAME")
@output_option("json", "yaml", "name")
@connection_options
def get_ansible(name: str, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Show one AnsibleConfig with its nodes: what a run changed, or would change.

    \b
    Example:  syncline ansible get chrony
    """
    with Connection(kubeconfig, context) as link:
        answer = link.send(client.get(link.resource(ANSIBLE_CONFIG), "", name))
        if answer.status == 404:
            raise CommandFailed(f"AnsibleConfig {name} does not exist; `syncline ansible list` shows those that do")
        found: Obj = link.check(answer)
        now = link.now()
    if output == "name":
        print_names(RESOURCE, [name])
    elif output:
        print_documents(found, output)
    else:
        for one in dig(found, "status", "conditions", default=()):
            print(f"{one['type']}: {one['status']} ({one['reason']}): {one['message']}")
        lines = [line for one in dig(found, "status", "nodeStatuses", default=()) for line in _node_rows(one, now)]
        print_table(table(NODE_HEADERS, lines), len(lines), "nodes")


@click.command("wait")
@click.argument("name", metavar="NAME")
@click.option("--timeout", default=0.0, help="Seconds to wait; 0 is for ever.")
@output_option("json", "yaml")
@connection_options
def wait_ansible(name: str, timeout: float, output: str | None, kubeconfig: str | None, context: str | None) -> None:
    """Wait until all nodes of its pool have what an AnsibleConfig asks for now.

    What it waits for is said on stderr. A commit that is not read yet is not waited for: each repository is looked at
    every three minutes.

    \b
    Exit codes: 0 all nodes have it, 1 a node is in trouble or it is refused, 3 the time is over
    Example:    syncline ansible wait chrony --timeout 3600
    """
    said: list[str] = []
    with Connection(kubeconfig, context) as link:
        for found in followed(link, link.resource(ANSIBLE_CONFIG), ("", name), timeout):
            if found is None:
                raise CommandFailed(f"AnsibleConfig {name} does not exist; `syncline ansible list` shows those that do")
            left = outstanding(found)
            if not left:
                break
            if left not in said:
                said.append(left)
                click.echo(f"waiting for ansibleconfig/{name}: {left}", err=True)
        else:
            last = said[-1] if said else "its state"
            raise CommandFailed(f"timed out after {timeout:g} s waiting for ansibleconfig/{name}: {last}", BLOCKED)
    if output:
        print_documents(found, output)
    else:
        print(f"ansibleconfig/{name} applied: {dig(found, 'status', 'applied', default=0)} nodes")


def outstanding(config: Obj) -> str:
    """Return what the nodes of an AnsibleConfig still wait for; empty if all have it. Raises CommandFailed if it cannot
    get there without a person."""
    name, status = name_of(config), config.get("status") or {}
    if status.get("observedGeneration") != generation(config):
        return "its controller"
    conditions = {one["type"]: one for one in status.get("conditions") or ()}
    ready, applied = (conditions.get(kind) or {} for kind in ("Ready", "Applied"))
    if ready.get("status") != "True":
        raise CommandFailed(f"ansibleconfig/{name} is {ready.get('reason')}: {ready.get('message') or '-'}")
    troubled = [one for one in status.get("nodeStatuses") or () if one.get("phase") in IN_TROUBLE]
    if troubled:
        first = troubled[0]
        task = _task(first.get("failed") or next(iter(first.get("tasks") or ()), {}))
        raise CommandFailed(f"ansibleconfig/{name} is {first['phase']} on {first['name']}: {task}")
    return "" if applied.get("status") == "True" else str(applied.get("message") or "its nodes")


@click.command("plan")
@click.option("-f", "--filename", "place", required=True, metavar="FILE", help="The AnsibleConfig; - for stdin.")
@click.option(
    "--folder",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder that spec.path will name, as it is on this disk.",
)
def plan_ansible_config(place: str, folder: Path) -> None:
    """Say what an AnsibleConfig would ask of its nodes, or why it is refused, before anything is committed.

    Needs no cluster, and runs nothing. Ends with 3 if it is refused.

    \b
    Example:  syncline ansible plan -f chrony.yaml --folder ./playbooks
    """
    configs = [one for one in read_manifests(place) if gvk_of(one).kind == ANSIBLE_CONFIG.kind]
    if len(configs) != 1:
        raise CommandFailed(f"-f {place}: {len(configs)} AnsibleConfigs; give one", USAGE)
    config = configs[0]
    try:
        found = Found(_EPOCH, "0" * 40, files=files_of_folder(folder, wanted_of(config).collections))
        play, packed, refusals = play_of(config, found)
    except (ContentError, DurationError, KeyError) as error:
        raise CommandFailed(f"AnsibleConfig {name_of(config)}: {error}", USAGE) from error
    if refusals:
        raise CommandFailed("\n".join(f"refused: {each}" for each in refusals), BLOCKED)
    seen = examine(found.files, play.playbook, play.role)
    print(f"{play.what}: {len(seen.tasks)} tasks, {len(packed)} bytes for each node; disruption {play.disruption}")
    for task in seen.tasks:
        tags = f"  [{', '.join(task.tags)}]" if task.tags else ""
        print(f"  {task.place}  {task.task}{tags}{'  reboots the node' if task.place in seen.reboots else ''}")


_EPOCH: Any = time_or_none("1970-01-01T00:00:00Z")


def files_of_folder(folder: Path, collections: tuple[str, ...]) -> dict[str, File]:
    """Return the files of a folder, of collections those that are named. Raises ContentError and OSError."""
    named = tuple(f"{COLLECTIONS}/{name.replace('.', '/')}/" for name in collections)
    found: dict[str, File] = {}
    size = 0
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if one != ".git")
        for name in sorted(names):
            path = Path(parent, name)
            below = path.relative_to(folder).as_posix()
            if not path.is_file() or (below.startswith(f"{COLLECTIONS}/") and not below.startswith(named)):
                continue
            size += path.stat().st_size
            if size > MAX_BYTES or len(found) >= MAX_FILES:
                raise ContentError(f"{folder} has more than {MAX_FILES} files or {MAX_BYTES} bytes")
            found[below] = File(path.read_bytes(), os.access(path, os.X_OK))
    return found


def _row(config: Obj) -> list[str]:
    status: Obj = config.get("status") or {}
    ready: Obj = next((one for one in status.get("conditions") or () if one.get("type") == "Ready"), {})
    counts = [str(status.get(key, "")) for key in ("nodes", "applied", "failing")]
    pool = str(dig(config, "spec", "pool") or "")
    return [name_of(config), pool, str(status.get("revision") or "")[:12], *counts, str(ready.get("reason") or "")]


def _node_rows(one: Obj, now: Any) -> list[list[str]]:
    failed = one.get("failed")
    tasks = [failed] if failed else (one.get("tasks") or [{}])
    texts = [_task(task) for task in tasks]
    first = [one["name"], one.get("phase", ""), age(time_or_none(one.get("at")), now), str(one.get("changed", ""))]
    return [[*first, texts[0]], *([" ", " ", " ", " ", text] for text in texts[1:])]


def _task(task: Obj) -> str:
    place = f" ({task['place']})" if task.get("place") else ""
    return f"{task.get('task', '')}{place}" + (f": {task['message']}" if task.get("message") else "")


COMMANDS = (list_ansible, get_ansible, wait_ansible, plan_ansible_config)
