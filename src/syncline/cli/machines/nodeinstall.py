"""``syncline node-agent install``: installs the agent as a systemd service, here or below a root directory."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import click

from syncline.base.clock import SystemClock
from syncline.cli.frame.failure import USAGE, CommandFailed
from syncline.cli.machines.node import label_pairs
from syncline.hosts.linuxhost import LinuxHost
from syncline.hosts.nodeservice import KUBECONFIG, SERVICE, Service, install_service, unit_text
from syncline.kube.transport.kubeconfig import KubeconfigError, load_kubeconfig
from syncline.machineconfig.agent.host import HostError


@click.command()
@click.option(
    "--kubeconfig", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Copied to the machine."
)
@click.option("--node", default="", help="Its node [default: the host name].")
@click.option("--register", is_flag=True, help="Make its Node and keep it Ready: for machines without a kubelet.")
@click.option("--label", "labels", multiple=True, help="KEY=VALUE of the Node that --register makes; repeatable.")
@click.option("--program", default="", help="Path of syncline on that machine [default: this one].")
@click.option(
    "--root",
    default=Path("/"),
    show_default=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory of the machine's files; nothing outside is touched.",
)
@click.option("--print", "only_print", is_flag=True, help="Print the unit; do nothing.")
def install(
    kubeconfig: Path | None,
    node: str,
    register: bool,
    labels: tuple[str, ...],
    program: str,
    root: Path,
    only_print: bool,
) -> None:
    """Make the agent a service of systemd, enabled, and started where the system runs.

    The kubeconfig goes to /etc/syncline/node-agent.kubeconfig, mode 0600; `syncline node kubeconfig` makes one.
    A second unit finishes the first boot of a machine that a config server has installed; elsewhere it does nothing.

    \b
    Examples:  syncline node-agent install --print
               syncline node-agent install --kubeconfig edge-1.kubeconfig --node edge-1 --root /mnt/image
    """
    if labels and not register:
        raise CommandFailed("--label is for the Node that --register makes; add --register", USAGE)
    service = Service(program or _this_program(), node, register, label_pairs(labels))
    if not service.program.startswith("/") or "\n" in service.program + node:
        raise CommandFailed(f"--program {service.program}: give an absolute path", USAGE)
    if only_print:
        print(unit_text(service), end="")
        return
    try:
        host = LinuxHost(root, SystemClock())
        given = _checked(kubeconfig)
        if given is None and not host.exists(KUBECONFIG):
            raise CommandFailed(f"there is no {KUBECONFIG} yet; give --kubeconfig FILE", USAGE)
        install_service(host, service, given)
    except HostError as error:
        raise CommandFailed(str(error)) from error
    print(f"{SERVICE} is enabled" + (" and started" if host.running else f" below {root}"))


def _this_program() -> str:
    return shutil.which(sys.argv[0]) or shutil.which("syncline") or "/usr/local/bin/syncline"


def _checked(kubeconfig: Path | None) -> bytes | None:
    """Return the kubeconfig's content. It must be self-contained, as it will be read where its files do not exist."""
    if kubeconfig is None:
        return None
    try:
        access = load_kubeconfig(kubeconfig)
        content = kubeconfig.read_bytes()
    except (KubeconfigError, OSError) as error:
        raise CommandFailed(str(error), USAGE) from error
    named = re.search(rb"\b(certificate-authority|client-certificate|client-key|tokenFile)[\"']?\s*:", content)
    if named is not None:
        mend = "`kubectl config view --flatten --raw` puts it in"
        raise CommandFailed(f"{kubeconfig}: {named[1].decode()} names a file of this machine; {mend}", USAGE)
    if access.exec_plugin is not None:
        raise CommandFailed(
            f"{kubeconfig}: users.exec runs a program of this machine; give a certificate or token", USAGE
        )
    return content
