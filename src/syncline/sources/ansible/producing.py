"""What was captured as a MachineConfig, as Butane or as a Containerfile: :func:`produce`; pure.

A running node takes neither links nor folders nor users beside core from a config
(``machineconfig/configs/reconcile.py``); links and folders therefore become lines of tmpfiles.d, which each boot
carries out, unless the config is for the first boot. Contents are data URLs; the same capture gives the same bytes.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from urllib.parse import quote

from syncline.kube.objects import Obj
from syncline.kube.yaml import loading as yaml
from syncline.sources.ansible.accounts import CORE, User
from syncline.sources.ansible.judging import Captured, File, Folder, Refusal

IGNITION = "3.4.0"
BUTANE = "4.16.0"
ROLE = "machineconfiguration.openshift.io/role"
EXTENSIONS = {
    "usbguard": "usbguard",
    "krb5-workstation": "kerberos",
    "libkadm5": "kerberos",
    "kernel-devel": "kernel-devel",
    "kernel-headers": "kernel-devel",
    "kata-containers": "sandboxed-containers",
    "libreswan": "ipsec",
    "NetworkManager-libreswan": "ipsec",
    "sysstat": "sysstat",
}
"""The packages that extensions of the OS bring (``machineconfig/configs/extensions.py``)."""


class Output(StrEnum):
    MACHINE_CONFIG = "mc"
    BUTANE = "butane"
    CONTAINERFILE = "containerfile"


@dataclass(frozen=True, slots=True)
class Produced:
    text: str
    objects: tuple[Obj, ...]
    refusals: tuple[Refusal, ...]


def produce(captured: Captured, output: Output, *, pool: str, name: str, first_boot: bool = False) -> Produced:
    """Return the text, and what this form of output cannot carry."""
    if output is Output.CONTAINERFILE:
        return Produced(containerfile(captured), (), tuple(_not_in_an_image(captured)))
    refusals = list(_not_in_a_config(captured, first_boot=first_boot))
    natively = first_boot and output is Output.MACHINE_CONFIG  # Butane's OpenShift knows neither links nor folders
    fitted = captured if natively else at_each_boot(captured, name)
    config = machine_config(fitted, pool=pool, name=name)
    text = yaml.dump(config) if output is Output.MACHINE_CONFIG else yaml.dump(butane(fitted, pool=pool, name=name))
    return Produced(text, (config,), tuple(refusals))


def is_empty(captured: Captured) -> bool:
    return captured == Captured()


# -- what does not fit -----------------------------------------------------------------------------------------------


def _not_in_a_config(captured: Captured, *, first_boot: bool) -> Iterable[Refusal]:
    for package in captured.packages:
        if package not in EXTENSIONS:
            what = f"the package {package} comes with no extension of the OS"
            fix = f"say --installed {package} if the image has it, or build an image (-o containerfile)"
            yield Refusal(what, fix, subject=package)
    if not first_boot:
        for user in captured.users:
            if user.name != CORE:
                what = f"a running node takes no user beside core, and the playbook adds {user.name}"
                yield Refusal(
                    what, "make the user at installation (--first-boot), or give keys to core", subject="/etc/passwd"
                )
        for group in captured.groups:
            what = f"a running node takes no group, and the playbook adds {group.name}"
            yield Refusal(
                what, "make the group at installation (--first-boot), or by a file of sysusers.d", subject="/etc/group"
            )


def _not_in_an_image(captured: Captured) -> Iterable[Refusal]:
    for user in captured.users:
        what = f"an image carries no user, and the playbook adds {user.name}"
        yield Refusal(what, "capture it as a MachineConfig", subject="/etc/passwd")
    if captured.kernel_arguments:
        arguments = " ".join(captured.kernel_arguments)
        what = f"an image carries no kernel arguments ({arguments})"
        yield Refusal(what, "capture them as a MachineConfig", subject=captured.kernel_arguments[0])


def at_each_boot(captured: Captured, name: str) -> Captured:
    """The same with folders and links as lines of tmpfiles.d(5)."""
    lines = [
        *(
            f"d {_escaped(each.path)} {each.mode:04o} {each.user or 'root'} {each.group or 'root'} -"
            for each in captured.folders
        ),
        *(f"L+ {_escaped(path)} - - - - {_specifiers(target)}" for path, target in captured.links),
    ]
    if not lines:
        return captured
    file = File(f"/etc/tmpfiles.d/{name}.conf", ("\n".join(lines) + "\n").encode())
    return replace(captured, files=(*captured.files, file), folders=(), links=())


def _escaped(path: str) -> str:
    text = _specifiers(path)
    return (
        text
        if not any(each in text for each in " \t\"'\\")
        else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    )


def _specifiers(text: str) -> str:
    return text.replace("%", "%%")


# -- MachineConfig ---------------------------------------------------------------------------------------------------


def machine_config(captured: Captured, *, pool: str, name: str) -> Obj:
    config: dict[str, Any] = {"ignition": {"version": IGNITION}}
    passwd = _filled(
        users=[_user(each) for each in captured.users],
        groups=[{"name": each.name, "gid": each.gid} for each in captured.groups],
    )
    storage = _filled(
        directories=[_node(each) for each in captured.folders],
        files=[_file(each) for each in captured.files],
        links=[{"path": path, "target": target, "overwrite": True} for path, target in captured.links],
    )
    units = [_unit_fields(each) for each in captured.units]
    config |= _filled(passwd=passwd, storage=storage, systemd=_filled(units=units))
    spec: dict[str, Any] = {"config": config}
    spec |= _filled(kernelArguments=list(captured.kernel_arguments), extensions=_extensions(captured))
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {ROLE: pool}},
        "spec": spec,
    }


def _filled(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _extensions(captured: Captured) -> list[str]:
    return list(dict.fromkeys(EXTENSIONS[each] for each in captured.packages if each in EXTENSIONS))


def _owner(value: str | int) -> dict[str, Any]:
    return {"name": value} if isinstance(value, str) else {"id": value}


def _node(each: File | Folder) -> dict[str, Any]:
    owners = _filled(user=_owner(each.user) if each.user else None, group=_owner(each.group) if each.group else None)
    return {"path": each.path, "mode": each.mode, "overwrite": True, **owners}


def _file(each: File) -> dict[str, Any]:
    return {**_node(each), "contents": {"source": data_url(each.content)}}


def data_url(content: bytes) -> str:
    """Text as it reads, anything else as base64: a person sees what changed."""
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError:
        return f"data:;base64,{base64.b64encode(content).decode()}"
    return f"data:,{quote(text, safe='/:=,')}"


def _unit_fields(each: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"name": each.name}
    optional = {"contents": each.contents, "enabled": each.enabled, "mask": each.mask}
    found |= {name: value for name, value in optional.items() if value is not None}
    return found | _filled(dropins=[{"name": name, "contents": text} for name, text in sorted(each.dropins)])


def _user(each: User) -> dict[str, Any]:
    if each.name == CORE:
        found: dict[str, Any] = {"name": CORE}
    else:
        found = {"name": each.name, "uid": each.uid, "homeDir": each.home, "shell": each.shell}
        found |= _filled(gecos=each.gecos, groups=list(each.groups))
        found |= _filled(primaryGroup=each.primary if each.primary != each.name else "")
    usable = each.password.startswith("$")
    return found | _filled(passwordHash=each.password if usable else "", sshAuthorizedKeys=list(each.keys))


# -- Butane ----------------------------------------------------------------------------------------------------------


def butane(captured: Captured, *, pool: str, name: str) -> dict[str, Any]:
    """The same in Butane's language, with contents in line."""
    config = machine_config(captured, pool=pool, name=name)
    ignition = config["spec"]["config"]
    storage = dict(ignition.get("storage", {}))
    if captured.files:
        storage["files"] = [_butane_file(each) for each in captured.files]
    passwd = {
        "users": [_butane_user(each) for each in ignition.get("passwd", {}).get("users", ())],
        "groups": ignition.get("passwd", {}).get("groups", []),
    }
    found: dict[str, Any] = {"variant": "openshift", "version": BUTANE, "metadata": config["metadata"]}
    extra = {"kernel_arguments": list(captured.kernel_arguments), "extensions": _extensions(captured)}
    openshift = _filled(**extra)
    return found | _filled(
        openshift=openshift, passwd=_filled(**passwd), storage=storage, systemd=ignition.get("systemd")
    )


