"""Executes the agent's steps on the host of a node, and undoes a step that fails halfway where upstream does."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeAlias, assert_never, get_args

from syncline.base.action import Purpose, Work
from syncline.kube.client import Request, Response, get
from syncline.kube.errors import Forbidden, NotFound
from syncline.kube.objects import Obj, ResourceInfo, name_of
from syncline.machineconfig.agent.files.authorities import write_authorities, write_server_authority
from syncline.machineconfig.agent.files.disk import Difference, boot_difference, drift_of
from syncline.machineconfig.agent.files.serverauthority import CONFIG_MAP, KUBECONFIG, bundle_of
from syncline.machineconfig.agent.files.users import set_passwords, update_keys
from syncline.machineconfig.agent.files.writing import CORE_OS, UpdateError, run_checked, update_files
from syncline.machineconfig.agent.host import Host, HostError
from syncline.machineconfig.agent.hosts import FORCE_FILE, Hosts
from syncline.machineconfig.agent.planning.changes import EMPTY, changed_units, config_of
from syncline.machineconfig.agent.planning.irreconcilable import irreconcilable_changes, status_changes
from syncline.machineconfig.agent.provisioning.first import begin_machine, write_installed
from syncline.machineconfig.agent.provisioning.firstboot import Booted
from syncline.machineconfig.agent.staging.deployments import has_deployed
from syncline.machineconfig.agent.staging.images import pin_images, pull_images
from syncline.machineconfig.agent.staging.staging import drop_staged, is_staged, stage_system
from syncline.machineconfig.agent.steps import (
    CheckDisk,
    Checked,
    CheckPlays,
    CompareInstalled,
    DropStaged,
    EndFirstBoot,
    EndJoining,
    HostStep,
    Ignite,
    LookAtBoot,
    PinImages,
    PlanPlays,
    PlayStep,
    Provision,
    Pulled,
    PullImages,
    ReadServerAuthority,
    RebootHost,
    RunPlays,
    RunService,
    SetUsers,
    StageSystem,
    StoreConfig,
    WriteAuthorities,
    WriteFiles,
)
from syncline.machineconfig.ansible.journal import Journal
from syncline.machineconfig.ansible.running import Running, forget_plays
from syncline.machineconfig.ansible.secrets import Secrets, read_secrets
from syncline.machineconfig.names import INSTALLED

HOST_STEPS = get_args(HostStep)
Value: TypeAlias = Checked | Booted | Pulled | Journal | list[Obj] | None
CRIO = "crio"
CONFIG_MAPS = ResourceInfo("", "v1", "ConfigMap", "configmaps", namespaced=True)


class HostHandler:
    """Executes host steps. Raises UpdateError if a host refuses."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts

    def handle(self, action: HostStep) -> Generator[Any, Any, Any]:
        if isinstance(action, ReadServerAuthority):
            return (yield from _server_authority())
        run: Callable[[], Value] = partial(self._do, action)
        if isinstance(action, PlayStep):
            run = partial(self._play, action, (yield from read_secrets(action)))
        if self._hosts.in_place:
            yield from ()
            return run()
        return (yield Work(action.describe(), run, Purpose.MACHINES))

    def _do(self, action: HostStep) -> Value:
        if not isinstance(action, WriteFiles | SetUsers):
            return self._step(action)
        try:
            return self._step(action)
        finally:  # also after a failure halfway: our own writes are no foreign change
            self._hosts.compared(action.node)

    def _play(self, action: PlayStep, secrets: Secrets) -> Journal:
        hosts, node = self._hosts, action.node
        facts = hosts.facts(node)
        boot_id = facts.boot_id if facts is not None else ""
        running = Running(node, hosts.host(node), hosts.player, action.config, boot_id, secrets)
        match action:
            case PlanPlays():
                return running.plan(action.plays)
            case CheckPlays():
                return running.check(action.plays)
            case RunPlays():
                return running.run(action.plays)

    def _step(self, action: HostStep) -> Value:  # noqa: C901  a table of types
        host = self._hosts.host(action.node)
        match action:
            case Provision():
                self._write(host, WriteFiles(action.node, None, action.config, True, action.reason))
                update_keys(host, _users(action.config), [])
                self._hosts.provision(action.node, action.config)
                self._hosts.store(action.node, action.config)
            case Ignite():
                self._ignite(host, action)
                begin_machine(self._hosts, host, action)
            case LookAtBoot() | EndFirstBoot() | EndJoining():
                return begin_machine(self._hosts, host, action)
            case WriteFiles():
                self._write(host, action)
            case WriteAuthorities():
                write_authorities(host, action.authorities)
                write_server_authority(host, action.authorities.server)
            case SetUsers():
                old, new = (_users(one) for one in (action.old, action.new))
                _set_users(host, new, old)
            case DropStaged():
                drop_staged(host, action.sparing)
            case StageSystem():
                hosts = self._hosts
                stage_system(host, action, hosts.booted_image(action.node), hosts.command_line(action.node))
            case StoreConfig():
                self._hosts.store(action.node, action.config, action.image)
                forget_plays(host, action.config)
            case RunService():
                _run_service(host, action)
            case RebootHost():
                try:
                    self._hosts.reboot(action.node, action.request)
                except OSError as error:
                    raise UpdateError("reboot command failed, something is seriously wrong") from error
            case CheckDisk():
                return self._check(host, action)
            case CompareInstalled():
                return _irreconcilable(host, action)
            case ReadServerAuthority():
                raise AssertionError("it is asked of the cluster, not of a host")
            case PlanPlays() | CheckPlays() | RunPlays():
                raise AssertionError("it has a way of its own")
            case PullImages():
                return pull_images(self._hosts, action)
            case PinImages():
                why = RunService(action.node, "reload", CRIO, action.reason)
                pin_images(host, action, lambda: _run_service(host, why))
            case _ as never:
                assert_never(never)
        return None

    def _write(self, host: Host, action: WriteFiles) -> None:
        old, new = config_of(action.old), config_of(action.new)
        units = changed_units(old, new)
        by_name = {str(unit.get("name", "")): unit for unit in (new.get("systemd") or {}).get("units") or ()}
        changed = [by_name[name] for name in (*units.added, *units.updated)]
        if action.forced and host.exists(FORCE_FILE):
            host.remove(FORCE_FILE)
        update_files(
            host, old, new, changed, forced=action.forced, skip_certificate=action.rotated, sparing=action.sparing
        )
        if host.exists(KUBECONFIG):
            host.write(KUBECONFIG, host.read(KUBECONFIG), mode=0o600)  # only root may read the credentials

    def _ignite(self, host: Host, action: Ignite) -> None:
        """Write the first files of a machine; first remove those of an interrupted attempt with another config."""
        node, new, why = action.node, action.config, action.reason
        begun = _installed(host)
        if begun is not None and name_of(begun) != name_of(new):
            nothing = begun | {"spec": {"config": EMPTY}}
            self._write(host, WriteFiles(node, begun, nothing, False, why, sparing=True))
        write_installed(host, action)
        self._write(host, WriteFiles(node, None, new, True, why))

    def _check(self, host: Host, action: CheckDisk) -> Checked:
        hosts, node = self._hosts, action.node
        hosts.compared(node, booted=action.layers)
        found = self._compare(host, action)
        if found.difference is not None:
            hosts.differs(node)
        return found

    def _compare(self, host: Host, action: CheckDisk) -> Checked:
        hosts, node = self._hosts, action.node
        if not action.booted:
            drift = drift_of(host, action.config)
            return Checked(Difference(drift.text) if drift is not None else None)
        deployed = has_deployed(host) if action.layers and host.os in CORE_OS else None
        failure = hosts.finalize_failure(node) if action.layers else None
        difference = boot_difference(
            host,
            action.config,
            booted_image=deployed.booted.image if deployed is not None else hosts.booted_image(node),
            running=hosts.command_line(node),
            image=action.image,
            finalize_failure=failure or "",
            booted=deployed.booted if deployed is not None else None,
        )
        unsupported = deployed.booted.unsupported if deployed is not None else None
        return Checked(difference, failure, unsupported, is_staged(action.config, deployed, action.image))


