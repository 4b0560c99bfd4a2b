"""``syncline node-agent``: applies the MachineConfig of its node to this machine, or of a file to a directory tree."""

from __future__ import annotations

import asyncio
import contextlib
import platform
import signal
from pathlib import Path

import click

from syncline.base.clock import SystemClock
from syncline.cli.access.connection import connection_options, default_kubeconfig
from syncline.cli.access.manifests import read_manifests
from syncline.cli.frame.failure import BLOCKED, FAILED, USAGE, CommandFailed
from syncline.cli.frame.lazy import CONTEXT, Group
from syncline.cli.frame.terminal import start_logging
from syncline.cli.machines.node import label_pairs
from syncline.cli.machines.nodeinstall import install
from syncline.cli.views.machineconfig import contents_text
from syncline.hosts.linuxhost import LinuxHost, LinuxHosts
from syncline.hosts.nodeagent import ShownHost, Standing, apply_config, boot_first, serve_agent
from syncline.kube.objects import Obj, dig, name_of
from syncline.kube.transport.kubeconfig import KubeconfigError, load_kubeconfig
from syncline.machineconfig.agent.files.writing import UpdateError
from syncline.machineconfig.agent.host import HostError
from syncline.machineconfig.agent.provisioning.firstboot import FirstBootError
from syncline.machineconfig.configs.parsing import NEWEST_VERSION, ConfigError

BEYOND = ("kernelArguments", "kernelType", "extensions", "fips", "osImageURL")
"""Fields of a MachineConfig that are not files of a tree."""
SHOWN = 3
"""Kinds named in a message before it is cut."""

_ROOT = click.option(
    "--root",
    default=Path("/"),
    show_default=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory of the machine's files; nothing outside is touched.",
)
_DRY = click.option("--dry-run", is_flag=True, help="Print every step: paths, modes, command lines; do nothing.")


@click.group("node-agent", cls=Group, invoke_without_command=True, context_settings=CONTEXT)
@connection_options
@click.option("--node", default=None, envvar="NODE_NAME", help="Its node [env: NODE_NAME; default: the host name].")
@_ROOT
@click.option("--offline", is_flag=True, help="The system below --root does not run: skip what needs that.")
@click.option("--register", is_flag=True, help="Make its Node and keep it Ready: for machines without a kubelet.")
@click.option("--label", "labels", multiple=True, help="KEY=VALUE of the Node that --register makes; repeatable.")
@click.option("--once", is_flag=True, help="End when the node is at rest or has failed.")
@click.option("--patience", default=10.0, show_default=True, help="Seconds that --once waits when nothing moves.")
@_DRY
@click.pass_context
def node_agent(
    ctx: click.Context,
    kubeconfig: str | None,
    context: str | None,
    node: str | None,
    root: Path,
    offline: bool,
    register: bool,
    labels: tuple[str, ...],
    once: bool,
    patience: float,
    dry_run: bool,
) -> int | None:
    """Bring this machine to the MachineConfig of its node: files, units, users, kernel, reboots, as upstream's daemon.

    \b
    Examples: syncline node-agent --node worker-1 --dry-run      what it would do, step by step
              syncline node-agent --node worker-1                keep it so, until stopped
              syncline node-agent apply -f config.yaml --root D  a tree, without any cluster
    \b
    Exit codes of --once: 0 the node is at rest, 1 it failed, 3 it waits for others
    """
    if ctx.invoked_subcommand is not None:
        return None
    try:
        access = load_kubeconfig(kubeconfig or default_kubeconfig(), context)
    except (KubeconfigError, OSError) as error:
        raise CommandFailed(str(error), USAGE) from error
    if labels and not register:
        raise CommandFailed("--label is for the Node that --register makes; add --register", USAGE)
    given = label_pairs(labels)
    name = node or platform.node().lower()
    host = _host(root, offline, dry_run)
    hosts = LinuxHosts(name, host, in_place=dry_run)
    if not (host.running or offline or dry_run):
        message = f"warning: the system below {root} does not run: an update that needs a reboot or a service will fail"
        click.echo(f"{message}; with --offline it counts as rebooted", err=True)
    start_logging()

    async def serve() -> Standing:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # no signal handlers here: Ctrl-C raises instead
                asyncio.get_running_loop().add_signal_handler(number, stop.set)

        def started() -> None:
            if not once and not dry_run:
                print(f"the agent of {name} watches {access.server}; SIGTERM or Ctrl-C ends it", flush=True)

        waits = patience if once or dry_run else None
        tell = print if dry_run else None
        return await serve_agent(
            access,
            hosts,
            SystemClock(),
            stop,
            patience_s=waits,
            tell=tell,
            started=started,
            register=given if register else None,
            kubeconfig=Path(kubeconfig) if kubeconfig and not once and not dry_run else None,
        )

    try:
        standing = asyncio.run(serve())
    except HostError as error:
        raise CommandFailed(str(error)) from error
    _print_notes(host)
    if not once and not dry_run:
        return 0
    if dry_run and register and standing.missing:
        print(f"Node {name} would be made; what it is to have is known then")
        return 0
    if not dry_run or standing.failed or standing.missing:
        print(standing.why)
    if dry_run:
        return FAILED if standing.failed or standing.missing else 0
    return 0 if standing.rest else FAILED if standing.failed else BLOCKED