def _butane_file(each: File) -> dict[str, Any]:
    try:
        contents = {"inline": each.content.decode()}
    except UnicodeDecodeError:
        contents = {"source": data_url(each.content)}
    return {**_node(each), "contents": contents}


_BUTANE_NAMES = {
    "homeDir": "home_dir",
    "passwordHash": "password_hash",
    "sshAuthorizedKeys": "ssh_authorized_keys",
    "primaryGroup": "primary_group",
}


def _butane_user(each: dict[str, Any]) -> dict[str, Any]:
    return {_BUTANE_NAMES.get(name, name): value for name, value in each.items()}


# -- image mode ------------------------------------------------------------------------------------------------------


def containerfile(captured: Captured) -> str:
    """A Containerfile as a MachineOSConfig takes it: packages, files, units; it needs no build context."""
    steps = ["FROM configs AS final"]
    if captured.packages:
        steps.append(f"RUN dnf install -y {' '.join(map(shlex.quote, captured.packages))} && dnf clean all")
    for folder in captured.folders:
        steps.append(f"RUN install -d {_installing(folder)} {shlex.quote(folder.path)}")
    for each in captured.files:
        content = base64.b64encode(each.content).decode()
        target = shlex.quote(each.path)
        steps.append(f"RUN echo '{content}' | base64 -d | install -D {_installing(each)} /dev/stdin {target}")
    for path, target in captured.links:
        steps.append(f"RUN ln -sfn {shlex.quote(target)} {shlex.quote(path)}")
    for unit in captured.units:
        steps += _unit_steps(unit)
    steps.append("RUN ostree container commit")
    return "\n".join(steps) + "\n"


def _installing(each: File | Folder) -> str:
    return f"-m {each.mode:04o} -o {each.user or 'root'} -g {each.group or 'root'}"


def _unit_steps(unit: Any) -> Iterable[str]:
    texts = [(f"/etc/systemd/system/{unit.name}", unit.contents)] if unit.contents is not None else []
    texts += [(f"/etc/systemd/system/{unit.name}.d/{name}", text) for name, text in unit.dropins]
    for path, text in texts:
        content = base64.b64encode(text.encode()).decode()
        yield f"RUN echo '{content}' | base64 -d | install -D -m 0644 /dev/stdin {shlex.quote(path)}"
    verbs = (("enable", unit.enabled is True), ("disable", unit.enabled is False), ("mask", unit.mask is True))
    for verb, wanted in verbs:
        if wanted:
            yield f"RUN systemctl {verb} {shlex.quote(unit.name)}"