def _server_authority() -> Generator[Request, Response, bytes]:
    """Read the API server's certificates; empty if they are missing or not readable, as upstream."""
    answer = yield get(CONFIG_MAPS, *CONFIG_MAP)
    if answer.status in (Forbidden.code, NotFound.code):
        return b""
    return bundle_of(answer.or_raise())


def _irreconcilable(host: Host, action: CompareInstalled) -> list[Obj] | None:
    """Return the irreconcilable changes; None for machines that no config server installed, as upstream."""
    try:
        installed = _installed(host)
        return status_changes(irreconcilable_changes(installed, action.config)) if installed is not None else None
    except (HostError, ValueError):
        return None


def _installed(host: Host) -> Obj | None:
    """Return the MachineConfig that the machine was installed with, or None if it has no record of it."""
    try:
        found: Any = json.loads(host.read(INSTALLED))
    except (HostError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _users(config: Obj | None) -> list[Obj]:
    return list((config_of(config).get("passwd") or {}).get("users") or ())


def _set_users(host: Host, new: list[Obj], old: list[Obj]) -> None:
    """Set keys and passwords; restore the keys if the passwords cannot be set."""
    update_keys(host, new, old)
    try:
        set_passwords(host, new, old)
    except UpdateError as error:
        try:
            update_keys(host, old, new)
        except UpdateError as worse:
            raise UpdateError(f"error rolling back SSH keys updates: [{worse}, {error}]") from error
        raise


def _run_service(host: Host, action: RunService) -> None:
    command = ("systemctl", action.verb, action.service) if action.service else ("systemctl", action.verb)
    try:
        run_checked(host, *command)
    except UpdateError as error:
        if action.verb == "restart":
            raise UpdateError(
                f"could not apply update: restarting {action.service} service failed. Error: {error}"
            ) from error
        report = action.service or action.verb
        raise UpdateError(f"could not apply update: reloading {report} configuration failed. Error: {error}") from error
