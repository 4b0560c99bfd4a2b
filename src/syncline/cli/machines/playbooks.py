"""Playbooks for ``syncline mc impact``: reads them from Git or a folder, and runs them in check mode in a throwaway
root of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from syncline.assembly.playbooks import PROGRAM
from syncline.assembly.sources.playbooks import Playbooks
from syncline.base.scratch import scratch
from syncline.cli.access.snapshots import source_reader
from syncline.cli.ansible.nodes import files_of_folder
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.hosts.linuxplays import launch_of, outcome_of, write_files
from syncline.kube.objects import Obj, ObjectRef, dig, name_of
from syncline.machineconfig.ansible.content import ContentError
from syncline.machineconfig.ansible.order import Order
from syncline.machineconfig.ansible.outcome import Task
from syncline.machineconfig.ansible.plan import wanted_of
from syncline.machineconfig.ansible.play import Play
from syncline.machineconfig.ansible.reading import Found, Wanted
from syncline.machineconfig.impact.plays import Checked, accepted_play
from syncline.machineconfig.names import POOL
from syncline.machineconfig.pools.membership import MembershipError, members
from syncline.machineconfig.pools.observe import NODE
from syncline.sources.ansible.facts import facts_of, facts_of_node
from syncline.sources.ansible.reporting import PlayReport, State
from syncline.sources.ansible.rooting import RootRunner
from syncline.sources.ansible.rooting import Wanted as Rooted
from syncline.sources.errors import SourceError

if TYPE_CHECKING:
    from syncline.cli.access.connection import Connection
    from syncline.control.cache import Cache

HERE = "this folder"
SECRETS = "it takes variables or a vault password from Secrets, which a forecast does not read"


def read_playbooks(
    configs: Sequence[Obj], folder: Path | None, link: Connection | None, cache: Cache, namespace: str, now: datetime
) -> dict[Wanted, Found]:
    """Return the playbooks of AnsibleConfigs: of ``folder``, or each of its repository. A read that fails is an error
    in what is returned. Raises CommandFailed."""
    if folder is not None:
        if len(configs) != 1:
            raise CommandFailed(f"--folder goes with one AnsibleConfig in -f; found {len(configs)}", USAGE)
        wanted = wanted_of(configs[0])
        try:
            return {wanted: Found(now, HERE, files=files_of_folder(folder, wanted.collections))}
        except (ContentError, OSError) as error:
            raise CommandFailed(f"--folder {folder}: {error}", USAGE) from error
    if not configs:
        return {}
    with source_reader(link, cache, namespace) as reader:
        books = Playbooks(reader.sources)
        return {wanted: books.playbook(wanted, now) for wanted in dict.fromkeys(map(wanted_of, configs))}


def check_playbooks(configs: Sequence[Obj], playbooks: Mapping[Wanted, Found], cache: Cache) -> dict[str, Checked]:
    """Run each accepted playbook in check mode, and return by name what it would change."""
    found: dict[str, Checked] = {}
    for config in configs:
        read = playbooks[wanted_of(config)]
        play = accepted_play(config, read)
        if play is not None:
            found[name_of(config)] = _checked(play, read, _node_of(config, cache))
    return found


def _node_of(config: Obj, cache: Cache) -> Obj | None:
    """Return the first node of the pool, whose facts the run has."""
    pool = cache.get(ObjectRef(*POOL, "", str(dig(config, "spec", "pool") or "")))
    try:
        mine = members(pool, cache.objects(NODE), cache.objects(POOL)) if pool is not None else ()
    except MembershipError:
        return None
    return min(mine, key=name_of, default=None)


def _checked(play: Play, read: Found, node: Obj | None) -> Checked:
    if play.secrets or play.vault:
        return Checked(unknown=SECRETS)
    name = name_of(node) if node is not None else "localhost"
    place = "on a minimal tree" + (f" with the facts of {name}" if node is not None else "")
    try:
        with scratch() as folder:
            write_files(read.files, folder)
            launch = launch_of(name, Order(play, b"", check=True), folder)
            launch = replace(launch, collections=_there(launch.collections), roles=_there(launch.roles))
            below = Path(launch.playbook).relative_to(folder).as_posix()
            facts = facts_of(facts_of_node(node), name) if node is not None else b""
            wanted = Rooted(folder, below, launch, facts=facts)
            report = RootRunner(Path(PROGRAM)).run(wanted).report
        return Checked(outcome_of(report), place, _not_judged(report))
    except SourceError as error:
        return Checked(unknown=str(error))


def _not_judged(report: PlayReport) -> tuple[Task, ...]:
    """Return the tasks that check mode leaves out, which their modules say in their messages: commands, most of all."""
    skipped = [one for one in report.results if one.state is State.SKIPPED and "check mode" in one.message]
    return tuple(Task(one.name, one.position, one.host) for one in skipped)


def _there(folders: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for path in folders if Path(path).is_dir())
