"""Stands for the programs and modules that act on a running system, in the throwaway root: WANT_JSON

One file under many names: as a command (``systemctl``, ``rpm-ostree``, ...) or as a module of Ansible (``systemd``,
``dnf``, ...), which then gets its arguments as JSON (that word above makes Ansible call it so). What a node's files
express is written to the tree (links of enabled units); what only a running system has (starts, live parameters,
packages, kernel arguments) is recorded, a JSON line each, and judged outside by ``sources/ansible/judging.py``.
"""

from __future__ import annotations

import json
import os
import re
import sys

ROLE = ""
RECORDED = "/run/.syncline/recorded"
INSTALLED = "/.syncline/private/installed"
FACTS = "/.syncline/private/facts"
ANY_UNIT = "/.syncline/private/any-unit"
ETC = "/etc/systemd/system"
UNIT_FOLDERS = (ETC, "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system")
SUFFIXES = (".service", ".socket", ".timer", ".target", ".mount", ".path", ".slice", ".swap", ".automount", ".device")


def record(kind, **fields):
    line = json.dumps({"kind": kind, **fields})[:8000] + "\n"
    opened = os.open(RECORDED, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(opened, line.encode())
    os.close(opened)


# -- units -----------------------------------------------------------------------------------------------------------


def full_name(name):
    name = os.path.basename(name)
    return name if name.endswith(SUFFIXES) else f"{name}.service"


def unit_file(name):
    template = re.sub(r"@.*(?=\.)", "@", name)
    for folder in UNIT_FOLDERS:
        for each in dict.fromkeys((name, template)):
            path = f"{folder}/{each}"
            if os.path.lexists(path):
                return path
    return ""


def install_section(path):
    found, section = {}, ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                line = line.strip()
                if line.startswith("["):
                    section = line
                elif section == "[Install]" and "=" in line and not line.startswith(("#", ";")):
                    key, _, value = line.partition("=")
                    found.setdefault(key.strip(), []).extend(value.split())
    except OSError:
        pass
    return found


def is_masked(name):
    path = f"{ETC}/{name}"
    return os.path.islink(path) and os.readlink(path) == "/dev/null"


def links_of(name):
    for folder, folders, files in os.walk(ETC):
        for each in sorted((*folders, *files)):
            path = os.path.join(folder, each)
            target = os.readlink(path) if os.path.islink(path) else ""
            if (
                target
                and os.path.basename(target) != "null"
                and (each == name if folder.endswith((".wants", ".requires")) else os.path.basename(target) == name)
            ):
                yield path


def state_of(name):
    if is_masked(name):
        return "masked"
    if any(True for _ in links_of(name)):
        return "enabled"
    path = unit_file(name)
    if not path:
        return "not-found"
    return "disabled" if set(install_section(path)) & {"WantedBy", "RequiredBy", "Alias", "Also"} else "static"


def known(name):
    return bool(unit_file(name)) or os.path.exists(ANY_UNIT)


def link(target, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.islink(path) and os.readlink(path) == target:
        return False
    if os.path.lexists(path):
        os.unlink(path)
    os.symlink(target, path)
    return True


def enable(name):
    """A unit that no file of this tree describes is enabled on the node alone: it is recorded."""
    path = unit_file(name)
    if not path:
        record("enable", unit=name)
        return True
    wanted, changed = install_section(path), False
    for key, folder in (("WantedBy", "wants"), ("RequiredBy", "requires")):
        for target in wanted.get(key, ()):
            changed |= link(path, f"{ETC}/{target}.{folder}/{name}")
    for alias in wanted.get("Alias", ()):
        changed |= link(path, f"{ETC}/{alias}")
    for also in wanted.get("Also", ()):
        if also != name and unit_file(also) and state_of(also) == "disabled":
            changed |= enable(also)
    record("enabled", unit=name)
    return changed


def disable(name):
    found = list(links_of(name))
    for path in found:
        os.unlink(path)
    record("disable", unit=name, file=bool(unit_file(name)))
    return bool(found) or not unit_file(name)


def mask(name, wanted):
    path = f"{ETC}/{name}"
    if wanted:
        return link("/dev/null", path)
    if is_masked(name):
        os.unlink(path)
        return True
    return False


LIVE = {
    "start": "start",
    "stop": "stop",
    "restart": "restart",
    "reload": "reload",
    "try-restart": "restart",
    "condrestart": "restart",
    "reload-or-restart": "restart",
    "try-reload-or-restart": "restart",
    "kill": "stop",
    "isolate": "isolate",
}
QUIET = {"daemon-reload", "daemon-reexec", "reset-failed"}


def systemctl(words):
    options = [word for word in words if word.startswith("-")]
    rest = [word for word in words if not word.startswith("-")]
    verb, names = (rest[0] if rest else "list-units"), [full_name(each) for each in rest[1:]]
    quiet = "-q" in options or "--quiet" in options
    if verb in LIVE:
        for name in names:
            record("live", verb=LIVE[verb], unit=name)
        return 0
    if verb in QUIET:
        return 0
    if verb in ("enable", "disable", "mask", "unmask", "reenable"):
        return change_units(verb, names, now="--now" in options)
    if verb == "is-enabled":
        states = [state_of(name) for name in names]
        if not quiet:
            print("\n".join(states))
        return 0 if any(each in ("enabled", "static") for each in states) else 1
    if verb == "is-active":
        active = [state_of(name) in ("enabled", "static") for name in names]
        if not quiet:
            print("\n".join("active" if each else "inactive" for each in active))
        return 0 if any(active) else 3
    if verb == "show":
        for name in names:
            print("\n".join(f"{key}={value}" for key, value in status(name).items()))
        return 0
    if verb == "is-system-running":
        print("running")
        return 0
    if verb == "status" and names:
        return 0 if state_of(names[0]) in ("enabled", "static") else 3
    if verb in ("list-units", "list-unit-files", "status", "cat", "get-default"):
        return 0
    record("unknown", command=" ".join(["systemctl", *words]))
    return fail(f"systemctl {verb}: cannot be captured")


def change_units(verb, names, now):
    for name in names:
        if not known(name):
            return fail(f"Failed to {verb} unit: Unit file {name} does not exist.")
        if verb in ("mask", "unmask"):
            mask(name, verb == "mask")
        elif verb == "disable":
            disable(name)
        else:
            enable(name)
        if now:
            record("live", verb="start" if verb.endswith("enable") else "stop", unit=name)
    return 0


def status(name):
    state = state_of(name)
    active = state in ("enabled", "static")
    return {
        "Id": name,
        "LoadState": "masked" if state == "masked" else "loaded" if known(name) else "not-found",
        "ActiveState": "active" if active else "inactive",
        "SubState": "running" if active else "dead",
        "UnitFileState": state if state != "not-found" else "",
    }


def module_systemd(given):
    """``systemd``, ``service``, ``sysvinit``: state, enabled, masked, daemon_reload."""
    check, changed = given.get("_ansible_check_mode"), False
    name = given.get("name") or given.get("unit") or given.get("service") or ""
    if given.get("scope", "system") != "system":
        return {"failed": True, "msg": f"units of users (scope {given['scope']}) cannot be captured"}
    if not name:
        return {"changed": False}
    name = full_name(name)
    if not known(name):
        return {"failed": True, "msg": f"Could not find the requested service {name}: the tree has no such unit"}
    if given.get("masked") is not None and truth(given["masked"]) != is_masked(name):
        changed = True
        if not check:
            mask(name, truth(given["masked"]))
    if given.get("enabled") is not None:
        wanted, state = truth(given["enabled"]), state_of(name)
        if (wanted and state in ("disabled", "not-found")) or (not wanted and state in ("enabled", "not-found")):
            changed = True
            if not check:
                enable(name) if wanted else disable(name)
    state = given.get("state")
    active = state_of(name) in ("enabled", "static", "not-found")
    if state in ("restarted", "reloaded") or ((state == "started") != active and state):
        verb = {"started": "start", "stopped": "stop", "restarted": "restart", "reloaded": "reload"}[state]
        if not (state == "stopped" and state_of(name) in ("disabled", "masked")):
            changed = True
            if not check:
                record("live", verb=verb, unit=name)
    found = {"changed": changed, "name": name.removesuffix(".service"), "status": status(name)}
    found |= {"enabled": truth(given["enabled"])} if given.get("enabled") is not None else {}
    return found | ({"state": "stopped" if state == "stopped" else "started"} if state else {})


def module_service_facts(given):
    services = {}
    for folder in reversed(UNIT_FOLDERS):
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if name.endswith(".service") and "@." not in name:
                state = state_of(name)
                running = "running" if state == "enabled" else "stopped"
                services[name] = {"name": name, "state": running, "status": state, "source": "systemd"}
    return {"changed": False, "ansible_facts": {"services": services}}


# -- facts -----------------------------------------------------------------------------------------------------------


def module_setup(given):
    """The facts of a node that was named, whatever part of them is asked for."""
    with open(FACTS, encoding="utf-8") as file:
        return {"changed": False, "ansible_facts": json.load(file)}


# -- packages --------------------------------------------------------------------------------------------------------


def installed():
    """Packages that the image has, and those that this play has installed or removed."""
    names = set()
    try:
        with open(INSTALLED, encoding="utf-8") as file:
            names.update(file.read().split())
        with open(RECORDED, encoding="utf-8") as file:
            for line in file:
                found = json.loads(line)
                if found["kind"] == "install":
                    names.add(bare(found["package"]))
                elif found["kind"] == "remove":
                    names.discard(bare(found["package"]))
    except (OSError, ValueError, KeyError, RecursionError):
        pass
    return names


def bare(package):
    """``chrony-4.5-1.el9.x86_64``, ``chrony==4.5`` and ``chrony`` are one package."""
    name = re.split(r"[<>=\s]", package)[0]
    return re.sub(r"-\d[^-]*(-[^-]+)?$", "", name)


def module_packages(given):
    """``dnf``, ``apt`` and their like: name, state."""
    names = given.get("name") or given.get("pkg") or given.get("package") or []
    names = [each.strip() for each in names.split(",")] if isinstance(names, str) else list(names)
    state, have, changed = given.get("state") or "present", installed(), []
    for name in names:
        if name in ("*", "") or name.startswith(("/", "http:", "https:", "@")):
            return {"failed": True, "msg": f"{name or 'everything'}: only packages by name can be captured"}
        gone = state in ("absent", "removed")
        if state == "latest" or gone == (bare(name) in have):
            changed.append(name)
            if not given.get("_ansible_check_mode"):
                record("remove" if gone else "install", package=name, latest=state == "latest")
    return {"changed": bool(changed), "results": [f"{state}: {each}" for each in changed], "rc": 0}


def module_package_facts(given):
    packages = {name: [{"name": name, "version": "0", "release": "0", "source": "rpm"}] for name in sorted(installed())}
    return {"changed": False, "ansible_facts": {"packages": packages}}


def rpm_ostree(words):
    verb, rest = (words[0] if words else "status"), words[1:]
    names = [each for each in rest if not each.startswith("-")]
    if verb in ("install", "uninstall", "remove"):
        for each in names:
            record("install" if verb == "install" else "remove", package=each, latest=False)
        return 0
    if verb == "kargs":
        return kernel_arguments(rest)
    if verb in ("status", "reload", "cancel", "refresh-md", "cleanup"):
        return 0
    record("unknown", command=" ".join(["rpm-ostree", *words]))
    return fail(f"rpm-ostree {verb}: cannot be captured")


def kernel_arguments(words):
    for word in words:
        option, _, value = word.partition("=")
        if option in ("--append", "--append-if-missing") and value:
            record("kernel", add=value)
        elif option in ("--delete", "--delete-if-present", "--replace") and value:
            record("kernel", remove=value)
    return 0


def grubby(words):
    for word in words:
        option, _, value = word.partition("=")
        for each in value.strip("\"'").split():
            if option in ("--args", "--remove-args"):
                record("kernel", **{"add" if option == "--args" else "remove": each})
    return 0


def package_manager(words):
    names = [each for each in words if not each.startswith("-")]
    verb, rest = (names[0] if names else ""), names[1:]
    if verb in ("install", "reinstall", "localinstall"):
        return rpm_ostree(["install", *rest])
    if verb in ("remove", "erase", "purge"):
        return rpm_ostree(["remove", *rest])
    if verb in ("update", "makecache", "clean", "list", "info", "repolist"):
        return 0
    record("unknown", command=" ".join([ROLE, *words]))
    return fail(f"{ROLE} {verb}: cannot be captured")


def rpm(words):
    names = [each for each in words if not each.startswith("-")]
    have = installed()
    for each in names:
        print(each if bare(each) in have else f"package {each} is not installed")
    return 0 if all(bare(each) in have for each in names) else 1


# -- the running kernel ----------------------------------------------------------------------------------------------


def sysctl(words):
    """Reading works; what is set on the running kernel is recorded."""
    failed = 0
    for word in words:
        if "=" in word and not word.startswith("-"):
            key, _, value = word.partition("=")
            record("parameter", key=key.strip().replace("/", "."), value=value.strip())
            print(f"{key.strip()} = {value.strip()}")
        elif not word.startswith(("-", "/")):
            failed |= read_parameter(word, "-n" in words)
    return failed


def read_parameter(key, bare_value):
    try:
        with open("/proc/sys/" + key.replace(".", "/"), encoding="utf-8") as file:
            value = " ".join(file.read().split())
    except OSError:
        return fail(f"sysctl: cannot stat /proc/sys/{key.replace('.', '/')}: No such file or directory")
    print(value if bare_value else f"{key} = {value}")
    return 0


def modprobe(words):
    names = [each for each in words if not each.startswith("-")]
    for each in names[:1]:
        record("module", name=each, loaded="-r" not in words)
    return 0


def fail(text):
    print(text, file=sys.stderr)
    return 1


def quiet(words):
    return 0


def refuse(words):
    record("unknown", command=" ".join([ROLE, *words]))
    return fail(f"{ROLE}: a playbook that is captured cannot use it")


COMMANDS = {
    "systemctl": systemctl,
    "rpm-ostree": rpm_ostree,
    "grubby": grubby,
    "dnf": package_manager,
    "yum": package_manager,
    "apt-get": package_manager,
    "rpm": rpm,
    "sysctl": sysctl,
    "modprobe": modprobe,
    "restorecon": quiet,
    "udevadm": quiet,
    **dict.fromkeys(
        ("reboot", "shutdown", "poweroff", "firewall-cmd", "nmcli", "mount", "umount", "setenforce"), refuse
    ),
    **dict.fromkeys(
        ("hostnamectl", "timedatectl", "localectl", "loginctl", "crictl", "podman", "docker", "oc"), refuse
    ),
}
MODULES = {
    **dict.fromkeys(("systemd", "systemd_service", "service", "sysvinit"), module_systemd),
    **dict.fromkeys(("dnf", "dnf5", "apt"), module_packages),
    "service_facts": module_service_facts,
    "package_facts": module_package_facts,
    "setup": module_setup,
}


def truth(value):
    return value if isinstance(value, bool) else str(value).lower() in ("yes", "true", "on", "1", "y")


def main():
    if not ROLE.startswith("module "):
        return COMMANDS[ROLE](sys.argv[1:])
    with open(sys.argv[1], encoding="utf-8") as file:
        given = json.load(file)
    print(json.dumps(MODULES[ROLE.removeprefix("module ")](given)))
    return 0


sys.exit(main())