node_agent.add_command(install)


@node_agent.command()
@click.option(
    "-f", "--file", "place", required=True, metavar="FILE", help="One MachineConfig, also as Butane (.bu); - for stdin."
)
@_ROOT
@_DRY
def apply(place: str, root: Path, dry_run: bool) -> int:
    """Write a MachineConfig below a root directory, without any cluster: files, units, keys and passwords.

    What the MachineConfig applied before had alone is taken away. Nothing is restarted. Good for images.

    \b
    Examples: syncline node-agent apply -f 99-worker-motd.yaml --root ./tree --dry-run
              syncline node-agent apply -f 99-worker-motd.bu --root ./tree
    """
    config, beyond = _machine_config(place)
    host = _host(root, root.resolve() != Path("/"), dry_run)
    hosts = LinuxHosts(platform.node().lower(), host, in_place=True)
    try:
        if not dry_run:
            hosts.lock()
        apply_config(hosts, config)
    except (UpdateError, HostError, ConfigError) as error:
        raise CommandFailed(f"-f {place}: {str(error).rstrip()}") from error
    finally:
        hosts.unlock()
    _print_notes(host)
    for field in beyond:
        print(f"left out: {field}; files, units, keys and passwords alone are written")
    if not dry_run:
        report = contents_text({"spec": {"config": config["spec"]["config"]}})
        print(f"{name_of(config)} is written below {root}: {report or 'nothing is in it'}")
    return 0


@node_agent.command()
@_ROOT
@click.option("--offline", is_flag=True, help="The system below --root does not run: skip what needs that.")
@_DRY
def firstboot(root: Path, offline: bool, dry_run: bool) -> int:
    """Finish the first boot of an installed machine, before it joins: image, kernel, packages, and a reboot.

    For a unit that runs before the kubelet, where /etc/ignition-machine-config-encapsulated.json is. That file is
    renamed to .bak, or removed where nothing differs. The agent does the same by itself otherwise.

    \b
    Examples: syncline node-agent firstboot --dry-run         what it would stage
              syncline node-agent firstboot                   do it, and reboot if it is needed
    """
    host = _host(root, offline, dry_run)
    hosts = LinuxHosts(platform.node().lower(), host, in_place=True)
    try:
        hosts.lock()
        done = boot_first(hosts, print)
    except (UpdateError, HostError, FirstBootError) as error:
        raise CommandFailed(str(error)) from error
    finally:
        hosts.unlock()
    _print_notes(host)
    print("nothing to do: this was no first boot" if done is None else done)
    return 0


def _host(root: Path, offline: bool, dry_run: bool) -> LinuxHost:
    try:
        if dry_run:
            return ShownHost(root, SystemClock(), offline=offline, tell=lambda line: print(f"    {line}"))
        return LinuxHost(root, SystemClock(), offline=offline)
    except HostError as error:
        raise CommandFailed(str(error), USAGE) from error


def _machine_config(place: str) -> tuple[Obj, list[str]]:
    """Return the single MachineConfig of a file, and its fields that a tree cannot hold."""
    found = read_manifests(place)
    if [one["kind"] for one in found] != ["MachineConfig"]:
        message = ", ".join(str(one["kind"]) for one in found[:SHOWN]) or "nothing"
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise CommandFailed(f"-f {place}: found {message}{more}; give one MachineConfig", USAGE)
    config, spec = found[0], found[0].get("spec")
    if spec is not None and not isinstance(spec, dict):
        raise CommandFailed(f"-f {place}: spec is {spec!r:.40}, it must be an object", USAGE)
    if not dig(config, "spec", "config"):
        config = config | {"spec": (spec or {}) | {"config": {"ignition": {"version": NEWEST_VERSION}}}}
    return config, [f"spec.{field}" for field in BEYOND if dig(config, "spec", field)]


def _print_notes(host: LinuxHost) -> None:
    for note in host.notes:
        print(note)
