"""``syncline ansible``: captures playbooks as machine configs."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from syncline.apply.diff.normalize import fold_string_data
from syncline.assembly.playbooks import PROGRAM
from syncline.base.scratch import scratch, work_folder
from syncline.cli.access.connection import Connection, connection_options
from syncline.cli.ansible.nodes import COMMANDS
from syncline.cli.frame.failure import BLOCKED, USAGE, CommandFailed
from syncline.cli.frame.lazy import CONTEXT, Group
from syncline.kube import client
from syncline.kube.objects import GVK, Obj
from syncline.kube.yaml.loading import YamlError, load, load_all
from syncline.sources.ansible.capturing import Outcome, Wish, capture
from syncline.sources.ansible.collecting import Collected, collect
from syncline.sources.ansible.facts import facts_of, facts_of_node, read_facts
from syncline.sources.ansible.launching import Play
from syncline.sources.ansible.producing import Output
from syncline.sources.ansible.requirements import requirements
from syncline.sources.ansible.rooting import PLAY, RootRunner, Wanted
from syncline.sources.errors import SourceError
from syncline.sources.git.mirrors import GitSettings
from syncline.sources.remote.credentials import credential_store
from syncline.sources.sourcing import Sources

NODE = GVK("", "v1", "Node")
MAX_TEXT = 1024 * 1024
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_PATH = click.Path(exists=True, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group(cls=Group, context_settings=CONTEXT)
def ansible() -> None:
    """Playbooks as machine configs, and on the nodes of a pool."""


for _each in COMMANDS:
    ansible.add_command(_each)


@dataclass(frozen=True, slots=True)
class _Given:
    """The options that decide how the playbook runs."""

    inventory: Path | None
    host: str
    variables: tuple[str, ...]
    tags: tuple[str, ...]
    skip_tags: tuple[str, ...]
    vault_password_file: Path | None
    collections: tuple[Path, ...]
    roles: tuple[Path, ...]
    requirements: Path | None
    credentials: Path | None


@ansible.command("capture")
@click.argument("playbook", type=_FILE)
@click.option("--pool", required=True, help="The machine config pool; also a group of the inventory.")
@click.option("-o", "--output", type=click.Choice([each.value for each in Output]), default="mc", show_default=True)
@click.option("--name", default="", help="Of the MachineConfig; by default 99-POOL-ansible.")
@click.option("--first-boot", is_flag=True, help="For new machines: users, links and folders as Ignition makes them.")
@click.option("--inventory", type=_PATH, help="A file or folder, as ansible-playbook takes it; with its group_vars.")
@click.option("--host", default="", help="The host of the inventory to capture for; by default the only one.")
@click.option("-e", "--extra-vars", "variables", multiple=True, help="KEY=VALUE, or @FILE in YAML; repeatable.")
@click.option("--tags", multiple=True, help="Run these alone; repeatable.")
@click.option("--skip-tags", multiple=True, help="Leave these out; repeatable.")
@click.option("--vault-password-file", type=_FILE, help="The password of encrypted variables and files.")
@click.option("--collections", multiple=True, type=_FOLDER, help="Holds ansible_collections; repeatable.")
@click.option("--roles", multiple=True, type=_FOLDER, help="Holds roles; repeatable.")
@click.option("--requirements", type=_FILE, help="A requirements.yml of collections and roles, all of them pinned.")
@click.option("--credentials", type=_FILE, help="Repository Secrets, as Argo CD has them, for these; else git's own.")
@click.option("--project", type=_FOLDER, help="The folder that the playbook sees; by default its own.")
@click.option("--tree", type=_PATH, help="The pool's OS: a folder or a tar archive.")
@click.option("--installed", multiple=True, help="Packages that the OS has, by name; repeatable, with commas.")
@click.option("--facts-from", default="", help="A file as `ansible -m setup` prints it, or a node of the cluster.")
@click.option("--network", is_flag=True, help="Let tasks use this machine's network.")
@connection_options
def capture_playbook(
    playbook: Path,
    pool: str,
    output: str,
    name: str,
    first_boot: bool,
    project: Path | None,
    tree: Path | None,
    installed: tuple[str, ...],
    facts_from: str,
    network: bool,
    kubeconfig: str | None,
    context: str | None,
    **given: Any,
) -> int:
    """Run a playbook twice in throwaway roots, and print what it leaves as a machine config.

    \b
    Exit codes: 0 captured, 1 the playbook cannot be run, 2 usage, 3 something cannot be captured
    Example:    syncline ansible capture site.yml --pool worker > 99-worker-ansible.yaml
    """
    options = _Given(**given)
    folder = (project or playbook.parent).resolve()
    below = os.path.relpath(playbook.resolve(), folder)
    if below.startswith(".."):
        raise CommandFailed(f"--project {folder} does not contain {playbook}", USAGE)
    facts = _facts(facts_from, kubeconfig, context) if facts_from else b""
    wanted = Wanted(
        folder,
        below,
        _play(options, pool),
        inventory=options.inventory.resolve() if options.inventory else None,
        tree=tree.resolve() if tree else None,
        installed=tuple(word.strip() for each in installed for word in each.split(",") if word.strip()),
        facts=facts,
        network=network,
    )
    try:
        with _pinned(options, folder) as pinned:
            play = wanted.play
            folders = (*pinned.collections, *play.collections)
            play = replace(play, collections=folders, roles=(*pinned.roles, *play.roles))
            wish = Wish(pool, Output(output), name, first_boot)
            found = capture(RootRunner(Path(PROGRAM)), replace(wanted, play=play), wish)
    except SourceError as error:
        raise CommandFailed(str(error)) from None
    return _print(found, playbook.name)


@contextlib.contextmanager
def _pinned(given: _Given, project: Path) -> Iterator[Collected]:
    """The collections and roles of ``--requirements``. Raises :class:`SourceError`."""
    if given.requirements is None:
        yield Collected()
        return
    wanted = requirements(_text(given.requirements, "--requirements").encode(), given.requirements.name)
    with scratch(work_folder()) as folder:
        sources = Sources(GitSettings(folder / "mirrors", allow_local=True))
        sources.learn(credential_store(_secrets(given.credentials), []))
        top = folder / "pinned"
        top.mkdir(mode=0o755)
        yield collect(wanted, top, project, PLAY, sources.remote("", local=True))


def _secrets(given: Path | None) -> list[Obj]:
    if given is None:
        return []
    loaded = load_all(_text(given, "--credentials"))
    found = loaded.values
    if not loaded.report.ok or not all(isinstance(each, dict) and each.get("kind") == "Secret" for each in found):
        raise CommandFailed(f"--credentials {given}: only Secrets of repositories are read there", USAGE)
    return [fold_string_data(each) for each in found]


def _print(found: Outcome, subject: str) -> int:
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    if not found.refusals:
        print(found.text, end="")
        return 0
    for refusal in found.refusals:
        print(f"refused: {refusal}", file=sys.stderr)
    count = len(found.refusals)
    things = "one thing" if count == 1 else f"{count} things"
    code = BLOCKED if found.run.report.succeeded else None
    raise CommandFailed(f"{subject} is not captured: {things} refused", code)


def _play(given: _Given, pool: str) -> Play:
    password = _text(given.vault_password_file, "--vault-password-file") if given.vault_password_file else ""
    return Play(
        "",
        inventory=f"[{pool}]\nlocalhost\n",
        limit=given.host,
        tags=given.tags,
        skip_tags=given.skip_tags,
        variables=_variables(given.variables),
        vault_password=password.strip(),
        collections=tuple(str(each.resolve()) for each in given.collections),
        roles=tuple(str(each.resolve()) for each in given.roles),
    )


def _text(path: Path, option: str) -> str:
    if path.stat().st_size > MAX_TEXT:
        raise CommandFailed(f"{option} {path}: more than {MAX_TEXT} bytes", USAGE)
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{option} {path}: not readable as text ({error})", USAGE) from None


def _variables(given: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in given:
        if each.startswith("@"):
            try:
                value = load(_text(Path(each[1:]), "--extra-vars"), file=each[1:])
            except YamlError as error:
                raise CommandFailed(f"--extra-vars {each}: {error}", USAGE) from None
            if not isinstance(value, dict):
                raise CommandFailed(f"--extra-vars {each}: a mapping is needed", USAGE)
            found |= value
            continue
        key, equals, text = each.partition("=")
        if not equals or not key.isidentifier():
            raise CommandFailed(f"--extra-vars {each}: write KEY=VALUE or @FILE", USAGE)
        found[key] = text
    return found


def _facts(source: str, kubeconfig: str | None, context: str | None) -> bytes:
    try:
        if Path(source).is_file():
            return read_facts(Path(source))
        with Connection(kubeconfig, context) as link:
            answer = link.send(client.get(link.resource(NODE), "", source))
            if answer.status == 404:
                fix = "`syncline node list` shows those that do"
                raise CommandFailed(f"--facts-from {source}: neither a file nor a node that exists; {fix}")
            return facts_of(facts_of_node(link.check(answer)), source)
    except SourceError as error:
        raise CommandFailed(str(error), USAGE) from None
