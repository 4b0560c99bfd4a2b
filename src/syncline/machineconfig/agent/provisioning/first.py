"""Executes the first steps of a machine: what Ignition does to a blank one, and removal of the install's records."""

from __future__ import annotations

import contextlib

from syncline.kube.objects import Obj, dig
from syncline.machineconfig.agent.files.users import set_passwords, update_keys
from syncline.machineconfig.agent.files.writing import CORE_OS
from syncline.machineconfig.agent.host import Host, HostError
from syncline.machineconfig.agent.hosts import Hosts
from syncline.machineconfig.agent.planning.changes import config_of
from syncline.machineconfig.agent.provisioning.firstboot import FIPS_ENABLED, REBOOT_NOTE, Booted
from syncline.machineconfig.agent.steps import EndFirstBoot, EndJoining, Ignite, LookAtBoot
from syncline.machineconfig.names import ENCAPSULATED, INSTALLED, NODE_ANNOTATIONS
from syncline.machineconfig.server.joining import joining_files

ANNOTATIONS_BACKUP = "/etc/machine-config-daemon/node-annotation.json.bak"
"""Upstream's name, without its s."""


def begin_machine(hosts: Hosts, host: Host, action: Ignite | LookAtBoot | EndFirstBoot | EndJoining) -> Booted | None:
    """Execute a step. The caller has written an :class:`Ignite`'s files. Raises UpdateError and HostError."""
    match action:
        case Ignite():
            _ignite(hosts, host, action)
        case LookAtBoot():
            image = hosts.booted_image(action.node) if host.os in CORE_OS else None
            return Booted(image, hosts.command_line(action.node), _kernel_fips(host))
        case EndFirstBoot(reboot_from=boot) if boot:
            host.write(REBOOT_NOTE, boot.encode())
            _put_away(host, ENCAPSULATED, f"{ENCAPSULATED}.bak")
        case EndFirstBoot(kept=True):
            _put_away(host, ENCAPSULATED, f"{ENCAPSULATED}.bak")
        case EndFirstBoot():
            for path in (ENCAPSULATED, REBOOT_NOTE):
                with contextlib.suppress(HostError):  # one of the two exists
                    host.remove(path)
        case EndJoining():
            _put_away(host, NODE_ANNOTATIONS, ANNOTATIONS_BACKUP)
    return None


def write_installed(host: Host, action: Ignite) -> None:
    """Record the MachineConfig of the install before anything else is written."""
    host.write(INSTALLED, dict(joining_files(action.config, action.image))[INSTALLED].encode())


def _ignite(hosts: Hosts, host: Host, action: Ignite) -> None:
    config = config_of(action.config)
    users = list((config.get("passwd") or {}).get("users") or ())
    update_keys(host, users, [])
    set_passwords(host, users, [])
    if dig(action.config, "spec", "fips"):
        host.write(FIPS_ENABLED, b"1\n")  # the installer does this: FIPS mode is fixed at the install
    for path, text in joining_files(action.config, action.image):
        if path != INSTALLED:
            host.write(path, text.encode())
    arguments = list((config.get("kernelArguments") or {}).get("shouldExist") or ())
    system: Obj = {"osImageURL": action.boot_image, "kernelArguments": arguments}
    hosts.provision(action.node, {"spec": system})


def _kernel_fips(host: Host) -> str | None:
    try:
        return host.read(FIPS_ENABLED).decode("utf-8", "replace")
    except HostError:
        return None


def _put_away(host: Host, path: str, backup: str) -> None:
    if host.exists(path):
        host.copy(path, backup)
        host.remove(path)
