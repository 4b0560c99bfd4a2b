"""A Linux machine for the machine-config agent: the running system, or a system whose files are below a directory.

On the running system (root ``/``) commands are executed, with a time limit and bounded output. Below another root
nothing is executed: units are enabled by their links, users are read from the root's own files, and an operation that
needs a running system is refused, or skipped if the machine is ``offline``, until it boots.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from syncline.base.clock import Clock
from syncline.hosts.linuxplays import LinuxPlays
from syncline.hosts.linuxroot import LinuxRoot
from syncline.hosts.linuxunits import OfflineUnits, unit_files
from syncline.hosts.nodepresence import MachineFacts
from syncline.kube.objects import Obj, dig, name_of
from syncline.machineconfig.agent.files.disk import managed_paths
from syncline.machineconfig.agent.files.script import MAX_REASON
from syncline.machineconfig.agent.files.writing import CORE_OS
from syncline.machineconfig.agent.host import Done, HostError
from syncline.machineconfig.agent.hosts import (
    CURRENT_CONFIG,
    CURRENT_IMAGE_FILE,
    FORCE_FILE,
    FixedSystem,
    HostFacts,
    Pull,
    stored_config,
)
from syncline.machineconfig.agent.provisioning.firstboot import FIPS_ENABLED, joining_of, kernel_fips
from syncline.machineconfig.agent.staging.deployments import has_deployed
from syncline.machineconfig.agent.staging.kernel import parsed_arguments
from syncline.machineconfig.ansible.journal import JOURNAL, read_journal

BOOT_ID, OFFLINE_BOOT_ID = "/proc/sys/kernel/random/boot_id", "/etc/machine-config-daemon/boot-id"
REBOOT_REQUEST = "/run/syncline-node-agent/reboot"
"""A file in memory, so that a boot removes it."""
OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
VARIANTS = {"fedora": "fcos", "rhel": "rhcos", "centos": "scos"}
"""``ID`` of systems whose ``VARIANT_ID`` is coreos, by the names that the agent knows."""
DPKG_DATABASE = "/var/lib/dpkg/status"
LIMIT_S = 300.0
LIMITS_S = {"rpm-ostree": 3600.0}
"""Time limits in seconds by program; a rebase downloads a complete system."""
MAX_OUTPUT = 64 << 10
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TAKES_NAMES = ("systemctl", "getent", "crictl")
"""Programs whose last words are names out of a config: no option may hide among them."""
DAY_S = 86400
NOT_THERE = 127


class LinuxHost(LinuxRoot):
    """A Linux machine. ``offline``: the system below ``root`` does not run; what needs it is skipped with a note."""

    def __init__(self, root: Path, clock: Clock, *, offline: bool = False) -> None:
        super().__init__(root)
        self.running = root.resolve() == Path("/")
        self.offline = offline
        self.clock = clock
        if self.running and offline:
            raise HostError("open", "/", "this system runs, so it is not offline")

    @property
    def os(self) -> str:
        name, variant = (self.release(key) for key in ("ID", "VARIANT_ID"))
        return VARIANTS.get(name, name) if variant == "coreos" else name or "linux"

    @property
    def keeps_all(self) -> bool:
        return self.stat(DPKG_DATABASE) is not None

    def release(self, key: str) -> str:
        """Return a field of os-release, or an empty string."""
        for path in OS_RELEASE:
            with contextlib.suppress(HostError):
                text = self.read(path).decode("utf-8", "replace")
                found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
                return found.get(key, "").strip("\"'")
        return ""

    def has_program(self, name: str) -> bool:
        """Return whether a program is installed; False below another root, where nothing is executed."""
        return self.running and shutil.which(name, path=PATH) is not None

    def unit_files(self) -> frozenset[str]:
        return unit_files(self)

    # -- users --------------------------------------------------------------------------------------------------------

    def user_id(self, name: str) -> int | None:
        return self._number("/etc/passwd", name)

    def group_id(self, name: str) -> int | None:
        return self._number("/etc/group", name)

    def user_name(self, uid: int) -> str | None:
        return next((line[0] for line in self._lines("/etc/passwd") if len(line) > 2 and line[2] == str(uid)), None)

    def _number(self, path: str, name: str) -> int | None:
        found = (line[2] for line in self._lines(path) if len(line) > 2 and line[0] == name and line[2].isdigit())
        return next((int(number) for number in found), None)

    def _lines(self, path: str) -> list[list[str]]:
        try:
            return [line.split(":") for line in self.read(path).decode("utf-8", "replace").splitlines()]
        except HostError:
            return []

    # -- commands -----------------------------------------------------------------------------------------------------

    def run(self, command: Sequence[str]) -> Done:
        return self._run_program(command) if self.running else self._pretend(command)

    def _run_program(self, command: Sequence[str]) -> Done:
        match list(command):
            case [program, verb, *names] if program in TAKES_NAMES and names:
                words = [program, verb, "--", *names]
            case ["rpm", ("-q" | "-qf") as query, name]:
                words = ["rpm", query, "--", name]
            case ["usermod", "-p", hashed, name]:
                words = ["usermod", "-p", hashed, "--", name]
            case given:
                words = given
        return run_program(words, LIMITS_S.get(words[0], LIMIT_S))

    def _pretend(self, command: Sequence[str]) -> Done:
        match list(command):
            case ["systemctl", ("enable" | "disable" | "preset" | "is-enabled") as verb, *names]:
                return OfflineUnits(self).run(verb, names)
            case ["runuser", "-u", user, "--", "mkdir", "-m", _, "-p", path]:
                return self._make_own(user, path)
            case ["getent", "shadow", name]:
                found = next((line for line in self._lines("/etc/shadow") if line[0] == name), None)
                return Done(2) if found is None else Done(0, ":".join(found))
            case ["usermod", "-p", hashed, name]:
                return self._set_password(name, hashed)
            case ["rpm-ostree", "status", *_]:
                return Done(1, "nothing below another root has booted")
            case ["rpm", *_]:
                return Done(1, "packages below another root are not asked for")
        line = " ".join(command)
        if self.offline:
            self.note(f"skipped: {line} (the system does not run)")
            return Done(0)
        return Done(1, f"{line} needs a running system, and {self.root} is a directory; leave it out by --offline")

    def _make_own(self, user: str, path: str) -> Done:
        """Create a directory that ``user`` owns."""
        uid, gid = self.user_id(user), self.group_id(user)
        if uid is None:
            return Done(1, f"runuser: user {user} does not exist")
        try:
            if self.stat(path) is None:
                self.make_directories(path, 0o700)
                self.give(path, uid, uid if gid is None else gid)
        except HostError as error:
            return Done(1, str(error))
        return Done(0)

    def _set_password(self, name: str, hashed: str) -> Done:
        """Write the user's line of the shadow file with the date of the change; mode and owner of the file stay."""
        lines = self._lines("/etc/shadow")
        there = self.stat("/etc/shadow")
        mine = next((line for line in lines if line[0] == name), None)
        if mine is None or there is None or len(mine) < 3:
            return Done(6, f"usermod: user '{name}' does not exist")
        if ":" in hashed or "\n" in hashed:
            return Done(3, "usermod: invalid field")
        mine[1:3] = [hashed, str(int(self.clock.now().timestamp()) // DAY_S)]
        text = "".join(":".join(line) + "\n" for line in lines)
        try:
            self.write("/etc/shadow", text.encode(), mode=there.mode & 0o777, owner=(there.uid, there.gid))
        except HostError as error:
            return Done(1, f"usermod: cannot write: {error}")
        return Done(0)


def run_program(words: Sequence[str], limit_s: float) -> Done:
    """Run a command, and kill it with its children after ``limit_s`` seconds. At most 64 KiB of output are kept."""
    environment = {"PATH": PATH, "LC_ALL": "C.UTF-8", "HOME": "/root"}
    try:
        started = subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        return Done(NOT_THERE, f"{words[0]}: {os.strerror(error.errno or 0).lower()}")
    overdue = threading.Event()

    def end() -> None:
        overdue.set()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)

    timer = threading.Timer(limit_s, end)
    timer.daemon = True
    timer.start()
    try:
        assert started.stdout is not None, "it was asked for"
        with started.stdout as stream:
            output = _bounded(stream)
        code = started.wait()
    finally:
        timer.cancel()
    if overdue.is_set():
        return Done(124, f"{output}{words[0]} did not end within {limit_s:g} s and was killed")
    return Done(code, output)


def _bounded(stream: IO[bytes]) -> str:
    kept = bytearray()
    while part := stream.read(4096):
        kept += part[: max(0, MAX_OUTPUT - len(kept))]
    return kept.decode("utf-8", "replace")


class LinuxHosts:
    """The single machine of ``node``."""

    def __init__(self, node: str, host: LinuxHost, *, in_place: bool = False) -> None:
        """``in_place``: execute steps in the caller's thread, not in a thread of their own."""
        self.node = node
        self.in_place = in_place
        self._host = host
        self._stored: tuple[tuple[int, ...], Obj | None] = ((), None)
        self._managed: tuple[str, ...] = ()
        self._observed: tuple[object, ...] | None = None
        self._looked = ""
        self.player = LinuxPlays(host.root, host.running, host.clock)
        self._lock: int | None = None

    def lock(self) -> None:
        """Lock the root for this agent until the process ends. Raises HostError if another agent holds the lock."""
        self._lock = os.open(self._host.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise HostError("lock", str(self._host.root), "another agent works there; end it first") from error
        self._forget_reboot()

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def facts(self, node: str) -> HostFacts | None:
        if node != self.node:
            return None
        host, stored, joining = self._host, None, joining_of(self._content)
        try:
            stored = self._stored_config()
        except HostError as error:
            joining = replace(joining, damage=str(error))
        return HostFacts(
            self._boot_id(),
            up=not (host.running and host.exists(REBOOT_REQUEST)),
            stored=stored,
            image=self._text(CURRENT_IMAGE_FILE).strip(),
            fips=kernel_fips(self._text(FIPS_ENABLED)) if host.running else None,
            joining=joining,
            forced=host.exists(FORCE_FILE),
            fixed=self._fixed(),
            touched=self._observed != self._stamp(),
            fresh=self._looked != self._boot_id(),
            plays=read_journal(self._content(JOURNAL)),
        )

    def notes(self) -> list[str]:
        """Return the parts of the requested configuration that were left out, each once."""
        return list(self._host.notes)

    def machine_facts(self, addresses: Sequence[str] = ()) -> MachineFacts:
        """Return the facts about the machine that its Node shows."""
        machine = platform.machine()
        return MachineFacts(
            self._boot_id(),
            machine_id=self._line("/etc/machine-id"),
            kernel=self._line("/proc/sys/kernel/osrelease") if self._host.running else "",
            os_image=self._host.release("PRETTY_NAME") or self._host.os,
            architecture=ARCHITECTURES.get(machine, machine) if self._host.running else "",
            addresses=tuple(addresses) if self._host.running else (),
        )

    def changing(self) -> tuple[object, ...]:
        """Return a value that stays equal until something changes that the agent reads on the machine."""
        return self._boot_id(), self._host.stamp(FORCE_FILE), self._host.stamp(CURRENT_CONFIG), self._stamp()

    def host(self, node: str) -> LinuxHost:
        if node != self.node:
            raise KeyError(node)
        return self._host

    def provision(self, node: str, config: Obj) -> None:
        """Do nothing: a running machine keeps the system and kernel that it booted."""

    def store(self, node: str, config: Obj, image: str = "") -> None:
        kept = {"metadata": {"name": name_of(config)}, "spec": config.get("spec") or {}}
        self.host(node).write(CURRENT_IMAGE_FILE, image.encode(), mode=0o600)
        self.host(node).write(CURRENT_CONFIG, json.dumps(kept, separators=(",", ":")).encode(), mode=0o600)
        self.compared(node)

    def compared(self, node: str, *, booted: bool = False) -> None:
        self._stored_config()
        self._observed = self._stamp()
        if booted:
            self._looked = self._boot_id()

    def differs(self, node: str) -> None:
        self._observed, self._looked = None, ""

    def pull(self, node: str, image: str) -> Pull:
        """Pull an image with CRI-O, its credentials and mirrors; blocks until it is done."""
        host = self.host(node)
        if host.run(["crictl", "inspecti", image]).ok:
            return Pull()
        done = host.run(["crictl", "pull", image])
        return Pull(fetched=True, error="" if done.ok else done.output.strip() or f"exit status {done.code}")

    def booted_image(self, node: str) -> str:
        """Return the booted image; below another root, the image of the stored config."""
        if not self._host.running:
            return str(dig(self._stored_config(), "spec", "osImageURL") or "")
        deployed = has_deployed(self._host)
        return deployed.booted.image if deployed is not None else ""

    def command_line(self, node: str) -> str:
        if not self._host.running:
            return " ".join(parsed_arguments(dig(self._stored_config(), "spec", "kernelArguments")))
        return self._host.read("/proc/cmdline").decode("utf-8", "replace")

    def finalize_failure(self, node: str) -> str:
        """Return the first error in the previous boot's journal, if that journal exists."""
        host = self.host(node)
        if not host.running or host.os not in CORE_OS:
            return ""
        words = ["journalctl", "-b", "-1", "-o", "cat", "_UID=0", "-u", "ostree-finalize-staged.service"]
        done = host.run(words)
        lines = done.output.splitlines() if done.ok else []
        return next((line for line in lines if line.startswith("error:")), "")[:MAX_REASON]

    def reboot(self, node: str, request: str) -> None:
        host = self.host(node)
        if host.running:
            if host.exists(REBOOT_REQUEST):
                return
            host.write(REBOOT_REQUEST, request.encode())
            done = host.run(["systemctl", "reboot"])
            if not done.ok:
                host.remove(REBOOT_REQUEST)
                raise HostError("reboot", node, done.output or f"exit status {done.code}")
        elif host.offline:
            host.note("skipped: reboot (the system does not run; it counts as rebooted)")
            host.write(OFFLINE_BOOT_ID, hashlib.sha256(request.encode()).hexdigest()[:32].encode())
        else:
            text = f"{host.root} is a directory and cannot be rebooted; reboot its machine and change {OFFLINE_BOOT_ID}"
            raise HostError("reboot", node, f"{text}, or run with --offline")

    # -- inside -------------------------------------------------------------------------------------------------------

    def _forget_reboot(self) -> None:
        """Remove the reboot request of an agent that died before the reboot started, unless the system is stopping."""
        host = self._host
        if host.running and host.exists(REBOOT_REQUEST):
            said = host.run(["systemctl", "is-system-running"]).output.split()
            if said != ["stopping"]:
                host.remove(REBOOT_REQUEST)

    def _fixed(self) -> FixedSystem | None:
        """Return the system of a machine whose kernel is not ours to change; None below another root."""
        host = self._host
        if not host.running or host.os in CORE_OS:
            return None
        return FixedSystem(host.release("PRETTY_NAME") or host.os, self.command_line(self.node))

    def _boot_id(self) -> str:
        """Return the boot id. Raises HostError if a running machine has none: its reboots would look the same."""
        if self._host.running:
            return self._host.read(BOOT_ID).decode().strip()
        return self._line(OFFLINE_BOOT_ID) or "never-booted"

    def _line(self, path: str) -> str:
        return self._text(path).strip()

    def _text(self, path: str) -> str:
        """Return the text of a small file; empty if there is none."""
        return (self._content(path) or b"").decode("utf-8", "replace")

    def _content(self, path: str) -> bytes | None:
        try:
            return self._host.read(path)
        except HostError:
            return None

    def _stamp(self) -> tuple[object, ...]:
        return tuple(self._host.stamp(path) for path in self._managed)

    def _stored_config(self) -> Obj | None:
        stamp = self._host.stamp(CURRENT_CONFIG)
        if stamp and stamp != self._stored[0]:
            config = stored_config(self._host.read(CURRENT_CONFIG))
            self._stored = (stamp, config)
            self._managed = tuple(managed_paths(config))
        return self._stored[1] if stamp else None
